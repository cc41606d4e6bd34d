"""Studies and reports on runs, from run directories: they read files, never live objects."""

from typing import TYPE_CHECKING

from microcoder.facade import lend

if TYPE_CHECKING:
    from microcoder.lab.studies.effects import Estimate, estimate_accuracy, estimate_difference, pass_at_k

__all__ = ["Estimate", "estimate_accuracy", "estimate_difference", "pass_at_k"]

__getattr__, __dir__ = lend(__name__, {
    "effects": ("Estimate", "estimate_accuracy", "estimate_difference", "pass_at_k"),
})  # fmt: skip

"""Reports and studies over run directories: they read files, never live objects."""

from typing import TYPE_CHECKING

from microcoder.facade import lend

if TYPE_CHECKING:
    from microcoder.lab.studies.effects import Estimate, estimate_accuracy, estimate_difference, pass_at_k
    from microcoder.lab.studies.history import rollouts_df
    from microcoder.lab.studies.report import write_report

__all__ = ["Estimate", "estimate_accuracy", "estimate_difference", "pass_at_k", "rollouts_df", "write_report"]

__getattr__, __dir__ = lend(__name__, {
    "history": ("rollouts_df",),
    "report": ("write_report",),
    "effects": ("Estimate", "estimate_accuracy", "estimate_difference", "pass_at_k"),
})  # fmt: skip

"""Dataset: from raw public problem sets to a verified corpus; and problem files. Needs no torch."""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.data.formats.candidates import (
        Candidate,
        Difficulty,
        Lineage,
        Rejection,
        Solution,
    )
    from microcoder.data.formats.rows import read_problem
    from microcoder.data.release.problems import read_problems, write_problems

__all__ = [
    "Candidate",
    "Difficulty",
    "Lineage",
    "Rejection",
    "Solution",
    "read_problem",
    "read_problems",
    "write_problems",
]

__getattr__, __dir__ = lazy_names(__name__, {
    "formats.rows": ("read_problem",),
    "release.problems": ("read_problems", "write_problems"),
    "formats.candidates": ("Candidate", "Difficulty", "Lineage", "Rejection", "Solution"),
})  # fmt: skip

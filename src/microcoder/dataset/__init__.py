"""Dataset: problem files today; collect, process, filter and verify build on them. Needs no torch."""

from microcoder.dataset.problems import read_problems, write_problems

__all__ = ["read_problems", "write_problems"]

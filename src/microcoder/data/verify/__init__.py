"""Verify stage: checks problems by running their programs in the sandbox. See docs/dataset-verify.md."""

from microcoder.data.verify.evidence import Evidence, VerifySettings, combine_counts, conclude, count_right, find_fault
from microcoder.data.verify.execution import VerdictStore, gather, verify

__all__ = [
    "Evidence", "VerdictStore", "VerifySettings", "combine_counts", "conclude", "count_right", "find_fault",
    "gather", "verify",
]  # fmt: skip

"""Verify: by execution in the sandbox, not by eye. See docs/dataset-verify.md."""

from microcoder.data.clean.python2 import convert_python2, is_python2
from microcoder.data.verify.evidence import (
    Evidence,
    Fault,
    TestCost,
    Trial,
    VerifySettings,
    choose_tests,
    conclude,
    find_fault,
)
from microcoder.data.verify.execution import gather, verify
from microcoder.data.verify.plans import trivial_programs
from microcoder.data.verify.rates import Rate, Rates, combine_counts, count_right, measure_rates, rate_with_interval
from microcoder.data.verify.store import Verdicts, VerdictStore, evaluator_version

__all__ = [
    "Evidence", "Fault", "Rate", "Rates", "TestCost", "Trial", "VerdictStore", "Verdicts",
    "VerifySettings", "choose_tests", "combine_counts", "conclude", "convert_python2", "count_right",
    "evaluator_version", "find_fault", "gather", "is_python2", "measure_rates", "rate_with_interval",
    "trivial_programs", "verify",
]  # fmt: skip

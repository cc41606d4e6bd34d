"""Verify: by execution in the sandbox, not by eye. See docs/dataset-verify.md."""

from microcoder.dataset.verify.choice import TestCost, choose_tests
from microcoder.dataset.verify.evidence import Evidence, Fault, Trial, conclude, find_fault
from microcoder.dataset.verify.execution import gather, verify
from microcoder.dataset.verify.plans import trivial_programs
from microcoder.dataset.verify.python2 import convert_python2, is_python2
from microcoder.dataset.verify.rates import Rate, Rates, combine_counts, count_right, measure_rates, rate_with_interval
from microcoder.dataset.verify.settings import ChoiceSettings, VerifySettings
from microcoder.dataset.verify.store import Verdicts, VerdictStore, evaluator_version

__all__ = [
    "ChoiceSettings",
    "Evidence",
    "Fault",
    "Rate",
    "Rates",
    "TestCost",
    "Trial",
    "VerdictStore",
    "Verdicts",
    "VerifySettings",
    "choose_tests",
    "combine_counts",
    "conclude",
    "convert_python2",
    "count_right",
    "evaluator_version",
    "find_fault",
    "gather",
    "is_python2",
    "measure_rates",
    "rate_with_interval",
    "trivial_programs",
    "verify",
]

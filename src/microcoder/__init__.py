"""MicroCoder: reinforcement learning of coding models.

Four parts, each usable alone: `microcoder.evaluator`, `microcoder.training`, `microcoder.dataset`,
`microcoder.insights`. This package itself needs neither torch nor a GPU.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from microcoder.errors import ConfigError, DataError, EvaluatorFault, MicroCoderError, TrainingError
    from microcoder.evaluator import Judge
    from microcoder.extract import extract_program
    from microcoder.rewards import score_verdict, score_verdicts
    from microcoder.types import (
        Checker,
        Outcome,
        Problem,
        Program,
        Prompt,
        Rollout,
        TestCase,
        TestResult,
        Verdict,
    )

__version__ = "0.2.0"

__all__ = [
    "Checker",
    "ConfigError",
    "DataError",
    "EvaluatorFault",
    "Judge",
    "MicroCoderError",
    "Outcome",
    "Problem",
    "Program",
    "Prompt",
    "Rollout",
    "TestCase",
    "TestResult",
    "TrainingError",
    "Verdict",
    "__version__",
    "extract_program",
    "score_verdict",
    "score_verdicts",
]

_NAMES_OF = {
    "errors": ("ConfigError", "DataError", "EvaluatorFault", "MicroCoderError", "TrainingError"),
    "evaluator": ("Judge",),
    "extract": ("extract_program",),
    "rewards": ("score_verdict", "score_verdicts"),
    "types": (
        "Checker", "Outcome", "Problem", "Program", "Prompt", "Rollout", "TestCase", "TestResult", "Verdict",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}


def __getattr__(name: str) -> object:
    """Import a name when it is first used: the command line's help needs none of them, and pydantic is slow."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

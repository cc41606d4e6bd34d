"""MicroCoder: reinforcement learning of coding models.

Four parts that can be used separately: `microcoder.judge`, `microcoder.train`, `microcoder.data`,
`microcoder.lab.studies`. This package itself needs neither torch nor a GPU.
"""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

# For type checkers, which do not call the `__getattr__` below.
if TYPE_CHECKING:
    from microcoder.data.formats.rows import read_problem
    from microcoder.judge import Judge
    from microcoder.judge.core.errors import (
        ConfigError,
        DataError,
        EvaluatorFault,
        MicroCoderError,
        TrainingError,
    )
    from microcoder.judge.core.extract import extract_program
    from microcoder.judge.core.rewards import score_verdict, score_verdicts
    from microcoder.judge.core.types import (
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

__version__ = "0.4.0.dev0"

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
    "read_problem",
    "score_verdict",
    "score_verdicts",
]

_NAMES_OF = {
    "data.formats.rows": ("read_problem",),
    "judge.core.errors": (
        "ConfigError",
        "DataError",
        "EvaluatorFault",
        "MicroCoderError",
        "TrainingError",
    ),
    "judge.fleet.judge": ("Judge",),
    "judge.core.extract": ("extract_program",),
    "judge.core.rewards": ("score_verdict", "score_verdicts"),
    "judge.core.types": (
        "Checker",
        "Outcome",
        "Problem",
        "Program",
        "Prompt",
        "Rollout",
        "TestCase",
        "TestResult",
        "Verdict",
    ),
}
"""Module -> the names of it that this package offers."""

__getattr__, __dir__ = lazy_names(__name__, _NAMES_OF)

"""MicroCoder: reinforcement learning of coding models.

Four parts, each usable alone: `microcoder.evaluator`, `microcoder.training`, `microcoder.dataset`,
`microcoder.insights`. This package itself needs neither torch nor a GPU.
"""

from importlib.metadata import version

from microcoder.errors import ConfigError, DataError, EvaluatorFault, MicroCoderError, TrainingError
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

__version__ = version("microcoder")

__all__ = [
    "Checker",
    "ConfigError",
    "DataError",
    "EvaluatorFault",
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

"""Evaluation: ask a benchmark's problems, judge the answers, report accuracy and pass@k with intervals."""

from typing import TYPE_CHECKING

from microcoder.facade import lend

if TYPE_CHECKING:
    from microcoder.eval.config import EvalConfig
    from microcoder.eval.report import EvaluationFolder, compare, summarise
    from microcoder.eval.session import run_evaluation

__all__ = ["EvalConfig", "EvaluationFolder", "compare", "run_evaluation", "summarise"]

__getattr__, __dir__ = lend(__name__, {
    "config": ("EvalConfig",),
    "report": ("EvaluationFolder", "compare", "summarise"),
    "session": ("run_evaluation",),
})  # fmt: skip

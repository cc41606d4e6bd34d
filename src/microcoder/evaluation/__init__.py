"""Evaluation: ask a benchmark's problems, judge the answers, report accuracy and pass@k with intervals."""

from microcoder.evaluation.config import EvalConfig
from microcoder.evaluation.folder import EvaluationFolder
from microcoder.evaluation.report import compare, summarise
from microcoder.evaluation.session import run_evaluation

__all__ = ["EvalConfig", "EvaluationFolder", "compare", "run_evaluation", "summarise"]

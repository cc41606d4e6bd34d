"""Evaluation: ask a benchmark's problems, judge the answers, report accuracy and pass@k.

`EvalConfig` (`config`) says what to ask, whom, and how to judge. `run_evaluation` (`evaluation`)
goes from it to results, and resumes what was interrupted. Prompts and a server's responses are in
`generation`, answers from a file in `answers`. `EvaluationFolder`, `summarise` and `compare`
(`report`) read the folder of an evaluation: figures with intervals, or the difference of two.

Read `evaluation` first.
"""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.eval.config import EvalConfig
    from microcoder.eval.evaluation import run_evaluation
    from microcoder.eval.report import EvaluationFolder, compare, summarise

__all__ = ["EvalConfig", "EvaluationFolder", "compare", "run_evaluation", "summarise"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "config": ("EvalConfig",),
        "report": ("EvaluationFolder", "compare", "summarise"),
        "evaluation": ("run_evaluation",),
    },
)

"""The evaluator: judge untrusted programs against tests in a sandbox. Needs no torch.

>>> from microcoder import Problem, Program
>>> from microcoder.judge import judge
>>> problem = Problem(id="sum", tests=[{"input": "1 2", "output": "3"}])
>>> judge([Program("print(sum(map(int, input().split())))")], [problem])[0].outcome
<Outcome.ACCEPTED: 'accepted'>

`Judge` keeps its sandboxes for many batches, `judge` is for one; both are in `fleet`. `run` judges
in one process, `sandbox` is the untrusted side, `compare` compares outputs, `languages` says how
programs are built, `core` has the types, `serve` the HTTP service. Read `core/types.py` first.
"""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.judge.compare.compare import Comparison, compare_output, compare_value
    from microcoder.judge.fleet.judge import Judge, judge
    from microcoder.judge.languages.packages import JudgingEnvironment
    from microcoder.judge.run.checkers import judge_answers
    from microcoder.judge.run.checks import check_problem
    from microcoder.judge.run.executions import Execution, Invocation
    from microcoder.judge.run.isolation import Isolation
    from microcoder.judge.run.options import JudgeOptions, StopRule
    from microcoder.judge.run.reference import judge_by_reference
    from microcoder.judge.run.submissions import Submission, read_submissions

__all__ = [
    "Comparison",
    "Execution",
    "Invocation",
    "Isolation",
    "Judge",
    "JudgeOptions",
    "JudgingEnvironment",
    "StopRule",
    "Submission",
    "check_problem",
    "compare_output",
    "compare_value",
    "judge",
    "judge_answers",
    "judge_by_reference",
    "read_submissions",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "compare.compare": ("Comparison", "compare_output", "compare_value"),
        "languages.packages": ("JudgingEnvironment",),
        "run.checkers": ("judge_answers",),
        "run.checks": ("check_problem",),
        "run.executions": ("Execution", "Invocation"),
        "run.isolation": ("Isolation",),
        "fleet.judge": ("Judge", "judge"),
        "run.options": ("JudgeOptions", "StopRule"),
        "run.reference": ("judge_by_reference",),
        "run.submissions": ("Submission", "read_submissions"),
    },
)

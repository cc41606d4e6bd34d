"""The evaluator: judge untrusted programs against tests in a sandbox. Needs no torch.

>>> from microcoder import Problem, Program
>>> from microcoder.evaluator import judge
>>> problem = Problem(id="sum", tests=[{"input": "1 2", "output": "3"}])
>>> judge([Program("print(sum(map(int, input().split())))")], [problem])[0].outcome
<Outcome.ACCEPTED: 'accepted'>
"""

from microcoder.evaluator.answers import judge_answers
from microcoder.evaluator.compare import Comparison, compare_output, compare_value
from microcoder.evaluator.environment import JudgingEnvironment
from microcoder.evaluator.executions import Execution, Invocation
from microcoder.evaluator.isolation import Isolation
from microcoder.evaluator.judge import Judge, judge
from microcoder.evaluator.preparation import check_problem
from microcoder.evaluator.reference import judge_by_reference
from microcoder.evaluator.session import STOP_RULES, StopRule
from microcoder.evaluator.submissions import Submission, read_submissions

__all__ = [
    "STOP_RULES",
    "Comparison",
    "Execution",
    "Invocation",
    "Isolation",
    "Judge",
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

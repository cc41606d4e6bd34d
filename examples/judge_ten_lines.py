"""Judge three programs: `python examples/judge_ten_lines.py`."""

from microcoder import Problem, Program
from microcoder.judge import Judge

problem = Problem(id="sum", tests=[{"input": "20 22", "output": "42"}], time_limit_seconds=1)
answers = ["print(sum(map(int, input().split())))", "print(3)", "while True: pass"]

with Judge() as judge:
    verdicts = judge.judge([Program(code) for code in answers], [problem] * len(answers))
for answer, verdict in zip(answers, verdicts, strict=True):
    print(verdict.outcome, f"{verdict.tests_passed}/{verdict.tests_total}", answer, sep="\t")

"""Checker programs decide where many answers are right; one that fails leaves the program unscored."""

from __future__ import annotations

import pytest

from microcoder.evaluator import Judge
from microcoder.evaluator.languages import LANGUAGES
from microcoder.types import Checker, Outcome, Problem, Program

from .conftest import make_problem, run  # pyrefly: ignore[missing-import]

TESTLIB = """
import sys
given, output, answer = [open(path).read().split() for path in sys.argv[1:4]]
assert answer == ["5", "5"]
sys.exit(0 if sum(map(int, output)) == int(given[0]) else 1)
"""
KATTIS = """
import os, sys
total = int(open(sys.argv[1]).read())
right = sum(map(int, sys.stdin.read().split())) == total and sys.argv[4:] == ["positive"]
print("not the sum", file=open(os.path.join(sys.argv[3], "judgemessage.txt"), "w"))
sys.exit(42 if right else 43)
"""
CPP = """
#include <fstream>
int main(int, char** names) {
    std::ifstream given(names[1]), output(names[2]);
    int total, part, sum = 0;
    given >> total;
    while (output >> part) sum += part;
    return sum == total ? 0 : 1;
}
"""


def sum_problem(**checker: object) -> Problem:
    return make_problem(("10\n", "5 5\n"), checker=Checker.model_validate({"type": "program", **checker}))


@pytest.mark.parametrize(
    "checker",
    [
        {"code": TESTLIB},
        {"code": KATTIS, "protocol": "kattis", "arguments": ["positive"]},
        pytest.param(
            {"code": CPP, "language": "cpp"},
            marks=pytest.mark.skipif(bool(LANGUAGES["cpp"].find_problem()), reason="no C++ compiler"),
        ),
    ],
    ids=["testlib", "kattis", "cpp"],
)
def test_decides(judge_one: Judge, checker: dict[str, object]) -> None:
    problem = sum_problem(**checker)
    right, wrong, crashed = judge_one.judge(
        [Program("print(3, 7)"), Program("print(3, 8)"), Program("print(3, 7)\n1 / 0")], [problem] * 3
    )
    assert right.is_accepted, right.detail
    assert right.tests[0].method == "program"
    assert wrong.outcome is Outcome.WRONG_ANSWER
    assert "the checker refused it" in wrong.detail
    assert crashed.outcome is Outcome.RUNTIME_ERROR


@pytest.mark.parametrize(
    ("code", "detail"),
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import sys\nsys.exit(3)", "exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("print(", "does not compile"),
    ],
)
def test_a_checker_that_fails_leaves_the_program_unscored(judge_one: Judge, code: str, detail: str) -> None:
    verdict = run(judge_one, "print(3, 7)", sum_problem(code=code))
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert not verdict.is_scorable
    assert detail in verdict.detail


def test_a_checker_sees_the_output_and_nothing_of_the_program(judge_one: Judge) -> None:
    code = "import os, sys\nsys.exit(0 if sorted(os.listdir('.')) == ['answer', 'input', 'output'] else 1)"
    program = "open('/tmp/left', 'w').write('behind')\nprint(3, 7)"
    assert run(judge_one, program, sum_problem(code=code)).is_accepted


def test_options_belong_to_their_checker() -> None:
    with pytest.raises(ValueError, match='checker type "program" needs code'):
        Checker(type="program")
    with pytest.raises(ValueError, match='checker type "exact" takes no code; it belongs to "program"'):
        Checker(type="exact", code="x")
    with pytest.raises(ValueError, match="tolerance is both absolute and relative"):
        Checker(type="float", tolerance=1e-3, absolute=1e-3)


def test_a_large_input_can_be_opened_as_a_file(judge_one: Judge) -> None:
    problem = make_problem(("1" * (20 << 20), "1"))
    verdict = run(judge_one, "print(open('/dev/stdin').read(1))", problem)
    assert verdict.is_accepted, verdict.detail


def test_dev_stdin_can_be_opened(judge_one: Judge) -> None:
    code = "print(sum(map(int, open('/dev/stdin').read().split())))"
    assert run(judge_one, code, make_problem(("1 2\n", "3\n"), ("5 6\n", "11\n"))).is_accepted

"""Checker programs decide where many answers are right;
one that fails leaves the program unscored.
"""

from collections.abc import Iterator

import pytest

from microcoder.judge import Judge, judge_answers
from microcoder.judge.core.types import Checker, Outcome, Problem, Program
from tests.judge.conftest import NEEDS, make_problem, run

KATTIS = """
import os, sys
total = int(open(sys.argv[1]).read())
right = sum(map(int, sys.stdin.read().split())) == total and sys.argv[4:] == ["positive"]
print("not the sum", file=open(os.path.join(sys.argv[3], "judgemessage.txt"), "w"))
sys.exit(42 if right else 43)
"""
CPP = """
#include <cstdlib>
#include <fstream>
#include <iostream>
int main(int count, char** names) {
    bool is_kattis = std::string(names[3]) == "feedback/";
    std::ifstream given(names[1]), file(is_kattis ? "/dev/null" : names[2]);
    int total, sum = 0;
    std::string word;
    given >> total;
    while ((is_kattis ? std::cin : file) >> word) { if (word.size() > 100) abort(); \
sum += std::stoi(word); }
    return (sum != total) + (is_kattis ? 42 : 0);
}"""


def sum_problem(**checker: object) -> Problem:
    return make_problem(
        ("10\n", "5 5\n"), checker=Checker.model_validate({"type": "program", **checker})
    )


@pytest.mark.parametrize(
    ("checker", "long"),
    [
        ({"code": KATTIS, "protocol": "kattis", "arguments": ["positive"]}, None),
        pytest.param({"code": CPP, "language": "cpp"}, "SIGABRT", marks=NEEDS["cpp"]),
        pytest.param(
            {"code": CPP, "language": "cpp", "protocol": "kattis"},
            "SIGABRT",
            marks=NEEDS["cpp"],
        ),
    ],
    ids=["kattis", "cpp", "cpp by kattis"],
)
def test_decides(judge_one: Judge, checker: dict[str, object], long: str | None) -> None:
    problem = sum_problem(**checker)
    programs = [Program(f"print({printed})") for printed in ("3, 7", "3, 8", "'7' * 1000")]
    right, wrong, crashed = judge_one.judge(programs, [problem] * 3)
    assert right.is_accepted, right.detail
    assert right.tests[0].method == "program"
    assert wrong.outcome is Outcome.WRONG_ANSWER
    assert "the checker refused it" in wrong.detail
    assert crashed.outcome is Outcome.WRONG_ANSWER
    assert crashed.is_checker_crash is (long is not None)
    assert (long or "") in crashed.detail


def test_a_checker_that_fails_leaves_the_program_unscored(judge_one: Judge) -> None:
    for code, detail in (
        ("import sys\nsys.exit(3)", "exit code 3"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL"),
        ("print(", "does not compile"),
    ):
        verdict = run(judge_one, "print(3, 7)", sum_problem(code=code))
        assert verdict.outcome == Outcome.SANDBOX_FAULT
        assert not verdict.is_scorable
        assert detail in verdict.detail
    # It sees the output and nothing of the program.
    code = (
        "import os, sys\n"
        "sys.exit(0 if sorted(os.listdir('.')) == ['answer', 'input', 'output'] else 1)"
    )
    program = "open('/tmp/left', 'w').write('behind')\nprint(3, 7)"
    assert run(judge_one, program, sum_problem(code=code)).is_accepted


def test_options_belong_to_their_checker() -> None:
    for options, message in (
        ({"type": "program"}, 'checker type "program" needs code'),
        (
            {"type": "exact", "code": "x"},
            'checker type "exact" takes no code; it belongs to "program"',
        ),
        (
            {"type": "float", "tolerance": 1e-3, "absolute": 1e-3},
            "tolerance is both absolute and relative",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            Checker.model_validate(options)


BRITTLE = """
import sys
total = int(open(sys.argv[1]).read())
parts = [int(word) for word in open(sys.argv[2]).read().split()]
if len(str(sum(parts))) > 10**5:
    raise SystemExit(3)
sys.exit(0 if sum(parts) == total else 1)
"""


QUOTES = (
    "import sys\n"
    "said = open(sys.argv[2]).read()\n"
    "print(said, file=sys.stderr)\n"
    "sys.exit(2 * ('call' in said))"
)


def test_an_output_that_breaks_a_checker_is_wrong_and_counted(judge_one: Judge) -> None:
    before = judge_one.statistics
    for code, program, crash in (
        (BRITTLE, "print('x')", "ValueError"),
        (
            BRITTLE,
            "import sys; sys.stdout.buffer.write(bytes(range(128, 256)))",
            "UnicodeDecodeError",
        ),
        (BRITTLE, "print('7' * 100_002)", "exit code 3"),
        (
            "import os, sys\nif '9' in open(sys.argv[2]).read(): os.kill(os.getpid(), 40)",
            "print(9)",
            "signal 40",
        ),
        (BRITTLE, "print('7' * 50_000)", ""),  # A number of any length is read.
        (QUOTES, "print('Traceback (most recent call last)')", ""),
    ):
        verdict = run(judge_one, program, sum_problem(code=code))
        assert verdict.outcome == Outcome.WRONG_ANSWER
        assert verdict.is_checker_crash == bool(crash)
        assert ("the checker crashed on this output" in verdict.detail) == bool(crash)
        assert crash in verdict.detail
    assert judge_one.statistics.checker_crashes == before.checker_crashes + 4
    assert judge_one.statistics.faults == before.faults


@pytest.fixture(scope="module")
def hasty() -> Iterator[Judge]:
    with Judge(workers=1, time_scale=1, checker_seconds=0.2, stop="never") as judging:
        yield judging


def test_a_checker_that_takes_too_long_says_nothing_of_programs_or_of_one(hasty: Judge) -> None:
    for code, program in (
        # It computes, or stands still, on this output only; it stands still on any;
        # it ends at its backstop.
        ("import sys\nwhile '9' in open(sys.argv[2]).read(): pass", "print(9)"),
        ("import sys, time\ntime.sleep(60 * ('9' in open(sys.argv[2]).read()))", "print(9)"),
        ("import time\ntime.sleep(60)", "print(5, 5)"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)", "print(5, 5)"),
    ):
        verdict = run(hasty, program, sum_problem(code=code))
        assert "it took too long" in verdict.detail
        assert verdict.is_checker_crash == ("9" in program), code
        assert verdict.is_checker_fault == ("9" not in program), code
    assert hasty.statistics.retries == 0
    endless = make_problem(
        *[("10\n", "5 5\n")] * 20, checker=Checker(type="program", code="while True: pass")
    )
    verdict = run(hasty, "print(5, 5)", endless)
    assert verdict.is_checker_fault
    assert len(verdict.tests) == 1, "it ends the program"


VALUES = """
import json, sys
output, answer = (json.loads(open(path).read()) for path in sys.argv[2:4])
sys.exit(0 if sorted(output) == answer["sorted"] else 1)
"""


def test_an_answer_that_is_a_value_is_asked_about_as_json(judge_one: Judge) -> None:
    checker = Checker(type="program", code=VALUES)
    problem = make_problem(
        ("[2, 1]", '{"sorted": [1, 2], "none": null}'),
        fn_name="solve",
        checker=checker,
    )
    assert run(judge_one, "def solve(a): return a", problem).is_accepted
    # It breaks on such a list, and on the problem's own answer it does not:
    # sorting a dict's keys is no crash.
    verdict = run(judge_one, "def solve(a): return [None, 1]", problem)
    assert verdict.is_checker_crash, verdict.detail
    assert "TypeError" in verdict.detail
    assert [test.verdict for test in judge_answers(judge_one.judge, problem).tests] == [
        Outcome.WRONG_ANSWER
    ]


def test_the_own_answers_of_a_problem_are_judged(judge_one: Judge) -> None:
    tests = (("10\n", "5 5\n"), ("10\n", "5 6\n"), ("10\n", "none\n"))

    def judged(code: str) -> list[Outcome]:
        problem = make_problem(*tests, checker=Checker(type="program", code=code))
        return [test.verdict for test in judge_answers(judge_one.judge, problem).tests]

    assert judged(BRITTLE) == [Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.SANDBOX_FAULT]
    assert judged("print(") == [Outcome.SANDBOX_FAULT] * 3
    assert judge_answers(judge_one.judge, make_problem(("1", "2"))).is_accepted

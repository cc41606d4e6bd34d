"""Checker programs decide where many answers are right; one that fails leaves the program unscored."""

from __future__ import annotations

import pytest

from microcoder.judge import Judge, judge_answers
from microcoder.judge.core.types import Checker, Outcome, Problem, Program
from microcoder.judge.languages import LANGUAGES

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


BRITTLE = """
import sys
total = int(open(sys.argv[1]).read())
parts = [int(word) for word in open(sys.argv[2]).read().split()]
if len(str(sum(parts))) > 10**5:
    raise SystemExit(3)
sys.exit(0 if sum(parts) == total else 1)
"""


@pytest.mark.parametrize(
    ("program", "why"),
    [
        ("print('x')", "ValueError"),
        ("import sys; sys.stdout.buffer.write(bytes(range(128, 256)))", "UnicodeDecodeError"),
        ("print('7' * 100_002)", "exit code 3"),
    ],
)
def test_an_output_that_breaks_a_checker_is_wrong_and_counted(judge_one: Judge, program: str, why: str) -> None:
    before = judge_one.statistics
    verdict = run(judge_one, program, sum_problem(code=BRITTLE))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.is_checker_crash
    assert "the checker crashed on this output" in verdict.detail
    assert why in verdict.detail
    assert judge_one.statistics.checker_crashes == before.checker_crashes + 1
    assert judge_one.statistics.faults == before.faults


def test_a_checker_reads_numbers_of_any_length(judge_one: Judge) -> None:
    verdict = run(judge_one, "print('7' * 50_000)", sum_problem(code=BRITTLE))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert not verdict.is_checker_crash, verdict.detail


def test_a_checker_that_takes_too_long_for_an_output_only() -> None:
    code = "import sys\nwhile '9' in open(sys.argv[2]).read(): pass\nsys.exit(0)"
    with Judge(workers=1, time_scale=1, checker_seconds=1.0) as judging:
        verdict = run(judging, "print(9)", sum_problem(code=code))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert verdict.is_checker_crash
    assert "it took too long" in verdict.detail


def test_a_checker_that_stands_still_on_an_output_only() -> None:
    code = "import sys, time\ntime.sleep(60 * ('9' in open(sys.argv[2]).read()))"
    with Judge(workers=1, time_scale=1, checker_seconds=0.1) as judging:
        verdict = run(judging, "print(9)", sum_problem(code=code))
        assert verdict.outcome is Outcome.WRONG_ANSWER
        assert verdict.is_checker_crash
        assert "it took too long" in verdict.detail
        assert judging.statistics.retries == 0
        verdict = run(judging, "print(9)", sum_problem(code="import time\ntime.sleep(60)"))
        assert verdict.is_checker_fault
        assert "it took too long" in verdict.detail


@pytest.mark.parametrize("processes", [0, 1])
def test_an_endless_checker_ends_the_program(processes: int) -> None:
    endless = make_problem(*[("10\n", "5 5\n")] * 20, checker=Checker(type="program", code="while True: pass"))
    with Judge(workers=1, processes=processes, time_scale=1, checker_seconds=0.2, stop="never") as judging:
        verdict = run(judging, "print(5, 5)", endless)
    assert verdict.outcome is Outcome.SANDBOX_FAULT
    assert verdict.is_checker_fault
    assert "it took too long" in verdict.detail
    assert len(verdict.tests) == 1


def test_a_checker_at_its_backstop_took_too_long(judge_one: Judge) -> None:
    code = "import os, signal\nos.kill(os.getpid(), signal.SIGXCPU)"
    assert "it took too long" in run(judge_one, "print(5, 5)", sum_problem(code=code)).detail


def test_a_traceback_that_a_checker_quotes_is_no_crash(judge_one: Judge) -> None:
    code = "import sys\nsaid = open(sys.argv[2]).read()\nprint(said, file=sys.stderr)\nsys.exit(2 * ('call' in said))"
    verdict = run(judge_one, "print('Traceback (most recent call last)')", sum_problem(code=code))
    assert verdict.outcome is Outcome.WRONG_ANSWER
    assert not verdict.is_checker_crash


def test_a_checker_killed_by_a_real_time_signal_has_a_verdict(judge_one: Judge) -> None:
    code = "import os, sys\nif '9' in open(sys.argv[2]).read(): os.kill(os.getpid(), 40)\nsys.exit(0)"
    verdict = run(judge_one, "print(9)", sum_problem(code=code))
    assert verdict.is_checker_crash
    assert "signal 40" in verdict.detail


VALUES = """
import json, sys
output, answer = (json.loads(open(path).read()) for path in sys.argv[2:4])
sys.exit(0 if sorted(output) == answer["sorted"] else 1)
"""


def test_an_answer_that_is_a_value_is_asked_about_as_json(judge_one: Judge) -> None:
    checker = Checker(type="program", code=VALUES)
    problem = make_problem(("[2, 1]", '{"sorted": [1, 2], "none": null}'), fn_name="solve", checker=checker)
    assert run(judge_one, "def solve(a): return a", problem).is_accepted
    # It breaks on such a list, and on the problem's own answer it does not: sorting a dict's keys is no crash.
    verdict = run(judge_one, "def solve(a): return [None, 1]", problem)
    assert verdict.is_checker_crash, verdict.detail
    assert "TypeError" in verdict.detail
    assert [test.verdict for test in judge_answers(judge_one.judge, problem).tests] == [Outcome.WRONG_ANSWER]


def test_the_own_answers_of_a_problem_are_judged(judge_one: Judge) -> None:
    tests = (("10\n", "5 5\n"), ("10\n", "5 6\n"), ("10\n", "none\n"))

    def judged(code: str) -> list[Outcome]:
        problem = make_problem(*tests, checker=Checker(type="program", code=code))
        return [test.verdict for test in judge_answers(judge_one.judge, problem).tests]

    assert judged(BRITTLE) == [Outcome.ACCEPTED, Outcome.WRONG_ANSWER, Outcome.SANDBOX_FAULT]
    assert judged("print(") == [Outcome.SANDBOX_FAULT] * 3
    assert judge_answers(judge_one.judge, make_problem(("1", "2"))).is_accepted


@pytest.mark.skipif(bool(LANGUAGES["cpp"].find_problem()), reason="no C++ compiler")
@pytest.mark.parametrize("protocol", ["testlib", "kattis"])
def test_an_output_that_aborts_a_built_checker_is_wrong(judge_one: Judge, protocol: str) -> None:
    code = """
    #include <cstdlib>
    #include <fstream>
    #include <iostream>
    int main(int count, char** names) {
        bool is_kattis = std::string(names[3]) == "feedback/";
        std::ifstream file(is_kattis ? "/dev/null" : names[2]);
        std::string word;
        while ((is_kattis ? std::cin : file) >> word) if (word.size() > 100) abort();
        return is_kattis ? 42 : 0;
    }"""
    problem = sum_problem(code=code, language="cpp", protocol=protocol)
    crashed, right = (run(judge_one, program, problem) for program in ("print('7' * 1000)", "print(5, 5)"))
    assert crashed.is_checker_crash
    assert "SIGABRT" in crashed.detail
    assert right.is_accepted

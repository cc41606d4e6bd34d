"""Whole problems through the real judge."""

import pytest

from microcoder.data import Candidate, Rejection
from microcoder.data.verify import plans
from microcoder.data.verify.choice import VerifySettings
from microcoder.data.verify.execution import verify
from microcoder.data.verify.rates import guess_chances
from microcoder.judge import Judge
from tests.data.verify_candidates import make_candidate
from tests.judge.interactive_problems import BISECT, COUNT, GUESS

RIGHT = "a, b = map(int, input().split())\nprint(a + b)\n"
ALSO_RIGHT = "print(sum(int(x) for x in input().split()))\n"
WRONG = "a, b = map(int, input().split())\nprint(abs(a) + abs(b))\n"
PYTHON2 = "a, b = map(int, raw_input().split())\nprint (2 * a + 2 * b) / 2\n"
FLAKY = (
    "import os\na, b = map(int, input().split())\nprint(a + b if os.urandom(1)[0] < 150 else 0)\n"
)
USUAL = VerifySettings(min_hidden_tests=1)


@pytest.fixture(autouse=True)
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans, "TRIAL_SECONDS", 5.0)


def accepted(*codes: str) -> list[dict[str, str]]:
    return [{"code": code} for code in codes]


def verify_one(
    judge: Judge, settings: VerifySettings = USUAL, **fields: object
) -> Candidate | Rejection:
    return verify([make_candidate(**fields)], judge, settings)[0]


def test_a_sound_problem_is_kept_with_limits_tests_and_lineage(judge: Judge) -> None:
    solutions = [*accepted(RIGHT, ALSO_RIGHT), {"code": WRONG, "known": "wrong_answer"}]
    kept = verify_one(
        judge,
        VerifySettings(max_tests=2, min_hidden_tests=1),
        solutions=solutions,
        groups=["sample", *["secret"] * 5],
    )
    assert isinstance(kept, Candidate)
    assert kept.time_limit_seconds == 2.0
    assert kept.memory_limit_mib == 512
    assert len(kept.tests) == len(kept.groups) == 2
    assert any("-" in test.input for test in kept.tests), "the test that catches the wrong program"
    assert {line.field for line in kept.lineage} >= {
        "time_limit_seconds",
        "memory_limit_mib",
        "tests",
        "groups",
    }
    assert kept.to_problem().reference == RIGHT


def test_an_interactive_problem_is_kept_by_what_its_interactor_says(judge: Judge) -> None:
    solutions = [*accepted(BISECT), {"code": COUNT, "known": "wrong_answer"}]
    tests = [{"input": f"{secret}\n", "output": ""} for secret in (37, 512, 999)]
    kept = verify_one(
        judge,
        VerifySettings(min_hidden_tests=1),
        solutions=solutions,
        tests=tests,
        interactor={"code": GUESS},
    )
    assert isinstance(kept, Candidate), kept
    assert kept.to_problem().interactor is not None
    # What its tests have as outputs is no answer that could be guessed.
    assert guess_chances(kept) == {"constant_share": 0.0, "coin_chance": 0.0}


SAME = [{"input": f"{n}\n", "output": "1\n"} for n in range(3)]
ECHO = [{"input": f"{n}\n", "output": f"{n}\n"} for n in range(3)]
ANY_DIGIT = [{"input": f"{n}\n", "output": "0\n"} for n in range(3)]
BROKEN_BY_100 = """import sys
said = int(open(sys.argv[2]).read())
sys.exit(3 if said > 98 else said != int(open(sys.argv[3]).read()))
"""
UP_TO_100 = [{"input": f"{n} 0\n", "output": f"{n if n < 99 else 0}\n"} for n in (1, 2, 100)]
EMPTY = [{"input": f"{n}\n", "output": "[]"} for n in range(4)]


def test_a_limit_of_the_source_is_kept_where_references_fit(judge: Judge) -> None:
    kept = verify_one(judge, time_limit_seconds=7.5, memory_limit_mib=256)
    assert isinstance(kept, Candidate)
    assert kept.time_limit_seconds == 7.5
    assert kept.memory_limit_mib == 256


def checked_by(code: str) -> dict[str, object]:
    return {"checker": {"type": "program", "code": code}}


@pytest.mark.parametrize(
    ("reason", "fields"),
    [
        ("no_tests", {"tests": []}),
        ("no_reference", {"solutions": [{"code": "x", "language": "cobol"}]}),
        ("no_reference", {"solutions": [{"code": PYTHON2}]}),
        ("not_judgeable", {"flags": ["interactive"]}),
        ("not_judgeable", {"fn_name": "f"}),
        ("not_judgeable", {"memory_limit_mib": 16}),
        ("reference_fails", {"solutions": accepted(WRONG, WRONG + "pass\n")}),
        ("flaky", {"solutions": accepted(FLAKY), "tests": [{"input": "1 2", "output": "3"}]}),
        (
            "needs_checker",
            {"solutions": accepted("print(0)", "print(input())"), "tests": ANY_DIGIT},
        ),
        ("needs_checker", {"solutions": accepted(RIGHT), "flags": ["many_answers"]}),
        ("trivial_passes", {"solutions": accepted("print(1)"), "tests": SAME}),
        ("trivial_passes", {"solutions": accepted("print(input())"), "tests": ECHO}),
        (
            "trivial_passes",
            {"fn_name": "f", "tests": EMPTY, "solutions": accepted("def f(n):\n    return []\n")},
        ),
        ("trivial_passes", checked_by("import sys; sys.exit(0)")),
        ("checker_fails", checked_by("import sys; sys.exit(77)")),
        ("checker_fails", {**checked_by(BROKEN_BY_100), "tests": UP_TO_100}),
        (
            "wrong_passes",
            {"solutions": [*accepted(RIGHT), {"code": ALSO_RIGHT, "known": "wrong_answer"}]},
        ),
        ("tests_too_large", {"tests": [{"input": "1 2\n", "output": f"3{' ' * (9 << 20)}\n"}]}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_every_reason_is_given_for_what_it_says(
    judge: Judge,
    reason: str,
    fields: dict[str, object],
) -> None:
    # A flaky program may pass all runs, or fail the first.
    for _ in range(30 if reason == "flaky" else 1):
        rejected = verify_one(judge, USUAL, **fields)
        if isinstance(rejected, Rejection) and rejected.reason == reason:
            break
    assert isinstance(rejected, Rejection)
    assert rejected.stage == "verify"
    assert rejected.reason == reason
    assert rejected.candidate is not None


SHOWS = "Add two numbers.\n\n## Example 1\n\nInput:\n\n```\n2 3\n```\n\nOutput:\n\n```\n{}\n```\n"


def test_an_example_that_accepted_programs_contradict_turns_a_problem_away(judge: Judge) -> None:
    refused = verify_one(judge, statement=SHOWS.format(6), solutions=accepted(RIGHT, ALSO_RIGHT))
    assert isinstance(refused, Rejection)
    assert refused.reason == "contradicts_examples"
    assert refused.detail == "the statement shows 2 3 -> 6"
    # The decision about a problem is about its examples, too.
    assert isinstance(verify_one(judge, statement=SHOWS.format(5)), Candidate)


def test_an_example_of_a_function_is_run_beside_tests_that_are_programs(judge: Judge) -> None:
    fields = {
        "fn_name": "largest",
        "starter_code": "def largest(numbers):\n    ",
        "assertions": {},
        "tests": [
            {"input": "", "output": f"assert largest([{n}, 1]) == {n}"} for n in (2, 3, 4, 5, 6)
        ],
        "solutions": accepted("def largest(numbers):\n    return max(numbers)\n"),
    }
    right = (
        "Return the largest number.\n\n>>> largest((7, 8))\n8\n>>> largest([0.3333, 0.25])\n0.33"
    )
    assert isinstance(verify_one(judge, statement=right, **fields), Candidate)
    refused = verify_one(judge, statement=right.replace("\n8", "\n7"), **fields)
    assert isinstance(refused, Rejection)
    assert refused.reason == "contradicts_examples"
    assert "(7, 8)" in refused.detail


def test_a_program_that_is_late_in_its_first_run_is_dropped_and_the_problem_kept(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "TRIAL_SECONDS", 1.0)
    kept = verify_one(judge, solutions=accepted("while True: pass\n", RIGHT))
    assert isinstance(kept, Candidate)
    assert [solution.code for solution in kept.solutions] == [RIGHT]


def test_a_program_that_crashes_is_dropped_and_the_problem_kept(judge: Judge) -> None:
    crashes = RIGHT + "assert a < 9\n"
    kept = verify_one(judge, solutions=accepted(crashes, RIGHT))
    assert isinstance(kept, Candidate)
    assert [solution.code for solution in kept.solutions] == [RIGHT]
    assert any("solution 0 dropped: runtime_error" in line.detail for line in kept.lineage)

"""Whole problems through the real judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_candidates import make_candidate

from microcoder.data import Candidate, Rejection
from microcoder.data.verify import Evidence, VerdictStore, VerifySettings, execution, gather, verify
from microcoder.data.verify.execution import plan
from microcoder.judge import Judge

RIGHT = "a, b = map(int, input().split())\nprint(a + b)\n"
ALSO_RIGHT = "print(sum(int(x) for x in input().split()))\n"
WRONG = "a, b = map(int, input().split())\nprint(abs(a) + abs(b))\n"
PYTHON2 = "a, b = map(int, raw_input().split())\nprint (2 * a + 2 * b) / 2\n"
FLAKY = "import os\na, b = map(int, input().split())\nprint(a + b if os.urandom(1)[0] < 150 else 0)\n"
FAST = VerifySettings(runs=2)


@pytest.fixture(autouse=True)
def short_trials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution, "TRIAL_SECONDS", 5.0)


def accepted(*codes: str) -> list[dict[str, str]]:
    return [{"code": code} for code in codes]


def verify_one(judge: Judge, settings: VerifySettings = FAST, **fields: object) -> Candidate | Rejection:
    return verify([make_candidate(**fields)], judge, settings)[0]


def test_a_sound_problem_is_kept_with_limits_tests_and_lineage(judge: Judge) -> None:
    solutions = [*accepted(RIGHT, ALSO_RIGHT), {"code": WRONG, "known": "wrong_answer"}]
    settings = VerifySettings(runs=2, max_tests=2)
    kept = verify_one(judge, settings, solutions=solutions, groups=["sample", *["secret"] * 5])
    assert isinstance(kept, Candidate)
    assert kept.time_limit_seconds == 2.0
    assert kept.memory_limit_mib == 512
    assert len(kept.tests) == len(kept.groups) == 2
    assert any("-" in test.input for test in kept.tests), "the test that catches the wrong program"
    assert {line.field for line in kept.lineage} >= {"time_limit_seconds", "memory_limit_mib", "tests", "groups"}
    assert kept.to_problem().reference == RIGHT


def test_a_limit_of_the_source_is_kept_where_references_fit(judge: Judge) -> None:
    kept = verify_one(judge, time_limit_seconds=7.5, memory_limit_mib=256)
    assert isinstance(kept, Candidate)
    assert (kept.time_limit_seconds, kept.memory_limit_mib) == (7.5, 256)


def test_a_limit_that_no_problem_can_have_is_a_rejection() -> None:
    found = plan(make_candidate(memory_limit_mib=16))
    assert isinstance(found, Rejection)
    assert found.reason == "not_judgeable"
    assert "memory_limit_mib" in found.detail


SAME = [{"input": f"{n}\n", "output": "1\n"} for n in range(3)]
ECHO = [{"input": f"{n}\n", "output": f"{n}\n"} for n in range(3)]
ANY_DIGIT = [{"input": f"{n}\n", "output": "0\n"} for n in range(3)]


@pytest.mark.parametrize(
    ("reason", "fields"),
    [
        ("no_tests", {"tests": []}),
        ("no_reference", {"solutions": []}),
        ("no_reference", {"solutions": [{"code": "x", "language": "cobol"}]}),
        ("not_judgeable", {"flags": ["interactive"]}),
        ("not_judgeable", {"fn_name": "f"}),
        ("reference_fails", {"solutions": accepted(WRONG)}),
        ("reference_fails", {"solutions": accepted("import nothing_like_it")}),
        ("flaky", {"solutions": accepted(FLAKY), "tests": [{"input": "1 2", "output": "3"}]}),
        ("reference_fails", {"solutions": accepted(WRONG, WRONG + "pass\n")}),
        ("needs_checker", {"solutions": accepted("print(0)", "print(input())"), "tests": ANY_DIGIT}),
        ("needs_checker", {"solutions": accepted(RIGHT), "flags": ["many_answers"]}),
        ("trivial_passes", {"solutions": accepted("print(1)"), "tests": SAME}),
        ("trivial_passes", {"solutions": accepted("print(input())"), "tests": ECHO}),
        (
            "wrong_passes",
            {"solutions": [*accepted(RIGHT), {"code": ALSO_RIGHT, "known": "wrong_answer"}]},
        ),
        ("tests_too_large", {}),
        ("no_reference", {"solutions": [{"code": PYTHON2}]}),
    ],
)
def test_every_reason_is_given_for_what_it_says(judge: Judge, reason: str, fields: dict[str, object]) -> None:
    settings = FAST
    if reason == "flaky":
        # A program that passes the first run may pass the others too: enough of them make that unlikely.
        settings = VerifySettings(runs=12)
    if reason == "tests_too_large":
        fields = {"tests": [{"input": "1 2\n", "output": f"3{' ' * (9 << 20)}\n"}]}
    for _ in range(20):
        rejected = verify_one(judge, settings, **fields)
        assert isinstance(rejected, Rejection)
        if reason == "flaky" and rejected.reason == "reference_fails":
            continue
        break
    assert (rejected.stage, rejected.reason) == ("verify", reason)
    assert rejected.candidate is not None


def test_a_checker_that_accepts_everything_is_found(judge: Judge) -> None:
    checker = {"type": "program", "code": "import sys; sys.exit(0)"}
    rejected = verify_one(judge, checker=checker)
    assert isinstance(rejected, Rejection)
    assert rejected.reason == "trivial_passes"
    assert "empty" in rejected.detail


def test_a_checker_that_fails_is_told_from_a_wrong_reference(judge: Judge) -> None:
    rejected = verify_one(judge, checker={"type": "program", "code": "import sys; sys.exit(77)"})
    assert isinstance(rejected, Rejection)
    assert rejected.reason == "checker_fails"


BROKEN_BY_100 = "import sys\nsaid = int(open(sys.argv[2]).read())\nsys.exit(3 if said > 98 else said != %s)\n"


def test_a_checker_that_crashes_on_a_right_output_is_no_checker(judge: Judge) -> None:
    code = BROKEN_BY_100 % "int(open(sys.argv[3]).read())"
    answers = [{"input": f"{n} 0\n", "output": f"{n if n < 99 else 0}\n"} for n in (1, 2, 100)]
    rejected = verify_one(judge, checker={"type": "program", "code": code}, tests=answers)
    assert isinstance(rejected, Rejection)
    assert rejected.reason == "checker_fails"
    assert "the checker crashed on this output" in rejected.detail


def test_a_program_that_crashes_is_dropped_and_the_problem_kept(judge: Judge) -> None:
    crashes = RIGHT + "assert a < 9\n"
    kept = verify_one(judge, solutions=accepted(crashes, RIGHT))
    assert isinstance(kept, Candidate)
    assert [solution.code for solution in kept.solutions] == [RIGHT]
    assert any("solution 0 dropped: runtime_error" in line.detail for line in kept.lineage)


def test_a_function_is_verified_by_its_values(judge: Judge) -> None:
    tests = [{"input": f"{n}\n", "output": f"{n * n}"} for n in range(4)]
    solution = "class Solution:\n    def square(self, n: int) -> int:\n        return n * n\n"
    kept = verify_one(judge, fn_name="square", tests=tests, solutions=accepted(solution))
    assert isinstance(kept, Candidate)
    constant = [{"input": f"{n}\n", "output": "[]"} for n in range(4)]
    rejected = verify_one(
        judge, fn_name="square", tests=constant, solutions=accepted("def square(n):\n    return []\n")
    )
    assert isinstance(rejected, Rejection)
    assert rejected.reason == "trivial_passes"


def test_a_run_that_is_taken_up_again_executes_nothing_twice(judge: Judge, tmp_path: Path) -> None:
    solutions = [*accepted(RIGHT), {"code": WRONG, "known": "wrong_answer"}]
    candidates = [make_candidate(id="made/first", solutions=solutions), make_candidate(id="made/second", tests=SAME)]
    with VerdictStore(tmp_path / "store.sqlite") as store:
        first = verify(candidates, judge, FAST, store=store)
        judged = judge.statistics.judged
        assert verify(candidates, judge, FAST, store=store) == first
        assert judge.statistics.judged == judged


def test_a_real_contest_is_kept_and_its_wrong_programs_are_caught(
    judge: Judge, kodsport: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("yaml")
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "benchmarks"))
    from contests import read_packages  # pyrefly: ignore[missing-import]

    (candidate,) = read_packages(kodsport / "peragrams")
    assert isinstance(candidate, Candidate)
    settings = VerifySettings(runs=1)
    (evidence,) = gather([candidate], judge, settings)
    assert isinstance(evidence, Evidence)
    assert all(trial.outcome == "accepted" for trial in evidence.tried_as("accepted"))
    assert all(trial.outcome != "accepted" for trial in evidence.tried_as("wrong", "trivial"))

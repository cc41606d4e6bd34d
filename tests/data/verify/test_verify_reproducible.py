"""Two builds of the same candidates must write the same bytes, whatever the machine was busy with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from verify_candidates import make_candidate

from microcoder.data import Candidate, Rejection
from microcoder.data.verify import VerdictStore, VerifySettings, execution, gather, verify
from microcoder.data.verify.evidence import at_reference_speed, round_up, stable_detail
from microcoder.data.verify.execution import Attempt, VerificationPlan, cost_of, derive_limits
from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Problem, Program, TestResult, Verdict

RIGHT = "a, b = map(int, input().split())\nprint(a + b)\n"
SETTINGS = VerifySettings(runs=2)


@pytest.fixture(autouse=True, scope="module")
def short_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(execution, "TRIAL_SECONDS", 1.0)
        yield


def solutions(**codes: str) -> list[dict[str, str]]:
    return [{"code": RIGHT}, *({"code": code, "known": known} for known, code in codes.items())]


LOOPS_LATE = "import sys\ntext = input()\nwhile '-' in text: pass\nprint(sum(map(int, text.split())))\n"
CANDIDATES = [
    make_candidate(id="made/wrong", solutions=solutions(wrong_answer="print(3)", partial=RIGHT + "assert a < 9\n")),
    make_candidate(id="made/slow", solutions=solutions(time_limit=LOOPS_LATE, memory_limit="x = [0] * (1 << 28)\n")),
    make_candidate(id="made/dropped", solutions=solutions(accepted=RIGHT + "assert a < 9, object()\n")),
    make_candidate(id="made/late", solutions=[{"code": "while True: pass\n"}]),
    make_candidate(id="made/large", solutions=[{"code": "x = [0] * (1 << 29)\n"}]),
    make_candidate(id="made/address", solutions=[{"code": "raise ValueError(object())\n"}]),
    make_candidate(id="made/refused", solutions=[{"code": "print(object())\n"}]),
    make_candidate(id="made/python2", solutions=[{"code": "print sum(map(int, raw_input().split()))\n"}]),
    make_candidate(id="made/limits", time_limit_seconds=3.0, memory_limit_mib=64),
]


def write(results: Sequence[Candidate | Rejection]) -> list[str]:
    return [result.model_dump_json() for result in results]


@pytest.fixture(scope="module")
def written(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """What a first build wrote, and its store."""
    path = tmp_path_factory.mktemp("first") / "store.sqlite"
    with VerdictStore(path) as store:
        return write(verify(CANDIDATES, judge, SETTINGS, store=store)), path


def test_two_builds_from_nothing_write_the_same_bytes(judge: Judge, written: tuple[list[str], Path]) -> None:
    assert write(verify(CANDIDATES, judge, SETTINGS)) == written[0]


@pytest.mark.parametrize("kept", [0.5])
def test_a_build_that_was_killed_goes_on_to_the_same_bytes(
    judge: Judge, written: tuple[list[str], Path], tmp_path: Path, kept: float
) -> None:
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(written[1]) as source, sqlite3.connect(path) as target:
        source.backup(target)
        keys = [row[0] for row in target.execute("SELECT key FROM verdicts ORDER BY key")]
        target.executemany("DELETE FROM verdicts WHERE key = ?", [(key,) for key in keys[int(kept * len(keys)) :]])
    target.close()
    with VerdictStore(path) as store:
        assert len(store) == int(kept * len(keys))
        assert write(verify(CANDIDATES, judge, SETTINGS, store=store)) == written[0]


def test_a_machine_measured_slower_finds_the_same_verdicts(written: tuple[list[str], Path]) -> None:
    with Judge(workers=1, cache_size=0, time_scale=1.7) as slower, VerdictStore(written[1]) as store:
        assert write(verify(CANDIDATES, slower, SETTINGS, store=store)) == written[0]
        assert slower.statistics.judged == 0


def test_a_program_at_the_limit_says_neither_seconds_nor_megabytes(written: tuple[list[str], Path]) -> None:
    late, large, address = (Rejection.model_validate_json(written[0][number]) for number in (3, 4, 5))
    assert late.detail == "1 of 1 accepted programs fail; 0: time_limit"
    assert large.detail == "1 of 1 accepted programs fail; 0: memory_limit"
    assert address.detail.endswith("ValueError: <object object at 0x...>")


def test_tests_are_not_chosen_for_where_a_slow_program_ends(judge: Judge, written: tuple[list[str], Path]) -> None:
    with VerdictStore(written[1]) as store:
        (evidence,) = gather([CANDIDATES[1]], judge, SETTINGS, store=store)
    slow = next(trial for trial in getattr(evidence, "trials", ()) if trial.role == "slow")
    assert slow.failed == slow.over_limit != ()


def timed(*seconds: float) -> Verdict:
    tests = tuple(TestResult(Outcome.ACCEPTED, second, second, 10.0, "", "") for second in seconds)
    return Verdict(Outcome.ACCEPTED, tests, len(tests))


@pytest.mark.parametrize(
    ("first", "later", "limit", "times"),
    [(0.1, 9.0, 2.0, 0), (0.45, 0.3, 2.0, 3), (0.39, 0.45, 2.0, 3), (0.45, 0.41, 5.0, 3), (0.63, 9.0, 5.0, 0)],
)
def test_close_to_a_boundary_the_fastest_of_more_runs_decides(
    first: float, later: float, limit: float, times: int
) -> None:
    candidate = make_candidate()
    attempt = Attempt("0", "accepted", Program(RIGHT), verdicts=[timed(*[first] * 6)], fastest_seconds=[first] * 6)
    plan = VerificationPlan(candidate, [attempt], [], [], limit_seconds=40.0, memory_mib=2048)
    asked = []

    def run(pairs: Sequence[tuple[Program, Problem]]) -> list[Verdict]:
        asked.extend(pairs)
        return [timed(*[later] * 6) for _ in pairs]

    derive_limits(run, [plan], first=3)
    assert (plan.limit_seconds, len(asked)) == (limit, times)
    assert plan.candidate.time_limit_seconds == limit


@given(st.floats(0, 1000), st.floats(0.1, 100))
def test_seconds_are_of_the_reference_machine_and_on_steps(seconds: float, scale: float) -> None:
    (test,) = at_reference_speed(timed(seconds), scale).tests
    assert test.cpu_seconds * scale == pytest.approx(seconds)
    assert cost_of(seconds) in (0.4, 1.0, 2.0, 10.0)
    assert cost_of(seconds) >= min(seconds, 10.0)
    assert round_up(seconds, (2.0, 10.0)) in (2.0, 10.0)
    assert round_up(80.0, (2.0, 60.0), most=100.0) == 100.0


def test_what_a_verdict_says_otherwise_stays() -> None:
    assert stable_detail(Verdict(Outcome.WRONG_ANSWER, (), 1, "test 1: 0x1f at 0xdeadbeef")) == "test 1: 0x1f at 0x..."


@pytest.mark.parametrize(
    ("stated", "python", "cpp", "limits"),
    [
        (None, 1.3, 0.1, {"python": 10.0, "cpp": 1.0}),
        (None, 1.32, 0.6, {"python": 10.0, "cpp": 3.0}),
        (2.0, 1.32, 0.6, {"python": 5.0, "cpp": 2.0}),
        (1.1, 1.32, 0.6, {"python": 2.0, "cpp": 1.0}),
    ],
)
def test_slow_programs_get_what_references_in_their_language_need_times_the_source_s_multiplier(
    stated: float | None, python: float, cpp: float, limits: dict[str, float]
) -> None:
    attempts = [
        Attempt(
            "0", "accepted", Program(RIGHT, language), verdicts=[timed(*[second] * 6)], fastest_seconds=[second] * 6
        )
        for language, second in (("python", python), ("cpp", cpp))
    ]
    candidate = make_candidate(time_multiplier=stated)
    plan = VerificationPlan(candidate, attempts, [], [], limit_seconds=40.0, memory_mib=2048)
    derive_limits(lambda pairs: [timed(*[9.0] * 6) for _ in pairs], [plan], first=3)
    assert (plan.answer_seconds, plan.seconds_by_language) == (limits["python"], limits)


def test_what_is_right_and_too_slow_meets_the_longest_test_first(judge: Judge) -> None:
    partial = "a, b = map(int, input().split())\nwhile a in (0, 7): pass\nprint(a + b)\n"
    candidate = make_candidate(
        solutions=[{"code": RIGHT}, {"code": partial, "known": "partial"}], time_limit_seconds=1.0
    )
    (evidence,) = gather([candidate], judge, SETTINGS)
    trial = next(one for one in getattr(evidence, "trials", ()) if one.role == "partial")
    # It does not end on tests 2 and 5, of which the second is longer.
    assert trial.failed == trial.over_limit == (5,)

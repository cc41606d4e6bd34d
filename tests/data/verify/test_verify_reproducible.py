"""What follows from verdicts, how they are kept,
and that two builds of the same candidates write the same bytes.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data import Candidate, Rejection
from microcoder.data.formats.candidates import Origin
from microcoder.data.testgen.choice import choose_tests as choose_made
from microcoder.data.testgen.made import MadeTest
from microcoder.data.testgen.trials import Trial as MadeTrial
from microcoder.data.testgen.trials import WrongProgram
from microcoder.data.verify import plans
from microcoder.data.verify.choice import Cost, VerifySettings, choose_tests
from microcoder.data.verify.conclusion import conclude
from microcoder.data.verify.evidence import Evidence, Trial, find_fault
from microcoder.data.verify.execution import gather, verify
from microcoder.data.verify.limits import cost_of, derive_limits
from microcoder.data.verify.plans import PlannedProgram, VerificationPlan
from microcoder.data.verify.rates import combine_counts, count_right, rate_with_interval
from microcoder.data.verify.store import VerdictStore, verdict_key
from microcoder.data.verify.timing import at_reference_speed, round_up
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult, Verdict
from tests.data.verify_candidates import make_candidate

COUNTS = st.lists(
    st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=9,
)


@settings(max_examples=20, deadline=None)
@given(COUNTS)
def test_an_interval_holds_its_share(counts: list[tuple[int, int]]) -> None:
    rate = rate_with_interval(counts)
    assert rate is not None
    assert 0 <= rate.low <= 1
    assert rate.low <= rate.high
    if rate.right in (0, rate.total):
        assert rate.low <= rate.value <= rate.high
    # All right is no certainty.
    certain = rate_with_interval([(3, 3)] * 10)
    assert certain is not None
    assert certain.value == 1.0
    assert certain.high == 1.0
    assert 0.6 < certain.low < 0.75


def trial(name: str, role: str, *failed: int) -> Trial:
    outcome = Outcome.WRONG_ANSWER if failed else Outcome.ACCEPTED
    return Trial.model_validate({"name": name, "role": role, "outcome": outcome, "failed": failed})


def test_slow_and_partial_programs_that_pass_are_a_flag() -> None:
    passing = (trial("2", "partial"), trial("3", "slow"))
    accepted = trial("0", "accepted")
    caught = (trial("1", "partial", 1), trial("4", "slow", 1))
    for others, flags in ((caught[:1], ("slow_passes",)), (caught, ())):
        evidence = Evidence(candidate=make_candidate(), trials=(accepted, *passing, *others))
        assert find_fault(evidence) is None
        kept = conclude(evidence, VerifySettings(min_hidden_tests=1))
        assert isinstance(kept, Candidate)
        assert kept.flags == flags


def test_a_program_is_measured_by_tests_that_were_chosen_without_it() -> None:
    trials = (trial("0", "accepted"), trial("1", "wrong", 4), trial("2", "wrong", 0))
    evidence = Evidence(candidate=make_candidate(), trials=trials)
    rates = combine_counts([count_right(evidence, VerifySettings(max_tests=1, min_hidden_tests=1))])
    found = {}
    for name, rate in rates.items():
        found[name] = rate and (rate.right, rate.total)
    # Without its only reference the problem would not be kept.
    assert found == {
        "true_positive": None,
        "true_negative": (0, 2),
        "true_negative_slow": None,
        "true_negative_partial": None,
        "true_negative_released": (1, 2),
    }


GROUPS = st.sampled_from(["", "sample", "group1", "group2"])
COSTS = st.lists(
    st.builds(Cost, num_bytes=st.integers(0, 1000), seconds=st.floats(0, 2), group=GROUPS),
    min_size=1,
    max_size=25,
)
FAILED = st.lists(st.frozensets(st.integers(0, 24), max_size=6), max_size=12)


@settings(max_examples=50, deadline=None)
@given(COSTS, FAILED, st.integers(1, 15), st.integers(1, 5000), st.floats(0.1, 10))
def test_the_budget_holds_and_the_order_stays(
    costs: list[Cost],
    failed: list[frozenset[int]],
    most: int,
    most_bytes: int,
    most_seconds: float,
) -> None:
    failed = [frozenset(number for number in program if number < len(costs)) for program in failed]
    settings = VerifySettings(max_tests=most, min_hidden_tests=1)
    chosen = choose_tests(costs, failed, settings, max_bytes=most_bytes, max_seconds=most_seconds)
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) <= most
    assert sum(costs[number].num_bytes for number in chosen) <= most_bytes
    assert sum(costs[number].seconds for number in chosen) <= most_seconds + 1e-6
    assert chosen == choose_tests(
        costs,
        failed,
        settings,
        max_bytes=most_bytes,
        max_seconds=most_seconds,
    )
    # With room for one test per program all are caught.
    roomy = choose_tests(
        costs,
        failed,
        VerifySettings(max_tests=max(1, len(failed)), min_hidden_tests=1),
        max_seconds=1e6,
    )
    for program in failed:
        if program:
            assert program & set(roomy)


def test_made_tests_take_no_place_of_the_sources_and_lose_none_to_them() -> None:
    costs = [Cost(100 + number) for number in range(9)] + [Cost(10) for _ in range(4)]
    limits = VerifySettings(max_tests=3, min_hidden_tests=1)
    chosen = choose_tests(costs, [], limits, made=range(9, 13))
    assert chosen == (6, 7, 8, 9, 10, 11, 12)


def test_what_catches_a_submission_comes_before_a_spread() -> None:
    made = []
    for n in range(3):
        made.append(
            MadeTest(TestCase(input=f"{n}", output="1"), Origin(kind="mutated/step"), seconds=0.5)
        )
    wrong = WrongProgram(Program("wrong"))
    failed = [frozenset({1}), frozenset({2}), frozenset({2})]
    trials = [MadeTrial(wrong, numbers) for numbers in failed]
    assert choose_made(made, trials, most=1, num_large=0) == [2]
    assert choose_made(made, trials[1:], most=2, num_large=0) == [0, 2]


PROBLEM = Problem.model_validate({"id": "p", "tests": [{"input": "1\udcff", "output": "1"}]})
FAILED_VERDICT = TestResult(Outcome.WRONG_ANSWER, 0.1, 0.2, 9.5, "", "line 1: \udcff")
VERDICT = Verdict(Outcome.WRONG_ANSWER, (FAILED_VERDICT,), 3, "test 1: line 1", "full")


def test_a_verdict_outlives_its_process(tmp_path: Path) -> None:
    key = verdict_key(Program("print(1)"), PROBLEM, stop="never", environment="Python 3.11.7")
    with VerdictStore(tmp_path / "a" / "store.sqlite") as store:
        assert store.find(key) is None
        store.keep(key, VERDICT)
    with VerdictStore(tmp_path / "a" / "store.sqlite") as store:
        assert store.find(key) == VERDICT
        store.keep(b"of a fault", Verdict(Outcome.SANDBOX_FAULT, (), 1))
        assert store.find(b"of a fault") is None


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("not a database, but long enough to be looked at\n" * 30)
    with pytest.raises(DataError, match="remove it to start anew"):
        VerdictStore(tmp_path / "store.sqlite")


RIGHT = "a, b = map(int, input().split())\nprint(a + b)\n"


@pytest.fixture(autouse=True, scope="module")
def short_limits() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plans, "TRIAL_SECONDS", 1.0)
        yield


def solutions(**codes: str) -> list[dict[str, str]]:
    return [{"code": RIGHT}, *({"code": code, "known": known} for known, code in codes.items())]


LOOPS_LATE = (
    "import sys\ntext = input()\nwhile '-' in text: pass\nprint(sum(map(int, text.split())))\n"
)
CANDIDATES = [
    make_candidate(
        id="made/wrong",
        solutions=solutions(wrong_answer="print(3)", partial=RIGHT + "assert a < 9\n"),
    ),
    make_candidate(
        id="made/slow",
        solutions=solutions(time_limit=LOOPS_LATE, memory_limit="x = [0] * (1 << 28)\n"),
    ),
    make_candidate(
        id="made/dropped",
        solutions=solutions(accepted=RIGHT + "assert a < 9, object()\n"),
    ),
    make_candidate(id="made/late", solutions=[{"code": "while True: pass\n"}]),
    make_candidate(id="made/large", solutions=[{"code": "x = [0] * (1 << 29)\n"}]),
    make_candidate(id="made/address", solutions=[{"code": "raise ValueError(object())\n"}]),
    make_candidate(id="made/refused", solutions=[{"code": "print(object())\n"}]),
    make_candidate(
        id="made/python2",
        solutions=[{"code": "print sum(map(int, raw_input().split()))\n"}],
    ),
    make_candidate(id="made/limits", time_limit_seconds=3.0, memory_limit_mib=64),
]


def write(results: Sequence[Candidate | Rejection]) -> list[str]:
    return [result.model_dump_json() for result in results]


@pytest.fixture(scope="module")
def written(judge: Judge, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], Path]:
    """What a first build wrote, and its store."""
    path = tmp_path_factory.mktemp("first") / "store.sqlite"
    with VerdictStore(path) as store:
        return write(
            verify(CANDIDATES, judge, VerifySettings(min_hidden_tests=1), store=store)
        ), path


def test_a_build_that_was_killed_goes_on_to_the_same_bytes(
    judge: Judge,
    written: tuple[list[str], Path],
    tmp_path: Path,
) -> None:
    path = tmp_path / "store.sqlite"
    with sqlite3.connect(written[1]) as source, sqlite3.connect(path) as target:
        source.backup(target)
        keys = [row[0] for row in target.execute("SELECT key FROM verdicts ORDER BY key")]
        target.executemany(
            "DELETE FROM verdicts WHERE key = ?", [(key,) for key in keys[len(keys) // 2 :]]
        )
    target.close()
    with VerdictStore(path) as store:
        assert (
            write(verify(CANDIDATES, judge, VerifySettings(min_hidden_tests=1), store=store))
            == written[0]
        )


def test_a_machine_measured_slower_finds_the_same_verdicts(written: tuple[list[str], Path]) -> None:
    with (
        Judge(workers=1, cache_size=0, time_scale=1.7) as slower,
        VerdictStore(written[1]) as store,
    ):
        assert (
            write(verify(CANDIDATES, slower, VerifySettings(min_hidden_tests=1), store=store))
            == written[0]
        )
        assert slower.statistics.judged == 0


def test_a_program_at_the_limit_says_neither_seconds_nor_megabytes(
    written: tuple[list[str], Path],
) -> None:
    late = Rejection.model_validate_json(written[0][3])
    large = Rejection.model_validate_json(written[0][4])
    address = Rejection.model_validate_json(written[0][5])
    assert late.detail == "1 of 1 accepted programs fail; 0: time_limit"
    assert large.detail == "1 of 1 accepted programs fail; 0: memory_limit"
    assert address.detail.endswith("ValueError: <object object at 0x...>")


def timed(*seconds: float) -> Verdict:
    tests = tuple(TestResult(Outcome.ACCEPTED, second, second, 10.0, "", "") for second in seconds)
    return Verdict(Outcome.ACCEPTED, tests, len(tests))


def attempt(language: str, seconds: float) -> PlannedProgram:
    program = Program(RIGHT, language)
    each = [seconds] * 6
    return PlannedProgram("0", "accepted", program, verdicts=[timed(*each)], fastest_seconds=each)


@pytest.mark.parametrize(
    ("first", "later", "limit", "times"),
    [
        (0.1, [9.0], 2.0, 0),
        (0.45, [0.3, 0.1, 9.0], 2.0, 3),
        (0.25, [0.41, 0.5, 0.1], 5.0, 3),
        (5.0, [0.1], 10.0, 0),
    ],
)
def test_close_to_a_boundary_the_median_of_more_runs_decides(
    first: float,
    later: list[float],
    limit: float,
    times: int,
) -> None:
    candidate = make_candidate()
    plan = VerificationPlan(
        candidate,
        [attempt("python", first)],
        [],
        [],
        limit_seconds=40.0,
        memory_mib=2048,
    )
    asked = []

    def run(pairs: Sequence[tuple[Program, Problem]]) -> list[Verdict]:
        verdicts = [timed(*[later[len(asked)]] * 6) for _ in pairs]
        asked.extend(pairs)
        return verdicts

    derive_limits(run, [plan], first=3)
    assert plan.limit_seconds == limit
    assert len(asked) == times
    assert plan.candidate.time_limit_seconds == limit


@pytest.mark.parametrize(
    ("seconds", "limit", "flags"),
    [
        (0.3, 2.0, ()),
        (0.36, 5.0, ("limit_unsure",)),
        (0.44, 5.0, ("limit_unsure",)),
        (0.5, 5.0, ()),
        (8.0, 10.0, ("limit_unsure",)),
    ],
)
def test_where_a_measurement_cannot_tell_the_larger_limit_counts_and_the_row_says_so(
    seconds: float,
    limit: float,
    flags: tuple[str, ...],
) -> None:
    accepted = [attempt("python", seconds)]
    plan = VerificationPlan(make_candidate(), accepted, [], [], limit_seconds=40.0, memory_mib=2048)
    derive_limits(lambda pairs: [timed(*[seconds] * 6) for _ in pairs], [plan], first=3)
    assert plan.candidate.time_limit_seconds == limit
    assert plan.candidate.flags == flags


@given(st.floats(0, 1000), st.floats(0.1, 100))
def test_seconds_are_of_the_reference_machine_and_on_steps(seconds: float, scale: float) -> None:
    (test,) = at_reference_speed(timed(seconds), scale).tests
    assert test.cpu_seconds * scale == pytest.approx(seconds)
    assert cost_of(seconds) in (0.4, 1.0, 2.0, 10.0)
    assert cost_of(seconds) >= min(seconds, 10.0)
    assert round_up(seconds, (2.0, 10.0)) in (2.0, 10.0)
    assert round_up(80.0, (2.0, 60.0), most=100.0) == 100.0


@pytest.mark.parametrize(
    ("stated", "python", "cpp", "limits"),
    [
        (None, 3.9, 0.1, {"python": 10.0, "cpp": 1.0}),
        (2.0, 1.32, 0.6, {"python": 5.0, "cpp": 2.0}),
    ],
)
def test_slow_programs_get_what_references_in_their_language_need_times_the_source_s_multiplier(
    stated: float | None,
    python: float,
    cpp: float,
    limits: dict[str, float],
) -> None:
    attempts = [attempt("python", python), attempt("cpp", cpp)]

    def same(pair: tuple[Program, Problem]) -> Verdict:
        return timed(*[python if pair[0].language == "python" else cpp] * 6)

    candidate = make_candidate(time_multiplier=stated)
    plan = VerificationPlan(candidate, attempts, [], [], limit_seconds=40.0, memory_mib=2048)
    derive_limits(lambda pairs: list(map(same, pairs)), [plan], first=3)
    assert plan.answer_seconds == limits["python"]
    assert plan.seconds_by_language == limits


def test_what_is_right_and_too_slow_meets_the_longest_test_first(judge: Judge) -> None:
    partial = "a, b = map(int, input().split())\nwhile a in (0, 7): pass\nprint(a + b)\n"
    candidate = make_candidate(
        solutions=[{"code": RIGHT}, {"code": partial, "known": "partial"}],
        time_limit_seconds=1.0,
    )
    (evidence,) = gather([candidate], judge, VerifySettings(min_hidden_tests=1))
    trial = next(one for one in getattr(evidence, "trials", ()) if one.role == "partial")
    # It does not end on tests 2 and 5, of which the second is longer.
    assert trial.failed == trial.over_limit == (5,)

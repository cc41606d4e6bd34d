"""What follows from verdicts: which tests stay, how often the verifier is right; and how verdicts are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from verify_candidates import make_candidate

from microcoder.data import Candidate
from microcoder.data.formats.candidates import Origin
from microcoder.data.tests.answers import MadeTest
from microcoder.data.tests.killing import choose_tests as choose_made
from microcoder.data.verify import Evidence, VerifySettings, combine_counts, conclude, count_right, find_fault
from microcoder.data.verify.evidence import Cost, Trial, choose_tests, rate_with_interval
from microcoder.data.verify.store import VerdictStore, evaluator_version, verdict_key
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult, Verdict

COUNTS = st.lists(st.integers(1, 9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1, max_size=9)


@settings(max_examples=20, deadline=None)
@given(COUNTS)
def test_an_interval_holds_its_share(counts: list[tuple[int, int]]) -> None:
    rate = rate_with_interval(counts)
    assert rate is not None
    assert 0 <= rate.low <= 1
    assert rate.low <= rate.high
    if rate.right in (0, rate.total):
        assert rate.low <= rate.value <= rate.high


def test_all_right_is_no_certainty() -> None:
    rate = rate_with_interval([(3, 3)] * 10)
    assert rate is not None
    assert (rate.value, rate.high) == (1.0, 1.0)
    assert 0.6 < rate.low < 0.75
    assert rate_with_interval([]) is None


def trial(name: str, role: str, *failed: int) -> Trial:
    outcome = Outcome.WRONG_ANSWER if failed else Outcome.ACCEPTED
    return Trial.model_validate(
        {"name": name, "role": role, "language": "python", "outcome": outcome, "failed": failed}
    )


def test_slow_and_partial_programs_that_pass_are_a_flag() -> None:
    passing = (trial("2", "partial"), trial("3", "slow"))
    accepted, caught = trial("0", "accepted"), (trial("1", "partial", 1), trial("4", "slow", 1))
    evidence = Evidence(candidate=make_candidate(), trials=(accepted, *passing, caught[0]))
    assert find_fault(evidence) is None
    kept = conclude(evidence, VerifySettings())
    assert isinstance(kept, Candidate)
    assert kept.flags == ("slow_passes",)
    half = Evidence(candidate=make_candidate(), trials=(accepted, *passing, *caught))
    kept = conclude(half, VerifySettings())
    assert isinstance(kept, Candidate)
    assert kept.flags == ()


def test_a_program_is_measured_by_tests_that_were_chosen_without_it() -> None:
    trials = (trial("0", "accepted"), trial("1", "wrong", 4), trial("2", "wrong", 0))
    evidence = Evidence(candidate=make_candidate(), trials=trials)
    rates = combine_counts([count_right(evidence, VerifySettings(max_tests=1))])
    found = {name: rate and (rate.right, rate.total) for name, rate in rates.items()}
    # Without its only reference the problem would not be kept.
    assert found == {
        "true_positive": None, "true_negative": (0, 2), "true_negative_slow": None, "true_negative_partial": None,
        "true_negative_all_tests": (2, 2), "true_negative_released": (1, 2),
    }  # fmt: skip


GROUPS = st.sampled_from(["", "sample", "group1", "group2"])
COSTS = st.lists(
    st.builds(Cost, num_bytes=st.integers(0, 1000), seconds=st.floats(0, 2), group=GROUPS), min_size=1, max_size=25
)
FAILED = st.lists(st.frozensets(st.integers(0, 24), max_size=6), max_size=12)


def caught(failed_by_program: list[frozenset[int]], chosen: tuple[int, ...]) -> int:
    return sum(bool(failed & set(chosen)) for failed in failed_by_program)


@settings(max_examples=50, deadline=None)
@given(COSTS, FAILED, st.integers(1, 15), st.integers(1, 5000), st.floats(0.1, 10))
def test_the_budget_holds_and_the_order_stays(
    costs: list[Cost], failed: list[frozenset[int]], most: int, most_bytes: int, most_seconds: float
) -> None:
    failed = [frozenset(number for number in program if number < len(costs)) for program in failed]
    settings = VerifySettings(max_tests=most)
    chosen = choose_tests(costs, failed, settings, max_bytes=most_bytes, max_seconds=most_seconds)
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) <= most
    assert sum(costs[number].num_bytes for number in chosen) <= most_bytes
    assert sum(costs[number].seconds for number in chosen) <= most_seconds + 1e-6
    assert chosen == choose_tests(costs, failed, settings, max_bytes=most_bytes, max_seconds=most_seconds)


@settings(max_examples=50, deadline=None)
@given(COSTS, FAILED)
def test_with_room_for_one_test_per_program_all_are_caught(costs: list[Cost], failed: list[frozenset[int]]) -> None:
    failed = [frozenset(number for number in program if number < len(costs)) for program in failed]
    chosen = choose_tests(costs, failed, VerifySettings(max_tests=max(1, len(failed))), max_seconds=1e6)
    assert caught(failed, chosen) == sum(bool(program) for program in failed)


@settings(max_examples=50, deadline=None)
@given(COSTS, FAILED, st.integers(1, 5))
def test_the_first_tests_catch_at_least_what_the_best_single_one_does(
    costs: list[Cost], failed: list[frozenset[int]], most: int
) -> None:
    failed = [frozenset(number for number in program if number < len(costs)) for program in failed]
    chosen = choose_tests(costs, failed, VerifySettings(max_tests=most), max_seconds=1e6)
    best = max(caught(failed, (number,)) for number in range(len(costs)))
    assert caught(failed, chosen) >= best


def test_what_is_left_is_spread_over_groups() -> None:
    costs = [Cost(num_bytes=size, group=group) for group in ("a", "b", "c") for size in (10, 30, 20)]
    assert choose_tests(costs, [], VerifySettings(max_tests=3)) == (1, 4, 7)
    assert choose_tests(costs, [{0}], VerifySettings(max_tests=3)) == (0, 4, 7)


def test_a_test_that_never_fits_is_left_out() -> None:
    costs = [Cost(num_bytes=100), Cost(num_bytes=10)]
    assert choose_tests(costs, [{0}], VerifySettings(), max_bytes=50) == (1,)
    assert choose_tests(costs, [{0}], VerifySettings(), max_bytes=5) == ()


def test_what_catches_a_submission_comes_before_what_catches_more_mutants() -> None:
    mutants = [{0}, {0}, {1, 2}]
    costs = [Cost(num_bytes=10) for _ in range(3)]
    assert choose_tests(costs, [{2}], VerifySettings(max_tests=1), failed_by_mutant=mutants) == (2,)
    assert choose_tests(costs, [{2}], VerifySettings(max_tests=2), failed_by_mutant=mutants) == (0, 2)
    made = [MadeTest(TestCase(input=f"{n}", output="1"), Origin(kind="mutated/step"), seconds=0.5) for n in range(3)]
    assert choose_made(made, [{2}], mutants, most=1, num_large=0) == [2]
    assert choose_made(made, [{2}], mutants, most=2, num_large=0) == [0, 2]


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
        assert len(store) == 1


def test_a_fault_of_the_sandbox_is_not_kept(tmp_path: Path) -> None:
    with VerdictStore(tmp_path / "store.sqlite") as store:
        store.keep(b"key", Verdict(Outcome.SANDBOX_FAULT, (), 1))
        assert len(store) == 0


def test_whatever_changes_a_verdict_changes_its_key() -> None:
    def key(code: str = "pass", stop: str = "never", environment: str = "Python 3.11.7", **changed: object) -> bytes:
        return verdict_key(Program(code), PROBLEM.model_copy(update=changed), stop=stop, environment=environment)

    keys = [
        key(),
        key("print()"),
        key(stop="first_limit"),
        key(tests=PROBLEM.tests * 2),
        key(memory_limit_mib=64),
        key(time_limit_seconds=1.0),
        key(fn_name="f"),
        key(language_version="3.13"),
        key(environment="Python 3.13.0"),
    ]
    assert len(set(keys)) == len(keys)
    assert key(id="another", statement="text") == key()


def test_a_file_that_is_no_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("not a database, but long enough to be looked at\n" * 30)
    with pytest.raises(DataError, match="remove it to start anew"):
        VerdictStore(tmp_path / "store.sqlite")


def test_the_evaluator_names_its_own_code() -> None:
    version, _, digest = evaluator_version().partition("+")
    assert version
    assert len(digest) == 12

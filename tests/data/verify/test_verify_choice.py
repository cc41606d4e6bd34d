from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.formats.candidates import Origin
from microcoder.data.tests.answers import MadeTest
from microcoder.data.tests.killing import choose_tests as choose_made
from microcoder.data.verify import VerifySettings
from microcoder.data.verify.evidence import Cost, choose_tests
from microcoder.judge.core.types import TestCase

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

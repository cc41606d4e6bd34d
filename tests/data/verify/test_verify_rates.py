from hypothesis import given, settings
from hypothesis import strategies as st
from verify_candidates import make_candidate

from microcoder.data import Candidate
from microcoder.data.verify import Evidence, VerifySettings, combine_counts, conclude, count_right, find_fault
from microcoder.data.verify.evidence import Trial, rate_with_interval
from microcoder.judge.core.types import Outcome

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

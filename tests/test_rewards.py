import pytest

from microcoder import Outcome, TestResult, Verdict, score_verdict, score_verdicts


def verdict(outcome: Outcome, *tests: Outcome) -> Verdict:
    results = tuple(TestResult(test, 0.1, 0.1, 10.0, "", "") for test in tests)
    return Verdict(outcome, results, tests_total=3)


@pytest.mark.parametrize("outcome", [o for o in Outcome if o not in (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT)])
def test_anything_but_accepted_scores_zero_however_many_tests_passed(outcome: Outcome) -> None:
    assert score_verdict(verdict(outcome, Outcome.ACCEPTED, Outcome.ACCEPTED, outcome)) == 0.0


def test_accepted_scores_one() -> None:
    assert score_verdict(verdict(Outcome.ACCEPTED, *[Outcome.ACCEPTED] * 3)) == 1.0


def test_a_sandbox_fault_is_unscored_not_zero() -> None:
    assert score_verdict(verdict(Outcome.SANDBOX_FAULT, Outcome.ACCEPTED)) is None


def test_scores_keep_the_order() -> None:
    outcomes = [Outcome.ACCEPTED, Outcome.SANDBOX_FAULT, Outcome.NO_CODE]
    assert score_verdicts([verdict(outcome) for outcome in outcomes]) == [1.0, None, 0.0]
    assert score_verdicts([]) == []

import itertools
from collections.abc import Iterator
from importlib.util import find_spec

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from microcoder.data import Candidate, Difficulty
from microcoder.data.difficulty.selection import (
    Attempts,
    CalibrationSettings,
    MeasuredOn,
    calibrate,
    fit_calibration,
    judge_attempts,
    published_attempts,
)
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError

# Asked without importing it, which takes seconds: the workers that run other tests do without.
pytestmark = pytest.mark.skipif(find_spec("sklearn") is None, reason="scikit-learn is not installed")

FAST = CalibrationSettings(num_resamples=50)
MODEL = MeasuredOn(model="tiny", checkpoint="step 100", max_tokens=8192, evaluator="0.1.0+abc")
SAMPLE = st.builds(
    lambda predicted, attempts, share: Attempts(
        id="p", predicted=predicted, passed=round(share * attempts), attempts=attempts
    ),
    st.floats(1, 5),
    st.integers(1, 8),
    st.floats(0, 1),
)


@settings(max_examples=10, deadline=None)
@given(st.lists(SAMPLE, min_size=2, max_size=30), st.lists(st.floats(0, 6), min_size=2, max_size=6))
def test_rates_fall_with_difficulty_and_lie_in_their_intervals(samples: list[Attempts], where: list[float]) -> None:
    calibration = fit_calibration(samples, MODEL, FAST)
    found = [calibration.find_rate(value) for value in sorted(where)]
    for easier, harder in itertools.pairwise(found):
        assert harder.rate <= easier.rate + 1e-9
        assert harder.low <= easier.low + 1e-9
        assert harder.high <= easier.high + 1e-9
    assert all(0 <= item.low <= item.rate + 1e-9 <= item.high + 2e-9 <= 1 + 1e-6 for item in found)


def test_a_monotone_sample_is_kept_as_it_is() -> None:
    samples = [Attempts(id=str(n), predicted=float(n), passed=4 - n, attempts=4) for n in range(5)]
    assert fit_calibration(samples, MODEL, FAST).rate == (1.0, 0.75, 0.5, 0.25, 0.0)


def test_few_attempts_that_all_passed_are_no_certainty() -> None:
    samples = [Attempts(id=str(n), predicted=float(n), passed=4, attempts=4) for n in range(4)]
    found = fit_calibration(samples, MODEL, FAST).find_rate(2.0)
    assert found.rate == 1.0
    assert 0.5 < found.low < 1.0


def test_a_candidate_says_what_its_rate_belongs_to() -> None:
    samples = [Attempts(id=str(n), predicted=float(n), passed=4 - n, attempts=4) for n in range(5)]
    candidate = Candidate(id="p", dataset="made", difficulty=Difficulty(predicted=2.5))
    changed = calibrate(candidate, fit_calibration(samples, MODEL, FAST))
    assert changed.difficulty.pass_rate == 0.375
    assert changed.difficulty.measured_on == "tiny@step 100 max_tokens=8192 evaluator=0.1.0+abc"
    assert changed.lineage[-1].field == "difficulty"
    unknown = Candidate(id="p", dataset="made")
    assert calibrate(unknown, fit_calibration(samples, MODEL, FAST)) is unknown


def test_published_rates_are_read_or_refused() -> None:
    def candidate(*rates: str) -> Candidate:
        return Candidate(id="p", dataset="made", pass_rates=rates, difficulty=Difficulty(predicted=3.0))

    (only,) = published_attempts([candidate("a/b=0.25", "c=1")], "a/b")
    assert (only.passed, only.attempts) == (0.25, 1)
    for broken in ("a/b=often", "a/b=1.5", "a/b=nan"):
        with pytest.raises(DataError, match="0 to 1"):
            published_attempts([candidate(broken)], "a/b")


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValidationError, match="at most all"):
        Attempts(id="p", predicted=1.0, passed=5, attempts=4)
    with pytest.raises(DataError, match="two at least"):
        fit_calibration([], MODEL, FAST)


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    with Judge(workers=1) as judging:
        yield judging


def test_attempts_are_judged_by_our_evaluator(judge: Judge) -> None:
    candidate = Candidate.model_validate(
        {
            "id": "made/echo",
            "dataset": "made",
            "tests": [{"input": "4", "output": "5"}],
            "difficulty": {"predicted": 1.5},
        }
    )
    silent = candidate.model_copy(update={"id": "made/silent"})
    responses = {"made/echo": ["```python\nprint(int(input()) + 1)\n```", "```python\nprint(4)\n```", "I do not know"]}
    assert judge_attempts([candidate, silent], responses, judge) == [
        Attempts(id="made/echo", predicted=1.5, passed=1, attempts=3)
    ]

"""What is told of difficulty, and what is dropped for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from microcoder.data import Candidate, Difficulty
from microcoder.data.build.config import DifficultySettings
from microcoder.data.build.steps import SelectionBarrier
from microcoder.data.verify.store import evaluator_version

ENDPOINT = {"base_url": "http://localhost:1/v1", "model": "m"}


def rows() -> list[Candidate]:
    easy = [(1.2, "m=4/4"), (1.5, "m=3/4"), (1.9, "m=1/4")]
    return [
        Candidate(id=f"a/{n}", dataset="a", difficulty=Difficulty(predicted=predicted), pass_rates=(rate,))
        for n, (predicted, rate) in enumerate(easy)
    ]


def pass_through(settings: DifficultySettings) -> list[object]:
    barrier = SelectionBarrier(settings)
    barrier.decide(barrier.look(rows()))
    return [barrier.apply(row, {}) for row in rows()]


def test_by_default_the_offline_predictor_drops_nothing_and_a_model_drops_as_published() -> None:
    assert all(isinstance(row, Candidate) for row in pass_through(DifficultySettings()))
    scored = DifficultySettings.model_validate({"predictor": "model", "endpoint": ENDPOINT})
    assert not any(isinstance(row, Candidate) for row in pass_through(scored))


@pytest.mark.parametrize("given", [{"keep": "selected"}, {"selection": {"easy_share": 0.5}}])
def test_the_papers_boundaries_are_not_for_the_offline_predictor(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r'difficulty\.keep = "all", difficulty\.predictor = "model", or boundaries'):
        DifficultySettings.model_validate(given)


def test_boundaries_of_ones_own_are_selected_by() -> None:
    settings = DifficultySettings.model_validate({"selection": {"boundaries": [1.4, 1.6]}})
    assert [isinstance(row, Candidate) for row in pass_through(settings)] == [False, True, True]


def test_boundaries_that_no_pass_rate_reaches_are_refused() -> None:
    with pytest.raises(ValueError, match="give numbers between 0 and 1"):
        DifficultySettings.model_validate({"calibrate_by": "m", "selection": {"by": "pass_rate"}})


def test_a_pass_rate_says_what_it_was_measured_on(tmp_path: Path) -> None:
    given = {"calibrate_by": "m", "checkpoint": "step-7", "max_tokens": 4096}
    published = pass_through(DifficultySettings.model_validate(given))[0]
    judged = pass_through(DifficultySettings.model_validate({**given, "responses": tmp_path / "r.jsonl"}))[0]
    assert isinstance(published, Candidate)
    assert isinstance(judged, Candidate)
    assert published.difficulty.measured_on == "m@step-7 max_tokens=4096 evaluator=unknown"
    assert judged.difficulty.measured_on == f"m@step-7 max_tokens=4096 evaluator={evaluator_version()}"
    with pytest.raises(ValueError, match="name it with calibrate_by"):
        DifficultySettings(checkpoint="step-7")

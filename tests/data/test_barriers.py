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


def test_without_a_selection_nothing_is_dropped() -> None:
    assert all(isinstance(row, Candidate) for row in pass_through(DifficultySettings()))
    scored = DifficultySettings.model_validate({"endpoint": ENDPOINT})
    assert all(isinstance(row, Candidate) for row in pass_through(scored))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"selection": {}}, r"set difficulty\.endpoint\.model"),
        ({"selection": {"by": "pass_rate", "boundaries": [0.5]}}, "name a model with pass_rates_of"),
        ({"pass_rates_of": "m", "selection": {"by": "pass_rate"}}, "give numbers between 0 and 1"),
        ({"checkpoint": "step-7"}, "name it with pass_rates_of"),
    ],
)
def test_a_selection_by_what_nothing_says_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DifficultySettings.model_validate(given)


def test_problems_are_selected_by_scores_and_by_pass_rates() -> None:
    papers = DifficultySettings.model_validate({"endpoint": ENDPOINT, "selection": {}})
    assert not any(isinstance(row, Candidate) for row in pass_through(papers))
    scored = DifficultySettings.model_validate({"endpoint": ENDPOINT, "selection": {"boundaries": [1.4, 1.6]}})
    assert [isinstance(row, Candidate) for row in pass_through(scored)] == [False, True, True]
    rated = {"pass_rates_of": "m", "selection": {"by": "pass_rate", "boundaries": [0.1], "easy_share": 0.4}}
    assert [isinstance(row, Candidate) for row in pass_through(DifficultySettings.model_validate(rated))] == [
        True,
        True,
        True,
    ]
    rated["selection"]["boundaries"] = [0.2]
    rated["selection"]["easy_share"] = 0.2
    assert [isinstance(row, Candidate) for row in pass_through(DifficultySettings.model_validate(rated))] == [
        False,
        True,
        True,
    ]


def test_a_pass_rate_says_what_it_was_measured_on(tmp_path: Path) -> None:
    given = {"pass_rates_of": "m", "checkpoint": "step-7"}
    published = pass_through(DifficultySettings.model_validate(given))[1]
    judged = pass_through(DifficultySettings.model_validate({**given, "responses": tmp_path / "r.jsonl"}))[1]
    assert isinstance(published, Candidate)
    assert isinstance(judged, Candidate)
    assert published.difficulty.pass_rate == 0.75
    assert published.difficulty.measured_on == "m@step-7 evaluator=unknown"
    assert judged.difficulty.measured_on == f"m@step-7 evaluator={evaluator_version()}"

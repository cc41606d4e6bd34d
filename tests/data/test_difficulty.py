"""Difficulty: scores of a model, pass rates, selection."""

import json
import random
from contextlib import closing
from pathlib import Path
from threading import Timer

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from microcoder.data import Candidate, Difficulty
from microcoder.data.completions import BadReply, Endpoint, EndpointSettings
from microcoder.data.corpus.barriers import SelectionBarrier
from microcoder.data.corpus.settings import DifficultySettings
from microcoder.data.difficulty import (
    DIMENSIONS,
    Scores,
    SelectionSettings,
    judge_attempts,
    score_difficulty,
    select,
    with_pass_rate,
)
from microcoder.data.verify.store import evaluator_version
from microcoder.judge import Judge
from microcoder.judge.core.errors import ConfigError, DataError
from tests.data.clean.local_endpoint import endpoint_of

CANDIDATE = Candidate(id="made/p", dataset="made", statement="Sum {two} numbers.")


def score(number: int, messages: list[dict[str, str]]) -> str:
    """Give every dimension the number of the request."""
    return json.dumps(dict.fromkeys(DIMENSIONS, number))


def test_a_problem_is_scored_three_times_and_answers_are_kept(tmp_path: Path) -> None:
    with endpoint_of(score) as (settings, asked):
        for _ in range(2):
            with closing(Endpoint(settings, cache=tmp_path / "cache" / "answers")) as endpoint:
                scored = score_difficulty(CANDIDATE, endpoint)
            # The mean of requests 1, 2 and 3; the second time all three come from the cache.
            assert scored.difficulty.predicted == 2.0
            assert scored.difficulty.predictor.startswith("tiny ")
            assert "implementation 2.00" in scored.lineage[-1].detail
    assert [request["seed"] for request in asked] == [0, 1, 2]
    assert asked[0]["response_format"]["json_schema"]["schema"]["required"] == list(DIMENSIONS)
    assert "Sum {two} numbers." in asked[0]["messages"][0]["content"]


def test_answers_beside_the_schema_leave_no_difficulty_and_a_dead_server_is_an_error() -> None:
    with endpoint_of(lambda number, messages: "certainly!") as (settings, asked):
        with closing(Endpoint(settings)) as endpoint:
            assert score_difficulty(CANDIDATE, endpoint) == CANDIDATE
        assert [request["seed"] for request in asked] == [0, 3, 6]
    # Nothing listens at port 9 (discard); closed after 0.2 s, so that retries do not wait.
    for most in (0, 5):
        endpoint = Endpoint(
            EndpointSettings(model="tiny", base_url="http://127.0.0.1:9/v1", max_retries=most)
        )
        Timer(0.2, endpoint.close).start()
        with pytest.raises(ConfigError, match=r"failed 1 times.* check that it is up"):
            score_difficulty(CANDIDATE, endpoint)


def test_an_answer_must_follow_the_schema_and_its_scores_be_on_the_scale() -> None:
    whole = dict.fromkeys(DIMENSIONS, 3)
    wrong = (
        {"implementation": 1},
        # The scale is of whole numbers, 1 to 5.
        *(dict.fromkeys(DIMENSIONS, one) for one in (0, 6, 2.5, True, "3", None)),
    )
    replies = [json.dumps(one) for one in (*wrong, {**whole, "reason": "short"})]
    with (
        endpoint_of(lambda number, _: replies[number - 1]) as (settings, _),
        closing(Endpoint(settings)) as endpoint,
    ):
        for _ in wrong:
            with pytest.raises(BadReply, match="not what was asked for"):
                endpoint.ask("Score it.", Scores)
        assert endpoint.ask("Score it.", Scores).model_dump() == whole


def make(number: int, predicted: float | None, *rates: str) -> Candidate:
    return Candidate(
        id=f"a/{number}",
        dataset="a",
        difficulty=Difficulty(predicted=predicted),
        pass_rates=rates,
    )


def rejected(
    candidates: list[Candidate], settings: SelectionSettings
) -> dict[str, tuple[str, str]]:
    return select({one.id: one.difficulty for one in candidates}, settings)


@hypothesis_settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(1, 5), max_size=60), st.randoms(use_true_random=False))
def test_only_the_easiest_problems_are_dropped_down_to_their_share(
    values: list[float], order: random.Random
) -> None:
    settings = SelectionSettings()
    candidates = [make(number, value) for number, value in enumerate(values)]
    # By default, below 2.5 is easy, and at most a fifth of what is kept may be.
    easy_ones = set()
    for candidate in candidates:
        if (candidate.difficulty.predicted or 0) < 2.5:
            easy_ones.add(candidate.id)
    names = {candidate.id for candidate in candidates} - rejected(candidates, settings).keys()
    easy = []
    for name in names:
        if name in easy_ones:
            easy.append(name)
    assert {candidate.id for candidate in candidates} - easy_ones <= names
    assert len(easy) <= 0.2 * len(names) + 1e-9
    dropped = []
    for c in candidates:
        if c.id not in names:
            dropped.append(c.difficulty.predicted or 0)
    kept_difficulties = []
    for c in candidates:
        if c.id in easy:
            kept_difficulties.append(c.difficulty.predicted or 0)
    lowest = min(kept_difficulties, default=5.0)
    for value in dropped:
        assert value <= lowest, "the easiest go first"
    # The order of the candidates changes nothing.
    assert rejected(order.sample(candidates, len(candidates)), settings) == rejected(
        candidates, settings
    )


def test_a_candidate_says_its_pass_rate_and_what_it_belongs_to() -> None:
    published = with_pass_rate(make(1, None, "a/b=0.25", "c=1"), "a/b", "a/b@7").difficulty
    assert published.pass_rate == 0.25
    assert published.pass_rate_low is None
    assert published.measured_on == "a/b@7"
    judged = with_pass_rate(make(1, None, "a/b=4/4"), "a/b", "a/b@7")
    assert judged.difficulty.pass_rate == 1.0
    # The lower end of Wilson's 95 % interval for 4 of 4: 4 / (4 + 1.96 ** 2).
    assert judged.difficulty.pass_rate_low == 0.5101, (
        "four attempts that all passed are no certainty"
    )
    assert judged.lineage[-1].field == "difficulty"
    unknown = make(1, None, "c=1")
    assert with_pass_rate(unknown, "a/b", "") is unknown
    for broken in ("a/b=often", "a/b=1.5", "a/b=nan", "a/b=5/4", "a/b=1/0"):
        with pytest.raises(DataError, match="0 to 1"):
            with_pass_rate(make(1, None, broken), "a/b", "")


def test_attempts_are_judged_by_our_evaluator(judge: Judge) -> None:
    candidate = Candidate.model_validate(
        {"id": "made/echo", "dataset": "made", "tests": [{"input": "4", "output": "5"}]}
    )
    silent = candidate.model_copy(update={"id": "made/silent"})
    responses = {
        "made/echo": [
            "```python\nprint(int(input()) + 1)\n```",
            "```python\nprint(4)\n```",
            "I do not know",
        ]
    }
    assert judge_attempts([candidate, silent], responses, judge) == {"made/echo": (1, 3)}


ENDPOINT = {"base_url": "http://localhost:1/v1", "model": "m"}


# From the easiest to the hardest, by the model's score and by how often it passes.
ROWS = [make(0, 1.2, "m=4/4"), make(1, 1.5, "m=3/4"), make(2, 1.9, "m=1/4")]


def pass_through(settings: DifficultySettings) -> list[object]:
    barrier = SelectionBarrier(settings)
    barrier.decide(barrier.look(ROWS))
    return [barrier.apply(row, {}) for row in ROWS]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"selection": {}}, r"set difficulty\.endpoint\.model"),
        ({"selection": {"by": "pass_rate", "easy_below": 0.5}}, "name a model with pass_rates_of"),
        ({"pass_rates_of": "m", "selection": {"by": "pass_rate"}}, "give a number between 0 and 1"),
        ({"responses": "r.jsonl"}, "name it with pass_rates_of"),
    ],
)
def test_a_selection_by_what_nothing_says_is_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        DifficultySettings.model_validate(given)


def test_problems_are_selected_by_scores_and_by_pass_rates_where_asked_for() -> None:
    none = select(
        {"a": Difficulty(), "b": Difficulty(predicted=3)},
        SelectionSettings(by="pass_rate", easy_below=0.5),
    )
    assert none == dict.fromkeys("ab", ("no_difficulty", "no pass_rate"))
    for row in pass_through(DifficultySettings()):
        assert isinstance(row, Candidate)
    papers = DifficultySettings.model_validate({"endpoint": ENDPOINT, "selection": {}})
    for row in pass_through(papers):
        assert not isinstance(row, Candidate)
    scored = DifficultySettings.model_validate(
        {"endpoint": ENDPOINT, "selection": {"easy_below": 1.4}}
    )
    assert [isinstance(row, Candidate) for row in pass_through(scored)] == [False, True, True]
    # Easy is what fails less often than the boundary: only the first row, which never fails. It is
    # one of three, and so may stay with a share of 0.4 but not of 0.2.
    for boundary, easy_share, is_first_kept in ((0.1, 0.4, True), (0.2, 0.2, False)):
        by_rate = {"by": "pass_rate", "easy_below": boundary, "easy_share": easy_share}
        rated = DifficultySettings.model_validate({"pass_rates_of": "m", "selection": by_rate})
        assert [isinstance(row, Candidate) for row in pass_through(rated)] == [
            is_first_kept,
            True,
            True,
        ]


def test_a_pass_rate_says_what_it_was_measured_on(tmp_path: Path) -> None:
    given = {"pass_rates_of": "m"}
    published = pass_through(DifficultySettings.model_validate(given))[1]
    (tmp_path / "r.jsonl").write_text(
        '{"id": "a/1", "responses": []}\n{"id": 7, "responses": ["x"]}\n'
    )
    judged = pass_through(
        DifficultySettings.model_validate({**given, "responses": tmp_path / "r.jsonl"})
    )[1]
    (tmp_path / "r.jsonl").write_text('{"id": "1", "responses": ["x"]}\n')
    for other, said in (
        ({"responses": tmp_path / "r.jsonl"}, "write them as the corpus does, such as 'a/0'"),
        ({"pass_rates_of": "n"}, "pass_rates_of = 'n', but rates are of m; name one"),
    ):
        with pytest.raises(DataError, match=said):
            pass_through(DifficultySettings.model_validate({**given, **other}))
    assert isinstance(published, Candidate)
    assert isinstance(judged, Candidate)
    assert published.difficulty.pass_rate == 0.75
    assert published.difficulty.measured_on == "m evaluator=unknown"
    assert judged.difficulty.measured_on == f"m evaluator={evaluator_version()}"

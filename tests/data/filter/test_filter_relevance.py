from __future__ import annotations

import json

import pytest
from local_endpoint import endpoint_of

from microcoder.data.completions import Endpoint
from microcoder.data.filter import FilterSettings, filter_row
from microcoder.data.filter.rules import judge_relevance
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import TestCase

ROW = Candidate(
    id="set/1",
    dataset="set",
    title="Sum",
    statement="You are given two numbers a and b on one line. Print their sum on a line of its own, please.\n",
    tests=(TestCase(input="1 2\n", output="3\n"),),
)


def said(relevance: object, clarity: object) -> str:
    return json.dumps({"relevance": relevance, "clarity": clarity, "why": "it is what it is"})


@pytest.mark.parametrize(
    ("relevance", "clarity", "passes"), [(0.9, 0.8, True), (0.5, 0.5, True), (0.4, 1.0, False), (1.0, 0.0, False)]
)
def test_both_numbers_reach_the_bar(relevance: float, clarity: float, passes: bool) -> None:
    with endpoint_of(lambda number, chat: said(relevance, clarity)) as (settings, asked):
        found = judge_relevance(ROW, Endpoint(settings), min_score=0.5)
    assert (found is None) == passes
    assert "Print their sum" in asked[0][1]["content"]


def test_the_reason_says_who_judged_and_why() -> None:
    with endpoint_of(lambda number, chat: said(0.1, 7)) as (settings, _):
        found = judge_relevance(ROW, Endpoint(settings), min_score=0.5)
    assert found is not None
    assert found[0] == "not_relevant"
    assert found[1].startswith("relevance 0.10, clarity 1.00: it is what it is (tiny, prompt ")


@pytest.mark.parametrize("reply", ["no idea", said("high", 1), said(None, 1), "[]"])
def test_a_judge_without_a_usable_answer_turns_nothing_away(reply: str) -> None:
    with endpoint_of(lambda number, chat: reply) as (settings, asked):
        assert judge_relevance(ROW, Endpoint(settings), min_score=0.5) is None
    assert len(asked) == 2


def test_a_second_answer_counts() -> None:
    with endpoint_of(lambda number, chat: said(0, 0) if number == 2 else "hm") as (settings, _):
        assert judge_relevance(ROW, Endpoint(settings), min_score=0.5) is not None


def test_the_stage_asks_the_judge_last() -> None:
    with endpoint_of(lambda number, chat: said(0, 0)) as (settings, asked):
        chosen = FilterSettings(judge=settings)
        short = filter_row(ROW.model_copy(update={"statement": "Add."}), chosen)
        assert isinstance(short, Rejection)
        assert (short.reason, asked) == ("too_short", [])
        done = filter_row(ROW, chosen)
    assert isinstance(done, Rejection)
    assert (done.reason, done.stage, len(asked)) == ("not_relevant", "filter", 1)


def test_a_judge_that_is_away_is_an_error() -> None:
    with endpoint_of(lambda number, chat: "HTTP500", max_retries=0) as (settings, _):
        chosen = FilterSettings(judge=settings)
        with pytest.raises(ConfigError, match="check that it is up"):
            filter_row(ROW, chosen)

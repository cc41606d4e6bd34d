"""The light columns: what a query selects, in which order, and the names of rollouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from microcoder.errors import DataError
from microcoder.viewer.index import FLAGS, FLOATS, INTEGERS, UNKNOWN, WORDS, Index, IndexBuilder
from microcoder.viewer.query import read_number, read_query

ROWS: list[dict[str, Any]] = [
    {"step": 1, "row": 0, "problem_id": "abc/1", "verdict": "accepted", "num_tokens": 10, "advantage": 0.5},
    {"step": 1, "row": 1, "problem_id": "abc/1", "verdict": "wrong_answer", "num_tokens": 30, "advantage": -0.5},
    {"step": 1, "row": 2, "problem_id": "abd/2", "verdict": "no_code", "is_truncated": True, "masked_why": "truncated"},
    {"step": 0, "row": 0, "problem_id": "ABD/3", "verdict": "accepted", "num_tokens": 20, "split": "heldout"},
    {"step": 12, "row": 0, "problem_id": "abc/1", "verdict": "sandbox_fault", "tier": "hard"},
]
COLUMNS = ((INTEGERS, UNKNOWN, np.int32), (FLOATS, float("nan"), np.float64), (FLAGS, False, np.bool_))


def index_of(rows: list[dict[str, Any]]) -> Index:
    builder = IndexBuilder()
    rows = [{"split": "train", **row} for row in rows]
    columns: dict[str, Any] = {name: builder.encode(name, [row.get(name) for row in rows]) for name in WORDS}
    for names, unknown, kind in COLUMNS:
        columns |= {name: np.array([row.get(name, unknown) for row in rows], dtype=kind) for name in names}
    builder.put("file", columns)
    return builder.build()


def selected(words: dict[str, str]) -> list[str]:
    index = index_of(ROWS)
    return [index.record(int(place))["id"] for place in index.select(read_query(words))]


EVERY = ["heldout/0/0", "train/1/0", "train/1/1", "train/1/2", "train/12/0"]


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ({}, EVERY),
        ({"order": "last"}, EVERY[::-1]),
        ({"order": "longest"}, ["train/1/1", "heldout/0/0", "train/1/0", "train/1/2", "train/12/0"]),
        ({"order": "advantage"}, ["train/1/0", "heldout/0/0", "train/1/2", "train/12/0", "train/1/1"]),
        ({"step": "1"}, ["train/1/0", "train/1/1", "train/1/2"]),
        ({"step": "0-1"}, EVERY[:4]),
        ({"step": " step_12 "}, ["train/12/0"]),
        ({"problem": "abd"}, ["heldout/0/0", "train/1/2"]),
        ({"problem": "nothing"}, []),
        ({"verdict": "accepted"}, ["heldout/0/0", "train/1/0"]),
        ({"verdict": "!accepted"}, ["train/1/1", "train/1/2", "train/12/0"]),
        ({"verdict": "unheard_of"}, []),
        ({"truncated": "yes"}, ["train/1/2"]),
        ({"masked": "yes"}, ["train/1/2"]),
        ({"masked": "no", "truncated": "no", "split": "train", "verdict": "!accepted"}, ["train/1/1", "train/12/0"]),
        ({"tier": "hard"}, ["train/12/0"]),
    ],
)
def test_a_query_selects(words: dict[str, str], ids: list[str]) -> None:
    assert selected(words) == ids


@pytest.mark.parametrize("words", [{"step": "1-"}, {"step": "x"}, {"masked": "maybe"}, {"order": "random"}])
def test_a_query_that_makes_no_sense_is_refused_by_name(words: dict[str, str]) -> None:
    with pytest.raises(DataError, match=next(iter(words))):
        read_query(words)


def test_numbers_of_a_request() -> None:
    assert read_number({}, "count", default=50, most=500) == 50
    assert read_number({"count": "9999"}, "count", default=50, most=500) == 500
    with pytest.raises(DataError, match="no number"):
        read_number({"count": "-1"}, "count", default=50, most=500)


def test_every_name_finds_its_rollout_and_no_other_name_does() -> None:
    index = index_of(ROWS)
    assert [index.find(name) for name in EVERY] == [0, 1, 2, 3, 4]
    for name in ("", "train", "train/1", "train/1/9", "train/x/0", "other/1/0", "train/1/" + "9" * 30, "train/-1/0"):
        assert index.find(name) is None


def test_a_record_tells_unknown_from_zero() -> None:
    record = index_of(ROWS).record(4)
    assert (record["reward"], record["num_tokens"], record["is_truncated"]) == (None, None, False)


def test_a_group_is_one_problem_in_one_step() -> None:
    index = index_of(ROWS)
    assert index.group(1) == [1, 2]
    assert index.group(4) == [4]


def test_files_that_go_take_their_rollouts_along() -> None:
    builder = IndexBuilder()
    assert len(builder.build()) == 0
    assert builder.build().count("verdict") == {}

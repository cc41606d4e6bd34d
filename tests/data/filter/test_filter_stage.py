from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from real_texts import ALL, deepseek, livecodebench

from microcoder.data import filter as stage
from microcoder.data.build.steps import CollectSettings, DuplicateBarrier
from microcoder.data.filter import (
    FilterSettings,
    LicenceSettings,
    QualitySettings,
    RecencySettings,
    build_index,
    filter_row,
)
from microcoder.data.formats.candidates import REASONS, Candidate, Rejection, reject
from microcoder.judge.core.types import TestCase

STORY = (
    "A baker walks from the first of n cities to the last one and buys bread wherever it is cheap. He may carry at "
    "most k loaves and eats one of them in every city that he enters. Find the least that he pays, and print it."
)
ROW = Candidate(
    id="set/1",
    dataset="set",
    title="Bread for the road",
    statement=STORY,
    date="2024-03-01",
    licence="MIT",
    tests=(TestCase(input="1 2\n", output="3\n"),),
)


def reason(row: Candidate, chosen: FilterSettings | None = None) -> str | None:
    done = filter_row(row, chosen, build_index([ROW.model_copy(update={"id": "bench/1", "title": "Other"})]))
    if isinstance(done, Candidate):
        assert done == row
        return None
    assert (done.id, done.stage, done.candidate) == (row.id, "filter", row)
    assert done.reason in REASONS
    return done.reason


def test_the_first_rule_that_fails_gives_the_reason() -> None:
    chosen = FilterSettings(
        quality=QualitySettings(), licence=LicenceSettings(unknown="reject"), recency=RecencySettings(not_before="2024")
    )
    row = ROW.model_copy(update={"tests": (), "licence": "", "date": "2020"})
    steps = [
        ({}, "no_tests"),
        ({"tests": ROW.tests}, "licence_unknown"),
        ({"licence": "MIT"}, "too_old"),
        ({"date": "2024"}, "contaminated"),
        ({"statement": STORY.replace("a", "o")}, None),
    ]
    for changed, expected in steps:
        row = row.model_copy(update=changed)
        assert reason(row, chosen) == expected


def test_a_contaminated_row_names_the_problem_and_the_evidence() -> None:
    index = build_index(ROW.model_copy(update={"id": f"bench/{number}"}) for number in range(5))
    done = filter_row(ROW, FilterSettings(), index)
    assert isinstance(done, Rejection)
    assert done.detail.count("bench/") == 3
    assert done.detail.startswith("bench/0 by words (")


def test_without_an_index_nothing_is_compared() -> None:
    assert filter_row(ROW) == ROW


def test_an_unknown_reason_is_an_error() -> None:
    with pytest.raises(KeyError, match="add it to REASONS"):
        reject(ROW, "filter", "ugly")


def deduplicate(rows: list[Candidate]) -> tuple[list[Candidate], list[Rejection]]:
    """Return what is kept and what is merged into it, each by id, as a build decides it."""
    barrier, by_id = (
        DuplicateBarrier(CollectSettings()),
        {row.id: row for row in sorted(rows, key=lambda row: row.id)},
    )
    barrier.decide(barrier.look(rows))
    done = [barrier.apply(row, {name: by_id[name] for name in barrier.needs(row.id)}) for row in by_id.values()]
    kept = [one for one in done if isinstance(one, Candidate)]
    return kept, [one for one in done if isinstance(one, Rejection)]


def test_a_merged_row_says_where_it_went() -> None:
    better = ROW.model_copy(update={"id": "set/2", "tests": (*ROW.tests, TestCase(input="5", output="6"))})
    kept, gone = deduplicate([ROW, better])
    assert [(one.id, one.merged, len(one.tests)) for one in kept] == [("set/2", ("set/1",), 2)]
    assert [(one.id, one.reason, one.detail, one.candidate) for one in gone] == [
        ("set/1", "duplicate_of", "set/2 by text", ROW)
    ]


STATEMENTS = st.sampled_from([STORY, STORY.replace("baker", "miller"), STORY.replace("a", "o"), "Add."])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(STATEMENTS, st.lists(st.sampled_from("123"), max_size=3, unique=True)), max_size=7),
    st.randoms(use_true_random=False),
)
def test_rows_in_are_rows_out_and_a_second_run_finds_nothing(
    drawn: list[tuple[str, list[str]]], chance: random.Random
) -> None:
    rows = [
        Candidate(
            id=f"set/{n}", dataset="set", statement=text, tests=tuple(TestCase(input=i, output="0") for i in inputs)
        )
        for n, (text, inputs) in enumerate(drawn)
    ]
    kept, gone = deduplicate(rows)
    assert sorted([*(one.id for one in kept), *(one.id for one in gone)]) == sorted(one.id for one in rows)
    assert sorted(name for one in kept for name in one.merged) == [one.id for one in gone]
    assert deduplicate(chance.sample(rows, len(rows))) == (kept, gone)
    assert deduplicate(kept) == (kept, [])
    inputs = {row.id: {test.input for test in row.tests} for row in rows}
    for one in kept:
        assert {test.input for test in one.tests} == inputs[one.id].union(*(inputs[name] for name in one.merged))


def test_the_funnel_of_real_rows_is_complete() -> None:
    index = build_index(livecodebench())
    chosen = FilterSettings(quality=QualitySettings(needs_tests=False))
    rows = [*deepseek("en")[::2], *ALL["doocs_en"]()[::2], *ALL["codecontests"]()[::2]]
    done = [filter_row(row, chosen, index) for row in rows]
    passed = [one for one in done if isinstance(one, Candidate)]
    kept, merged = deduplicate(passed)
    rejected = [one for one in done if isinstance(one, Rejection)] + merged
    assert len(rows) == len(kept) + len(rejected)
    assert len({one.id for one in [*kept, *rejected]}) == len(rows)
    assert {one.reason for one in rejected} <= set(REASONS)
    assert sum(one.reason == "contaminated" for one in rejected) >= 60


def test_the_public_names_are_those_of_the_list() -> None:
    assert all(hasattr(stage, name) for name in stage.__all__)
    assert stage.__all__ == sorted(stage.__all__)

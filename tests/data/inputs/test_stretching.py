"""Texts of unknown layout whose parts get more rows, tokens or letters."""

import pytest

from microcoder.data.inputs.lines import join_lines, split_lines
from microcoder.data.inputs.stretching import (
    WAYS,
    Way,
    find_parts,
    stretch,
    units_of,
)

ROADS_AND_TRIPS = "4 1 2\n1 2\n2 3\n1 4\n"
TREE = "3 x\n1 2\n2 3\n"
NAMES = "2\nab\nba\n"


def stretched(text: str, number: int, length: int, way: Way) -> list[list[str]]:
    lines = split_lines(text)
    part = find_parts(lines)[number]
    return stretch(lines, part, units_of(lines, part)[0], length, way, seed=1)


def test_tables_that_two_numbers_count_are_two_parts() -> None:
    heights = [part.height for part in find_parts(split_lines(ROADS_AND_TRIPS))]
    assert heights == [1, 1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_the_number_that_counts_rows_follows_them(way: Way) -> None:
    lines = stretched(ROADS_AND_TRIPS, 2, 500, way)
    assert lines[0][:2] == ["4", "1"]
    assert int(lines[0][2]) == len(lines) - 2


def test_a_tree_gets_a_node_more_than_edges() -> None:
    lines = stretched(TREE, 1, 1000, "places")
    assert lines[0] == ["1001", "x"]
    assert lines[-1] == ["1000", "1001"]


def test_rows_by_the_head_join_two_nodes_and_come_once() -> None:
    rows = stretched("9 1 2\n1 2\n2 3\n1 4\n", 2, 60, "head")[2:]
    assert all(first != second for first, second in rows)
    assert len({tuple(row) for row in rows}) == len(rows)
    assert max(int(token) for row in rows for token in row) > 4


def test_places_of_words_are_different_words() -> None:
    lines = stretched(NAMES, 1, 100, "places")
    assert lines[0] == ["100"]
    assert len({line[0] for line in lines[1:]}) == 100


def test_words_of_one_letter_are_repeated() -> None:
    lines = stretched("2\na\na\n", 1, 9, "places")
    assert lines[1:] == [["a"]] * 9


def test_a_list_and_a_word_get_longer() -> None:
    assert len(stretched("3\n1 5 9\n", 1, 70, "between")[1]) == 70
    assert stretched("3\n1 5 9\n", 1, 70, "between")[0] == ["70"]
    assert len(stretched("7\nabc\n", 1, 70, "repeated")[1][0]) == 70


def test_a_stretch_is_the_same_on_every_run_and_changes_nothing_else() -> None:
    lines = split_lines(ROADS_AND_TRIPS)
    part = find_parts(lines)[2]
    first = stretch(lines, part, "rows", 50, "head", seed=7)
    assert stretch(lines, part, "rows", 50, "head", seed=7) == first
    assert join_lines(lines) == ROADS_AND_TRIPS


def test_a_list_of_one_of_several_cases_is_counted_by_the_number_above() -> None:
    lines = split_lines("2\n2\n5 6\n3\n1 2 3\n")
    part = find_parts(lines)[2]
    made = stretch(lines, part, "tokens", 40, "between", seed=1, is_counted_near=True)
    assert made[:2] == [["2"], ["40"]]
    assert len(made[2]) == 40


def test_tokens_behind_their_number_are_counted_on_their_line() -> None:
    lines = stretched("20 7\n2 +d6 -d4\n", 1, 9, "repeated")
    assert lines == [["20", "7"], ["9", *["+d6", "-d4"] * 4, "+d6"]]

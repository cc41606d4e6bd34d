"""What inputs look like, learnt from a few of them; what is drawn and mutated meets it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.inputs.constraints import Relation, Term, read_relations
from microcoder.data.inputs.drawing import PROFILES, draw
from microcoder.data.inputs.layouts import read_texts
from microcoder.data.inputs.model import InputModel, learn
from microcoder.data.inputs.mutating import MUTATIONS, mutate
from microcoder.data.inputs.shapes import infer_shape

EDGES = """Given a tree of n nodes and its edges, where edges[i] = [u_i, v_i], and a text s of lowercase letters.

Constraints:

2 <= n <= 50
edges.length == n - 1
0 <= u_i, v_i < n
1 <= s.length <= 20
1 <= k <= s.length
"""
KNOWN = [(3, [[0, 1], [1, 2]], "ab", 1), (4, [[2, 0], [3, 2], [1, 0]], "bcd", 3)]
NAMES = ("n", "edges", "s", "k")


@pytest.fixture(scope="module")
def tree() -> InputModel:
    return learn(NAMES, KNOWN, EDGES)


def test_relations_are_read_between_places() -> None:
    found = read_relations(EDGES, NAMES)
    assert Relation(Term("", 2), "<=", Term("n", 0)) in found
    assert Relation(Term("edges#", 0), "==", Term("n", -1)) in found
    assert Relation(Term("edges[][1]", 0), "<", Term("n", 0)) in found
    assert Relation(Term("k", 0), "<=", Term("s#", 0)) in found


@pytest.mark.parametrize(
    ("text", "number"),
    [("1 <= a.length <= 10^5", 1e5), ("1 <= |a| <= 2 * 10^5", 2e5), ("1 <= len <= 7", None),
     ("1 <= a.length <= 2n", None)],
)  # fmt: skip
def test_bounds_as_people_write_them(text: str, number: float | None) -> None:
    highs = [one.right.number for one in read_relations(text, ("a",)) if one.left.place == "a#"]
    assert highs == ([] if number is None else [number])


@pytest.mark.parametrize(
    ("text", "bound"),
    [("1 <= k <= floor(nums.length / m)", 3), ("k <= nums.length / 2", 3.5),
     ("2 <= m, n <= 9, k <= m * nums.length", 14),
     ("0 <= k <= min(m * (m - 1) / 2, 10^5)", 1)],
)  # fmt: skip
def test_bounds_that_are_computed(text: str, bound: float) -> None:
    highs = [one.right for one in read_relations(text, ("nums", "k", "m")) if one.left.place == "k"]
    assert [one.evaluate({"nums#": 7, "m": 2}) for one in highs] == [bound]
    assert [one.evaluate({}) for one in highs] == [None]


def test_what_is_drawn_meets_computed_bounds() -> None:
    statement = "1 <= nums.length <= 20\n\n1 <= m <= 3\n\n1 <= k <= floor(nums.length / m)"
    model = learn(("nums", "k", "m"), [([1, 2, 3], 1, 2), ([1, 2, 3, 4], 2, 1)], statement)
    for seed in range(30):
        values = draw(model, "small", seed=seed)
        assert values is not None
        assert 1 <= values[1] <= len(values[0]) // values[2]


def test_a_large_table_is_as_large_as_its_text_may_be_and_meets_a_bound_on_its_size() -> None:
    statement = "m == mat.length\n\nn == mat[i].length\n\n1 <= m, n <= 10^4\n\n1 <= m * n <= 10^4"
    squares = [([[1, 2, 3], [4, 5, 6], [7, 8, 9]],), ([[1, 2], [3, 4]],)]
    values = draw(learn(("mat",), squares, statement), "large", seed=1)
    assert values is not None
    assert 2000 < len(values[0]) * len(values[0][0]) <= 10_000
    # What cannot be small enough is not drawn at all: it would take gigabytes.
    huge = tuple(Relation(Term("", 20_000), "<=", Term(place, 0)) for place in ("mat#", "mat[]#"))
    assert draw(replace(learn(("mat",), squares, ""), relations=huge), "large", seed=1) is None


def test_letters_of_a_position_are_those_that_the_statement_allows_there() -> None:
    statement = "s.length == 2\n\n'a' <= s[0] <= 'h'\n\n'1' <= s[1] <= '8'"
    model = learn(("s",), [("a1",), ("c3",)], statement)
    drawn = {values[0] for seed in range(60) if (values := draw(model, "small", seed=seed))}
    assert all(one[0] in "abcdefgh" and one[1] in "12345678" for one in drawn)
    assert len(drawn) > 20


def test_a_bound_that_a_known_input_breaks_was_misread() -> None:
    model = learn(("a",), [([1, 900],), ([2],)], "1 <= a[i] <= 100")
    assert not model.find_fault(([900],))
    assert learn(("a",), [([1, 90],), ([2],)], "1 <= a[i] <= 100").find_fault(([900],))


@pytest.mark.parametrize("seed", range(10))
def test_what_a_statement_calls_prime_stays_prime(seed: int) -> None:
    statement = "nums consists of prime integers and nums.length is even\n\n1 <= nums[i] <= 1000\n1 <= nums.length <= 9"
    model = learn(("nums",), [([2, 3],), ([7, 11, 13, 5],)], statement)
    assert dict(model.number_facts) == {"nums[]": "prime", "nums#": "even"}
    values = draw(model, "wide", seed=seed)
    assert values is not None
    assert len(values[0]) % 2 == 0
    assert all(all(one % divisor for divisor in range(2, one)) and one > 1 for one in values[0])


@pytest.mark.parametrize("profile", PROFILES)
@settings(deadline=None, max_examples=15)
@given(seed=st.integers(0, 1 << 40))
def test_what_is_drawn_is_a_tree_within_bounds(tree: InputModel, profile: str, seed: int) -> None:
    values = draw(tree, profile, seed=seed)
    assert values is not None
    n, edges, text, k = values
    assert 2 <= n <= 50
    assert len(edges) == n - 1
    assert {node for edge in edges for node in edge} == set(range(n))
    assert 1 <= k <= len(text) <= 20
    assert values == draw(tree, profile, seed=seed)


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 40), mutation=st.sampled_from(sorted(MUTATIONS)))
def test_what_is_mutated_is_another_input_that_meets_the_model(tree: InputModel, seed: int, mutation: str) -> None:
    values = mutate(tree, KNOWN[1], mutation, seed=seed)
    if values is not None:
        assert values != KNOWN[1]
        assert not tree.find_fault(values)
    assert KNOWN[1] == (4, [[2, 0], [3, 2], [1, 0]], "bcd", 3)


@pytest.mark.parametrize(
    ("values", "statement", "fact", "is_believed"),
    [
        ([[1, 2, 5], [3, 4]], "a sorted array", "sorted", True),
        ([[1, 2, 5], [3, 4]], "an array", "sorted", False),
        ([[2, 1, 3], [1, 2]], "a permutation", "permutation", True),
        ([[[1, 2], [3, 4]], [[1, 2]]], "a grid", "rectangular", True),
        ([[1, 1], [3, 4]], "all are distinct", "distinct", False),
    ],
)
def test_a_fact_is_believed_where_the_words_say_it(
    values: list[object], statement: str, fact: str, is_believed: bool
) -> None:
    assert (fact in infer_shape(values, statement=statement).facts) is is_believed


@pytest.mark.parametrize(
    ("texts", "forms"),
    [
        (["3\n1 2 3\n", "2\n5 6\n"], ["count", "list"]),
        (["2 5\n1 2\n3 4\n", "1 5\n7 8\n"], ["count", "value", "rows"]),
        (["2\nab\ncd\n", "3\na\nb\nc\n"], ["count", "column"]),
        (["1 2\n", "3 4\n"], ["value", "value"]),
        (["4 2\n1 2 3 4\n1 2\n3 4\n", "2 1\n5 6\n2 1\n"], ["count", "count", "list", "rows"]),
        (["2 1\n1 2\n3 4\n7\n", "1 3\n5 6\n2\n1\n9\n"], ["count", "count", "rows", "column"]),
        (["3\n1 2 3\n4 5 6\n", "2\n5 6\n7 8\n"], ["count", "list", "list"]),
        (["2\nab 3\nc 4\n", "1\nx 9\n"], ["count", "rows"]),
    ],
)
def test_a_layout_is_found_and_writes_what_it_reads(texts: list[str], forms: list[str]) -> None:
    read = read_texts(texts, is_typed=True)[0]
    assert [item.form for item in read.layout.items] == forms
    assert [read.layout.render(values) for values in read.values] == texts


def test_columns_of_rows_that_nothing_counts_are_something_of_their_own() -> None:
    read = read_texts(["2\nab 3\nc 4\n", "1\nx 9\n"], is_typed=True)[0]
    assert read.slots == ("value0_#", "value0_[][0]", "value0_[][1]")
    model = learn(read.layout.names, read.values, "", records=read.records)
    (table,) = model.shapes
    assert table.item is not None
    assert [column.kind for column in table.item.columns] == ["text", "int"]


def test_the_width_of_a_table_is_as_the_input_says() -> None:
    read = read_texts(["2 3\n1 2 3\n4 5 6\n", "3 2\n1 1\n2 2\n3 3\n"], is_typed=True)[0]
    model = learn(read.layout.names, read.values, "", records=read.records)
    for seed in range(20):
        values = draw(model, "small", seed=seed)
        assert values is not None
        first, *rows = read.layout.render(values).splitlines()
        assert first == f"{len(rows)} {len(rows[0].split())}"


def test_inputs_of_different_layouts_have_none() -> None:
    assert read_texts(["1 a\n\n2\n", "x y z\n", "3\n"]) == []


def test_drawn_texts_have_the_layout_of_known_ones() -> None:
    read = read_texts(["3\n1 2 3\n", "2\n5 6\n"], is_typed=True)[0]
    model = learn(read.layout.names, read.values, "1 <= n <= 9", places={"n": read.slots[0]})
    for seed in range(20):
        values = draw(model, "small", seed=seed)
        assert values is not None
        count, items = read.layout.render(values).splitlines()
        assert len(items.split()) == int(count)
    assert json.dumps(draw(model, "small", seed=1)) == json.dumps(draw(model, "small", seed=1))

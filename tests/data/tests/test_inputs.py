"""What inputs look like, learnt from a few of them; what is mutated meets it and stays inside of what is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.inputs.constraints import Relation, Term, read_relations, without_group_rows
from microcoder.data.inputs.layouts import read_texts
from microcoder.data.inputs.model import InputModel, learn
from microcoder.data.inputs.mutating import MUTATIONS, mutate
from microcoder.data.inputs.shapes import FACTS, holds, infer_shape, is_tree
from microcoder.data.tests.making import find_names

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


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 1 << 40), mutation=st.sampled_from(sorted(MUTATIONS)))
def test_what_is_mutated_is_another_input_that_meets_the_model(tree: InputModel, seed: int, mutation: str) -> None:
    values = mutate(tree, KNOWN[1], mutation, seed=seed)
    if values is not None:
        assert values != KNOWN[1]
        assert not tree.find_fault(values)
        n, edges, text, k = values
        assert 3 <= n <= 4
        assert len(edges) == n - 1
        assert is_tree(edges)
        assert 2 <= len(text) <= 3
        assert set(text) <= set("abcd")
        assert 1 <= k <= len(text)
    assert KNOWN[1] == (4, [[2, 0], [3, 2], [1, 0]], "bcd", 3)


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


def test_inputs_of_different_layouts_have_none() -> None:
    assert read_texts(["1 a\n\n2\n", "x y z\n", "3\n"]) == []


def mutants_of(model: InputModel, known: Sequence[tuple[Any, ...]], num: int = 400) -> list[tuple[Any, ...]]:
    source = random.Random(0)
    tries = (mutate(model, source.choice(known), source.choice([*MUTATIONS]), seed=seed) for seed in range(num))
    return [values for values in tries if values is not None]


def test_nothing_leaves_the_range_of_known_values_though_the_statement_allows_more() -> None:
    known = [([4, 9, 6, 5], "ba"), ([7, 5], "cabb")]
    model = learn(("nums", "s"), known, "0 <= nums[i] <= 10^9\n1 <= nums.length <= 10^5\n1 <= s.length <= 50")
    made = mutants_of(model, known)
    assert len(made) > 50
    assert all(4 <= one <= 9 for nums, _ in made for one in nums)
    assert {len(nums) for nums, _ in made} == {2, 4}
    assert all(2 <= len(text) <= 4 and set(text) <= set("abc") for _, text in made)


def test_bounds_between_values_hold_where_they_are_computed() -> None:
    statement = "1 <= nums.length <= 20\n\n1 <= m <= 3\n\n1 <= k <= floor(nums.length / m)"
    known = [([1, 2, 3], 1, 2), ([1, 3, 2, 4, 4], 2, 1), ([2, 1, 5, 1], 4, 1)]
    made = mutants_of(learn(("nums", "k", "m"), known, statement), known)
    assert len({values[1:] for values in made}) > 4
    assert all(1 <= k <= len(nums) // m for nums, k, m in made)


@pytest.mark.parametrize(
    ("statement", "unplaced"),
    [
        ("1 <= n <= 9\n\n1 <= q <= n", True),
        ("1 <= q <= 9", False),
        ("pairs with i < j and j1 < n", False),
        ("1 <= k <= n", False),
    ],
)
def test_a_bound_between_values_that_is_not_placed_is_told(statement: str, unplaced: bool) -> None:
    assert bool(learn(("n", "k"), [(3, 2), (9, 4)], statement).unplaced) is unplaced


def test_a_bound_that_a_known_input_breaks_was_misread() -> None:
    known = [([1, 9, 3], 2), ([2, 4, 9], 9)]
    assert not learn(("a", "k"), known, "a[i] <= k").find_fault(([9, 4, 2], 2))
    assert learn(("a", "k"), [([1, 2, 9], 9), ([4, 2, 3], 5)], "a[i] <= k").find_fault(([9, 4, 2], 5))


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ([[1, 2, 5], [3, 4, 4]], {"sorted"}),
        ([[2, 1, 3], [1, 2]], {"permutation", "distinct"}),
        ([[1, 1, 2], [3, 4]], {"sorted"}),
        ([[[1, 2], [3, 4]], [[2, 4], [4, 1]]], {"rectangular", "square", "of even length", "distinct"}),
    ],
)
def test_what_all_known_values_have_in_common_is_kept(values: list[Any], facts: set[str]) -> None:
    found = infer_shape(values).facts
    assert facts <= found
    assert not {"permutation", "square"} & found - facts


def test_numbers_that_are_all_prime_stay_so_and_texts_keep_their_words_and_positions() -> None:
    primes = infer_shape([2, 3, 11, 13])
    assert [number for number in range(16) if not primes.find_fault(number)] == [2, 3, 5, 7, 11, 13]
    words = infer_shape(["add", "del", "add", "del", "add"])
    assert [not words.find_fault(word) for word in ("add", "dad")] == [True, False]
    fields = infer_shape(["a1", "c3", "b2"])
    assert [not fields.find_fault(field) for field in ("a3", "1a", "d1")] == [True, False, False]


def test_a_mark_of_a_picture_stands_once() -> None:
    pictures = infer_shape([["S..", "..G"], ["G.S.", "...."]])
    assert pictures.marks == "GS"
    assert not pictures.find_fault(["G..", "..S"])
    assert pictures.find_fault(["GS.", ".S."])


def test_lists_that_hold_a_tree_are_told() -> None:
    known = [(4, [0, 0, 2], [1, 2, 3]), (8, [1, 1, 2, 3, 4, 5, 6], [0, 2, 3, 4, 5, 6, 7])]
    model = learn(("n", "a", "b"), known, "1 <= n <= 60")
    assert model.trees == (("a", "b"),)
    assert model.find_fault((4, [0, 0, 0], [1, 1, 3]))


@pytest.mark.parametrize(
    ("value", "is_met"), [([2, 1, 2], True), ([1, 3, 2], False), ([1, 2, 0], True), ([0, 2], False)]
)
def test_no_item_is_its_own_place(value: list[int], is_met: bool) -> None:
    assert holds(FACTS["no_own_place"], value) is is_met


def test_ends_of_intervals_keep_their_order() -> None:
    texts = ["2\n1 4 5\n2 1 2 6 9\n", "1\n3 1 1 2 2 3 3\n"]
    read = read_texts(texts, is_typed=True)[0]
    model = learn(read.layout.names, read.values, records=read.records)
    made = mutants_of(model, read.values)
    assert made
    assert all(low <= high for (rows,) in made for row in rows for low, high in row)


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("$N$ ($1 \\le N \\leq 10^5$) and $K$, then $a_1, \\dots, a_N$ ($0 \\le a_i \\le 9$)", ["N", "K", "a[]"]),
        ("the lengths $L_1$ and $L_2$, each $N \\le 5$", ["L_1", "L_2", "N"]),
        ("pairs $x, y$ ($0 \\le x, y \\le 5 \\cdot 10^8$)", ["x", "y"]),
        ("The $i$-th line has $m_i$ and $b$", ["m[]", "b"]),
    ],
)  # fmt: skip
def test_names_are_found_in_the_order_of_the_input_section(section: str, names: list[str]) -> None:
    assert find_names(section) == names


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("The input is one integer $D \\leq 200\\,000$, a distance.", Relation(Term("D", 0), "<=", Term("", 200_000))),
        ("$1 \\le a \\neq D \\le 10^9$", Relation(Term("D", 0), "<=", Term("", 1e9))),
        ("$1 \\le D \\le 10^{100}$", Relation(Term("D", 0), "<=", Term("", 1e100))),
        ("$D \\le 5$ " + "and some more words " * 12, Relation(Term("D", 0), "<=", Term("", 5))),
    ],
)  # fmt: skip
def test_bounds_within_sentences(text: str, bound: Relation) -> None:
    assert bound in read_relations(text, ("D",))


def test_a_bound_may_be_a_product_or_a_fraction() -> None:
    (found,) = read_relations("$M \\le \\min(2 \\cdot 10^5, \\frac{N(N-1)}{2})$", ("M", "N"))
    assert found.right.evaluate({"N": 5}) == 10


def test_digits_number_what_an_index_stands_for() -> None:
    places = {"m_1": "value0_", "m_2": "value1_"}
    found = read_relations("$0 < m_i \\le 9$", ("value0_", "value1_"), places)
    assert {one.left.place for one in found if one.right.number == 9} == {"value0_", "value1_"}


TABLE = """n numbers are given.

| Group | Points | Constraints |
| --- | --- | --- |
| 1 | 20 | n <= k |
| 2 | 80 | n <= 90 |"""


def test_bounds_of_a_group_of_tests_bound_no_other() -> None:
    assert without_group_rows(TABLE) == "n numbers are given.\n"
    assert not learn(("n", "k"), [(3, 5), (4, 7)], TABLE).find_fault((4, 5))


@pytest.mark.parametrize(
    ("texts", "forms"),
    [
        # So many edges less than nodes; then as many queries as the next line says.
        (["3\n1 2\n2 3\n1\n7 1\n", "2\n2 1\n3\n9 1\n8 2\n7 7\n"], ["value", "rows", "count", "rows"]),
        # Two blocks of one number of lines.
        (["4 1\n0 1\n1 2\n", "5 2\n0 1\n3 2\n1 4\n1 2\n"], ["value", "count", "rows", "rows"]),
        # Each row says how many pairs follow.
        (["2\n1 4 5\n2 1 2 6 9\n", "1\n3 1 1 2 2 3 3\n"], ["count", "rows"]),
        (["1\n", "3\n1 2\n1 3\n"], ["value", "rows"]),
    ],
)
def test_blocks_of_lines_are_told_apart(texts: list[str], forms: list[str]) -> None:
    read = read_texts(texts, is_typed=True)[0]
    assert [item.form for item in read.layout.items] == forms
    assert [read.layout.render(values) for values in read.values] == texts

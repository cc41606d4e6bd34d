"""What inputs look like, learnt from a few of them; what is drawn and mutated meets it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.dataset.generation.constraints import Relation, Term, read_relations
from microcoder.dataset.generation.drawing import PROFILES, draw
from microcoder.dataset.generation.inputs import InputModel, learn
from microcoder.dataset.generation.layouts import find_layout
from microcoder.dataset.generation.mutating import MUTATIONS, mutate
from microcoder.dataset.generation.shapes import infer_shape

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
    [("1 <= a.length <= 10^5", 1e5), ("1 <= |a| <= 2 * 10^5", 2e5), ("1 <= a.length <= 105", 1e5),
     ("1 <= len <= 7", None), ("1 <= a.length <= b - c", None)],
)  # fmt: skip
def test_bounds_as_people_write_them(text: str, number: float | None) -> None:
    highs = [one.right.number for one in read_relations(text, ("a",)) if one.left.place == "a#"]
    assert highs == ([] if number is None else [number])


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
    ("texts", "kinds"),
    [
        (["3\n1 2 3\n", "2\n5 6\n"], ["fields", "array"]),
        (["2 5\n1 2\n3 4\n", "1 5\n7 8\n"], ["fields", "rows"]),
        (["2\nab\ncd\n", "3\na\nb\nc\n"], ["fields", "column"]),
        (["1 2\n", "3 4\n"], ["fields"]),
        (["4 2\n1 2 3 4\n1 2\n3 4\n", "2 1\n5 6\n2 1\n"], ["fields", "array", "rows"]),
    ],
)
def test_a_layout_is_found_and_writes_what_it_reads(texts: list[str], kinds: list[str]) -> None:
    layout = find_layout(texts)
    assert layout is not None
    assert [part.kind for part in layout.parts] == kinds
    for text in texts:
        values = layout.read(text)
        assert values is not None
        assert layout.write(values) == text


def test_inputs_of_different_layouts_have_none() -> None:
    assert find_layout(["1 a\n\n2\n", "x y z\n", "3\n"]) is None


def test_drawn_texts_have_the_layout_of_known_ones() -> None:
    texts = ["3\n1 2 3\n", "2\n5 6\n"]
    layout = find_layout(texts)
    assert layout is not None
    known = [layout.read(text) for text in texts]
    model = learn(layout.names, [one for one in known if one], "1 <= n <= 9", counts=tuple(layout.counts()))
    for seed in range(20):
        values = draw(model, "small", seed=seed)
        assert values is not None
        count, items = layout.write(values).splitlines()
        assert len(items.split()) == int(count)
    assert json.dumps(draw(model, "small", seed=1)) == json.dumps(draw(model, "small", seed=1))

"""What inputs look like, mutations of them, and mutants of programs."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data.inputs.layouts import read_texts
from microcoder.data.inputs.model import InputModel, Relation, infer_shape, is_tree, learn
from microcoder.data.inputs.mutating import MUTATIONS, mutate
from microcoder.data.tests.killing import make_mutants

KNOWN = [(3, [[0, 1], [1, 2]], "ab", 1), (4, [[2, 0], [3, 2], [1, 0]], "bcd", 3)]
NAMES = ("n", "edges", "s", "k")


@pytest.fixture(scope="module")
def tree() -> InputModel:
    return learn(NAMES, KNOWN)


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
        (["4 2\n1 2 3 4\n1 2\n3 4\n", "2 1\n5 6\n2 1\n"], ["count", "count", "list", "rows"]),
        (["2\nab 3\nc 4\n", "1\nx 9\n"], ["count", "rows"]),
        # So many edges less than nodes; then as many queries as the next line says.
        (["3\n1 2\n2 3\n1\n7 1\n", "2\n2 1\n3\n9 1\n8 2\n7 7\n"], ["value", "rows", "count", "rows"]),
        # Two blocks of one number of lines.
        (["4 1\n0 1\n1 2\n", "5 2\n0 1\n3 2\n1 4\n1 2\n"], ["value", "count", "rows", "rows"]),
        # Each row says how many pairs follow.
        (["2\n1 4 5\n2 1 2 6 9\n", "1\n3 1 1 2 2 3 3\n"], ["count", "rows"]),
        (["1\n", "3\n1 2\n1 3\n"], ["value", "rows"]),
    ],
)
def test_a_layout_is_found_and_writes_what_it_reads(texts: list[str], forms: list[str]) -> None:
    read = read_texts(texts, is_typed=True)[0]
    assert [item.form for item in read.layout.items] == forms
    assert [read.layout.render(values) for values in read.values] == texts
    assert read_texts([*texts, "1 a\n\n2\n", "x y z\n"]) == [], "inputs of different layouts have none"


def mutants_of(model: InputModel, known: Sequence[tuple[Any, ...]], num: int = 400) -> list[tuple[Any, ...]]:
    source = random.Random(0)
    tries = (mutate(model, source.choice(known), source.choice([*MUTATIONS]), seed=seed) for seed in range(num))
    return [values for values in tries if values is not None]


def test_nothing_leaves_the_range_of_known_values() -> None:
    known = [([4, 9, 6, 5], "ba"), ([7, 5], "cabb")]
    model = learn(("nums", "s"), known)
    made = mutants_of(model, known)
    assert len(made) > 50
    assert all(4 <= one <= 9 for nums, _ in made for one in nums)
    assert {len(nums) for nums, _ in made} == {2, 4}
    assert all(2 <= len(text) <= 4 and set(text) <= set("abc") for _, text in made)


@pytest.mark.parametrize(
    ("known", "kept", "no_relation"),
    [
        ([([4, 9], 1), ([7, 5, 5], 1)], [Relation("k", "<", "nums#")], "=="),
        ([([4, 9], 2), ([7, 5, 5], 3)], [Relation("nums#", "==", "k")], "<"),
        ([([0, 2], 3), ([1, 0, 0], 2)], [Relation("nums[]", "<", "k")], "=="),
    ],
)
def test_relations_that_hold_for_all_known_inputs_are_kept(
    known: list[Any], kept: list[Relation], no_relation: str
) -> None:
    model = learn(("nums", "k"), known)
    assert set(kept) <= set(model.relations)
    assert all(one.operator != no_relation for one in model.relations)
    assert all(not model.find_fault(values) for values in known)


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ([[1, 2, 5], [3, 4, 4]], {"sorted"}),
        ([[2, 1, 3], [1, 2]], {"permutation", "distinct"}),
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


CODE = """from functools import cache
def best(nums, k):
    seen = set(nums)
    @cache
    def go(i):
        if i >= len(nums) or k < 0:
            return 0
        return max(go(i + 1), nums[i] + go(i + 2))
    for i in range(1, len(nums)):
        if nums[i] in seen and nums[i - 1] <= k:
            k += 1
    return go(0) % (10**9 + 7)
"""


def test_mutants_are_other_programs_that_compile_and_name_what_was_changed() -> None:
    mutants = make_mutants(CODE, limit=200)
    assert len(mutants) > 20
    assert len({one.code for one in mutants}) == len(mutants)
    for one in mutants:
        compile(one.code, one.name, "exec")
        assert int(one.name.rpartition("@")[2]) <= CODE.count("\n")
    kinds = {one.name.split("/")[0] for one in mutants}
    assert {"compare", "operator", "logic", "constant", "branch", "bound", "greedy", "slow", "call", "index"} <= kinds
    few = make_mutants(CODE, limit=12, seed=3)
    assert len(few) == 12
    assert len({one.name.split("/")[0] for one in few}) >= 6
    assert few == make_mutants(CODE, limit=12, seed=3)
    assert few != make_mutants(CODE, limit=12, seed=4)
    assert make_mutants("int main() { return 0; }", limit=5) == [], "what is no Python has no mutants"

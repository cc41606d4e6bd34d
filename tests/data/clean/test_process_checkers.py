"""Which functions' lists may come in any order, by what the statement says."""

from __future__ import annotations

import pytest

from microcoder.data.clean.tests import find_order
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import Call, Checker, TestCase


def candidate(statement: str, output: str, **fields: object) -> Candidate:
    tests = (TestCase(input="1", output=output),)
    return Candidate.model_validate(
        {
            "id": "a",
            "dataset": "d",
            "statement_found": statement,
            "statement": statement,
            "fn_name": "f",
            "tests": tests,
        }
        | fields
    )


@pytest.mark.parametrize(
    ("statement", "output", "lists"),
    [
        ("You may return the answer in any order.", "[1, 2]", "outermost"),
        ("You may return the answer in any order.", "[[1, 2], [3]]", "outermost"),
        ("Given a tree, return all root-to-leaf paths in any order.", '["1->2"]', "outermost"),
        ("The combinations may be returned in any order.", "[[1, 2]]", "outermost"),
        ("Return an array of size two containing the two numbers (in any order).", "[3, 4]", "outermost"),
        ("Note that the integers in the lists may be returned in any order.", "[[1, 3], [4, 6]]", "inner"),
        ("Note that you can return the indices of the edges in any order.", "[[0, 1], [2, 3]]", "inner"),
        ("You can order the deck in any order you want. Return the ordering.", "[2, 13]", None),
        ("Pairs can appear in any order. Return the original array.", "[1, 2]", None),
        ("You may return the answer in any order.", "3", None),
        ("Return the sorted list.", "[1, 2]", None),
    ],
)  # fmt: skip
def test_what_may_come_in_any_order(statement: str, output: str, lists: str | None) -> None:
    found = find_order(candidate(statement, output))
    assert found == (Checker.model_validate({"type": "unordered", "lists": lists}) if lists else None)


def test_what_has_an_order_or_a_checker_is_left_alone() -> None:
    said = "You may return the answer in any order."
    assert find_order(candidate(said, "[1]", fn_name=None)) is None
    assert find_order(candidate(said, "[1]", checker=Checker(type="exact"))) is None
    assert find_order(candidate(said, "[1]", call=Call(style="design"))) is None
    assert find_order(candidate(said, "[1]", call=Call(returns="TreeNode"))) is None

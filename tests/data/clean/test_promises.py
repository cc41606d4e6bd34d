"""Tests outside the ranges that a statement promises, and ends of ranges that lost a power."""

import json

import pytest

from microcoder.data.clean.promises import FLAG, find_outside, keep_promises
from microcoder.data.formats.candidates import Candidate, InputKit, InputProgram
from microcoder.judge.core.types import TestCase

ASKS = "Return the sum of the numbers.\n"
HEAD = "class Solution:\n    def total(self, nums: List[int], k: int) -> int:\n"


def called(constraints: str, *nums: list[int], k: int = 1, **fields: object) -> Candidate:
    tests = [TestCase(input=f"{json.dumps(item)}\n{k}", output="0") for item in nums]
    given = {
        "id": "a/1",
        "dataset": "a",
        "statement": f"{ASKS}\n## Constraints\n\n{constraints}\n",
        "fn_name": "total",
        "starter_code": HEAD,
        "tests": tuple(tests),
        **fields,
    }
    return Candidate.model_validate(given)


def outside_of(constraints: str, *nums: list[int], k: int = 1) -> list[float]:
    return [item.value for item in find_outside(called(constraints, *nums, k=k))]


@pytest.mark.parametrize(
    ("constraints", "values"),
    [
        ("1 <= nums[i] <= 100", [102]),
        ("1 <= nums.length <= 2", [3]),
        ("- `2 <= k <= 10`", [1]),
        ("1 <= nums[0] <= 4", [5]),
        # It holds for some places only, or ends at a name.
        ("1 <= nums[i] <= 100 for i > 0", []),
        ("0 <= nums[i] < 2n", []),
        ("0 <= nums[i] < 2^k", []),
        ("1 <= nums[i] <= nums.length", []),
        ("1 <= |nums[i]| <= 4", []),
        ("1 <= other <= 4", []),
    ],
)
def test_a_range_is_met_by_the_name_of_a_parameter(constraints: str, values: list[float]) -> None:
    assert outside_of(constraints, [5, 102, 7]) == values


def printed(text: str, given: str) -> list[float]:
    row = Candidate(
        id="a/1", dataset="a", statement=text, tests=(TestCase(input=given, output="1\n"),)
    )
    return [item.value for item in find_outside(row)]


@pytest.mark.parametrize(
    ("said", "given", "values"),
    [
        ("a single integer $n$ ($1 \\le n \\le 100$).", "102\n1 2\n", [102]),
        ("two integers n and m (1 <= n, m <= 100), as above.", "5 101\n", [101]),
        ("two integers n and m (1 <= n, m <= 100).", "101 5 6\n", []),
        ("a word of n letters (1 <= n <= 100).", "102x\n", []),
    ],
)
def test_a_range_is_met_by_the_names_of_the_first_line(
    said: str, given: str, values: list[float]
) -> None:
    statement = f"Find it.\n\n## Input\n\nThe first line contains {said}\n\n## Output\n\nIt.\n"
    assert printed(statement, given) == values


@pytest.mark.parametrize(
    "said",
    [
        "The first line contains a single integer n, at most 100.",
        "The first line has the number n of numbers.\n\n## Constraints\n\n- 1 <= n <= 100",
        "First line: integer n (1 <= n <= 100).\nSecond line: n integers.",
        "An integer n (n <= 100) is given in the first line.",
        "On the first line there is a positive integer $n$ not exceeding 100.",
        "The first line has n between 1 and 100.",
        "The input has n on its first line, 1 <= n <= 100.",
        "The input is given in the following format:\n\n```\nn\na_1 ... a_n\n```\n\n"
        "## Constraints\n\n- 1 <= n <= 100",
        "The input is given in the following format:\nn\na_1 ... a_n\n\n"
        "## Constraints\n\n- 1 <= n <= 100",
    ],
)
def test_a_first_line_and_its_range_are_read_in_many_words(said: str) -> None:
    statement = f"Find the sum.\n\n## Input\n\n{said}\n\n## Output\n\nIt.\n"
    assert printed(statement, "102\n1 2\n") == [102]
    assert printed(statement, "100\n1 2\n") == []


@pytest.mark.parametrize(
    "said",
    [
        "The first line contains n. All lines have at most 100 characters.",
        "The first line contains n, at most 100 * m.",
        "The first line contains n words, up to 100 of them.",
    ],
)
def test_a_limit_of_something_else_is_no_range(said: str) -> None:
    statement = f"Find the sum.\n\n## Input\n\n{said}\n\n## Output\n\nIt.\n"
    assert printed(statement, "102\n1 2\n") == []


def test_tests_outside_are_left_out_where_enough_stay() -> None:
    row = keep_promises(called("1 <= nums[i] <= 100", *([number] for number in range(1, 7)), [102]))
    assert len(row.tests) == 6
    assert "tests_dropped" in row.flags
    assert "nums[i] = 102; left out" in row.lineage[-1].detail


def test_where_too_few_would_stay_the_row_says_so() -> None:
    row = keep_promises(called("1 <= nums[i] <= 100", [1], [102]))
    assert len(row.tests) == 2
    assert FLAG in row.flags


def test_what_a_packages_validators_accept_is_not_looked_at() -> None:
    program = InputProgram(name="check", role="validator", code="pass\n", language="python")
    row = called("1 <= nums[i] <= 100", [102], kit=InputKit(programs=(program,)))
    assert keep_promises(row) is row


@pytest.mark.parametrize(
    ("end", "value", "restored"),
    [
        ("105", 99999, "10^5"),
        ("28", 256, "2^8"),
        # More than the power would be, a round number, and the letters' number.
        ("105", 1000000, "105"),
        ("20", 21, "20"),
        ("26", 27, "26"),
    ],
)
def test_a_lost_power_is_put_back_by_a_test(end: str, value: int, restored: str) -> None:
    row = keep_promises(called(f"- `1 <= nums[i] <= {end}`", [1], [value]))
    assert f"1 <= nums[i] <= {restored}`" in row.statement


def test_a_power_is_put_back_where_its_range_stands_and_not_in_an_example() -> None:
    row = called("- `1 <= nums.length <= 28`", [1], [1] * 200)
    example = "Here nums.length = 28 and nums[0] = 28."
    row = keep_promises(row.model_copy(update={"statement": f"{example}\n\n{row.statement}"}))
    assert example in row.statement
    assert "1 <= nums.length <= 2^8" in row.statement


@pytest.mark.parametrize(
    "constraints",
    [
        "Subtask 1: 1 <= k <= 100",
        "1 <= k <= 100 in half of the tests\n1 <= k <= 10^5 in all",
    ],
)
def test_a_range_of_a_part_of_the_tests_is_none(constraints: str) -> None:
    assert outside_of(constraints, [1], k=2000) == []

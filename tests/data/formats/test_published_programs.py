"""Assertions that are no plain calls become tests of a corpus as they were published."""

import tarfile
from pathlib import Path
from typing import Any

import pytest

from microcoder.data.clean.normal_tests import normalise_tests
from microcoder.data.filter.duplicates import describe
from microcoder.data.filter.keys import example_keys
from microcoder.data.filter.merging import merge
from microcoder.data.filter.rules import check_quality
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.row import Malformed
from microcoder.data.formats.rows import FORMATS
from microcoder.data.formats.test_programs import list_calls
from microcoder.data.sources import collect_source, open_source
from tests.data.published import find_archive

PAIR = "def pair(a, b):\n    if a > b:\n        raise ValueError\n    return {a, b}\n"
SETS = ("assert pair(1, 2) == {1, 2}", "assert pair(3, 4) == {3, 4}")
RAISES = (
    "import pytest\nfrom solution import total\n\n"
    "def test_sum():\n    assert total([1, 2]) == 3\n\n"
    "def test_empty():\n    with pytest.raises(ValueError):\n        total([])\n"
)
TOTAL = (
    "def total(numbers):\n    if not numbers:\n        raise ValueError\n    return sum(numbers)\n"
)


def read(format_name: str, **values: Any) -> Candidate:
    return FORMATS[format_name].read_row(values, "rows.jsonl:1")


def read_pair(*tests: str, code: str = PAIR) -> Candidate:
    return read("trl", prompt="Return both numbers.", tests=list(tests), solution=code)


def test_assertions_name_the_function_where_the_row_does_not() -> None:
    row = read_pair("assert pair(1, 2) == [1, 2]")
    assert row.fn_name == "pair"
    assert row.tests[0].input == "1\n2"


def test_sets_are_tests_as_published() -> None:
    row = read_pair(*SETS)
    assert row.assertions is not None
    assert tuple(test.output for test in row.tests) == SETS


def test_an_exception_that_is_asked_for_stays_a_test() -> None:
    row = read("kodcode", question="Add them up.", test=RAISES, solution=TOTAL)
    assert "pytest.raises(ValueError)" in row.tests[0].output


def test_what_the_answer_cannot_give_is_left_out_as_before() -> None:
    row = read_pair("assert pair(1, 2) == [1, 2]", "assert pair(*helper()) == [1, 2]")
    assert row.assertions is None
    assert len(row.tests) == 1


def test_benchmarks_keep_their_calls_to_be_compared() -> None:
    fields = {"text": "Return both.", "code": PAIR, "task_id": 1, "test_list": list(SETS)}
    fields["test_list"].append("assert pair(5, 6) == [5, 6]")
    row = read("mbpp", **fields)
    assert row.assertions is None
    assert [test.input for test in row.tests] == ["5\n6"]


def test_programs_stay_tests_each_once_when_rows_are_cleaned() -> None:
    cleaned = normalise_tests(read_pair(*SETS, SETS[0]))
    assert isinstance(cleaned, Candidate)
    assert tuple(test.output for test in cleaned.tests) == SETS


def test_programs_are_merged_by_themselves_and_contradict_nothing() -> None:
    one = read_pair(*SETS)
    other = read_pair("assert pair(5, 6) == {5, 6}").model_copy(update={"id": "trl/2"})
    merged = merge(one, [other])
    assert len(merged.tests) == 3
    assert describe([one])[0].answers == {}


def test_calls_in_programs_count_as_examples() -> None:
    row = read("kodcode", question="Add them up.", test=RAISES, solution=TOTAL)
    calls = list_calls(row)
    assert [test.input for test in calls] == ["[1, 2]"]
    assert len(example_keys(row)) == 1


@pytest.mark.parametrize(
    ("statement", "signature", "reasons"),
    [
        ("Write a function to find the nth bell number.", "def f(n):", []),
        ("Write a function to find the nth bell number.", None, ["too_short"]),
        ("Write a function to solve gold mine problem.", "def f(gold):", ["too_short"]),
    ],
)
def test_a_short_statement_is_whole_beside_its_signature(
    statement: str, signature: str | None, reasons: list[str]
) -> None:
    row = Candidate(id="a/1", dataset="a", statement=statement, fn_name="f", starter_code=signature)
    found = check_quality(row) or ()
    assert list(found[:1]) == reasons


def read_brackets(test: str) -> Candidate | None:
    row = {"task_id": "HumanEval/61", "entry_point": "closed", "test": test}
    solution = "    return brackets.count('(') == brackets.count(')')\n"
    prompt = 'def closed(brackets: str):\n    """Whether every bracket is closed."""\n'
    try:
        return read("humaneval", **row, prompt=prompt, canonical_solution=solution)
    except Malformed as error:
        return error.candidate


def test_a_benchmarks_tests_without_any_call_that_is_compared_are_tests_as_published() -> None:
    test = "def check(candidate):\n    assert candidate('()')\n    assert not candidate('(')\n"
    row = read_brackets(test)
    assert row is not None
    assert row.assertions is not None
    assert row.tests[0].output == f"{test}\n\n\ncheck(candidate)\n"
    # Those that compare calls stay calls, whose inputs are known.
    called = read_brackets("def check(candidate):\n    assert candidate('()') == True\n")
    assert called is not None
    assert called.tests[0].input == '"()"'


def test_a_check_that_never_calls_the_answer_is_no_test() -> None:
    row = read_brackets("def check(candidate):\n    assert open('x')\n")
    assert row is None or not row.tests


def test_no_row_of_mbpp_is_lost_by_its_tests(tmp_path: Path) -> None:
    with tarfile.open(find_archive("mbpp")) as archive:
        archive.extract("mbpp/mbpp.jsonl", tmp_path, filter="data")
    # As a benchmark, or audited, the same.
    audited = list(collect_source(open_source(tmp_path, "mbpp")))
    assert sum(isinstance(row, Candidate) for row in audited) == 972
    columns = {"statement": "text", "tests": "test_list", "solutions": "code"}
    rows = list(collect_source(open_source(tmp_path, "trl", columns=columns)))
    candidates = [row for row in rows if isinstance(row, Candidate)]
    # The other two want a class of nodes that nobody states.
    assert len(candidates) == 972
    num_programs = sum(row.assertions is not None for row in candidates)
    assert 140 <= num_programs <= 150

"""Texts that tests expect and statements never name."""

import json
from typing import Any

import pytest

from microcoder.data.clean.flags import find_flags
from microcoder.data.clean.unstated import FLAG
from microcoder.data.filter.rules import check_quality
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.data.formats.columns import with_columns
from microcoder.data.formats.row import Row
from microcoder.data.formats.rows import load_format
from microcoder.judge.core.types import Assertions, Checker, TestCase
from tests.data.clean.real_texts import members, rows

Tests = dict[str, str]
VERDICTS = {'"0101"': "Yes", '"01a"': "No", '"11"': "Yes"}
COLUMNS = {"statement": "text", "tests": "test_list", "solutions": "code"}


def make(statement: str, texts: Tests, **fields: Any) -> Candidate:
    cases = [TestCase(input=given, output=json.dumps(text)) for given, text in texts.items()]
    fields = {"fn_name": "f", "tests": tuple(cases), **fields}
    return Candidate(id="a", dataset="d", statement=statement, **fields)


def test_a_verdict_that_the_statement_does_not_name_is_unstated() -> None:
    row = make("Check whether the given string of characters is a binary string or not.", VERDICTS)
    flagged = row.model_copy(update={"flags": find_flags(row), "starter_code": "def f(s):"})
    found = check_quality(flagged)
    assert found is not None
    assert found[0] == FLAG


@pytest.mark.parametrize(
    ("statement", "tests"),
    [
        ("Return Yes or No: is the string binary?", VERDICTS),
        ("Say which is larger.", {'"Ann"\n"Bob"': "Bob", '"Bob"\n"Al"': "Bob"}),
        ("Remove all blanks.", {'"py th"': "pyth", '"p yth"': "pyth"}),
        ("Return the cheapest word.", {f"{n}": "ab" if n < 2 else f"x{n}y" for n in range(30)}),
        ("Write the number in binary.", {"5": "101", "05": "101"}),
    ],
)
def test_other_texts_are_stated_or_made(statement: str, tests: Tests) -> None:
    assert FLAG not in find_flags(make(statement, tests))


def test_a_checker_of_its_own_decides_about_texts() -> None:
    row = make("Is it binary?", VERDICTS, checker=Checker(type="program", code="print(1)"))
    assert FLAG not in find_flags(row)


def test_printed_texts_and_assertions_are_read_too() -> None:
    printed = [TestCase(input=given, output=f"{text}\n") for given, text in VERDICTS.items()]
    assert FLAG in find_flags(make("Is it binary?", {}, fn_name=None, tests=tuple(printed)))
    program = "\n".join(f"assert f(({given},)) == {text!r}" for given, text in VERDICTS.items())
    asserted = make(
        "Is it binary?",
        {},
        tests=(TestCase(input="", output=program),),
        assertions=Assertions(),
    )
    assert FLAG in find_flags(asserted)


def test_an_assertion_that_is_too_deep_to_be_written_again_is_passed_over() -> None:
    chained = "f(a" + ".b()" * 600 + ")"
    program = f"assert {chained} == 'Yes'\nassert f(1) == 'Yes'\nassert f(2) == 'Yes'\n"
    tests = (TestCase(input="", output=program),)
    row = make("Is it binary?", {}, tests=tests, assertions=Assertions())
    assert FLAG in find_flags(row)


def test_mbpp_expects_texts_that_it_never_names() -> None:
    (content,) = members("mbpp", r".*\.jsonl").values()
    reader = with_columns(load_format("trl"), COLUMNS)
    found = []
    for number, values in enumerate(rows(content)):
        if number >= 60:
            break
        candidate = reader.read(Row(values, id=f"mbpp/{number}", dataset="mbpp"))
        if FLAG in find_flags(candidate):
            found.append(values["task_id"])
    assert found == [16, 43, 44, 53]


PI = "def f(r):\n    return 2 * 3.1415 * r\n"
ROUND = "def f(r):\n    return round(1 / r, 2)\n"


def valued(statement: str, outputs: tuple[str, ...], code: str = "") -> Candidate:
    tests = [TestCase(input=f"{n}", output=output) for n, output in enumerate(outputs)]
    solutions: tuple[Solution, ...] = ()
    if code:
        solutions = (Solution(code=code),)
    return make(statement, {}, tests=tuple(tests), solutions=solutions)


@pytest.mark.parametrize(
    ("statement", "outputs", "code"),
    [
        ("Find the last place of a character.", ("10", "7", "null"), ""),
        ("Returns true if they share an element.", ("true", "null", "true"), ""),
        ("Make the next larger number of its digits.", ("21", "false", "120"), ""),
        ("Find the first repeated word.", ('"ab"', '"None"', '"ca"'), ""),
        ("Find the first even word.", ('"ab"', '"-1"', '"ca"'), ""),
        ("Find the circumference of a circle.", ("6.283", "12.566"), PI),
        ("Find one divided by r.", ("0.33", "0.5"), ROUND),
        ("Check if it is a valid email.", ('"Valid Email"', '"Invalid"', '"Valid Email"'), ""),
        ("Check whether it is even or odd.", ('"Even"', '"Odd"', '"Odd"'), ""),
    ],
)
def test_a_value_that_the_statement_does_not_name_is_unstated(
    statement: str, outputs: tuple[str, ...], code: str
) -> None:
    assert FLAG in find_flags(valued(statement, outputs, code))


@pytest.mark.parametrize(
    ("statement", "outputs", "code"),
    [
        ("Find the last place, or None.", ("10", "7", "null"), ""),
        ("Return True if it is so, else the rest.", ("true", "3", "true"), ""),
        ("Find the first repeated word, None without one.", ('"ab"', '"None"', '"ca"'), ""),
        ("Find the first even word, or -1.", ('"ab"', '"-1"', '"ca"'), ""),
        ("Find the circumference; take 3.1415 for pi.", ("6.283", "12.566"), PI),
        ("Find one divided by r, to two decimals.", ("0.33", "0.5"), ROUND),
        ("Find one divided by r.", ("1.0", "0.5"), ROUND),
        ("Check whether it is even, and return 'Even' or 'Odd'.", ('"Even"', '"Odd"', '"Odd"'), ""),
        ("Check it, and return it reversed.", ('"ab"', '"ba"', '"cd"'), ""),
    ],
)
def test_a_value_that_is_named_or_computed_is_not(
    statement: str, outputs: tuple[str, ...], code: str
) -> None:
    assert FLAG not in find_flags(valued(statement, outputs, code))


@pytest.mark.parametrize(
    ("statement", "is_flagged"), [("Extract the pairs.", True), ("Return the set of pairs.", False)]
)
def test_a_set_is_no_list(statement: str, is_flagged: bool) -> None:
    program = TestCase(input="", output="assert f([1, 2]) == {1, 2}")
    row = make(statement, {}, assertions=Assertions(), tests=(program,))
    assert (FLAG in find_flags(row)) == is_flagged


THIRDS = {"1": 0.33, "2": 0.67, "4": 1.25}
ROUNDED = (Solution(code="def f(x): return round(x / 3, 2)", language="python"),)


@pytest.mark.parametrize(
    "asks",
    ["to two d.p.", "to the hundredth", "as %.2f", "in dollars and cents"],
)
def test_further_words_of_a_rounding_state_it(asks: str) -> None:
    assert FLAG not in find_flags(make_rounded(f"Return the share {asks}."))


def make_rounded(statement: str, **fields: Any) -> Candidate:
    tests = tuple(TestCase(input=given, output=str(value)) for given, value in THIRDS.items())
    return make(statement, {}, tests=tests, solutions=ROUNDED, **fields)


def test_a_rounding_that_the_checker_forgives_is_none_to_state() -> None:
    assert FLAG in find_flags(make_rounded("Return the share."))
    forgiving = Checker(type="float", absolute=0.01)
    assert FLAG not in find_flags(make_rounded("Return the share.", checker=forgiving))


@pytest.mark.parametrize("returned", ["Optional[int]", "int | None"])
def test_what_the_given_code_says_is_stated(returned: str) -> None:
    tests = tuple(TestCase(input=f"{n}", output=out) for n, out in enumerate(("null", "3", "4")))
    bare = make("Return the next prime.", {}, tests=tests, starter_code="def f(x):\n")
    assert FLAG in find_flags(bare)
    stated = bare.model_copy(update={"starter_code": f"def f(x: int) -> {returned}:\n"})
    assert FLAG not in find_flags(stated)

"""A row of each public format becomes a problem that accepts what is right;
what is exported is read back.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from microcoder import ConfigError, DataError, Outcome, Problem, Program, Verdict, read_problem
from microcoder.data.formats.format import recognise
from microcoder.data.formats.rows import FORMATS
from microcoder.data.formats.values import shorten
from microcoder.data.release import export
from microcoder.data.release.exports import EXPORTS
from microcoder.judge import Judge
from microcoder.judge.core.signatures import judged_by
from tests.data.formats.published_rows import ROWS, verl_row

NOT_ROWS = {name for name, found in FORMATS.items() if found.folders is not None}


@pytest.fixture(scope="module")
def verdicts() -> dict[str, tuple[Verdict, Verdict]]:
    """What one judge says of the right and of the wrong program of each row."""
    problems = [read_problem(published.row) for published in ROWS.values()]
    programs = []
    for published in ROWS.values():
        for code in (published.right, published.wrong):
            programs.append(Program(code))
    with Judge(workers=2) as judge:
        found = judge.judge(programs, [problem for problem in problems for _ in range(2)])
    return {name: (found[2 * place], found[2 * place + 1]) for place, name in enumerate(ROWS)}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_judged_as_its_format_says(
    name: str, verdicts: dict[str, tuple[Verdict, Verdict]]
) -> None:
    right, wrong = verdicts[name]
    assert right.outcome == Outcome.ACCEPTED, (
        right,
        wrong,
    )
    assert wrong.outcome == Outcome.WRONG_ANSWER, (
        right,
        wrong,
    )
    published = ROWS[name]
    assert read_problem(published.row, format=published.format) == read_problem(published.row)


LONG = 10**6000 + 7
"""An integer of 6,001 digits; Python itself reads and writes at most 4,300."""
DIGITS = f"1{'0' * 5999}7"
TWICE = f"2{'0' * 5998}14"
LONG_ROWS: dict[str, dict[str, Any]] = {
    "apps, text": {
        "input_output": f'{{"fn_name": "f", "inputs": [[{DIGITS}]], "outputs": [{TWICE}]}}'
    },
    "apps, an object": {
        "input_output": {"fn_name": "f", "inputs": [[LONG]], "outputs": [2 * LONG]}
    },
    "apps, negative": {
        "input_output": f'{{"fn_name": "f", "inputs": [[-{DIGITS}]], "outputs": [-{TWICE}]}}'
    },
    "apps, a literal": {
        "input_output": f"{{'fn_name': 'f', 'inputs': [[{DIGITS}]], 'outputs': [{TWICE}]}}"
    },
    "verl": {
        "data_source": "x",
        "ground_truth": f'{{"fn_name": "f", "inputs": ["{DIGITS}"], "outputs": ["{TWICE}"]}}',
        "extra_info": {},
    },
    "livecodebench": {
        "question_content": "Double it.",
        "private_test_cases": json.dumps(
            [{"input": DIGITS, "output": TWICE, "testtype": "functional"}]
        ),
        "metadata": '{"func_name": "f"}',
        "starter_code": "class Solution:\n    def f(self, a):\n        ",
    },
    "synthetic": {
        "verification_info": f'{{"test_cases": [{{"type": "function_call", "fn_name": "f", '
        f'"input": [{DIGITS}], "output": {TWICE}}}]}}'
    },
    "mbpp": {"task_id": 12, "text": "Double it.", "test_list": [f"assert f({DIGITS}) == {TWICE}"]},
    "humaneval": {
        "task_id": "HumanEval/0",
        "prompt": "def f(x):\n    pass\n",
        "entry_point": "f",
        "test": f"def check(candidate):\n    assert candidate({DIGITS}) == {TWICE}\n",
    },
    "an id": {"id": LONG, "input_output": {"fn_name": "f", "inputs": [[2]], "outputs": [4]}},
}
"""Rows of a function that doubles integers of more digits than Python reads."""


def judge_long_rows() -> list[set[Outcome]]:
    """Return the outcomes of a right and of a wrong program to all of these rows."""
    problems = [read_problem(row) for row in LONG_ROWS.values()]
    programs = [Program(f"def f(x):\n    return {factor} * x\n") for factor in (2, 3)]
    with Judge(workers=2) as judge:
        verdicts = [judge.judge([program] * len(problems), problems) for program in programs]
    outcomes = []
    for found in verdicts:
        outcomes.append({verdict.outcome for verdict in found})
    return outcomes


def test_integers_of_any_size_are_read_in_every_format() -> None:
    assert judge_long_rows() == [{Outcome.ACCEPTED}, {Outcome.WRONG_ANSWER}]


def test_integers_of_any_size_are_read_where_the_caller_has_lifted_the_limit() -> None:
    most_digits = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        assert judge_long_rows() == [{Outcome.ACCEPTED}, {Outcome.WRONG_ANSWER}]
    finally:
        sys.set_int_max_str_digits(most_digits)


@pytest.mark.parametrize(
    ("given", "arguments"), [("(1, 2)\n'a'", '[1, 2]\n"a"'), ("True", "true"), ("[1]", "[1]")]
)
def test_arguments_of_our_own_lines_may_be_python_literals(given: str, arguments: str) -> None:
    row = {"id": "a", "fn_name": "f", "tests": [{"input": given, "output": "(3, None)"}]}
    (test,) = read_problem(row).tests
    assert test.input == arguments
    assert test.output == "[3, null]"


def test_an_argument_of_our_own_lines_that_cannot_be_used_is_named() -> None:
    row = {"id": "a", "fn_name": "f", "tests": [{"input": "1\n{2, 3}", "output": "3"}]}
    with pytest.raises(DataError, match=r"argument 2 is or holds a value that no function"):
        read_problem(row)
    row["tests"] = [{"input": "open('x')", "output": "3"}]
    with pytest.raises(DataError, match=r"argument 1 is neither JSON nor a Python literal"):
        read_problem(row)


@pytest.mark.parametrize("num_assertions", [1, 2])
def test_a_row_may_have_one_assertion(num_assertions: int) -> None:
    asserted = ["assert f(1) == 2", "assert f(2) == 4"][:num_assertions]
    row = {"ground_truth": asserted, "dataset": "code", "messages": []}
    assert len(read_problem(row).tests) == num_assertions


def apps_row(inputs: list[Any], outputs: list[Any], **fields: Any) -> dict[str, Any]:
    return {"input_output": {"fn_name": "f", "inputs": inputs, "outputs": outputs}, **fields}


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        ("(1, 2)", "[1, 2]"),
        ("[(1, 2), (3,)]\n'a'", '[[1, 2], [3]]\n"a"'),
        ("None\nTrue", "null\ntrue"),
        ("{'a': (1,)}", '{"a": [1]}'),
        ("-1.5", "-1.5"),
    ],
)
def test_arguments_may_be_python_literals(given: str, arguments: str) -> None:
    assert read_problem(apps_row([given], ["[1]"])).tests[0].input == arguments


@pytest.mark.parametrize(
    ("given", "expected", "said"),
    [
        ("{1, 2}", "3", r"argument 1 is or holds a value that no function is given here \(a set"),
        ("1\nfoo(2)", "3", r"argument 2 is neither JSON nor a Python literal: foo\(2\)"),
        ("1", "{1, 2}", "the expected value is or holds a value that no function"),
        ("1", "foo", "the expected value is neither JSON nor a Python literal: foo"),
    ],
)
def test_a_value_that_cannot_be_used_is_named(given: str, expected: str, said: str) -> None:
    with pytest.raises(DataError, match=said):
        read_problem(apps_row([given], [expected]))


ONE = [[1], [5]]
"""Outputs that are lists of one."""
TWO = [[[1]], [[5]]]
"""Outputs that are lists of one with a list in them."""


@pytest.mark.parametrize(
    ("returns", "outputs", "expected"),
    [
        (" -> List[int]", ONE, ["[1]", "[5]"]),
        (" -> List[int]", TWO, ["[1]", "[5]"]),
        (" -> list[list[int]]", TWO, ["[[1]]", "[[5]]"]),
        (" -> Optional[List[int]]", ONE, ["[1]", "[5]"]),
        (" -> 'List[int]'", ONE, ["[1]", "[5]"]),
        (" -> list[int] | None", ONE, ["[1]", "[5]"]),
        (" -> typing.List[int]", ONE, ["[1]", "[5]"]),
        (" -> int", ONE, ["1", "5"]),
        (" -> int", TWO, ["[1]", "[5]"]),
        ("", ONE, ["1", "5"]),
    ],
)
def test_lists_of_one_are_left_where_the_starter_returns_a_list(
    returns: str,
    outputs: list[Any],
    expected: list[str],
) -> None:
    starter = f"class Solution:\n    def f(self, x){returns}:\n        "
    problem = read_problem(apps_row([[1], [2]], outputs, starter_code=starter))
    assert [test.output for test in problem.tests] == expected


def checker_of(statement: str, output: str = "0.25\n", fn_name: str = "") -> dict[str, Any]:
    tests = {"inputs": [["1"] if fn_name else "1"], "outputs": [output]}
    if fn_name:
        tests |= {"fn_name": fn_name, "inputs": [[1]], "outputs": [json.loads(output)]}
    problem = read_problem({"question": statement, "input_output": tests})
    return problem.checker.model_dump(exclude_defaults=True)


BOTH = {"type": "float", "tolerance": 1e-3}
ABSOLUTE = {"type": "float", "absolute": 1e-3}


@pytest.mark.parametrize(
    ("statement", "checker"),
    [
        ("Print the answer with error 10^-3.", BOTH),
        ("An absolute or relative error of 1e-3 is accepted.", BOTH),
        ("Answers within $10^{-3}$ of the actual value will be accepted.", BOTH),
        ("Answers within 10<sup>-3</sup> of the actual value will be accepted.", BOTH),
        ("Your output may differ from the right one by at most 0.001.", BOTH),
        ("The answer is correct if its absolute error does not exceed 10⁻³.", ABSOLUTE),
        ("Print it with a precision of 10**-3.", BOTH),
        (
            "The relative error of the result must be below 10−3.",
            {"type": "float", "relative": 1e-3},
        ),
        # More than the default allows a large number.
        (
            "The answer has an absolute or relative error of at most 10^-6.",
            {"type": "float", "tolerance": 1e-6},
        ),
        ("Print the answer. Each x is at least 10^-3.", {}),
        ("The absolute difference 10 - 1 is an answer.", {}),
        ("Your program must answer within 0.001 seconds.", {}),
        ("Print it with at least three digits after the decimal point.", ABSOLUTE),
        ("Print it with at least 3 decimal places.", ABSOLUTE),
        ("It is accepted if |a-b| / max(1, |b|) <= 10^-3.", BOTH),
        (r"It is accepted if $\frac{|a - b|}{\max{(1, |b|)}} \le 10^{-3}$.", BOTH),
        ("The judge asks for abs(a - b) < 1e-3.", ABSOLUTE),
        ("Errors smaller than 10⁻³ are ignored.", BOTH),
        ("Print how often you halve it until the difference is below 0.001.", {}),
        ("The values are given with a precision of 0.001.", {}),
        ("All |x - y| <= 0.001. Print the answer with at least one digit.", {}),
        ("Choose at least three numbers of the array and print their mean.", {}),
        ("Print the mean of all words with at least three digits of the answer.", {}),
        ("Print it with at least one digit after the decimal point.", {}),
        # Two places say nothing about the ninth.
        ("Print the answer with error 10^-9.", {}),
    ],
)
def test_a_tolerance_of_the_statement_is_that_of_the_row(
    statement: str, checker: dict[str, Any]
) -> None:
    assert checker_of(statement) == checker
    assert checker_of(statement, output="25\n") == {}, "no real number is expected"


@pytest.mark.parametrize(
    "asks",
    [
        "The input array need not be sorted. Return the prefix sums.",
        "The given list does not have to be sorted. Return it reversed.",
        "The array can be unordered. Return its running maxima.",
        "Return the number of ways for each size, where the order does not matter.",
        "Return the list of the counts of pairs, where order doesn't matter.",
    ],
)
def test_a_free_order_of_the_input_is_none_of_the_row(asks: str) -> None:
    assert checker_of(asks, "[1, 2]", "f") == {}


def test_any_order_of_the_statement_is_that_of_the_row() -> None:
    asked = "Return the indices in any order."
    assert checker_of(asked, "[1, 2]", "f") == {"type": "unordered"}
    assert checker_of(asked, "[[1, 2], [3]]", "f") == {"type": "unordered", "lists": "inner"}
    assert checker_of(asked, "3", "f") == {}


@pytest.mark.parametrize(
    ("asked", "checker"),
    [
        ("The result can be in any order.", {"type": "unordered"}),
        ("The returned list does not need to be sorted.", {"type": "unordered"}),
        ("Return the common elements; any order will do.", {"type": "unordered"}),
        ("Return the elements in whatever order.", {"type": "unordered"}),
        ("The order of operations does not matter.", {}),
        ("Any order of nums is possible. Return them in ascending order.", {}),
    ],
)
def test_a_free_order_is_read_in_rarer_words(asked: str, checker: dict[str, Any]) -> None:
    assert checker_of(asked, "[1, 2]", "f") == checker


@pytest.mark.parametrize("format", ["mbpp", "humaneval", "odex"])
def test_a_syntax_error_is_a_compile_error_whatever_the_tests_are(format: str) -> None:
    row = next(one.row for one in ROWS.values() if one.format == format)
    with Judge(workers=1) as judge:
        (verdict,) = judge.judge([Program("def f(:\n    pass\n")], [read_problem(row)])
    assert verdict.outcome == Outcome.COMPILE_ERROR
    assert "SyntaxError" in verdict.detail


def test_every_format_that_has_rows_is_judged_here() -> None:
    assert {published.format for published in ROWS.values()} >= FORMATS.keys() - NOT_ROWS


names = st.text(max_size=8)
values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=20)
    | st.lists(st.integers(), max_size=3)
)
marks = {name.split(".")[0] for found in FORMATS.values() for mark in found.marks for name in mark}


@given(
    name=st.sampled_from(sorted(ROWS)),
    more=st.dictionaries(names, values, max_size=5),
    data=st.data(),
)
def test_further_columns_and_their_order_change_nothing(
    name: str,
    more: dict[str, Any],
    data: st.DataObject,
) -> None:
    published = ROWS[name]
    unmarked = {}
    for key, value in more.items():
        if key not in marks:
            unmarked[key] = value
    columns = unmarked | published.row
    if published.format != "microcoder":
        shuffled = {key: columns[key] for key in data.draw(st.permutations(sorted(columns)))}
        found = recognise(shuffled, FORMATS.values())
        assert found is not None
        assert found.name == published.format


def read(row: dict[str, Any]) -> Problem | str:
    try:
        return read_problem(row)
    except DataError as error:
        return str(error)


fields = st.sampled_from(sorted(marks | {"id", "prompt", "extra_info"}))
texts = st.sampled_from(
    ["", "x", "[]", "{}", '{"inputs": ["1"], "outputs": ["2"]}', "assert f(1) == 2", "[[1]]"]
)


@given(
    st.dictionaries(fields, values | texts | st.dictionaries(fields, texts, max_size=3), max_size=6)
)
def test_any_row_is_a_problem_or_an_error_that_a_user_can_read(row: dict[str, Any]) -> None:
    found = read(row)
    assert found.tests if isinstance(found, Problem) else "row" in found and "\n" not in found


FIXTURE = "from solution import f\n\ndef test_f(tmp_path):\n    assert f(tmp_path)\n"


def without(name: str, field: str) -> dict[str, Any]:
    row = {}
    for key, value in ROWS[name].row.items():
        if key != field:
            row[key] = value
    return row


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"question": "?", "answer": "4"}, "fields answer, question is of no known format"),
        (
            without("livecodebench, stdin", "private_test_cases"),
            "field private_test_cases is missing; expected a list",
        ),
        (
            verl_row('{"inputs": ["1"], "outputs": []}'),
            r"ground_truth: 1 inputs, but 0 outputs; expected \{\"inputs\"",
        ),
        (verl_row(""), "reward_model.ground_truth holds no test"),
        ({"info": '{"tests": "[1"}'}, "field info.tests: neither JSON"),
        ({"task_type": "math", "verification_info": "{}"}, "not a programming task, but math"),
        (
            {"id": "a", "tests": [{"input": "1", "output": "2"}], "fn_name": "f", "note": 1},
            "note: unknown key",
        ),
        (
            ROWS["kodcode"].row | {"test": FIXTURE},
            "field test: the test cannot be judged: test_f takes fixtures of pytest: tmp_path",
        ),
        (
            {"test_list": ["print(1)"], "task_id": 3},
            "'3' .mbpp.: field test_list: the first assertion calls no",
        ),
        (ROWS["codecontests"].row | {"input_file": "a.in"}, "its programs read and write files"),
        (
            {"statement": "?", "testz": []},
            "no known format .did you mean tests by testz.*; name it",
        ),
        ({"statement": "?", "tests": None}, "tests is of no known format; name it"),
    ],
)
def test_a_row_that_cannot_be_judged_says_which_field(row: dict[str, Any], why: str) -> None:
    with pytest.raises(DataError, match=why):
        read_problem(row)


def test_an_unknown_format_and_what_is_no_row_are_refused() -> None:
    tests = [{"input": "1", "output": "2"}]
    assert read_problem({"id": "a", "tests": tests, "language": "C++", "note": 1}).language == "cpp"
    with pytest.raises(ConfigError, match=r"unknown format 'humanevl'; did you mean humaneval\?"):
        read_problem({}, format="humanevl")
    with pytest.raises(DataError, match="format 'kattis' is a folder of files"):
        read_problem({}, format="kattis")
    with pytest.raises(DataError, match="a row is list, not a mapping"):
        read_problem([1])  # type: ignore[arg-type]  # pyrefly: ignore[bad-argument-type]


def test_arrays_of_pandas_and_parquet_are_lists() -> None:
    numpy = pytest.importorskip("numpy")
    row = ROWS["codecontests"].row | {
        "public_tests": {"input": numpy.array(["1 2\n"]), "output": numpy.array(["3\n"])},
        "cf_rating": numpy.int64(800),
        "time_limit": {"seconds": numpy.int64(2), "nanos": None},
        "untranslated_description": float("nan"),
    }
    assert read_problem(row) == read_problem(ROWS["codecontests"].row)


def test_a_message_about_a_set_is_the_same_in_every_process() -> None:
    letters = "abcdefghijklmnop"  # in one order by chance once in 20 million million
    assert shorten([{*letters}, ({1: {2, "x"}}, 3), (4,)], 200) == (
        f"[{{{', '.join(map(repr, letters))}}}, ({{1: {{'x', 2}}}}, 3), (4,)]"
    )


PAGE = (Path(__file__).parents[3] / "docs" / "rows.md").read_text(encoding="utf-8")


def test_a_limit_counts_wherever_a_format_has_what_it_says_of_a_problem() -> None:
    tests = {"inputs": ["1"], "outputs": ["1"]}
    limits = {"time_limit": "500 ms", "memory_limit": 64}
    for row in (
        {"input_output": tests, **limits},
        {"tests": tests, "metadata": limits},
        {"info": {"tests": tests, **limits}},
        {"ground_truth": tests, "extra_info": limits},
        {"verifier_metadata": {"unit_tests": tests, **limits}},
    ):
        problem = read_problem(row)
        assert problem.time_limit_seconds == 0.5
        assert problem.memory_limit_mib == 64


def test_every_format_and_every_form_is_on_the_page() -> None:
    for name, found in FORMATS.items():
        lines = []
        for line in PAGE.splitlines():
            if f"`{name}`" in line:
                lines.append(line)
        assert lines, name
        if found.folders is None:
            row = next(line for line in lines if line.startswith("|"))
            assert any(field.strip() in row for field in re.split(r", | or ", found.tests_in)), name
    undescribed = []
    for form in EXPORTS:
        if f"| `{form}` |" not in PAGE:
            undescribed.append(form)
    assert undescribed == []


PROBLEMS = [
    read_problem(published.row).model_copy(update={"id": name}) for name, published in ROWS.items()
]


def read_back(path: Path, form: str) -> list[dict[str, Any]]:
    if form == "verl":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("form", ["verl", "trl", "nemogym", "verifiers", "jsonl"])
def test_an_exported_row_judges_the_same(form: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    export(PROBLEMS, path, form=form)
    found = [read_problem(row) for row in read_back(path, form)]
    assert [(one.id, judged_by(one)) for one in found] == [
        (one.id, judged_by(one)) for one in PROBLEMS
    ]
    # What a reward function gets of it is enough.
    for row, problem in (
        zip(read_back(path, form), PROBLEMS, strict=True) if form in ("verl", "nemogym") else ()
    ):
        if form == "verl":
            found = read_problem(
                {"ground_truth": row["reward_model"]["ground_truth"]} | {"data_source": "any"}
            )
            assert found.tests == problem.tests
            assert found.assertions == problem.assertions
        else:
            assert read_problem({"verifier_metadata": row["verifier_metadata"]}) == problem


def test_the_old_name_reads_the_same_and_says_the_new_one() -> None:
    row = ROWS["codecontests"].row
    with pytest.warns(DeprecationWarning, match="from microcoder import read_problem"):
        problem = Problem.from_row(row, "codecontests")
    assert problem == read_problem(row, "codecontests")

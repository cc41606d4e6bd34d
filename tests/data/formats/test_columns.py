"""Rows of one's own: which column holds what, and problem files made of rows."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from microcoder import ConfigError, DataError, read_problem
from microcoder.data import read_problems
from microcoder.data.benchmarks import HumanEval, LiveCodeBench, Mbpp, ProblemFile
from microcoder.data.corpus.inputs import list_inputs, open_settings
from microcoder.data.corpus.settings import SourceSettings
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.columns import parse_columns
from microcoder.data.release.convert import convert
from microcoder.data.release.problems import explain_rows, read_published
from microcoder.data.sources import collect_source
from microcoder.judge.core.config import load_config
from microcoder.train.run.starter import Wishes, write_recipe

OWN: dict[str, Any] = {
    "uid": 7,
    "task": {"text": "Double it.", "cases": [{"given": "1\n", "wanted": "2\n"}]},
}
"""A row whose columns no format has."""
NAMED = {
    "id": "uid",
    "statement": "task.text",
    "tests": "task.cases",
    "input": "given",
    "output": "wanted",
}


def test_columns_are_named_by_option() -> None:
    problem = read_problem(OWN, columns=NAMED)
    assert problem.id == "7"
    assert problem.statement == "Double it."
    assert [(test.input, test.output) for test in problem.tests] == [("1\n", "2\n")]
    text = "id=uid, statement=task.text,tests=task.cases,input=given,output=wanted"
    assert parse_columns(text) == NAMED
    assert read_problem(OWN, "trl", columns=NAMED) == problem


@pytest.mark.parametrize(
    ("row", "columns"),
    [
        ({**OWN, "task": json.dumps(OWN["task"])}, NAMED),
        (
            {"uid": 7, "q": "Double it.", "i": ["1\n"], "o": ["2\n"]},
            {"id": "uid", "statement": "q", "inputs": "i", "outputs": "o"},
        ),
        (
            {
                "uid": "7",
                "question": "Double it.",
                "input_output": '{"inputs": ["1\\n"], "outputs": ["2\\n"]}',
            },
            {"id": "uid"},
        ),
        (
            {"uid": 7, "text": "Double it.", "t": '[{"stdin": "1\\n", "expected_output": "2\\n"}]'},
            {"id": "uid", "statement": "text", "tests": "t"},
        ),
        (
            {
                "id": "x",
                "uid": 7,
                "statement": "Double it.",
                "tests": [{"stdin": "1\n", "stdout": "2\n"}],
            },
            {"id": "uid"},
        ),
    ],
)
def test_columns_of_every_shape_give_the_same_problem(
    row: Mapping[str, Any], columns: Mapping[str, str]
) -> None:
    problem = read_problem(row, columns=columns)
    assert problem == read_problem(OWN, columns=NAMED)


def test_a_function_and_its_starter_code_are_named_too() -> None:
    row = {"k": "a", "q": "Double it.", "c": [{"in": "[1]", "out": "2"}], "f": {"name": "g"}}
    named = "id=k,statement=q,tests=c,input=in,output=out,fn_name=f.name"
    problem = read_problem(row, columns=parse_columns(named))
    assert problem.fn_name == "g"


@pytest.mark.parametrize("keys", [("stdin", "stdout"), ("input", "expected_output")])
def test_usual_keys_of_tests_are_read_without_being_named(keys: tuple[str, str]) -> None:
    tests = [dict(zip(keys, ("1\n", "2\n"), strict=True))]
    row = {"uid": "a", "statement": "Double it.", "tests": tests}
    problem = read_problem(row)
    assert problem.id.endswith("a")
    assert problem.statement == "Double it."
    assert problem.tests[0].output == "2\n"


@pytest.mark.parametrize(
    ("columns", "error", "said"),
    [
        (
            {**NAMED, "tests": "task.case"},
            DataError,
            r"column task.case \(named for tests\) is missing or null; "
            r"the row has task.cases, task.text, uid",
        ),
        (
            {**NAMED, "id": "key"},
            DataError,
            r"column key \(named for id\) is missing or null; the row has",
        ),
        (
            {**NAMED, "input": "in"},
            DataError,
            r"test 1 has no in \(named for input\), but given, wanted",
        ),
        (
            {"id": "uid", "statement": "task.text", "tests": "task.cases"},
            DataError,
            (
                "test 1 has no input and no output, but given, wanted; name its keys, as in "
                "columns input=stdin"
            ),
        ),
        (
            {"statment": "uid"},
            ConfigError,
            "'statment' is no field of a problem; did you mean statement?",
        ),
        (
            {"statement": "task.text", "inputs": "uid"},
            ConfigError,
            "inputs and outputs go together",
        ),
    ],
)
def test_what_was_found_and_what_was_wanted_is_said(
    columns: Mapping[str, str],
    error: type[Exception],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        read_problem(OWN, columns=columns)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("time_limit", "fast", r"column limit \(named for time_limit\) is 'fast'; write seconds"),
        ("time_limit", -1, r"is '-1'; write seconds"),
        ("memory_limit", "much", r"is 'much'; write MiB"),
    ],
)
def test_a_named_limit_that_cannot_be_read_is_an_error(
    field: str,
    value: object,
    said: str,
) -> None:
    with pytest.raises(DataError, match=said):
        read_problem({**OWN, "limit": value}, columns={**NAMED, field: "limit"})


def test_a_named_limit_is_read_with_its_unit() -> None:
    row = {**OWN, "seconds": "500 ms", "memory": "1 GB"}
    columns = {**NAMED, "time_limit": "seconds", "memory_limit": "memory"}
    problem = read_problem(row, columns=columns)
    assert problem.time_limit_seconds == 0.5
    assert problem.memory_limit_mib == 1024


def test_a_form_of_columns_that_is_none_is_an_error() -> None:
    with pytest.raises(ConfigError, match="'uid' is no FIELD=COLUMN"):
        parse_columns("id=x,uid")


def test_a_reader_that_is_no_table_takes_the_id_alone() -> None:
    row = mbpp_row(12, uid="own")
    assert read_problem(row, columns={"id": "uid"}).id == "own"
    with pytest.raises(ConfigError, match="the reader of mbpp takes only id; leave out statement"):
        read_problem(row, columns={"statement": "uid"})


def mbpp_row(number: int, **fields: Any) -> dict[str, Any]:
    return {
        "task_id": number,
        "text": f"Write a function to add {number}.",
        "code": f"def f(x):\n    return x + {number}",
        "test_list": [f"assert f(1) == {number + 1}"],
        **fields,
    }


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_a_problem_file_is_made_of_rows(tmp_path: Path) -> None:
    rows = [mbpp_row(number) for number in (5, 11, 510, 511, 601)]
    rows += [mbpp_row(602, test_list=["assert 1"]), mbpp_row(601)]
    source = write_rows(tmp_path / "mbpp.jsonl", rows)
    done = convert(source, tmp_path / "problems.jsonl")
    assert done.num_problems == 3
    assert done.num_rows == 7
    left_out = {why.partition(":")[0]: places for why, places in done.left_out.items()}
    assert left_out["rows of MBPP's test split (task_id 11 to 510)"] == ("11", "510")
    assert left_out["the id was used before; each may appear once"] == ("601",)
    assert sum(map(len, left_out.values())) == 4
    problems = read_problems(tmp_path / "problems.jsonl")
    assert [problem.id for problem in problems] == ["mbpp/5", "mbpp/511", "mbpp/601"]
    everything = convert(source, tmp_path / "all.jsonl", with_test_rows=True)
    assert everything.num_problems == 5


def test_no_problem_file_is_left_where_nothing_or_not_all_could_be_read(tmp_path: Path) -> None:
    output = tmp_path / "problems.jsonl"
    source = write_rows(tmp_path / "mbpp.jsonl", [mbpp_row(12)])
    with pytest.raises(
        DataError, match="none of its 1 rows became a problem\n1 left out: rows of MBPP's test"
    ):
        convert(source, output)
    assert not output.exists()
    source.write_text(json.dumps(mbpp_row(601)) + "\n{broken\n")
    with pytest.raises(DataError, match="line 2 is not JSON"):
        convert(source, output)
    assert not output.exists()
    with pytest.raises(ConfigError, match="choose another -o"):
        convert(source, source)
    with pytest.raises(ConfigError, match=r"name one that ends in \.jsonl"):
        convert(source, tmp_path / "problems.json")


def test_raw_rows_in_place_of_problems_are_named(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "train.jsonl", [mbpp_row(601)])
    said = "holds rows of mbpp .* type: microcoder data convert .* -o problems.jsonl"
    for path in (source, tmp_path):
        with pytest.raises(DataError, match=said):
            read_problems(path)
        wishes = Wishes(model="owner/name", problems=str(path), heldout="test", gpu="cpu")
        with pytest.raises(ConfigError, match=said):
            write_recipe(wishes)
    convert(source, tmp_path / "problems.jsonl")
    assert explain_rows(tmp_path / "problems.jsonl") == ""


def test_an_evaluation_says_which_rows_of_mbpp_it_takes(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "mbpp.jsonl", [mbpp_row(601)])
    said = (
        "none of the 1 problems is selected; MBPP's test has the task_id 11 to "
        "510.*--benchmark.kind problems"
    )
    with pytest.raises(DataError, match=said):
        Mbpp(kind="mbpp", path=source).read()


def test_a_problem_file_of_an_evaluation_takes_columns(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", [OWN])
    columns = ",".join(f"{field}={column}" for field, column in NAMED.items())
    (question,) = ProblemFile(kind="problems", path=source, columns=columns).read()
    assert question.id == "7"


def test_of_mbpp_what_is_for_training_is_trained_on(tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(
        "".join(json.dumps(mbpp_row(n)) + "\n" for n in (12, 601))
    )
    found = read_published(
        str(tmp_path),
        is_trained_on=True,
        revision=None,
        subset="default",
        split="train",
        format_name="mbpp",
    )
    assert len(found.problems) == 1
    assert found.left_out == {"test_of_mbpp": 1}


HUMANEVAL = {
    "task_id": "HumanEval/0",
    "prompt": "def one():\n",
    "entry_point": "one",
    "canonical_solution": "    return 1\n",
    "test": "def check(candidate):\n    assert candidate() == 1\n",
}
PROBLEM = {"id": "own/1", "statement": "Double it.", "tests": [{"input": "1", "output": "2"}]}
READERS = {"humaneval": HumanEval, "mbpp": Mbpp, "livecodebench": LiveCodeBench}


@pytest.mark.parametrize(
    ("kind", "row", "other"),
    [
        ("livecodebench", PROBLEM, "problems"),
        ("livecodebench", HUMANEVAL, "humaneval"),
        ("mbpp", HUMANEVAL, "humaneval"),
        ("mbpp", PROBLEM, "problems"),
        ("humaneval", PROBLEM, "problems"),
        ("humaneval", mbpp_row(601), "mbpp"),
    ],
)
def test_a_file_of_another_benchmark_is_named_with_what_to_type(
    kind: str,
    row: dict[str, Any],
    other: str,
    tmp_path: Path,
) -> None:
    source = write_rows(tmp_path / "rows.jsonl", [row])
    benchmark = READERS[kind].model_validate({"kind": kind, "path": source})
    with pytest.raises(DataError, match=f"not of {kind}; type: --benchmark.kind {other} "):
        benchmark.read()


def test_a_broken_row_of_the_benchmark_itself_is_said_as_before(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "rows.jsonl", [{**HUMANEVAL, "test": "print(1)"}])
    with pytest.raises(DataError, match="line 1"):
        HumanEval(kind="humaneval", path=source).read()


def test_a_source_of_a_build_takes_columns(tmp_path: Path) -> None:
    source = write_rows(tmp_path / "own.jsonl", [OWN])
    columns_of = []
    for field, column in NAMED.items():
        if field != "id":
            columns_of.append(f"{field}={column}")
    named = ",".join(columns_of)
    settings = SourceSettings(path=str(source), format="trl", columns=named)
    (candidate,) = collect_source(open_settings(settings))
    assert isinstance(candidate, Candidate)
    problem = candidate.to_problem()
    assert problem.statement == read_problem(OWN, columns=NAMED).statement
    assert problem.tests == read_problem(OWN, columns=NAMED).tests
    # Other columns are other rows: nothing of the first is taken from the cache.
    other = settings.model_copy(update={"columns": "statement=uid"})
    shards = [list_inputs([one], rows_per_shard=8) for one in (settings, other)]
    assert shards[0][0].digest != shards[1][0].digest


@pytest.mark.parametrize(
    ("columns", "said"),
    [("id=uid", "leave out id"), ("statment=uid", "did you mean statement"), ("uid", "FIELD=")],
)
def test_columns_that_a_build_cannot_take_are_an_error(
    columns: str,
    said: str,
    tmp_path: Path,
) -> None:
    source = write_rows(tmp_path / "own.jsonl", [OWN])
    settings = {"path": str(source), "format": "trl", "columns": columns}
    with pytest.raises(ConfigError, match=said):
        load_config(SourceSettings, layers=[settings])

"""Files whose form nobody named: what they are taken for."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from microcoder.cli import main
from microcoder.eval.recognition import Recognised, recognise_files
from microcoder.judge.core.errors import DataError

ADD = "a, b = map(int, input().split())\nprint(a + b)"
TWICE = "print(2 * int(input()))"
CASES = [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "4 5\n", "stdout": "9\n"}]
DOUBLES = [{"stdin": "1\n", "stdout": "2\n"}]


def fenced(code: str) -> str:
    return f"Here it is.\n```python\n{code}\n```\n"


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    with path.open("w") as file:
        for row in rows:
            file.write(f"{json.dumps(row)}\n")
    return path


def write_problems(folder: Path) -> Path:
    """Write the problems without an answer."""
    rows = []
    for row in ROWS:
        rows.append({**row, "model_output": ""})
    return write_lines(folder / "p.jsonl", rows)


def names_of(found: Recognised) -> list[str]:
    """Return the problem of each answer."""
    names = []
    for answer in found.answers:
        names.append(str(answer["problem_id"]))
    return names


ROWS = [
    {"uid": "sum", "question": "Print the sum.", "cases": CASES, "model_output": fenced(ADD)},
    {"uid": "two", "question": "Print twice it.", "cases": DOUBLES, "model_output": fenced(TWICE)},
]


def test_columns_of_unknown_names_are_told_by_their_values(tmp_path: Path) -> None:
    found = recognise_files([write_lines(tmp_path / "rows.jsonl", ROWS)])
    assert names_of(found) == ["sum", "two"]
    assert found.problems[0].statement == "Print the sum."
    assert found.problems[0].tests[1].output == "9\n"
    assert found.answers[0] == {"problem_id": "sum", "response": fenced(ADD)}
    assert "tests=cases,input=stdin,output=stdout" in found.said[0]


def test_a_table_of_text_holds_lists_in_its_cells(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["task_id", "prompt", "tests", "generated_code"])
        tests = []
        for case in CASES:
            tests.append({"input": case["stdin"], "expected_output": case["stdout"]})
        writer.writerow(["sum", "Print the sum.", str(tests), ADD])
    found = recognise_files([path])
    assert found.problems[0].tests[0].input == "1 2\n"
    assert found.answers[0]["response"] == ADD


def test_an_object_of_rows_by_name_is_a_table(tmp_path: Path) -> None:
    problems = {
        "sum": {"description": "Add.", "inputs": ["1 2"], "outputs": ["3"]},
        "two": {"description": "Double.", "inputs": ["1"], "outputs": ["2"]},
    }
    (tmp_path / "problems.json").write_text(json.dumps(problems))
    answers = [{"problem": "two", "choices": [fenced(TWICE), "print(1)"], "lang": "python"}]
    (tmp_path / "answers.json").write_text(json.dumps(answers))
    found = recognise_files([tmp_path / "problems.json", tmp_path / "answers.json"])
    assert found.answers == ({"problem_id": "trl/two", "response": [fenced(TWICE), "print(1)"]},)


def test_either_file_may_come_first(tmp_path: Path) -> None:
    problems = write_problems(tmp_path)
    answers = write_lines(tmp_path / "a.jsonl", [{"q": "two", "text": TWICE}])
    first = recognise_files([problems, answers])
    second = recognise_files([answers, problems])
    assert first.answers == second.answers == ({"problem_id": "two", "response": TWICE},)


def test_rows_of_one_problem_are_one_problem(tmp_path: Path) -> None:
    rows = []
    for code in (ADD, TWICE, "print(3)"):
        rows.append({**ROWS[0], "model_output": fenced(code)})
    found = recognise_files([write_lines(tmp_path / "rows.jsonl", rows)])
    assert len(found.problems) == 1
    assert len(found.answers) == 3


def test_two_problems_of_one_name_are_told_apart(tmp_path: Path) -> None:
    rows = [ROWS[0], {**ROWS[1], "uid": "sum"}]
    found = recognise_files([write_lines(tmp_path / "rows.jsonl", rows)])
    assert names_of(found) == ["sum", "sum-2"]


def test_answers_that_name_nothing_belong_to_the_same_row(tmp_path: Path) -> None:
    problems = write_problems(tmp_path)
    answers = write_lines(tmp_path / "a.jsonl", [{"text": ADD}, {"text": TWICE}])
    found = recognise_files([problems, answers])
    assert names_of(found) == ["sum", "two"]
    assert "of the same row" in found.said[-1]


def test_references_are_judged_where_nothing_else_is_there(tmp_path: Path) -> None:
    row = {
        "task_id": "HumanEval/0",
        "prompt": "def f(x):\n    ",
        "entry_point": "f",
        "canonical_solution": "return x\n",
        "test": "def check(candidate):\n    assert candidate(1) == 1\n",
    }
    found = recognise_files([write_lines(tmp_path / "rows.jsonl", [row])])
    assert "their own references are judged" in found.said[-1]
    assert found.answers[0]["code"].rstrip().endswith("return x")


def test_files_without_tests_say_what_is_missing(tmp_path: Path) -> None:
    answers = write_lines(tmp_path / "a.jsonl", [{"id": 1, "text": ADD}])
    with pytest.raises(DataError, match="has answers in text and no tests"):
        recognise_files([answers])


def test_problems_without_answers_say_what_is_missing(tmp_path: Path) -> None:
    rows = [{"uid": "sum", "question": "Print the sum.", "cases": CASES}]
    with pytest.raises(DataError, match="no answers and no references"):
        recognise_files([write_lines(tmp_path / "p.jsonl", rows)])


def test_answers_that_cannot_be_assigned_are_no_guess(tmp_path: Path) -> None:
    problems = write_problems(tmp_path)
    answers = write_lines(tmp_path / "a.jsonl", [{"text": ADD}])
    with pytest.raises(DataError, match="no column of the answers names a problem"):
        recognise_files([problems, answers])


def test_the_command_judges_a_file_of_any_form(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write_lines(tmp_path / "rows.jsonl", [ROWS[0], {**ROWS[1], "model_output": "print(3)"}])
    main(["judge", "rows.jsonl", "--workers", "1", "--json"])
    printed = capsys.readouterr()
    results = json.loads(printed.out)
    assert results["num_questions"] == 2
    assert results["outcomes"]["accepted"] == 1
    assert "microcoder judge --problems runs/read-" in printed.err


def test_names_of_columns_say_more_than_numbers_that_happen_to_fit(tmp_path: Path) -> None:
    problems = []
    answers = []
    for number, row in enumerate(ROWS):
        problems.append({"idx": number, "task_id": f"T/{number}", "question": "?", **row})
    for number in (1, 0):
        answers.append({"sample": 0, "task_id": f"T/{number}", "completion": TWICE})
    write_lines(tmp_path / "p.jsonl", problems)
    write_lines(tmp_path / "a.jsonl", answers)
    found = recognise_files([tmp_path / "p.jsonl", tmp_path / "a.jsonl"])
    assert names_of(found) == [found.problems[1].id, found.problems[0].id]


def test_answers_that_repeat_the_tests_are_still_the_answers(tmp_path: Path) -> None:
    problems = []
    answers = []
    for row in ROWS:
        shared = {"id": row["uid"], "question": row["question"], "tests": row["cases"]}
        problems.append({**shared, "solutions": [TWICE]})
        answers.append({**shared, "response": "```python\nprint(3)\n```"})
    first = write_lines(tmp_path / "p.jsonl", problems)
    second = write_lines(tmp_path / "a.jsonl", answers)
    assert recognise_files([first, second]).answers == recognise_files([second, first]).answers


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("rows.csv", b"id,tests,code\n", "is empty"),
        ("rows.csv", "id,tests\n\xe9,1\n".encode("latin-1"), "write it in UTF-8"),
        ("rows.json", b"[]", "is empty"),
    ],
)
def test_files_that_hold_nothing_say_so(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=why):
        recognise_files([tmp_path / name])


def test_an_indented_object_with_one_list_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps({"data": ROWS}, indent=2))
    assert names_of(recognise_files([tmp_path / "rows.json"])) == ["sum", "two"]

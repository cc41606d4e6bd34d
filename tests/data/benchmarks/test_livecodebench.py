"""LiveCodeBench files as published: read whole, selected, refused where broken;
nothing of them is executed.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from microcoder.data.benchmarks import LiveCodeBench, Question
from microcoder.data.benchmarks.questions import release_files
from microcoder.judge.core.errors import ConfigError, DataError
from tests.data.published import make_call_row, make_row, write_rows


def read_livecodebench(path: Path, **keys: Any) -> list[Question]:
    return LiveCodeBench.model_validate({"path": path, **keys}).read()


def test_a_file_becomes_questions_ordered_by_id(tmp_path: Path) -> None:
    path = write_rows(
        tmp_path / "test.jsonl", [make_row("abc1_b"), make_call_row("3001"), make_row("abc1_a")]
    )
    questions = read_livecodebench(path)
    assert [question.id for question in questions] == ["3001", "abc1_a", "abc1_b"]
    call, stdin, _ = questions
    assert call.platform == "leetcode"
    assert call.difficulty == "medium"
    assert call.date == datetime(2024, 8, 10, 19, 30)
    assert call.problem.fn_name == "double"
    assert (call.problem.starter_code or "").startswith("class Solution")
    assert stdin.problem.fn_name is None
    problem = stdin.load()
    assert [(test.input, test.output) for test in problem.tests] == [
        ("1 2\n", "3\n"),
        ("5 6\n", "11\n"),
    ]
    assert problem.tier == "easy"
    assert problem.time_limit_seconds == 6.0


def test_problems_are_selected(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "test.jsonl", [make_row(), make_call_row()])
    for selection, names in (
        ({"start_date": "2024-05-02"}, ["3001"]),
        ({"start_date": "2024-05-01", "end_date": "2024-08-11"}, ["3001", "abc1_a"]),
        # As LiveCodeBench compares: the end is the midnight before that day's contest.
        ({"end_date": "2024-08-10"}, ["abc1_a"]),
    ):
        assert [question.id for question in read_livecodebench(path, **selection)] == names


def test_a_release_is_a_choice_of_files() -> None:
    assert release_files("release_v3") == ["test.jsonl", "test2.jsonl", "test3.jsonl"]
    assert release_files("v2") == ["test2.jsonl"]
    assert release_files("v4_v6") == ["test4.jsonl", "test5.jsonl", "test6.jsonl"]
    assert release_files("release_latest") == release_files("release_v6")
    for unknown in ("release_v0", "release_v7", "v3_v2", "latest"):
        with pytest.raises(ConfigError, match="is unknown; use release_v1"):
            release_files(unknown)


def test_a_release_is_read_from_a_folder(tmp_path: Path) -> None:
    write_rows(tmp_path / "test.jsonl", [make_row("a")])
    write_rows(tmp_path / "test2.jsonl", [make_row("b")])
    assert [question.id for question in read_livecodebench(tmp_path, release="release_v2")] == [
        "a",
        "b",
    ]
    with pytest.raises(DataError, match=r"lacks test3\.jsonl"):
        read_livecodebench(tmp_path, release="release_v3")
    with pytest.raises(ConfigError, match="is not a folder"):
        read_livecodebench(tmp_path / "test.jsonl", release="release_v1")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (make_row(contest_date="yesterday"), "'yesterday' is not an ISO date"),
        (
            make_row(public_test_cases="[]", private_test_cases="[]"),
            "private_test_cases holds no test",
        ),
        (
            make_row(metadata=json.dumps({"func_name": "f"})),
            "metadata names the function 'f'; they must have none",
        ),
        (make_call_row(metadata="{}"), "calls of a function that is not named"),
        (
            make_row(private_test_cases="?"),
            "field private_test_cases: it is neither JSON nor base64",
        ),
        (make_row(private_test_cases='{"a": 1}'), "private_test_cases: neither inputs and outputs"),
        (
            make_row(public_test_cases='[{"input": 1}]'),
            "field public_test_cases: test 1 has no output, but input",
        ),
        (
            make_row(public_test_cases='[{"input": "", "output": "", "testtype": "x"}]'),
            "test 1 is of type x",
        ),
    ],
)
def test_a_broken_row_is_refused_by_file_and_line(
    tmp_path: Path,
    row: dict[str, Any],
    why: str,
) -> None:
    path = write_rows(tmp_path / "test.jsonl", [make_row("fine"), row])
    with pytest.raises(DataError, match=rf"test\.jsonl line 2: .*{why}"):
        read_livecodebench(path)


def test_no_json_no_file_and_an_id_twice_are_refused(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl").write_text("{\n")
    write_rows(tmp_path / "d.jsonl", [make_row(), make_row()])
    (tmp_path / "e.csv").touch()
    whys = {
        "b.jsonl": "line 1 is not JSON",
        "c.jsonl": "does not exist",
        "d.jsonl": "was used before",
    }
    for name, why in {**whys, "e.csv": "tables of text are not"}.items():
        with pytest.raises(DataError, match=why):
            read_livecodebench(tmp_path / name)


def test_broken_rows_can_be_left_out_and_are_told(tmp_path: Path) -> None:
    told: list[str] = []
    rows = [make_row("fine"), make_row("bad", private_test_cases="?")]
    questions = LiveCodeBench(path=write_rows(tmp_path / "test.jsonl", rows)).read(
        on_broken=told.append
    )
    assert [question.id for question in questions] == ["fine"]
    assert len(told) == 1
    assert "line 2: row 'bad' (livecodebench): field private_test_cases: it is neither" in told[0]


def test_a_file_that_changes_under_way_is_refused(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "test.jsonl", [make_row()])
    (question,) = read_livecodebench(path)
    write_rows(path, [make_row(difficulty="hard")])
    with pytest.raises(DataError, match="has changed"):
        question.load()


def test_a_dialect_is_part_of_the_problem_and_of_its_digest(tmp_path: Path) -> None:
    path = write_rows(tmp_path / "test.jsonl", [make_row("a")])
    (plain,), (theirs,) = (
        read_livecodebench(path),
        read_livecodebench(path, dialect="livecodebench"),
    )
    assert plain.load().dialect == "plain"
    assert theirs.load().dialect == "livecodebench"
    assert plain.digest != theirs.digest

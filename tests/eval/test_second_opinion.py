"""Another judge's verdicts beside ours."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from microcoder.cli import main
from microcoder.eval.second_opinion import index_opinions, read_opinion
from microcoder.judge.core.errors import DataError

ADD = "a, b = map(int, input().split())\nprint(a + b)"
CASES = [{"stdin": "1 2\n", "stdout": "3\n"}, {"stdin": "4 5\n", "stdout": "9\n"}]


def judge_against(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    *answers: tuple[str, object],
    cases: list[dict[str, str]] | None = None,
) -> str:
    monkeypatch.chdir(folder)
    lines = []
    for code, reward in answers:
        row: dict[str, Any] = {"uid": "sum", "question": "Add.", "cases": cases or CASES}
        lines.append(json.dumps({**row, "model_output": code, "reward": reward}) + "\n")
    (folder / "rows.jsonl").write_text("".join(lines))
    main(["judge", "rows.jsonl", "--against", "reward", "--workers", "1"])
    return capsys.readouterr().out


def test_where_two_judges_part_a_plain_run_says_who_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = judge_against(
        tmp_path, monkeypatch, capsys, (ADD, 1.0), (ADD + "\n", 0.0), ("print(3)", 1.0)
    )
    assert "the two judges agree on 1 of 3 answers" in page
    assert "| sum #1 | accepted | ours | every output is the expected text |" in page
    assert "| ours | test 2: printed '3\\n', expected '9\\n' |" in page


def test_another_spelling_of_an_answer_is_left_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [{"stdin": "", "stdout": "0.333333\n"}]
    page = judge_against(
        tmp_path, monkeypatch, capsys, ("print(round(1 / 3, 5))", True), cases=cases
    )
    assert "| open | test 1: printed '0.33333\\n'" in page


def test_a_column_that_is_not_there_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    judge_against(tmp_path, monkeypatch, capsys, (ADD, 1.0))
    with pytest.raises(SystemExit):
        main(["judge", "rows.jsonl", "--against", "score"])
    assert "--against score: the answers have no such column; they have uid" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("value", "opinion"),
    [
        (True, True),
        (1.0, True),
        (0.5, False),
        ("1", True),
        ("Accepted", True),
        ("wrong_answer", False),
        ([True, -2], False),
        ([1, 1], True),
        ("Wrong Answer", False),
        ("TLE", False),
        ("", None),
        ("sandbox_fault", None),
        (None, None),
        (math.nan, None),
    ],
)
def test_a_verdict_of_another_judge_is_read(value: object, opinion: bool | None) -> None:
    assert read_opinion(value) is opinion


def test_an_unknown_word_is_no_guess() -> None:
    with pytest.raises(DataError, match="'maybe' of the other judge is unknown"):
        read_opinion("maybe")


def test_several_answers_of_a_row_have_a_verdict_each() -> None:
    answers = [
        {"problem_id": "a", "response": ["x", "y"]},
        {"problem_id": "b", "response": [{"role": "assistant", "content": "x"}]},
        {"problem_id": "a", "response": "z"},
    ]
    indexed = index_opinions(answers, [[1, 0], True, False])
    assert indexed == {("a", 0): True, ("a", 1): False, ("b", 0): True, ("a", 2): False}


def test_fewer_verdicts_than_answers_are_refused() -> None:
    with pytest.raises(DataError, match="2 answers, and not as many verdicts"):
        index_opinions([{"problem_id": "a", "response": ["x", "y"]}], [1.0])

"""What is exported is read back: each row judges as the problem that it was made of."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from published_rows import ROWS

from microcoder import Problem
from microcoder.data.release import export
from microcoder.judge.core.signatures import judged_by

PROBLEMS = [Problem.from_row(published.row).model_copy(update={"id": name}) for name, published in ROWS.items()]


def read_back(path: Path, form: str) -> list[dict[str, Any]]:
    if form == "verl":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("form", ["verl", "trl", "nemogym", "verifiers", "livecodebench", "jsonl"])
def test_an_exported_row_judges_the_same(form: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    num_written = export(PROBLEMS, path, form=form)
    found = [Problem.from_row(row) for row in read_back(path, form)]
    assert len(found) == num_written
    by_name = {problem.id: problem for problem in PROBLEMS}
    names = [problem.id.removeprefix("livecodebench/") for problem in found]
    assert [judged_by(problem) for problem in found] == [judged_by(by_name[name]) for name in names]
    assert names == list(by_name) if form != "livecodebench" else len(names) > 20


@pytest.mark.parametrize("form", ["verl", "nemogym"])
def test_what_a_reward_function_gets_is_enough(form: str, tmp_path: Path) -> None:
    export(PROBLEMS, tmp_path / "rows", form=form)
    for row, problem in zip(read_back(tmp_path / "rows", form), PROBLEMS, strict=True):
        if form == "verl":
            seen = {"data_source": row["data_source"], "ground_truth": row["reward_model"]["ground_truth"]}
            found = Problem.from_row(seen)
            assert (found.tests, found.harness) == (problem.tests, problem.harness)
        else:
            assert Problem.from_row({"verifier_metadata": row["verifier_metadata"]}) == problem


def test_a_harbor_task_rewards_what_is_right(tmp_path: Path) -> None:
    name = "mbpp"
    assert export(PROBLEMS, tmp_path, form="harbor") == len(PROBLEMS)
    task = tmp_path / name
    assert {path.name for path in task.iterdir()} >= {"instruction.md", "task.toml", "environment", "tests"}
    for code, reward in ((ROWS[name].right, "1\n"), (ROWS[name].wrong, "0\n")):
        answer, written = tmp_path / "answer.py", tmp_path / "reward.txt"
        answer.write_text(code)
        command = [sys.executable, str(task / "tests" / "judge.py"), str(answer), str(written)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        assert written.read_text() == reward

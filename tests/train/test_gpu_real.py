"""The prepared fifteen minutes of one GPU run whole on a CPU, at a hundredth of their size."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from gpu import make_model
from pieces import INDEX, join, split

from microcoder.data.micro import generate_problems
from microcoder.data.release.problems import write_problems

ROOT = Path(__file__).parents[2]
HUMANEVAL_ROW = {
    "task_id": "HumanEval/0",
    "prompt": 'def add(a, b):\n    """Return the sum."""\n',
    "entry_point": "add",
    "canonical_solution": "    return a + b\n",
    "test": "def check(candidate):\n    assert candidate(1, 2) == 3\n",
}


def run_session(folder: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Run a small session, and return what each part reported, by its name."""
    make_model(folder / "model", tiny=True)
    write_problems(folder / "train.jsonl", generate_problems(split="train", num_problems=4))
    write_problems(folder / "heldout.jsonl", generate_problems(split="heldout", num_problems=2))
    rows = [{**HUMANEVAL_ROW, "task_id": f"HumanEval/{number}"} for number in range(3)]
    humaneval = folder / "HumanEval.jsonl"
    humaneval.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    command = [
        sys.executable,
        "benchmarks/gpu_real.py",
        "--small",
        "--masks=conditional",
        f"--model={folder / 'model'}",
        f"--humaneval={humaneval}",
        f"--train={folder / 'train.jsonl'}",
        f"--heldout={folder / 'heldout.jsonl'}",
        f"--out={folder / 'out'}",
        *options,
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return {row["part"]: row for row in map(json.loads, done.stdout.splitlines())}


@pytest.fixture(scope="module")
def parts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The parts of a session that has all its time: four commands, which import torch each."""
    return run_session(tmp_path_factory.mktemp("gpu_real"))


@pytest.mark.slow
def test_a_session_without_time_says_what_it_leaves_out(tmp_path: Path) -> None:
    parts = run_session(tmp_path, "--minutes=0")
    # The evaluations are stopped at once, and nothing is left for the training.
    assert list(parts) == ["machine", "humaneval-model", "before", "train"]
    assert parts["before"]["failed"].startswith("stopped after")
    assert parts["train"]["left_out"].endswith("minutes are left")


@pytest.mark.long
@pytest.mark.slow
def test_a_small_session_does_all_parts_in_order(parts: dict[str, dict[str, Any]]) -> None:
    assert list(parts) == [
        "machine",
        "humaneval-model",
        "before",
        "train",
        "after",
    ]
    for row in parts.values():
        assert "failed" not in row


@pytest.mark.long
@pytest.mark.slow
def test_it_asks_as_many_problems_as_its_size_says(parts: dict[str, dict[str, Any]]) -> None:
    assert parts["humaneval-model"]["num_problems"] == 2
    assert parts["before"]["num_problems"] == parts["after"]["num_problems"] == 2


@pytest.mark.long
@pytest.mark.slow
def test_training_reports_its_steps_speed_and_memory(parts: dict[str, dict[str, Any]]) -> None:
    found = parts["train"]
    assert found["steps"] == 2
    assert found["ended"] == "finished"
    assert found["sampled_per_second"] > 0
    assert found["trained_per_second"] > 0
    assert found["peak_gib"] > 0
    assert found["planned_gib"] > 0


def test_pieces_are_joined_to_the_same_bytes(tmp_path: Path) -> None:
    source = tmp_path / "checkpoint"
    (source / "deep").mkdir(parents=True)
    (source / "weights").write_bytes(bytes(range(256)) * 10_000)
    (source / "deep" / "config.json").write_bytes(b"{}")
    (source / "empty").write_bytes(b"")
    index = split(source, tmp_path / "pieces", piece_mib=1)
    # 2,560,000 bytes are two whole MiB and a rest.
    assert [len(index[name]["pieces"]) for name in ("weights", "deep/config.json", "empty")] == [
        3,
        1,
        1,
    ]
    assert join(tmp_path / "pieces", tmp_path / "again") == 3
    assert (tmp_path / "again" / "weights").read_bytes() == (source / "weights").read_bytes()
    assert (tmp_path / "again" / "deep" / "config.json").read_bytes() == b"{}"
    assert (tmp_path / "again" / "empty").read_bytes() == b""


def test_a_damaged_piece_leaves_no_joined_folder(tmp_path: Path) -> None:
    source = tmp_path / "weights"
    source.write_bytes(b"abcd")
    split(source, tmp_path / "pieces", piece_mib=1)
    (piece,) = (tmp_path / "pieces").glob("*.piece")
    piece.write_bytes(b"abce")
    with pytest.raises(ValueError, match="weights is damaged"):
        join(tmp_path / "pieces", tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_piece_cannot_be_joined_outside_its_target(tmp_path: Path) -> None:
    source = tmp_path / "weights"
    source.write_bytes(b"abcd")
    index = split(source, tmp_path / "pieces", piece_mib=1)
    moved = {"../outside": index["weights"]}
    (tmp_path / "pieces" / INDEX).write_text(json.dumps(moved))
    with pytest.raises(ValueError, match="outside"):
        join(tmp_path / "pieces", tmp_path / "again")
    assert not (tmp_path / "outside").exists()

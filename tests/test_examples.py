"""The examples run as they stand."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_judging_in_ten_lines() -> None:
    text = (EXAMPLES / "judge_ten_lines.py").read_text()
    assert sum(bool(line.strip()) for line in text.splitlines()) <= 10
    command = [sys.executable, str(EXAMPLES / "judge_ten_lines.py")]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    lines = [line.split("\t") for line in result.stdout.splitlines()]
    assert [line[:2] for line in lines] == [
        ["accepted", "1/1"],
        ["wrong_answer", "0/1"],
        ["time_limit", "0/1"],
    ]


def test_a_plain_trl_trainer_takes_the_judge_as_its_reward(
    tiny_checkpoint: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    # In this process, which imports torch for other tests too.
    monkeypatch.setattr(sys, "argv", ["trl_reward.py", str(tiny_checkpoint)])
    runpy.run_path(str(EXAMPLES / "trl_reward.py"), run_name="__main__")
    output = capsys.readouterr().out
    assert "rewards/code_reward/mean" in output
    assert "code/sandbox_fault_share" in output

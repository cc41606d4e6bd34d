"""`microcoder view`."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from synthetic_run import Recipe, write_run

from microcoder.cli import main


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "demo", Recipe(num_steps=1, evaluate_every=1, num_heldout=3))


def test_it_writes_a_bundle(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["view", str(run), "--bundle", str(tmp_path / "out")])
    assert capsys.readouterr().out.startswith(f"{tmp_path / 'out' / 'index.html'}: 48 rollouts, ")
    main(["view", str(run), "--bundle", str(tmp_path / "out"), "--json"])
    assert json.loads(capsys.readouterr().out)["num_rollouts"] == 48


def test_it_serves_until_it_is_interrupted(run: Path) -> None:
    command = [sys.executable, "-m", "microcoder", "view", str(run), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with urllib.request.urlopen(f"{url}api/search?run=demo&text=numbers") as answer:
            assert json.load(answer)["num"] == 48
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "microcoder: the viewer has ended\n")


@pytest.mark.parametrize(
    ("arguments", "told"), [([], "no run; type: microcoder view"), (["nowhere"], "nowhere is not a run")]
)
def test_what_cannot_be_shown_is_one_line_and_exit_code_2(
    arguments: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_info:
        main(["view", *arguments])
    assert exit_info.value.code == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1

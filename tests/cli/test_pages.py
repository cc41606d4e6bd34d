"""`microcoder report` and `microcoder view`: pages of runs, and what they print."""

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
    return write_run(tmp_path / "demo", Recipe(num_steps=2, evaluate_every=1, num_heldout=6))


def test_a_report_is_a_page_and_the_same_numbers(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", str(run)])
    assert capsys.readouterr().out == f"{run / 'report/index.html'}\n"
    main(["report", str(run), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert Path(told["report"]).is_file()
    assert (told["name"], told["is_finished"], told["num_steps"], told["num_problems"]) == ("demo", True, 2, 6)
    assert told["difference"] == pytest.approx(told["accuracy_after"] - told["accuracy_before"])
    assert told["difference_low"] <= told["difference"] <= told["difference_high"]
    assert told["num_unscored"] == 0


def test_a_run_without_numbers_has_nulls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "manifest.json").write_text("{}")
    main(["report", str(tmp_path), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert (told["accuracy_before"], told["difference"], told["is_finished"]) == (None, None, False)


def test_the_viewer_writes_a_bundle(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown in (
        ([], f"{tmp_path / 'out' / 'index.html'}: 120 rollouts, "),
        (["--json"], '"num_rollouts": 120'),
    ):
        main(["view", str(run), "--bundle", str(tmp_path / "out"), *words])
        assert shown in capsys.readouterr().out


def test_the_viewer_serves_until_it_is_interrupted(run: Path) -> None:
    command = [sys.executable, "-m", "microcoder", "view", str(run), "--port", "0", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        with urllib.request.urlopen(f"{url}api/search?run=demo&text=numbers") as answer:
            assert json.load(answer)["num"] == 120
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert (process.returncode, errors) == (0, "microcoder: the viewer has ended\n")

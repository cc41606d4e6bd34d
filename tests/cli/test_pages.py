"""`microcoder report`, `view` and `audit-judge`: pages, and what they print."""

import json
import os
import shutil
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from microcoder.cli import main
from tests.lab.synthetic_run import Recipe, write_run


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_run(tmp_path / "demo", Recipe(num_steps=2, evaluate_every=1, num_heldout=6))


def test_a_report_is_a_page_and_a_bundle_a_folder(
    run: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["report", str(run)])
    assert capsys.readouterr().out == f"{run / 'report/index.html'}\n"
    assert (run / "report" / "index.html").is_file()
    main(["view", str(run), "--bundle", str(tmp_path / "out")])
    assert f"{tmp_path / 'out' / 'index.html'}: 120 rollouts, " in capsys.readouterr().out


def test_the_viewer_serves_until_it_is_interrupted(run: Path) -> None:
    command = [sys.executable, "-m", "microcoder", "view", str(run), "--port", "0"]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[0]
        with urllib.request.urlopen(f"{url}api/search?run=demo&text=numbers") as answer:
            assert json.load(answer)["num"] == 120
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=20)
    assert process.returncode == 0
    assert errors == "microcoder: the viewer has ended\n"


def test_the_newest_run_is_shown_where_none_is_named(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = tmp_path / "runs"
    for name, seconds in (("old", 1000), ("newest", 3000), ("other", 2000)):
        copied = Path(shutil.copytree(run, runs / name))
        for path in copied.iterdir():
            os.utime(path, (seconds, seconds))
    # A run that began before another is newer while it goes.
    os.utime(runs / "newest" / "manifest.json", (500, 500))
    (runs / "no-run").mkdir()
    monkeypatch.chdir(tmp_path)
    main(["view", "--bundle", "out"])
    assert "the newest run in runs is runs/newest" in capsys.readouterr().err


def test_make_opens_the_viewer_wherever_the_command_is_installed(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    for words, runs in (([], " --open"), (["RUN=runs/a runs/b"], "runs/a runs/b --open")):
        command = ["make", "--dry-run", "--silent", f"VENV={tmp_path}", "view", *words]
        told = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
        assert told.splitlines()[-1] == f"{tmp_path}/bin/microcoder view {runs}"


def test_an_audit_is_a_page_and_a_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "audit"
    (tmp_path / "gullible.py").write_text("def judge(code, tests, time_limit):\n    return True\n")
    judges = ["--judge", "microcoder", "--judge", f"function={tmp_path}/gullible.py:judge"]
    suites = []
    for suite in ("forgery", "fidelity", "pairs", "isolation"):
        suites.extend(("--suite", suite))
    main(
        [
            "audit-judge",
            *judges,
            *suites,
            "--most",
            "5",
            "--seed",
            "3",
            "--lanes",
            "1",
            "--out",
            str(out),
        ]
    )
    assert capsys.readouterr().out.strip() == str(out / "audit.md")
    page = (out / "audit.md").read_text()
    record = json.loads((out / "audit.json").read_text())
    assert page.index("## Our own misses\n\nNone in these cases.") < page.index("## Side by side")
    ours, gullible = record["judges"]
    assert {rate["misses"] for rate in ours["rates"].values()} == {0}
    assert gullible["rates"]["forgery"]["misses"] == gullible["rates"]["forgery"]["asked"] > 20
    assert gullible["rates"]["right pairs"]["misses"] == 0
    assert "worst, with their programs" in page.split("## What")[1]
    assert "wrong accepted" in (out / "microcoder.svg").read_text()
    assert record["seed"] == 3
    assert gullible["containment"] == ""

"""A study's pages from run directories alone: verdicts, figures, the scoreboard, and the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest
from synthetic_run import Recipe, write_run

from microcoder.cli import main
from microcoder.insights.study import QUICK, find_studies, plan_runs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Synthetic runs of one study, all but one."""
    monkeypatch.chdir(ROOT)
    runs = plan_runs(find_studies("kl_and_clip")[0], scale=QUICK, root=tmp_path / "runs")
    for run in runs:
        if (run.level, run.seed) != ("KL", 2):
            write_run(run.folder, Recipe(num_steps=8, evaluate_every=2, num_heldout=12, seed=run.seed))
    return tmp_path


def report(folder: Path, name: str, *words: str) -> None:
    main(["study", "report", *words, "--quick", "--runs", str(folder / "runs"), "-o", str(folder / name)])


def test_a_page_says_what_was_found_and_what_is_missing(folder: Path) -> None:
    report(folder, "a", "kl_and_clip")
    page = (folder / "a" / "008_kl_and_clip.md").read_text()
    assert "5 of 6 runs are finished" in page
    assert "2 of 3" in page
    assert "### K1: No KL with high clip" in page
    # The same seeds pretend the same learning, so there is no difference to find.
    assert "| +0 [+0, +0] | +0, +0 | 2 seeds |" in page
    assert "**does not**. The paper: Diversity 0.67 to 0.2 with KL" in page
    assert "algorithm.kl_coefficient = 0.001" in page
    assert "microcoder study run 008_kl_and_clip --quick" in page
    for figure in (folder / "a").glob("*.svg"):
        ElementTree.parse(figure)
        assert f"({figure.name})" in page
    assert (folder / "a" / "008_kl_and_clip-effects.svg").exists()


def test_the_scoreboard_has_every_claim_and_the_same_bytes_again(folder: Path) -> None:
    for name in ("a", "b"):
        report(folder, name, "--all")
    board = (folder / "a" / "README.md").read_text()
    assert "Of 34 claims: 1 does not, 33 not run." in board
    rows = [line for line in board.splitlines() if line.startswith("| ")]
    assert len([row for row in rows if "**" in row or "not run" in row]) == 34 + 1
    first, second = ({p.name: p.read_bytes() for p in sorted((folder / name).iterdir())} for name in ("a", "b"))
    assert first == second


def test_without_runs_it_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "runs" / "0123abcd").mkdir(parents=True)
    with pytest.raises(SystemExit):
        report(tmp_path, "a", "kl_and_clip")
    assert "type `microcoder study run`; there are runs of other code, give one as --code: 0123abcd" in (
        capsys.readouterr().err
    )

"""A study's pages from run directories alone: verdicts, one figure, the index, and the same bytes each time."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from synthetic_run import Recipe, write_run

from microcoder.cli import main
from microcoder.lab.studies.design import INSIGHTS, QUICK, find_studies
from microcoder.lab.studies.work import plan_runs

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Synthetic runs of three seeds of one study, all but one."""
    monkeypatch.chdir(ROOT)
    runs = plan_runs(find_studies("kl_and_clip")[0], scale=QUICK, root=tmp_path / "runs")
    for run in runs:
        if run.seed < 3 and (run.name, run.seed) != ("KL", 2):
            write_run(run.folder, Recipe(num_steps=8, evaluate_every=2, num_heldout=12, seed=run.seed))
    return tmp_path


def report(folder: Path, name: str, *words: str) -> None:
    main(["study", "report", *words, "--quick", "--runs", str(folder / "runs"), "-o", str(folder / name)])


def test_a_page_opens_with_five_sentences_and_one_figure(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report(folder, "a", "kl_and_clip")
    assert "K1  cannot appear here, " in capsys.readouterr().out
    page = (folder / "a" / "008_kl_and_clip.md").read_text()
    opening = page.split("## Claims")[0]
    words = ["Asked", "Done", "Seen", "It means", "Next"]
    assert [line.split(":**")[0].strip("*") for line in opening.splitlines() if line.startswith("**")] == words
    assert opening.count("](008_kl_and_clip-figure.svg)") == page.count(".svg)") == 1
    ElementTree.parse(folder / "a" / "008_kl_and_clip-figure.svg")
    # The same seeds pretend the same learning, so the setting changed nothing.
    assert "The treatment reached too little here to ask about K1" in opening
    assert "| K1 | " in page
    assert "| **K1** | " in page.split("## What was compared")[1]
    assert "**cannot appear here**" in page
    assert "- **K1**: " in page
    assert "| 2 of at most 10 |" in page
    assert "algorithm.kl_coefficient = " in page
    assert "microcoder study run 008_kl_and_clip --quick" in page


def test_the_index_is_a_row_a_claim_with_the_same_bytes_again(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir()
        (folder / name / "008_kl_and_clip-length.svg").write_text("of an earlier version")
        report(folder, name, "--all")
    index = (folder / "a" / "README.md").read_text()
    assert "| K1 | " in index
    assert index.startswith("# The 34 insights on the micro lab\n\nOf 34 claims ")
    assert [name for name in INSIGHTS if f"\n| {name} | " not in index] == []
    assert len(index.splitlines()) < 60
    results = json.loads((folder / "a" / "results.json").read_text())
    verdicts = {claim["id"]: claim["verdict"] for claim in results["claims"]}
    assert set(INSIGHTS) <= set(verdicts)
    assert (verdicts["K1"], verdicts["B1"]) == ("cannot appear here", "not run")
    first, second = ({p.name: p.read_bytes() for p in sorted((folder / name).iterdir())} for name in ("a", "b"))
    assert first == second
    assert "008_kl_and_clip-length.svg" not in first


def test_a_report_says_which_conclusions_of_another_it_repeats(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"T1": "supported", "T2": "contradicted", "T4": "not decidable at this scale", "K1": "inconclusive"}
    claims = [{"id": name, "verdict": verdict} for name, verdict in found.items()]
    (folder / "results.json").write_text(json.dumps({"format": 1, "claims": claims}))
    report(folder, "a", "--all", "--against", str(folder))
    told = capsys.readouterr().out
    assert "0 of 2 conclusive verdicts of " in told
    assert "T2: contradicted, then not run" in told
    assert not (folder / "a").exists()


def test_the_plan_says_what_the_seeds_can_show(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    main(["study", "run", "kl_and_clip", "--dry-run"])
    told = capsys.readouterr().out
    assert "K1 (" in told
    assert "seeds give a half width of" in told
    assert "missing   runs/studies/" in told


def test_without_runs_it_says_what_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    (tmp_path / "runs" / "0123abcd").mkdir(parents=True)
    with pytest.raises(SystemExit):
        report(tmp_path, "a", "kl_and_clip")
    assert "type `microcoder study run`; runs of other code exist, choose one with --code: 0123abcd" in (
        capsys.readouterr().err
    )

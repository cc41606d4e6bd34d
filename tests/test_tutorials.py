"""The tutorials, done as they are written: their files, their commands,
what they say comes of it.
"""

import json
import subprocess
from pathlib import Path
from statistics import fmean

import pytest

from microcoder.train.run.checkpoints import check_model_folder
from microcoder.train.runs import RunDirectory
from tests.doc_pages import DOCS, blocks_of, do_tutorial, shell

TUTORIALS = DOCS / "tutorials"
# Trainings of minutes, side by side, on machines that do other things as well.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def folder(tmp_path: Path, shared_cache: Path) -> Path:
    """An empty folder, but for the tiny models that tests have made before: each is made once."""
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "microcoder").symlink_to(shared_cache)
    return tmp_path


def test_the_judge_as_a_reward_in_trl(tmp_path: Path, tiny_checkpoint: Path) -> None:
    (tmp_path / "Qwen").mkdir()
    (tmp_path / "Qwen" / "Qwen3-0.6B").symlink_to(tiny_checkpoint)
    do_tutorial(TUTORIALS / "reward.md", tmp_path, is_here=True)


@pytest.mark.long
def test_training_a_tiny_model(folder: Path) -> None:
    do_tutorial(TUTORIALS / "train.md", folder)
    run = RunDirectory(folder / "runs" / "tiny")
    first, *_, last = (row["accuracy"] for row in run.read_evaluations())
    assert last > first


def test_building_a_corpus(folder: Path) -> None:
    do_tutorial(TUTORIALS / "corpus.md", folder, is_here=True)
    assert {json.loads(line)["id"] for line in (folder / "problems.jsonl").read_text().splitlines()}


@pytest.mark.long
def test_training_a_real_model(tmp_path: Path) -> None:
    # The page's own command for the model: 93 MB from the registry, which may not be reached.
    fetch = blocks_of((TUTORIALS / "real-model.md").read_text(encoding="utf-8"))[0].text
    done = subprocess.run(
        ["bash", "-e", "-c", fetch], cwd=tmp_path, env=shell(), capture_output=True, text=True
    )
    if done.returncode:
        pytest.skip(f"the registry does not serve the model: {done.stderr[-300:]}")
    do_tutorial(TUTORIALS / "real-model.md", tmp_path)
    run = RunDirectory(tmp_path / "runs" / "real")
    assert run.is_finished
    check_model_folder(run.model)


@pytest.mark.long
def test_asking_a_question(folder: Path) -> None:
    do_tutorial(TUTORIALS / "study.md", folder)
    page = (folder / "page" / "cooler.md").read_text()
    assert "](cooler-figure.svg)" in page
    assert (folder / "page" / "cooler-figure.svg").is_file()
    assert "docs/insights" not in page
    assert "[cooler](../cooler.toml)" in page
    gains = []
    for run in folder.glob("runs/studies/*/seed*"):
        first, *_, last = (row["accuracy"] for row in RunDirectory(run).read_evaluations())
        gains.append(last - first)
    assert len(gains) == 16
    # What is learnt hangs on the start and the processor;
    # that nothing is learnt would teach no reader anything.
    assert fmean(gains) > 0.2

"""The rollouts of a run as a data frame."""

from __future__ import annotations

from pathlib import Path

import pytest
from synthetic_run import Recipe, write_run

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.lab.studies import rollouts_df


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("frames") / "run", Recipe(num_steps=3, evaluate_every=3, num_heldout=6))


def test_a_frame_has_every_rollout_by_step(run: Path) -> None:
    frame = rollouts_df(run)
    assert len(frame) == 3 * 24 + 2 * 24
    assert list(frame["step"]) == sorted(frame["step"])
    assert set(frame["split"]) == {"train", "heldout"}
    accuracy = (frame[frame.split == "heldout"].verdict == "accepted").groupby(frame.step).mean()
    assert list(accuracy.index) == [0, 3]


def test_a_split_and_some_columns_are_read_alone(run: Path) -> None:
    frame = rollouts_df(str(run), split="train", columns=["step", "verdict"])
    assert (len(frame), list(frame.columns)) == (72, ["split", "step", "verdict"])


def test_what_is_not_there_is_told(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="split='test' is not allowed"):
        rollouts_df(run, split="test")
    with pytest.raises(ConfigError, match="has no column colour; it has step"):
        rollouts_df(run, columns=["colour"])
    with pytest.raises(DataError, match="pass a folder"):
        rollouts_df(tmp_path)

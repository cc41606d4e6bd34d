import os
from dataclasses import replace
from pathlib import Path

import pytest

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import append_row, read_json, read_rows, write_json
from microcoder.judge.core.types import Outcome, Program, Rollout, Verdict
from microcoder.train.rollouts import SamplerMismatch
from microcoder.train.runs import (
    RunDirectory,
    read_rollouts,
    read_scored,
    rollout_row,
    scored_of,
    write_rollouts,
)
from tests.train.small_runs import ROLLOUT, scored


def test_rollouts_survive_the_round_trip_with_none_and_odd_text(tmp_path: Path) -> None:
    odd = Rollout("é/1", "p", "<b>\n\x00 emoji 🎲", (5, 6, 7), is_truncated=True)
    samples = [
        scored(
            Outcome.SANDBOX_FAULT,
            rollout=odd,
            program=Program(None),
            tier=None,
            lost={"mask": 0.5},
            mismatch=SamplerMismatch(0.01, 0.5),
        ),
        scored(
            rewards={"fraction": 0.5, "format": None},
            length_penalty=-0.5,
            masked_why="truncated",
            counts=False,
        ),
        scored(verdict=Verdict(Outcome.NO_CODE, (), 2)),
    ]
    rows = [rollout_row(sample, step=3, temperature=1.2) for sample in samples]
    path = RunDirectory(tmp_path).rollout_file(3)
    write_rollouts(path, rows)
    assert read_rollouts(path) == rows
    assert [p.name for p in path.parent.iterdir()] == ["step_000003.parquet"]
    # Three problems: each sample has the same index.
    assert read_scored(path) == [[sample] for sample in samples]


def test_rows_of_earlier_versions_keep_their_length_and_what_they_lack_is_told_apart() -> None:
    cut_off = replace(ROLLOUT, is_truncated=True)
    row = rollout_row(scored(rollout=cut_off, program=Program(None)), step=3, temperature=1.2)
    for name in ("token_ids", "is_incomplete", "mismatch"):
        del row[name]
    read = scored_of(row)
    assert read.rollout.token_ids == (0, 1, 2)
    assert read.program.is_incomplete


def test_rows_come_back_in_order_and_a_last_line_cut_off_anywhere_is_left_out_and_not_appended_to(
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep" / "metrics.jsonl"
    assert read_rows(path) == []
    first = {"step": 1, "name": "line\nbreak \u2028 é"}
    second = {"step": 2, "name": "éé", "loss": None}
    append_row(path, first)
    num_kept = path.stat().st_size
    append_row(path, second)
    assert read_rows(path) == [first, second]
    whole = path.read_bytes()
    for cut in range(num_kept, len(whole)):
        path.write_bytes(whole[:cut])
        assert read_rows(path) == [first]
        append_row(path, second)
        assert read_rows(path) == [first, second]
    for damage in (b"{oops}\n", b'{"a": "\xff"}\n', b"\n"):
        path.write_bytes(b'{"step": 1}\n' + damage + b'{"step": 2}\n')
        with pytest.raises(DataError, match=r"metrics\.jsonl line 2 is not JSON"):
            read_rows(path)


def test_a_failed_write_leaves_the_old_file_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "summary.json"
    write_json(path, {"accuracy": 0.5})

    def full_disk(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="No space"):
        write_json(path, {"accuracy": 0.9})
    assert read_json(path, what="summary") == {"accuracy": 0.5}


def test_a_folder_or_file_that_is_no_run_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for place in (tmp_path, tmp_path / "file"):
        with pytest.raises(
            DataError, match="does not exist; pass a folder that `microcoder train` or"
        ):
            RunDirectory(place).read_manifest()
    for text, problem in (("{", "is not JSON"), ("[1]", "holds list, not an object")):
        (tmp_path / "manifest.json").write_text(text)
        with pytest.raises(DataError, match=problem):
            RunDirectory(tmp_path).read_manifest()

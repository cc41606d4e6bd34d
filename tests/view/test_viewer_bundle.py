"""The folder that needs no server."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from viewer_runs import HOSTILE, edit_rollouts, make_hostile, write_training

from microcoder.judge.core.errors import DataError
from microcoder.view import open_collection, write_bundle


def piece(folder: Path, name: str) -> Any:
    """What a script of the bundle hands over."""
    text = (folder / "data" / f"{name}.js").read_text(encoding="ascii")
    body = text.removeprefix("viewer.deliver(").removesuffix(");\n")
    told, value = json.loads(f"[{body}]")
    assert told == name
    return value


def test_a_bundle_holds_runs_rollouts_and_tests(shelf: Path, tmp_path: Path) -> None:
    collection = open_collection([shelf / "one", shelf / "eval"], problem_files=[shelf / "problems.jsonl"])
    written = write_bundle(collection, tmp_path / "out")
    assert (written.page, written.num_rollouts) == (tmp_path / "out/index.html", 268)
    assert 'src="data/runs.js"' in written.page.read_text()
    assert written.num_bytes == sum(path.stat().st_size for path in (tmp_path / "out").rglob("*.*"))
    assert [run["key"] for run in piece(tmp_path / "out", "runs")] == ["one", "eval"]
    assert base64.b64decode(piece(tmp_path / "out", "one/index")) == collection["one"].index().pack()
    rows = piece(tmp_path / "out", "one/rows-1")
    assert len(rows) == 25
    (name, *_) = piece(tmp_path / "out", "one/tests-0")
    assert piece(tmp_path / "out", "one/tests-0")[name]["tests"][0]["expected"] == "3\n"


def test_a_bundle_is_replaced_but_nothing_else_is(shelf: Path, tmp_path: Path) -> None:
    collection = open_collection([shelf / "eval"])
    write_bundle(collection, tmp_path / "out")
    write_bundle(collection, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    with pytest.raises(DataError, match="is no bundle"):
        write_bundle(collection, tmp_path / "mine")
    with pytest.raises(DataError, match="is no bundle"):
        write_bundle(collection, tmp_path / "mine" / "thesis.tex")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_hostile_text_stays_inside_its_script(tmp_path: Path) -> None:
    run = write_training(tmp_path / "run", num_steps=1)
    edit_rollouts(run, 1, lambda row: make_hostile({**row, "completion": HOSTILE}))
    collection = open_collection([run])
    write_bundle(collection, tmp_path / "out")
    place = collection["demo"].index().find("train/1/0")
    assert place is not None
    assert piece(tmp_path / "out", f"demo/rows-{place // 25}")[place % 25]["completion"] == HOSTILE

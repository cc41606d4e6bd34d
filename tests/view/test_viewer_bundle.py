"""The folder that needs no server."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from viewer_runs import write_training

from microcoder.judge.core.errors import DataError
from microcoder.view import open_collection, serve, write_bundle, write_report


def piece(folder: Path, name: str) -> Any:
    """What a script of the bundle hands over."""
    text = (folder / "data" / f"{name}.js").read_text(encoding="ascii")
    body = text.removeprefix("viewer.deliver(").removesuffix(");\n")
    told, value = json.loads(f"[{body}]")
    assert told == name
    return value


def test_a_bundle_is_replaced_but_nothing_else_is(shelf: Path, tmp_path: Path) -> None:
    collection = open_collection([shelf / "eval"])
    write_bundle(collection, tmp_path / "out")
    write_bundle(collection, tmp_path / "out")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    for place in ("mine", "mine/thesis.tex"):
        with pytest.raises(DataError, match="is not a bundle"):
            write_bundle(collection, tmp_path / place)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_report_is_a_bundle_and_is_the_same_wherever_the_run_lies(tmp_path: Path) -> None:
    run = write_training(tmp_path / "one", num_steps=4)
    other = write_training(tmp_path / "two", num_steps=4, seed=1, manifest={"name": "other"})
    (run / "report").mkdir()
    (run / "report" / "accuracy.svg").write_text("of an earlier version")
    page = write_report(run, against=[other])
    assert page == run / "report" / "index.html"
    told = piece(page.parent, "demo/overview")
    assert [row[0] for row in told["tables"][0]["rows"]] == ["demo", "other"]
    assert [(one["key"], one["has_tests"]) for one in piece(page.parent, "runs")] == [("demo", False), ("other", False)]
    facts = dict(piece(page.parent, "runs")[0]["facts"])
    for name in ("config.masking.probability", "isolation.level", "packages.torch", "machine.cpu", "seed", "digest"):
        assert name in facts
    copied = Path(shutil.copytree(run, tmp_path / "elsewhere" / "one"))
    assert files_of(write_report(copied, against=[other]).parent) == files_of(page.parent)


def test_a_large_report_leaves_the_texts_of_its_rollouts_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_training(tmp_path / "run", num_steps=8)
    monkeypatch.setattr(serve, "_MOST_IN_REPORT", 0)
    folder = write_report(run).parent
    assert not list((folder / "data/demo").glob("rows-*.js"))
    assert (folder / "data/demo/index.js").exists()


def test_what_is_no_training_run_has_no_report(shelf: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is an evaluation, not a training run"):
        write_report(shelf / "eval")
    run = write_training(tmp_path / "run", num_steps=1, manifest={"problems": {"digest": "aa"}})
    with pytest.raises(DataError, match="asked other problems"):
        write_report(run, against=[shelf / "one"])
    (tmp_path / "manifest.json").write_text('{"icons": []}')
    with pytest.raises(DataError, match="is no run: its manifest"):
        write_report(tmp_path)
    assert not (run / "report").exists()

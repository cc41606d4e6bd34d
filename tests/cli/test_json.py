"""`--json`: which commands have it, and the one documented shape of each."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from microcoder.cli import build_app, main
from microcoder.data.micro import generate_problems
from microcoder.data.release.problems import write_problems
from tests.doc_pages import DOCS
from tests.lab.synthetic_run import Recipe, write_run

SHAPES = re.compile(r"^\| `([a-z -]+)` \| (.+) \|$", re.MULTILINE)
WITHOUT = {"view", "serve"}
"""Commands that run until they are ended, and print an address."""


def documented() -> dict[str, set[str]]:
    """Return the keys that the page of commands says of each command."""
    page = (DOCS / "commands.md").read_text(encoding="utf-8")
    shapes = {}
    for command, keys in SHAPES.findall(page):
        shapes[command] = set(re.findall(r"`(\w+)`", keys))
    return shapes


def call(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    main([*words, "--json"])
    printed = capsys.readouterr().out
    record = json.loads(printed)
    assert printed.count("\n") == 1
    return record


def test_every_command_that_prints_a_result_has_json_and_its_shape_on_the_page() -> None:
    text = build_app().generate_docs(output_format="markdown", recursive=True)
    commands = re.split(r"^##+ microcoder ", text, flags=re.MULTILINE)[1:]
    with_json = set()
    for command in commands:
        name = command.split("\n", 1)[0]
        if "* `--json`" in command:
            with_json.add(name)
        else:
            # A group of commands has none of its own.
            assert name in {*WITHOUT, "data", "--install-completion"}
    assert with_json == documented().keys()


def test_packages_are_listed_with_where_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    record = call(capsys, "packages")
    assert record.keys() == documented()["packages"]
    names = []
    for profile in record["profiles"]:
        names.append(profile["name"])
    assert names == ["atcoder", "none", "standard"]
    _, none, standard = record["profiles"]
    assert "numpy==" in " ".join(standard["pins"])
    assert none["pins"] == []
    assert call(capsys, "packages", "none")["output"] is None


def test_a_report_names_its_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "demo", Recipe(num_steps=2, evaluate_every=1, num_heldout=6))
    record = call(capsys, "report", str(run))
    assert record == {"output": str(run / "report" / "index.html")}


def test_a_recipe_is_named_with_the_command_that_trains_by_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--model", "Qwen/Qwen3-4B", "--gpu", "h100", "--out", str(tmp_path / "recipe.toml")]
    for option, split in (("--problems", "train"), ("--heldout", "heldout")):
        path = tmp_path / f"{split}.jsonl"
        write_problems(path, generate_problems(split=split, num_problems=64))
        words += [option, str(path)]
    record = call(capsys, "init", *words)
    assert record.keys() == documented()["init"]
    assert record["train"] == f"microcoder train -c {tmp_path / 'recipe.toml'}"
    assert record["verl_command"] is None
    assert Path(record["output"]).is_file()


def test_a_dry_run_of_training_has_no_result(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["train", "-c", "micro", "--dry-run", "--json"])
    assert "leave out --dry-run, or --json" in capsys.readouterr().err


def test_formats_findings_and_an_export_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "mbpp" in call(capsys, "data", "audit")["formats"]
    task = {"task_id": 1, "text": "Write a function.", "code": "", "test_list": []}
    (tmp_path / "mbpp.jsonl").write_text(json.dumps(task))
    rows = ["--format", "mbpp", "--static", "-o", str(tmp_path / "audit")]
    record = call(capsys, "data", "audit", str(tmp_path / "mbpp.jsonl"), *rows)
    assert record.keys() == documented()["data audit"]
    assert record["num_rows"] == 1
    (finding, *_) = record["findings"]
    assert finding.keys() == {"stage", "kind", "num", "share", "low", "high"}
    assert Path(record["output"]).is_file()

"""The recipes of docs/cookbook, each typed as it is written, and what they print compared."""

import re
from pathlib import Path

import pytest

from tests.doc_pages import DOCS, blocks_of, do_tutorial
from tests.eval.completions_server import completion, serve

COOKBOOK = DOCS / "cookbook"
RECIPES = sorted(page for page in COOKBOOK.glob("*.md") if page.name != "README.md")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def headings_of(page: Path) -> list[str]:
    """Return the titles of a page's recipes."""
    return re.findall(r"^## (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)


def name_a_model(folder: Path, checkpoint: Path) -> None:
    """Put a tiny model where the recipes name one of the Hub."""
    (folder / "Qwen").mkdir()
    (folder / "Qwen" / "Qwen3-0.6B").symlink_to(checkpoint)


def test_judging(tmp_path: Path) -> None:
    do_tutorial(COOKBOOK / "judging.md", tmp_path)


def test_rewards(tmp_path: Path, tiny_checkpoint: Path) -> None:
    name_a_model(tmp_path, tiny_checkpoint)
    # A process has one judge, and these rewards want judges of different options.
    do_tutorial(COOKBOOK / "rewards.md", tmp_path)


def test_evaluating(tmp_path: Path) -> None:
    with serve(lambda asked, number: completion("```python\nprint(3)\n```")) as model:
        filled = {"http://localhost:8000/v1": model.url}
        do_tutorial(COOKBOOK / "evaluating.md", tmp_path, filled=filled, is_here=True)


def test_corpora(tmp_path: Path) -> None:
    do_tutorial(COOKBOOK / "corpora.md", tmp_path, is_here=True)


def test_training(tmp_path: Path, tiny_checkpoint: Path) -> None:
    name_a_model(tmp_path, tiny_checkpoint)
    do_tutorial(COOKBOOK / "training.md", tmp_path, is_here=True)


def test_extending(tmp_path: Path) -> None:
    do_tutorial(COOKBOOK / "extending.md", tmp_path, is_here=True)


def test_the_list_names_every_recipe() -> None:
    listed = (COOKBOOK / "README.md").read_text(encoding="utf-8")
    titles = [title for page in RECIPES for title in headings_of(page)]
    missing = [title for title in titles if f"[{title}](" not in listed]
    assert missing == []
    assert len(titles) >= 30


def test_every_recipe_types_something_and_says_what_comes() -> None:
    silent = []
    for page in RECIPES:
        parts = page.read_text(encoding="utf-8").split("\n## ")[1:]
        for part in parts:
            languages = {block.language for block in blocks_of(part)}
            if "console" not in languages:
                silent.append(f"{page.name}: {part.splitlines()[0]}")
    assert silent == []

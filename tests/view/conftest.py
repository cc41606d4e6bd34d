"""Runs that are only read, written once; a browser, where there is one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.view.parts.browsers import CHROMIUM, Browser, chromium
from tests.view.parts.viewer_runs import (
    write_corpus,
    write_evaluation,
    write_problems,
    write_training,
    write_verdicts,
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium, in a window of 1280 x 900;
    tests that change it are given it back as it was.
    """
    if CHROMIUM is None:
        pytest.skip("no chromium, chromium-browser or google-chrome is installed here")
    with chromium() as browser:
        yield browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Browser]:
    """The same for one test, after which no page may have thrown anything."""
    browser.look(width=1280)
    yield browser
    browser.run("0")  # What was said meanwhile comes with an answer.
    assert browser.faults == []


@pytest.fixture(scope="session")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`one` and `two` (training), `eval`, `judged.jsonl`, `small` (a corpus), `problems.jsonl`,
    `submissions.jsonl`.
    """
    root = tmp_path_factory.mktemp("shelf")
    write_training(root / "one", manifest={"name": "one"})
    write_training(root / "two", manifest={"name": "two"}, seed=1, num_steps=4, is_finished=False)
    write_evaluation(root / "eval")
    write_verdicts(root / "judged.jsonl")
    (root / "small").mkdir()
    write_corpus(root / "small")
    write_problems(root / "problems.jsonl")
    return root

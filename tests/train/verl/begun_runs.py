"""The runs of these tests begin before the others of this folder, and are looked at last."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest
from verl_runs import Runs, make_runs

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # Tests of other folders first: what judges programs waits for processors that the runs keep busy.
    items.sort(key=lambda item: (item.path.parent == HERE, _looks_at_runs(item)))


def _looks_at_runs(item: pytest.Item) -> bool:
    return "runs" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def begun(tiny_checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Future[Runs]]:
    """What trains while other tests run."""
    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(make_runs, tiny_checkpoint, tmp_path_factory.mktemp("verl"))


@pytest.fixture(scope="session")
def runs(begun: Future[Runs]) -> Runs:
    """What was trained."""
    return begun.result()


@pytest.fixture(autouse=True)
def _begin(request: pytest.FixtureRequest) -> None:
    if request.path.parent == HERE and find_spec("transfer_queue") and any(map(_looks_at_runs, request.session.items)):
        request.getfixturevalue("begun")

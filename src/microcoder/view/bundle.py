"""A static copy of the viewer's page with some runs: a folder that opens from disk or the web.

Pages opened from disk may not fetch, but may load scripts: each piece of data is a script that
passes one value.

    index.html, *.css, *.js      the page
    vendor/                      the libraries that it uses, and their licences
    data/runs.js                 runs with their curves
    data/KEY/overview.js         the report of a training run
    data/KEY/replay.js           its replay, if its folder has one
    data/KEY/index.js            small columns of all rollouts (`Index.pack`, in base64)
    data/KEY/rows-N.js           texts and tests of `ROWS_A_CHUNK` rollouts
    data/KEY/tests-N.js          inputs and expected outputs of `PROBLEMS_A_CHUNK` problems

The pieces are what the server would answer. Long texts are cut, with their full length given.
"""

import base64
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import cut_pieces
from microcoder.lab.studies.report import check_alike
from microcoder.train.runs import read_history
from microcoder.view.answers import describe_run, describe_test, encode, shorten, show_overview
from microcoder.view.collection import Collection, open_collection
from microcoder.view.files import ProblemTests
from microcoder.view.index import Index, RunSource
from microcoder.view.training_source import TrainingSource

ROWS_A_CHUNK = 25
"""Number of rollouts whose texts are in one script."""

PROBLEMS_A_CHUNK = 20
"""Number of problems whose tests are in one script."""

_LONGEST_IN_BUNDLE = 20_000
"""Most characters of a text in a bundle; the page says when there were more."""

_MOST_IN_REPORT = 16_000_000
"""Most bytes of rollouts' texts in a report, which is written after every run."""

_MARK = "data/runs.js"
"""File that every bundle has: a folder with it may be replaced."""

_PLACE = b"<!-- bundle -->"
"""Where the page of a server lacks the script of a bundle's runs."""

_SCRIPT = b'<script src="data/runs.js" defer></script>'
"""That script."""

TYPES = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "txt": "text/plain",
}
"""Suffix of the page's files -> their type on the web."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The page and the size of a bundle on disk."""

    page: Path
    num_rollouts: int
    num_bytes: int


def write_bundle(collection: Collection, folder: Path) -> Bundle:
    """Write the viewer's page with some runs into a folder.

    A bundle that is there already is replaced.

    Raises:
        DataError: the folder holds something else.
    """
    # A mistyped folder must not cost the user its files.
    if folder.exists() and not _may_replace(folder):
        raise DataError(f"{folder} exists and is not a bundle; choose another --bundle folder")
    return _write(collection, folder)


def _may_replace(folder: Path) -> bool:
    if not folder.is_dir():
        return False
    if not any(folder.iterdir()):
        return True
    return (folder / _MARK).exists()


def write_report(run_directory: Path, *, against: Sequence[Path] = ()) -> Path:
    """Write the report of a run, finished or not, into its folder.

    It is a bundle that opens on the overview. Inputs of tests are left out, and rollouts' texts
    beyond 16 MB: `microcoder view` shows them.

    Returns:
        Its page.

    Raises:
        DataError: a folder is not a run, one of its files is damaged, or runs to compare have
            other problems.
    """
    history = read_history(run_directory)
    if history.manifest.get("kind") == "evaluation":
        raise DataError(
            f"{run_directory} is an evaluation, not a training run; type: microcoder report "
            f"{run_directory}"
        )
    if not (history.steps or history.evaluations or "config" in history.manifest):
        raise DataError(
            f"{run_directory} is no run: its manifest.json is another program's; name a training "
            "run"
        )
    for other in against:
        check_alike(history, read_history(other))
    collection = open_collection([run_directory, *against])
    for source in collection.values():
        source.tests = ProblemTests()
    return _write(collection, history.run.report.parent, is_report=True).page


def _write(collection: Collection, folder: Path, *, is_report: bool = False) -> Bundle:
    """Write page and data into a folder, whose old data goes."""
    # Pieces of a longer run would stay among the new ones.
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    (folder / "vendor").mkdir(exist_ok=True)
    num_bytes = 0
    num_rollouts = 0
    runs = []
    for key, source in collection.items():
        index = source.index()
        (folder / "data" / key).mkdir()
        if isinstance(source, TrainingSource):
            overview = show_overview(collection, {"run": key})
            num_bytes += _write_piece(folder, f"{key}/overview", overview)
            if source.replay.is_there:
                num_bytes += _write_piece(folder, f"{key}/replay", source.replay.read())
        for name, value in _pieces(source, index):
            if is_report and name.startswith("rows-") and num_bytes >= _MOST_IN_REPORT:
                # A large run is not read to its end.
                break
            num_bytes += _write_piece(folder, f"{key}/{name}", value)
        num_rollouts += len(index)
        runs.append(
            {
                **describe_run(key, source),
                "has_tests": not source.tests.is_empty,
                "rows_a_chunk": ROWS_A_CHUNK,
                "problems_a_chunk": PROBLEMS_A_CHUNK,
            }
        )
    for name, body in read_static().items():
        if name == "index.html":
            body = body.replace(_PLACE, _SCRIPT)
        (folder / name).write_bytes(body)
        num_bytes += len(body)
    # Last: a folder without it is no bundle.
    num_bytes += _write_piece(folder, "runs", runs)
    return Bundle(folder / "index.html", num_rollouts, num_bytes)


def _pieces(source: RunSource, index: Index) -> Iterator[tuple[str, Any]]:
    """Yield name and value of a run's pieces of data; tests come last."""
    yield "index", base64.b64encode(index.pack()).decode("ascii")
    chunks = cut_pieces(source.read_all(index), ROWS_A_CHUNK)
    for number, rows in enumerate(chunks):
        yield f"rows-{number}", [shorten(row, _LONGEST_IN_BUNDLE) for row in rows]
    if source.tests.is_empty:
        return
    problem_ids = index.words["problem_id"]
    for number, chunk in enumerate(cut_pieces(problem_ids, PROBLEMS_A_CHUNK)):
        yield f"tests-{number}", {name: _describe_tests(source, name) for name in chunk}


def _describe_tests(source: RunSource, problem_id: str) -> dict[str, Any] | None:
    """Return a problem's tests, or why they are not shown; None if no file holds the problem."""
    found = source.find_tests(problem_id)
    problem = found.problem
    if problem is None:
        return {"tests": [], "why": found.why} if found.why else None
    return {
        "tests": [describe_test(test, _LONGEST_IN_BUNDLE) for test in problem.tests],
        "checker": problem.checker,
        "origin": problem.origin,
        "statement": problem.statement,
    }


def _write_piece(folder: Path, name: str, value: object) -> int:
    """Write a piece of data; return the number of its bytes."""
    body = f"viewer.deliver({encode(name)},{encode(value)});\n".encode("ascii")
    (folder / "data" / f"{name}.js").write_bytes(body)
    return len(body)


def read_static() -> dict[str, bytes]:
    """Return the page's files (HTML, styles, scripts) by name.

    Those of libraries are `vendor/...`.
    """
    root = files("microcoder.view").joinpath("static")
    contents = {}
    for prefix, folder in (("", root), ("vendor/", root.joinpath("vendor"))):
        for file in folder.iterdir():
            if file.name.rpartition(".")[2] in TYPES:
                contents[prefix + file.name] = file.read_bytes()
    return contents

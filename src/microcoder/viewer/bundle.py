"""A folder that shows runs without a server: it opens from disk, or lies on any web host.

Pages opened from disk may not fetch, but may load scripts: each piece of data is a script that hands over one value.

    index.html, *.css, *.js      the page
    data/runs.js                 runs with their curves
    data/KEY/index.js            light columns of all rollouts (`Index.pack`, in base64)
    data/KEY/rows-N.js           texts and tests of `ROWS_A_CHUNK` rollouts
    data/KEY/tests-N.js          inputs and expected outputs of `PROBLEMS_A_CHUNK` problems
"""

from __future__ import annotations

import base64
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.errors import DataError
from microcoder.pieces import cut_pieces
from microcoder.viewer.answers import describe_run, describe_test, shorten
from microcoder.viewer.collection import Collection
from microcoder.viewer.index import Index
from microcoder.viewer.server import encode, read_static
from microcoder.viewer.sources import RunSource

ROWS_A_CHUNK = 25
PROBLEMS_A_CHUNK = 20
LONGEST_TEXT = 20_000
"""Characters kept of a text; the page says when there were more."""
_SIZES = {"rows_a_chunk": ROWS_A_CHUNK, "problems_a_chunk": PROBLEMS_A_CHUNK}
_MARK = "data/runs.js"
_PLACE = b"<!-- bundle -->"
_SCRIPT = b'<script src="data/runs.js" defer></script>'


@dataclass(frozen=True, slots=True)
class Bundle:
    """What was written."""

    page: Path
    num_rollouts: int
    num_bytes: int


def write_bundle(collection: Collection, folder: Path) -> Bundle:
    """Write runs as a folder, in place of a bundle that is there already.

    Raises:
        DataError: the folder holds something else.
    """
    if folder.exists() and not (folder.is_dir() and (not any(folder.iterdir()) or (folder / _MARK).exists())):
        raise DataError(f"{folder} exists and is no bundle; choose another --bundle folder")
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    num_bytes = num_rollouts = 0
    runs = []
    for key, source in collection.sources.items():
        index = source.index()
        (folder / "data" / key).mkdir()
        for name, value in _pieces(source, index):
            num_bytes += _write_piece(folder, f"{key}/{name}", value)
        num_rollouts += len(index)
        runs.append({**describe_run(key, source), "has_tests": not source.tests.is_empty, **_SIZES})
    for name, body in read_static().items():
        body = body.replace(_PLACE, _SCRIPT) if name == "index.html" else body
        (folder / name).write_bytes(body)
        num_bytes += len(body)
    num_bytes += _write_piece(folder, "runs", runs)
    return Bundle(folder / "index.html", num_rollouts, num_bytes)


def _pieces(source: RunSource, index: Index) -> Iterator[tuple[str, Any]]:
    yield "index", base64.b64encode(index.pack()).decode("ascii")
    for number, rows in enumerate(cut_pieces(source.read_all(index), ROWS_A_CHUNK)):
        yield f"rows-{number}", [shorten(row, LONGEST_TEXT) for row in rows]
    if not source.tests.is_empty:
        for number, names in enumerate(cut_pieces(index.words["problem_id"], PROBLEMS_A_CHUNK)):
            yield f"tests-{number}", {name: _tests(source, name) for name in names}


def _tests(source: RunSource, problem_id: str) -> dict[str, Any] | None:
    asked = source.tests.find(problem_id)
    if asked is None:
        return None
    tests = [describe_test(test, LONGEST_TEXT) for test in asked.tests]
    return {"tests": tests, "checker": asked.checker, "origin": asked.origin, "statement": asked.statement}


def _write_piece(folder: Path, name: str, value: Any) -> int:
    body = f"viewer.deliver({encode(name)},{encode(value)});\n".encode("ascii")
    (folder / "data" / f"{name}.js").write_bytes(body)
    return len(body)

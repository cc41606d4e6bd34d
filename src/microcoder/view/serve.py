"""The viewer: the opened runs, a static copy of its page (a bundle), and the local server.

A bundle is a folder that opens from disk or from any web host.

Pages opened from disk may not fetch, but may load scripts: each piece of data is a script that passes one value.

    index.html, *.css, *.js      the page
    data/runs.js                 runs with their curves
    data/KEY/overview.js         the report of a training run
    data/KEY/index.js            small columns of all rollouts (`Index.pack`, in base64)
    data/KEY/rows-N.js           texts and tests of `ROWS_A_CHUNK` rollouts
    data/KEY/tests-N.js          inputs and expected outputs of `PROBLEMS_A_CHUNK` problems

Server and bundle hold the same JSON values. Long texts are cut, with their full length given.

The server is that of the standard library, bound to the loopback, and only reads files.

Another site's page must not read runs through the visitor's browser: a request is refused when its Host is another
name (DNS rebinding) or when the browser says that another site sent it. Paths are looked up in two tables and never
joined to a folder.
"""

import base64
import json
import math
import re
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qsl, urlsplit

import numpy as np

from microcoder.judge.core.errors import ConfigError, DataError, MicroCoderError
from microcoder.judge.core.files import cut_pieces, read_json
from microcoder.lab.studies.report import check_alike, describe_report
from microcoder.train.runs import read_history
from microcoder.view.files import ProblemTests, Row, tests_of_files
from microcoder.view.index import Index, Needle, RunSource, find_texts, list_matches
from microcoder.view.sources import CorpusSource, EvaluationSource, VerdictSource
from microcoder.view.training_source import TrainingSource


class Collection(dict[str, RunSource]):
    """The opened runs by the key that links use; DataError for another key."""

    def __missing__(self, key: str) -> RunSource:
        raise DataError(f"run={key!r} is not open; open are {', '.join(self)}")


def open_collection(paths: Sequence[Path], *, problem_files: Sequence[Path] = ()) -> Collection:
    """Open runs; problem files say where tests' inputs and expected outputs are, when a run does not.

    Raises:
        DataError: a path is no run, corpus or file of verdicts, or a problem file is missing or holds no problem.
    """
    tests = tests_of_files(problem_files) if problem_files else None
    collection = Collection()
    for path in paths:
        source = _open(path, tests)
        base = re.sub(r"[^\w.+-]+", "-", source.name, flags=re.ASCII).strip("-.") or "run"
        key, number = base, 1
        while key in collection:
            number += 1
            key = f"{base}-{number}"
        collection[key] = source
    return collection


def _open(path: Path, tests: ProblemTests | None) -> RunSource:
    if path.is_file():
        return VerdictSource(path, tests)
    if not (path / "manifest.json").is_file():
        raise DataError(
            f"{path} is not a run: it has no manifest.json; name a folder of `microcoder train`, `microcoder eval` or "
            "`microcoder data build`, or a file of verdicts that `microcoder judge` wrote"
        )
    if any(path.glob("problems-*.parquet")):
        return CorpusSource(path)
    manifest = read_json(path / "manifest.json", what="manifest")
    kind = EvaluationSource if manifest.get("kind") == "evaluation" else TrainingSource
    return kind(path, manifest, tests)


ROWS_A_CHUNK = 25
PROBLEMS_A_CHUNK = 20
_LONGEST_IN_BUNDLE = 20_000
"""Most characters of a text in a bundle; the page says when there were more."""
_SIZES = {"rows_a_chunk": ROWS_A_CHUNK, "problems_a_chunk": PROBLEMS_A_CHUNK}
_MOST_IN_REPORT = 16_000_000
"""Most bytes of rollouts' texts in a report, which is written after every run."""
_MARK = "data/runs.js"
_PLACE = b"<!-- bundle -->"
_SCRIPT = b'<script src="data/runs.js" defer></script>'


@dataclass(frozen=True, slots=True)
class Bundle:
    """The page and the size of a bundle on disk."""

    page: Path
    num_rollouts: int
    num_bytes: int


def write_bundle(collection: Collection, folder: Path) -> Bundle:
    """Write the viewer's page with some runs into a folder, replacing a bundle that is there already.

    Raises:
        DataError: the folder holds something else.
    """
    if folder.exists() and not (
        folder.is_dir() and (not any(folder.iterdir()) or (folder / _MARK).exists())
    ):
        raise DataError(f"{folder} exists and is not a bundle; choose another --bundle folder")
    return _write(collection, folder)


def write_report(run_directory: Path, *, against: Sequence[Path] = ()) -> Path:
    """Write the report of a run, finished or not, into its folder: a bundle that opens on the overview.

    Returns its page. Inputs of tests are left out, and rollouts' texts beyond 16 MB: `microcoder view` shows them.

    Raises:
        DataError: a folder is not a run, one of its files is damaged, or runs to compare have other problems.
    """
    history = read_history(run_directory)
    if history.manifest.get("kind") == "evaluation":
        raise DataError(
            f"{run_directory} is an evaluation, not a training run; type: microcoder report {run_directory}"
        )
    if not (history.steps or history.evaluations or "config" in history.manifest):
        raise DataError(
            f"{run_directory} is no run: its manifest.json is another program's; name a training run"
        )
    for other in against:
        check_alike(history, read_history(other))
    collection = open_collection([run_directory, *against])
    for source in collection.values():
        source.tests = ProblemTests()
    return _write(collection, history.run.report.parent, is_report=True).page


def _write(collection: Collection, folder: Path, *, is_report: bool = False) -> Bundle:
    shutil.rmtree(folder / "data", ignore_errors=True)
    (folder / "data").mkdir(parents=True)
    num_bytes = num_rollouts = 0
    runs = []
    for key, source in collection.items():
        index = source.index()
        (folder / "data" / key).mkdir()
        if isinstance(source, TrainingSource):
            num_bytes += _write_piece(
                folder, f"{key}/overview", show_overview(collection, {"run": key})
            )
        for name, value in _pieces(source, index):
            if is_report and name.startswith("rows-") and num_bytes >= _MOST_IN_REPORT:
                break  # A large run is not read to its end.
            num_bytes += _write_piece(folder, f"{key}/{name}", value)
        num_rollouts += len(index)
        runs.append({**describe_run(key, source), "has_tests": not source.tests.is_empty, **_SIZES})
    for name, body in read_static().items():
        if name == "index.html":
            body = body.replace(_PLACE, _SCRIPT)
        (folder / name).write_bytes(body)
        num_bytes += len(body)
    num_bytes += _write_piece(folder, "runs", runs)
    return Bundle(folder / "index.html", num_rollouts, num_bytes)


def _pieces(source: RunSource, index: Index) -> Iterator[tuple[str, Any]]:
    yield "index", base64.b64encode(index.pack()).decode("ascii")
    for number, rows in enumerate(cut_pieces(source.read_all(index), ROWS_A_CHUNK)):
        yield f"rows-{number}", [shorten(row, _LONGEST_IN_BUNDLE) for row in rows]
    if not source.tests.is_empty:
        for number, names in enumerate(cut_pieces(index.words["problem_id"], PROBLEMS_A_CHUNK)):
            yield f"tests-{number}", {name: _tests(source, name) for name in names}


def _tests(source: RunSource, problem_id: str) -> dict[str, Any] | None:
    found = source.find_tests(problem_id)
    asked = found.asked
    if asked is None:
        return {"tests": [], "why": found.why} if found.why else None
    tests = [describe_test(test, _LONGEST_IN_BUNDLE) for test in asked.tests]
    return {
        "tests": tests,
        "checker": asked.checker,
        "origin": asked.origin,
        "statement": asked.statement,
    }


def _write_piece(folder: Path, name: str, value: Any) -> int:
    body = f"viewer.deliver({encode(name)},{encode(value)});\n".encode("ascii")
    (folder / "data" / f"{name}.js").write_bytes(body)
    return len(body)


LONGEST_TEXT = 200_000
"""Most characters of a text that the server sends."""
_TEXTS = ("prompt", "completion", "program")
_OF_TEST = {"input": "input", "expected": "output"}
"""Name of a test's text on the page -> its key in `Asked.tests`."""
Words = Mapping[str, str]


def list_runs(collection: Collection, words: Words) -> list[Row]:
    """Return every run with its curves, tables, facts and notices."""
    return [describe_run(key, source) for key, source in collection.items()]


def describe_run(key: str, source: RunSource) -> Row:
    """Return what the page shows of a run as a whole: name, kind, state, facts, notices, charts, tables."""
    about = source.about()
    lists = {name: list(getattr(about, name)) for name in ("facts", "notices", "charts", "tables")}
    return {"key": key, "name": source.name, "kind": source.kind, "state": about.state, **lists}


def show_overview(collection: Collection, words: Words) -> Row:
    """Return the report of a training run, compared with the other open runs on the same problems."""
    source = collection[words.get("run", "")]
    if not isinstance(source, TrainingSource):
        raise DataError(
            f"run={words.get('run', '')!r} is not a training run, so there is no report on it"
        )
    runs = [
        run for run in collection.values() if isinstance(run, TrainingSource) and run is not source
    ]
    return describe_report(
        source.history(), [run.history() for run in runs if run.asked == source.asked]
    )


def show_pulse(collection: Collection, words: Words) -> dict[str, str]:
    """Return by run a text that changes with its content; an open page polls this every few seconds."""
    return {key: source.stamp() for key, source in collection.items()}


def send_index(collection: Collection, words: Words) -> bytes:
    """Return the packed index of a run (`Index.pack`)."""
    return collection[words.get("run", "")].index().pack()


def search_texts(collection: Collection, words: Words) -> Row:
    """Return which rollouts hold a text: `bits`, one per rollout in the order of the index of that `version`."""
    source = collection[words.get("run", "")]
    index = source.index()
    mask = find_texts(source.parts(index), _read_needle(words))
    bits = base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode("ascii")
    return {"version": index.version, "num": len(mask), "bits": bits}


def show_rollout(collection: Collection, words: Words) -> Row:
    """Return a rollout with its texts and tests; with a search, also the strings that it matches there."""
    source, record = _find(collection, words)
    shown = {**shorten(source.read(record), LONGEST_TEXT), **record}
    if words.get("text"):
        texts = [shown[name] for name in _TEXTS]
        texts += [test.get(name) for test in shown["tests"] for name in ("detail", "output")]
        shown["matches"] = list_matches(_read_needle(words), list(filter(None, texts)))
    return shown


def shorten(row: Row, longest: int) -> Row:
    """Return a rollout's texts and tests cut to a length; `cut` names the texts that were, with their lengths."""
    told = ("extraction", "temperature", "facts", "lost")
    cut: dict[str, int] = {}
    shown: Row = {name: row[name] for name in told if row.get(name) is not None}
    shown |= {name: _cut(row.get(name), longest, name, cut) for name in _TEXTS}
    shown["tests"] = [
        _shorten_test(number, test, longest, cut)
        for number, test in enumerate(row.get("tests") or [])
    ]
    return {**shown, "cut": cut}


def show_test(collection: Collection, words: Words) -> Row:
    """Return a test's input and expected output, if they are known."""
    source = collection[words.get("run", "")]
    number = _read_number(words, "test")
    found = source.find_tests(words.get("problem", ""))
    asked = found.asked
    if asked is None or number >= len(asked.tests):
        num_tests = len(asked.tests) if asked else 0
        return {"is_known": False, "num_tests": num_tests, "why": found.why}
    return describe_test(asked.tests[number], LONGEST_TEXT) | {
        "is_known": True,
        "num_tests": len(asked.tests),
        "checker": asked.checker,
        "origin": asked.origin,
        "statement": asked.statement[:LONGEST_TEXT],
    }


def describe_test(test: Mapping[str, str], longest: int) -> Row:
    """Return a test's input and expected output cut to a length."""
    cut: dict[str, int] = {}
    shown = {name: _cut(test[field], longest, name, cut) for name, field in _OF_TEST.items()}
    return {**shown, "cut": cut}


def finite(value: Any) -> Any:
    """Return a JSON value in which NaN and infinities are replaced by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value


Answer = Callable[[Collection, Words], Any]
ANSWERS: dict[str, Answer] = {
    "/api/runs": list_runs,
    "/api/overview": show_overview,
    "/api/pulse": show_pulse,
    "/api/index": send_index,
    "/api/search": search_texts,
    "/api/rollout": show_rollout,
    "/api/test": show_test,
}
"""Path of a request -> the function that answers it."""


def _read_needle(words: Words) -> Needle:
    return Needle(
        words.get("text", ""), is_regex=words.get("regex") == "yes", field=words.get("field", "")
    )


def _read_number(words: Words, name: str) -> int:
    text = words.get(name, "") or "0"
    if not re.fullmatch(r"\d{1,9}", text):
        raise DataError(f"{name}={text!r} is not a number")
    return int(text)


def _find(collection: Collection, words: Words) -> tuple[RunSource, Row]:
    source = collection[words.get("run", "")]
    index = source.index()
    if (place := index.find(words.get("id", ""))) is None:
        raise DataError(
            f"id={words.get('id', '')!r} names no rollout of this run; ids are split/step/row"
        )
    return source, index.record(place)


def _shorten_test(number: int, test: Mapping[str, Any], longest: int, cut: dict[str, int]) -> Row:
    shown: Row = {name: value for name, value in test.items() if not isinstance(value, str)}
    for name, value in test.items():
        if isinstance(value, str):
            shown[name] = _cut(
                value, longest, f"{number}/{'actual' if name == 'output' else name}", cut
            )
    return shown


def _cut(text: object, longest: int, name: str, cut: dict[str, int]) -> str | None:
    if not isinstance(text, str):
        return None
    if len(text) > longest:
        cut[name] = len(text)
    return text[:longest]


ADDRESS = "127.0.0.1"
HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
"""Host names of requests from a browser on this machine, or at the other end of an ssh tunnel."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript"}


def read_static() -> dict[str, bytes]:
    """Return the page's files (HTML, styles, scripts) by name."""
    folder = files("microcoder.view").joinpath("static")
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _TYPES
    }


class ViewerServer(ThreadingHTTPServer):
    """Serves one collection of runs until it is shut down."""

    daemon_threads = True

    def __init__(self, collection: Collection, *, port: int) -> None:
        """Listen on a port of the loopback; 0 takes any that is free."""
        self.collection = collection
        self.static = read_static()
        try:
            super().__init__((ADDRESS, port), _Handler)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"port {port} cannot be used ({error}); choose another with --port, or 0 for any"
            ) from None

    @property
    def url(self) -> str:
        """The address of the page."""
        return f"http://{ADDRESS}:{self.server_address[1]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a connection that the browser closed; print any other error, which is a bug."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "microcoder", ""
    timeout = 60
    wbufsize = (
        1 << 16
    )  # Head and body leave together: apart, the second would wait for the first to be acknowledged.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if not self._is_own_host():
            self._send_json(
                {"error": "this host name is not served; open 127.0.0.1"},
                HTTPStatus.MISDIRECTED_REQUEST,
            )
        elif address.path in ANSWERS:
            self._answer(address.path, address.query)
        else:
            name = address.path.removeprefix("/") or "index.html"
            body = self._viewer.static.get(name)
            if body is None:
                self._send_json({"error": "there is no such page"}, HTTPStatus.NOT_FOUND)
            else:
                self._send(body, f"{_TYPES[name.rpartition('.')[2]]}; charset=utf-8", HTTPStatus.OK)

    do_HEAD = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: all requests are the user's own."""

    @property
    def _viewer(self) -> ViewerServer:
        return cast(ViewerServer, self.server)

    def _answer(self, path: str, query: str) -> None:
        if self.headers.get("Sec-Fetch-Site", "same-origin") not in ("same-origin", "none"):
            self._send_json({"error": "another site may not read runs"}, HTTPStatus.FORBIDDEN)
            return
        try:
            words = dict(parse_qsl(query, keep_blank_values=True, max_num_fields=40))
            value, status = ANSWERS[path](self._viewer.collection, words), HTTPStatus.OK
        except (MicroCoderError, OSError, ValueError) as error:
            value, status = {"error": str(error)}, HTTPStatus.BAD_REQUEST
        if isinstance(value, bytes):
            self._send(value, "application/octet-stream", status)
        else:
            self._send_json(value, status)

    def _is_own_host(self) -> bool:
        host = self.headers.get("Host", "").lower()
        name, colon, port = host.rpartition(":")
        return (name if colon and port.isdecimal() else host) in HOSTS

    def _send_json(self, value: Any, status: HTTPStatus) -> None:
        self._send(encode(value).encode("ascii"), "application/json", status)

    def _send(self, body: bytes, kind: str, status: HTTPStatus) -> None:
        self.send_response(status)
        for name, value in (
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            ("Content-Security-Policy", POLICY),
            ("X-Content-Type-Options", "nosniff"),
            ("Cross-Origin-Resource-Policy", "same-origin"),
            ("Referrer-Policy", "no-referrer"),
            ("Cache-Control", "no-store"),
        ):
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def encode(value: Any) -> str:
    """Return a value as JSON in ASCII, so lone surrogates and line separators are escaped; NaN becomes null."""
    try:
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(finite(value), allow_nan=False, separators=(",", ":"))

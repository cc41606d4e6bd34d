"""What the viewer's page asks, and the JSON values that answer it, from a server or a bundle alike.

Long texts are cut, with their full length given.
"""

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from microcoder.judge.core.errors import DataError
from microcoder.lab.studies.report import describe_report
from microcoder.view.collection import Collection
from microcoder.view.files import Row
from microcoder.view.index import Needle, RunSource, find_texts, list_matches
from microcoder.view.training_source import TrainingSource

LONGEST_TEXT = 200_000
"""Most characters of a text that the server sends."""

_TEXTS = ("prompt", "completion", "program")
"""Texts of a rollout, which are cut."""

_PASSED_ON = ("extraction", "temperature", "facts", "lost")
"""Other values of a rollout that the page shows."""

Words = Mapping[str, str]
"""The parameters of a request."""


# ----- Runs.


def list_runs(collection: Collection, words: Words) -> list[Row]:
    """Return every run with its curves, tables, facts and notices."""
    return [describe_run(key, source) for key, source in collection.items()]


def describe_run(key: str, source: RunSource) -> Row:
    """Return what the page shows of a run as a whole.

    It has name, kind, state, facts, notices, charts, tables, clock, notes and `has_replay`.
    """
    about = source.about()
    notes = source.notes
    return {
        "key": key,
        "name": source.name,
        "kind": source.kind,
        "state": about.state,
        "facts": list(about.facts),
        "notices": list(about.notices),
        "charts": list(about.charts),
        "tables": list(about.tables),
        "clock": list(about.clock),
        "notes": notes.read() if notes else None,
        "has_replay": isinstance(source, TrainingSource) and source.replay.is_there,
    }


def show_overview(collection: Collection, words: Words) -> Row:
    """Return the report of a training run, compared with the other open runs on its problems."""
    source = _find_run(collection, words)
    if not isinstance(source, TrainingSource):
        raise DataError(
            f"run={words.get('run', '')!r} is not a training run, so there is no report on it"
        )
    others = []
    for run in collection.values():
        if run is source or not isinstance(run, TrainingSource):
            continue
        # On other problems a difference would say nothing.
        if run.problems_digest == source.problems_digest:
            others.append(run.history())
    return describe_report(source.history(), others)


def show_replay(collection: Collection, words: Words) -> Row:
    """Return the replay that is kept in the folder of a training run."""
    source = _find_run(collection, words)
    if not isinstance(source, TrainingSource):
        raise DataError(f"run={words.get('run', '')!r} is not a training run, so it has no replay")
    return source.replay.read()


def show_pulse(collection: Collection, words: Words) -> dict[str, str]:
    """Return by run a text that changes with its content.

    An open page polls this every few seconds.
    """
    stamps = {}
    for key, source in collection.items():
        notes = source.notes.stamp() if source.notes else ""
        stamps[key] = f"{source.stamp()} {notes}"
    return stamps


def send_index(collection: Collection, words: Words) -> bytes:
    """Return the packed index of a run (`Index.pack`)."""
    return _find_run(collection, words).index().pack()


def search_texts(collection: Collection, words: Words) -> Row:
    """Return which rollouts contain a text.

    The answer has `bits`, one per rollout, in the order of the index of that `version`.
    """
    source = _find_run(collection, words)
    index = source.index()
    mask = find_texts(source.parts(index), _read_needle(words))
    # Bits and no ids: those of a million rollouts are 125 kB.
    packed = np.packbits(mask, bitorder="little")
    bits = base64.b64encode(packed.tobytes()).decode("ascii")
    return {"version": index.version, "num": len(mask), "bits": bits}


# ----- Rollouts and tests.


def show_rollout(collection: Collection, words: Words) -> Row:
    """Return a rollout with its texts and tests.

    With a search, it has also the strings that the search matches there.
    """
    source = _find_run(collection, words)
    index = source.index()
    position = index.find(words.get("id", ""))
    if position is None:
        raise DataError(
            f"id={words.get('id', '')!r} names no rollout of this run; ids are split/step/row"
        )
    record = index.record(position)
    shown = {**shorten(source.read(record), LONGEST_TEXT), **record}
    if words.get("text"):
        texts = [shown[name] for name in _TEXTS]
        for test in shown["tests"]:
            texts += [test.get("detail"), test.get("output")]
        needle = _read_needle(words)
        filled = [text for text in texts if text]
        shown["matches"] = list_matches(needle, filled)
    return shown


def shorten(row: Row, longest: int) -> Row:
    """Return a rollout's texts and tests cut to a length.

    `cut` names the texts that were longer, with their lengths.
    """
    cut: dict[str, int] = {}
    shown: Row = {name: row[name] for name in _PASSED_ON if row.get(name) is not None}
    for name in _TEXTS:
        shown[name] = _cut(row.get(name), longest, name, cut)
    tests = []
    for number, test in enumerate(row.get("tests") or []):
        tests.append(_shorten_test(number, test, longest, cut))
    shown["tests"] = tests
    shown["cut"] = cut
    return shown


def show_test(collection: Collection, words: Words) -> Row:
    """Return a test's input and expected output, if they are known."""
    source = _find_run(collection, words)
    number = _read_number(words, "test")
    found = source.find_tests(words.get("problem", ""))
    problem = found.problem
    if problem is None or number >= len(problem.tests):
        num_tests = len(problem.tests) if problem else 0
        return {"is_known": False, "num_tests": num_tests, "why": found.why}
    return {
        **describe_test(problem.tests[number], LONGEST_TEXT),
        "is_known": True,
        "num_tests": len(problem.tests),
        "checker": problem.checker,
        "origin": problem.origin,
        "statement": problem.statement[:LONGEST_TEXT],
    }


def describe_test(test: Mapping[str, str], longest: int) -> Row:
    """Return a test's input and expected output cut to a length."""
    cut: dict[str, int] = {}
    return {
        "input": _cut(test["input"], longest, "input", cut),
        "expected": _cut(test["output"], longest, "expected", cut),
        "cut": cut,
    }


def _shorten_test(
    number: int,
    test: Mapping[str, Any],
    longest: int,
    cut: dict[str, int],
) -> Row:
    texts = {}
    shown: Row = {}
    for name, value in test.items():
        if isinstance(value, str):
            texts[name] = value
        else:
            shown[name] = value
    for name, text in texts.items():
        # The page calls it so, as beside the expected one.
        name_on_page = "actual" if name == "output" else name
        shown[name] = _cut(text, longest, f"{number}/{name_on_page}", cut)
    return shown


def _cut(
    text: object,
    longest: int,
    name: str,
    cut: dict[str, int],
) -> str | None:
    """Return a text cut to a length, which is noted in `cut`; None for another value."""
    if not isinstance(text, str):
        return None
    if len(text) > longest:
        cut[name] = len(text)
    return text[:longest]


def write_note(collection: Collection, words: Words) -> Row:
    """Keep a note on a rollout, and return the run's notes."""
    source = _find_run(collection, words)
    name = words.get("id", "")
    if source.notes is None:
        raise DataError(
            f"run={words.get('run', '')!r} is a file; notes are kept in the folder of a run"
        )
    if source.index().find(name) is None:
        raise DataError(f"id={name!r} names no rollout of this run; ids are split/step/row")
    source.notes.write(name, words.get("text", ""))
    return {"notes": source.notes.read()}


# ----- Requests.

Answer = Callable[[Collection, Words], Any]
"""A function that answers a request: a JSON value, or bytes."""

ANSWERS: dict[str, Answer] = {
    "/api/runs": list_runs,
    "/api/overview": show_overview,
    "/api/replay": show_replay,
    "/api/pulse": show_pulse,
    "/api/index": send_index,
    "/api/search": search_texts,
    "/api/rollout": show_rollout,
    "/api/test": show_test,
}
"""Path of a request -> the function that answers it."""

CHANGES: dict[str, Answer] = {"/api/note": write_note}
"""Path of a request that writes -> the function that does so."""


def _find_run(collection: Collection, words: Words) -> RunSource:
    return collection[words.get("run", "")]


def _read_needle(words: Words) -> Needle:
    return Needle(
        text=words.get("text", ""),
        is_regex=words.get("regex") == "yes",
        field=words.get("field", ""),
    )


def _read_number(words: Words, name: str) -> int:
    text = words.get(name, "") or "0"
    if not re.fullmatch(r"\d{1,9}", text):
        raise DataError(f"{name}={text!r} is not a number")
    return int(text)


# ----- JSON.


def finite(value: object) -> object:
    """Return a JSON value in which NaN and infinities are replaced by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [finite(inner) for inner in value]
    return value


def encode(value: object) -> str:
    """Return a value as JSON in ASCII, so lone surrogates and line separators are escaped.

    NaN becomes null.
    """
    try:
        # NaN is no JSON, and a browser's parser refuses the whole text for it.
        return json.dumps(value, allow_nan=False, separators=(",", ":"))
    except ValueError:
        return json.dumps(finite(value), allow_nan=False, separators=(",", ":"))

"""Requests -> JSON values: what the server sends and the bundle holds. A long text is cut, and says how long it is."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from microcoder.errors import DataError
from microcoder.viewer.collection import Collection
from microcoder.viewer.index import Index
from microcoder.viewer.search import Needle, list_matches
from microcoder.viewer.sources import Row, RunSource

LONGEST_TEXT = 50_000
"""Characters shown of a text unless the whole is asked for."""
_TEXTS = ("prompt", "completion", "program")
_MOST_QUOTES = 200
Words = Mapping[str, str]


def list_runs(collection: Collection, words: Words) -> list[Row]:
    """Return every run with its curves, tables, facts and notices."""
    return [describe_run(key, source) for key, source in collection.sources.items()]


def describe_run(key: str, source: RunSource) -> Row:
    """Return what the page shows of a run as a whole."""
    about = source.about()
    return {
        "key": key,
        "name": source.name,
        "kind": source.kind,
        "state": about.state,
        "facts": list(about.facts),
        "notices": list(about.notices),
        "charts": list(about.charts),
        "tables": list(about.tables),
    }


def show_pulse(collection: Collection, words: Words) -> dict[str, str]:
    """Return for each run what changes whenever it has something new: an open page asks every few seconds."""
    return {key: source.stamp() for key, source in collection.sources.items()}


def send_index(collection: Collection, words: Words) -> bytes:
    """Return the light columns of a run; a list is often searched next, so its texts are read ahead."""
    source = collection[words.get("run", "")]
    index = source.index()
    collection.searcher.begin(source.parts(index))
    return index.pack()


def search_texts(collection: Collection, words: Words) -> Row:
    """Return which rollouts hold a text: a bit each, in the order of the index of that version."""
    source = collection[words.get("run", "")]
    index = source.index()
    mask = collection.searcher.find(source.parts(index), _read_needle(words))
    bits = base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode("ascii")
    return {"version": index.version, "num": len(mask), "bits": bits}


def quote_texts(collection: Collection, words: Words) -> Row:
    """Return the first hit in each of some rollouts, named by their places in the index."""
    source = collection[words.get("run", "")]
    places = [int(place) for place in re.findall(r"\d{1,9}", words.get("places", ""))][:_MOST_QUOTES]
    return {"quotes": collection.searcher.quote(source.parts(source.index()), _read_needle(words), places)}


def show_rollout(collection: Collection, words: Words) -> Row:
    """Return a rollout with its texts and tests; with a search, also the strings that it matches there."""
    source = collection[words.get("run", "")]
    index = source.index()
    record = index.record(_find(index, words))
    shown = {**shorten(source.read(record), LONGEST_TEXT), **record}
    if words.get("text"):
        texts = [shown[name] for name in _TEXTS] + [
            test.get(name) for test in shown["tests"] for name in ("detail", "output")
        ]
        shown["matches"] = list_matches(_read_needle(words), [text for text in texts if text])
    return shown


def shorten(row: Row, longest: int) -> Row:
    """Return a rollout's texts and tests cut to a length; `cut` names the texts that were, with their lengths."""
    shown: Row = {
        name: row.get(name) for name in ("extraction", "temperature", "facts", "tokens") if row.get(name) is not None
    }
    cut: dict[str, int] = {}
    for name in _TEXTS:
        text = row.get(name)
        shown[name] = _cut(text, longest, name, cut)
    shown["tests"] = [_shorten_test(number, test, longest, cut) for number, test in enumerate(row.get("tests") or [])]
    return {**shown, "cut": cut}


def show_test(collection: Collection, words: Words) -> Row:
    """Return a test's input and expected output, if they are known."""
    source = collection[words.get("run", "")]
    number = _read_number(words, "test")
    asked = source.tests.find(words.get("problem", ""))
    if asked is None or number >= len(asked.tests):
        return {"is_known": False, "num_tests": len(asked.tests) if asked else 0}
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
    return {
        "input": _cut(test["input"], longest, "input", cut),
        "expected": _cut(test["output"], longest, "expected", cut),
        "cut": cut,
    }


def show_text(collection: Collection, words: Words) -> Row:
    """Return one text whole: a rollout's, a test's `input` or `expected`, or the `actual` output of a test."""
    source, field = collection[words.get("run", "")], words.get("field", "")
    index = source.index()
    record = index.record(_find(index, words))
    number = _read_number(words, "test")
    text: object = None
    if field in _TEXTS:
        text = source.read(record).get(field)
    elif field == "actual":
        tests = source.read(record).get("tests") or []
        text = tests[number].get("output") if number < len(tests) else None
    elif field in ("input", "expected"):
        asked = source.tests.find(record["problem_id"])
        if asked and number < len(asked.tests):
            text = asked.tests[number]["input" if field == "input" else "output"]
    if not isinstance(text, str):
        raise DataError(f"field={field!r} of {words.get('id')!r} is not in the files")
    return {"text": text}


def finite(value: Any) -> Any:
    """Return a JSON value without the numbers that JSON has no word for."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value


Answer = Callable[[Collection, Words], Any]
ANSWERS: dict[str, Answer] = {
    "/api/runs": list_runs,
    "/api/pulse": show_pulse,
    "/api/index": send_index,
    "/api/search": search_texts,
    "/api/quotes": quote_texts,
    "/api/rollout": show_rollout,
    "/api/test": show_test,
    "/api/text": show_text,
}
"""Every request there is."""


def _read_needle(words: Words) -> Needle:
    return Needle(words.get("text", ""), is_regex=words.get("regex") == "yes", field=words.get("field", ""))


def _read_number(words: Words, name: str) -> int:
    text = words.get(name, "") or "0"
    if not re.fullmatch(r"\d{1,9}", text):
        raise DataError(f"{name}={text!r} is no number")
    return int(text)


def _find(index: Index, words: Words) -> int:
    place = index.find(words.get("id", ""))
    if place is None:
        raise DataError(f"id={words.get('id', '')!r} names no rollout of this run; ids are split/step/row")
    return place


def _shorten_test(number: int, test: Mapping[str, Any], longest: int, cut: dict[str, int]) -> Row:
    shown: Row = {name: value for name, value in test.items() if not isinstance(value, str)}
    for name, value in test.items():
        if isinstance(value, str):
            shown[name] = _cut(value, longest, f"{number}/{'actual' if name == 'output' else name}", cut)
    return shown


def _cut(text: object, longest: int, name: str, cut: dict[str, int]) -> str | None:
    if not isinstance(text, str):
        return None
    if len(text) > longest:
        cut[name] = len(text)
    return text[:longest]

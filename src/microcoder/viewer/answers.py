"""Requests -> JSON values: what the server sends and the bundle holds. A long text is cut, and says how long it is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from microcoder.errors import DataError
from microcoder.viewer.index import Index
from microcoder.viewer.query import read_number, read_query
from microcoder.viewer.sources import Collection, Row, RunSource

LONGEST_TEXT = 50_000
"""Characters shown of a text unless the whole is asked for."""
_TEXTS = ("prompt", "completion", "program")
_ROWS_A_PAGE, _MOST_ROWS_A_PAGE = 50, 500
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


def list_facets(collection: Collection, words: Words) -> Row:
    """Return what the rollouts of a run can be filtered by."""
    return facets_of(collection[words.get("run", "")].index())


def facets_of(index: Index) -> Row:
    """Return the words that occur, with their counts, and the range of steps."""
    steps = index.columns["step"]
    return {
        "num_rollouts": len(index),
        "steps": [int(steps.min()), int(steps.max())] if len(index) else None,
        "num_truncated": int(index.columns["is_truncated"].sum()),
        **{name: index.count(name) for name in ("split", "tier", "verdict", "masked_why")},
    }


def list_rollouts(collection: Collection, words: Words) -> Row:
    """Return a page of the rollouts that a query wants: from `from` on, or the page that holds `at`."""
    index = collection[words.get("run", "")].index()
    places = index.select(read_query(words))
    count = max(1, read_number(words, "count", default=_ROWS_A_PAGE, most=_MOST_ROWS_A_PAGE))
    place = index.find(words.get("at", ""))
    at = next(map(int, np.flatnonzero(places == place)), None) if place is not None else None
    first = read_number(words, "from", default=(at or 0) // count * count, most=len(places))
    return {
        "total": len(places),
        "num_rollouts": len(index),
        "from": first,
        "at": at,
        "verdicts": index.count("verdict", places),
        "rows": [index.record(int(place)) for place in places[first : first + count]],
    }


def show_rollout(collection: Collection, words: Words) -> Row:
    """Return a rollout with its texts, its tests and its group."""
    source = collection[words.get("run", "")]
    index = source.index()
    place = _find(index, words)
    record = index.record(place)
    texts = shorten(source.read(record), LONGEST_TEXT)
    return {**texts, **record, "group": [index.record(other) for other in index.group(place)]}


def shorten(row: Row, longest: int) -> Row:
    """Return a rollout's texts and tests cut to a length; `cut` names the texts that were, with their lengths."""
    shown: Row = {name: row.get(name) for name in ("extraction", "temperature", "facts") if row.get(name) is not None}
    cut: dict[str, int] = {}
    for name in _TEXTS:
        text = row.get(name)
        shown[name] = _cut(text, longest, name, cut)
    shown["tests"] = [_shorten_test(number, test, longest, cut) for number, test in enumerate(row.get("tests") or [])]
    return {**shown, "cut": cut}


def show_test(collection: Collection, words: Words) -> Row:
    """Return a test's input and expected output, where they are known."""
    source = collection[words.get("run", "")]
    number = read_number(words, "test", default=0, most=10**9)
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
    number = read_number(words, "test", default=0, most=10**9)
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
    "/api/facets": list_facets,
    "/api/rollouts": list_rollouts,
    "/api/rollout": show_rollout,
    "/api/test": show_test,
    "/api/text": show_text,
}
"""Every request there is."""


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

"""A row -> its problem, read once however often it is asked about: a judge sees a problem with each of its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from microcoder.types import Problem

_MOST_PROBLEMS = 256


def to_problem(row: Problem | Mapping[str, Any], format: str | None = None) -> Problem:
    """Return the problem of a row, or of what is left of one, as `Problem.from_row`; equal rows are read once."""
    if isinstance(row, Problem):
        return row
    # Tests are mostly text, and large: as it is, comparing it costs next to nothing.
    fields = tuple(
        (str(name), isinstance(value, str), value if isinstance(value, str) else json.dumps(value, default=_plain))
        for name, value in row.items()
    )
    return _read(fields, format)


@lru_cache(_MOST_PROBLEMS)
def _read(fields: tuple[tuple[str, bool, str], ...], format: str | None) -> Problem:
    return Problem.from_row({name: text if is_text else json.loads(text) for name, is_text, text in fields}, format)


def _plain(value: Any) -> Any:
    """Return arrays of numpy and pandas, sets and bytes as JSON has them."""
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)

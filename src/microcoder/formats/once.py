"""A row -> its problem, read once however often it is asked about: a judge sees a problem with each of its answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from microcoder.types import Problem

_MOST_PROBLEMS = 256
_OF_THE_ROLLOUT = ("num_turns", "rollout_reward_scores")
"""What verl adds to a row's `extra_info` before a reward is asked for."""


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


def problem_of_reward(data_source: Any, ground_truth: Any, extra_info: Mapping[str, Any] | None) -> Problem:
    """Return the problem of a row as verl hands it to whoever scores its responses.

    Raises:
        DataError: it cannot be judged, see `Problem.from_row`.
    """
    known = {name: value for name, value in (extra_info or {}).items() if name not in _OF_THE_ROLLOUT}
    return to_problem({"data_source": data_source, "ground_truth": ground_truth, "extra_info": known})


@lru_cache(_MOST_PROBLEMS)
def _read(fields: tuple[tuple[str, bool, str], ...], format: str | None) -> Problem:
    return Problem.from_row({name: text if is_text else json.loads(text) for name, is_text, text in fields}, format)


def _plain(value: Any) -> Any:
    """Return arrays of numpy and pandas, sets and bytes as JSON has them."""
    if callable(getattr(value, "tolist", None)):
        return value.tolist()
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)

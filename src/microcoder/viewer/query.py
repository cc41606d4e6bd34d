"""What a list of rollouts is asked for: the same words in a link, in a request and in the bundle's JavaScript."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeVar, get_args

from microcoder.errors import DataError

Order = Literal["first", "last", "longest", "advantage"]
ORDERS: tuple[Order, ...] = get_args(Order)
_YES_NO = {"yes": True, "no": False}
_STEPS = re.compile(r"^(\d{1,9})(?:-(\d{1,9}))?$")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Query:
    """Empty and None do not restrict."""

    split: str = ""
    steps: tuple[int, int] | None = None
    """First and last step."""
    problem: str = ""
    """Part of a problem's id, in any case."""
    tier: str = ""
    verdict: str = ""
    """A verdict, or `!accepted` for all the others."""
    is_truncated: bool | None = None
    is_masked: bool | None = None
    order: Order = "first"


def read_query(words: Mapping[str, str]) -> Query:
    """Return the query that a request or a link spells.

    Raises:
        DataError: a value is not allowed.
    """
    return Query(
        split=words.get("split", ""),
        steps=_read_steps(words.get("step", "")),
        problem=words.get("problem", ""),
        tier=words.get("tier", ""),
        verdict=words.get("verdict", ""),
        is_truncated=_choose("truncated", words.get("truncated", ""), {"": None, **_YES_NO}),
        is_masked=_choose("masked", words.get("masked", ""), {"": None, **_YES_NO}),
        order=_choose("order", words.get("order", "") or "first", {order: order for order in ORDERS}),
    )


def read_number(words: Mapping[str, str], name: str, *, default: int, most: int) -> int:
    """Return a count or place of a request, at most `most`.

    Raises:
        DataError: it is no number.
    """
    text = words.get(name, "") or str(default)
    if not re.fullmatch(r"\d{1,9}", text):
        raise DataError(f"{name}={text!r} is no number")
    return min(int(text), most)


def _read_steps(text: str) -> tuple[int, int] | None:
    if not text.strip():
        return None
    found = _STEPS.match(re.sub(r"\s|step_?", "", text))
    if not found:
        raise DataError(f"step={text!r} is neither a step (12) nor a range of steps (10-20)")
    return int(found[1]), int(found[2] or found[1])


def _choose(name: str, text: str, allowed: Mapping[str, T]) -> T:
    if text not in allowed:
        raise DataError(f"{name}={text!r} is not allowed; use one of {', '.join(filter(None, allowed))}")
    return allowed[text]

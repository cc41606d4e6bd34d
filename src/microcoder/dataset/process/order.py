"""Functions whose statement lets the parts of the answer come in any order: their lists are compared so."""

from __future__ import annotations

import json
import re
from typing import Any

from microcoder.formats.candidates import Candidate
from microcoder.types import Checker

_ANY_ORDER = re.compile(
    r"\b(?:return|output|print)(?:ed|s)?\b(?P<what>[^.\n]{0,160}?)\bin \**any order\b(?! you)"
    r"|(?P<named>[^.\n]{0,80})\b(?:return|output|print)ed in \**any order\b"
    r"|(?:返回|输出)[^。\n]{0,40}任意顺序|任意顺序[^。\n]{0,10}(?:返回|输出)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\b(?:integers|elements|indices|numbers|values|items)\b", re.IGNORECASE)


def find_order(candidate: Candidate) -> Checker | None:
    """Return the checker of a function whose statement asks for a list in any order; None where it does not.

    Where lists of lists are expected and the statement speaks of numbers or indices, it means the inner lists.
    """
    call = candidate.call
    if not candidate.fn_name or not candidate.tests or candidate.checker != Checker():
        return None
    if call is not None and (call.style == "design" or call.returns != "json"):
        return None
    found = _ANY_ORDER.search(candidate.statement)
    values = _read_lists(candidate) if found else None
    if found is None or values is None:
        return None
    is_nested = any(values) and all(isinstance(item, list) for value in values for item in value)
    told = found["what"] or found["named"] or ""
    return Checker(type="unordered", lists="inner" if is_nested and _PARTS.search(told) else "outermost")


def _read_lists(candidate: Candidate) -> list[list[Any]] | None:
    """Return the expected values; None where one of them is no list."""
    try:
        values = [json.loads(test.output) for test in candidate.tests]
    except (ValueError, RecursionError):
        return None
    return values if all(isinstance(value, list) for value in values) else None

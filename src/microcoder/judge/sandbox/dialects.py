"""What another harness runs a Python program under, for figures that compare with its own.

LiveCodeBench's checker (`lcb_runner/evaluation`) puts star imports and imports before every program, and allows
recursion to 50,000 calls and integers of 50,000 digits.
"""

from __future__ import annotations

import sys
from typing import Any

PLAIN = "plain"

_STARRED = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
)
"""In its order: a later one wins, so the builtins do over math and operator."""
_NOT_NAMED = ("builtins", "typing")
_RECURSION_LIMIT = 50_000
_MAX_DIGITS = 50_000


def build_names() -> dict[str, Any]:
    """Return the names that a program finds in LiveCodeBench without importing them."""
    starred = _STARRED.split()
    lines = [f"from {name} import *" for name in starred]
    lines += [f"import {name}" for name in starred if name not in _NOT_NAMED]
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    del names["__builtins__"]
    return names


def enter(namespace: dict[str, Any], names: dict[str, Any]) -> None:
    """Prepare this process and a program's namespace, if the program is not to run plainly."""
    namespace.update(names)
    sys.setrecursionlimit(_RECURSION_LIMIT)
    sys.set_int_max_str_digits(_MAX_DIGITS)

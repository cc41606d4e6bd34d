"""Further inputs from known ones: one small change each, of a kind that leaves an input what the problem takes."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import Any

from microcoder.dataset.behaviour.layouts import Values

_TRIES = 6


def vary(inputs: Sequence[Values], *, num: int, seed: str) -> list[Values]:
    """Return up to `num` inputs that are not among the given ones, the same for the same seed.

    Lists that are sorted, of distinct items, or as long as another in every input stay so; no number falls below the
    least one seen at its place, and texts keep their letters.
    """
    if not inputs:
        return []
    draw = random.Random(seed)
    rules = _Rules(inputs)
    known = {repr(values) for values in inputs}
    found = []
    for _ in range(num * _TRIES):
        values = list(draw.choice(inputs))
        place = draw.randrange(len(values))
        values[place] = rules.change(values[place], place, draw)
        if repr(tuple(values)) not in known:
            known.add(repr(tuple(values)))
            found.append(tuple(values))
        if len(found) == num:
            break
    return found


class _Rules:
    """What all inputs have in common."""

    def __init__(self, inputs: Sequence[Values]) -> None:
        columns = list(zip(*inputs, strict=True))
        self._least = [_least(column) for column in columns]
        self._is_sorted = [all(isinstance(v, list) and _is_sorted(v) for v in column) for column in columns]
        self._is_distinct = [all(isinstance(v, list) and len(set(map(repr, v))) == len(v) for v in column)
                             for column in columns]  # fmt: skip
        self._is_tied = [False] * len(columns)
        for one, other in combinations(range(len(columns)), 2):
            if all(_size(a) == _size(b) != -1 for a, b in zip(columns[one], columns[other], strict=True)):
                self._is_tied[one] = self._is_tied[other] = True

    def change(self, value: Any, place: int, draw: random.Random) -> Any:
        """Return a value with one change, or as it is where the rules allow none."""
        if isinstance(value, bool):
            return not value
        if isinstance(value, int | float):
            return self._number(value, place, draw)
        if isinstance(value, str):
            return self._text(value, place, draw)
        if isinstance(value, list) and value:
            return self._list(value, place, draw)
        return value

    def _number(self, value: float, place: int, draw: random.Random) -> float:
        changed = draw.choice([value + 1, value - 1, value * 2, value + 3])
        return max(changed, self._least[place])

    def _text(self, text: str, place: int, draw: random.Random) -> str:
        if not text:
            return text
        at, other = draw.randrange(len(text)), draw.randrange(len(text))
        letters = list(text)
        letters[at] = text[other]
        if self._is_tied[place] or draw.random() < 0.4:
            return "".join(letters)
        return (
            text[:at] + text[at + 1 :] if len(text) > 2 and draw.random() < 0.5 else text[:at] + text[other] + text[at:]
        )

    def _list(self, items: list[Any], place: int, draw: random.Random) -> list[Any]:
        changed = list(items)
        at, other = draw.randrange(len(items)), draw.randrange(len(items))
        kind = draw.choice(["swap", "copy", "nudge", "drop", "repeat"])
        if isinstance(items[at], list):
            # A table keeps its shape: two of its values change places.
            rows = [list(row) for row in items]
            if rows[at] and rows[other]:
                i, j = draw.randrange(len(rows[at])), draw.randrange(len(rows[other]))
                rows[at][i], rows[other][j] = rows[other][j], rows[at][i]
            return rows
        if kind == "drop" and len(items) > 2 and not self._is_tied[place]:
            del changed[at]
        elif kind == "repeat" and not self._is_tied[place]:
            changed.insert(other, items[at])
        elif kind == "nudge" and isinstance(items[at], int | float):
            changed[at] = self._number(items[at], place, draw)
        elif kind == "copy":
            changed[at] = items[other]
        else:
            changed[at], changed[other] = items[other], items[at]
        if self._is_sorted[place]:
            changed.sort()
        return items if self._is_distinct[place] and len(set(map(repr, changed))) < len(changed) else changed


def _least(column: Sequence[Any]) -> float:
    numbers = [n for value in column for n in (value if isinstance(value, list) else [value])
               if isinstance(n, int | float)]  # fmt: skip
    return min(numbers, default=0)


def _is_sorted(items: list[Any]) -> bool:
    return all(type(one) is type(other) and not isinstance(one, list | dict) and one <= other
               for one, other in pairwise(items))  # fmt: skip


def _size(value: Any) -> int:
    return len(value) if isinstance(value, list | str) else -1

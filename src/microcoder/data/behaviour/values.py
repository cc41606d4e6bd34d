"""Kinds of input values and tokens of outputs, whatever their text format, and how far outputs agree."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

Tokens = tuple[str, ...]
"""An output as its numbers and words: no brackets, no quotes, `5` for `5.0`, `true` for `True`."""

_TOKEN = re.compile(r"[^\s,\[\](){}\"'`]+")
_NOTHING: frozenset[Tokens] = frozenset({(), ("-1",), ("none",), ("0",), ("1",)})
_SMALL = 10
_FEW_LABELS = 3
_FLAG_CHANCE, _SMALL_CHANCE, _OTHER_CHANCE = 0.5, 0.25, 0.06
"""How often an unrelated program gives the same: one of two labels, a number of one digit, anything else."""
_RELABEL_COST = 3.0
"""Bits subtracted from the evidence where outputs agree only with their labels renamed."""


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind that all values of one input are of, as a letter: `n` a number, `N` a list of them, `T` a list of
    lists, `s` a text, `S` texts, `R` lists of texts, `b` a flag, `E` only empty lists, `x` anything else."""
    kinds = {_kind(value) for value in values}
    kinds = kinds - {"E"} or kinds
    return kinds.pop() if len(kinds) == 1 else "x"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "b"
    if isinstance(value, int | float):
        return "n"
    if isinstance(value, str):
        return "s"
    if not isinstance(value, list):
        return "x"
    return {"n": "N", "s": "S", "N": "T", "S": "R", "E": "T"}.get(kind_of(value), "x") if value else "E"


def tokens_of_value(value: Any) -> Tokens:
    """Return the tokens of a returned value."""
    found: list[str] = []
    _flatten(value, found)
    return tuple(found)


def tokens_of_text(text: str) -> Tokens:
    """Return the tokens of what a program printed."""
    return tuple(_normal(token) for token in _TOKEN.findall(text))


def tokens_of_json(text: str) -> Tokens:
    """Return the tokens of an expected value, which is JSON."""
    try:
        return tokens_of_value(json.loads(text))
    except (ValueError, RecursionError):
        return tokens_of_text(text)


def _flatten(value: Any, found: list[str]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(key, found)
            _flatten(item, found)
    elif isinstance(value, list | tuple):
        for item in value:
            _flatten(item, found)
    elif isinstance(value, str):
        found.extend(tokens_of_text(value))
    else:
        found.append(_normal(str(value)))


def _normal(token: str) -> str:
    try:
        number = float(token)
    except ValueError:
        return token.lower()
    if not math.isfinite(number) or "_" in token:
        return token.lower()
    if number == int(number) and abs(number) < 1e15:
        # A leading zero is a digit of a text.
        return token if re.fullmatch(r"-?0\d+", token) else str(int(number))
    return token if re.fullmatch(r"-?\d+", token) else f"{number:.5g}"


class Agreement(NamedTuple):
    """How far two programs' outputs agree."""

    agreed: tuple[bool, ...]
    """Whether the outputs are equal, for each input in order."""
    bits: float
    """Evidence: how unlikely it is that an unrelated program agrees as far."""
    how: str
    """How outputs were compared: `same`, or `with other words`, their labels renamed."""

    @property
    def share(self) -> float:
        """Share of inputs on which they agree, 0 to 1."""
        return sum(self.agreed) / len(self.agreed) if self.agreed else 0.0


def compare(
    one: Sequence[Tokens], other: Sequence[Tokens], *, chances: Sequence[float] | None = None, how: str = ""
) -> Agreement:
    """Return how far two programs' outputs on the same inputs agree, in the way in which they agree most.

    Args:
        one: a program's outputs, one per input.
        other: the other program's.
        chances: for each input, the share of unrelated programs that agree on it, where it was measured.
        how: `how` of the agreement on other inputs, if any: the same renaming costs no further bits.
    """
    counts = Counter(one)
    # Of two or three labels every program gives one, whatever words they are.
    least = _FLAG_CHANCE if are_labels(one) else 0.0
    odds = [
        max(_chance(output), (counts[output] - 1) / len(one), chances[place] if chances else 0.0, least)
        for place, output in enumerate(one)
    ]
    same = [a == b for a, b in zip(one, other, strict=True)]
    # Each way to compare: its name, where it agrees, and where that says something.
    ways = [("same", same, [True] * len(one))]
    ways += [] if all(same) else [("with other words", *_relabel(one, other))]
    found = []
    for name, agreed, tells in ways:
        counted = [odd for odd, is_same, says in zip(odds, agreed, tells, strict=True) if is_same and says]
        bits = sum(-math.log2(min(odd, 0.99)) for odd in counted)
        cost = 0.0 if name in ("same", how) else _RELABEL_COST
        found.append(Agreement(tuple(agreed), bits - cost, name))
    return max(found, key=lambda way: (sum(way.agreed), way.bits))


def _chance(output: Tokens) -> float:
    if len(output) > 1:
        return _OTHER_CHANCE
    word = output[0] if output else ""
    if word in ("true", "false", "yes", "no", "none", "", "0", "1", "-1"):
        return _FLAG_CHANCE
    try:
        return _SMALL_CHANCE if abs(float(word)) <= _SMALL else _OTHER_CHANCE
    except ValueError:
        return _SMALL_CHANCE if len(word) <= 2 else _OTHER_CHANCE


def _relabel(one: Sequence[Tokens], other: Sequence[Tokens]) -> tuple[list[bool], list[bool]]:
    """Match labels one to one; return where outputs agree, and where that is evidence: not where a match is new."""
    there: dict[Tokens, Tokens] = {}
    back: dict[Tokens, Tokens] = {}
    agreed, tells = [], []
    for a, b in zip(one, other, strict=True):
        is_label = _is_label(a) and _is_label(b)
        is_new = is_label and a not in there and b not in back
        if is_new:
            there[a], back[b] = b, a
        agreed.append(there[a] == b if is_label and a in there else a == b and not is_label)
        tells.append(not is_new)
    return agreed, tells


def are_labels(outputs: Sequence[Tokens]) -> bool:
    """Whether these outputs look like a classification: at most three labels, and more outputs."""
    return len(set(outputs)) <= _FEW_LABELS < len(outputs) and all(map(_is_label, outputs))


def _is_label(output: Tokens) -> bool:
    return output in _NOTHING or (len(output) <= 3 and not any(any(map(str.isdigit, token)) for token in output))

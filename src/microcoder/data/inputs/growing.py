"""Large inputs made of known ones, side by side or by zooming in: what is promised of each of them is often kept.

Side by side, lists are joined. Numbers that point into an input, such as the nodes of an edge, are moved behind those
of the copies before, and the numbers that bound them are summed up. Words get other letters in each copy, the same ones
for one word. A picture is made larger, each of its cells a square.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.model import InputModel

_WORD = re.compile(r"[A-Za-z]+")
_ENOUGH_WORDS, _LONG_WORD = 4, 3
_POOLS = (0, 1, 20, 1 << 30)
"""In how many ways words are written again at most: a problem may bound how many there are."""
_MOST_COPIES, _MOST_ZOOMED = 50_000, 6
_CELLS_PER_ITEM = 8


@dataclass(slots=True)
class _Growing:
    model: InputModel
    source: random.Random
    most_items: int
    pool: int
    letters: str
    """That words are written with."""
    sizes: dict[str, str]
    """By place of numbers that point into an input: the place of what bounds them."""
    offsets: dict[str, int] = field(default_factory=dict)
    """By place of a size: how large the copies so far are together."""
    num_items: int = 0
    words: dict[tuple[int, str], str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def grow(self, known: Sequence[Values]) -> Values | None:
        """Return as many of some inputs as there is room for, as one; None where there is no room for two."""
        model = self.model
        summed = {size for size in self.sizes.values() if size in model.names}
        totals = dict.fromkeys(_lengths(model, known) | summed, 0)
        limits = {place: _limit(model, place) for place in totals if not _follows(model, place)}
        parts: list[list[Any]] = []
        for copy in range(_MOST_COPIES):
            values = self.source.choice(known)
            sizes = _sizes_of(model, values)
            if any(totals[place] + sizes.get(place, 0) > limit for place, limit in limits.items()):
                break
            for place in totals:
                totals[place] += sizes.get(place, 0)
            parts.append([self.move(name, value, copy) for name, value in zip(model.names, values, strict=True)])
            for size in set(self.sizes.values()):
                self.offsets[size] = self.offsets.get(size, 0) + int(sizes.get(size, 0))
            if self.num_items >= self.most_items:
                break
        if len(parts) < 2:
            return None
        return tuple(_join([part[at] for part in parts], totals.get(name)) for at, name in enumerate(model.names))

    def move(self, place: str, value: Any, copy: int) -> Any:
        """Return a value of one copy as it stands behind the others."""
        if isinstance(value, list):
            moved = [self.move(self._inside(place, at, item), item, copy) for at, item in enumerate(value)]
            self.num_items += sum(not isinstance(item, list) for item in value)
            return moved
        if isinstance(value, int) and not isinstance(value, bool):
            return value + self.offsets.get(self.sizes.get(place, ""), 0)
        return self._rename(value, copy) if isinstance(value, str) else value

    def _inside(self, place: str, at: int, item: Any) -> str:
        column = f"{place}[{at}]"
        return column if not isinstance(item, list) and column in self.sizes else f"{place}[]"

    def _rename(self, text: str, copy: int) -> str:
        if not self.pool:
            return text
        return _WORD.sub(lambda one: self._other_word(one[0], copy % self.pool), text)

    def _other_word(self, word: str, copy: int) -> str:
        if copy == 0:
            return word
        if (copy, word) not in self.words:
            letters = [one for one in self.letters if one.isupper() == word[0].isupper()]
            length = max(len(word), _LONG_WORD + 1)
            for _ in range(8):
                made = "".join(self.source.choices(letters, k=length))
                if made not in self.taken:
                    break
            self.taken.add(made)
            self.words[copy, word] = made
        return self.words[copy, word]


def grow(model: InputModel, known: Sequence[Values], *, seed: int, most_items: int) -> Values | None:
    """Return several known inputs as one, as many as there is room for; None where that does not meet the model.

    Args:
        model: what inputs look like.
        known: inputs.
        seed: of all random choices.
        most_items: numbers, words or characters in it, about.
    """
    source = random.Random(seed)
    words = _words(known)
    stand_for_something = len(words) >= _ENOUGH_WORDS and max(map(len, words)) >= _LONG_WORD
    pools = source.sample(_POOLS, len(_POOLS)) if stand_for_something else [0]
    letters = "".join(sorted(set().union(*words))) if words else ""
    # A few long ones, or many short ones.
    tries = [(pool, some) for pool in pools for some in ([source.choice(known)], known)]
    for pool, some in tries if source.random() < 0.5 else reversed(tries):
        growing = _Growing(model, source, most_items, pool, letters, _find_sizes(model))
        made = growing.grow(some)
        if made is not None and not model.find_fault(made):
            return made
    return None


def zoom(model: InputModel, known: Sequence[Values], *, seed: int, most_items: int) -> Values | None:
    """Return a known input with a larger picture, each cell as a square of cells; None where none has a picture.

    Args:
        model: what inputs look like.
        known: inputs.
        seed: of all random choices.
        most_items: as in `grow`; a cell is a part of one.
    """
    source = random.Random(seed)
    pictures = [at for at, shape in enumerate(model.shapes) if shape.kind == "list" and "rectangular" in shape.facts
                and shape.item is not None and shape.item.kind == "text"]  # fmt: skip
    for values in source.sample(known, min(len(known), _MOST_ZOOMED)) if len(pictures) == 1 else ():
        name, rows = model.names[pictures[0]], list(values[pictures[0]])
        area = sum(map(len, rows))
        numbers = dict(_sizes_of(model, values))
        tops = [_limit(model, f"{name}#") // max(1, len(rows))]
        factor = min([*tops, math.isqrt(_CELLS_PER_ITEM * most_items // max(1, area))])
        if factor < 2:
            continue
        larger = ["".join(letter * factor for letter in row) for row in rows for _ in range(factor)]
        made = list(values)
        grid = model.shapes[pictures[0]].grid
        made[pictures[0]] = larger if grid is None else _mark_once(larger, grid.marks)
        sizes = {f"{name}#": len(larger), f"{name}[]#": len(larger[0])}
        for one in model.relations:
            for this, that in ((one.left, one.right), (one.right, one.left)):
                if one.operator == "==" and this.place in numbers and this.place in model.names and that.place in sizes:
                    made[model.names.index(this.place)] = int(sizes[that.place] + that.number - this.number)
        if not model.find_fault(tuple(made)):
            return tuple(made)
    return None


def _mark_once(rows: list[str], marks: str) -> list[str]:
    """Return rows with each mark left where it stands first; elsewhere the commonest other letter stands for it."""
    others = Counter(letter for letter in "".join(rows) if letter not in marks)
    common = others.most_common(1)[0][0] if others else ""
    text = "\n".join(rows)
    for mark in marks if common else "":
        before, _, after = text.partition(mark)
        text = before + mark + after.replace(mark, common)
    return text.split("\n")


def _join(values: Sequence[Any], total: int | None) -> Any:
    if isinstance(values[0], list):
        return [item for value in values for item in value]
    return values[0] if total is None else total


def _follows(model: InputModel, place: str) -> bool:
    """Whether a place is bounded by nothing but its being equal to another one."""
    is_bounded = any(one.left.place == place for one in model.relations if one.operator != "==")
    pairs = [{one.left.place, one.right.place} for one in model.relations if one.operator == "=="]
    return not is_bounded and any(place in pair for pair in pairs)


def _lengths(model: InputModel, known: Sequence[Values]) -> set[str]:
    return {f"{name}#" for name, value in zip(model.names, known[0], strict=True) if isinstance(value, list)}


def _limit(model: InputModel, place: str) -> int:
    shape = model.shapes[model.names.index(place.removesuffix("#"))]
    return model.range_of(place, {}, shape, is_length=place.endswith("#")).high


def _sizes_of(model: InputModel, values: Values) -> Mapping[str, int]:
    """Return the lengths and whole numbers of an input, by place."""
    found: dict[str, int] = {}
    for name, value in zip(model.names, values, strict=True):
        if isinstance(value, list | str):
            found[f"{name}#"] = len(value)
        elif isinstance(value, int):
            found[name] = value
    return found


def _find_sizes(model: InputModel) -> dict[str, str]:
    """Return the places of numbers that are never more than a size of their input, nor less than 0 or 1."""
    tops = {*model.names, *(f"{name}#" for name in model.names)}
    low = {
        one.right.place
        for one in model.relations
        if not one.left.place and one.operator != "==" and one.left.number in (0, 1)
    }
    return {
        one.left.place: one.right.place
        for one in model.relations
        if one.operator != "==" and one.left.place in low and one.right.place in tops and "[" in one.left.place
        and one.left.number == 0 >= one.right.number >= -1
    }  # fmt: skip


def _words(known: Sequence[Values]) -> set[str]:
    """Return the words in lists: where there are several, and longer ones than a letter, they are names."""
    found: set[str] = set()
    for values in known:
        for value in values:
            found |= set(_WORD.findall(repr(value))) if isinstance(value, list) else set()
    return found

"""Inputs made from known ones by one named, seeded change.

Large inputs made of known ones, side by side or by zooming in: what is promised of each of them is often kept.

Side by side, lists are joined. Numbers that point into an input, such as the nodes of an edge, are moved behind those
of the copies before, and the numbers that bound them are summed up. Words get other letters in each copy, the same ones
for one word. A picture is made larger, each of its cells a square.
"""

from __future__ import annotations

import math
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.model import InputModel, learn

_TRIES = 6
_FAR = ("extreme", "double")
"""Mutations that lead to inputs which a program may need long for."""
Path = tuple[int, ...]


def _lists(values: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all lists and texts inside."""
    found: list[Path] = []
    for number, value in enumerate(values):
        if isinstance(value, list | str):
            found.append((*path, number))
        if isinstance(value, list) and len(path) < 2:
            found += _lists(value[:50], (*path, number))
    return found


def _leaves(values: Any, path: Path = ()) -> list[Path]:
    """Return the paths of all numbers inside."""
    found: list[Path] = []
    for number, value in enumerate(values):
        if isinstance(value, list):
            found += _leaves(value[:50], (*path, number)) if len(path) < 3 else []
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((*path, number))
    return found


def _get(values: list[Any], path: Path) -> Any:
    for number in path:
        values = values[number]
    return values


def _set(values: list[Any], path: Path, value: Any) -> None:
    _get(values, path[:-1])[path[-1]] = value


def _on_list(change: Callable[[Any, random.Random], Any]) -> Callable[[list[Any], random.Random], None]:
    """Return a mutation of one list or text, chosen by chance among those with something in them."""

    def mutate(values: list[Any], source: random.Random) -> None:
        paths = [path for path in _lists(values) if _get(values, path)]
        if paths:
            path = source.choice(paths)
            _set(values, path, change(_get(values, path), source))

    return mutate


def _swap(items: Any, source: random.Random) -> Any:
    one, other = source.randrange(len(items)), source.randrange(len(items))
    made = list(items)
    made[one], made[other] = made[other], made[one]
    return _like(items, made)


def _drop(items: Any, source: random.Random) -> Any:
    number = source.randrange(len(items))
    return items[:number] + items[number + 1 :]


def _repeat(items: Any, source: random.Random) -> Any:
    number = source.randrange(len(items))
    at = source.randrange(len(items) + 1)
    return items[:at] + items[number : number + 1] + items[at:]


def _overwrite(items: Any, source: random.Random) -> Any:
    made = list(items)
    made[source.randrange(len(made))] = deepcopy(source.choice(made))
    return _like(items, made)


def _level(items: Any, source: random.Random) -> Any:
    return _like(items, [deepcopy(source.choice(list(items)))] * len(items))


def _reorder(items: Any, source: random.Random) -> Any:
    way = source.choice(("sorted", "reversed", "shuffled"))
    if way == "shuffled":
        return _like(items, source.sample(list(items), len(items)))
    return _like(items, sorted(items, key=repr) if way == "sorted" else list(items)[::-1])


def _double(items: Any, source: random.Random) -> Any:
    return items + deepcopy(items) if len(items) < 5000 else items


def _like(items: Any, made: list[Any]) -> Any:
    return "".join(made) if isinstance(items, str) else made


def _step(values: list[Any], source: random.Random) -> None:
    if paths := _leaves(values):
        path = source.choice(paths)
        _set(values, path, _get(values, path) + source.choice((-1, 1)))


def _extreme(values: list[Any], source: random.Random) -> None:
    """Put another number of the input, zero, or a large one in a number's place."""
    if paths := _leaves(values):
        path = source.choice(paths)
        other = _get(values, source.choice(paths))
        _set(values, path, source.choice((other, 0, 1, 2 * _get(values, path), 10**9, -other)))


def _echo(values: list[Any], source: random.Random) -> None:
    """Put what one value holds into another one: a part of a text or list, or an item in place of a number."""
    places = [place for place, value in enumerate(values) if isinstance(value, list | str) and value]
    if not places:
        return
    one = values[source.choice(places)]
    at, end = sorted((source.randrange(len(one)), source.randint(1, len(one))))
    for place in source.sample(range(len(values)), len(values)):
        value = values[place]
        if type(value) is type(one) and value is not one:
            values[place] = deepcopy(one[at:end] or one)
            return
        if isinstance(value, int) and not isinstance(value, bool) and isinstance(one[at], int):
            values[place] = one[at]
            return


MUTATIONS: MappingProxyType[str, Callable[[list[Any], random.Random], None]] = MappingProxyType(
    {
        "step": _step,
        "extreme": _extreme,
        "swap": _on_list(_swap),
        "drop": _on_list(_drop),
        "repeat": _on_list(_repeat),
        "overwrite": _on_list(_overwrite),
        "level": _on_list(_level),
        "reorder": _on_list(_reorder),
        "double": _on_list(_double),
        "echo": _echo,
    }
)
"""By name; the lineage of a test names the mutation that it was made by."""


def mutate(model: InputModel, parent: Values, mutation: str, *, seed: int) -> Values | None:
    """Return an input made from another one; None where no try meets the model, or nothing changes.

    Args:
        model: what inputs look like.
        parent: a known input.
        mutation: a name of `MUTATIONS`; one to three of it are made.
        seed: of all random choices.
    """
    source = random.Random(seed)
    for _ in range(_TRIES):
        values = deepcopy(list(parent))
        for _ in range(source.randint(1, 3)):
            MUTATIONS[mutation](values, source)
        _repair(model, values)
        made = tuple(values)
        if made != parent and not model.find_fault(made):
            return made
    return None


def vary(known: Sequence[Values], *, num: int, seed: str) -> list[Values]:
    """Return up to `num` inputs that are not among the known ones and have all that these have in common."""
    if not known or num == 0:
        return []
    model = learn([f"value{number}_" for number in range(len(known[0]))], known, None)
    source = random.Random(seed)
    kinds = [name for name in MUTATIONS if name not in _FAR]
    found: dict[str, Values] = {}
    seen = {repr(values) for values in known}
    for _ in range(num * _TRIES):
        made = mutate(model, source.choice(known), source.choice(kinds), seed=source.getrandbits(40))
        if made is not None and repr(made) not in seen:
            found.setdefault(repr(made), made)
        if len(found) == num:
            break
    return list(found.values())


def _repair(model: InputModel, values: list[Any]) -> None:
    """Set numbers that say how long something is to what it is now."""
    numbers = {name: place for place, name in enumerate(model.names) if isinstance(values[place], int)}
    for one in model.relations:
        if one.operator != "==":
            continue
        for number, size in ((one.left, one.right), (one.right, one.left)):
            base = size.place.rstrip("#")
            if number.place in numbers and size.place == f"{base}#" and base in model.names:
                length = len(values[model.names.index(base)])
                values[numbers[number.place]] = int(length + size.number - number.number)


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
        lengths = {f"{name}#" for name, value in zip(model.names, known[0], strict=True) if isinstance(value, list)}
        totals = dict.fromkeys(lengths | summed, 0)
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
    """Return a known input with a larger picture, each cell as a square of cells; None where none has a picture."""
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


def _limit(model: InputModel, place: str) -> int:
    shape = model.shapes[model.names.index(place.removesuffix("#"))]
    return model.range_of(place, {}, shape, is_length=place.endswith("#")).high


def _sizes_of(model: InputModel, values: Values) -> Mapping[str, int]:
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

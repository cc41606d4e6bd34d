"""Inputs made from known ones by one named, seeded change."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from copy import deepcopy
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
    """Put another number of the input, zero, one or a power of ten, or what is made of it, in a number's place."""
    if paths := _leaves(values):
        path = source.choice(paths)
        other = _get(values, source.choice(paths))
        _set(values, path, source.choice((other, 0, 1, 2 * _get(values, path), -other, 10 ** source.randint(1, 9))))


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


def mutate(model: InputModel, parent: Values, mutation: str, *, seed: int, is_checked: bool = False) -> Values | None:
    """Return an input made from another one; None where no try meets the model, or nothing changes.

    Args:
        mutation: a name of `MUTATIONS`; one to three of it are made.
        is_checked: it need not meet the model, since a validator is asked about it; up to eight are made.
    """
    source = random.Random(seed)
    for _ in range(_TRIES):
        values = deepcopy(list(parent))
        for _ in range(source.randint(1, 8 if is_checked else 3)):
            MUTATIONS[mutation](values, source)
        _repair(model, values)
        made = tuple(values)
        if made != parent and (is_checked or model.fits(made)):
            return made
    return None


def vary(known: Sequence[Values], *, num: int, seed: str) -> list[Values]:
    """Return up to `num` inputs that are not among the known ones and have all that these have in common."""
    if not known or num == 0:
        return []
    model = learn([f"value{number}_" for number in range(len(known[0]))], known)
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
    """Correct the numbers that state lengths after a mutation changed a list or text."""
    places = {name: place for place, name in enumerate(model.names)}
    for one in model.relations:
        if one.operator != "==":
            continue
        for number, size, add in ((one.left, one.right, one.add), (one.right, one.left, -one.add)):
            listed = size.removesuffix("#")
            if number in places and listed != size and listed in places and isinstance(values[places[number]], int):
                values[places[number]] = int(len(values[places[listed]]) + add)

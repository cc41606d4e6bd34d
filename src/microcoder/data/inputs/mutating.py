"""Makes inputs from known ones by a named, seeded mutation; they keep what all known ones have in common.

That is learnt from the inputs alone: kinds, ranges, letters, facts of lists, and numbers that bound each other. It is
enforced even if no statement demands it: what inputs share by chance costs only a few mutations.
"""

from __future__ import annotations

import itertools
import math
import random
import re
import string
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from microcoder.data.inputs.layouts import Values

Kind = Literal["int", "float", "bool", "text", "list", "other"]
_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, "bool"), (int, "int"), (float, "float"), (str, "text"), (list, "list"),
)  # fmt: skip
_ALPHABETS = (frozenset(string.ascii_lowercase), frozenset(string.ascii_uppercase))
"""A text without bounds may have all letters of an alphabet of which it has some."""
_DIGITS_AND_MARKS = re.compile(r"(?=.*\d)(?=.*\D)[\d:/+-]+", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Shape:
    """What the values at one position of all inputs have in common."""

    kind: Kind
    low: float = 0.0
    """Numbers: the least seen; lists and texts: the least length."""
    high: float = 0.0
    letters: frozenset[str] = frozenset()
    """Texts: the letters seen."""
    known: frozenset[str] = frozenset()
    """Texts that are all of digits and marks, such as dates: those seen, as no other may be a date."""
    item: Shape | None = None
    """Lists: shape of their items; None if all were empty."""
    facts: frozenset[str] = frozenset()
    """Lists: names of `FACTS` that hold for every value seen."""

    @property
    def is_known(self) -> bool:
        """Whether every value inside has a kind that can be changed and checked."""
        return self.kind != "other" and (
            self.kind != "list" or (self.item is not None and self.item.is_known)
        )

    def fits(self, value: Any) -> bool:
        """Whether a value is of this kind (an integer may be a float), in its range, with its letters and facts."""
        if _kind_of(value) != self.kind and (self.kind, _kind_of(value)) != ("float", "int"):
            return False
        if self.kind in ("bool", "other"):
            return True
        if not self.low <= (value if self.kind in ("int", "float") else len(value)) <= self.high:
            return False
        if self.kind == "text":
            return self.letters.issuperset(value) and (not self.known or value in self.known)
        if self.kind == "list":
            has_facts = all(_holds(FACTS[fact], value) for fact in self.facts)
            return has_facts and (self.item is None or all(map(self.item.fits, value)))
        return True


def infer_shape(values: Sequence[Any], *, may_repeat: bool = False, is_open: bool = False) -> Shape:
    """Return the shape of the values at one position of all inputs.

    Args:
        values: the values, one of each input.
        may_repeat: a list may have equal items though no known one has, unless its items are lists.
        is_open: numbers, lengths and letters have no bounds, also those of a list's items.
    """
    kinds = {_kind_of(value) for value in values}
    kind: Kind = (
        "float" if kinds == {"int", "float"} else kinds.pop() if len(kinds) == 1 else "other"
    )
    if kind in ("bool", "other"):
        return Shape(kind)
    sizes = values if kind in ("int", "float") else list(map(len, values))
    low, high = (-math.inf, math.inf) if is_open else (min(sizes), max(sizes))
    if kind != "list":
        texts = values if kind == "text" else ()
        letters: frozenset[str] = frozenset().union(*texts)
        for alphabet in _ALPHABETS:
            if is_open and letters & alphabet:
                letters |= alphabet
        known = frozenset(texts if all(map(_DIGITS_AND_MARKS, texts)) else ())
        return Shape(kind, low, high, letters=letters, known=known)
    items = [item for value in values for item in value]
    item = infer_shape(items, is_open=is_open) if items else None
    # Of lists of no more than one item everything is true.
    facts = {
        name
        for name, test in FACTS.items()
        if max(sizes) > 1 and all(_holds(test, value) for value in values)
    }
    facts -= {"distinct"} if may_repeat and item is not None and item.kind != "list" else set()
    return Shape(kind, low, high, item=item, facts=frozenset(facts))


def _kind_of(value: Any) -> Kind:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "other")


FACTS: Mapping[str, Callable[[list[Any]], bool]] = {
    "rectangular": lambda value: len({len(item) for item in value}) <= 1,
    "square": lambda value: all(len(item) == len(value) for item in value),
    "permutation": lambda value: (
        sorted(value) in ([*range(len(value))], [*range(1, len(value) + 1)])
    ),
    "distinct": lambda value: len({repr(item) for item in value}) == len(value),
    "sorted": lambda value: all(one <= other for one, other in itertools.pairwise(value)),
}
"""Facts that may hold for a list, by name."""


def _holds(test: Callable[[list[Any]], bool], value: list[Any]) -> bool:
    """Whether a fact holds for a list; False if it cannot be computed for its items."""
    try:
        return test(value)
    except (TypeError, LookupError, ValueError):
        return False


class Relation(NamedTuple):
    """`left operator right + add`, each by position: a number (`1`), a length (`0#`), all numbers in a list (`0[]`)."""

    left: str
    operator: Literal["<=", "=="]
    right: str
    add: float = 0.0

    def holds_for(self, numbers: Mapping[str, Sequence[float]]) -> bool:
        """Whether the relation holds for an input's numbers by position; always true if `left` is an empty list."""
        least = numbers[self.right][0] + self.add
        found = numbers[self.left]
        return (
            all(one == least for one in found)
            if self.operator == "=="
            else max(found, default=least) <= least
        )


@dataclass(frozen=True, slots=True)
class InputModel:
    """Shapes and relations that a problem's inputs have in common."""

    shapes: tuple[Shape, ...]
    relations: tuple[Relation, ...]

    @property
    def is_usable(self) -> bool:
        """Whether every value has a shape that can be changed and checked."""
        return bool(self.shapes) and all(shape.is_known for shape in self.shapes)

    def fits(self, values: Values) -> bool:
        """Whether an input has all that the known ones have in common."""
        if not all(shape.fits(value) for shape, value in zip(self.shapes, values, strict=True)):
            return False
        numbers = _collect_numbers(values)
        return all(one.holds_for(numbers) for one in self.relations)


def learn(
    known: Sequence[Values], *, may_repeat: bool = False, open_places: Collection[int] = ()
) -> InputModel:
    """Return the shapes and relations that known inputs have in common.

    Args:
        known: inputs, each with as many values.
        may_repeat: a list may have equal items though no known one has, unless its items are lists.
        open_places: indices of the values that have no bounds, and need not be less than others that have none.
    """
    columns = enumerate(zip(*known, strict=True))
    shapes = tuple(
        infer_shape(one, may_repeat=may_repeat, is_open=at in open_places) for at, one in columns
    )
    free = {f"{place}{size}" for place in open_places for size in ("", "#")}
    relations = _relate(list(map(_collect_numbers, known)))
    return InputModel(
        shapes,
        tuple(
            one for one in relations if one.operator == "==" or not {one.left, one.right} <= free
        ),
    )


def _collect_numbers(values: Values) -> dict[str, list[float]]:
    """Return the numbers of an input by position, as `Relation` names them: numbers, lengths, numbers in lists."""
    found: dict[str, list[float]] = {}
    for place, value in enumerate(values):
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[f"{place}"] = [value]
        elif isinstance(value, str | list):
            found[f"{place}#"] = [len(value)]
        if isinstance(value, list):
            found[f"{place}[]"] = list(_flatten(value))
    return found


def _flatten(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from _flatten(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _relate(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield equal or ordered pairs of numbers and lengths, and lists whose items never exceed one of them.

    From a single input only equal lengths are inferred.
    """
    places = [place for place in numbers[0] if all(place in seen for seen in numbers)]
    sizes = [place for place in places if not place.endswith("[]")]
    for one, other in itertools.permutations(sizes, 2):
        gaps = {seen[one][0] - seen[other][0] for seen in numbers}
        if gaps == {0} and (len(numbers) > 1 or (one.endswith("#") and other.endswith("#"))):
            yield Relation(one, "==", other)
        elif (
            len(numbers) > 1
            and len(gaps) == 1
            and abs(max(gaps)) == 1
            and one.endswith("#") != other.endswith("#")
        ):
            # As many edges as a tree has.
            yield Relation(one, "==", other, max(gaps))
        elif len(numbers) > 1 and max(gaps) <= 0:
            yield Relation(one, "<=", other, -1.0 if max(gaps) < 0 else 0.0)
    for place in (place for place in places if place.endswith("[]") and len(numbers) > 1):
        least = min((min(seen[place]) for seen in numbers if seen[place]), default=-1)
        add = 0.0 if least >= 1 else -1.0
        for size in sizes if least >= 0 else ():
            if all(max(seen[place], default=0) <= seen[size][0] + add for seen in numbers):
                yield Relation(place, "<=", size, add)


_TRIES = 6
_CONSTANT_SHARE = 0.3
"""Share of the changes that place a constant, if there are any."""
_SMALL_ITEMS = 64
"""Items that any list may grow to."""
_MOST_GROWN_ITEMS = 10_000
"""Most items of a list that has grown: a longer one makes a file of megabytes, and finds no other mistake."""
_FAR = ("extreme", "grow")
"""Mutations whose inputs may make a program slow."""
Path = tuple[int, ...]


def _places(values: Any, wanted: tuple[type, ...], depth: int, path: Path = ()) -> list[Path]:
    """Return the paths of all values of these types but bools, inside up to `depth` lists."""
    found: list[Path] = []
    for number, value in enumerate(values):
        if isinstance(value, wanted) and not isinstance(value, bool):
            found.append((*path, number))
        if isinstance(value, list) and len(path) < depth:
            found += _places(value[:50], wanted, depth, (*path, number))
    return found


def find_repeats(values: Values) -> set[Path]:
    """Return the paths of the lists, nested in up to two others, in which a value occurs more than once."""
    return {
        path for path in _places(values, (list,), 2) if not FACTS["distinct"](_get(values, path))
    }


def _get(values: Sequence[Any], path: Path) -> Any:
    for number in path:
        values = values[number]
    return values


def _set(values: list[Any], path: Path, value: Any) -> None:
    _get(values, path[:-1])[path[-1]] = value


def _on_list(
    change: Callable[[list[Any], random.Random], list[Any]],
) -> Callable[[list[Any], random.Random], None]:
    """Return a mutation that applies `change` to a random list, or text as a list of letters, that is not empty."""

    def mutate(values: list[Any], source: random.Random) -> None:
        paths = [path for path in _places(values, (list, str), 2) if _get(values, path)]
        if paths:
            path = source.choice(paths)
            items = _get(values, path)
            made = change(list(items), source)
            _set(values, path, "".join(made) if isinstance(items, str) else made)

    return mutate


def _swap(items: list[Any], source: random.Random) -> list[Any]:
    one, other = source.randrange(len(items)), source.randrange(len(items))
    items[one], items[other] = items[other], items[one]
    return items


def _repeat(items: list[Any], source: random.Random) -> list[Any]:
    repeated = deepcopy(items[source.randrange(len(items))])
    items.insert(source.randrange(len(items) + 1), repeated)
    return items


def _overwrite(items: list[Any], source: random.Random) -> list[Any]:
    items[source.randrange(len(items))] = deepcopy(source.choice(items))
    return items


def _reorder(items: list[Any], source: random.Random) -> list[Any]:
    way = source.choice(("sorted", "reversed", "shuffled"))
    if way == "shuffled":
        return source.sample(items, len(items))
    return sorted(items, key=repr) if way == "sorted" else items[::-1]


def _level(items: list[Any], source: random.Random) -> list[Any]:
    chosen = source.choice(items)
    # Each a list of its own: a later change of one must not change them all.
    return [deepcopy(chosen) for _ in items]


def _grow(items: list[Any], source: random.Random) -> list[Any]:
    most = max(_SMALL_ITEMS, min(2 * len(items), _MOST_GROWN_ITEMS))
    chosen = source.choices(items, k=source.randint(1, most))
    return [deepcopy(item) for item in chosen]


def _step(values: list[Any], source: random.Random) -> None:
    if paths := _places(values, (int, float), 3):
        path = source.choice(paths)
        _set(values, path, _get(values, path) + source.choice((-1, 1)))


def _extreme(values: list[Any], source: random.Random) -> None:
    """Replace a random number by another or its negative, its own double, zero, one, or one up to a power of ten."""
    if paths := _places(values, (int, float), 3):
        path = source.choice(paths)
        other = _get(values, source.choice(paths))
        most = 10 ** source.randint(1, 9)
        numbers = (other, 0, 1, 2 * _get(values, path), -other, most, source.randrange(most))
        _set(values, path, source.choice(numbers))


def _place_constant(values: list[Any], source: random.Random, constant: int | str) -> None:
    """Replace a number by a constant or one beside it, or a text by one, or write one into a text."""
    paths = _places(values, (int, float) if isinstance(constant, int) else (str,), 3)
    if not paths:
        return
    path = source.choice(paths)
    if isinstance(constant, int):
        _set(values, path, constant + source.choice((-1, 0, 0, 1)))
    else:
        text = _get(values, path)
        at = source.randint(0, len(text))
        end = source.choice((at, at + len(constant)))
        _set(values, path, source.choice((constant, text[:at] + constant + text[end:])))


def _echo(values: list[Any], source: random.Random) -> None:
    """Replace a value by a part of another text or list, or a number by an item of another list."""
    places = [
        place for place, value in enumerate(values) if isinstance(value, list | str) and value
    ]
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


MUTATIONS: Mapping[str, Callable[[list[Any], random.Random], None]] = {
    "step": _step,
    "extreme": _extreme,
    "swap": _on_list(_swap),
    "drop": _on_list(
        lambda items, source: items[: (at := source.randrange(len(items)))] + items[at + 1 :]
    ),
    "repeat": _on_list(_repeat),
    "overwrite": _on_list(_overwrite),
    "level": _on_list(_level),
    "reorder": _on_list(_reorder),
    "grow": _on_list(_grow),
    "echo": _echo,
}
"""Mutations by name, each changing a list of values in place; the `Origin` of a test names its mutation."""


def mutate(
    model: InputModel,
    parent: Values,
    mutation: str,
    *,
    seed: int,
    constants: Sequence[int | str] = (),
) -> Values | None:
    """Return an input made from another one; None if no try fits the model and differs from it.

    Args:
        model: what all known inputs have in common.
        parent: the input that is changed.
        mutation: a name of `MUTATIONS`; applied one to three times.
        seed: decides every choice.
        constants: one of them is placed instead at about every third of these times.
    """
    source = random.Random(seed)
    for _ in range(_TRIES):
        values = deepcopy(list(parent))
        for _ in range(source.randint(1, 3)):
            if constants and source.random() < _CONSTANT_SHARE:
                _place_constant(values, source, source.choice(constants))
            else:
                MUTATIONS[mutation](values, source)
        _repair(model, values)
        made = tuple(values)
        if made != parent and model.fits(made):
            return made
    return None


def vary(known: Sequence[Values], *, num: int, seed: str) -> list[Values]:
    """Return up to `num` inputs that are not among the known ones and have all that these have in common."""
    if not known or num == 0:
        return []
    model = learn(known)
    source = random.Random(seed)
    kinds = [name for name in MUTATIONS if name not in _FAR]
    found: dict[str, Values] = {}
    seen = {repr(values) for values in known}
    for _ in range(num * _TRIES):
        made = mutate(
            model, source.choice(known), source.choice(kinds), seed=source.getrandbits(40)
        )
        if made is not None and repr(made) not in seen:
            found.setdefault(repr(made), made)
        if len(found) == num:
            break
    return list(found.values())


def _repair(model: InputModel, values: list[Any]) -> None:
    """Correct the numbers that state lengths after a mutation changed a list or text."""
    for one in (relation for relation in model.relations if relation.operator == "=="):
        for number, size, add in ((one.left, one.right, one.add), (one.right, one.left, -one.add)):
            if number.isdigit() and size.endswith("#") and isinstance(values[int(number)], int):
                values[int(number)] = int(len(values[int(size[:-1])]) + add)

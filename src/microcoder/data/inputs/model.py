"""What known inputs have in common: kinds, ranges, letters, facts of lists, and numbers that bound each other.

Kept to strictly, whether a statement speaks of it or not: what chance made alike costs a few mutations.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from microcoder.data.inputs.layouts import Values

Kind = Literal["int", "float", "bool", "text", "list", "other"]
_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, "bool"), (int, "int"), (float, "float"), (str, "text"), (list, "list"),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Shape:
    """What the values at one place have in common."""

    kind: Kind
    low: float = 0.0
    """Numbers: the least seen; lists and texts: the least length."""
    high: float = 0.0
    letters: frozenset[str] = frozenset()
    """Texts: the letters seen."""
    item: Shape | None = None
    """Lists: of their items; None where all were empty."""
    facts: frozenset[str] = frozenset()
    """Lists: names of `FACTS` that hold for every value seen."""

    @property
    def is_known(self) -> bool:
        """Whether every value inside has a kind that can be changed and checked."""
        return self.kind != "other" and (self.kind != "list" or (self.item is not None and self.item.is_known))

    def fits(self, value: Any) -> bool:
        """Whether a value has all that those seen have in common."""
        if _kind_of(value) != self.kind and (self.kind, _kind_of(value)) != ("float", "int"):
            return False
        if self.kind in ("bool", "other"):
            return True
        if not self.low <= (value if self.kind in ("int", "float") else len(value)) <= self.high:
            return False
        if self.kind == "text":
            return self.letters.issuperset(value)
        if self.kind == "list":
            has_facts = all(_holds(FACTS[fact], value) for fact in self.facts)
            return has_facts and (self.item is None or all(map(self.item.fits, value)))
        return True


def infer_shape(values: Sequence[Any]) -> Shape:
    """Return the shape of values seen at one place."""
    kinds = {_kind_of(value) for value in values}
    kind: Kind = "float" if kinds == {"int", "float"} else kinds.pop() if len(kinds) == 1 else "other"
    if kind in ("bool", "other"):
        return Shape(kind)
    sizes = values if kind in ("int", "float") else list(map(len, values))
    low, high = min(sizes), max(sizes)
    if kind == "text":
        return Shape(kind, low, high, letters=frozenset().union(*values))
    if kind != "list":
        return Shape(kind, low, high)
    items = [item for value in values for item in value]
    # Of lists of no more than one item everything is true.
    facts = frozenset(name for name, test in FACTS.items() if high > 1 and all(_holds(test, value) for value in values))
    return Shape(kind, low, high, item=infer_shape(items) if items else None, facts=facts)


def _kind_of(value: Any) -> Kind:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "other")


FACTS: Mapping[str, Callable[[list[Any]], bool]] = MappingProxyType(
    {
        "rectangular": lambda value: len({len(item) for item in value}) <= 1,
        "square": lambda value: all(len(item) == len(value) for item in value),
        "permutation": lambda value: sorted(value) in ([*range(len(value))], [*range(1, len(value) + 1)]),
        "distinct": lambda value: len({repr(item) for item in value}) == len(value),
        "sorted": lambda value: all(one <= other for one, other in itertools.pairwise(value)),
    }
)
"""What may hold for a list."""


def _holds(test: Callable[[list[Any]], bool], value: list[Any]) -> bool:
    """Whether a fact holds for a list; one that cannot be asked of its items does not."""
    try:
        return test(value)
    except (TypeError, LookupError, ValueError):
        return False


class Relation(NamedTuple):
    """`left operator right + add`, between a number (`k`), a length (`nums#`) or all items of a list (`nums[]`)."""

    left: str
    operator: Literal["<=", "=="]
    right: str
    add: float = 0.0

    def holds_for(self, numbers: Mapping[str, Sequence[float]]) -> bool:
        """Whether it holds; of an empty list it says nothing."""
        least = numbers[self.right][0] + self.add
        found = numbers[self.left]
        return all(one == least for one in found) if self.operator == "==" else max(found, default=least) <= least


@dataclass(frozen=True, slots=True)
class InputModel:
    """What inputs of a problem look like."""

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    relations: tuple[Relation, ...]

    @property
    def is_usable(self) -> bool:
        """Whether every value has a shape that can be changed and checked."""
        return bool(self.names) and all(shape.is_known for shape in self.shapes)

    def fits(self, values: Values) -> bool:
        """Whether an input has all that the known ones have in common."""
        if not all(shape.fits(value) for shape, value in zip(self.shapes, values, strict=True)):
            return False
        numbers = _collect_numbers(self.names, values)
        return all(one.holds_for(numbers) for one in self.relations)


def learn(names: Sequence[str], known: Sequence[Values]) -> InputModel:
    """Return what known inputs have in common."""
    shapes = tuple(infer_shape(column) for column in zip(*known, strict=True))
    return InputModel(tuple(names), shapes, tuple(_relate([_collect_numbers(names, values) for values in known])))


def _collect_numbers(names: Sequence[str], values: Values) -> dict[str, list[float]]:
    """Return the numbers at every place of an input."""
    found: dict[str, list[float]] = {}
    for name, value in zip(names, values, strict=True):
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = [value]
        elif isinstance(value, str | list):
            found[f"{name}#"] = [len(value)]
        if isinstance(value, list):
            found[f"{name}[]"] = list(_flatten(value))
    return found


def _flatten(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for item in value:
            yield from _flatten(item)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield value


def _relate(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield which of two numbers is the other one, or never more than it, and which lists hold indices up to one.

    Of one input only the equal lengths of two lists are taken to be no chance.
    """
    places = [place for place in numbers[0] if all(place in seen for seen in numbers)]
    sizes = [place for place in places if not place.endswith("[]")]
    for one, other in itertools.permutations(sizes, 2):
        gaps = {seen[one][0] - seen[other][0] for seen in numbers}
        if gaps == {0} and (len(numbers) > 1 or (one.endswith("#") and other.endswith("#"))):
            yield Relation(one, "==", other)
        elif len(numbers) > 1 and len(gaps) == 1 and abs(max(gaps)) == 1 and one.endswith("#") != other.endswith("#"):
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

"""What an input may be: named values, their shapes, and relations between them that hold for all known inputs.

Learnt from known inputs alone, and used strictly: what all of them have in common is kept, and what is mutated stays
inside the range of known values, and so within every bound that a statement gives as a number.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.shapes import Shape, infer_shape, is_tree

_ENOUGH_ROWS, _ENOUGH_EDGES = 4, 5
"""Of tables, to tell a rule from chance."""


class Relation(NamedTuple):
    """`left operator right + add`, between numbers at places of an input.

    A place is a value (`k`), a length (`nums#`), the items of a list (`nums[]`), their lengths (`words[]#`) or a column
    of a list of rows (`edges[][0]`).
    """

    left: str
    operator: Literal["<=", "<", "=="]
    right: str
    add: float = 0.0

    def holds_for(self, numbers: Mapping[str, Sequence[float]]) -> bool:
        """Whether it holds; a relation whose places an input does not have says nothing."""
        left, right = numbers.get(self.left, ()), [number + self.add for number in numbers.get(self.right, ())]
        if not left or not right:
            return True
        if self.operator == "==":
            return {*left} == {*right}
        # Two columns are compared row by row.
        pairs = zip(left, right, strict=True) if len(left) == len(right) else [(max(left), min(right))]
        return all(a < b if self.operator == "<" else a <= b for a, b in pairs)


@dataclass(frozen=True, slots=True)
class InputModel:
    """What inputs of a problem look like."""

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    relations: tuple[Relation, ...]
    trees: tuple[tuple[str, str], ...] = ()
    """Two lists each that hold the ends of the edges of a tree."""

    @property
    def is_usable(self) -> bool:
        """Whether every value has a shape that can be changed and checked."""
        return bool(self.names) and all(shape.is_known for shape in self.shapes)

    def find_fault(self, values: Values) -> str:
        """Return what of the model an input does not meet; empty where it meets all."""
        if len(values) != len(self.names):
            return "another number of values"
        for name, shape, value in zip(self.names, self.shapes, values, strict=True):
            if fault := shape.find_fault(value):
                return f"{name}: {fault}"
        given = dict(zip(self.names, values, strict=True))
        if not all(is_tree(list(zip(given[one], given[other], strict=False))) for one, other in self.trees):
            return "no tree"
        numbers = collect_numbers(self.names, values)
        failing = next((one for one in self.relations if not one.holds_for(numbers)), None)
        return f"not {failing.left} {failing.operator} {failing.right} + {failing.add:g}" if failing else ""


def learn(names: Sequence[str], known: Sequence[Values], *, records: Collection[str] = ()) -> InputModel:
    """Return what known inputs have in common.

    Args:
        names: of the values, in order.
        known: at least one input, a value per name.
        records: names of tables whose columns are something of their own each.
    """
    shapes = tuple(
        infer_shape([values[place] for values in known], has_records=name in records)
        for place, name in enumerate(names)
    )
    numbers = [collect_numbers(names, values) for values in known]
    relations = dict.fromkeys([*_single_relations(numbers), *_list_relations(numbers), *_ordered_columns(numbers)])
    return InputModel(tuple(names), shapes, tuple(relations), tuple(_trees(names, shapes, known)))


def collect_numbers(names: Sequence[str], values: Values) -> dict[str, list[float]]:
    """Return the numbers at every place of an input."""
    numbers: dict[str, list[float]] = {}
    for name, value in zip(names, values, strict=True):
        for place, number in _numbers(name, value, depth=0):
            numbers.setdefault(place, []).append(number)
    return numbers


def _numbers(place: str, value: Any, *, depth: int) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool) or depth > 3:
        return
    if isinstance(value, int | float):
        yield place, value
    elif isinstance(value, str):
        yield f"{place}#", len(value)
    elif isinstance(value, list):
        yield f"{place}#", sum(item is not None for item in value)
        for number, item in enumerate(value):
            yield from _numbers(f"{place}[]", item, depth=depth + 1)
            if depth in (1, 2) and number < 6 and isinstance(item, int | float):
                yield f"{place}[{number}]", item


def _find_sizes(numbers: Sequence[Mapping[str, Sequence[float]]]) -> list[str]:
    """Return the places with one number in every input, of values and of their lengths."""
    single = (place for place in numbers[0] if all(len(seen.get(place, ())) == 1 for seen in numbers))
    return [place for place in single if "[" not in place]


def _single_relations(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield which of two numbers is the other one, give or take a constant, and which is never more than the other.

    Of one input only the equal lengths of two lists are taken to be no chance.
    """
    for one, other in itertools.combinations(_find_sizes(numbers), 2):
        gaps = {seen[one][0] - seen[other][0] for seen in numbers}
        is_length = [place.endswith("#") for place in (one, other)]
        if len(numbers) == 1:
            if gaps == {0} and all(is_length) and numbers[0][one][0] > 1:
                yield Relation(one, "==", other)
            continue
        varies = len({seen[one][0] for seen in numbers}) > 1
        # As many edges as a tree has is no chance; two lists that differ by one are.
        if varies and (gaps == {0} or (len(gaps) == 1 and abs(max(gaps)) == 1 and is_length[0] != is_length[1])):
            yield Relation(one, "==", other, max(gaps))
        elif max(gaps) <= 0:
            yield Relation(one, "<" if max(gaps) < 0 else "<=", other)
        elif min(gaps) >= 0:
            yield Relation(other, "<" if min(gaps) > 0 else "<=", one)


def _list_relations(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield which numbers are indices, from 0 or 1 up to a number or a length, and which is the width of a table."""
    sizes = _find_sizes(numbers)
    for place in numbers[0] if len(numbers) > 1 else ():
        if place in sizes or not all(place in seen for seen in numbers):
            continue
        is_width = place.endswith("[]#") and len({number for seen in numbers for number in seen[place]}) > 1
        for size in sizes:
            if is_width and all(set(seen[place]) == {seen[size][0]} for seen in numbers):
                yield Relation(place, "==", size)
            if not place.endswith("#"):
                least = min(min(seen[place]) for seen in numbers)
                is_within = all(max(seen[place]) < seen[size][0] + (least >= 1) for seen in numbers)
                if least >= 0 and is_within:
                    yield Relation(place, "<" if least < 1 else "<=", size)


def _ordered_columns(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield that a column is never more than another one, such as the ends of intervals, where enough rows show it."""
    places = sorted({place for seen in numbers for place in seen if re.search(r"\[\]\[\d\]$", place)})
    for one, other in itertools.permutations(places, 2):
        if one[:-3] == other[:-3]:
            pairs = [pair for seen in numbers for pair in zip(seen.get(one, ()), seen.get(other, ()), strict=False)]
            if len(pairs) >= _ENOUGH_ROWS and all(a <= b for a, b in pairs) and any(a < b for a, b in pairs):
                yield Relation(one, "<=", other)


def _trees(names: Sequence[str], shapes: Sequence[Shape], known: Sequence[Values]) -> Iterator[tuple[str, str]]:
    lists = [
        place for place, shape in enumerate(shapes) if shape.kind == "list" and shape.item and shape.item.kind == "int"
    ]
    for one, other in itertools.pairwise(lists):
        edges = [list(zip(values[one], values[other], strict=False)) for values in known]
        is_parallel = all(len(values[one]) == len(values[other]) for values in known)
        if is_parallel and max(map(len, edges)) > _ENOUGH_EDGES and all(map(is_tree, edges)):
            yield names[one], names[other]

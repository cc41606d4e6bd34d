"""What an input may be: named values, their shapes, and relations between them that hold for all known inputs.

Learnt from known inputs alone, and kept to strictly, whether a statement speaks of it or not: what chance made alike in
the known inputs costs a few mutations, and an input that is not allowed would refuse right programs.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from microcoder.data.inputs.layouts import Values

Kind = Literal["int", "float", "bool", "text", "list", "nodes", "other"]
_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, "bool"), (int, "int"), (float, "float"), (str, "text"), (list, "list"),
)  # fmt: skip
_SAME: Mapping[Kind, tuple[Kind, ...]] = MappingProxyType({"float": ("int",), "nodes": ("list",)})
_MOST_COLUMNS, _MOST_POSITIONS, _ENOUGH_TEXTS, _ENOUGH_NUMBERS = 6, 8, 3, 4
"""Items of a row that are something of their own each; letters of a text, likewise; texts and numbers that tell a rule
from chance."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the values at one place have in common."""

    kind: Kind
    low: float = 0.0
    """Numbers: the least seen; lists and texts: the least length."""
    high: float = 0.0
    alphabet: str = ""
    """Texts: the letters seen, sorted."""
    words: tuple[str, ...] = ()
    """Texts: all that were seen, where most came more than once, such as the names of operations."""
    marks: str = ""
    """Lists of texts: letters that stand once in each, such as start and goal of a picture."""
    item: Shape | None = None
    """Lists: of their items; None where all were empty."""
    columns: tuple[Shape, ...] = ()
    """Lists of a fixed, small length: one shape an item, as in `[from, to, weight]`; texts of one: a letter each."""
    facts: frozenset[str] = field(default_factory=frozenset)
    """Names of `FACTS`, `NODE_FACTS` or `NUMBER_FACTS` that hold for every value seen."""

    @property
    def is_known(self) -> bool:
        """Whether every value inside has a kind that can be changed and checked."""
        inside = [*self.columns, *([self.item] if self.item else [])]
        return self.kind != "other" and (self.kind != "list" or bool(inside)) and all(one.is_known for one in inside)

    def find_fault(self, value: Any) -> str:
        """Return what of it a value does not meet; empty where it meets all."""
        if _kind_of(value) not in (self.kind, *_SAME.get(self.kind, ())):
            return f"no {self.kind}"
        if self.kind in ("bool", "other"):
            return ""
        if self.kind == "nodes":
            return self._fault_of_nodes(value)
        size = value if self.kind in ("int", "float") else len(value)
        if not self.low <= size <= self.high:
            return "outside of what is known"
        if self.kind in ("int", "float"):
            return next((f"not {fact}" for fact in sorted(self.facts) if not NUMBER_FACTS[fact](value)), "")
        if self.kind == "text":
            letters = [(one, item.alphabet) for one, item in zip(value, self.columns, strict=False)]
            letters = letters or [(one, self.alphabet) for one in value]
            is_met = value in self.words if self.words else all(one in allowed for one, allowed in letters)
            return "" if is_met and all(FACTS[fact](value) for fact in self.facts) else "another text"
        if self.columns:
            return next((f for one, item in zip(self.columns, value, strict=True) if (f := one.find_fault(item))), "")
        if missing := next((fact for fact in sorted(self.facts) if not holds(FACTS[fact], value)), ""):
            return f"not {missing}"
        if fault := next((f for item in value if (f := self.item.find_fault(item))), "") if self.item else "":
            return fault
        return "" if not self.marks or set(self.marks) <= _marks([value]) else "a mark that does not stand once"

    def _fault_of_nodes(self, value: list[Any]) -> str:
        nodes = [item for item in value if item is not None]
        if not is_level_order(value) or not self.low <= len(nodes) <= self.high:
            return "no tree, or outside of what is known"
        if missing := next((fact for fact in sorted(self.facts) if not holds(NODE_FACTS[fact], value)), ""):
            return f"not {missing}"
        return next((f for item in nodes if (f := self.item.find_fault(item))), "") if self.item else ""


def infer_shape(values: Sequence[Any], *, is_row: bool = False, has_records: bool = False) -> Shape:
    """Return the shape of values seen at one place.

    Args:
        is_row: the values are items of a list.
        has_records: the items of rows of one small length are something of their own each, wherever such rows are.
    """
    kinds: set[Kind] = {_kind_of(value) for value in values}
    kind: Kind = "float" if kinds == {"int", "float"} else kinds.pop() if len(kinds) == 1 else "other"
    if kind in ("bool", "other"):
        return Shape(kind)
    if kind in ("int", "float"):
        facts = frozenset(name for name, holds_for in NUMBER_FACTS.items() if all(map(holds_for, values)))
        return Shape(kind, min(values), max(values), facts=facts if len(values) >= _ENOUGH_NUMBERS else frozenset())
    if kind == "list" and any(None in value for value in values):
        return _infer_nodes(values)
    low, high = float(min(map(len, values))), float(max(map(len, values)))
    if kind == "text":
        return _infer_text(values, low, high)
    items = [item for value in values for item in value]
    if not items:
        return Shape("list", low, high)
    if is_row and has_records and low == high and 2 <= high <= _MOST_COLUMNS and len(values) > 1:
        columns = tuple(infer_shape(list(column)) for column in zip(*values, strict=True))
        return Shape("list", low, high, columns=columns)
    item = infer_shape(items, is_row=True, has_records=has_records)
    # Of lists of no more than one item everything is true.
    facts = frozenset(name for name, test in FACTS.items() if high > 1 and all(holds(test, value) for value in values))
    marks = "".join(sorted(_marks(values))) if item.kind == "text" and len(values) > 1 else ""
    return Shape("list", low, high, marks=marks, item=item, facts=facts)


def _infer_text(values: Sequence[str], low: float, high: float) -> Shape:
    distinct = set(values)
    if len(values) >= _ENOUGH_TEXTS and high > 1 and 2 * len(distinct) <= len(values) and "".join(distinct).isalpha():
        return Shape("text", low, high, words=tuple(sorted(distinct)))
    columns: tuple[Shape, ...] = ()
    if len(values) >= _ENOUGH_TEXTS and 1 < high == low <= _MOST_POSITIONS:
        # Such as "a1" on a chessboard: each position has letters of its own.
        positions = ("".join(sorted(set(letters))) for letters in zip(*values, strict=True))
        columns = tuple(Shape("text", 1.0, 1.0, alphabet=letters) for letters in positions)
    facts = frozenset({_EVEN}) if all(len(value) % 2 == 0 for value in values) else frozenset()
    return Shape("text", low, high, alphabet="".join(sorted(set().union(*values))), columns=columns, facts=facts)


def _infer_nodes(values: Sequence[list[Any]]) -> Shape:
    """Return the shape of binary trees, level by level, with None for a child that is missing."""
    nodes = [[item for item in value if item is not None] for value in values]
    item = infer_shape([one for value in nodes for one in value] or [0])
    facts = frozenset(name for name, test in NODE_FACTS.items() if all(holds(test, value) for value in values))
    is_tree = item.kind == "int" and all(map(is_level_order, values))
    sizes = [len(value) for value in nodes]
    return Shape("nodes" if is_tree else "other", min(sizes), max(sizes), item=item, facts=facts)


def is_level_order(value: list[Any]) -> bool:
    """Whether a list is a binary tree, level by level, written without the missing children at its end."""
    room = 1
    for item in value:
        if room == 0:
            return False
        room += -1 if item is None else 1
    return not value or (value[0] is not None and value[-1] is not None)


def _is_search_tree(value: list[Any]) -> bool:
    bounds = [(-math.inf, math.inf)]
    for place, item in enumerate(value):
        if item is not None:
            low, high = bounds[place]
            if not low < item < high:
                return False
            bounds += [(low, item), (item, high)]
    return True


def _kind_of(value: Any) -> Kind:
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "other")


def _marks(values: Sequence[Sequence[str]]) -> set[str]:
    """Return the letters that stand once in every picture."""
    texts = ["".join(rows) for rows in values]
    return {letter for letter in set().union(*texts) if all(text.count(letter) == 1 for text in texts)}


def _is_distinct(value: list[Any]) -> bool:
    return len({repr(item) for item in value}) == len(value)


def _is_square(value: list[Any]) -> bool:
    return all(len(item) == len(value) for item in value)


def is_tree(value: list[Any]) -> bool:
    """Whether rows are the edges of a tree, from 0 or from 1."""
    parent = {node: node for row in value for node in row[:2]}

    def find(node: Any) -> Any:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for row in value:
        one, other = find(row[0]), find(row[1])
        if one == other:
            return False
        parent[one] = other
    nodes = set(parent)
    return not value or (
        len(nodes) == len(value) + 1 and nodes in (set(range(len(nodes))), set(range(1, len(nodes) + 1)))
    )


_EVEN = "of even length"
FACTS: Mapping[str, Callable[[Any], bool]] = MappingProxyType(
    {
        _EVEN: lambda value: len(value) % 2 == 0,
        "rectangular": lambda value: len({len(item) for item in value}) <= 1,
        "square": _is_square,
        "symmetric": lambda value: _is_square(value) and [list(c) for c in zip(*value, strict=True)] == value,
        "permutation": lambda value: sorted(value) in ([*range(len(value))], [*range(1, len(value) + 1)]),
        "distinct": _is_distinct,
        "sorted": lambda value: all(one <= other for one, other in itertools.pairwise(value)),
        "decreasing": lambda value: all(one >= other for one, other in itertools.pairwise(value)),
        "tree": is_tree,
        "no_loops": lambda value: all(row[0] != row[1] for row in value),
        "no_double_edges": lambda value: len({frozenset(map(repr, row[:2])) for row in value}) == len(value),
        "no_own_place": lambda value: all(item != place for place, item in enumerate(value, min(1, *value))),
    }
)
"""Facts of a list; the first one of texts too."""

NODE_FACTS: Mapping[str, Callable[[list[Any]], bool]] = MappingProxyType(
    {
        "search": _is_search_tree,
        "distinct": lambda value: _is_distinct([item for item in value if item is not None]),
    }
)
"""Facts of a binary tree."""


def _is_prime(number: float) -> bool:
    if number < 2 or number != int(number):
        return False
    return all(number % divisor for divisor in range(2, min(int(number**0.5), 100_000) + 1))


NUMBER_FACTS: Mapping[str, Callable[[float], bool]] = MappingProxyType(
    {
        "prime": _is_prime,
        "even": lambda number: number % 2 == 0,
        "odd": lambda number: number % 2 == 1,
        "power_of_two": lambda number: number > 0 and math.frexp(number)[0] == 0.5,
    }
)
"""Facts of a number."""


def holds(test: Callable[[list[Any]], bool], value: list[Any]) -> bool:
    """Whether a fact holds for a list; one that cannot be asked of its items does not."""
    try:
        return test(value)
    except (TypeError, LookupError, ValueError):
        return False


_ENOUGH_ROWS = 4
"""Of a table, to tell a rule from chance."""


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
        numbers = collect_numbers(self.names, values)
        failing = next((one for one in self.relations if not one.holds_for(numbers)), None)
        return f"not {failing.left} {failing.operator} {failing.right} + {failing.add:g}" if failing else ""


def learn(names: Sequence[str], known: Sequence[Values], *, records: Collection[str] = ()) -> InputModel:
    """Return what known inputs have in common.

    Args:
        records: names of tables whose columns are something of their own each.
    """
    shapes = tuple(
        infer_shape([values[place] for values in known], has_records=name in records)
        for place, name in enumerate(names)
    )
    numbers = [collect_numbers(names, values) for values in known]
    relations = dict.fromkeys([*_single_relations(numbers), *_list_relations(numbers), *_ordered_columns(numbers)])
    return InputModel(tuple(names), shapes, tuple(relations))


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

"""Learns what all known inputs have in common: an `InputModel`, which new inputs must fit.

It is learnt from the inputs alone: kinds, ranges, letters, facts of lists, and numbers that bound
each other. It is enforced even if no statement demands it. Inputs may share something by chance,
but that costs only a few mutations.
"""

from __future__ import annotations

import itertools
import math
import re
import string
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeGuard

from microcoder.data.inputs.layouts import Values

Kind = Literal["int", "float", "bool", "text", "list", "other"]
"""Kind of a value; only `other` can be neither changed nor checked."""
# A bool is an int as well, so it comes first.
_KINDS: tuple[tuple[type, Kind], ...] = (
    (bool, "bool"),
    (int, "int"),
    (float, "float"),
    (str, "text"),
    (list, "list"),
)
_ALPHABETS = (frozenset(string.ascii_lowercase), frozenset(string.ascii_uppercase))
"""A text without bounds may have all letters of an alphabet of which it has some."""
_DIGITS_AND_MARKS = re.compile(r"(?=.*\d)(?=.*\D)[\d:/+-]+", re.ASCII).fullmatch
"""Matches texts of digits and marks, such as dates and times."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What the values at one position of all inputs have in common."""

    kind: Kind
    low: float = 0.0
    """Numbers: the least seen; lists and texts: the least length."""
    high: float = 0.0
    """Numbers: the largest seen; lists and texts: the largest length."""
    letters: frozenset[str] = frozenset()
    """Texts: the letters seen."""
    known: frozenset[str] = frozenset()
    """Texts that are all of digits and marks, such as dates: those seen, as no other may be one."""
    item: Shape | None = None
    """Lists: shape of their items; None if all were empty."""
    facts: frozenset[str] = frozenset()
    """Lists: names of `FACTS` that hold for every value seen."""

    @property
    def is_known(self) -> bool:
        """Whether every value inside has a kind that can be changed and checked."""
        if self.kind == "list":
            return self.item is not None and self.item.is_known
        return self.kind != "other"

    def fits(self, value: object) -> bool:
        """Whether a value has this kind, range, letters and facts.

        An integer may stand where floats do.
        """
        kind = _kind_of(value)
        if kind != self.kind and (self.kind, kind) != ("float", "int"):
            return False
        if self.kind in ("bool", "other"):
            return True
        # Numbers have bounds themselves, texts and lists by their length.
        if isinstance(value, int | float):
            return self.low <= value <= self.high
        if isinstance(value, str):
            return self._fits_text(value)
        return isinstance(value, list) and self._fits_list(value)

    def has_facts(self, items: list[Any]) -> bool:
        """Whether a list has every fact that all known ones have."""
        return all(_holds(fact, items) for fact in self.facts)

    def _fits_text(self, text: str) -> bool:
        if not self.low <= len(text) <= self.high:
            return False
        if self.known and text not in self.known:
            return False
        return self.letters.issuperset(text)

    def _fits_list(self, items: list[Any]) -> bool:
        if not self.low <= len(items) <= self.high:
            return False
        if not self.has_facts(items):
            return False
        return self.item is None or all(map(self.item.fits, items))


def infer_shape(
    values: Sequence[Any],
    *,
    may_repeat: bool = False,
    is_open: bool = False,
) -> Shape:
    """Return the shape of the values at one position of all inputs.

    Args:
        values: the values, one of each input.
        may_repeat: a list may have equal items though no known one has, unless its items are lists.
        is_open: numbers, lengths and letters have no bounds, also those of a list's items.
    """
    kind = _common_kind(values)
    if kind in ("bool", "other"):
        return Shape(kind)
    if kind in ("int", "float"):
        sizes = list(values)
    else:
        sizes = list(map(len, values))
    if is_open:
        low = -math.inf
        high = math.inf
    else:
        low = min(sizes)
        high = max(sizes)
    if kind == "text":
        letters = _letters_of(values, is_open=is_open)
        # Such a text is a date or the like, which no change leaves one.
        is_closed = all(map(_DIGITS_AND_MARKS, values))
        known = frozenset(values) if is_closed else frozenset()
        return Shape(
            kind,
            low,
            high,
            letters=letters,
            known=known,
        )
    if kind == "list":
        items = list(itertools.chain.from_iterable(values))
        item = infer_shape(items, is_open=is_open) if items else None
        # Facts of the lists themselves; those of their items are in the shape of these.
        facts = _facts_of(values)
        has_plain_items = item is not None and item.kind != "list"
        if may_repeat and has_plain_items:
            facts.discard("distinct")
        return Shape(
            kind,
            low,
            high,
            item=item,
            facts=frozenset(facts),
        )
    return Shape(kind, low, high)


def _common_kind(values: Sequence[Any]) -> Kind:
    """Return the kind of all values; integers among floats are floats."""
    kinds = {_kind_of(value) for value in values}
    if kinds == {"int", "float"}:
        return "float"
    return kinds.pop() if len(kinds) == 1 else "other"


def _kind_of(value: object) -> Kind:
    for kind, name in _KINDS:
        if isinstance(value, kind):
            return name
    return "other"


def _letters_of(
    texts: Sequence[str],
    *,
    is_open: bool,
) -> frozenset[str]:
    """Return the letters of all texts; with `is_open`, whole alphabets of which any letter
    occurs."""
    letters: frozenset[str] = frozenset().union(*texts)
    if is_open:
        for alphabet in _ALPHABETS:
            if letters & alphabet:
                letters |= alphabet
    return letters


def _is_rectangular(rows: list[Any]) -> bool:
    return len({len(row) for row in rows}) <= 1


def _is_square(rows: list[Any]) -> bool:
    return all(len(row) == len(rows) for row in rows)


def _is_permutation(items: list[Any]) -> bool:
    from_zero = list(range(len(items)))
    from_one = list(range(1, len(items) + 1))
    return sorted(items) in (from_zero, from_one)


def _is_distinct(items: list[Any]) -> bool:
    # Lists have no hash, their texts have.
    return len({repr(item) for item in items}) == len(items)


def _is_sorted(items: list[Any]) -> bool:
    return all(item <= following for item, following in itertools.pairwise(items))


FACTS: Mapping[str, Callable[[list[Any]], bool]] = {
    "rectangular": _is_rectangular,
    "square": _is_square,
    "permutation": _is_permutation,
    "distinct": _is_distinct,
    "sorted": _is_sorted,
}
"""Facts that may hold for a list, by name."""


def _facts_of(lists: Sequence[list[Any]]) -> set[str]:
    """Return the names of the facts that hold for all lists."""
    # Of lists of no more than one item everything is true.
    if max(map(len, lists)) <= 1:
        return set()
    facts = set()
    for name in FACTS:
        if all(_holds(name, items) for items in lists):
            facts.add(name)
    return facts


def _holds(fact: str, items: list[Any]) -> bool:
    """Whether a fact holds for a list; False if it cannot be computed for its items."""
    try:
        return FACTS[fact](items)
    except (TypeError, LookupError, ValueError):
        return False


Numbers = Mapping[str, Sequence[float]]
"""The numbers of an input by position, as `Relation` names positions."""


class Relation(NamedTuple):
    """A relation of two positions that holds in each input: `left operator right + add`.

    A position is a number (`1`), a length (`0#`), or all numbers in a list (`0[]`).
    """

    left: str
    operator: Literal["<=", "=="]
    right: str
    add: float = 0.0

    def holds_for(self, numbers: Numbers) -> bool:
        """Whether it holds for an input's numbers by position.

        It always does if `left` is an empty list.
        """
        bound = numbers[self.right][0] + self.add
        compared = numbers[self.left]
        if self.operator == "==":
            return all(number == bound for number in compared)
        return max(compared, default=bound) <= bound


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
        """Whether an input has everything that the known inputs have in common."""
        for shape, value in zip(
            self.shapes,
            values,
            strict=True,
        ):
            if not shape.fits(value):
                return False
        numbers = _collect_numbers(values)
        return all(relation.holds_for(numbers) for relation in self.relations)


def learn(
    known: Sequence[Values],
    *,
    may_repeat: bool = False,
    open_places: Collection[int] = (),
) -> InputModel:
    """Return the shapes and relations that known inputs have in common.

    Args:
        known: inputs, each with as many values.
        may_repeat: a list may have equal items though no known one has, unless its items are lists.
        open_places: indices of the values that have no bounds, and need not be less than others
            that have none.
    """
    shapes = []
    columns = zip(*known, strict=True)
    for place, column in enumerate(columns):
        is_open = place in open_places
        shape = infer_shape(column, may_repeat=may_repeat, is_open=is_open)
        shapes.append(shape)
    open_positions = set()
    for place in open_places:
        open_positions.update((f"{place}", f"{place}#"))
    relations = []
    for relation in _relate([_collect_numbers(values) for values in known]):
        are_open = {relation.left, relation.right} <= open_positions
        # Equal numbers state a length; bounds were only seen.
        if relation.operator == "==" or not are_open:
            relations.append(relation)
    return InputModel(tuple(shapes), tuple(relations))


def _collect_numbers(values: Values) -> dict[str, list[float]]:
    """Return the numbers of an input by position: numbers, lengths, numbers in lists."""
    numbers: dict[str, list[float]] = {}
    for place, value in enumerate(values):
        if _is_number(value):
            numbers[f"{place}"] = [value]
        elif isinstance(value, str | list):
            numbers[f"{place}#"] = [len(value)]
        if isinstance(value, list):
            numbers[f"{place}[]"] = list(_flatten(value))
    return numbers


def _flatten(value: object) -> Iterator[float]:
    """Yield the numbers in a value, however deep in lists."""
    if isinstance(value, list):
        for item in value:
            yield from _flatten(item)
    elif _is_number(value):
        yield value


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _relate(numbers: Sequence[Numbers]) -> Iterator[Relation]:
    """Yield the relations that hold for the numbers of all inputs.

    From a single input only equal lengths are inferred.
    """
    positions = _common_positions(numbers)
    sizes = [name for name in positions if not name.endswith("[]")]
    # Both ways round, since a bound holds from one side only.
    for left, right in itertools.permutations(sizes, 2):
        relation = _relate_sizes(left, right, numbers)
        if relation is not None:
            yield relation
    if len(numbers) > 1:
        for position in positions:
            if position.endswith("[]"):
                yield from _bound_items(position, sizes, numbers)


def _common_positions(numbers: Sequence[Numbers]) -> list[str]:
    """Return the positions that all inputs have; of values of two kinds only one kind has
    numbers."""
    common = []
    for position in numbers[0]:
        if all(position in by_position for by_position in numbers):
            common.append(position)
    return common


def _relate_sizes(
    left: str,
    right: str,
    numbers: Sequence[Numbers],
) -> Relation | None:
    """Return how two numbers or lengths are related in all inputs, or None."""
    # How much larger the left is, in each input.
    gaps = set()
    for by_position in numbers:
        gaps.add(by_position[left][0] - by_position[right][0])
    is_length = left.endswith("#")
    is_other_length = right.endswith("#")
    are_lengths = is_length and is_other_length
    if gaps == {0} and (are_lengths or len(numbers) > 1):
        return Relation(left, "==", right)
    # From one input everything could be concluded.
    if len(numbers) == 1:
        return None
    largest = max(gaps)
    is_one_apart = len(gaps) == 1 and abs(largest) == 1
    if is_one_apart and is_length != is_other_length:
        # As many edges as a tree has.
        return Relation(left, "==", right, largest)
    if largest < 0:
        return Relation(left, "<=", right, -1.0)
    if largest == 0:
        return Relation(left, "<=", right)
    return None


def _bound_items(
    position: str,
    sizes: Sequence[str],
    numbers: Sequence[Numbers],
) -> Iterator[Relation]:
    """Yield the sizes that no number of a list exceeds, as a graph's number of nodes."""
    items: list[float] = []
    for by_position in numbers:
        items += by_position[position]
    least = min(items, default=-1)
    # Nodes are never negative, so these numbers name none.
    if least < 0:
        return
    # Nodes are counted from 1 or from 0.
    add = 0.0 if least >= 1 else -1.0
    for size in sizes:
        are_within = []
        for by_position in numbers:
            largest = max(by_position[position], default=0)
            # Not by a difference, which as a float loses the last digits of large numbers.
            are_within.append(largest <= by_position[size][0] + add)
        if all(are_within):
            yield Relation(position, "<=", size, add)

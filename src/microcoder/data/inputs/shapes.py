"""Makes the largest inputs of a model by shape: all equal, sorted, alternating, a chain, a star.

A slow program is slow on some shapes only, as quicksort on sorted lists. How large an input may be
is not learnt from known inputs but asked of validators, by the caller: see `Limits`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal, NamedTuple

from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.models import InputModel, Shape
from microcoder.data.inputs.mutating import restate_lengths

Form = Literal["random", "equal", "sorted", "alternating", "chain", "star", "tree", "reversed"]
"""How the items of a large list are arranged."""
FORMS: tuple[Form, ...] = (
    "random",
    "equal",
    "sorted",
    "alternating",
    "chain",
    "star",
    "reversed",
    "tree",
)
_SHALLOW = 3
"""Of a `tree` each node hangs on one of so many before it: deep, and not quite a chain."""


_SHORT = (3, 6, 12, 30, 100)
"""Most items of a short list."""
_NARROW = (2, 5, 10, 100, 1000)
"""How far the numbers of a small input lie apart: programs may take long for larger ones."""


class Slot(NamedTuple):
    """Numbers of an input that have the same bounds."""

    place: int
    """Index of the value."""
    column: int = -1
    """Of a list of rows, the column; -1 for a number, or for a list of numbers."""


class Limit(NamedTuple):
    """Bounds of the numbers in a slot."""

    low: int
    high: int
    size: str = ""
    """Where numbers name nodes: the number or length that they do not exceed, as `Relation` names
    positions; empty where the bound is `high`."""
    add: int = 0
    """What is added to that: -1 where nodes are counted from 0."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large the values of a problem's inputs may be."""

    lengths: Mapping[int, int] = field(default_factory=dict)
    """Most items or letters, by the index of the value."""
    numbers: Mapping[Slot, Limit] = field(default_factory=dict)


def find_slots(model: InputModel, values: Values) -> list[Slot]:
    """Return the slots of whole numbers in an input."""
    slots = []
    for place, (shape, value) in enumerate(zip(model.shapes, values, strict=True)):
        if shape.kind == "int":
            slots.append(Slot(place))
        if shape.kind != "list" or shape.item is None:
            continue
        if shape.item.kind == "int":
            slots.append(Slot(place))
        elif _has_columns(shape) and value:
            slots += [Slot(place, column) for column in range(len(value[0]))]
    return slots


def _has_columns(shape: Shape) -> bool:
    """Whether a list has rows of equally many whole numbers, as the edges of a graph are."""
    row = shape.item
    if row is None or row.kind != "list" or row.item is None:
        return False
    return "rectangular" in shape.facts and row.item.kind == "int"


def numbers_in(values: Values, slot: Slot) -> list[int]:
    """Return the numbers of a slot."""
    value = values[slot.place]
    if not isinstance(value, list):
        return [value]
    if slot.column < 0:
        return value
    return [row[slot.column] for row in value]


def with_number(
    model: InputModel,
    values: Values,
    slot: Slot,
    number: int,
) -> Values:
    """Return the input with the last number of a slot replaced."""
    changed = list(values)
    value = values[slot.place]
    if not isinstance(value, list):
        changed[slot.place] = number
    elif slot.column < 0:
        changed[slot.place] = [*value[:-1], number]
    else:
        row = list(value[-1])
        row[slot.column] = number
        changed[slot.place] = [*value[:-1], row]
    restate_lengths(model, changed)
    return tuple(changed)


def sizes_in(values: Values) -> dict[str, int]:
    """Return the numbers and lengths of an input by position."""
    sizes = {}
    for place, value in enumerate(values):
        if isinstance(value, list | str):
            sizes[f"{place}#"] = len(value)
        elif type(value) is int:
            sizes[f"{place}"] = value
    return sizes


def arrange(
    model: InputModel,
    known: Values,
    limits: Limits,
    form: Form,
    *,
    seed: int,
) -> Values:
    """Return an input as large as the limits allow, with its lists arranged in a form.

    Args:
        model: what known inputs have in common.
        known: an input, for values of other kinds than whole numbers and texts.
        limits: lengths and bounds.
        form: how lists are arranged.
        seed: decides every choice.
    """
    source = Random(seed)
    values = list(known)
    for place, shape in enumerate(model.shapes):
        limit = limits.numbers.get(Slot(place))
        if shape.kind == "int" and limit is not None:
            values[place] = limit.high
        elif shape.kind in ("list", "text"):
            length = limits.lengths.get(place, len(values[place]))
            values[place] = _stretch(values[place], length)
    # Lengths before items, since nodes are bounded by their number.
    restate_lengths(model, values)
    sizes = sizes_in(tuple(values))
    for place, shape in enumerate(model.shapes):
        limit = limits.numbers.get(Slot(place))
        if shape.kind == "int" and limit is not None and limit.size:
            values[place] = source.choice(_bounds(limit, sizes))
        if shape.kind == "text" and values[place] and not shape.known:
            letters = sorted(shape.letters)
            values[place] = _arrange_text(len(values[place]), letters, form, source)
        elif shape.kind == "list":
            values[place] = _arrange_list(place, shape, values[place], limits, sizes, form, source)
    restate_lengths(model, values)
    return tuple(values)


def shrink(limits: Limits, seed: int) -> Limits:
    """Return smaller limits: short lists of numbers that lie close together."""
    source = Random(seed)
    longest = source.choice(_SHORT)
    width = source.choice(_NARROW)
    lengths: dict[int, int] = {}
    by_most: dict[int, int] = {}
    for place, most in limits.lengths.items():
        # Lists that are equally long stay so.
        length = by_most.setdefault(most, source.randint(1, longest))
        lengths[place] = min(most, length)
    numbers = {}
    for slot, limit in limits.numbers.items():
        high = min(limit.high, max(limit.low, 0) + source.randint(1, width))
        low = max(limit.low, -width)
        numbers[slot] = limit._replace(low=low, high=max(low, high))
    return Limits(lengths, numbers)


def _stretch(value: list[Any] | str, length: int) -> list[Any] | str:
    """Return a list or text with so many items, its own again and again."""
    if not value:
        return value
    times = length // len(value) + 1
    return (value * times)[:length]


def _arrange_text(
    length: int,
    letters: Sequence[str],
    form: Form,
    source: Random,
) -> str:
    if form == "equal":
        return letters[-1] * length
    if form in ("alternating", "star"):
        return ((letters[0] + letters[-1]) * length)[:length]
    if form == "chain":
        # One letter that differs, at the end: what compares all starts takes longest.
        return letters[0] * (length - 1) + letters[-1]
    few = letters if form == "random" else letters[:2]
    written = source.choices(few, k=length)
    if form in ("sorted", "reversed"):
        written.sort(reverse=form == "reversed")
    return "".join(written)


def _arrange_list(
    place: int,
    shape: Shape,
    items: list[Any],
    limits: Limits,
    sizes: Mapping[str, int],
    form: Form,
    source: Random,
) -> list[Any]:
    """Return as many items in a form; items of other kinds are drawn from the known ones."""
    length = len(items)
    if shape.item is None or not length:
        return items
    if shape.item.kind == "int" and Slot(place) in limits.numbers:
        low, high = _bounds(limits.numbers[Slot(place)], sizes)
        numbers = _arrange_numbers(length, low, high, form, source)
        return _with_facts(numbers, shape, low, high, source)
    if _has_columns(shape):
        return _arrange_rows(place, items, limits, sizes, form, source)
    if shape.item.kind == "text" and not shape.item.known:
        letters = sorted(shape.item.letters)
        return [_arrange_text(len(item), letters, form, source) for item in items]
    if form == "equal":
        return [items[0]] * length
    return source.choices(items, k=length)


def _bounds(limit: Limit, sizes: Mapping[str, int]) -> tuple[int, int]:
    high = limit.high
    if limit.size in sizes:
        high = sizes[limit.size] + limit.add
    return limit.low, max(limit.low, high)


def _arrange_numbers(
    length: int,
    low: int,
    high: int,
    form: Form,
    source: Random,
) -> list[int]:
    """Return numbers between bounds in a form."""
    if form == "equal":
        return [high] * length
    if form == "alternating":
        return [high if number % 2 else low for number in range(length)]
    if form == "star":
        # All the same but one.
        return [low] * (length - 1) + [high]
    if form == "chain":
        return [min(high, low + number) for number in range(length)]
    if form == "tree":
        return [source.randint(low, min(high, low + 1)) for _ in range(length)]
    numbers = [source.randint(low, high) for _ in range(length)]
    if form in ("sorted", "reversed"):
        numbers.sort(reverse=form == "reversed")
    return numbers


def _with_facts(
    numbers: list[int],
    shape: Shape,
    low: int,
    high: int,
    source: Random,
) -> list[int]:
    """Return the numbers, or others that have the facts of all known lists."""
    if shape.has_facts(numbers):
        return numbers
    length = len(numbers)
    if "permutation" in shape.facts:
        numbers = list(range(low, low + length))
        source.shuffle(numbers)
    elif "distinct" in shape.facts and high - low >= length:
        numbers = source.sample(range(low, high + 1), length)
    return sorted(numbers) if "sorted" in shape.facts else numbers


def _arrange_rows(
    place: int,
    rows: list[list[int]],
    limits: Limits,
    sizes: Mapping[str, int],
    form: Form,
    source: Random,
) -> list[list[int]]:
    """Return as many rows, a column at a time; the first two columns of nodes make edges."""
    columns = []
    nodes = []
    for column in range(len(rows[0])):
        limit = limits.numbers.get(Slot(place, column))
        if limit is None:
            columns.append([row[column] for row in rows])
            continue
        low, high = _bounds(limit, sizes)
        columns.append(_arrange_numbers(len(rows), low, high, form, source))
        if limit.size:
            nodes.append((column, low, high))
    if len(nodes) >= 2:
        (first, low, high), (second, _, _) = nodes[:2]
        columns[first], columns[second] = _make_edges(len(rows), low, high, form, source)
    arranged = [list(row) for row in zip(*columns, strict=True)]
    for first, second in _ordered_columns(rows):
        for row in arranged:
            if row[first] > row[second]:
                row[first], row[second] = row[second], row[first]
    return arranged


def _ordered_columns(rows: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Return the neighbouring columns of which the first is never larger, as start and end are."""
    ordered = []
    for first in range(len(rows[0]) - 1):
        is_ordered = all(row[first] <= row[first + 1] for row in rows)
        if is_ordered and len(rows) > 1:
            ordered.append((first, first + 1))
    return ordered


def _make_edges(
    num_edges: int,
    low: int,
    high: int,
    form: Form,
    source: Random,
) -> tuple[list[int], list[int]]:
    """Return the ends of edges: first a tree of the form over all nodes, then random edges."""
    num_nodes = high - low + 1
    names = list(range(num_nodes))
    if form in ("random", "reversed"):
        source.shuffle(names)
    firsts = []
    seconds = []
    for number in range(num_edges):
        child = number + 1
        if child < num_nodes:
            parent = _parent_of(child, form, source)
        else:
            parent, child = source.sample(range(num_nodes), 2) if num_nodes > 1 else (0, 0)
            # Not the same edge again as a rule; a validator may refuse it.
        firsts.append(low + names[parent])
        seconds.append(low + names[child])
    return firsts, seconds


def _parent_of(
    child: int,
    form: Form,
    source: Random,
) -> int:
    """Return the node that a node hangs on in a tree of this form."""
    if form in ("chain", "sorted", "reversed"):
        return child - 1
    if form in ("star", "equal"):
        return 0
    if form == "alternating":
        # Half a chain, half a star.
        return max(0, child - 2) if child % 2 else 0
    if form == "tree":
        return max(0, child - source.randint(1, _SHALLOW))
    return source.randrange(child)

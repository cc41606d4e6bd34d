"""Inputs as values: infers the layout of a problem's inputs from known ones, and writes values in that layout.

    texts of stdin -> Layout -> values without counts -> stdin again; arguments of a function likewise

A number that only says how many others follow is not a value: it is left out, and computed again when writing.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

Values = tuple[Any, ...]

_INT = re.compile(r"[+-]?(?:0|[1-9]\d{0,199})")
"""Longer numbers are words: Python refuses to read them."""
_FLOAT = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")
_MOST_ON_A_LINE = 8


@dataclass(frozen=True, slots=True)
class Item:
    """A part of an input."""

    form: str
    """`value` one token, `list` the tokens of a line, `column` a line each, `rows` a list a line, `count` how many are
    in another item."""
    of: int = -1
    """`count`: the item that it counts. In `rows`, with 0: each line begins with its own length."""
    width: int = 1
    """`value`: number of values on the line, at the first of them; 1 at the others."""
    tall: int = -1
    """`column`, `rows`: index of the `value` or `count` that is their number of lines; -1 if there is none."""
    less: int = 0
    """How many lines fewer there are than item `tall` says: a tree has one edge less than nodes."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a problem's inputs."""

    items: tuple[Item, ...]
    is_call: bool = False
    """Whether the items are arguments of a function, a `value` each."""
    is_repeated: bool = False
    """The first line is the number of cases that follow, each in this layout."""

    def render(self, values: Values) -> Any:
        """Return the input that holds these values: arguments of a call, or text for stdin."""
        left = iter(values)
        whole: list[Any] = [None if item.form == "count" else next(left) for item in self.items]
        for place, item in enumerate(self.items):
            if item.form == "count":
                whole[place] = len(whole[item.of])
        if self.is_call:
            return whole
        lines: list[str] = ["1"] if self.is_repeated else []
        on_line = 0
        for item, value in zip(self.items, whole, strict=True):
            if item.form in ("value", "count"):
                if on_line:
                    lines[-1] += f" {_write(value)}"
                else:
                    lines.append(_write(value))
                    on_line = item.width
                on_line -= 1
            elif item.form == "rows":
                lines += [
                    " ".join(map(_write, [len(row), *row] if item.of == 0 else row))
                    for row in value
                ]
            elif item.form == "column":
                lines += map(_write, value)
            else:
                lines.append(" ".join(map(_write, value)))
        return "\n".join(lines) + "\n"


def _write(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class Read:
    """A layout, and the values of each input in it."""

    layout: Layout
    values: tuple[Values, ...]


def read_calls(arguments: Sequence[Sequence[Any]]) -> list[Read]:
    """Return the possible readings of calls' arguments: all of them, and all but those that are another's length."""
    num = {len(row) for row in arguments}
    if len(num) != 1 or not (width := num.pop()):
        return []
    plain = Layout(tuple(Item("value") for _ in range(width)), is_call=True)
    found = [Read(plain, tuple(tuple(row) for row in arguments))]
    counted = _without_counts(plain, found[0].values)
    return [found[0], counted] if counted else found


def _without_counts(layout: Layout, values: Sequence[Values]) -> Read | None:
    """Return the reading without numbers that are another value's length in every input; None if there are none."""
    items, kept = list(layout.items), []
    # Where each value stands among the items; counts have none.
    places = [place for place, item in enumerate(items) if item.form != "count"]
    columns = list(zip(places, zip(*values, strict=True), strict=True))
    sizes = [
        (at, tuple(map(len, column)))
        for at, column in columns
        if all(isinstance(v, list | str) for v in column)
    ]
    for place, column in columns:
        sized = (
            there
            for there, lengths in sizes
            if lengths == column and all(type(value) is int for value in column)
        )
        if (counted := next(sized, None)) is None:
            kept.append(column)
        else:
            items[place] = replace(items[place], form="count", of=counted)
    if len(kept) == len(columns):
        return None
    return Read(replace(layout, items=tuple(items)), tuple(zip(*kept, strict=True)))


def read_texts(inputs: Sequence[str], *, is_typed: bool = False) -> list[Read]:
    """Return the possible readings of stdin texts, the likeliest first; empty if they have no common layout.

    Args:
        is_typed: keep numbers in rows that also hold words, and offer no readings of numbers as text.
    """
    lines = [[line.split() for line in text.splitlines() if line.strip()] for text in inputs]
    if not lines or not all(lines):
        return []
    found = []
    for merges in (False, True):
        items = _find_items(lines, merges=merges)
        if items is None:
            continue
        read = Read(
            Layout(tuple(items)), _of_one_kind([_read(items, rows, is_typed) for rows in lines])
        )
        if all(other.layout != read.layout for other in found):
            found.append(_without_counts(read.layout, read.values) or read)
    if is_typed:
        return found
    # A number may be meant by its digits.
    for read in [read for read in found if any(type(value) is int for value in read.values[0])]:
        digits = (
            tuple(str(value) if type(value) is int else value for value in row)
            for row in read.values
        )
        found.append(replace(read, values=tuple(digits)))
    return found


def _of_one_kind(rows: Sequence[Values]) -> tuple[Values, ...]:
    """Return the rows with each column of one kind: all texts where one of its values is not a number, such as 0110."""
    columns = []
    for column in zip(*rows, strict=True):
        is_mixed = any(isinstance(value, str) for value in column) and not all(
            isinstance(v, str) for v in column
        )
        columns.append(
            [str(value) if isinstance(value, int) else value for value in column]
            if is_mixed
            else column
        )
    return tuple(zip(*columns, strict=True)) if columns else tuple(rows)


def split_repeated(
    inputs: Sequence[str], outputs: Sequence[str]
) -> tuple[list[str], list[str]] | None:
    """Split inputs that begin with the number of cases, and their outputs, into cases; None if that does not fit.

    All cases must have as many lines of input, and those of one output as many lines.
    """
    cases: list[str] = []
    printed: list[str] = []
    heights: set[int] = set()
    most = 0
    for given, shown in zip(inputs, outputs, strict=True):
        first, *rest = [line for line in given.splitlines() if line.strip()] or [""]
        said = [line for line in shown.splitlines() if line.strip()]
        num = int(first) if _INT.fullmatch(first.strip()) else 0
        if num < 1 or len(rest) % num or len(said) % num or not rest or not said:
            return None
        height, spoken = len(rest) // num, len(said) // num
        heights.add(height)
        most = max(most, num)
        cases += ["\n".join(rest[at * height : (at + 1) * height]) + "\n" for at in range(num)]
        printed += ["\n".join(said[at * spoken : (at + 1) * spoken]) for at in range(num)]
    return (cases, printed) if len(heights) == 1 and most > 1 else None


def _find_items(inputs: Sequence[list[list[str]]], *, merges: bool) -> list[Item] | None:
    """Infer the common layout, line by line; None without one.

    Args:
        merges: take a line of several alike tokens for a list, though it has the same length everywhere.
    """
    items: list[Item] = []
    scalars: list[tuple[int, list[int]]] = []
    """Indices of items that may be counts, each with its numbers in the inputs."""
    for at in range(max(map(len, inputs))):
        left = [len(rows) - at for rows in inputs]
        counter = _find_count(scalars, left, items)
        if counter is not None and (max(left) > 1 or min(left) == 0):
            _take_rows(items, [row for rows in inputs for row in rows[at:]], counter)
            return items
        if block := _find_height(scalars, left):
            rows = [row for rows in inputs for row in rows[at:]]
            if len({len(row) for row in rows}) == 1 or _have_own_lengths(rows):
                _take_rows(items, rows, *block)
                return items
        if min(left) == 0:
            return None
        lines = [rows[at] for rows in inputs]
        widths = [len(line) for line in lines]
        counter = _find_count(scalars, widths, items)
        are_numbers = {
            bool(_INT.fullmatch(one) or _FLOAT.fullmatch(one)) for line in lines for one in line
        }
        is_alike = len(are_numbers) == 1
        if counter is not None and (len(set(widths)) > 1 or widths[0] > 1 or merges):
            items[counter] = replace(items[counter], form="count", of=len(items))
            items.append(Item("list"))
        elif widths[0] > 1 and any(
            items[place].form == "count" and widths == counts for place, counts in scalars
        ):
            # As long as another list.
            items.append(Item("list"))
        elif (
            len(set(widths)) > 1
            or (merges and widths[0] > 1 and is_alike)
            or widths[0] > _MOST_ON_A_LINE
        ):
            items.append(Item("list"))
        else:
            for place in range(widths[0]):
                tokens = [line[place] for line in lines]
                if all(_INT.fullmatch(token) for token in tokens):
                    scalars.append((len(items), [int(token) for token in tokens]))
                items.append(Item("value", width=widths[0] if place == 0 else 1))
    return items


def _find_height(
    scalars: Sequence[tuple[int, list[int]]], sizes: Sequence[int]
) -> tuple[int, int] | None:
    """Return (place, less): the last varying number that is the size plus `less` (0 or 1) in every input; or None."""
    for less in (0, 1):
        for place, numbers in reversed(scalars):
            if len(set(numbers)) > 1 and [number - less for number in numbers] == list(sizes):
                return place, less
    return None


def _find_count(
    scalars: Sequence[tuple[int, list[int]]], sizes: Sequence[int], items: Sequence[Item]
) -> int | None:
    """Return the item of the latest number that is the size in every input and no count yet, or None."""
    for place, counts in reversed(scalars):
        if items[place].form == "value" and counts == list(sizes):
            return place
    return None


def _have_own_lengths(rows: Sequence[list[str]]) -> bool:
    """Whether each row begins with how many tokens follow, and not all are as long."""
    return len({len(row) for row in rows}) > 1 and all(row[0] == str(len(row) - 1) for row in rows)


def _take_rows(items: list[Item], rows: Sequence[list[str]], counter: int, less: int = 0) -> None:
    """Add an item for a block of lines, whose count is the value of item `counter` minus `less`."""
    is_count = items[counter].form == "value" and not less
    if is_count:
        items[counter] = replace(items[counter], form="count", of=len(items))
    tall = -1 if is_count else counter
    if all(len(row) == 1 for row in rows):
        items.append(Item("column", tall=tall, less=less))
    else:
        items.append(Item("rows", of=0 if _have_own_lengths(rows) else -1, tall=tall, less=less))


def _read(items: Sequence[Item], rows: Sequence[Sequence[str]], is_typed: bool) -> Values:
    values: list[Any] = []
    counts: dict[int, int] = {}
    numbers: dict[int, int] = {}
    line, on_line, place = 0, 0, 0
    for at, item in enumerate(items):
        if item.form in ("value", "count"):
            if not on_line:
                on_line, place = item.width, 0
            token = rows[line][place]
            place, on_line = place + 1, on_line - 1
            if not on_line:
                line += 1
            if item.form == "value":
                values.append(_parse(token))
            else:
                counts[item.of] = int(token)
            if _INT.fullmatch(token):
                numbers[at] = int(token)
        elif item.form == "list":
            values.append(_parse_all(rows[line]))
            line += 1
        else:
            height = counts[at] if item.tall < 0 else numbers[item.tall] - item.less
            block = rows[line : line + height]
            if item.form == "column":
                values.append(_parse_all([row[0] for row in block]))
            else:
                cells = [row[1:] if item.of == 0 else row for row in block]
                values.append(
                    [list(map(_parse, row)) if is_typed else _parse_all(row) for row in cells]
                )
            line += height
    return tuple(values)


def _parse(token: str) -> Any:
    if _INT.fullmatch(token):
        return int(token)
    return float(token) if _FLOAT.fullmatch(token) else token


def _parse_all(tokens: Sequence[str]) -> list[Any]:
    """Return the tokens as numbers if all are, else as texts."""
    parsed = [_parse(token) for token in tokens]
    return list(tokens) if any(isinstance(value, str) for value in parsed) else parsed

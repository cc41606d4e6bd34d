"""Inputs as values: reads a problem's inputs by an inferred layout, and writes values in it.

    texts of stdin -> Layout -> values without counts -> stdin again; arguments of calls likewise

A number that only says how many others follow is not a value: it is left out, and computed again
when writing.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from microcoder.data.inputs.finding import DECIMAL, INTEGER, Item, Tokens, find_items

Values = tuple[Any, ...]
"""The values of one input, in order."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a problem's inputs."""

    items: tuple[Item, ...]
    is_call: bool = False
    """Whether the items are arguments of a function, a `value` each."""
    is_repeated: bool = False
    """The first line is the number of cases that follow, each in this layout."""

    def render(self, values: Values) -> object:
        """Return the input that holds these values: arguments of a call, or text for stdin."""
        if self.is_call:
            return self._fill_counts(values)
        return self.render_text(values)

    def render_text(self, values: Values) -> str:
        """Return the text for stdin that holds these values."""
        lines: list[str] = []
        if self.is_repeated:
            # The values are those of a single case.
            lines.append("1")
        num_left_on_line = 0
        for item, value in zip(
            self.items,
            self._fill_counts(values),
            strict=True,
        ):
            if item.form in ("value", "count"):
                if num_left_on_line:
                    lines[-1] += f" {_write(value)}"
                else:
                    lines.append(_write(value))
                    num_left_on_line = item.line_width
                num_left_on_line -= 1
            elif item.form == "rows":
                for row in value:
                    tokens = [len(row), *row] if item.has_own_lengths else row
                    lines.append(_write_line(tokens))
            elif item.form == "column":
                lines += map(_write, value)
            else:
                lines.append(_write_line(value))
        return "\n".join(lines) + "\n"

    def _fill_counts(self, values: Values) -> list[Any]:
        """Return a value for each item, counts computed."""
        remaining = iter(values)
        filled: list[Any] = []
        for item in self.items:
            if item.form == "count":
                filled.append(None)
            else:
                filled.append(next(remaining))
        # Only now: a count stands before what it counts.
        for place, item in enumerate(self.items):
            if item.form == "count":
                filled[place] = len(filled[item.counted_item])
        return filled


def _write_line(tokens: Sequence[Any]) -> str:
    return " ".join(map(_write, tokens))


def _write(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True, slots=True)
class Read:
    """A layout, and the values of each input in it."""

    layout: Layout
    values: tuple[Values, ...]


def read_calls(arguments: Sequence[Sequence[Any]]) -> list[Read]:
    """Return the possible readings of calls' arguments, the likeliest first.

    One reading has all arguments. Another leaves out those that are the length of another argument,
    if there are any.
    """
    nums_arguments = {len(row) for row in arguments}
    if len(nums_arguments) != 1:
        return []
    num_arguments = nums_arguments.pop()
    if num_arguments == 0:
        return []
    items = (Item("value"),) * num_arguments
    values = tuple(map(tuple, arguments))
    plain = Read(Layout(items, is_call=True), values)
    # A number that is always a length may be one by chance, so both readings are given.
    counted = _without_counts(plain)
    return [plain] if counted is None else [plain, counted]


class _Column(NamedTuple):
    """The values of one item in all inputs."""

    item: int
    values: tuple[Any, ...]


def _without_counts(read: Read) -> Read | None:
    """Return the reading without numbers that are the length of another value in every input.

    None if there are no such numbers.
    """
    items = list(read.layout.items)
    # Counts have no value.
    columns = _columns_of(read)
    lengths = _find_lengths(columns)
    kept = []
    for column in columns:
        counted = _find_counted(column, lengths)
        if counted is None:
            kept.append(column.values)
        else:
            number = items[column.item]
            items[column.item] = replace(
                number,
                form="count",
                counted_item=counted,
            )
    if len(kept) == len(columns):
        return None
    layout = replace(read.layout, items=tuple(items))
    return Read(layout, tuple(zip(*kept, strict=True)))


def _columns_of(read: Read) -> list[_Column]:
    """Return the values of each item; counts have none."""
    remaining = zip(*read.values, strict=True)
    columns = []
    for number, item in enumerate(read.layout.items):
        if item.form != "count":
            columns.append(_Column(number, next(remaining)))
    return columns


def _find_lengths(columns: Sequence[_Column]) -> list[_Column]:
    """Return the lengths of the values in those columns that hold only lists and texts."""
    lengths = []
    for column in columns:
        if all(isinstance(value, list | str) for value in column.values):
            sizes = tuple(map(len, column.values))
            lengths.append(_Column(column.item, sizes))
    return lengths


def _find_counted(
    column: _Column,
    lengths: Sequence[_Column],
) -> int | None:
    """Return the first item whose lengths are the numbers of this column; None if there is none."""
    # Not `isinstance`: a bool counts nothing.
    if any(type(value) is not int for value in column.values):
        return None
    for sized in lengths:
        if sized.values == column.values:
            return sized.item
    return None


def read_texts(
    inputs: Sequence[str],
    *,
    is_typed: bool = False,
) -> list[Read]:
    """Return the possible readings of stdin texts, the likeliest first.

    Empty if the texts have no common layout.

    Args:
        is_typed: keep numbers in rows that also hold words, and offer no readings of numbers as
            text.
    """
    tokens_by_input = list(map(_split_into_tokens, inputs))
    # An input without lines shows no layout.
    if not tokens_by_input or not all(tokens_by_input):
        return []
    readings: list[Read] = []
    for merges in (False, True):
        items = find_items(tokens_by_input, merges=merges)
        if items is None:
            continue
        rows = []
        for lines in tokens_by_input:
            reader = _ValueReader(items, lines, is_typed)
            rows.append(reader.read())
        read = Read(Layout(tuple(items)), _of_one_kind(rows))
        # Mostly both ways of reading lines give one layout.
        if all(other.layout != read.layout for other in readings):
            readings.append(_without_counts(read) or read)
    if not is_typed:
        # A number may be meant by its digits.
        readings += [_as_digits(read) for read in readings if _has_integer(read)]
    return readings


def _split_into_tokens(text: str) -> list[Tokens]:
    """Return the tokens of each line that is not empty."""
    return [line.split() for line in _nonempty_lines(text)]


def _has_integer(read: Read) -> bool:
    return any(type(value) is int for value in read.values[0])


def _as_digits(read: Read) -> Read:
    """Return a reading in which whole numbers that are alone on their place are texts."""
    rows = []
    for row in read.values:
        with_digits = []
        for value in row:
            # Not `isinstance`: a bool has no digits.
            if type(value) is int:
                with_digits.append(str(value))
            else:
                with_digits.append(value)
        rows.append(tuple(with_digits))
    return replace(read, values=tuple(rows))


def _of_one_kind(rows: Sequence[Values]) -> tuple[Values, ...]:
    """Return the rows with each column of one kind.

    A column is all texts if any of its values is not a number, such as 0110.
    """
    columns: list[Sequence[Any]] = []
    for column in zip(*rows, strict=True):
        num_texts = sum(isinstance(value, str) for value in column)
        is_mixed = 0 < num_texts < len(column)
        if is_mixed:
            columns.append(_integers_as_texts(column))
        else:
            columns.append(column)
    # For want of columns, turning them back would lose the rows.
    if not columns:
        return tuple(rows)
    return tuple(zip(*columns, strict=True))


def _integers_as_texts(values: Sequence[Any]) -> list[Any]:
    converted = []
    for value in values:
        if isinstance(value, int):
            converted.append(str(value))
        else:
            converted.append(value)
    return converted


class Cases(NamedTuple):
    """The cases of inputs that begin with their number, each with its own input and output."""

    inputs: list[str]
    outputs: list[str]


def split_repeated(
    inputs: Sequence[str],
    outputs: Sequence[str],
) -> Cases | None:
    """Split inputs that begin with the number of cases, and their outputs, into cases.

    None if that does not fit: all cases need equally many lines of input, and all outputs of a case
    equally many lines.
    """
    cases = Cases([], [])
    heights: set[int] = set()
    most_cases = 0
    for text, output in zip(inputs, outputs, strict=True):
        lines = _nonempty_lines(text)
        if not lines or not INTEGER.fullmatch(lines[0].strip()):
            return None
        num_cases = int(lines[0])
        input_cases = _cut_evenly(lines[1:], num_cases)
        output_cases = _cut_evenly(_nonempty_lines(output), num_cases)
        if input_cases is None or output_cases is None:
            return None
        heights.add(len(input_cases[0]))
        most_cases = max(most_cases, num_cases)
        cases.inputs.extend("\n".join(case) + "\n" for case in input_cases)
        cases.outputs.extend("\n".join(case) for case in output_cases)
    # A number that is always 1 may mean anything.
    return cases if len(heights) == 1 and most_cases > 1 else None


def _nonempty_lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _cut_evenly(
    lines: list[str],
    num_parts: int,
) -> list[list[str]] | None:
    """Cut lines into parts of equal length; None if there are none or that is impossible."""
    if num_parts < 1 or not lines:
        return None
    if len(lines) % num_parts:
        return None
    length = len(lines) // num_parts
    parts = []
    for start in range(0, len(lines), length):
        parts.append(lines[start : start + length])
    return parts


class _ValueReader:
    """Reads the values of one input whose items are known."""

    def __init__(
        self,
        items: Sequence[Item],
        lines: Sequence[Tokens],
        is_typed: bool,
    ) -> None:
        self._items = items
        self._lines = lines
        self._is_typed = is_typed
        self._counts: dict[int, int] = {}
        """Numbers of lines or tokens, by the item that has as many."""
        self._numbers: dict[int, int] = {}
        """Whole numbers that stand alone, by their item."""
        self._line = 0
        self._place_on_line = 0
        self._num_left_on_line = 0

    def read(self) -> Values:
        """Return the values, without counts."""
        values: list[Any] = []
        for number, item in enumerate(self._items):
            if item.form == "count":
                count = int(self._take_token(number, item))
                self._counts[item.counted_item] = count
            elif item.form == "value":
                values.append(_parse(self._take_token(number, item)))
            elif item.form == "list":
                values.append(_parse_all(self._lines[self._line]))
                self._line += 1
            else:
                values.append(self._take_block(number, item))
        return tuple(values)

    def _take_token(self, number: int, item: Item) -> str:
        """Return the next token of a line that holds values and counts."""
        if not self._num_left_on_line:
            self._num_left_on_line = item.line_width
            self._place_on_line = 0
        token = self._lines[self._line][self._place_on_line]
        self._place_on_line += 1
        self._num_left_on_line -= 1
        if not self._num_left_on_line:
            self._line += 1
        # It may be the number of lines of a block further down.
        if INTEGER.fullmatch(token):
            self._numbers[number] = int(token)
        return token

    def _take_block(
        self,
        number: int,
        item: Item,
    ) -> list[Any]:
        """Return the values of a column or of rows."""
        if item.height_item < 0:
            height = self._counts[number]
        else:
            height = self._numbers[item.height_item] - item.num_lines_less
        block = self._lines[self._line : self._line + height]
        self._line += height
        if item.form == "column":
            return _parse_all([row[0] for row in block])
        parse_row = _parse_each if self._is_typed else _parse_all
        # The first token of such rows only says how many follow.
        start = 1 if item.has_own_lengths else 0
        return [parse_row(row[start:]) for row in block]


def _parse(token: str) -> object:
    if INTEGER.fullmatch(token):
        return int(token)
    if DECIMAL.fullmatch(token):
        return float(token)
    return token


def _parse_each(tokens: Sequence[str]) -> list[Any]:
    """Return the tokens, with numbers in place of the tokens that are numbers."""
    return [_parse(token) for token in tokens]


def _parse_all(tokens: Sequence[str]) -> list[Any]:
    """Return the tokens as numbers if all of them are, else as texts."""
    parsed = _parse_each(tokens)
    if any(isinstance(value, str) for value in parsed):
        return list(tokens)
    return parsed

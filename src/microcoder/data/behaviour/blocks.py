"""Reads stdin texts that consist of lines and of blocks of lines, wherever these stand.

    "3 4 / ..#. / #... / .... / 0 1"  ->  3, 4, three rows, 0, 1

`inputs/layouts.py` reads the usual layouts, and makes tests of them. This reads more of them, for
comparison alone: a block before other lines, rows of which each has its length on a line of its
own, lines up to a last one that says that there are no more. Numbers that count stay values.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal, NamedTuple

from microcoder.data.inputs.layouts import Values

_MOST_STEPS = 400
"""Steps of the search for a layout, after which there is none."""
_MOST_VALUES = 8
"""Most tokens of a line that are values of their own."""
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?")
"""A number as JSON has it."""

Lines = Sequence[Sequence[str]]
"""The tokens of each line."""
PartForm = Literal["values", "list", "column", "rows", "counted rows", "paired rows", "end"]
"""How a part is written.

`values`: tokens of a line, a value each. `list`: the tokens of a line. `column`: a token on each of
several lines. `rows`: a list on each of several lines; `counted rows`, with its length before it;
`paired rows`, with its length on a line before it. `end`: a line that says that there are no more.
"""


class Part(NamedTuple):
    """A part of an input."""

    form: PartForm
    width: int = 1
    """`values`: how many there are."""
    text: str = ""
    """`end`: the line."""


@dataclass(frozen=True, slots=True)
class BlockLayout:
    """The parts that all inputs of a problem consist of."""

    parts: tuple[Part, ...]

    def render(self, values: Values) -> object:
        """Return the text for stdin that holds these values."""
        remaining = iter(values)
        lines: list[str] = []
        for part in self.parts:
            if part.form == "end":
                lines.append(part.text)
            elif part.form == "values":
                lines.append(_write_line([next(remaining) for _ in range(part.width)]))
            elif part.form == "list":
                lines.append(_write_line(next(remaining)))
            elif part.form == "column":
                lines += map(_write, next(remaining))
            else:
                lines += _write_rows(part.form, next(remaining))
        return "\n".join(lines) + "\n"


def _write_rows(form: PartForm, rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = []
    for row in rows:
        if form == "counted rows":
            lines.append(_write_line([len(row), *row]))
            continue
        if form == "paired rows":
            lines.append(str(len(row)))
        lines.append(_write_line(row))
    return lines


def _write_line(tokens: Sequence[Any]) -> str:
    return " ".join(map(_write, tokens))


def _write(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


class BlockRead(NamedTuple):
    """A layout, and the values of each input in it."""

    layout: BlockLayout
    values: tuple[Values, ...]


class _Step(NamedTuple):
    """A part, the lines that it takes of each input, and its values there."""

    part: Part
    heights: list[int]
    values: list[list[Any]]


class _Search:
    """Finds parts one after the other, and goes back where no part fits what is left."""

    def __init__(self, inputs: Sequence[Lines]) -> None:
        self._inputs = inputs
        self._num_steps = 0

    def find(self, steps: list[_Step]) -> list[_Step] | None:
        """Return the parts of all inputs that begin with these; None if there are none."""
        self._num_steps += 1
        if self._num_steps > _MOST_STEPS:
            return None
        left = list(self._inputs)
        for step in steps:
            left = list(map(_skip, left, step.heights))
        if not any(left):
            return steps
        for step in _continue(left, steps):
            found = self.find([*steps, step])
            if found is not None:
                return found
        return None


def _skip(lines: Lines, height: int) -> Lines:
    return lines[height:]


def _take(lines: Lines, height: int) -> Lines:
    return lines[:height]


def read_blocks(inputs: Sequence[str]) -> BlockRead | None:
    """Return the values of texts that consist of lines and blocks; None if they do not."""
    tokens_by_input: list[Lines] = []
    for text in inputs:
        lines = filter(str.strip, text.splitlines())
        tokens_by_input.append(list(map(str.split, lines)))
    if len(tokens_by_input) < 2 or not all(tokens_by_input):
        return None
    steps = _Search(tokens_by_input).find([])
    if steps is None or all(step.part.form == "values" for step in steps):
        return None
    layout = BlockLayout(tuple(step.part for step in steps))
    rows = []
    for number in range(len(inputs)):
        values: list[Any] = []
        for step in steps:
            values += step.values[number]
        rows.append(tuple(values))
    return BlockRead(layout, tuple(rows))


def _continue(left: Sequence[Lines], steps: Sequence[_Step]) -> Iterator[_Step]:
    """Yield the parts that may come next, the likeliest first."""
    yield from _counted_blocks(left, steps)
    yield from _even_blocks(left)
    yield from _ended_blocks(left)
    line = _take_line(left)
    if line is not None:
        yield line
    # Words, one a line, to the end.
    if not steps and set(map(len, chain.from_iterable(left))) == {1}:
        yield from _blocks(left, list(map(len, left)))


def _counted_blocks(left: Sequence[Lines], steps: Sequence[_Step]) -> Iterator[_Step]:
    """Yield blocks of as many lines as a number before says, or one less."""
    for step in reversed(steps):
        if step.part.form != "values":
            continue
        for place in reversed(range(step.part.width)):
            counts = [values[place] for values in step.values]
            if set(map(type, counts)) != {int}:
                continue
            # A number that is the same everywhere may fit by chance.
            if len(set(counts)) == 1:
                continue
            for num_less in (0, 1):
                heights = []
                for count in counts:
                    heights.append(count - num_less)
                # First what fits least often.
                yield from _paired(left, heights)
                yield from _blocks(left, heights)


def _even_blocks(left: Sequence[Lines]) -> Iterator[_Step]:
    """Yield the block of the same number of rows of numbers in all inputs, all of one width."""
    width = len(left[0][0]) if left[0] else 0
    if width < 2:
        return
    heights = set()
    for lines in left:
        height = 0
        while height < len(lines) and _is_row_of_numbers(lines[height], width):
            height += 1
        heights.add(height)
    if len(heights) == 1 and min(heights) > 1:
        yield from _blocks(left, [*heights] * len(left))


def _is_row_of_numbers(line: Sequence[str], width: int) -> bool:
    return len(line) == width and all(map(_NUMBER.fullmatch, line))


def _ended_blocks(left: Sequence[Lines]) -> Iterator[_Step]:
    """Yield all lines up to a last one that is the same in all inputs, which differ in height."""
    if not all(left):
        return
    heights = []
    last_lines = []
    for lines in left:
        heights.append(len(lines) - 1)
        last_lines.append(lines[-1])
    is_same = last_lines.count(last_lines[0]) == len(last_lines)
    if is_same and len(set(heights)) > 1:
        yield from _blocks(left, heights)


def _take_line(left: Sequence[Lines]) -> _Step | None:
    """Return the next line as values, or as a list; None if not every input has one."""
    if not all(left):
        return None
    ones = [1] * len(left)
    lines = []
    for remaining in left:
        lines.append(remaining[0])
    widths = set(map(len, lines))
    if _is_end(left):
        return _Step(Part("end", text=" ".join(lines[0])), ones, [[] for _ in lines])
    if len(widths) == 1 and max(widths) <= _MOST_VALUES:
        columns = map(_parse, zip(*lines, strict=True))
        return _Step(
            Part("values", len(lines[0])),
            ones,
            list(map(list, zip(*columns, strict=True))),
        )
    parsed = _parse_rows(lines)
    return _Step(Part("list"), ones, [[row] for row in parsed])


def _is_end(left: Sequence[Lines]) -> bool:
    """Whether the last line is left, the same everywhere, and no number but 0."""
    if set(map(len, left)) != {1} or any(lines != left[0] for lines in left):
        return False
    end = left[0][0]
    return list(end) == ["0"] or not any(map(_NUMBER.fullmatch, end))


def _blocks(left: Sequence[Lines], heights: Sequence[int]) -> Iterator[_Step]:
    """Yield the block of so many lines, if its lines are alike."""
    if not _has_lines(left, heights):
        return
    blocks = list(map(_take, left, heights))
    rows = list(chain.from_iterable(blocks))
    widths = set(map(len, rows))
    if widths == {1}:
        column = _parse(list(chain.from_iterable(rows)))
        yield _Step(Part("column"), list(heights), _cut(column, heights))
        return
    if len(widths) > 1 and all(row[0] == str(len(row) - 1) for row in rows):
        parsed = _parse_rows([row[1:] for row in rows])
        yield _Step(Part("counted rows"), list(heights), _cut(parsed, heights))
        return
    widths_by_input = [set(map(len, block)) for block in blocks]
    if max(map(len, widths_by_input)) == 1:
        yield _Step(Part("rows"), list(heights), _cut(_parse_rows(rows), heights))


def _paired(left: Sequence[Lines], heights: Sequence[int]) -> Iterator[_Step]:
    """Yield the block of so many rows that have their lengths on lines of their own."""
    doubled = [2 * height for height in heights]
    if not _has_lines(left, doubled):
        return
    rows = []
    for lines, height in zip(left, doubled, strict=True):
        for place in range(0, height, 2):
            if list(lines[place]) != [str(len(lines[place + 1]))]:
                return
            rows.append(lines[place + 1])
    yield _Step(Part("paired rows"), doubled, _cut(_parse_rows(rows), heights))


def _has_lines(left: Sequence[Lines], heights: Sequence[int]) -> bool:
    if min(heights) < 0 or max(heights) < 1:
        return False
    return all(map(int.__ge__, map(len, left), heights))


def _cut(items: Sequence[Any], sizes: Sequence[int]) -> list[list[Any]]:
    """Cut items into lists of these sizes, each the only value of its input."""
    cut = []
    start = 0
    for size in sizes:
        cut.append([list(items[start : start + size])])
        start += size
    return cut


def _parse(tokens: Sequence[str]) -> list[Any]:
    """Return the tokens as numbers if all of them are, else as texts."""
    if all(map(_NUMBER.fullmatch, tokens)):
        return list(map(json.loads, tokens))
    return list(tokens)


def _parse_rows(rows: Sequence[Sequence[str]]) -> list[list[Any]]:
    """Return rows of numbers if all tokens are numbers, else rows of texts."""
    parse: Callable[[Sequence[str]], list[Any]] = list
    if all(map(_NUMBER.fullmatch, chain.from_iterable(rows))):
        parse = _parse
    return list(map(parse, rows))

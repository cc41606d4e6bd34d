"""Stretches a text whose layout is not known: its tables get more rows, its lists more tokens.

    "2 3 / 1 2 / 2 3 / 1 3"  ->  "2 1000 / 1 2 / 2 1 / ..."

Like the changes of `texts.py` this needs no layout, and validators decide what is an input. What a
number above a part counts is counted again.
"""

from collections.abc import Callable, Sequence
from itertools import chain, cycle, islice, pairwise, product
from random import Random
from typing import Literal, NamedTuple, get_args

from microcoder.data.inputs.finding import INTEGER
from microcoder.data.inputs.lines import Lines, shape_of
from microcoder.data.inputs.redrawing import count_again

Way = Literal["repeated", "between", "head", "places"]
"""How items are written.

`repeated`: the known ones in turn. `between`: numbers between the known ones. `head`: numbers from
1 to the largest of the first line, such as nodes, and no row twice. `places`: the numbers from 1
on, each once; rows are a chain, and words differ.
"""
WAYS: tuple[Way, ...] = get_args(Way)
Unit = Literal["rows", "tokens", "counted", "letters"]
"""What a part gets more of; `counted`: tokens behind the number on their line that counts them."""


class Part(NamedTuple):
    """Lines of one kind that stand together."""

    start: int
    end: int
    """The line after the last."""

    @property
    def height(self) -> int:
        """How many lines it has."""
        return self.end - self.start


def find_parts(lines: Lines) -> list[Part]:
    """Return the parts of an input in order; its first line, which says how large it is, is one.

    Lines of one kind are two parts where two numbers of the first line count them together.
    """
    parts = [Part(0, 1)]
    for number, tokens in enumerate(lines[1:], start=1):
        last = parts[-1]
        if last.start > 0 and shape_of(lines[last.start]) == shape_of(tokens):
            parts[-1] = Part(last.start, number + 1)
        else:
            parts.append(Part(number, number + 1))
    split = []
    for part in parts:
        split += _split_part(part, lines[0])
    return split


def _split_part(part: Part, head: Sequence[str]) -> list[Part]:
    counts = [int(token) for token in head if INTEGER.fullmatch(token)]
    for first, second in pairwise(counts):
        if min(first, second) > 0 and first + second == part.height:
            middle = part.start + first
            return [Part(part.start, middle), Part(middle, part.end)]
    return [part]


def units_of(lines: Lines, part: Part) -> list[Unit]:
    """Return what a part may have more of, the likeliest first; nothing of a single number."""
    if part.height > 1:
        return ["rows"]
    tokens = lines[part.start]
    if len(tokens) > 1 and tokens[0] == str(len(tokens) - 1):
        return ["counted", "rows"]
    if len(tokens) > 1 and part.start > 0:
        return ["tokens", "rows"]
    if len(tokens) == 1 and tokens[0] and not INTEGER.fullmatch(tokens[0]):
        return ["letters", "rows"]
    return []


def size_of(
    lines: Lines,
    part: Part,
    unit: Unit,
) -> int:
    """Return how many of a unit a part has."""
    if unit == "rows":
        return part.height
    if unit == "letters":
        return len(lines[part.start][0])
    return len(lines[part.start]) - int(unit == "counted")


def stretch(
    lines: Lines,
    part: Part,
    unit: Unit,
    length: int,
    way: Way,
    *,
    seed: int,
    is_counted_near: bool = False,
) -> Lines:
    """Return the lines with a part of this length.

    Args:
        lines: of an input; they are not changed.
        part: one of `find_parts`.
        unit: one of `units_of`.
        length: how many of the unit the part gets.
        way: how its new items are written.
        seed: decides what is drawn.
        is_counted_near: whether the nearest number that may be its length counts it; else one of
            the first line does.
    """
    source = Random(seed)
    above = [list(tokens) for tokens in lines[: part.start]]
    head = above[0] if above else lines[0]
    if unit == "rows":
        written = _write_rows(lines[part.start : part.end], length, head, way, source)
        length = len(written)
    elif unit == "counted":
        items = _writer(lines[part.start][1:], head, way, source)(length)
        return [*above, [str(length), *items], *lines[part.end :]]
    elif unit == "tokens":
        written = [_writer(lines[part.start], head, way, source)(length)]
    else:
        letters = _writer(list(lines[part.start][0]), head, way, source)(length)
        written = [["".join(letters)]]
    known = size_of(lines, part, unit)
    # A tree has one node more than edges.
    counting = above if is_counted_near else above[:1]
    if not count_again(counting, known, length):
        count_again(counting, known + 1, length + 1)
    return above + written + lines[part.end :]


def _write_rows(
    rows: Lines,
    length: int,
    head: Sequence[str],
    way: Way,
    source: Random,
) -> Lines:
    """Return so many rows, or fewer by `head`, where none joins equal numbers or comes twice."""
    tokens = list(chain.from_iterable(rows))
    width = len(rows[0])
    if way == "places" and width > 1 and all(map(INTEGER.fullmatch, tokens)):
        return [list(map(str, range(first, first + width))) for first in range(1, length + 1)]
    columns = []
    for column in zip(*rows, strict=True):
        columns.append(_writer(column, head, way, source)(length))
    written = list(map(list, zip(*columns, strict=True)))
    if way != "head" or width == 1:
        return written
    kept: dict[tuple[str, ...], list[str]] = {}
    for row in written:
        if row[0] != row[1]:
            kept.setdefault(tuple(row), row)
    return list(kept.values())


def _writer(
    known: Sequence[str],
    head: Sequence[str],
    way: Way,
    source: Random,
) -> Callable[[int], list[str]]:
    """Return what writes so many tokens in the place of some."""
    if way == "repeated":
        return lambda length: _repeat(known, length)
    are_numbers = all(map(INTEGER.fullmatch, known))
    if way == "places" and not are_numbers:
        return lambda length: _list_words(known, length)
    if not are_numbers:
        return lambda length: source.choices(known, k=length)
    if way == "places":
        return lambda length: _shuffle(length, source)
    numbers = list(map(int, known))
    low = min(numbers)
    high = max(numbers)
    bounds = [int(token) for token in head if INTEGER.fullmatch(token)]
    if way == "head" and bounds:
        low = 1
        high = max(1, *bounds)
    return lambda length: [str(source.randint(low, high)) for _ in range(length)]


def _repeat(known: Sequence[str], length: int) -> list[str]:
    return list(islice(cycle(known), length))


def _list_words(known: Sequence[str], length: int) -> list[str]:
    """Return different words of the letters of known ones, all of the same length."""
    letters = sorted(set("".join(known)))
    if len(letters) < 2:
        return list(islice(cycle(known), length))
    width = max(map(len, known))
    while len(letters) ** width < length:
        width += 1
    words = map("".join, product(letters, repeat=width))
    return list(islice(words, length))


def _shuffle(length: int, source: Random) -> list[str]:
    """Return the numbers from 1 to a length in another order."""
    numbers = list(map(str, range(1, length + 1)))
    source.shuffle(numbers)
    return numbers


def put_in_head(
    lines: Lines,
    column: int,
    number: int,
) -> Lines:
    """Return the lines with a number in a column of the first."""
    head = list(lines[0])
    head[column] = str(number)
    return [head, *lines[1:]]

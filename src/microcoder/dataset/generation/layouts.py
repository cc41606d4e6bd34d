"""How the text of an input is laid out, learnt from known inputs: which lines hold numbers, which are counted by them.

A layout turns a text into named values and back, so that inputs of programs that read stdin are drawn and mutated in
the same way as the arguments of functions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from microcoder.dataset.generation.constraints import Relation, Term
from microcoder.dataset.generation.inputs import Values

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_REAL = re.compile(r"-?\d{1,15}\.\d{1,12}")
_MOST_FIELDS = 6
_MOST_LINES = 5000

Lines = list[list[str]]
"""The tokens of each line."""


@dataclass(frozen=True, slots=True)
class InputPart:
    """A piece of an input."""

    kind: Literal["fields", "array", "rows", "column"]
    """`fields`: a line of single values; `array`: a line of many; `rows`: lines of as many values each; `column`: lines
    of one value each."""
    names: tuple[str, ...]
    """Of the values: one per field, otherwise one."""
    count: str = ""
    """Name of the number that says how many there are; empty where the line's end, or the input's, says it."""
    width: int = 0
    """`rows`: values of a line."""


@dataclass(frozen=True, slots=True)
class InputLayout:
    """The parts of an input, in order."""

    parts: tuple[InputPart, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all values."""
        return tuple(name for part in self.parts for name in part.names)

    @property
    def slots(self) -> tuple[str, ...]:
        """Places that a statement gives names to, in order: fields, the items of arrays, the columns of rows."""
        found: list[str] = []
        for part in self.parts:
            name = part.names[0]
            if part.kind == "fields":
                found += part.names
            elif part.kind == "rows":
                found += [f"{name}[][{number}]" for number in range(part.width)]
            else:
                found.append(f"{name}[]")
        return tuple(found)

    def counts(self) -> Iterator[Relation]:
        """Yield which lengths are equal to which numbers."""
        for part in self.parts:
            if part.count:
                yield Relation(Term(f"{part.names[0]}#", 0.0), "==", Term(part.count, 0.0))

    def read(self, text: str) -> Values | None:
        """Return the values of an input; None where it is laid out otherwise."""
        lines = split_lines(text)
        values: dict[str, Any] = {}
        for part in self.parts:
            taken = _take(part, lines, values)
            if taken is None:
                return None
            lines = lines[taken:]
        return tuple(values[name] for name in self.names) if not lines else None

    def write(self, values: Values) -> str:
        """Return the text of values."""
        known = dict(zip(self.names, values, strict=True))
        lines: list[str] = []
        for part in self.parts:
            if part.kind == "fields":
                lines.append(" ".join(str(known[name]) for name in part.names))
            elif part.kind == "array":
                lines.append(" ".join(map(str, known[part.names[0]])))
            elif part.kind == "column":
                lines += [str(item) for item in known[part.names[0]]]
            else:
                lines += [" ".join(map(str, row)) for row in known[part.names[0]]]
        return "\n".join(lines) + "\n"


def split_lines(text: str) -> Lines:
    """Return the tokens of each line, empty lines at the end left out."""
    return [line.split() for line in text.rstrip().split("\n")]


def find_layout(texts: Sequence[str]) -> InputLayout | None:
    """Return the layout that all inputs have; None where none of those that are known fits.

    Args:
        texts: known inputs; with one alone a layout may fit by chance.
    """
    samples = [split_lines(text) for text in texts]
    if not samples or any(len(lines) > _MOST_LINES for lines in samples):
        return None
    parts = _find_parts(samples, {}, 0)
    return InputLayout(tuple(parts)) if parts else None


def _find_parts(samples: Sequence[Lines], numbers: Mapping[str, Sequence[int]], depth: int) -> list[InputPart] | None:
    """Return the parts that the rest of every sample is made of."""
    if all(not lines for lines in samples):
        return []
    if depth > 12 or any(not lines or not lines[0] for lines in samples):
        return None
    for part, sizes in _first_parts(samples, numbers, depth):
        more = dict(numbers)
        if part.kind == "fields":
            for place, name in enumerate(part.names):
                tokens = [lines[0][place] for lines in samples]
                if all(_INTEGER.fullmatch(token) for token in tokens):
                    more[name] = [int(token) for token in tokens]
        rest = [lines[size:] for lines, size in zip(samples, sizes, strict=True)]
        found = _find_parts(rest, more, depth + 1)
        if found is not None:
            return [part, *found]
    return None


def _first_parts(
    samples: Sequence[Lines], numbers: Mapping[str, Sequence[int]], depth: int
) -> Iterator[tuple[InputPart, list[int]]]:
    """Yield what the next lines may be, and how many lines of each sample that takes, likeliest first."""
    name = "abcdefghijklmnop"[depth] + "_"
    widths = [len(lines[0]) for lines in samples]
    for count, sizes in reversed(list(numbers.items())):
        if sum(sizes) > len(samples) and all(0 < size <= len(rest) for size, rest in zip(sizes, samples, strict=True)):
            blocks = [rest[:size] for size, rest in zip(sizes, samples, strict=True)]
            if (part := _block(name, count, blocks)) is not None:
                yield part, list(sizes)
    for count, sizes in reversed(list(numbers.items())):
        if list(sizes) == widths and max(widths) > 1:
            yield InputPart("array", (name,), count), [1] * len(samples)
    if len(set(widths)) == 1 and widths[0] <= _MOST_FIELDS and _are_alike([lines[0] for lines in samples]):
        yield InputPart("fields", tuple(f"{name}{place}" for place in range(widths[0]))), [1] * len(samples)
    if all(len(lines) == 1 for lines in samples) and len({_type(t) for lines in samples for t in lines[0]}) == 1:
        yield InputPart("array", (name,)), [1] * len(samples)
    if (part := _block(name, "", samples)) is not None:
        yield part, [len(lines) for lines in samples]


def _block(name: str, count: str, blocks: Sequence[Lines]) -> InputPart | None:
    rows = [row for block in blocks for row in block]
    widths = {len(row) for row in rows}
    if len(widths) != 1 or not _are_alike(rows):
        return None
    width = widths.pop()
    if width == 0 or width > 200:
        return None
    return InputPart("column", (name,), count) if width == 1 else InputPart("rows", (name,), count, width)


def _are_alike(rows: Sequence[Sequence[str]]) -> bool:
    """Whether the tokens of each column are of one type."""
    return all(len({_type(token) for token in column} - {"int"}) <= 1 for column in zip(*rows, strict=True))


def _type(token: str) -> str:
    return "int" if _INTEGER.fullmatch(token) else "real" if _REAL.fullmatch(token) else "text"


def _take(part: InputPart, lines: Lines, values: dict[str, Any]) -> int | None:
    """Read a part into `values`; return how many lines it took, None where they are something else."""
    if not lines:
        return None
    if part.kind == "fields":
        if len(lines[0]) != len(part.names):
            return None
        values |= {name: _read(token) for name, token in zip(part.names, lines[0], strict=True)}
        return 1
    (name,) = part.names
    count = values.get(part.count) if part.count else None
    if part.kind == "array":
        values[name] = [_read(token) for token in lines[0]]
        return 1 if count in (None, len(lines[0])) else None
    size = len(lines) if count is None else count
    if not isinstance(size, int) or not 0 < size <= len(lines):
        return None
    rows = [[_read(token) for token in row] for row in lines[:size]]
    if any(len(row) != max(part.width, 1) for row in rows):
        return None
    values[name] = [row[0] for row in rows] if part.kind == "column" else rows
    return size


def _read(token: str) -> Any:
    if _INTEGER.fullmatch(token):
        return int(token)
    return float(token) if _REAL.fullmatch(token) else token

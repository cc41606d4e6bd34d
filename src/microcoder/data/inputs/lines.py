"""An input as the tokens of its lines, whatever its layout."""

from collections.abc import Sequence
from typing import NamedTuple

from microcoder.data.inputs.finding import INTEGER

Lines = list[list[str]]
"""The tokens of each line."""


class Place(NamedTuple):
    """A token of an input."""

    line: int
    column: int


def split_lines(text: str) -> Lines:
    """Return the tokens of each line; two spaces, and empty lines, make empty tokens."""
    return [line.split(" ") for line in text.rstrip("\n").split("\n")]


def join_lines(lines: Lines) -> str:
    """Return the text that has these tokens."""
    return "\n".join(map(" ".join, lines)) + "\n"


def places_of(lines: Lines, *, are_numbers: bool) -> list[Place]:
    """Return the places of all numbers, or of all words."""
    places = []
    for line, tokens in enumerate(lines):
        for column, token in enumerate(tokens):
            # Two spaces, and empty lines, make empty tokens.
            if token and bool(INTEGER.fullmatch(token)) == are_numbers:
                places.append(Place(line, column))
    return places


def get(lines: Lines, place: Place) -> str:
    """Return the token at a place."""
    return lines[place.line][place.column]


def put(
    lines: Lines,
    place: Place,
    token: str,
) -> None:
    """Write a token at a place."""
    lines[place.line][place.column] = token


def kind_of(tokens: Sequence[str]) -> list[bool]:
    """Return which tokens of a line are numbers; empty if none is."""
    are_numbers = [bool(INTEGER.fullmatch(token)) for token in tokens]
    return are_numbers if any(are_numbers) else []


def shape_of(tokens: Sequence[str]) -> tuple[int, list[bool]]:
    """Return what the rows of a table share: how many tokens they have, and which are numbers."""
    return len(tokens), kind_of(tokens)


def lines_like(lines: Lines, line: int) -> list[int]:
    """Return the other lines of the same kind as one."""
    kind = kind_of(lines[line])
    alike = []
    for number, tokens in enumerate(lines):
        if number != line and kind_of(tokens) == kind:
            alike.append(number)
    return alike

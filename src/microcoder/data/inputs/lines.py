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


def lines_like(lines: Lines, line: int) -> list[int]:
    """Return the other lines of the same kind as one."""
    kind = kind_of(lines[line])
    alike = []
    for number, tokens in enumerate(lines):
        if number != line and kind_of(tokens) == kind:
            alike.append(number)
    return alike

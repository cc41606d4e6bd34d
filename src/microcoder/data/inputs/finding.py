"""Infers the items that a problem's inputs consist of, line by line, from tokens of known
inputs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

INTEGER = re.compile(r"[+-]?(?:0|[1-9]\d{0,199})")
"""A token that is a whole number. Longer numbers are words: Python refuses to read them."""
DECIMAL = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")
"""A token that is a number with decimals."""
_MOST_ON_A_LINE = 8
"""Most tokens of a line that are values of their own; a longer line is a list."""

ItemForm = Literal["value", "count", "list", "column", "rows"]
"""How a part of an input is written.

`value`: one token. `count`: one token, the number of items in another part. `list`: the tokens of a
line. `column`: one token on each of several lines. `rows`: a list on each of several lines.
"""
Tokens = list[str]
"""The tokens of one line."""


@dataclass(frozen=True, slots=True)
class Item:
    """A part of an input."""

    form: ItemForm
    """How it is written."""
    counted_item: int = -1
    """`count`: index of the item that it counts."""
    has_own_lengths: bool = False
    """`rows`: whether each line begins with the number of tokens that follow."""
    line_width: int = 1
    """`value`, `count`: number of tokens on the line, at the first of them; 1 at the others."""
    height_item: int = -1
    """`column`, `rows`: index of the `value` or `count` that gives the number of lines; -1 if there
    is none."""
    num_lines_less: int = 0
    """How many lines fewer there are than item `height_item` says: a tree has one edge less than
    nodes."""


class _Scalar(NamedTuple):
    """A whole number that is alone on its place, so that it may be a count."""

    item: int
    """Index of its item."""
    numbers: list[int]
    """The number in each input."""


class _Height(NamedTuple):
    """The number that gives how many lines are left in each input."""

    item: int
    num_lines_less: int


def find_items(
    inputs: Sequence[Sequence[Tokens]],
    *,
    merges: bool,
) -> list[Item] | None:
    """Infer the common layout of some inputs, line by line; None if they have none.

    Args:
        inputs: lines of each input.
        merges: take a line of several alike tokens for a list, though it has the same length
            everywhere.
    """
    finder = _ItemFinder(inputs, merges)
    for line_number in range(max(map(len, inputs))):
        nums_left = [len(lines) - line_number for lines in inputs]
        if finder.take_rest(line_number, nums_left):
            return finder.items
        # Inputs of several heights, of which no number tells, have no common layout.
        if min(nums_left) == 0:
            return None
        finder.take_line([lines[line_number] for lines in inputs])
    return finder.items


class _ItemFinder:
    """Collects the items of a layout while the lines of all inputs are looked at together."""

    def __init__(
        self,
        inputs: Sequence[Sequence[Tokens]],
        merges: bool,
    ) -> None:
        self.items: list[Item] = []
        self._inputs = inputs
        self._merges = merges
        self._scalars: list[_Scalar] = []

    def take_rest(
        self,
        line_number: int,
        nums_left: list[int],
    ) -> bool:
        """Add one item for all lines from this one on; return False if no number counts them."""
        rest: list[Tokens] = []
        for lines in self._inputs:
            rest += lines[line_number:]
        counter = self._find_count(nums_left)
        # A single line everywhere is rather a line of its own than a block of height 1.
        is_block = max(nums_left) > 1 or min(nums_left) == 0
        if counter is not None and is_block:
            self._add_block(rest, _Height(counter, 0))
            return True
        # Such a number need not be exact, so it stays a value that must fit.
        height = self._find_height(nums_left)
        if height is None:
            return False
        is_table = len({len(tokens) for tokens in rest}) == 1
        if is_table or _have_own_lengths(rest):
            self._add_block(rest, height)
            return True
        return False

    def take_line(self, lines: Sequence[Tokens]) -> None:
        """Add the items of a line that every input has."""
        widths = [len(tokens) for tokens in lines]
        counter = self._find_count(widths)
        # A list of one token everywhere is rather a value.
        is_long = len(set(widths)) > 1 or widths[0] > 1
        if counter is not None and (is_long or self._merges):
            self._mark_as_count(counter)
            self.items.append(Item("list"))
        elif self._is_list(lines, widths):
            self.items.append(Item("list"))
        else:
            self._add_values(lines, widths[0])

    def _is_list(
        self,
        lines: Sequence[Tokens],
        widths: list[int],
    ) -> bool:
        """Whether a line is a list although no number says how long it is."""
        if len(set(widths)) > 1 or widths[0] > _MOST_ON_A_LINE:
            return True
        if widths[0] <= 1:
            return False
        if self._merges and _are_alike(lines):
            return True
        # As long as another list.
        return widths in self._list_counts()

    def _list_counts(self) -> list[list[int]]:
        """Return the numbers, by input, of each count so far."""
        counts = []
        for scalar in self._scalars:
            if self.items[scalar.item].form == "count":
                counts.append(scalar.numbers)
        return counts

    def _add_values(
        self,
        lines: Sequence[Tokens],
        width: int,
    ) -> None:
        """Add a value for each token of a line."""
        for place in range(width):
            tokens = [line[place] for line in lines]
            if all(map(INTEGER.fullmatch, tokens)):
                numbers = list(map(int, tokens))
                scalar = _Scalar(len(self.items), numbers)
                self._scalars.append(scalar)
            line_width = width if place == 0 else 1
            self.items.append(Item("value", line_width=line_width))

    def _find_height(self, nums_left: list[int]) -> _Height | None:
        """Return the last varying number that is the number of lines left, or one more than
        that."""
        for num_less in (0, 1):
            heights = [num + num_less for num in nums_left]
            for scalar in reversed(self._scalars):
                # A number that is the same in all inputs may fit by chance.
                if len(set(scalar.numbers)) > 1 and scalar.numbers == heights:
                    return _Height(scalar.item, num_less)
        return None

    def _find_count(self, sizes: list[int]) -> int | None:
        """Return the latest number that is this size in every input and not a count yet."""
        # The number that stands closest is the likeliest.
        for scalar in reversed(self._scalars):
            if self.items[scalar.item].form == "value" and scalar.numbers == sizes:
                return scalar.item
        return None

    def _add_block(
        self,
        rows: Sequence[Tokens],
        height: _Height,
    ) -> None:
        """Add an item for a block of lines. A number that is the block's exact height becomes
        its count."""
        height_item = height.item
        is_exact = height.num_lines_less == 0
        if is_exact and self.items[height.item].form == "value":
            self._mark_as_count(height.item)
            height_item = -1
        # A token a line.
        is_column = all(len(row) == 1 for row in rows)
        form: ItemForm = "column" if is_column else "rows"
        block = Item(
            form,
            has_own_lengths=not is_column and _have_own_lengths(rows),
            height_item=height_item,
            num_lines_less=height.num_lines_less,
        )
        self.items.append(block)

    def _mark_as_count(self, item: int) -> None:
        """Make a value the count of the item that is added next."""
        counted = len(self.items)
        self.items[item] = replace(
            self.items[item],
            form="count",
            counted_item=counted,
        )


def _are_alike(lines: Sequence[Tokens]) -> bool:
    """Whether all tokens are numbers, or none is."""
    are_numbers = set()
    for tokens in lines:
        for token in tokens:
            is_number = INTEGER.fullmatch(token) or DECIMAL.fullmatch(token)
            are_numbers.add(bool(is_number))
    return len(are_numbers) == 1


def _have_own_lengths(rows: Sequence[Tokens]) -> bool:
    """Whether each row begins with the number of its values, and rows differ in length."""
    if len({len(row) for row in rows}) <= 1:
        return False
    return all(row[0] == str(len(row) - 1) for row in rows)

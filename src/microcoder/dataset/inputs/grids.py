"""Pictures of letters: which letters stand once, on the border, or in the first and the last cell."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

_ENOUGH, _ENOUGH_CELLS, _ENOUGH_ENDS = 3, 40, 6
"""Pictures, cells of borders, and pictures for their ends, that tell a rule from chance."""
_SHARE = 0.95


@dataclass(frozen=True, slots=True)
class Grid:
    """What holds of every picture seen."""

    marks: str = ""
    """Letters that stand once, such as a start and a goal."""
    border: str = ""
    """The only letters on the border, where more stand inside; empty: any."""
    ends: str = ""
    """The only letters of the first and the last cell; empty: any."""

    def find_fault(self, rows: Sequence[str]) -> str:
        """Return what of it a picture does not meet; empty where it meets all."""
        counts = Counter("".join(rows))
        if any(counts[mark] != 1 for mark in self.marks):
            return "a mark that does not stand once"
        if self.border and not set(_border(rows)) <= set(self.border):
            return "another letter on the border"
        return "another letter at an end" if self.ends and not set(_ends(rows)) <= set(self.ends) else ""

    def arrange(self, rows: Sequence[str], source: random.Random) -> list[str]:
        """Return a picture like these rows that meets it, if there is room: often with one letter in most cells."""
        cells = [list(row) for row in rows]
        width = min(map(len, cells), default=0)
        letters = sorted({letter for row in cells for letter in row} - set(self.marks)) or [*self.border, *self.ends]
        if not letters or not width:
            return list(rows)
        common = source.choice(letters)
        is_sparse = source.random() < 0.6
        for row in cells:
            for at, letter in enumerate(row):
                if letter in self.marks or (is_sparse and source.random() < _SHARE):
                    row[at] = common
        inset = 1 if self.border else 0
        if self.border:
            for at, row in enumerate(cells):
                for place in range(len(row)) if at in (0, len(cells) - 1) else (0, len(row) - 1):
                    row[place] = source.choice(self.border) if row[place] not in self.border else row[place]
        for row, place in ((0, 0), (-1, -1)):
            if self.ends and cells[row][place] not in self.ends:
                cells[row][place] = source.choice(self.ends)
        free = [
            (row, place)
            for row in range(inset, len(cells) - inset)
            for place in range(inset, width - inset)
            if not self.ends or (row, place) not in ((0, 0), (len(cells) - 1, width - 1))
        ]
        if len(free) >= len(self.marks):
            for mark, (row, place) in zip(self.marks, source.sample(free, len(self.marks)), strict=True):
                cells[row][place] = mark
        return ["".join(row) for row in cells]


def infer_grid(values: Sequence[Sequence[str]]) -> Grid | None:
    """Return what holds of all pictures, where there are enough of them to tell; None where nothing does."""
    seen = [rows for rows in values if rows and rows[0]]
    if len(seen) < _ENOUGH:
        return None
    counts = [Counter("".join(rows)) for rows in seen]
    letters = set().union(*counts)
    marks = sorted(one for one in letters if all(count[one] == 1 for count in counts))
    border, ends = set().union(*map(_border, seen)), set().union(*map(_ends, seen))
    deep = [rows for rows in seen if len(rows) > 2 and len(rows[0]) > 2]
    is_framed = len(deep) >= _ENOUGH and sum(len(_border(rows)) for rows in deep) >= _ENOUGH_CELLS
    found = Grid(
        marks="".join(marks),
        border="".join(sorted(border)) if is_framed and border < letters - set(marks) else "",
        ends="".join(sorted(ends)) if len(seen) >= _ENOUGH_ENDS and ends < border - set(marks) else "",
    )
    return found if found != Grid() else None


def _border(rows: Sequence[str]) -> str:
    return rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows if row)


def _ends(rows: Sequence[str]) -> str:
    return rows[0][0] + rows[-1][-1]

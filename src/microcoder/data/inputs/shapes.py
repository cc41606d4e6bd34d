"""What known values look like: types, lengths, alphabets, and facts that hold for all of them.

Pictures of letters: which letters stand once, on the border, or in the first and the last cell.

Trees: the edges of one, and a binary tree's nodes level by level.
"""

from __future__ import annotations

import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

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


def draw_edges(first: int, length: int, source: random.Random, *, is_path: bool) -> list[tuple[int, int]]:
    """Return the edges of a tree, its nodes numbered from `first`: grown at random, long, a path, or a star.

    Args:
        first: the least number of a node.
        length: how many edges.
        source: of all random choices.
        is_path: as a level of one value has one branch, so a tree of few ties is long.
    """
    order = source.sample(range(first, first + length + 1), length + 1)
    way = "path" if is_path else source.choice(("grown", "grown", "long", "path", "star"))
    rows = []
    for number in range(1, len(order)):
        least = {"path": number - 1, "long": max(0, number - 4)}.get(way, 0)
        parent = 0 if way == "star" else source.randint(least, number - 1)
        rows.append((order[parent], order[number]))
    return rows


def arrange_nodes(items: list[Any], facts: AbstractSet[str], source: random.Random) -> list[Any]:
    """Return values as a binary tree level by level: grown at random, a path, or full; None for no node.

    Args:
        items: the values of the nodes.
        facts: `distinct`: equal values are left out; `search`: that too, and in order from left to right.
        source: of all random choices.
    """
    if {"search", "distinct"} & facts:
        items = list(dict.fromkeys(items))
    children: list[list[int | None]] = [[None, None] for _ in items]
    way = source.choice(("grown", "grown", "path", "full"))
    for node in range(1, len(items)):
        parent, side = (node - 1) // 2, (node - 1) % 2
        while way != "full":
            parent = node - 1 if way == "path" else source.randrange(node)
            side = source.randrange(2)
            if children[parent][side] is None:
                break
        children[parent][side] = node
    if "search" in facts:
        items = _in_order(sorted(items), children)
    order: list[int | None] = [0] if items else []
    for node in order:
        order += children[node] if node is not None else []
    while order and order[-1] is None:
        order.pop()
    return [None if node is None else items[node] for node in order]


def _in_order(values: list[Any], children: list[list[int | None]]) -> list[Any]:
    found: list[Any] = [None] * len(children)
    left, stack, node = iter(values), [], 0 if children else None
    while stack or node is not None:
        while node is not None:
            stack.append(node)
            node = children[node][0]
        node = stack.pop()
        found[node] = next(left)
        node = children[node][1]
    return found


Kind = Literal["int", "float", "bool", "text", "list", "nodes", "other"]
_MOST_COLUMNS = 6


@dataclass(frozen=True, slots=True)
class Shape:
    """What the values at one place have in common."""

    kind: Kind
    low: float = 0.0
    """Numbers: the least seen; lists and texts: the least length."""
    high: float = 0.0
    alphabet: str = ""
    """Texts: the characters seen, sorted."""
    first: str = ""
    """Texts: the letters that each begins with, where they are of another kind than the others, such as a sign."""
    words: tuple[str, ...] = ()
    """Texts: the only ones there may be, where the statement lists them."""
    item: Shape | None = None
    """Lists: of their items; None where all were empty."""
    columns: tuple[Shape, ...] = ()
    """Lists of a fixed, small length: one shape an item, as in `[from, to, weight]`; texts of one: a letter each."""
    facts: frozenset[str] = field(default_factory=frozenset)
    """Names of `FACTS` that hold for every value seen."""
    grid: Grid | None = None
    """Lists of texts of one length: what holds of them as a picture."""


def infer_shape(
    values: Sequence[Any], *, statement: str | None = "", is_row: bool = False, has_records: bool = False
) -> Shape:
    """Return the shape of values seen at one place.

    Args:
        values: at least one.
        statement: whose words decide which facts are believed; None: all that hold are.
        is_row: the values are items of a list, so that a small fixed length makes columns of them.
        has_records: so it does in these, or in the items of these, whatever the statement says.
    """
    kinds: set[Kind] = {_kind_of(value) for value in values}
    if kinds == {"int", "float"}:
        kinds = {"float"}
    if len(kinds) != 1:
        return Shape("other")
    kind: Kind = kinds.pop()
    if kind in ("int", "float"):
        return Shape(kind, low=min(values), high=max(values))
    if kind == "text":
        return _infer_text(values, statement)
    if kind != "list":
        return Shape(kind)
    if any(None in value for value in values):
        return _infer_nodes(values, statement)
    lengths = {len(value) for value in values}
    bounds = {"low": float(min(lengths)), "high": float(max(lengths))}
    items = [item for value in values for item in value]
    if not items:
        return Shape("list", **bounds)
    is_fixed = len(lengths) == 1 and 2 <= len(values[0]) <= _MOST_COLUMNS and len(values) > 1
    if is_row and is_fixed and (has_records or _names_columns(statement or "", len(values[0]))):
        columns = tuple(infer_shape(list(column), statement=statement) for column in zip(*values, strict=True))
        return Shape("list", columns=columns, **bounds)
    item = infer_shape(items, statement=statement, is_row=True, has_records=has_records)
    facts = frozenset(name for name, (holds, words) in FACTS.items() if _believed(values, holds, words, statement))
    grid = infer_grid(values) if item.kind == "text" and "rectangular" in facts else None
    return Shape("list", item=item, facts=facts, grid=grid, **bounds)


def _infer_nodes(values: Sequence[list[Any]], statement: str | None) -> Shape:
    """Return the shape of binary trees, level by level, with None for a child that is missing."""
    nodes = [[item for item in value if item is not None] for value in values]
    item = infer_shape([one for value in nodes for one in value], statement=statement)
    facts = frozenset(name for name, (test, words) in NODE_FACTS.items() if _believed(values, test, words, statement))
    is_tree = item.kind == "int" and all(map(is_level_order, values))
    sizes = [len(value) for value in nodes]
    return Shape("nodes" if is_tree else "other", min(sizes), max(sizes), item=item, facts=facts)


def is_level_order(value: list[Any]) -> bool:
    """Whether a list is a binary tree, level by level, written without the missing children at its end."""
    room = 1
    for item in value:
        if room == 0:
            return False
        room += -1 if item is None else 1
    return not value or (value[0] is not None and value[-1] is not None)


def _is_search_tree(value: list[Any]) -> bool:
    bounds = [(-math.inf, math.inf)]
    for place, item in enumerate(value):
        if item is not None:
            low, high = bounds[place]
            if not low < item < high:
                return False
            bounds += [(low, item), (item, high)]
    return True


def _kind_of(value: Any) -> Kind:
    if isinstance(value, bool):
        return "bool"
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "other")


_KINDS: tuple[tuple[type, Kind], ...] = ((int, "int"), (float, "float"), (str, "text"), (list, "list"))


def _names_columns(statement: str, width: int) -> bool:
    """Whether a statement speaks of rows of so many values: `edges[i] = [a, b]`, `edges[i].length == 2`."""
    if re.search(rf"\[\w\]\.length\s*==\s*{width}\b", statement):
        return True
    return any(found[1].count(",") == width - 1 for found in re.finditer(r"\]\s*=\s*[\[(]([^\])\n]+)[\])]", statement))


_CLASSES = (
    (r"lower-?\s?case (?:English |Latin )?letter|letters? a-z|小写", "abcdefghijklmnopqrstuvwxyz"),
    (r"upper-?\s?case (?:English |Latin )?letter|letters? A-Z|大写", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    (r"\bdigits?\b|数字", "0123456789"),
)
_SPAN = re.compile(r"[\"'](\w)[\"'](?:\s*<=?[^<\n]{1,60}<=?\s*|\s*(?:to|through|and|-)\s*)[\"'](\w)[\"']")
_ONLY = re.compile(r"\b(?:consists?|contains?|only|either|one of)\b")
_QUOTED = re.compile(r"[\"'`]([^\"'`\n]{1,20})[\"'`]")
_MOST_POSITIONS, _ENOUGH_MARKED = 8, 6


def _infer_text(values: Sequence[str], statement: str | None) -> Shape:
    statement = statement or ""
    bounds = {"low": float(min(map(len, values))), "high": float(max(map(len, values)))}
    quoted = set(_QUOTED.findall(statement))
    if len(values) >= 3 and bounds["high"] > 1 and set(values) <= quoted:
        return Shape("text", words=tuple(sorted(quoted)), **bounds)
    classes = _letter_classes(statement)
    alphabet = _widen({letter for value in values for letter in value}, classes)
    is_fixed = bounds["low"] == bounds["high"] <= _MOST_POSITIONS and re.search(r"length\s*==\s*\d", statement)
    if is_fixed and bounds["high"] > 1:
        # Such as "a1" on a chessboard: each position has letters of its own.
        positions = (_widen(set(letters), classes) for letters in zip(*values, strict=True))
        columns = tuple(Shape("text", 1.0, 1.0, alphabet=letters) for letters in positions)
        return Shape("text", alphabet=alphabet, columns=columns, **bounds)
    first, rest = {value[:1] for value in values}, {letter for value in values for letter in value[1:]}
    is_marked = len(values) >= _ENOUGH_MARKED and rest and not first & rest and not any(one.isalnum() for one in first)
    if is_marked and "" not in first:
        return Shape("text", alphabet=_widen(rest, classes), first="".join(sorted(first)), **bounds)
    return Shape("text", alphabet=alphabet, **bounds)


def _letter_classes(statement: str) -> list[set[str]]:
    """Return sets of letters that a statement allows: `'a' <= s[i] <= 'h'`, `consists of '(' and ')'`, `digits`."""
    spans = ((ord(first), ord(last)) for first, last in _SPAN.findall(statement))
    found = ["".join(map(chr, range(first, last + 1))) for first, last in spans if first < last < first + 60]
    if not found:
        told = (line for line in statement.splitlines() if _ONLY.search(line))
        found += ["".join(one for one in _QUOTED.findall(line) if len(one) == 1) for line in told]
        found += [letters for words, letters in _CLASSES if re.search(words, statement, re.IGNORECASE)]
    return [set(letters) for letters in found]


def _widen(letters: set[str], classes: Sequence[set[str]]) -> str:
    """Return letters that were seen with all others of their classes; as they are where some are of none."""
    allowed = [one for one in classes if one & letters]
    together = set().union(*allowed)
    return "".join(sorted(together if letters <= together else letters))


def _is_sorted(value: list[Any]) -> bool:
    return all(one <= other for one, other in itertools.pairwise(value))


def _is_distinct(value: list[Any]) -> bool:
    return len({repr(item) for item in value}) == len(value)


def _is_square(value: list[Any]) -> bool:
    return all(len(item) == len(value) for item in value)


def _is_symmetric(value: list[Any]) -> bool:
    return _is_square(value) and [list(column) for column in zip(*value, strict=True)] == value


def is_tree(value: list[Any]) -> bool:
    """Whether rows are the edges of a tree, from 0 or from 1."""
    parent = {node: node for row in value for node in row[:2]}

    def find(node: Any) -> Any:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    for row in value:
        one, other = find(row[0]), find(row[1])
        if one == other:
            return False
        parent[one] = other
    nodes = set(parent)
    return not value or (
        len(nodes) == len(value) + 1 and nodes in (set(range(len(nodes))), set(range(1, len(nodes) + 1)))
    )


FACTS: MappingProxyType[str, tuple[Callable[[list[Any]], bool], str]] = MappingProxyType(
    {
        "rectangular": (lambda value: len({len(item) for item in value}) <= 1, ""),
        "square": (_is_square, r"n\s*[x*]\s*n\b|\bsquare\b|grid\[i\]\.length == grid\.length|n == \w+\[i\]\.length"),
        "symmetric": (_is_symmetric, ""),
        "permutation": (
            lambda value: sorted(value) in ([*range(len(value))], [*range(1, len(value) + 1)]),
            r"permutation",
        ),
        "distinct": (_is_distinct, r"\bdistinct\b|\bunique\b|\bdifferent\b|no two|no duplicate|permutation|repeated"),
        "sorted": (_is_sorted, r"\bsorted\b|increasing|ascending|non-?decreasing"),
        "decreasing": (lambda value: _is_sorted(value[::-1]), r"decreasing|descending|non-?increasing"),
        "tree": (
            is_tree,
            r"\btrees?\b|(?:unique|exactly one) (?:path|way)|- ?1\$? (?:[\w-]+ ){0,4}(?:roads?|edges?|connect)|träd",
        ),
        "no_loops": (
            lambda value: all(row[0] != row[1] for row in value),
            r"graph|edges?\b|road|self-?loop|connect|!=|≠|\\neq?\b",
        ),
        "no_double_edges": (
            lambda value: len({frozenset(map(repr, row[:2])) for row in value}) == len(value),
            r"graph|edges?\b|road|connect|distinct|unique",
        ),
        "no_own_place": (
            lambda value: all(item != place for place, item in enumerate(value, min(1, *value))),
            r"(?:\\neq?|≠|!=)\s*\$?i\b|\b(?:yourself|itself|themselves|himself|herself)\b",
        ),
    }
)
"""Facts of a list, and the words of a statement without which one is taken for chance."""


NODE_FACTS: MappingProxyType[str, tuple[Callable[[list[Any]], bool], str]] = MappingProxyType(
    {
        "search": (_is_search_tree, r"binary search tree|\bBST\b"),
        "distinct": (lambda value: _is_distinct([item for item in value if item is not None]), FACTS["distinct"][1]),
    }
)
"""Facts of a binary tree."""


def _is_prime(number: float) -> bool:
    if number < 2 or number != int(number):
        return False
    return all(number % divisor for divisor in range(2, min(int(number**0.5), 100_000) + 1))


NUMBER_FACTS: MappingProxyType[str, tuple[Callable[[float], bool], str]] = MappingProxyType(
    {
        "prime": (_is_prime, r"\bprimes?\b"),
        "even": (lambda number: number % 2 == 0, r"\beven\b"),
        "odd": (lambda number: number % 2 == 1, r"\bodd\b"),
        "power_of_two": (
            lambda number: number > 0 and int(number) & (int(number) - 1) == 0,
            r"\bpowers? of (?:two|2)\b",
        ),
    }
)
"""Facts of a number, and the words of a statement without which one is taken for chance."""


def holds(fact: str, value: list[Any], *, is_tree: bool = False) -> bool:
    """Whether a fact of `FACTS`, or of `NODE_FACTS`, holds for a list."""
    return _is_true((NODE_FACTS if is_tree else FACTS)[fact][0], value)


def _is_true(test: Callable[[list[Any]], bool], value: list[Any]) -> bool:
    try:
        return test(value)
    except (TypeError, IndexError, ValueError):
        return False


def _believed(
    values: Sequence[list[Any]], test: Callable[[list[Any]], bool], words: str, statement: str | None
) -> bool:
    if words and statement is not None and not re.search(words, statement, re.IGNORECASE):
        return False
    # Of short lists much is true by chance, and shapes of matrices are not: those are lists of lists.
    return max(map(len, values)) > 1 and all(_is_true(test, value) for value in values)

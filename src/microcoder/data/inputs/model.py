"""What an input may be: named values, their shapes, and relations between them that hold for all known inputs.

Learnt from known inputs and from what the statement says between values; an inference, so it is used strictly. What is
mutated stays inside the range of known values, and so within every bound that is a number, read or not.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from microcoder.data.clean.sections import split
from microcoder.data.inputs.constraints import Relation, Term, read_relations, without_group_rows
from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.shapes import Shape, infer_shape, is_tree

_INDEX = re.compile(r"[ijk]\d?")
_ENOUGH_ROWS, _ENOUGH_EDGES = 4, 5
"""Of tables, to tell a rule from chance."""


@dataclass(frozen=True, slots=True)
class InputModel:
    """What inputs of a problem look like."""

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    relations: tuple[Relation, ...]
    trees: tuple[tuple[str, str], ...] = ()
    """Two lists each that hold the ends of the edges of a tree."""
    unplaced: tuple[Relation, ...] = ()
    """Bounds of the statement between values of which one is not found in the inputs: what is made may break them."""

    @property
    def is_usable(self) -> bool:
        """Whether every value has a shape that can be changed and checked."""
        return bool(self.names) and all(shape.is_known for shape in self.shapes)

    def find_fault(self, values: Values) -> str:
        """Return what of the model an input does not meet; empty where it meets all."""
        if len(values) != len(self.names):
            return "another number of values"
        for name, shape, value in zip(self.names, self.shapes, values, strict=True):
            if fault := shape.find_fault(value):
                return f"{name}: {fault}"
        given = dict(zip(self.names, values, strict=True))
        if not all(is_tree(list(zip(given[one], given[other], strict=False))) for one, other in self.trees):
            return "no tree"
        numbers = collect_numbers(self.names, values)
        failing = next((one for one in self.relations if not meets(one, numbers)), None)
        return f"not {failing.left} {failing.operator} {failing.right}" if failing else ""


def learn(
    names: Sequence[str],
    known: Sequence[Values],
    statement: str = "",
    *,
    places: Mapping[str, str] = MappingProxyType({}),
    records: Collection[str] = (),
    nodes: Sequence[str] = (),
) -> InputModel:
    """Return what known inputs have in common, and what of the statement they do not contradict.

    Args:
        names: of the values, in order.
        known: at least one input, a value per name.
        statement: as it is asked.
        places: names of the statement and the places that they stand for, where those are not the names given.
        records: names of tables whose columns are something of their own each.
        nodes: names of linked lists and trees.
    """
    parts = split(statement)
    other = (f"{title}\n{text}" for title, text in parts.other)
    said = without_group_rows("\n".join([parts.statement, parts.input, parts.constraints, parts.note, *other]))
    shapes = tuple(
        infer_shape([values[place] for values in known], has_records=name in records)
        for place, name in enumerate(names)
    )
    numbers = [collect_numbers(names, values) for values in known]
    seen = set().union(*numbers)
    read = _without_aliases(read_relations(_with_node_names(said, nodes), names, places), names)
    placed = [one for one in read if {*one.left.places, *one.right.places} <= seen]
    stated = [one for one in placed if all(meets(one, of_one) for of_one in numbers)]
    # A bound that is a number is met by what stays inside the range of known values; letters that number are no values.
    unplaced = tuple(
        one
        for one in read
        if one not in placed and one.operator != "==" and _names(one) - seen and len(_names(one)) > 1
    )
    lows = {one.right.place for one in stated if one.operator != "=="}
    bounded = lows & {one.left.place for one in stated if one.operator != "=="}
    relations = dict.fromkeys([*stated, *_seen_relations(numbers, bounded), *_ordered_columns(numbers)])
    return InputModel(tuple(names), shapes, tuple(relations), tuple(_trees(names, shapes, known)), unplaced)


def _ordered_columns(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield that a column is never more than another one, such as the ends of intervals, where enough rows show it."""
    places = sorted({place for seen in numbers for place in seen if re.search(r"\[\]\[\d\]$", place)})
    for one, other in itertools.permutations(places, 2):
        if one[:-3] == other[:-3]:
            pairs = [pair for seen in numbers for pair in zip(seen.get(one, ()), seen.get(other, ()), strict=False)]
            if len(pairs) >= _ENOUGH_ROWS and all(a <= b for a, b in pairs) and any(a < b for a, b in pairs):
                yield Relation(Term(one, 0.0), "<=", Term(other, 0.0))


def _names(relation: Relation) -> set[str]:
    """Return the places of a relation, without letters that number others, such as `i` and `j1`."""
    return {one for one in (*relation.left.places, *relation.right.places) if not _INDEX.fullmatch(one)}


def _trees(names: Sequence[str], shapes: Sequence[Shape], known: Sequence[Values]) -> Iterator[tuple[str, str]]:
    lists = [
        place for place, shape in enumerate(shapes) if shape.kind == "list" and shape.item and shape.item.kind == "int"
    ]
    for one, other in itertools.pairwise(lists):
        edges = [list(zip(values[one], values[other], strict=False)) for values in known]
        is_parallel = all(len(values[one]) == len(values[other]) for values in known)
        if is_parallel and max(map(len, edges)) > _ENOUGH_EDGES and all(map(is_tree, edges)):
            yield names[one], names[other]


def _with_node_names(told: str, nodes: Sequence[str]) -> str:
    """Write what is said of nodes as it is said of lists: their number is a length, `Node.val` an item."""
    if not nodes:
        return told
    told = re.sub(r"\b[Nn]ode\.val\b", ", ".join(f"{name}[i]" for name in nodes), told)
    lengths = ", ".join(f"{name}.length" for name in nodes)
    return re.sub(
        r"number of (?:the )?nodes in [^\n\[]{1,60}\[\s*([^\],\n]+),\s*([^\]\n]+)\]",
        rf"\n\1 <= {lengths} <= \2\n",
        told,
    )


def _without_aliases(relations: Sequence[Relation], names: Sequence[str]) -> list[Relation]:
    """Write what a name such as `n` of `n == nums.length` stands for in its place, where no value has that name."""
    alias: dict[str, Term] = {}
    for one in relations:
        for name, other in ((one.left, one.right), (one.right, one.left)):
            if one.operator != "==" or not name.place or name.is_formula or other.is_formula:
                continue
            if _base(name.place) not in names and _base(other.place) in names:
                alias.setdefault(name.place, Term(other.place, other.number - name.number))

    def write(term: Term) -> Term:
        if term.is_formula:
            shown = {place: f"({{{known.place}}}{known.number:+g})" for place, known in alias.items()}
            return Term(re.sub(r"\{([^}]*)\}", lambda one: shown.get(one[1], one[0]), term.place), term.number)
        known = alias.get(term.place)
        return Term(known.place, known.number + term.number) if known else term

    written = [Relation(write(one.left), one.operator, write(one.right)) for one in relations]
    return [one for one in dict.fromkeys(written) if one.left != one.right]


def collect_numbers(names: Sequence[str], values: Values) -> dict[str, list[float]]:
    """Return the numbers at every place of an input."""
    numbers: dict[str, list[float]] = {}
    for name, value in zip(names, values, strict=True):
        for place, number in _numbers(name, value, depth=0):
            numbers.setdefault(place, []).append(number)
    return numbers


def _numbers(place: str, value: Any, *, depth: int) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool) or depth > 3:
        return
    if isinstance(value, int | float):
        yield place, value
    elif isinstance(value, str):
        yield f"{place}#", len(value)
    elif isinstance(value, list):
        yield f"{place}#", sum(item is not None for item in value)
        for number, item in enumerate(value):
            yield from _numbers(f"{place}[]", item, depth=depth + 1)
            if depth in (1, 2) and number < 6 and isinstance(item, int | float):
                yield f"{place}[{number}]", item


def _base(place: str) -> str:
    return re.split(r"[#\[]", place)[0]


def meets(relation: Relation, numbers: Mapping[str, Sequence[float]]) -> bool:
    """Whether a relation holds; one whose places are not there says nothing."""
    left, right = _side(relation.left, numbers), _side(relation.right, numbers)
    if not left or not right:
        return True
    pairs = zip(left, right, strict=True) if len(left) == len(right) > 1 else ((a, b) for a in left for b in right)
    if relation.operator == "==":
        return all(a == b for a, b in pairs)
    if len(left) != len(right) or len(left) == 1:
        worst = max(left), min(right)
        return worst[0] < worst[1] if relation.operator == "<" else worst[0] <= worst[1]
    return all(a < b if relation.operator == "<" else a <= b for a, b in pairs)


def _side(term: Term, numbers: Mapping[str, Sequence[float]]) -> list[float]:
    if not term.place or term.is_formula:
        # The rows of a table have one length, however many there are.
        single = {place: found[0] for place in term.places if (found := numbers.get(place)) and len({*found}) == 1}
        value = term.evaluate(single)
        return [] if value is None else [value]
    return [number + term.number for number in numbers.get(term.place, ())]


def _seen_relations(numbers: Sequence[Mapping[str, Sequence[float]]], bounded: set[str]) -> Iterator[Relation]:
    """Yield what nobody says and every known input shows: equal lengths, numbers that are indices.

    With one input, or with the same numbers in all, nothing is shown.
    """
    if len(numbers) < 2:
        yield from _counts(numbers)
        return
    single = [place for place in numbers[0] if all(len(seen.get(place, ())) == 1 for seen in numbers)]
    sizes = [place for place in single if place.endswith("#") or place.isidentifier()]
    for position, one in enumerate(sizes):
        for other in sizes[position + 1 :]:
            gaps = {seen[one][0] - seen[other][0] for seen in numbers}
            varies = len({seen[one][0] for seen in numbers}) > 1
            if not varies or len(gaps) > 1 or {one, other} <= bounded:
                continue
            gap = gaps.pop()
            # As many edges as a tree has is no chance; two lists that differ by one are.
            is_tree = abs(gap) == 1 and one.endswith("#") != other.endswith("#")
            if gap == 0 or is_tree:
                yield Relation(Term(one, 0.0), "==", Term(other, gap))
    for place in numbers[0]:
        yield from _widths(place, sizes, numbers)
        if place.endswith("#") or place in bounded or (place in single and place not in sizes):
            continue
        for size in sizes:
            if size == place or (size in bounded and not size.endswith("#")):
                continue
            for first, operator in ((0.0, "<"), (1.0, "<=")):
                end = 1 - first
                if all(place in o and first <= min(o[place]) and max(o[place]) <= o[size][0] - end for o in numbers):
                    yield Relation(Term("", first), "<=", Term(place, 0.0))
                    yield Relation(Term(place, 0.0), operator, Term(size, 0.0))
                    break


def _widths(place: str, sizes: Sequence[str], numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield which number is the width of every row of a table."""
    if not place.endswith("[]#") or len({number for seen in numbers for number in seen.get(place, ())}) < 2:
        return
    for size in sizes:
        if all(place in seen and set(seen[place]) == {seen[size][0]} for seen in numbers):
            yield Relation(Term(place, 0.0), "==", Term(size, 0.0))
            return


def _counts(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield equal lengths of one known input: two lists of the same length are taken to belong together."""
    for seen in numbers:
        sizes = [place for place in seen if place.endswith("#") and len(seen[place]) == 1 and seen[place][0] > 1]
        for position, one in enumerate(sizes):
            for other in sizes[position + 1 :]:
                if seen[one] == seen[other]:
                    yield Relation(Term(one, 0.0), "==", Term(other, 0.0))

"""What an input may be: named values, their shapes, and relations between them that hold for all known inputs.

Learnt from examples and from what the statement says; an inference, so it is used strictly: what a known input
contradicts is dropped, what is drawn or mutated must meet everything that is left.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, NamedTuple

from microcoder.data.clean.completeness import WRITTEN, plain_formulae, read_number
from microcoder.data.clean.sections import split
from microcoder.data.inputs.constraints import Relation, Term, find_group_rows, read_relations
from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.shapes import NUMBER_FACTS, Shape, holds, infer_shape, is_level_order, is_tree

_NUMBERS = re.compile(WRITTEN)
_LENGTHS = re.compile(
    rf"(?:at most|no more than|up to|maximum|between \d+ and|från \d+ till|högst|max(?:imalt)?) ({WRITTEN})\s+"
    r"(?:\S+ ){0,3}?(?:characters?|letters?|symbols?|tecken|bokstäver)"
)
_NEARLY, _LARGE = 1.25, 100
"""A number of the statement that is no more than so many times what was seen, which is no small one, is its bound."""
_ENOUGH_ROWS, _ENOUGH_EDGES = 20, 5
"""Of tables, to tell a rule from chance."""


class Range(NamedTuple):
    """Whole numbers from `low` to `high`."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class InputModel:
    """What inputs of a problem look like."""

    names: tuple[str, ...]
    shapes: tuple[Shape, ...]
    relations: tuple[Relation, ...]
    number_facts: tuple[tuple[str, str], ...] = ()
    """Places, and the facts of `NUMBER_FACTS` that hold for the numbers there."""
    trees: tuple[tuple[str, str], ...] = ()
    """Two lists each that hold the ends of the edges of a tree."""

    @property
    def is_usable(self) -> bool:
        """Whether every value has a shape that can be drawn."""
        return bool(self.names) and all(map(_is_drawable, self.shapes))

    def find_fault(self, values: Values) -> str:
        """Return what of the model an input does not meet; empty where it meets all."""
        if len(values) != len(self.names):
            return "another number of values"
        for name, shape, value in zip(self.names, self.shapes, values, strict=True):
            if fault := _misfit(shape, value):
                return f"{name}: {fault}"
        numbers = collect_numbers(self.names, values)
        for place, fact in self.number_facts:
            if not all(map(NUMBER_FACTS[fact][0], numbers.get(place, ()))):
                return f"{place}: not {fact}"
        given = dict(zip(self.names, values, strict=True))
        if not all(is_tree(list(zip(given[one], given[other], strict=False))) for one, other in self.trees):
            return "no tree"
        failing = next((one for one in self.relations if not meets(one, numbers)), None)
        return f"not {failing.left} {failing.operator} {failing.right}" if failing else ""

    def range_of(self, place: str, known: Mapping[str, int], shape: Shape | None, *, is_length: bool = False) -> Range:
        """Return the range of a place, by what is stated and, where nothing is, by what was seen."""
        lows, highs = [], []
        for one in self.relations:
            if one.operator == "==":
                for this, that in ((one.left, one.right), (one.right, one.left)):
                    if this.place == place and (value := that.evaluate(known)) is not None:
                        lows.append(value - this.number)
                        highs.append(value - this.number)
                continue
            strict = one.operator == "<"
            if one.left.place == place and (value := one.right.evaluate(known)) is not None:
                highs.append(value - strict - one.left.number)
            if one.right.place == place and (value := one.left.evaluate(known)) is not None:
                lows.append(value + strict - one.right.number)
        seen_low, seen_high = (shape.low, shape.high) if shape else (0, 10)
        highs += self._shares(place, known)
        low = max(lows) if lows else (seen_low if is_length or seen_low < 1 else 1)
        # What is inside and always of one length has that length.
        is_fixed = is_length and "[" in place and seen_low == seen_high
        high = min(highs) if highs else seen_high if is_fixed else max(2 * abs(seen_high), 10)
        return Range(_whole(low, math.ceil), max(_whole(low, math.ceil), _whole(high, math.floor)))

    def _shares(self, place: str, known: Mapping[str, int]) -> Iterator[float]:
        """Yield how large a factor of a bounded product may be; of two that are not known, such as those of
        `R * C <= 10^6`, as large as the other."""
        for one in self.relations:
            factors = re.fullmatch(r"=\{([^{}]+)\}\*\{([^{}]+)\}", one.left.place)
            if factors and place in factors.groups() and not one.right.place and one.operator != "==":
                other = factors[2] if place == factors[1] else factors[1]
                yield one.right.number // max(1, known[other]) if other in known else math.isqrt(int(one.right.number))


def _whole(number: float, turn: Callable[[float], int]) -> int:
    # A power of ten that a float does not hold is meant as it is written.
    return turn(number) if abs(number) < 1e15 else int(Decimal(repr(float(number))))


def learn(
    names: Sequence[str],
    known: Sequence[Values],
    statement: str | None,
    *,
    places: Mapping[str, str] = MappingProxyType({}),
    records: Collection[str] = (),
    nodes: Sequence[str] = (),
) -> InputModel:
    """Return what known inputs have in common, and what of the statement they do not contradict.

    Args:
        names: of the values, in order.
        known: at least one input, a value per name.
        statement: as it is asked; None: everything that all known inputs have in common is taken for a rule.
        places: names of the statement and the places that they stand for, where those are not the names given.
        records: names of tables whose columns are something of their own each, whatever the statement says.
        nodes: names of linked lists and trees.
    """
    parts = split(statement or "")
    other = (f"{title}\n{text}" for title, text in parts.other)
    told, of_groups = find_group_rows("\n".join([parts.statement, parts.input, parts.constraints, parts.note, *other]))
    told = _with_node_names(told, nodes)
    shapes = tuple(
        infer_shape(
            [values[place] for values in known],
            statement=None if statement is None else _around(told, name),
            has_records=name in records,
        )
        for place, name in enumerate(names)
    )
    numbers = [collect_numbers(names, values) for values in known]
    said = _without_aliases(read_relations(told, names, places), names)
    said += _loosest(read_relations(of_groups, names, places), said)
    stated = [one for one in said if all(meets(one, seen) for seen in numbers)]
    relations = dict.fromkeys([*stated, *(_least_seen(numbers) if statement is None else ())])
    lows = {one.right.place for one in relations if one.operator != "=="}
    bounded = lows & {one.left.place for one in relations if one.operator != "=="}
    relations |= dict.fromkeys([*_seen_relations(numbers, bounded), *_ordered_columns(numbers)])
    relations |= dict.fromkeys(_mentioned_bounds(numbers, relations, told) if statement is not None else ())
    facts = tuple(_number_facts(names, numbers, told))
    return InputModel(tuple(names), shapes, tuple(relations), facts, tuple(_trees(names, shapes, known)))


def _mentioned_bounds(
    numbers: Sequence[Mapping[str, Sequence[float]]], relations: Collection[Relation], told: str
) -> Iterator[Relation]:
    """Yield bounds of places that have none: those in words, `at most 100 characters`, and numbers nearly reached."""
    bounded = {one.left.place for one in relations if one.operator != "=="}
    bounded |= {term.place for one in relations if one.operator == "==" for term in (one.left, one.right)}
    text = plain_formulae(told)
    mentioned = [number for one in _NUMBERS.finditer(text) if (number := read_number(one[0])) is not None]
    lengths = [number for one in _LENGTHS.finditer(text) if (number := read_number(one[1])) is not None]
    for place in numbers[0]:
        seen = [number for one in numbers for number in one.get(place, ())]
        if place in bounded or not seen or re.search(r"\[\d\]$", place):
            continue
        is_text = place.endswith("[]#") and f"{place[:-1]}[]" not in numbers[0]
        high = max(seen)
        near = [one for one in mentioned if high <= one <= _NEARLY * high and high >= _LARGE]
        is_fixed = len(seen) >= _ENOUGH_ROWS and min(seen) == high
        said = [one for one in lengths if high <= one] if is_text and not is_fixed else []
        if said or near:
            yield Relation(Term(place, 0.0), "<=", Term("", min(said or near)))


def _ordered_columns(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield that a column is never more than another one, such as the ends of intervals, where enough rows show it."""
    places = sorted({place for seen in numbers for place in seen if re.search(r"\[\]\[\d\]$", place)})
    for one, other in itertools.permutations(places, 2):
        if one[:-3] == other[:-3]:
            pairs = [pair for seen in numbers for pair in zip(seen.get(one, ()), seen.get(other, ()), strict=False)]
            if len(pairs) >= _ENOUGH_ROWS and all(a <= b for a, b in pairs) and any(a < b for a, b in pairs):
                yield Relation(Term(one, 0.0), "<=", Term(other, 0.0))


def _trees(names: Sequence[str], shapes: Sequence[Shape], known: Sequence[Values]) -> Iterator[tuple[str, str]]:
    lists = [
        place for place, shape in enumerate(shapes) if shape.kind == "list" and shape.item and shape.item.kind == "int"
    ]
    for one, other in itertools.pairwise(lists):
        edges = [list(zip(values[one], values[other], strict=False)) for values in known]
        is_parallel = all(len(values[one]) == len(values[other]) for values in known)
        if is_parallel and max(map(len, edges)) > _ENOUGH_EDGES and all(map(is_tree, edges)):
            yield names[one], names[other]


def _loosest(of_groups: Sequence[Relation], said: Sequence[Relation]) -> list[Relation]:
    """Return the widest of the bounds that groups of tests have, for places that are not bounded otherwise."""
    bounded = {place for one in said if one.operator != "==" and not one.right.places for place in one.left.places}
    widest: dict[str, Relation] = {}
    for one in of_groups:
        place = one.left.place
        if one.operator != "==" and place and place not in bounded and not one.right.places:
            widest[place] = max(one, widest.get(place, one), key=lambda one: one.right.number)
    return list(widest.values())


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


def _least_seen(numbers: Sequence[Mapping[str, Sequence[float]]]) -> Iterator[Relation]:
    """Yield that no number is less than the least that was seen at its place."""
    for place in numbers[0]:
        least = min(number for seen in numbers for number in seen.get(place, ()))
        if not re.search(r"\[\d\]$", place):
            yield Relation(Term("", min(least, 1.0) if place.endswith("#") else least), "<=", Term(place, 0.0))


def _number_facts(
    names: Sequence[str], numbers: Sequence[Mapping[str, Sequence[float]]], told: str
) -> Iterator[tuple[str, str]]:
    for place in numbers[0]:
        name = _base(place)
        seen = [number for one in numbers for number in one.get(place, ())]
        for fact, (test, words) in NUMBER_FACTS.items():
            if len(seen) > 1 and re.search(words, _around(told, name), re.IGNORECASE) and all(map(test, seen)):
                yield place, fact


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


def _around(statement: str, name: str) -> str:
    """Return the lines of a statement that speak of a value; all of it where none does."""
    lines = [line for line in statement.splitlines() if name in line]
    return "\n".join(lines) if lines else statement


def _is_drawable(shape: Shape) -> bool:
    inside = [*shape.columns, *([shape.item] if shape.item else [])]
    if shape.kind == "list" and not inside:
        return False
    return shape.kind != "other" and all(map(_is_drawable, inside))


def _misfit(shape: Shape, value: Any) -> str:
    if shape.kind == "int":
        return "" if isinstance(value, int) and not isinstance(value, bool) else "no integer"
    if shape.kind == "text":
        if not isinstance(value, str):
            return "no text"
        if shape.words:
            return "" if value in shape.words else "another word"
        if shape.columns and len(value) != len(shape.columns):
            return "another length"
        if shape.first:
            marked = value[:1] in shape.first and all(one in shape.alphabet for one in value[1:])
            return "" if value and marked else "another letter"
        letters = zip(value, shape.columns, strict=True) if shape.columns else ((one, shape) for one in value)
        return "" if all(one in allowed.alphabet for one, allowed in letters) else "another letter"
    if shape.kind not in ("list", "nodes"):
        return ""
    if not isinstance(value, list):
        return "no list"
    if shape.kind == "nodes":
        if not is_level_order(value) or any(type(item) is not int for item in value if item is not None):
            return "no tree"
        return next((f"not {fact}" for fact in sorted(shape.facts) if not holds(fact, value, is_tree=True)), "")
    if shape.columns:
        if len(value) != len(shape.columns):
            return "a row of another length"
        return next((f for one, item in zip(shape.columns, value, strict=True) if (f := _misfit(one, item))), "")
    missing = next((fact for fact in sorted(shape.facts) if not holds(fact, value)), "")
    if missing or shape.item is None:
        return f"not {missing}" if missing else ""
    fault = next((fault for item in value if (fault := _misfit(shape.item, item))), "")
    return fault or (shape.grid.find_fault(value) if shape.grid else "")

"""Inputs drawn from a model: tiny ones, many ties, full ranges, extremes, and large ones."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.model import InputModel, Range
from microcoder.data.inputs.shapes import NUMBER_FACTS, Shape, arrange_nodes, draw_edges

_TRIES, _TRIES_LARGE = 24, 4
_MOST_STEPS = 300
_MOST_PRIME = 10**12
_CHARACTERS_PER_ITEM = 8
_MOST_ITEMS = 20_000
"""Of one drawn input, whatever the statement allows: an input is text that is stored."""
_SLACK = 12
"""A list is not drawn if it has so many times more items than there is room for."""


class _TooLarge(Exception):
    """What is drawn would be far larger than an input may be."""


@dataclass(frozen=True, slots=True)
class Profile:
    """How lengths and values are drawn."""

    most_length: int
    """Beyond the least length."""
    most_spread: int | None
    """Values lie within so many of each other; None: the whole range."""
    at_edges: bool = False
    """Values are the least or the greatest."""
    at_top: bool = False
    """Values are the greatest, or close to it."""
    is_full: bool = False
    """Lengths are the greatest possible."""


PROFILES: MappingProxyType[str, Profile] = MappingProxyType(
    {
        "tiny": Profile(2, 3),
        "ties": Profile(10, 2),
        "small": Profile(7, 10),
        "wide": Profile(20, None),
        "edges": Profile(6, None, at_edges=True),
        "least": Profile(0, None, at_edges=True),
        "medium": Profile(100, 100),
        "large": Profile(_MOST_ITEMS, None, is_full=True),
        "large_ties": Profile(_MOST_ITEMS, 4, is_full=True),
        "large_level": Profile(_MOST_ITEMS, 0, is_full=True),
        "large_top": Profile(_MOST_ITEMS, None, at_top=True, is_full=True),
    }
)
"""By name; the lineage of a test names the profile that it was drawn by."""


@dataclass(slots=True)
class _Draw:
    model: InputModel
    profile: Profile
    random: random.Random
    most_items: int
    known: dict[str, int] = field(default_factory=dict)
    """Numbers drawn so far, by place: what is drawn later is bounded by them."""
    spans: dict[str, Range] = field(default_factory=dict)
    """By place: the part of its range that this input's values are drawn from."""
    is_stretched: bool = False
    """Lists whose length nothing bounds are as long as there is room for."""
    common: dict[str, Range] = field(default_factory=dict)
    """By place: the range that it has together with those that are equal to it."""
    depth: int = 0
    """Lists that what is drawn now is inside of; `most_items` is its share already."""
    _open: set[str] = field(default_factory=set)
    """Places whose range is being found."""
    _known_orders: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """By place of a row: columns of which the first is never more than the second."""

    def number(self, place: str, shape: Shape | None, *, is_length: bool = False) -> int:
        """Draw the number of a place that has one, bounded by those that it depends on."""
        if place in self.known:
            return self.known[place]
        limits = self.common.get(place) or self._range(place, shape, is_length=is_length)
        if is_length:
            stretched = self._most(place, shape) if self.is_stretched and not self._has_top(place) else 0
            high = max(limits.low, min(max(limits.high, stretched), self._most(place, shape)))
            room = min(high, limits.low + self.profile.most_length)
            drawn = high if self.profile.is_full else self.random.randint(limits.low, room)
            drawn = self._with_facts(place, drawn, limits)
        else:
            drawn = self._with_facts(place, self._within(self._narrow(limits)), limits)
            if self.profile.is_full and self._is_size(place):
                drawn = limits.high
            elif self.profile.is_full and self.random.random() < 0.5:
                drawn = self._hard(drawn, limits)
        self.known[place] = drawn
        return drawn

    def _most(self, place: str, shape: Shape | None) -> int:
        """Return how many items there may be for all of the input to be no larger than it may."""
        outer = place.removesuffix("[]#") + "#"
        if outer != place and outer in self.known and not self.depth:
            each = _CHARACTERS_PER_ITEM if shape is not None and shape.kind == "text" else 1
            return each * self.most_items // max(1, self.known[outer])
        if place.endswith("[]#") and "[" not in outer and outer not in self.known:
            # Drawn before the list around it, of which it may be the length too.
            return math.isqrt(self.most_items)
        inner = shape.item if shape else None
        if shape is not None and shape.kind == "text":
            return self.most_items * _CHARACTERS_PER_ITEM
        if inner is None or inner.kind not in ("list", "text"):
            return self.most_items
        if inner.columns:
            return self.most_items // len(inner.columns)
        # Many short ones, or as many as each is long.
        longest = self.model.range_of(f"{place[:-1]}[]#", self.known, inner, is_length=True).high
        most = self.most_items * (_CHARACTERS_PER_ITEM if inner.kind == "text" else 1)
        return max(math.isqrt(most), most // max(1, longest))

    def span(self, place: str, shape: Shape) -> Range:
        """Return what the values of a place are drawn from in this input."""
        if place not in self.spans:
            self.spans[place] = self._narrow(self._range(place, shape))
        return self.spans[place]

    def _range(self, place: str, shape: Shape | None, *, is_length: bool = False) -> Range:
        """Return the range of a place, once the numbers that bound it from above are drawn."""
        self._open.add(place)
        for one in self.model.relations:
            if one.left.place == place and one.operator != "==":
                for other in one.right.places:
                    if not (self._is_capped(place) and self._is_below(other, place)):
                        self._settle(other)
        self._open.discard(place)
        return self.model.range_of(place, self.known, shape, is_length=is_length)

    def equal(self, more: Mapping[str, float]) -> None:
        """Draw numbers of which each is so much more than the first one, which is bounded as all of them are."""
        first, *_ = more
        known = next((place for place in more if place in self.known), None)
        if known is not None:
            drawn = self.known[known] - more[known]
        else:
            ranges = {place: self._range(place, _shape_at(self.model, place), is_length=True) for place in more}
            bounded = {place for one in self.model.relations if one.operator != "==" for place in one.left.places}
            low = max(limits.low - more[place] for place, limits in ranges.items())
            high = min(ranges[place].high - more[place] for place in bounded & {*more} or more)
            self.common[first] = Range(int(low), int(max(low, high)))
            drawn = self.number(first, _shape_at(self.model, first), is_length=True)
        for place, gap in more.items():
            self.known.setdefault(place, int(drawn + gap))

    def _is_capped(self, place: str) -> bool:
        return any(one.left.place == place and not one.right.places for one in self.model.relations)

    def _has_top(self, place: str) -> bool:
        """Whether anything bounds the place from above, or it is inside of a list."""
        sides = [one.left.places for one in self.model.relations]
        sides += [one.right.places for one in self.model.relations if one.operator == "=="]
        return "[" in place or any(place in side for side in sides)

    def _is_below(self, one: str, other: str) -> bool:
        return any(each.left.place == one and each.right.place == other for each in self.model.relations)

    def _is_size(self, place: str) -> bool:
        """Whether the number bounds what is inside of lists, as that of the nodes of a graph does."""
        return any(one.right.place == place and "[" in one.left.place for one in self.model.relations)

    def _settle(self, place: str) -> None:
        """Draw the number of a place, if it has one and nothing waits for it."""
        shape = _shape_at(self.model, place)
        if shape is None or place in self.known or place in self._open or "[" in place:
            return
        if place.endswith("#"):
            self.number(place, shape, is_length=True)
        elif shape.kind == "int":
            self.number(place, shape)

    def _narrow(self, limits: Range) -> Range:
        spread = self.profile.most_spread
        if spread is None or limits.high - limits.low <= spread:
            return limits
        starts = [limits.low, max(limits.low, min(0, limits.high - spread)), limits.high - spread]
        low = self.random.choice([*starts[:2], *starts[:2], starts[2]])
        return Range(low, low + spread)

    def _in_span(self, place: str, shape: Shape) -> int:
        limits = self.span(place, shape)
        return self._with_facts(place, self._within(limits), limits)

    def _with_facts(self, place: str, drawn: int, limits: Range) -> int:
        """Return the number next to a drawn one, within its range, that has the facts of its place."""
        facts = [NUMBER_FACTS[fact][0] for where, fact in self.model.number_facts if where == place]
        if not facts:
            return drawn
        near = (drawn + step for distance in range(_MOST_STEPS) for step in (distance, -distance))
        fitting = (one for one in near if limits.low <= one <= limits.high and all(fact(one) for fact in facts))
        return next(fitting, drawn)

    def _hard(self, drawn: int, limits: Range) -> int:
        """Return a number near a drawn one that searches for divisors, roots or bits need long for."""
        root = math.isqrt(max(drawn, 0))
        near = (drawn - step for step in range(_MOST_STEPS))
        ways = (
            next((one for one in near if one <= _MOST_PRIME and NUMBER_FACTS["prime"][0](one)), drawn),
            root * root,
            root * (root + 1),
            1 << max(drawn.bit_length() - 1, 0),
        )
        chosen = self.random.choice(ways)
        return chosen if limits.low <= chosen <= limits.high else drawn

    def _within(self, limits: Range) -> int:
        if self.profile.at_top:
            return limits.high - (
                self.random.randint(0, (limits.high - limits.low) // 100) if self.random.random() < 0.5 else 0
            )
        if self.profile.at_edges and self.random.random() < 0.8:
            return self.random.choice(limits)
        if limits.high - limits.low > 1000 and self.random.random() < 0.2:
            # Small numbers beside large ones.
            near = min(max(0, limits.low), limits.high)
            return self.random.randint(near, min(limits.high, near + 10))
        if limits.high > 100 and limits.low >= 0 and self.random.random() < 0.15:
            # Of small factors: what divides, or has few bits, is met seldom by chance.
            number = 1
            for factor in self.random.choices((2, 2, 3, 5, 7, 10), k=self.random.randint(1, 40)):
                if number * factor > limits.high:
                    break
                number *= factor
            return max(limits.low, number + self.random.choice((0, 0, 0, -1, 1))) if number < limits.high else number
        return self.random.randint(*limits)

    def value(self, place: str, shape: Shape) -> Any:
        """Draw one value."""
        if shape.kind == "bool":
            return self.random.random() < 0.5
        if shape.kind == "float":
            limits = self._range(place, shape)
            return round(self.random.uniform(*limits), 3)
        if shape.kind == "int":
            return self.number(place, shape) if place.isidentifier() else self._in_span(place, shape)
        if shape.kind == "text":
            return self._text(place, shape)
        if shape.kind == "nodes":
            assert shape.item is not None
            length = self._length(place, shape)
            return arrange_nodes(
                [self.value(f"{place}[]", shape.item) for _ in range(length)], shape.facts, self.random
            )
        if shape.columns:
            return self._ordered(
                place, [self.value(f"{place}[{number}]", column) for number, column in enumerate(shape.columns)]
            )
        return self._list(place, shape)

    def _ordered(self, place: str, row: list[Any]) -> list[Any]:
        """Exchange the numbers of a row that are in another order than their columns have to be."""
        for one, other in self._orders(place):
            if max(one, other) < len(row) and row[one] > row[other]:
                row[one], row[other] = row[other], row[one]
        return row

    def _orders(self, place: str) -> list[tuple[int, int]]:
        if place not in self._known_orders:
            column = re.compile(re.escape(place) + r"\[(\d)\]")
            ends = [
                (column.fullmatch(one.left.place), column.fullmatch(one.right.place))
                for one in self.model.relations
                if one.operator != "==" and one.left.number == one.right.number
            ]
            self._known_orders[place] = [(int(left[1]), int(right[1])) for left, right in ends if left and right]
        return self._known_orders[place]

    def _text(self, place: str, shape: Shape) -> str:
        if shape.words:
            return self.random.choice(shape.words)
        if shape.columns:
            self.known.setdefault(f"{place}#", len(shape.columns))
            return "".join(self.random.choice(column.alphabet) for column in shape.columns)
        length = self._check(self._length(place, shape))
        few = self.profile.most_spread if self.profile.most_spread is None else max(1, self.profile.most_spread)
        letters = shape.alphabet or " "
        if few is not None and len(letters) > few:
            letters = "".join(random.Random(self.span_seed(place)).sample(letters, min(few, len(letters))))
        mark = self.random.choice(shape.first) if shape.first else ""
        return mark + "".join(self.random.choices(letters, k=max(0, length - len(mark))))

    def span_seed(self, place: str) -> int:
        """Return a number for the choice of letters, the same for all texts of one place."""
        if place not in self.spans:
            self.spans[place] = Range(self.random.getrandbits(30), 0)
        return self.spans[place].low

    def _length(self, place: str, shape: Shape) -> int:
        """Draw a length; items of a list have one each."""
        size = f"{place}#"
        if "[]" not in place:
            return self.number(size, shape, is_length=True)
        known = size in self.known
        drawn = self.number(size, shape, is_length=True)
        if not known:
            del self.known[size]
        return drawn

    def _check(self, length: int) -> int:
        """Return a length; what is many times too large would take gigabytes before it is refused."""
        if length > _SLACK * self.most_items:
            raise _TooLarge
        return length

    def _list(self, place: str, shape: Shape) -> list[Any]:
        assert shape.item is not None
        length = self._check(self._length(place, shape))
        if "permutation" in shape.facts:
            first = int(shape.item.low) if shape.item.low in (0, 1) else 0
            return self.random.sample(range(first, first + length), length)
        if "tree" in shape.facts and shape.item.columns:
            return self._tree(place, shape.item, length)
        same = shape.facts & {"rectangular", "square", "symmetric"}
        if same and shape.item.kind in ("list", "text") and not shape.item.columns:
            size = f"{place}[]#"
            square = same & {"square", "symmetric"}
            self.known[size] = length if square else self.number(size, shape.item, is_length=True)
        saved, self.most_items = self.most_items, max(1, self.most_items // max(1, length))
        self.depth += 1
        items = [self.value(f"{place}[]", shape.item) for _ in range(length)]
        self.most_items = saved
        self.depth -= 1
        if shape.item.kind == "list" and not shape.item.columns and self._orders(f"{place}[]"):
            items = [self._ordered(f"{place}[]", item) for item in items]
        if shape.grid is not None:
            items = shape.grid.arrange([str(item) for item in items], self.random)
        return _arrange(items, shape, self.random)

    def _tree(self, place: str, row: Shape, length: int) -> list[Any]:
        first = 0 if min(column.low for column in row.columns[:2]) == 0 else 1
        return [
            [*edge, *(self.value(f"{place}[][{at}]", column) for at, column in enumerate(row.columns) if at >= 2)]
            for edge in draw_edges(first, length, self.random, is_path=self.profile.most_spread == 0)
        ]


def _arrange(items: list[Any], shape: Shape, source: random.Random) -> list[Any]:
    """Make a list have its facts, where order, or leaving items out, does it."""
    if "no_loops" in shape.facts:
        items = [item for item in items if item[0] != item[1]]
    if "distinct" in shape.facts:
        items = list({repr(item): item for item in items}.values())
    if "no_double_edges" in shape.facts:
        items = list({repr(sorted(item[:2])): item for item in items}.values())
    if "no_own_place" in shape.facts and len(items) > 1:
        first = min(1, int(shape.item.low)) if shape.item else 0
        for place, item in enumerate(items, first):
            if item == place:
                items[place - first] = place + 1 if place - first + 1 < len(items) else place - 1
    if "sorted" in shape.facts:
        return sorted(items)
    if "decreasing" in shape.facts:
        return sorted(items, reverse=True)
    if "symmetric" in shape.facts:
        return [[items[max(a, b)][min(a, b)] for b in range(len(items))] for a in range(len(items))]
    if shape.grid is not None or "no_own_place" in shape.facts:
        return items
    if shape.item and shape.item.kind in ("int", "text") and source.random() < 0.15:
        try:
            return sorted(items, reverse=source.random() < 0.5)
        except TypeError:
            return items
    return items


def draw(
    model: InputModel, profile: str, *, seed: int, most_items: int = _MOST_ITEMS, is_stretched: bool = False
) -> Values | None:
    """Return an input that meets the model; None where several tries give none.

    Args:
        model: what inputs look like.
        profile: a name of `PROFILES`.
        seed: of all random choices.
        most_items: numbers or characters in it, about.
        is_stretched: make lists whose length nothing bounds as long as that allows, for a validator to decide.
    """
    source = random.Random(seed)
    tries = [most_items] * (_TRIES_LARGE if PROFILES[profile].is_full else _TRIES)
    if PROFILES[profile].is_full and any(one.left.is_formula or one.right.is_formula for one in model.relations):
        # The longest lists may be longer together than a statement allows (`m * n <= 10^4`): then half, and so on.
        tries += [most_items >> halved for halved in range(1, _TRIES_LARGE + 1)]
    for most in tries:
        drawing = _Draw(model, PROFILES[profile], source, most, is_stretched=is_stretched)
        try:
            values = _draw_all(drawing)
        except _TooLarge:
            continue
        if values is not None and not model.find_fault(values):
            return values
    return None


def _draw_all(drawing: _Draw) -> Values | None:
    """Draw lengths, then numbers, then what is inside: the later are bounded by the earlier."""
    model = drawing.model
    drawn: dict[str, Any] = {}
    order = sorted(range(len(model.names)), key=lambda place: model.shapes[place].kind not in ("list", "text"))
    _settle_sizes(drawing)
    for place in order:
        name, shape = model.names[place], model.shapes[place]
        drawn[name] = drawing.value(name, shape)
        if isinstance(drawn[name], list | str) and len(drawn[name]) != drawing.known.get(f"{name}#"):
            # Equal items were left out, so lengths that depend on it do not fit any more.
            size = f"{name}#"
            if any(one.operator == "==" and size in (one.left.place, one.right.place) for one in model.relations):
                return None
            drawing.known[size] = len(drawn[name])
            for other, its in zip(model.names, model.shapes, strict=True):
                if other not in drawn:
                    drawn[other] = drawing.value(other, its)
            break
    for one, other in model.trees:
        first = int(min(0 if shape is None or shape.item is None else shape.item.low
                        for shape in (_shape_at(model, one), _shape_at(model, other))))  # fmt: skip
        is_path = drawing.profile.most_spread == 0
        edges = draw_edges(first, len(drawn[one]), drawing.random, is_path=is_path)
        drawn[one], drawn[other] = [edge[0] for edge in edges], [edge[1] for edge in edges]
    return tuple(drawn[name] for name in model.names)


def _settle_sizes(drawing: _Draw) -> None:
    """Draw the numbers that are equal to others first, such as `n` of `n == grid.length`: within the bounds of all."""
    equal = [
        one
        for one in drawing.model.relations
        if one.operator == "==" and one.left.place and one.right.place
        and not one.left.is_formula and not one.right.is_formula
    ]  # fmt: skip
    while equal:
        # How much more each is than the first one.
        more = {equal[0].left.place: 0.0}
        while near := [one for one in equal if one.left.place in more or one.right.place in more]:
            for one in near:
                gap = one.left.number - one.right.number
                if one.left.place in more:
                    more.setdefault(one.right.place, more[one.left.place] + gap)
                else:
                    more.setdefault(one.left.place, more[one.right.place] - gap)
            equal = [one for one in equal if one not in near]
        drawing.equal(more)


def _shape_at(model: InputModel, place: str) -> Shape | None:
    """Return the shape of a place that has one number: a value, or whose length it is."""
    name = place.rstrip("#")
    inside = name.endswith("[]")
    base = name.removesuffix("[]")
    if base not in model.names:
        return None
    shape = model.shapes[model.names.index(base)]
    return shape.item if inside else shape

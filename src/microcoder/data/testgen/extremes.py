"""Makes the largest inputs that a problem's validators allow, and small random ones.

How large a value may be is asked of the validators: a number is put into a known input, a list or
text is stretched, and the largest that they accept is the bound.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.data.inputs.finding import INTEGER
from microcoder.data.inputs.lines import Lines, join_lines, split_lines
from microcoder.data.inputs.models import Relation
from microcoder.data.inputs.mutating import find_repeats
from microcoder.data.inputs.shapes import (
    FORMS,
    Form,
    Limit,
    Limits,
    Slot,
    arrange,
    find_slots,
    numbers_in,
    shrink,
    sizes_in,
    with_number,
)
from microcoder.data.inputs.stretching import (
    WAYS,
    Part,
    Unit,
    Way,
    find_parts,
    put_in_head,
    size_of,
    stretch,
    units_of,
)
from microcoder.data.testgen.made import MadeInput
from microcoder.data.testgen.mutation import (
    InputSchema,
    KnownInput,
    digest_input,
    find_constants,
    must_differ,
)
from microcoder.data.testgen.settings import MOST_RANDOM
from microcoder.data.testgen.validators import Validators

_ROUND = (10, 100, 1000, 10**4, 10**5, 2 * 10**5, 10**6, 10**9, 10**18)
"""Bounds to try beside the numbers that the statement and programs name."""
_MOST_LENGTH = 2 * 10**5
"""Longest list or text."""
_MOST_INPUT_BYTES = 1 << 20
"""Longest input of this kind; it is read by every program that is judged."""
_MOST_SLOTS = 8
"""Bounds of numbers that are asked for, as each takes several runs of the validators."""
_MOST_PROBED_BYTES = 1 << 12
"""Length of a known input into which numbers are put."""
_MOST_PARTS = 6
"""Parts of a text that are stretched."""


def make_arranged(
    schema: InputSchema,
    validators: Validators,
    candidate: Candidate,
) -> list[MadeInput]:
    """Return the largest inputs, one of each form, and small ones with random numbers.

    Args:
        schema: the layout, learnt from known inputs, with the problem's constants.
        validators: those that decide how large an input may be.
        candidate: the problem; its id decides every choice, with the form.
    """
    all_differ = must_differ(candidate)
    search = _LimitSearch(schema, validators)
    limits = search.find()
    if not limits.lengths and not limits.numbers:
        return []
    wanted: list[tuple[str, Form, int]] = []
    for form in FORMS:
        wanted.append(("largest", form, 0))
    for number in range(MOST_RANDOM):
        # Random numbers as often as all other forms together.
        form = FORMS[number // 2 % len(FORMS)] if number % 2 else "random"
        wanted.append(("random", form, number))
    made = []
    for maker, form, number in wanted:
        kind = f"{maker}/{form}"
        seed = int(digest_input(f"{number}/{candidate.id}/{kind}"), 16)
        allowed = limits if maker == "largest" else shrink(limits, seed)
        values = arrange(schema.model, search.known.values, allowed, form, seed=seed)
        if all_differ and find_repeats(values):
            continue
        text = schema.write(values)
        if len(text) <= _MOST_INPUT_BYTES:
            origin = Origin(
                kind=kind,
                seed=seed,
                parent=digest_input(search.known.text),
            )
            made.append(MadeInput(text, origin, "generated"))
    return made


def make_stretched(
    validators: Validators,
    candidate: Candidate,
) -> list[MadeInput]:
    """Return the largest inputs of a problem whose layout is not known.

    A known text is stretched part by part, each as far as the validators accept.
    """
    texts = sorted((test.input for test in candidate.tests), key=len)
    short = [text for text in texts if len(text) <= _MOST_PROBED_BYTES]
    if not short:
        return []
    asked = _Asked(validators)
    bounds = list_bounds(find_constants(candidate))
    lines = split_lines(short[-1])
    for column in range(len(lines[0])):
        lines = _raise_number(lines, column, asked, bounds)
    made = []
    for way in WAYS:
        text = join_lines(_stretch_all(lines, way, asked, bounds))
        # A few more values may be much more work.
        if len(text) > len(short[-1]):
            origin = Origin(kind=f"largest/{way}", parent=digest_input(short[-1]))
            made.append(MadeInput(text, origin, "generated"))
    return made


def _raise_number(
    lines: Lines,
    column: int,
    asked: "_Asked",
    bounds: Sequence[int],
) -> Lines:
    """Return lines with a number of the first one as large as is allowed beside the others."""
    token = lines[0][column]
    if not INTEGER.fullmatch(token):
        return lines

    def write(number: int) -> str:
        return join_lines(put_in_head(lines, column, number))

    larger = [bound for bound in bounds if bound > int(token)]
    return put_in_head(lines, column, asked.find_most(write, larger, int(token)))


def _stretch_all(
    lines: Lines,
    way: Way,
    asked: "_Asked",
    bounds: Sequence[int],
) -> Lines:
    """Return lines whose parts are as large as is allowed, one after the other."""
    for number in range(min(_MOST_PARTS, len(find_parts(lines)))):
        # Parts before it may have got more lines, but they are the same in order.
        part = find_parts(lines)[number]
        for unit, is_counted_near in product(units_of(lines, part), (False, True)):
            given = _Stretched(lines, part, unit, way, is_counted_near)
            longer = _make_longest(given, asked, bounds)
            if longer is not None:
                lines = longer
                break
    return lines


class _Stretched(NamedTuple):
    """Lines of which a part is stretched, and how."""

    lines: Lines
    part: Part
    unit: Unit
    way: Way
    is_counted_near: bool

    def to_length(self, length: int) -> Lines:
        """Return the lines with so many of the unit in the part."""
        return stretch(
            self.lines,
            self.part,
            self.unit,
            length,
            self.way,
            seed=length,
            is_counted_near=self.is_counted_near,
        )


def _make_longest(
    given: _Stretched,
    asked: "_Asked",
    bounds: Sequence[int],
) -> Lines | None:
    """Return lines with a part as long as is allowed; None if it cannot be longer."""

    def write(length: int) -> str:
        return join_lines(given.to_length(length))

    known = size_of(given.lines, given.part, given.unit)
    lengths = [bound for bound in bounds if known < bound <= _MOST_LENGTH]
    length = asked.find_most(write, lengths, known)
    if length == known:
        return None
    return given.to_length(length)


def list_bounds(constants: Sequence[int | str]) -> list[int]:
    """Return the numbers that may be bounds, sorted: those that a problem names, and round ones."""
    named = {abs(number) for number in constants if isinstance(number, int)}
    return sorted({*named, *_ROUND})


class _Asked:
    """Asks validators about texts."""

    def __init__(self, validators: Validators) -> None:
        self._validators = validators

    def find_most(
        self,
        write: Callable[[int], str],
        candidates: Sequence[int],
        known: int,
    ) -> int:
        """Return the largest of sorted candidates that is accepted; `known` if none is."""
        low, high = 0, len(candidates)
        # What is above a bound is refused and what is below accepted, as a rule.
        while low < high:
            middle = (low + high) // 2
            if self.takes(write(candidates[middle])):
                low = middle + 1
            else:
                high = middle
        return candidates[low - 1] if low else known

    def takes(self, text: str) -> bool:
        """Whether a text is accepted by all validators, called in one way."""
        if len(text) > _MOST_INPUT_BYTES:
            return False
        return any(self._validators.ask([text], flags) for flags in self._validators.ways)


class _LimitSearch:
    """Asks validators for the bounds of one problem's values."""

    def __init__(self, schema: InputSchema, validators: Validators) -> None:
        self._schema = schema
        self._model = schema.model
        self._asked = _Asked(validators)
        self.known = _choose_known(schema.known)
        self._candidates = list_bounds(schema.constants)

    def find(self) -> Limits:
        """Return the bounds of numbers, then the lengths that they allow."""
        numbers = {}
        for slot in find_slots(self._model, self.known.values)[:_MOST_SLOTS]:
            if not self._states_length(slot):
                numbers[slot] = self._limit_of(slot)
        limits = Limits(numbers=numbers)
        lengths: dict[int, int] = {}
        for places in self._group_lists():
            length = self._length_of(places, replace(limits, lengths=lengths))
            lengths.update(dict.fromkeys(places, length))
        return replace(limits, lengths=lengths)

    def _states_length(self, slot: Slot) -> bool:
        """Whether a number is written anew from the length of a list."""
        return any(_is_restated(relation, str(slot.place)) for relation in self._model.relations)

    def _limit_of(self, slot: Slot) -> Limit:
        """Return the bounds of a slot's numbers."""
        values = self.known.values
        present = numbers_in(values, slot)
        sizes = sizes_in(values)
        most = max(present, default=0)

        def try_number(number: int) -> str:
            return self._schema.write(with_number(self._model, values, slot, number))

        largest = self._asked.find_most(try_number, self._numbers_above(most, sizes), most)
        least = min(present, default=0)
        negative = self._asked.find_most(
            lambda number: try_number(-number),
            [number for number in self._candidates if -number < least],
            -least,
        )
        low = min(-negative, least)
        if low == least:
            smaller = [number for number in range(4) if number < least]
            low = next((one for one in smaller if self._asked.takes(try_number(one))), low)
        # A bound that is a size of this input is one of its nodes, and moves with it.
        own = str(slot.place)
        for position, size in sizes.items():
            is_node = size in (largest, largest + 1) and position != own
            if is_node and not self._asked.takes(try_number(size + 1)):
                return Limit(low, largest, position, largest - size)
        return Limit(low, largest)

    def _numbers_above(self, most: int, sizes: dict[str, int]) -> list[int]:
        """Return the numbers to try that are larger than those of a known input."""
        candidates = {*self._candidates, *sizes.values()}
        return sorted(number for number in candidates if number > most)

    def _group_lists(self) -> list[list[int]]:
        """Return the places of lists and texts, those together whose lengths are always equal."""
        groups: list[list[int]] = []
        for place, value in enumerate(self.known.values):
            if not isinstance(value, list | str) or not value:
                continue
            shape = self._model.shapes[place]
            if shape.known or shape.facts & {"square"}:
                continue
            for group in groups:
                if self._are_as_long(group[0], place):
                    group.append(place)
                    break
            else:
                groups.append([place])
        return groups

    def _are_as_long(self, first: int, second: int) -> bool:
        wanted = {f"{first}#", f"{second}#"}
        for relation in self._model.relations:
            if relation.operator == "==" and {relation.left, relation.right} == wanted:
                return True
        return False

    def _length_of(self, places: Sequence[int], limits: Limits) -> int:
        """Return the most items that lists may have together."""
        known_length = len(self.known.values[places[0]])
        lengths = [number for number in self._candidates if known_length < number <= _MOST_LENGTH]
        # A number of nodes is given, and the edges of a tree are one fewer.
        lengths = sorted(
            {*lengths, *(number - 1 for number in lengths if number > known_length + 1)}
        )
        best = known_length
        # Rows may be refused for what they hold: edges twice, or no tree.
        for form in ("random", "chain"):
            best = max(best, self._longest(places, limits, form, lengths))
        return best

    def _longest(
        self,
        places: Sequence[int],
        limits: Limits,
        form: str,
        lengths: Sequence[int],
    ) -> int:
        """Return the most items that are accepted in a form."""

        def try_length(length: int) -> str:
            tried = {**limits.lengths, **dict.fromkeys(places, length)}
            values = arrange(
                self._model,
                self.known.values,
                replace(limits, lengths=tried),
                "chain" if form == "chain" else "random",
                seed=length,
            )
            return self._schema.write(values)

        return self._asked.find_most(try_length, lengths, len(self.known.values[places[0]]))


def _choose_known(known: Sequence[KnownInput]) -> KnownInput:
    """Return the longest known input that is short, or the shortest."""
    by_length = sorted(known, key=lambda item: len(item.text))
    short = [item for item in by_length if len(item.text) <= _MOST_PROBED_BYTES]
    return short[-1] if short else by_length[0]


def _is_restated(relation: Relation, position: str) -> bool:
    """Whether a relation makes a number equal a length."""
    if relation.operator != "==":
        return False
    sides = (relation.left, relation.right)
    return position in sides and any(side.endswith("#") for side in sides)

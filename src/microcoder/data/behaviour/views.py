"""Views of a form: the same inputs as other values, so that problems of other layouts meet.

    [3, 4], [9, 8]  ->  [[3, 9], [4, 8]];  2, 3, ["#.#", "..."]  ->  ["#.#", "..."]

Another layout often says the same in another shape: columns for rows, a list for single values,
a text for a list of flags, or a size that can be counted. Each view can be turned back, so that
programs get the inputs that they read.
"""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice, permutations
from typing import Any, Protocol

from microcoder.data.behaviour.forms import Form, ValueCase
from microcoder.data.behaviour.outputs import kind_of
from microcoder.data.inputs.layouts import Values

_MOST_VIEWS = 8
"""Views of a form, itself included."""
_MOST_STACKED = 12
"""Most values that are taken for a list."""
_WIDEST_TURNED = 4
"""Widest rows whose columns are tried in other orders."""
_MOST_SYMBOLS = 4
"""Most different letters or words of texts that may be written with others."""
_TIMES_WRITTEN = 4
"""How often each symbol of texts is written at least, on average."""
_MOST_FLAGS = 3
"""Most different numbers of a list that may be written as a text."""
_FEWEST_CASES = 2
"""Cases from which it is told that a number is the size of something."""


class Change(Protocol):
    """Another shape of an input's values."""

    def there(self, values: Values) -> Values:
        """Return the values in that shape."""

    def back(self, values: Values) -> Values:
        """Return the values as they were; ValueError if there are none."""


@dataclass(frozen=True, slots=True)
class ViewedLayout:
    """Writes values of a view as inputs of the program."""

    layout: Any
    change: Change

    def render(self, values: Values) -> object:
        """Return the input that holds these values; ValueError if there is none."""
        return self.layout.render(self.change.back(values))


@dataclass(frozen=True, slots=True)
class WithoutSize:
    """Leaves out a number that is the size of another value."""

    place: int
    of: int
    """Place of the sized value among all."""
    of_rows: bool
    """Whether it is the length of its rows."""
    more: int
    """How much larger the number is."""

    def there(self, values: Values) -> Values:
        """Return the values without the number."""
        return values[: self.place] + values[self.place + 1 :]

    def back(self, values: Values) -> Values:
        """Return the values with the number."""
        place = self.of
        if place > self.place:
            place -= 1
        size = _size(values[place], of_rows=self.of_rows)
        if size is None:
            raise ValueError("rows of several lengths have no common one")
        return (*values[: self.place], size + self.more, *values[self.place :])


@dataclass(frozen=True, slots=True)
class Zipped:
    """Lists of the same length as rows, each with an item of every list."""

    places: tuple[int, ...]

    def there(self, values: Values) -> Values:
        """Return the values with a table in place of the first list, and without the others."""
        lists = map(values.__getitem__, self.places)
        rows = list(map(list, zip(*lists, strict=True)))
        return _put(values, self.places, rows)

    def back(self, values: Values) -> Values:
        """Return the values with lists for the table."""
        rows = values[self.places[0]]
        if not rows:
            return _spread(values, self.places, [[]] * len(self.places))
        columns = list(map(list, zip(*rows, strict=True)))
        if len(columns) != len(self.places):
            raise ValueError("the rows have another width")
        return _spread(values, self.places, columns)


@dataclass(frozen=True, slots=True)
class Stacked:
    """Values of one kind as a list."""

    places: tuple[int, ...]

    def there(self, values: Values) -> Values:
        """Return the values with a list in place of the first of them, and without the others."""
        return _put(values, self.places, list(map(values.__getitem__, self.places)))

    def back(self, values: Values) -> Values:
        """Return the values with the items of the list."""
        items = values[self.places[0]]
        if len(items) != len(self.places):
            raise ValueError("the list has another length")
        return _spread(values, self.places, items)


@dataclass(frozen=True, slots=True)
class Spelled:
    """Lists of flags as texts: `101` for [1, 0, 1]."""

    place: int
    is_table: bool

    def there(self, values: Values) -> Values:
        """Return the values with a text, or a list of texts."""
        value = values[self.place]
        if self.is_table:
            return _put(values, (self.place,), list(map(_spell, value)))
        return _put(values, (self.place,), _spell(value))

    def back(self, values: Values) -> Values:
        """Return the values with numbers."""
        value = values[self.place]
        if self.is_table:
            return _put(values, (self.place,), list(map(_read_flags, value)))
        return _put(values, (self.place,), _read_flags(value))


@dataclass(frozen=True, slots=True)
class Turned:
    """Rows with their columns in another order."""

    place: int
    order: tuple[int, ...]

    def there(self, values: Values) -> Values:
        """Return the values with the rows in that order."""
        return _put(values, (self.place,), _turn(values[self.place], self.order))

    def back(self, values: Values) -> Values:
        """Return the values with the rows as they were."""
        places = range(len(self.order))
        order = tuple(map(self.order.index, places))
        return _put(values, (self.place,), _turn(values[self.place], order))


@dataclass(frozen=True, slots=True)
class Shifted:
    """Numbers of places, counted from 0 and no longer from 1, or the other way round."""

    places: tuple[int, ...]
    by: int

    def there(self, values: Values) -> Values:
        """Return the values with the numbers shifted."""
        return self._shift(values, self.by)

    def back(self, values: Values) -> Values:
        """Return the values with the numbers as they were."""
        return self._shift(values, -self.by)

    def _shift(self, values: Values, by: int) -> Values:
        shifted = list(values)
        for place in self.places:
            shifted[place] = _add(shifted[place], by)
        return tuple(shifted)


@dataclass(frozen=True, slots=True)
class Renamed:
    """Texts written with other symbols."""

    pairs: tuple[tuple[str, str], ...]
    """Each symbol, and the other one."""
    are_words: bool

    def there(self, values: Values) -> Values:
        """Return the values with the other symbols."""
        return self._rename(values, dict(self.pairs))

    def back(self, values: Values) -> Values:
        """Return the values with the symbols that they had."""
        names = {}
        for old, new in self.pairs:
            names[new] = old
        return self._rename(values, names)

    def _rename(self, values: Values, names: dict[str, str]) -> Values:
        return tuple(self._rename_all(list(values), names))

    def _rename_all(self, values: Sequence[Any], names: dict[str, str]) -> list[Any]:
        renamed: list[Any] = []
        for value in values:
            if isinstance(value, list):
                renamed.append(self._rename_all(value, names))
            elif not isinstance(value, str):
                renamed.append(value)
            elif self.are_words:
                words = value.split()
                renamed.append(" ".join(map(names.get, words, words)))
            else:
                renamed.append("".join(map(names.get, value, value)))
        return renamed


def _put(
    values: Values,
    places: Sequence[int],
    value: object,
) -> Values:
    """Return the values with one in the first of the places, and without the other places."""
    kept = list(values)
    kept[places[0]] = value
    for place in reversed(places[1:]):
        del kept[place]
    return tuple(kept)


def _spread(
    values: Values,
    places: Sequence[int],
    items: Sequence[Any],
) -> Values:
    """Return the values with an item in each of the places, of which only the first is there."""
    spread = list(values)
    spread[places[0]] = items[0]
    for place, item in zip(places[1:], items[1:], strict=True):
        spread.insert(place, item)
    return tuple(spread)


def _spell(flags: Sequence[int]) -> str:
    return "".join(map(str, flags))


def _read_flags(text: str) -> list[int]:
    return list(map(int, text))


def _turn(rows: Sequence[Sequence[Any]], order: Sequence[int]) -> list[list[Any]]:
    turned = []
    for row in rows:
        if len(row) != len(order):
            raise ValueError("the rows have another width")
        turned.append(list(map(row.__getitem__, order)))
    return turned


def _add(value: object, by: int) -> object:
    """Return a number, or those of a list, with a number added; TypeError if there are others."""
    if isinstance(value, list):
        return [_add(item, by) for item in value]
    if not isinstance(value, int):
        raise TypeError("only whole numbers count places")
    return value + by


def _size(value: object, *, of_rows: bool) -> int | None:
    """Return the length of a list or text, or of the rows of a list; None if it has none."""
    if not isinstance(value, list | str):
        return None
    if not of_rows:
        return len(value)
    if isinstance(value, str) or not all(isinstance(row, list | str) for row in value):
        return None
    widths = set(map(len, value))
    return widths.pop() if len(widths) == 1 else None


def find_views(form: Form) -> list[Form]:
    """Return a form, and the views of it that benchmarks' problems have as well."""
    views = [form]
    seen = {write_values(form)}
    # Views of views, since a table may hold what a size was left out of.
    for view in views:
        for change in _find_changes(view):
            if len(views) == _MOST_VIEWS:
                return views
            made = apply_change(view, change)
            if made is None:
                continue
            written = write_values(made)
            if written not in seen:
                seen.add(written)
                views.append(made)
    return views


def write_values(form: Form) -> str:
    """Return the values of a form's cases as a text, which is the same for equal views."""
    return json.dumps([case.values for case in form.cases])


def apply_change(
    form: Form,
    change: Change,
    *,
    bits: float = 0.0,
) -> Form | None:
    """Return the view of a form; None if its values do not have that shape.

    Args:
        form: it may be a view.
        change: the other shape.
        bits: evidence that this view costs, as others were tried as well.
    """
    cases = []
    try:
        for case in form.cases:
            cases.append(ValueCase(change.there(case.values), case.expected))
    except (ValueError, TypeError, KeyError, IndexError):
        return None
    kinds = tuple(map(kind_of, _columns_of(cases)))
    layout = ViewedLayout(form.layout, change)
    return replace(
        form,
        kinds=kinds,
        cases=tuple(cases),
        layout=layout,
        bits=form.bits + bits,
    )


def _columns_of(cases: Sequence[ValueCase]) -> list[tuple[Any, ...]]:
    """Return the values at each place, of all cases."""
    return list(zip(*(case.values for case in cases), strict=True))


def _find_changes(form: Form) -> Iterator[Change]:
    """Yield the changes that a form's values allow."""
    columns = _columns_of(form.cases)
    yield from _find_sizes(form, columns)
    lists = [place for place, kind in enumerate(form.kinds) if kind in ("N", "S")]
    if len({form.kinds[place] for place in lists}) == 1 and _have_one_length(form, lists):
        yield Zipped(tuple(lists))
    for kind in ("n", "s", "N"):
        places = []
        for place, other in enumerate(form.kinds):
            if other == kind:
                places.append(place)
        if 1 < len(places) <= _MOST_STACKED and places[-1] - places[0] == len(places) - 1:
            yield Stacked(tuple(places))
    for place, kind in enumerate(form.kinds):
        if kind in ("N", "T") and _are_flags(columns[place], is_table=kind == "T"):
            yield Spelled(place, is_table=kind == "T")


def _have_one_length(form: Form, places: Sequence[int]) -> bool:
    """Whether there are several lists, all of the same length in each case."""
    if len(places) < 2:
        return False
    columns = _columns_of(form.cases)
    lengths = []
    for place in places:
        lengths.append(list(map(len, columns[place])))
    return lengths.count(lengths[0]) == len(lengths)


def _find_sizes(form: Form, columns: Sequence[Sequence[Any]]) -> Iterator[Change]:
    """Yield the first change that leaves out a number that is a size in every case."""
    if len(form.cases) < _FEWEST_CASES:
        return
    for place, kind in enumerate(form.kinds):
        if kind != "n":
            continue
        for of, column in enumerate(columns):
            for of_rows in (False, True):
                more = _find_more(columns[place], column, of_rows=of_rows)
                if more is not None:
                    yield WithoutSize(place, of, of_rows, more)
                    return


def _find_more(
    numbers: Sequence[Any],
    column: Sequence[Any],
    *,
    of_rows: bool,
) -> int | None:
    """Return by how much numbers are larger than the sizes of a column; None if they differ."""
    sizes = []
    for value in column:
        size = _size(value, of_rows=of_rows)
        if size is None:
            return None
        sizes.append(size)
    # One more or less may be by chance, if it is the same size everywhere.
    allowed = (0,) if len(set(sizes)) == 1 else (0, 1, -1)
    differences = set(map(operator.sub, numbers, sizes))
    if len(differences) != 1:
        return None
    more = differences.pop()
    if more in allowed:
        return more
    return None


def _are_flags(column: Sequence[Any], *, is_table: bool) -> bool:
    """Whether the lists of a column hold a few different digits alone."""
    flags: set[Any] = set()
    for value in column:
        for row in value if is_table else [value]:
            flags.update(map(repr, row))
    return 0 < len(flags) <= _MOST_FLAGS and set(map(len, flags)) == {1}


def find_shifted(form: Form) -> list[Form]:
    """Return the views of a form whose places are counted from 0, or from 1, and were not."""
    return _apply_all(form, list(_find_shifts(form)))


def find_turned(form: Form) -> list[Form]:
    """Return the views of a form whose columns stand in another order."""
    return _apply_all(form, list(_find_turns(form)))


def _apply_all(form: Form, changes: Sequence[Change]) -> list[Form]:
    """Return the views that changes make, each at the cost of having tried them all."""
    bits = math.log2(len(changes) + 1)
    views = []
    for change in changes:
        view = apply_change(form, change, bits=bits)
        if view is not None:
            views.append(view)
    return views


def find_width(form: Form) -> int:
    """Return the width of the rows of a form's first table; 0 if there is none or they differ."""
    if "T" not in form.kinds:
        return 0
    place = form.kinds.index("T")
    widths: set[int] = set()
    for case in form.cases:
        widths.update(map(len, case.values[place]))
    return widths.pop() if len(widths) == 1 else 0


def _find_turns(form: Form) -> Iterator[Change]:
    """Yield the other orders of the columns of the first table, if its rows are narrow."""
    width = find_width(form)
    if 1 < width <= _WIDEST_TURNED:
        for order in islice(permutations(range(width)), 1, None):
            yield Turned(form.kinds.index("T"), order)


def _find_shifts(form: Form) -> Iterator[Change]:
    """Yield the shift of all numbers that may be places in one of the other values."""
    for by in (-1, 1):
        places = []
        for place, kind in enumerate(form.kinds):
            if kind in ("n", "N", "T") and _are_places(form, place, first=int(by < 0)):
                places.append(place)
        if 0 < len(places) < len(form.kinds):
            yield Shifted(tuple(places), by)


def _are_places(
    form: Form,
    place: int,
    *,
    first: int,
) -> bool:
    """Whether all numbers at a place are places, counted from `first`, in another value."""
    lows = set()
    for case in form.cases:
        numbers = _list_numbers(case.values[place])
        sizes = [0]
        for value in case.values[:place] + case.values[place + 1 :]:
            sizes.append(_size(value, of_rows=False) or 0)
            sizes.append(_size(value, of_rows=True) or 0)
        if set(map(type, numbers)) != {int}:
            return False
        if min(numbers) < first or max(numbers) > max(sizes) - 1 + first:
            return False
        lows.add(min(numbers))
    # Places that are counted from 0 begin with it somewhere.
    return first == 1 or 0 in lows


def _list_numbers(value: object) -> list[Any]:
    """Return the values inside of lists, however deep."""
    if not isinstance(value, list):
        return [value]
    numbers = []
    for item in value:
        numbers += _list_numbers(item)
    return numbers


@dataclass(frozen=True, slots=True)
class Symbols:
    """The few symbols of which all texts of a form consist."""

    symbols: tuple[str, ...]
    are_words: bool


def find_symbols(form: Form) -> Symbols | None:
    """Return the symbols of a form's texts; None if there are many, or no texts."""
    texts: list[str] = []
    for case in form.cases:
        for value, kind in zip(case.values, form.kinds, strict=True):
            if kind in ("s", "S", "R"):
                texts += [text for text in _list_numbers(value) if isinstance(text, str)]
    are_words = any(" " in text.strip() for text in texts)
    symbols: set[str] = set()
    for text in texts:
        symbols.update(text.split() if are_words else text)
    # Of a few short texts, any are few.
    num_written = sum(len(text.split()) if are_words else len(text) for text in texts)
    if 1 < len(symbols) <= _MOST_SYMBOLS and num_written >= _TIMES_WRITTEN * len(symbols):
        return Symbols(tuple(sorted(symbols)), are_words)
    return None


def rename(
    form: Form,
    own: Symbols,
    other: Symbols,
) -> list[Form]:
    """Return the views of a form with another's symbols, in every order but its own."""
    if own.are_words != other.are_words or len(own.symbols) > len(other.symbols):
        return []
    orders = list(permutations(other.symbols, len(own.symbols)))
    views = []
    for order in orders:
        if order == own.symbols:
            continue
        change = Renamed(tuple(zip(own.symbols, order, strict=True)), own.are_words)
        view = apply_change(form, change, bits=math.log2(len(orders)))
        if view is not None:
            views.append(view)
    return views

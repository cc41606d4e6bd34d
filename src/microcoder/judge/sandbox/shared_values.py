"""Values that two processes of a conversation hold together: how they cross, and stay the same.

A test's process and an answer's process pass each other values, as text that neither side trusts.
Nothing in it is ever executed: it is JSON, and only data of known kinds is made of it.

Each list, dict or other object that crosses gets a number, by which both sides know it from then
on. A message carries the state of those that are new or have changed. So an argument that a
function changes is changed in the test as well, a value that *is* the argument comes back as the
argument, and a list that holds itself does no harm. What has no kind (a function, an object of the
answer's own class) stays where it is: the other side gets a handle, see `conversation`.

    part     null, bool, text, float, an integer; or [number], which names an object
    state    [number, kind, parts]: what the object holds now
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from microcoder.judge.sandbox.library_kinds import LOADERS
from microcoder.judge.sandbox.value_kinds import (
    HANDLE,
    LIBRARIES,
    OBJECT,
    Kind,
    Malformed,
    find_kind,
    find_tag,
)

_LARGEST_INT = 1 << 64
"""Integers below this are written as they are; larger ones have a kind of their own."""
_ATOMS = frozenset({type(None), bool, str, float})
"""Types that are written as they are, besides `int`."""
_MOST_HELD = 1000
"""Objects that are followed from call to call; beyond it all are forgotten, and new ones followed.

Each message compares what they hold with what they held.
"""

LIBRARIES.update(LOADERS)

_dump = json.JSONEncoder(separators=(",", ":")).encode

Part = Any
"""A value as it stands in a message: a plain one, or a list of one number."""


class Home(Protocol):
    """What a side of a conversation knows of classes and functions."""

    def find_class(self, name: str) -> type | None:
        """Return the class that both sides define under a name; None if there is none."""

    def is_common(self, kind: type) -> bool:
        """Whether both sides define this class, so that its instances can cross."""

    def find_named(self, module: str, name: str) -> object:
        """Return a class or function of a library; raises Malformed if it may not be named."""

    def wrap(self, number: int, parts: Sequence[Any]) -> object:
        """Return a handle on an object of the other side."""

    def may_name(self, value: object) -> bool:
        """Whether the other side finds this class or function by its name."""

    def is_own_module(self, name: str) -> bool:
        """Whether a module is one that the other side does not have."""

    def unwrap(self, value: object) -> Sequence[Any]:
        """Return the parts of a handle on an object of this side; CannotCross if it gets none."""


@dataclass(slots=True)
class _Held:
    """An object that both sides know."""

    value: Any
    kind: Kind
    text: str = ""
    """Its state as it was last sent or received."""


class SharedValues:
    """The objects that one side shares with the other, by number."""

    def __init__(self, home: Home, *, first_number: int) -> None:
        """Share nothing yet.

        Args:
            home: what this side knows of classes.
            first_number: 0 or 1: one side numbers its objects by even numbers, the other by odd.
        """
        self._home = home
        self._parity = first_number
        self._next = first_number
        self._held: dict[int, _Held] = {}
        self._numbers: dict[int, int] = {}
        """Number by `id()`; the objects are held, so no id is used twice."""
        self._new: list[int] = []

    def pack(self, values: Sequence[Any]) -> tuple[list[Part], list[str]]:
        """Return values as parts of a message, and the states that go with them, as JSON."""
        first = self._next
        try:
            return self._pack(values)
        except BaseException:
            # Nothing was sent, so the other side knows none of the new ones.
            self._new.clear()
            self.forget(range(first, self._next, 2))
            raise

    def _pack(self, values: Sequence[Any]) -> tuple[list[Part], list[str]]:
        known = list(self._held.items())
        parts = self._name(values)
        states = []
        for number, held in known:
            if held.kind.is_mutable:
                text = self._describe(number, held)
                if text != held.text:
                    held.text = text
                    states.append(text)
        # To describe an object may find further new ones.
        while self._new:
            number = self._new.pop()
            held = self._held[number]
            held.text = self._describe(number, held)
            states.append(held.text)
        return parts, states

    def unpack(self, parts: object, states: object) -> list[Any]:
        """Return the values that another side has packed, once its states are in force.

        Raises:
            Malformed: they are not what `pack` makes.
        """
        rows = self._read_rows(states)
        for number, (kind, _) in rows.items():
            if kind.is_mutable and number not in self._held:
                self._hold(number, self._make_empty(kind, rows[number][1]), kind)
        for number, (kind, _) in rows.items():
            if not kind.is_mutable:
                self._build(number, rows)
        # What is hashed comes last: by then all that it may hold is whole.
        for is_hashed in (False, True):
            for number, (kind, inner) in rows.items():
                if kind.is_mutable and kind.is_hashed is is_hashed:
                    self._fill(number, kind, inner)
        return self._values(_check_list(parts))

    def find(self, number: object) -> Any:
        """Return the object with a number; raises Malformed if there is none."""
        held = self._held.get(number) if type(number) is int else None
        if held is None:
            raise Malformed("an object that is not known")
        return held.value

    def number_of(self, value: object) -> int:
        """Return the number of an object that both sides know."""
        return self._numbers[id(value)]

    def forget(self, numbers: Iterable[int]) -> None:
        """Follow these objects no longer; should one of them cross again, it is a new one."""
        for number in numbers:
            held = self._held.pop(number, None)
            if held is not None and self._numbers.get(id(held.value)) == number:
                del self._numbers[id(held.value)]

    def sweep(self) -> list[int]:
        """Forget what nobody else here holds; return the numbers, for the other side to forget.

        A change to such an object is seen by nobody. Own objects behind handles stay.
        """
        swept: list[int] = []
        while True:
            unused = []
            for number, held in self._held.items():
                is_own_handle = held.kind is HANDLE and number % 2 == self._parity
                # The table's reference, and that of the question.
                if not is_own_handle and sys.getrefcount(held.value) <= 2:
                    unused.append(number)
            if not unused:
                break
            self.forget(unused)
            swept += unused
        if len(self._held) > _MOST_HELD:
            rest = [number for number, held in self._held.items() if held.kind is not HANDLE]
            self.forget(rest)
            swept += rest
        return swept

    def _name(self, values: Iterable[Any]) -> list[Part]:
        """Return values as parts; objects that are new get a number."""
        parts: list[Part] = []
        for value in values:
            kind = type(value)
            is_small = kind is int and -_LARGEST_INT < value < _LARGEST_INT
            if is_small or kind in _ATOMS:
                parts.append(value)
            elif id(value) in self._numbers:
                parts.append([self._numbers[id(value)]])
            else:
                parts.append(self._introduce(value))
        return parts

    def _introduce(self, value: Any) -> Part:
        """Give a new object a number; a text or a number of a subclass becomes a plain one."""
        kind = find_kind(value, self._home)
        if isinstance(kind, Kind):
            number = self._next
            self._next += 2
            self._hold(number, value, kind)
            self._new.append(number)
            return [number]
        (plain,) = self._name([kind.value])
        return plain

    def _describe(self, number: int, held: _Held) -> str:
        """Return the state of an object as JSON."""
        kind = held.kind
        source = self._home.unwrap(held.value) if kind is HANDLE else kind.take_apart(held.value)
        parts = self._name(source)
        if kind.is_unordered:
            # The order of a set differs from process to process.
            parts.sort(key=_dump)
        return _dump([number, kind.tag, parts])

    def _hold(self, number: int, value: Any, kind: Kind) -> None:
        self._held[number] = _Held(value, kind)
        self._numbers[id(value)] = number

    def _read_rows(self, states: object) -> dict[int, tuple[Kind, list[Part]]]:
        """Return kind and parts by number; raises Malformed unless each may be set."""
        rows: dict[int, tuple[Kind, list[Part]]] = {}
        for state in _check_list(states):
            number, tag, parts = _check_list(state)
            if type(number) is not int or type(tag) is not str or number < 0:
                raise Malformed("a state without a number")
            kind = find_tag(tag)
            if kind is None or number in rows:
                raise Malformed(f"an object of the kind {tag[:40]!r}")
            held = self._held.get(number)
            if held is None and number % 2 == self._parity:
                raise Malformed("a new object with a number of this side")
            if held is not None and not (held.kind is kind and kind.is_mutable):
                raise Malformed("another state of an object that does not change")
            rows[number] = (kind, _check_list(parts))
        return rows

    def _make_empty(self, kind: Kind, parts: Sequence[Part]) -> Any:
        """Return a new object without what it is to hold."""
        if kind is not OBJECT:
            return kind.make(parts)
        name = parts[0] if parts else None
        own: Any = self._home.find_class(name) if isinstance(name, str) else None
        if own is None:
            raise Malformed("an object of a class that is not known here")
        return own.__new__(own)

    def _build(self, first: int, rows: dict[int, tuple[Kind, list[Part]]]) -> None:
        """Make an object that does not change, after those of that sort which it holds."""
        stack = [first]
        opened: set[int] = set()
        while stack:
            number = stack[-1]
            if number in self._held:
                stack.pop()
                continue
            kind, parts = rows[number]
            missing = []
            for part in parts:
                if type(part) is list and _number_in(part) not in self._held:
                    missing.append(_number_in(part))
            if not missing:
                self._hold(number, self._make(number, kind, parts), kind)
                continue
            opened.add(number)
            if not opened.isdisjoint(missing) or not rows.keys() >= set(missing):
                raise Malformed("objects that hold each other, or one that is not known")
            stack += missing

    def _make(self, number: int, kind: Kind, parts: Sequence[Part]) -> Any:
        values = self._values(parts)
        if kind is HANDLE:
            return self._home.wrap(number, values)
        try:
            return kind.make_in(self._home, values)
        except Malformed:
            raise
        # Whatever a wrong state provokes is the sender's fault.
        except Exception as error:
            raise Malformed(f"{kind.tag}: {type(error).__name__}") from None

    def _fill(self, number: int, kind: Kind, parts: list[Part]) -> None:
        held = self._held[number]
        try:
            kind.fill(held.value, self._values(parts))
        except Malformed:
            raise
        except Exception as error:
            raise Malformed(f"{kind.tag}: {type(error).__name__}") from None
        held.text = _dump([number, kind.tag, parts])

    def _values(self, parts: Sequence[Part]) -> list[Any]:
        values = []
        for part in parts:
            values.append(self.find(_number_in(part)) if type(part) is list else part)
        if any(type(value) is dict for value in parts):
            raise Malformed("an object of JSON")
        return values


def _number_in(part: list[Any]) -> int:
    if len(part) != 1 or type(part[0]) is not int:
        raise Malformed("a list that is no number of an object")
    return part[0]


def _check_list(value: object) -> list[Any]:
    if type(value) is not list:
        raise Malformed("something else than a list")
    return value

"""Kinds of data that cross between a test's process and an answer's: parts of each, and back.

Only data of these kinds is ever made of what the other side writes. A value of a subclass is taken
apart by the methods of its base class, so that an answer's own `__eq__`, `__iter__` or `__class__`
stays behind. Kinds of numpy and pandas are in `library_kinds`, which is loaded where one occurs.
"""

from __future__ import annotations

import array
import base64
import collections
import datetime
import decimal
import fractions
import random
import re
import sys
import types
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

_MOST_SHOWN = 500
"""Most characters of an exception's text."""


class Malformed(ValueError):
    """The other side wrote something that is no message."""


class CannotCross(TypeError):
    """A value that the other process cannot be given."""


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """A kind of data: how an object is taken apart and made of its parts."""

    tag: str
    take_apart: Callable[[Any], Iterable[Any]]
    make: Callable[[Sequence[Any]], Any]
    """Returns an object of these values; of a mutable kind an empty one, given the parts."""
    fill: Callable[[Any, list[Any]], object] = field(default=lambda value, parts: None)
    """Gives a mutable object new content."""
    is_mutable: bool = False
    is_hashed: bool = False
    """Whether it holds keys, which must be whole before it is filled."""
    is_unordered: bool = False
    make_at: Callable[[Any, Sequence[Any]], Any] | None = None
    """Makes it by what a side knows, in place of `make`."""

    def make_in(self, home: Any, values: Sequence[Any]) -> Any:
        """Return an object that does not change, made of these values."""
        return self.make(values) if self.make_at is None else self.make_at(home, values)


@dataclass(frozen=True, slots=True)
class Plain:
    """What a text or a number of a subclass is without it."""

    value: Any


def _pairs_of(value: Any) -> list[Any]:
    parts: list[Any] = []
    for key, item in dict.items(value):
        parts += (key, item)
    return parts


def _fill_list(value: Any, parts: list[Any]) -> None:
    list.clear(value)
    list.extend(value, parts)


def _fill_set(value: Any, parts: list[Any]) -> None:
    set.clear(value)
    set.update(value, parts)


def _fill_dict(value: Any, parts: list[Any]) -> None:
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    dict.clear(value)
    for key, item in pairs:
        dict.__setitem__(value, key, item)


def _take_default_dict(value: Any) -> list[Any]:
    return [vars(collections.defaultdict)["default_factory"].__get__(value), *_pairs_of(value)]


def _fill_default_dict(value: Any, parts: list[Any]) -> None:
    value.default_factory = parts[0]
    _fill_dict(value, parts[1:])


def _take_ordered_dict(value: Any) -> list[Any]:
    parts: list[Any] = []
    for key in collections.OrderedDict.__iter__(value):
        parts += (key, dict.__getitem__(value, key))
    return parts


def _fill_ordered_dict(value: Any, parts: list[Any]) -> None:
    collections.OrderedDict.clear(value)
    for key, item in zip(parts[::2], parts[1::2], strict=True):
        collections.OrderedDict.__setitem__(value, key, item)


def _take_deque(value: Any) -> list[Any]:
    return [value.maxlen, *collections.deque.__iter__(value)]


def _fill_deque(value: Any, parts: list[Any]) -> None:
    collections.deque.clear(value)
    collections.deque.extend(value, parts[1:])


def _write_bytes(value: Any) -> list[str]:
    return [base64.b64encode(memoryview(value)).decode()]


def _read_bytes(parts: Sequence[Any]) -> bytes:
    (text,) = parts
    return base64.b64decode(text, validate=True)


def _fill_bytearray(value: Any, parts: list[Any]) -> None:
    bytearray.__setitem__(value, slice(None), _read_bytes(parts))


def _take_array(value: Any) -> list[Any]:
    return [value.typecode, base64.b64encode(array.array.tobytes(value)).decode()]


def _fill_array(value: Any, parts: list[Any]) -> None:
    data = base64.b64decode(parts[1], validate=True)
    del value[:]
    value.frombytes(data)


def _take_named_tuple(value: Any) -> list[Any]:
    names = tuple(type(value)._fields)
    return [type(value).__name__, len(names), *names, *tuple.__iter__(value)]


def _make_named_tuple(parts: Sequence[Any]) -> Any:
    name, count, *rest = parts
    fields = [str(part) for part in rest[:count]]
    make: Any = collections.namedtuple
    return make(str(name), fields)._make(rest[count:])


def _take_time(value: Any) -> list[Any]:
    parts = [value.hour, value.minute, value.second, value.microsecond]
    return [*parts, value.tzinfo, value.fold]


def _make_time(parts: Sequence[Any]) -> datetime.time:
    *numbers, fold = parts
    return datetime.time(*numbers, fold=fold)


def _take_datetime(value: Any) -> list[Any]:
    return [value.year, value.month, value.day, *_take_time(value)]


def _make_datetime(parts: Sequence[Any]) -> datetime.datetime:
    *numbers, fold = parts
    return datetime.datetime(*numbers, fold=fold)


def _take_zone(value: Any) -> list[Any]:
    return [value.utcoffset(None), value.tzname(None)]


def _take_complex(value: Any) -> list[Any]:
    return [complex.real.__get__(value), complex.imag.__get__(value)]


def _make_dict_view(tag: str) -> Callable[[Sequence[Any]], Any]:
    def make(parts: Sequence[Any]) -> Any:
        if tag == "keys":
            return dict.fromkeys(parts).keys()
        if tag == "values":
            return dict(enumerate(parts)).values()
        return dict(parts).items()

    return make


def _take_pattern(value: Any) -> list[Any]:
    return [value.pattern, value.flags]


def _take_object(value: Any) -> list[Any]:
    kind = type(value)
    fields = dict(getattr(value, "__dict__", {}))
    for base in kind.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                fields[name] = getattr(value, name)
    parts: list[Any] = [kind.__name__]
    for name, item in fields.items():
        if not name.startswith("__"):
            parts += (name, item)
    return parts


def _fill_object(value: Any, parts: list[Any]) -> None:
    getattr(value, "__dict__", {}).clear()
    for name, item in zip(parts[1::2], parts[2::2], strict=True):
        if not isinstance(name, str) or name.startswith("__"):
            raise Malformed("an attribute without a name")
        object.__setattr__(value, name, item)


def _take_namespace(value: Any) -> list[Any]:
    parts: list[Any] = []
    for name, item in vars(value).items():
        parts += (name, item)
    return parts


def _fill_namespace(value: Any, parts: list[Any]) -> None:
    value.__dict__.clear()
    for name, item in zip(parts[::2], parts[1::2], strict=True):
        value.__dict__[str(name)] = item


def _take_random(value: Any) -> list[Any]:
    version, state, gauss = random.Random.getstate(value)
    return [version, gauss, *state]


def _fill_random(value: Any, parts: list[Any]) -> None:
    version, gauss, *state = parts
    random.Random.setstate(value, (version, tuple(state), gauss))


def _refuse_empty(parts: Sequence[Any]) -> Any:
    raise Malformed("no object of that kind is made by itself")


def _take_named(value: Any) -> list[Any]:
    if isinstance(value, types.ModuleType):
        return [value.__name__, ""]
    return [value.__module__, value.__qualname__]


def _make_named(home: Any, parts: Sequence[Any]) -> Any:
    module, name = parts
    if not isinstance(module, str) or not isinstance(name, str):
        raise Malformed("something without a name")
    return home.find_named(module, name)


def describe_error(error: BaseException) -> str:
    """Return the type and the text of an exception, as the last line of a traceback has them."""
    try:
        text = str(error)
    except Exception:
        text = ""
    name = type(error).__name__
    return f"{name}: {text[:_MOST_SHOWN]}" if text else name


def _take_exception_class(kind: type) -> list[Any]:
    classes: list[Any] = []
    for base in kind.__mro__[:-1]:
        classes += (base.__module__, base.__name__)
    return classes


def _make_exception_class(home: Any, names: Sequence[Any]) -> type[BaseException]:
    """Return the first of some exception classes that is known here, or one derived from it.

    The other side's own are derived, by the same name, and made once.
    """
    if not names or not all(isinstance(name, str) for name in names):
        raise Malformed("an exception without a class")
    key = tuple(names)
    if key not in home.exceptions:
        known = None
        kind: type[BaseException] = Exception
        for module, name in zip(names[::2], names[1::2], strict=True):
            known = find_exception(home, module, name)
            if known is not None:
                kind = known
                break
        # The first is another one: not of the same name, or not found.
        if known is None or (names[0], names[1]) != (module, name):
            kind = _derive(names[1], kind)
        home.exceptions[key] = kind
    return home.exceptions[key]


def _derive(name: str, base: type[BaseException]) -> type[BaseException]:
    def show(error: BaseException) -> str:
        text = error.__dict__.get(_TEXT)
        return base.__str__(error) if text is None else text

    return type(name, (base,), {"__module__": "solution", "__str__": show})


_TEXT = "_text"
"""Attribute of an exception of a class of the other side: its text, which that class has made."""


def _take_exception(error: Any) -> list[Any]:
    classes = _take_exception_class(type(error))
    try:
        text = str(error)[:_MOST_SHOWN]
    except Exception:
        text = ""
    arguments = vars(BaseException)["args"].__get__(error)
    fields: list[Any] = []
    for name, value in dict(getattr(error, "__dict__", {})).items():
        if not name.startswith("_"):
            fields += (name, value)
    head = [len(classes) // 2, *classes, text, len(arguments), *arguments]
    return [*head, *fields]


def _make_exception(home: Any, parts: Sequence[Any]) -> BaseException:
    """Return an exception of the first of its classes that is known here.

    One of the other side's own becomes a new class of the same name, derived from that.
    """
    count = parts[0]
    names = parts[1 : 1 + 2 * count]
    text, num_arguments = parts[1 + 2 * count : 3 + 2 * count]
    rest = list(parts[3 + 2 * count :])
    arguments = tuple(rest[:num_arguments])
    fields = rest[num_arguments:]
    kind = _make_exception_class(home, names)
    error = _construct(kind, arguments)
    if kind.__module__ == "solution" and isinstance(text, str):
        error.__dict__[_TEXT] = text
    for name, value in zip(fields[::2], fields[1::2], strict=True):
        if isinstance(name, str) and not name.startswith("_"):
            error.__dict__[name] = value
    return error


def _construct(kind: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    try:
        error = kind(*arguments)
    except Exception:
        error = kind.__new__(kind)
    error.args = arguments
    return error


def find_exception(home: Any, module: object, name: object) -> type[BaseException] | None:
    """Return an exception's class: one that both sides define, or of a library."""
    if not isinstance(module, str) or not isinstance(name, str):
        raise Malformed("an exception without a class")
    known = home.find_class(name)
    # Only what is loaded already: a name must not have anything imported.
    if known is None and not home.is_own_module(module):
        known = getattr(sys.modules.get(module), name, None)
    if isinstance(known, type) and issubclass(known, BaseException):
        return known
    return None


NAMED = Kind("named", _take_named, _refuse_empty, make_at=_make_named)
"""A class, a function or a module of a library, by its name."""
OBJECT = Kind("object", _take_object, _refuse_empty, _fill_object, is_mutable=True)
"""An object of a class that both sides define, by its attributes."""
EXCEPTION_CLASS = Kind(
    "exception class", _take_exception_class, _refuse_empty, make_at=_make_exception_class
)
EXCEPTION = Kind("exception", _take_exception, _refuse_empty, make_at=_make_exception)
HANDLE = Kind("handle", list, _refuse_empty)
"""Anything else: it stays where it is."""

_KEYS = Kind("keys", list, _make_dict_view("keys"))
_VALUES = Kind("values", list, _make_dict_view("values"))
_ITEMS = Kind("items", list, _make_dict_view("items"))
_INT = Kind("int", lambda value: [hex(value)], lambda parts: int(parts[0], 16))
_LIST = Kind("list", list.__iter__, lambda parts: [], _fill_list, is_mutable=True)
_TUPLE = Kind("tuple", tuple.__iter__, tuple)
_DICT = Kind("dict", _pairs_of, lambda parts: {}, _fill_dict, is_mutable=True, is_hashed=True)
_SET = Kind(
    "set",
    set.__iter__,
    lambda parts: set(),
    _fill_set,
    is_mutable=True,
    is_hashed=True,
    is_unordered=True,
)
_FROZENSET = Kind("frozenset", frozenset.__iter__, frozenset, is_unordered=True)


def _take_bounds(value: Any) -> list[Any]:
    """Return start, stop and step of a range or a slice."""
    return [value.start, value.stop, value.step]


def take_text(value: Any) -> list[Any]:
    """Return the text of an object that is made of it again."""
    return [str(value)]


_BYTEARRAY = Kind(
    "bytearray", _write_bytes, lambda parts: bytearray(), _fill_bytearray, is_mutable=True
)
_DEQUE = Kind(
    "deque",
    _take_deque,
    lambda parts: collections.deque(maxlen=parts[0]),
    _fill_deque,
    is_mutable=True,
)
_ARRAY = Kind(
    "array", _take_array, lambda parts: array.array(parts[0]), _fill_array, is_mutable=True
)
_COUNTER = Kind(
    "Counter",
    _pairs_of,
    lambda parts: collections.Counter(),
    _fill_dict,
    is_mutable=True,
    is_hashed=True,
)
_DEFAULT_DICT = Kind(
    "defaultdict",
    _take_default_dict,
    lambda parts: collections.defaultdict(),
    _fill_default_dict,
    is_mutable=True,
    is_hashed=True,
)
_ORDERED_DICT = Kind(
    "OrderedDict",
    _take_ordered_dict,
    lambda parts: collections.OrderedDict(),
    _fill_ordered_dict,
    is_mutable=True,
    is_hashed=True,
)
NAMED_TUPLE = Kind("namedtuple", _take_named_tuple, _make_named_tuple)

_BY_TYPE: dict[type, Kind] = {
    list: _LIST,
    tuple: _TUPLE,
    dict: _DICT,
    set: _SET,
    frozenset: _FROZENSET,
    int: _INT,
    complex: Kind("complex", _take_complex, lambda parts: complex(*parts)),
    bytes: Kind("bytes", _write_bytes, _read_bytes),
    bytearray: _BYTEARRAY,
    range: Kind("range", _take_bounds, lambda parts: range(*parts)),
    slice: Kind("slice", _take_bounds, lambda parts: slice(*parts)),
    type(...): Kind("ellipsis", lambda value: [], lambda parts: ...),
    type(NotImplemented): Kind("notimplemented", lambda value: [], lambda parts: NotImplemented),
    collections.deque: _DEQUE,
    collections.Counter: _COUNTER,
    collections.defaultdict: _DEFAULT_DICT,
    collections.OrderedDict: _ORDERED_DICT,
    type({}.keys()): _KEYS,
    type({}.values()): _VALUES,
    type({}.items()): _ITEMS,
    array.array: _ARRAY,
    decimal.Decimal: Kind("decimal", take_text, lambda parts: decimal.Decimal(parts[0])),
    fractions.Fraction: Kind(
        "fraction",
        lambda value: [value.numerator, value.denominator],
        lambda parts: fractions.Fraction(*parts),
    ),
    datetime.date: Kind(
        "date",
        lambda value: [value.year, value.month, value.day],
        lambda parts: datetime.date(*parts),
    ),
    datetime.time: Kind("time", _take_time, _make_time),
    datetime.datetime: Kind("datetime", _take_datetime, _make_datetime),
    datetime.timedelta: Kind(
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: datetime.timedelta(*parts),
    ),
    datetime.timezone: Kind("timezone", _take_zone, lambda parts: datetime.timezone(*parts)),
    types.SimpleNamespace: Kind(
        "namespace",
        _take_namespace,
        lambda parts: types.SimpleNamespace(),
        _fill_namespace,
        is_mutable=True,
    ),
    random.Random: Kind(
        "random", _take_random, lambda parts: random.Random(), _fill_random, is_mutable=True
    ),
    uuid.UUID: Kind("uuid", take_text, lambda parts: uuid.UUID(parts[0])),
    re.Pattern: Kind("pattern", _take_pattern, lambda parts: re.compile(*parts)),
}
"""Kind of each type of data."""
_BASES = (BaseException, *_BY_TYPE)
"""Types whose subclasses are data as well."""
_NUMBERS_AND_TEXTS: tuple[type, ...] = (str, int, float)
"""Types whose subclasses become plain ones."""
_OTHERS = (NAMED, OBJECT, EXCEPTION, EXCEPTION_CLASS, HANDLE)
BY_TAG = {kind.tag: kind for kind in (*_BY_TYPE.values(), *_OTHERS)}
BY_TAG[NAMED_TUPLE.tag] = NAMED_TUPLE
LIBRARIES: dict[str, Callable[[], dict[type, Kind]]] = {}
"""Packages with kinds of their own, and what loads these; see `library_kinds`."""
_LOADED: dict[str, dict[type, Kind]] = {}
_FUNCTIONS = (types.BuiltinFunctionType, types.FunctionType, type(str.upper), type(list.__len__))
"""Types of functions that have a name."""


def find_kind(value: Any, home: Any) -> Kind | Plain:
    """Return the kind of an object, or what it is without its subclass.

    Its real type decides, not what it says of itself.
    """
    kind = type(value)
    known = _BY_TYPE.get(kind)
    if known is not None:
        return known
    if home.is_common(kind) and not issubclass(kind, BaseException):
        return OBJECT
    module = kind.__module__
    if isinstance(module, str) and module.partition(".")[0] in LIBRARIES:
        by_type = load_library(module.partition(".")[0])
        known = next((by_type[base] for base in kind.__mro__ if base in by_type), None)
    if known is None:
        known = _find_base(value, kind)
    if known is not None:
        return known
    if _is_named(value, home) and home.may_name(value):
        return NAMED
    if isinstance(value, type) and issubclass(value, BaseException):
        return EXCEPTION_CLASS
    return HANDLE


def _find_base(value: Any, kind: type) -> Kind | Plain | None:
    """Return the kind of the data that a type is derived from."""
    for base in _NUMBERS_AND_TEXTS:
        if issubclass(kind, base):
            return Plain(_strip(value, base))
    if issubclass(kind, tuple) and isinstance(getattr(kind, "_fields", None), tuple):
        return NAMED_TUPLE
    for base in kind.__mro__[1:]:
        if base in _BY_TYPE:
            return _BY_TYPE[base]
    return EXCEPTION if issubclass(kind, BaseException) else None


def _strip(value: Any, base: type) -> Any:
    if base is str:
        return str.__str__(value)
    return int.__add__(value, 0) if base is int else float.__add__(value, 0.0)


def load_library(name: str) -> dict[type, Kind]:
    """Return the kinds of a package's types; none where it is not installed, or has none."""
    if name not in _LOADED:
        load = LIBRARIES.get(name)
        _LOADED[name] = load() if load is not None else {}
        BY_TAG.update({kind.tag: kind for kind in _LOADED[name].values()})
    return _LOADED[name]


def find_tag(tag: str) -> Kind | None:
    """Return the kind with a tag, such as `list` or `numpy.array`; None if there is none."""
    if tag not in BY_TAG:
        load_library(tag.partition(".")[0])
    return BY_TAG.get(tag)


def _is_named(value: Any, home: Any) -> bool:
    """Whether a value is a class, function or module of a library, which its name finds."""
    if isinstance(value, types.ModuleType):
        return sys.modules.get(value.__name__) is value and not home.is_own_module(value.__name__)
    if not isinstance(value, (type, *_FUNCTIONS)):
        return False
    module = getattr(value, "__module__", None)
    name = getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or home.is_own_module(module):
        return False
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is value

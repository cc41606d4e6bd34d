"""Kinds of data of numpy, pandas and rarer modules that cross between two processes.

They are made by public constructors of plain parts, never of a pickle. The packages are those that
programs may import; where one is missing, its kinds are too.
"""

from __future__ import annotations

import base64
import importlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from microcoder.judge.sandbox.value_kinds import (
    CannotCross,
    Kind,
    Malformed,
    load_library,
    take_text,
)

_PLAIN_TYPES = "biufcmMSU"
"""Letters of numpy's types of numbers, times and texts, which are sent as bytes."""
_MOST_DIMENSIONS = 32
"""Most dimensions of an array."""
_EXACT_TIME = "ns"
"""Unit in which a time of pandas is sent."""


def _import(name: str) -> Any:
    """Return a package; None where it is not installed."""
    try:
        return importlib.import_module(name)
    except Exception:
        return None


class _Arrays:
    """How numpy's data is taken apart and made."""

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy

    def list_kinds(self) -> dict[type, Kind]:
        """Return the kind of each type."""
        array = Kind(
            "numpy.array", self._take_array, self._make_array, self._fill_array, is_mutable=True
        )
        return {
            self._numpy.ndarray: array,
            self._numpy.generic: Kind("numpy.scalar", self._take_scalar, self._make_scalar),
            self._numpy.dtype: Kind(
                "numpy.dtype", lambda value: [_write_type(value)], self._read_type
            ),
        }

    def _take_array(self, value: Any) -> list[Any]:
        plain = self._numpy.asarray(value)
        head = [_write_type(plain.dtype), plain.ndim, *plain.shape]
        if plain.dtype.kind == "O":
            return [*head, *plain.ravel().tolist()]
        data = self._numpy.ascontiguousarray(plain).tobytes()
        return [*head, base64.b64encode(data).decode()]

    def _make_array(self, parts: Sequence[Any]) -> Any:
        return self._numpy.empty(_read_shape(parts), self._read_type(parts))

    def _fill_array(self, value: Any, parts: list[Any]) -> None:
        shape = _read_shape(parts)
        kind = self._read_type(parts)
        items = parts[2 + len(shape) :]
        if value.shape != shape or value.dtype != kind:
            raise Malformed("an array of another shape than before")
        if kind.kind == "O":
            content = self._numpy.empty(len(items), dtype=object)
            for place, item in enumerate(items):
                content[place] = item
        else:
            (text,) = items
            content = self._numpy.frombuffer(base64.b64decode(text, validate=True), kind)
        value[...] = content.reshape(shape)

    def _take_scalar(self, value: Any) -> list[Any]:
        return [_write_type(value.dtype), base64.b64encode(value.tobytes()).decode()]

    def _make_scalar(self, parts: Sequence[Any]) -> Any:
        data = base64.b64decode(parts[1], validate=True)
        return self._numpy.frombuffer(data, self._read_type(parts))[0]

    def _read_type(self, parts: Sequence[Any]) -> Any:
        name = parts[0]
        if not isinstance(name, str) or not name.isascii():
            raise Malformed("an array without a type")
        if name.startswith("["):
            fields = [(str(field), str(form)) for field, form in json.loads(name)]
            kind = self._numpy.dtype(fields)
            is_plain = all(kind[field].kind in _PLAIN_TYPES for field, _ in fields)
        else:
            kind = self._numpy.dtype(name)
            is_plain = kind.kind in _PLAIN_TYPES + "O"
        if not is_plain:
            raise Malformed("an array of another type")
        return kind


def _write_type(kind: Any) -> str:
    """Return a type of an array as text; CannotCross if it holds more than numbers and texts."""
    if kind.fields is None and kind.kind in _PLAIN_TYPES + "O":
        return kind.str
    fields = [(name, form.str) for name, (form, *_) in (kind.fields or {}).items()]
    if not fields or not all(form.kind in _PLAIN_TYPES for form, *_ in kind.fields.values()):
        raise CannotCross(f"an array of {kind}")
    return json.dumps(fields)


def _read_shape(parts: Sequence[Any]) -> tuple[int, ...]:
    count = parts[1]
    if type(count) is not int or not 0 <= count <= _MOST_DIMENSIONS:
        raise Malformed("an array without a shape")
    shape = tuple(parts[2 : 2 + count])
    if len(shape) != count or not all(type(size) is int and size >= 0 for size in shape):
        raise Malformed("an array without a shape")
    # What follows holds each item, or all bytes in one text.
    longest = max([len(parts), *(len(part) for part in parts if type(part) is str)])
    if math.prod(shape) > longest:
        raise Malformed("an array that is larger than its content")
    return shape


class _Tables:
    """How pandas' data is taken apart and made."""

    def __init__(self, pandas: Any) -> None:
        self._pandas = pandas

    def list_kinds(self) -> dict[type, Kind]:
        """Return the kind of each type."""
        pandas = self._pandas
        return {
            pandas.Series: Kind(
                "pandas.Series",
                self._take_series,
                lambda parts: pandas.Series(dtype=object),
                lambda value, parts: value._update_inplace(self._build_series(parts)),
                is_mutable=True,
                is_hashed=True,
            ),
            pandas.DataFrame: Kind(
                "pandas.DataFrame",
                self._take_frame,
                lambda parts: pandas.DataFrame(),
                lambda value, parts: value._update_inplace(self._build_frame(parts)),
                is_mutable=True,
                is_hashed=True,
            ),
            pandas.Index: Kind("pandas.Index", self._take_index, self._make_index),
            pandas.Timestamp: Kind("pandas.Timestamp", self._take_stamp, self._make_stamp),
            pandas.Timedelta: Kind("pandas.Timedelta", self._take_delta, self._make_delta),
            type(pandas.NaT): Kind("pandas.NaT", lambda value: [], lambda parts: pandas.NaT),
            type(pandas.NA): Kind("pandas.NA", lambda value: [], lambda parts: pandas.NA),
        }

    def _take_values(self, value: Any) -> list[Any]:
        """Return the type of a column or an index as text, and its items."""
        return [str(value.dtype), *value.astype(object).tolist()]

    def _take_index(self, value: Any) -> list[Any]:
        if isinstance(value, self._pandas.RangeIndex):
            return ["range", value.name, value.start, value.stop, value.step]
        if isinstance(value, self._pandas.MultiIndex):
            return ["multi", tuple(value.names), *value.tolist()]
        return ["plain", value.name, *self._take_values(value)]

    def _make_index(self, parts: Sequence[Any]) -> Any:
        form, name, *rest = parts
        if form == "range":
            return self._pandas.RangeIndex(*rest, name=name)
        if form == "multi":
            return self._pandas.MultiIndex.from_tuples(rest, names=list(name))
        return self._pandas.Index(rest[1:], dtype=rest[0], name=name)

    def _take_series(self, value: Any) -> list[Any]:
        return [value.name, value.index, *self._take_values(value)]

    def _build_series(self, parts: Sequence[Any]) -> Any:
        name, index, dtype, *items = parts
        return self._pandas.Series(items, index=index, dtype=dtype, name=name)

    def _take_frame(self, value: Any) -> list[Any]:
        columns = []
        for place in range(value.shape[1]):
            columns.append(tuple(self._take_values(value.iloc[:, place])))
        return [value.index, value.columns, *columns]

    def _build_frame(self, parts: Sequence[Any]) -> Any:
        index, names, *columns = parts
        made = {}
        for place, (dtype, *items) in enumerate(columns):
            made[place] = self._pandas.Series(items, index=index, dtype=dtype)
        frame = self._pandas.DataFrame(made, index=index)
        frame.columns = names
        return frame

    def _take_stamp(self, value: Any) -> list[Any]:
        return [value.as_unit(_EXACT_TIME).value, str(value.tz or ""), value.unit]

    def _make_stamp(self, parts: Sequence[Any]) -> Any:
        nanoseconds, zone, unit = parts
        stamp = self._pandas.Timestamp(nanoseconds, unit=_EXACT_TIME)
        if zone:
            stamp = stamp.tz_localize("UTC").tz_convert(zone)
        return stamp.as_unit(unit)

    def _take_delta(self, value: Any) -> list[Any]:
        return [value.as_unit(_EXACT_TIME).value, value.unit]

    def _make_delta(self, parts: Sequence[Any]) -> Any:
        return self._pandas.Timedelta(parts[0], unit=_EXACT_TIME).as_unit(parts[1])


def _load_numpy() -> dict[type, Kind]:
    package = _import("numpy")
    return {} if package is None else _Arrays(package).list_kinds()


def _load_pandas() -> dict[type, Kind]:
    package = _import("pandas")
    # Columns hold numbers of numpy.
    load_library("numpy")
    return {} if package is None else _Tables(package).list_kinds()


def _load_zones() -> dict[type, Kind]:
    zone = importlib.import_module("zoneinfo").ZoneInfo

    def take_apart(value: Any) -> list[Any]:
        return [value.key]

    def make(parts: Sequence[Any]) -> Any:
        return zone(*parts)

    return {zone: Kind("zoneinfo.zone", take_apart, make)}


def _load_paths() -> dict[type, Kind]:
    pathlib = importlib.import_module("pathlib")
    # Of this system, as a path of another cannot be made.
    pure = type(pathlib.PurePath())

    def make_pure(parts: Sequence[Any]) -> Any:
        return pure(*parts)

    def make_real(parts: Sequence[Any]) -> Any:
        return pathlib.Path(*parts)

    return {
        pathlib.PurePath: Kind("pathlib.pure", take_text, make_pure),
        pathlib.Path: Kind("pathlib.path", take_text, make_real),
    }


LOADERS: Mapping[str, Callable[[], dict[type, Kind]]] = {
    "numpy": _load_numpy,
    "pandas": _load_pandas,
    "zoneinfo": _load_zones,
    "pathlib": _load_paths,
}
"""What loads the kinds of each package."""

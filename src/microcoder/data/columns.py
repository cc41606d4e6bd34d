"""Rows of a set that no format knows, as a format reads them: other names of columns, and parts kept in other files.

[sources.columns]                       # what the format reads = where the row has it
question = "task.text"
input_output = "io"

[[sources.join]]                        # HardTests keeps its tests apart
path = "hf://datasets/sigcp/hardtests_tests"
key = "pid"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import Field

from microcoder.data import rowfiles
from microcoder.data.formats.row import Malformed
from microcoder.data.formats.text import shorten
from microcoder.data.rowfiles import FilePart, RawRow
from microcoder.judge.core.config import Config
from microcoder.judge.core.errors import DataError, suggest

_ROWS_TOGETHER = 64
_MAX_SHOWN = 12
_MISSING = object()


class JoinSettings(Config):
    """Further rows that belong to the rows of a source, in files of their own."""

    path: str = Field(min_length=1)
    """A file, a folder, or `hf://datasets/owner/name[@revision]/config/split`."""
    key: str = Field(min_length=1)
    """The column that says which row of the source one belongs to."""
    row_key: str = ""
    """The column of the source's rows that it is compared with, `a.b` inside an object; `key` where none is given."""
    into: str = ""
    """A column that takes them as a list, if many belong to one row; if none is given, one belongs to each row
    and its columns become the row's, save those that the row has itself."""


@dataclass(frozen=True, slots=True)
class Joined:
    """Files that rows are joined from, and where each key's rows are."""

    settings: JoinSettings
    root: Path
    files: tuple[str, ...]
    places: dict[str, list[FilePart]] = field(default_factory=dict, compare=False, repr=False)
    """Filled when the first row is joined."""

    def fetch(self, keys: Iterable[str]) -> dict[str, list[Mapping[str, Any]]]:
        """Return the rows of each key; keys that none has are left out."""
        if not self.places:
            self.places.update(_index(self))
        return {key: list(self._read(self.places[key])) for key in keys if key in self.places}

    def _read(self, parts: Iterable[FilePart]) -> Iterator[Mapping[str, Any]]:
        for part in parts:
            for row in rowfiles.read_part(self.root, part):
                if row.values is None:
                    raise DataError(f"join {self.settings.path}: {row.place} cannot be read: {row.fault}")
                yield row.values


def _index(joined: Joined) -> dict[str, list[FilePart]]:
    """Find which rows belong to which key; of parquet only that column is read."""
    places: dict[str, list[FilePart]] = {}
    seen: set[str] = set()
    for file in joined.files:
        for part, key in _keys(joined, file, seen):
            parts = places.setdefault(key, [])
            last = parts[-1] if parts else None
            if last is not None and last.file == part.file and last.first + last.num_rows == part.first:
                parts[-1] = replace(last, num_rows=last.num_rows + 1)
            else:
                parts.append(part)
    if not places:
        columns = ", ".join(sorted(seen)[:_MAX_SHOWN])
        raise DataError(f"join {joined.settings.path} has no column {joined.settings.key!r}; it has {columns}")
    return places


def _keys(joined: Joined, file: str, seen: set[str]) -> Iterator[tuple[FilePart, str]]:
    name = joined.settings.key
    if file.endswith(".parquet"):
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(joined.root / file) as table:
            seen.update(table.schema_arrow.names)
            if name not in table.schema_arrow.names:
                return
            number = 0
            for batch in table.iter_batches(columns=[name]):
                for value in batch.column(0).to_pylist():
                    yield FilePart(file, number, 1), _text(value)
                    number += 1
        return
    for part in rowfiles.list_parts(joined.root, file, 1):
        for row in rowfiles.read_part(joined.root, part):
            seen.update(row.values or ())
            if row.values is not None and row.values.get(name) is not None:
                yield part, _text(row.values[name])


def complete_rows(rows: Iterable[RawRow], *, columns: Mapping[str, str], joins: tuple[Joined, ...]) -> Iterator[RawRow]:
    """Yield rows with the columns of others joined to them and theirs under the names that the format reads."""
    found = iter(rows)
    while some := list(islice(found, _ROWS_TOGETHER)):
        for joined in joins:
            path = joined.settings.row_key or joined.settings.key
            keys = [_MISSING if row.values is None else find_value(row.values, path) for row in some]
            fetched = joined.fetch({_text(key) for key in keys if key is not _MISSING})
            some = [_add(row, key, fetched, joined.settings) for row, key in zip(some, keys, strict=True)]
        yield from (_rename(row, columns) for row in some)


def _add(row: RawRow, key: object, fetched: Mapping[str, list[Mapping[str, Any]]], settings: JoinSettings) -> RawRow:
    if row.values is None:
        return row
    if key is _MISSING:
        return replace(row, values=None, fault=("missing_field", f"{settings.row_key or settings.key}, to join by"))
    others = fetched.get(_text(key), [])
    if settings.into:
        return replace(row, values={**row.values, settings.into: others})
    if len(others) > 1:
        said = f"{len(others)} rows of {settings.path} have the key {shorten(_text(key), 60)}; give `into`"
        return replace(row, values=None, fault=("wrong_value", said))
    has = {name: value for name, value in row.values.items() if value is not None}
    return replace(row, values={**row.values, **(others[0] if others else {}), **has})


def _rename(row: RawRow, columns: Mapping[str, str]) -> RawRow:
    if row.values is None or not columns:
        return row
    values = dict(row.values)
    for name, path in columns.items():
        value = find_value(row.values, path)
        if value is _MISSING:
            there = ", ".join(sorted(row.values)[:_MAX_SHOWN])
            return replace(row, values=None, fault=("missing_field", f"{path}, for {name}; the row has {there}"))
        _put(values, name, value)
    return replace(row, values=values)


def _put(values: dict[str, Any], name: str, value: object) -> None:
    """Set a field, `a.b` one inside an object; objects on the way are copied, not changed."""
    outer, _, inner = name.partition(".")
    if not inner:
        values[outer] = value
        return
    there = find_value(values, outer)
    if isinstance(there, str):
        there = _decode(there)
    values[outer] = dict(there) if isinstance(there, Mapping) else {}
    _put(values[outer], inner, value)


def check_columns(columns: Mapping[str, str], rows: Iterable[RawRow], read: Callable[[Mapping[str, Any]], Any]) -> str:
    """Return what is wrong with the names of columns, as far as some rows show; empty if nothing is."""
    asked: set[str] = set()
    num_tried = num_read = 0
    for row in rows:
        if row.values is None:
            continue
        num_tried += 1
        try:
            read(_Watched(row.values, asked))
            num_read += 1
        except Malformed:
            continue
        except Exception:  # what fails on a row is said of that row
            return ""
    known = sorted(asked)
    for name in columns:
        hint = suggest(name, [one for one in known if one not in columns])
        # Where no row can be read, fields that would be asked for later are not known.
        if num_tried and name.partition(".")[0] not in asked and (num_read or hint):
            hint = hint or f"it reads {', '.join(known)}"
            return f"its format reads no field {name} in {num_tried} rows; {hint}"
    return ""


class _Watched(Mapping[str, Any]):
    """The fields of a row, and which were asked for."""

    def __init__(self, values: Mapping[str, Any], asked: set[str]) -> None:
        self._values, self._asked = values, asked

    def __getitem__(self, name: str) -> Any:
        self._asked.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def find_value(values: Mapping[str, Any], path: str) -> object:
    """Return what a path such as `task.text` or `messages.0.content` leads to, through objects written as JSON too."""
    value: Any = values
    if path in values:
        return values[path]
    for name in path.split("."):
        if isinstance(value, str):
            value = _decode(value)
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdigit() and int(name) < len(value):
            value = value[int(name)]
        else:
            return _MISSING
    return value


def _decode(text: str) -> object:
    """Return an object or a list that is written as JSON; anything else leads nowhere."""
    if text.lstrip()[:1] not in ("{", "["):
        return _MISSING
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _MISSING


def _text(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)

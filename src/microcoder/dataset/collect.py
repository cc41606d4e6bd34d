"""The collect stage: raw rows to candidates; a row that is none is rejected with its reason, as it was found."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from microcoder.dataset.rowfiles import RawRow
from microcoder.dataset.sources import Shard, Source, read_shard
from microcoder.errors import ConfigError
from microcoder.formats.candidates import Candidate, Rejection
from microcoder.formats.row import Malformed
from microcoder.formats.text import shorten, write_json

_ENCODED = "base64:"


def collect_shard(source: Source, shard: Shard) -> list[Candidate | Rejection]:
    """Return what each raw row of a shard came to, in order; nothing of it is executed."""
    return [collect_row(source, row) for row in read_shard(source, shard)]


def collect_row(source: Source, row: RawRow) -> Candidate | Rejection:
    """Return the candidate of a raw row, or why it is none."""
    fault, candidate = row.fault, None
    if row.values is not None:
        try:
            return source.format.read_row(row.values, row.place, source=source.name)
        except Malformed as error:
            fault, candidate = (error.reason, error.detail), error.candidate
        except ConfigError as error:
            fault = ("reader_fault", str(error))
        except Exception as error:  # one row in a million must not end a run
            fault = ("adapter_fault", f"{type(error).__name__}: {error}")
    reason, detail = fault or ("unreadable_file", "")
    return Rejection(
        id=f"{source.name}/{shorten(row.place, 1000)}",
        dataset=source.format.name,
        source_row=shorten(row.place, 1000),
        stage="collect",
        reason=reason,
        detail=shorten(detail, 300),
        raw=_show_raw(row),
        candidate=candidate,
    )


def _show_raw(row: RawRow) -> str:
    """Return a row as it was found: its text, or its fields as JSON where the file has no text."""
    if row.raw or row.values is None:
        try:
            return row.raw.decode("utf-8")
        except UnicodeDecodeError:
            return _encode(row.raw)
    try:
        return write_json(_plain(row.values))
    except (ValueError, RecursionError):
        return _encode(repr(row.values).encode("utf-8", "surrogatepass"))


def _plain(value: object) -> object:
    """Return a value that JSON can hold: bytes as text if they are UTF-8, what parquet adds as its text."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return _encode(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _encode(content: bytes) -> str:
    return _ENCODED + base64.b64encode(content).decode("ascii")

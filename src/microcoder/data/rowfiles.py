"""Reads files of rows: JSON lines (plain, gzip or zstd), JSON lists, Parquet; a row that cannot be read has a fault.

`read_file` is for files of which every row is needed: the first fault is a `DataError` that names its line.

`unpack` unpacks an archive once, into a folder of its own. Links are skipped; other special files, paths out of the
folder, and content far larger than the archive are errors.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import io
import logging
import lzma
import re
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, Any, Literal
from uuid import uuid4

from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import read_json, shorten
from microcoder.judge.core.digits import dump_json
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import how_to_install, is_disk_full
from microcoder.judge.core.records import refuse_table

_LOG = logging.getLogger(__name__)
ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip")
MOST_UNPACKED_BYTES, MOST_MEMBERS = 64 << 30, 2_000_000
MOST_TIMES_LARGER, _ALWAYS_ALLOWED_BYTES = 100, 64 << 20
"""Most unpacked bytes: so many times the archive's, or these if more. Public archives reach 30, zeros 1000."""
_CHUNK_BYTES = _MOST_HEADER_BYTES = 1 << 20
_NOT_READ = (RuntimeError, ValueError)
"""Errors of an encrypted archive, an unknown compression, or damaged zstd."""
_Member = tuple[str, Literal["file", "folder", "link", "other"], Callable[[], IO[bytes] | None]]
"""A member of an archive: name, kind, and a function that opens it."""


def is_archive(path: str) -> bool:
    """Whether a source's path names an archive, by its suffix; `hf://` names never do."""
    return path.lower().endswith(ARCHIVE_SUFFIXES) and not path.startswith("hf://")


def unpack(archive: Path, folder: Path, *, aside: Path) -> None:
    """Unpack an archive into a folder unless that is there; DataError if the archive cannot be unpacked.

    It is unpacked in `aside` and then renamed, so that `folder` is never there unless complete.
    """
    if folder.exists():
        return
    unfinished = aside / f".{uuid4().hex}.partial"
    unfinished.mkdir(parents=True)
    try:
        num_links = _unpack(archive, unfinished)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished.rename(folder)
    except DataError:
        raise
    except (
        tarfile.TarError,
        zipfile.BadZipFile,
        EOFError,
        OSError,
        lzma.LZMAError,
        zlib.error,
        *_NOT_READ,
    ) as error:
        if is_disk_full(error) or (
            isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES)
        ):
            raise
        raise DataError(
            f"archive {archive} cannot be unpacked ({type(error).__name__}: {error})"
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    if num_links:
        _LOG.warning("archive %s: %d links were left out", archive, num_links)


def _unpack(archive: Path, folder: Path) -> int:
    """Write an archive's files, and return how many links were skipped."""
    size = archive.stat().st_size
    most = min(MOST_UNPACKED_BYTES, max(_ALWAYS_ALLOWED_BYTES, MOST_TIMES_LARGER * size))
    num_bytes = num_links = 0
    members = _read_zip(archive) if archive.suffix.lower() == ".zip" else _read_tar(archive)
    for number, (name, kind, opens) in enumerate(members, 1):
        path = PurePosixPath(name)
        if kind == "other" or path.is_absolute() or ".." in path.parts:
            raise tarfile.TarError(f"{name!r} is not a plain file or folder inside the archive")
        if number > MOST_MEMBERS:
            raise tarfile.TarError(f"it has more than {MOST_MEMBERS:,} members; unpack it by hand")
        target = folder / path
        if kind == "link":
            num_links += 1
            continue
        (target if kind == "folder" else target.parent).mkdir(parents=True, exist_ok=True)
        source = opens() if kind == "file" else None
        if source is None:
            continue
        with source, target.open("wb") as file:
            while chunk := source.read(_CHUNK_BYTES):
                num_bytes += len(chunk)
                if num_bytes > most:
                    raise tarfile.TarError(
                        f"its {size:,} bytes unpack to more than {most:,}; if that is right, unpack it by hand and "
                        "name the folder"
                    )
                file.write(chunk)
    return num_links


class _Header(tarfile.TarInfo):
    """Header of a tar member; TarError if a long name, which is read into memory whole, has too many bytes."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        found = super().frombuf(buf, encoding, errors)
        if found.size > _MOST_HEADER_BYTES and not (
            found.isfile() or found.isdir() or found.issym() or found.islnk()
        ):
            raise tarfile.TarError(f"it says {found.size:,} bytes of a member before its content")
        return found


def _read_tar(archive: Path) -> Iterator[_Member]:
    # The standard library's own filter came with 3.11.4; systems with an older 3.11 are about.
    with ExitStack() as opened:
        if archive.suffix.lower() == ".zst":
            packed = opened.enter_context(
                _import_pyarrow(archive).input_stream(str(archive), compression="zstd")
            )
            content = opened.enter_context(tarfile.open(fileobj=packed, mode="r|", tarinfo=_Header))
        else:
            content = opened.enter_context(tarfile.open(archive, tarinfo=_Header))
        for one in content:
            is_link = one.issym() or one.islnk()
            kind = (
                "link"
                if is_link
                else "folder"
                if one.isdir()
                else "file"
                if one.isfile()
                else "other"
            )
            # Bytes of a name that are no UTF-8 are letters of Latin-1.
            name = re.sub("[\udc80-\udcff]", lambda byte: chr(ord(byte[0]) - 0xDC00), one.name)
            yield name, kind, partial(content.extractfile, one)


def _read_zip(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as content:
        for one in content.infolist():
            is_link = stat.S_ISLNK(one.external_attr >> 16)
            kind = "link" if is_link else "folder" if one.filename.endswith(("/", "\\")) else "file"
            # Some programs of Windows write its own separators.
            yield one.filename.replace("\\", "/"), kind, partial(content.open, one)


LINES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
LISTS = (".json", ".json.gz", ".json.zst")
SUFFIXES = (*LINES, *LISTS, ".parquet")
_PACKED = (".gz", ".zst")
MAX_ROW_BYTES = 1 << 30
_DAMAGE = (OSError, EOFError, zlib.error)
_BOM = b"\xef\xbb\xbf"
_BUFFER_BYTES = 1 << 20

Fault = tuple[str, str]
"""A reason code of `microcoder.data.formats.row.REASONS`, and a detail text."""


@dataclass(frozen=True, slots=True)
class RawRow:
    """One row of a source, before a format reads it."""

    place: str
    """`file:number`, or the path of a folder."""
    values: Mapping[str, Any] | None
    """The row's fields; None if it could not be read."""
    raw: bytes = b""
    """The row's bytes in the file; items of a JSON list are written anew, and rows of Parquet have none."""
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class FilePart:
    """Successive rows of one file."""

    file: str
    first: int
    """Number of rows of the file before this part."""
    num_rows: int
    offset: int = 0
    """Byte offset of the first row in uncompressed JSON lines; otherwise 0."""
    line: int = 0
    """Number of lines of the file before `offset`."""
    num_bytes: int = 0
    """Size of the rows as text, decompressed; in Parquet estimated from the average row."""


def list_parts(
    root: Path, file: str, max_rows: int, max_bytes: int | None = None
) -> Iterator[FilePart]:
    """Yield the parts of a file, each of at most `max_rows` rows, ended early by the row that reaches `max_bytes`.

    Damage in a file counts as one more row.
    """
    if file.endswith(".parquet"):
        pyarrow = _import_pyarrow(root / file)
        try:
            metadata = pyarrow.parquet.read_metadata(root / file)
            num_rows = metadata.num_rows
            num_bytes = sum(
                metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups)
            )
        except (OSError, pyarrow.ArrowException):
            num_rows, num_bytes = 1, 0
        a_row = -(-num_bytes // max(1, num_rows))
        most = max_rows if max_bytes is None else max(1, min(max_rows, max_bytes // max(1, a_row)))
        for first in range(0, num_rows, most):
            num = min(most, num_rows - first)
            yield FilePart(file, first, num, num_bytes=a_row * num)
        return
    rows: Iterator[tuple[int, int, int]]
    if file.endswith(LISTS):
        rows = ((0, 0, len(row.raw)) for row in _read_list(root, FilePart(file, 0, 0)))
    else:
        rows = (
            (number - 1, offset, len(line))
            for number, offset, line, _ in _scan(root / file, FilePart(file, 0, 0))
        )
    is_found_by_offset = not file.endswith((*LISTS, *_PACKED))
    part: FilePart | None = None
    for count, (lines, offset, size) in enumerate(rows):
        if part is None:
            part = (
                FilePart(file, count, 0, offset, lines)
                if is_found_by_offset
                else FilePart(file, count, 0)
            )
        part = replace(part, num_rows=part.num_rows + 1, num_bytes=part.num_bytes + size)
        if part.num_rows == max_rows or (max_bytes is not None and part.num_bytes >= max_bytes):
            yield part
            part = None
    if part is not None:
        yield part


def read_part(root: Path, part: FilePart) -> Iterator[RawRow]:
    """Yield the rows of a part; one that cannot be read has a `fault` in place of values."""
    if part.file.endswith(".parquet"):
        rows = _read_parquet(root, part)
    elif part.file.endswith(LISTS):
        rows = islice(_read_list(root, part), part.first, None)
    else:
        rows = _read_lines(root, part)
    yield from islice(rows, part.num_rows)


def _open(path: Path) -> Any:
    if path.suffix == ".zst":
        return io.BufferedReader(
            _import_pyarrow(path).input_stream(str(path), compression="zstd"), _BUFFER_BYTES
        )
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _scan(path: Path, part: FilePart) -> Iterator[tuple[int, int, bytes, Fault | None]]:
    """Yield number, offset, bytes and fault of each non-blank line, from a part's offset on; a fault ends it."""
    number, offset = part.line, part.offset
    try:
        with _open(path) as file:
            if offset:
                file.seek(offset)
            while line := file.readline(MAX_ROW_BYTES + 1):
                number += 1
                if len(line) > MAX_ROW_BYTES:
                    yield (
                        number,
                        offset,
                        b"",
                        ("unreadable_file", f"a line of more than {MAX_ROW_BYTES >> 20} MiB"),
                    )
                    return
                if line.strip():
                    yield number, offset, line, None
                offset += len(line)
    except _DAMAGE as error:
        yield number + 1, offset, b"", ("unreadable_file", f"{type(error).__name__}: {error}")


def _read_lines(root: Path, part: FilePart) -> Iterator[RawRow]:
    lines = _scan(root / part.file, part)
    for number, _, line, fault in (
        islice(lines, part.first, None) if part.file.endswith(_PACKED) else lines
    ):
        place = f"{part.file}:{number}"
        text = line.removeprefix(_BOM) if number == 1 else line
        yield RawRow(place, None, line, fault) if fault else _parse(place, text)


def _parse(place: str, line: bytes) -> RawRow:
    try:
        values = read_json(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return RawRow(place, None, line, ("not_utf8", str(error)))
    except ValueError as error:
        return RawRow(place, None, line, ("not_json", str(error)))
    return _check(place, values, line)


def _read_list(root: Path, part: FilePart) -> Iterator[RawRow]:
    """Yield the items of a JSON list, or the one value that a file holds."""
    place, packed = f"{part.file}:1", b""
    try:
        with _open(root / part.file) as file:
            packed = file.read(MAX_ROW_BYTES + 1)
        if len(packed) > MAX_ROW_BYTES:
            fault = (
                "unreadable_file",
                f"more than {MAX_ROW_BYTES >> 20} MiB; write it as JSON lines",
            )
            yield RawRow(place, None, b"", fault)
            return
        found = read_json(packed.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        yield RawRow(place, None, packed, ("not_utf8", str(error)))
    except _DAMAGE as error:
        yield RawRow(place, None, b"", ("unreadable_file", f"{type(error).__name__}: {error}"))
    except ValueError as error:
        yield RawRow(place, None, packed, ("not_json", str(error)))
    else:
        for number, values in enumerate(found if isinstance(found, list) else [found], 1):
            yield _check(f"{part.file}:{number}", values, dump_json(values).encode())


def _check(place: str, values: object, line: bytes) -> RawRow:
    if isinstance(values, dict):
        return RawRow(place, values, line)
    return RawRow(
        place, None, line, ("not_an_object", f"{type(values).__name__}: {shorten(values, 40)}")
    )


def _import_pyarrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError(f"{path} needs pyarrow; type: {how_to_install('data')}") from None
    return pyarrow


def _read_parquet(root: Path, part: FilePart) -> Iterator[RawRow]:
    path = root / part.file
    pyarrow = _import_pyarrow(path)
    number = part.first
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            skip, groups = _find_groups(file.metadata, part)
            for batch in file.iter_batches(batch_size=64, row_groups=groups):
                for index in range(skip, batch.num_rows):
                    number += 1
                    yield _row_of(batch.slice(index, 1), f"{part.file}:{number}")
                skip = max(0, skip - batch.num_rows)
    except (OSError, pyarrow.ArrowException) as error:
        for missing in range(number + 1, part.first + part.num_rows + 1):
            said = shorten(" ".join(str(error).split()), 200)
            yield RawRow(f"{part.file}:{missing}", None, b"", ("unreadable_file", said))


def _find_groups(metadata: Any, part: FilePart) -> tuple[int, list[int]]:
    """Return how many rows of the first row group come before a part, and the indices of all groups that hold it."""
    groups, start, skip = [], 0, 0
    for index in range(metadata.num_row_groups):
        rows = metadata.row_group(index).num_rows
        if start + rows > part.first and start < part.first + part.num_rows:
            if not groups:
                skip = part.first - start
            groups.append(index)
        start += rows
    return skip, groups


def _row_of(batch: Any, place: str) -> RawRow:
    try:
        return RawRow(place, batch.to_pylist()[0])
    except UnicodeDecodeError as error:
        return RawRow(place, None, b"", ("not_utf8", str(error)))
    except (ValueError, OverflowError) as error:
        return RawRow(place, None, b"", ("wrong_value", shorten(error, 200)))


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row that `read_file` has read, with all its fields."""

    where: str
    values: Mapping[str, Any]
    digest: str
    read_again: Callable[[], Mapping[str, Any]] = field(repr=False)
    """Reads the row's values from the file again; DataError if the row has changed."""

    @property
    def fields(self) -> Row:
        """The row as a `Row`, whose getters raise `Malformed` for a missing field or a wrong type."""
        return Row(self.values, id=self.where, dataset="")


def read_file(path: Path, what: str) -> Iterator[FileRow]:
    """Yield the rows of a file; DataError at the first that cannot be read; `what` names the file in its message."""
    if not path.is_file():
        raise DataError(f"{what} {path} does not exist; check the path")
    refuse_table(path, what, "JSON lines, one object each, or Parquet")
    # Lines that are not packed are found again by their offset, rows of Parquet by their number.
    is_found_by_offset = path.name.endswith((".jsonl", ".ndjson"))
    for part in list_parts(path.parent, path.name, 1 if is_found_by_offset else 1 << 30):
        for number, row in enumerate(read_part(path.parent, part)):
            place = part if is_found_by_offset else FilePart(part.file, part.first + number, 1)
            yield _find(row, path, place, what)


def _find(row: RawRow, path: Path, place: FilePart, what: str) -> FileRow:
    where = f"{what} {path} {'item' if path.name.endswith(LISTS) else 'line'} {row.place.rpartition(':')[2]}"
    values = row.values
    if values is None:
        reason, detail = row.fault or ("", "")
        said = {
            "not_json": f"is not JSON ({detail})",
            "not_an_object": f"holds {detail}, not an object",
        }
        raise DataError(
            f"{where} {said.get(reason, f'cannot be read ({detail})')}; download the file again"
        )
    digest = hashlib.sha256(row.raw or dump_json(dict(values), default=str).encode()).hexdigest()
    if path.suffix in _PACKED:
        # All that stands before it would have to be unpacked once more.
        return FileRow(where, values, digest, lambda: values)

    def read_again() -> Mapping[str, Any]:
        found = next(read_part(path.parent, place), None)
        if found is None or (again := _find(found, path, place, what)).digest != digest:
            raise DataError(f"{where} has changed since it was first read; start again")
        return again.values

    return FileRow(where, values, digest, read_again)


@contextmanager
def placed(where: str, hint: str = "is this the file as published?") -> Iterator[None]:
    """Re-raise a block's `Malformed` (with `hint`) or `DataError` as a `DataError` that begins with `where`."""
    try:
        yield
    except Malformed as error:
        what = f"{error.detail} is missing" if error.reason == "missing_field" else error.detail
        raise DataError(f"{where}: {what}; {hint}") from None
    except DataError as error:
        raise error if str(error).startswith(where) else DataError(f"{where}: {error}") from None

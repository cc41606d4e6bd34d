"""Reads files of rows: JSON lines (plain, gzip or zstd), JSON lists, Parquet.

`read_part` gives a row that cannot be read a fault. `read_file` is for files of which every row is
needed: the first fault is a `DataError` that names its line.

`unpack` unpacks an archive once, into a folder of its own. Links are skipped; other special files,
paths out of the folder, and content far larger than the archive are errors.
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
from importlib import import_module
from itertools import islice
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, TYPE_CHECKING, Any, Literal
from uuid import uuid4

from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import read_json, shorten
from microcoder.judge.core.digits import dump_json
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import how_to_install, is_disk_full
from microcoder.judge.core.records import refuse_table

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyarrow.parquet import FileMetaData

BinaryFile = IO[bytes] | io.BufferedIOBase
"""An open file of bytes, packed or not."""
_LOG = logging.getLogger(__name__)
ARCHIVE_SUFFIXES = (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst", ".zip")
"""Suffixes of archives."""
MOST_UNPACKED_BYTES = 64 << 30
"""Most bytes that any archive may unpack to."""
MOST_MEMBERS = 2_000_000
"""Most members of an archive."""
MOST_TIMES_LARGER = 100
"""Most times that the unpacked bytes may be those of the archive: public ones reach 30, zeros
1000."""
_ALWAYS_ALLOWED_BYTES = 64 << 20
"""Unpacked bytes that are allowed however small the archive is."""
_CHUNK_BYTES = 1 << 20
"""Bytes of a member that are in memory at a time."""
_MOST_HEADER_BYTES = 1 << 20
"""Most bytes of a long name, which is read into memory whole."""
_UNREADABLE = (
    tarfile.TarError,
    zipfile.BadZipFile,
    EOFError,
    OSError,
    lzma.LZMAError,
    zlib.error,
    # Of an encrypted archive, an unknown compression, or damaged zstd.
    RuntimeError,
    ValueError,
)
"""Errors of an archive that cannot be unpacked."""
_Kind = Literal["file", "folder", "link", "other"]
_Member = tuple[str, _Kind, Callable[[], IO[bytes] | None]]
"""A member of an archive: name, kind, and a function that opens it."""


def is_archive(path: str) -> bool:
    """Whether a source's path names an archive, by its suffix; `hf://` names never do."""
    return path.lower().endswith(ARCHIVE_SUFFIXES) and not path.startswith("hf://")


def unpack(archive: Path, folder: Path, *, aside: Path) -> None:
    """Unpack an archive into a folder, unless the folder exists.

    It is unpacked in `aside` and then renamed, so that `folder` never exists incomplete.

    Raises:
        DataError: the archive cannot be unpacked.
    """
    if folder.exists():
        return
    # A name of its own: two builds may unpack the same archive at once.
    unfinished = aside / f".{uuid4().hex}.partial"
    unfinished.mkdir(parents=True)
    try:
        num_links = _unpack(archive, unfinished)
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished.rename(folder)
    except DataError:
        raise
    except _UNREADABLE as error:
        if _is_of_disk(error):
            raise
        raise DataError(
            f"archive {archive} cannot be unpacked ({type(error).__name__}: {error})"
        ) from None
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    if num_links:
        _LOG.warning("archive %s: %d links were left out", archive, num_links)


def _is_of_disk(error: Exception) -> bool:
    """Whether the disk is to blame and not the archive."""
    if is_disk_full(error):
        return True
    return isinstance(error, OSError) and error.errno in (errno.EROFS, errno.EACCES)


def _unpack(archive: Path, folder: Path) -> int:
    """Write an archive's files, and return how many links were skipped."""
    size = archive.stat().st_size
    most = min(MOST_UNPACKED_BYTES, max(_ALWAYS_ALLOWED_BYTES, MOST_TIMES_LARGER * size))
    num_bytes = 0
    num_links = 0
    is_zip = archive.suffix.lower() == ".zip"
    members = _read_zip(archive) if is_zip else _read_tar(archive)
    for number, (name, kind, opens) in enumerate(members, 1):
        path = PurePosixPath(name)
        if kind == "other" or path.is_absolute() or ".." in path.parts:
            raise tarfile.TarError(f"{name!r} is not a plain file or folder inside the archive")
        if number > MOST_MEMBERS:
            raise tarfile.TarError(f"it has more than {MOST_MEMBERS:,} members; unpack it by hand")
        target = folder / path
        # It may lead out of the folder.
        if kind == "link":
            num_links += 1
            continue
        if kind == "folder":
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        source = opens()
        if source is None:
            continue
        with source, target.open("wb") as file:
            while chunk := source.read(_CHUNK_BYTES):
                num_bytes += len(chunk)
                # Counted as it is unpacked: what a header says of the size need not be true.
                if num_bytes > most:
                    raise tarfile.TarError(
                        f"its {size:,} bytes unpack to more than {most:,}; "
                        "if that is right, unpack it by hand and name the folder"
                    )
                file.write(chunk)
    return num_links


class _Header(tarfile.TarInfo):
    """Header of a tar member; TarError if a long name in it has too many bytes."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> _Header:
        """Read a header from its bytes."""
        header = super().frombuf(buf, encoding, errors)
        is_member = header.isfile() or header.isdir() or _is_link(header)
        # Content is read in chunks; all else is read whole.
        if header.size > _MOST_HEADER_BYTES and not is_member:
            raise tarfile.TarError(f"it says {header.size:,} bytes of a member before its content")
        return header


def _read_tar(archive: Path) -> Iterator[_Member]:
    # The standard library's own filter came with 3.11.4; systems with an older 3.11 are about.
    with ExitStack() as opened:
        if archive.suffix.lower() == ".zst":
            pyarrow = _import_pyarrow(archive)
            unpacked = pyarrow.input_stream(str(archive), compression="zstd")
            packed = opened.enter_context(unpacked)
            # As a stream, since there is no seeking in what is unpacked on the way.
            content = opened.enter_context(tarfile.open(fileobj=packed, mode="r|", tarinfo=_Header))
        else:
            content = opened.enter_context(tarfile.open(archive, tarinfo=_Header))
        for member in content:
            # Bytes of a name that are no UTF-8 are letters of Latin-1.
            name = re.sub("[\udc80-\udcff]", lambda byte: chr(ord(byte[0]) - 0xDC00), member.name)
            yield name, _kind_of(member), partial(content.extractfile, member)


def _is_link(member: tarfile.TarInfo) -> bool:
    return member.issym() or member.islnk()


def _kind_of(member: tarfile.TarInfo) -> _Kind:
    if _is_link(member):
        return "link"
    if member.isdir():
        return "folder"
    return "file" if member.isfile() else "other"


def _read_zip(archive: Path) -> Iterator[_Member]:
    with zipfile.ZipFile(archive) as content:
        for member in content.infolist():
            kind: _Kind = "file"
            # The upper half holds what Unix says of the file.
            if stat.S_ISLNK(member.external_attr >> 16):
                kind = "link"
            elif member.filename.endswith(("/", "\\")):
                kind = "folder"
            # Some programs of Windows write its own separators.
            yield member.filename.replace("\\", "/"), kind, partial(content.open, member)


LINES = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".ndjson.gz", ".ndjson.zst")
"""Suffixes of JSON lines."""
LISTS = (".json", ".json.gz", ".json.zst")
"""Suffixes of files that hold one JSON list."""
SUFFIXES = (*LINES, *LISTS, ".parquet")
"""Suffixes of all files of rows."""
_PACKED = (".gz", ".zst")
"""Suffixes of compressed files, in which a row is not found by its offset."""
MAX_ROW_BYTES = 1 << 30
"""Most bytes of a line, or of a JSON list."""
_MOST_ROWS = 1 << 30
"""More rows than any file has."""
_ROWS_PER_BATCH = 64
"""Rows of Parquet that are in memory at a time."""
_DAMAGE = (OSError, EOFError, zlib.error)
"""Errors of a file that ends early or is damaged."""
_BOM = b"\xef\xbb\xbf"
"""A mark that some programs write at the beginning of UTF-8."""
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
    """The row's bytes in the file.

    Items of a JSON list are written again, and rows of Parquet have none.
    """
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
    """Yield the parts of a file, each of at most `max_rows` rows.

    A part ends early with the row that reaches `max_bytes`. Damage in a file counts as one more
    row.
    """
    if file.endswith(".parquet"):
        yield from _list_parquet(root, file, max_rows, max_bytes)
        return
    is_found_by_offset = not file.endswith((*LISTS, *_PACKED))
    part: FilePart | None = None
    for count, (num_lines, offset, size) in enumerate(_measure_rows(root, file)):
        if part is None:
            part = FilePart(file, count, 0)
            if is_found_by_offset:
                part = replace(part, offset=offset, line=num_lines)
        part = replace(part, num_rows=part.num_rows + 1, num_bytes=part.num_bytes + size)
        is_large = max_bytes is not None and part.num_bytes >= max_bytes
        if part.num_rows == max_rows or is_large:
            yield part
            part = None
    if part is not None:
        yield part


def _list_parquet(
    root: Path, file: str, max_rows: int, max_bytes: int | None
) -> Iterator[FilePart]:
    """Yield the parts of a Parquet file, whose rows count as large as their average."""
    pyarrow = _import_pyarrow(root / file)
    num_bytes = 0
    try:
        metadata = pyarrow.parquet.read_metadata(root / file)
        num_rows = metadata.num_rows
        for number in range(metadata.num_row_groups):
            num_bytes += metadata.row_group(number).total_byte_size
    except (OSError, pyarrow.ArrowException):
        # Damaged: one row, which `read_part` gives a fault.
        num_rows = 1
        num_bytes = 0
    # Rounded up, so that no row counts as empty.
    row_bytes = -(-num_bytes // max(1, num_rows))
    rows_per_part = max_rows
    if max_bytes is not None:
        num_fitting = max_bytes // max(1, row_bytes)
        rows_per_part = max(1, min(max_rows, num_fitting))
    for first in range(0, num_rows, rows_per_part):
        num = min(rows_per_part, num_rows - first)
        yield FilePart(file, first, num, num_bytes=row_bytes * num)


def _measure_rows(root: Path, file: str) -> Iterator[tuple[int, int, int]]:
    """Yield for each row the number of lines before it, its offset, and its size."""
    whole = FilePart(file, 0, 0)
    if file.endswith(LISTS):
        for row in _read_list(root, whole):
            yield 0, 0, len(row.raw)
    else:
        for number, offset, line, _ in _scan(root / file, whole):
            yield number - 1, offset, len(line)


def read_part(root: Path, part: FilePart) -> Iterator[RawRow]:
    """Yield the rows of a part; a row that cannot be read has a `fault` in place of values."""
    if part.file.endswith(".parquet"):
        rows = _read_parquet(root, part)
    elif part.file.endswith(LISTS):
        rows = islice(_read_list(root, part), part.first, None)
    else:
        rows = _read_lines(root, part)
    yield from islice(rows, part.num_rows)


def _open(path: Path) -> BinaryFile:
    """Open a file, unpacked if it is compressed."""
    if path.suffix == ".zst":
        packed = _import_pyarrow(path).input_stream(str(path), compression="zstd")
        return io.BufferedReader(packed, _BUFFER_BYTES)
    if path.suffix == ".gz":
        return gzip.open(path, "rb")
    return path.open("rb")


def _scan(path: Path, part: FilePart) -> Iterator[tuple[int, int, bytes, Fault | None]]:
    """Yield number, offset, bytes and fault of each non-blank line, from a part's offset on.

    A fault ends it.
    """
    number = part.line
    offset = part.offset
    try:
        with _open(path) as file:
            if offset:
                file.seek(offset)
            # A byte more than is allowed, by which a longer line is known.
            while line := file.readline(MAX_ROW_BYTES + 1):
                number += 1
                if len(line) > MAX_ROW_BYTES:
                    detail = f"a line of more than {MAX_ROW_BYTES >> 20} MiB"
                    yield number, offset, b"", ("unreadable_file", detail)
                    return
                # Blank lines are no rows, but count among the lines that messages name.
                if line.strip():
                    yield number, offset, line, None
                offset += len(line)
    except _DAMAGE as error:
        yield number + 1, offset, b"", ("unreadable_file", f"{type(error).__name__}: {error}")


def _read_lines(root: Path, part: FilePart) -> Iterator[RawRow]:
    """Yield the rows of JSON lines, from a part's first on."""
    lines = _scan(root / part.file, part)
    if part.file.endswith(_PACKED):
        # It was unpacked from the beginning.
        lines = islice(lines, part.first, None)
    for number, _, line, fault in lines:
        place = f"{part.file}:{number}"
        if fault:
            yield RawRow(place, None, line, fault)
            continue
        # The mark stands at the beginning of a file alone.
        if number == 1:
            line = line.removeprefix(_BOM)
        yield _parse(place, line)


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
    place = f"{part.file}:1"
    encoded = b""
    try:
        with _open(root / part.file) as file:
            encoded = file.read(MAX_ROW_BYTES + 1)
        if len(encoded) > MAX_ROW_BYTES:
            detail = f"more than {MAX_ROW_BYTES >> 20} MiB; write it as JSON lines"
            yield RawRow(place, None, b"", ("unreadable_file", detail))
            return
        value = read_json(encoded.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        yield RawRow(place, None, encoded, ("not_utf8", str(error)))
    except _DAMAGE as error:
        yield RawRow(place, None, b"", ("unreadable_file", f"{type(error).__name__}: {error}"))
    except ValueError as error:
        yield RawRow(place, None, encoded, ("not_json", str(error)))
    else:
        items = value if isinstance(value, list) else [value]
        for number, item in enumerate(items, 1):
            yield _check(f"{part.file}:{number}", item, dump_json(item).encode())


def _check(place: str, values: object, line: bytes) -> RawRow:
    """Return a row with these values; with a fault if they are not an object."""
    if isinstance(values, dict):
        return RawRow(place, values, line)
    detail = f"{type(values).__name__}: {shorten(values, 40)}"
    return RawRow(place, None, line, ("not_an_object", detail))


def _import_pyarrow(path: Path) -> ModuleType:
    try:
        # What reads Parquet is a module of its own, which pyarrow alone does not load.
        import_module("pyarrow.parquet")
        return import_module("pyarrow")
    except ImportError:
        raise DataError(f"{path} needs pyarrow; type: {how_to_install('data')}") from None


def _read_parquet(root: Path, part: FilePart) -> Iterator[RawRow]:
    path = root / part.file
    pyarrow = _import_pyarrow(path)
    number = part.first
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            skip, groups = _find_groups(file.metadata, part)
            for batch in file.iter_batches(batch_size=_ROWS_PER_BATCH, row_groups=groups):
                for index in range(skip, batch.num_rows):
                    number += 1
                    yield _row_of(batch.slice(index, 1), f"{part.file}:{number}")
                skip = max(0, skip - batch.num_rows)
    except (OSError, pyarrow.ArrowException) as error:
        message = " ".join(str(error).split())
        detail = shorten(message, 200)
        # A fault for each row that is left: a part has as many as were announced.
        for missing in range(number + 1, part.first + part.num_rows + 1):
            yield RawRow(f"{part.file}:{missing}", None, b"", ("unreadable_file", detail))


def _find_groups(metadata: FileMetaData, part: FilePart) -> tuple[int, list[int]]:
    """Return how many rows of the first row group come before a part, and the part's row groups."""
    groups: list[int] = []
    skip = 0
    start = 0
    for index in range(metadata.num_row_groups):
        end = start + metadata.row_group(index).num_rows
        if end > part.first and start < part.first + part.num_rows:
            if not groups:
                skip = part.first - start
            groups.append(index)
        start = end
    return skip, groups


def _row_of(batch: RecordBatch, place: str) -> RawRow:
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
        """The row as a `Row`, which raises `Malformed` for a missing field or a wrong type."""
        return Row(self.values, id=self.where, dataset="")


def read_file(path: Path, what: str) -> Iterator[FileRow]:
    """Yield the rows of a file.

    Args:
        what: names the file in messages.

    Raises:
        DataError: a row cannot be read, the first of them.
    """
    if not path.is_file():
        raise DataError(f"{what} {path} does not exist; check the path")
    refuse_table(path, what, "JSON lines, one object each, or Parquet")
    # Lines that are not packed are found again by their offset, rows of Parquet by their number.
    is_found_by_offset = path.name.endswith((".jsonl", ".ndjson"))
    rows_per_part = 1 if is_found_by_offset else _MOST_ROWS
    for part in list_parts(path.parent, path.name, rows_per_part):
        for number, row in enumerate(read_part(path.parent, part)):
            place = part if is_found_by_offset else FilePart(part.file, part.first + number, 1)
            yield _make_row(row, path, place, what)


def _make_row(row: RawRow, path: Path, place: FilePart, what: str) -> FileRow:
    """Return a row with a way to read it again; DataError if it could not be read."""
    unit = "item" if path.name.endswith(LISTS) else "line"
    where = f"{what} {path} {unit} {row.place.rpartition(':')[2]}"
    values = row.values
    if values is None:
        raise DataError(f"{where} {_explain(row.fault)}; download the file again")
    digest = _digest(row, values)
    if path.suffix in _PACKED:
        # All that stands before it would have to be unpacked once more.
        return FileRow(where, values, digest, lambda: values)

    def read_again() -> Mapping[str, Any]:
        found = next(read_part(path.parent, place), None)
        if found is not None:
            again = _make_row(found, path, place, what)
            # By now another row may stand there.
            if again.digest == digest:
                return again.values
        raise DataError(f"{where} has changed since it was first read; start again")

    return FileRow(where, values, digest, read_again)


def _explain(fault: Fault | None) -> str:
    """Return what is wrong with a row, as the end of a sentence."""
    reason, detail = fault or ("", "")
    if reason == "not_json":
        return f"is not JSON ({detail})"
    if reason == "not_an_object":
        return f"holds {detail}, not an object"
    return f"cannot be read ({detail})"


def _digest(row: RawRow, values: Mapping[str, Any]) -> str:
    """Return the digest of a row's bytes, or of its values where it has none."""
    content = row.raw or dump_json(dict(values), default=str).encode()
    return hashlib.sha256(content).hexdigest()


@contextmanager
def placed(where: str, hint: str = "is this the file as published?") -> Iterator[None]:
    """Re-raise a block's `Malformed` or `DataError` as a `DataError` that begins with `where`.

    Args:
        hint: what to do about a `Malformed`.
    """
    try:
        yield
    except Malformed as error:
        what = error.detail
        if error.reason == "missing_field":
            what = f"{error.detail} is missing"
        raise DataError(f"{where}: {what}; {hint}") from None
    except DataError as error:
        # It was placed already, by a block inside this one.
        if str(error).startswith(where):
            raise
        raise DataError(f"{where}: {error}") from None

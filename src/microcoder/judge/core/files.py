"""Files that exist completely or not at all, and locks against other writers.

A file is written under another name, then renamed. Also two helpers for iterables: `cut_pieces`
makes batches, `take_in_turn` interleaves groups.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.errors import DataError, MicroCoderError
from microcoder.judge.core.machine import lock_file

if TYPE_CHECKING:
    import pyarrow as pa


_LOCK_PATIENCE_SECONDS = 3.0
"""How long a taken lock is waited for: a process that ends may still hold it for a moment."""
_LOCK_PAUSE_SECONDS = 0.05
"""Time between two attempts to take a lock."""


@contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` to write to.

    It is renamed to `path` at the end, if no error is raised.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside it and not in /tmp: a rename is atomic only within one file system.
    partial = path.with_name(f".{path.name}.partial")
    yield partial
    partial.replace(path)


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path` to fill.

    It replaces `path` at the end, if no error is raised.
    """
    partial = path.with_name(f".{path.name}.partial")
    # A kill may have left one half filled.
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    yield partial
    # A folder that holds anything cannot be replaced by a rename.
    shutil.rmtree(path, ignore_errors=True)
    partial.replace(path)


def check_folder(folder: Path, name: str) -> None:
    """Raise DataError if a folder's path, or a parent of it, is a file.

    Args:
        folder: the folder.
        name: the option to show in the message.
    """
    # Also on the way: `corpus.txt/.work` is no folder where corpus.txt is a file.
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise DataError(
                f"{name} = {str(folder)!r}, but {path} is a file; "
                "name a folder, new or of this command"
            )


def check_unchanged(
    root: Path,
    recorded: Mapping[str, Any],
    now: Mapping[str, Any],
    error: type[MicroCoderError],
) -> None:
    """Raise `error` if a value differs from the one recorded when the work in a folder began.

    Args:
        root: the folder.
        recorded: the values then, by what they are in messages.
        now: the values that must be the same.
        error: class of the exception.
    """
    for name, value in now.items():
        before = recorded.get(name)
        if before != value:
            raise error(
                f"{root} began with {name} {json.dumps(before)}, now they are {json.dumps(value)}; "
                "restore the original, or use another folder"
            )


class WorkFolder:
    """A folder that one process at a time works in, and that a later one resumes."""

    error: type[MicroCoderError] = DataError
    """Class of the exceptions raised.

    Another process holds the lock, or the folder cannot be used.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.manifest = root / "manifest.json"
        self.lock_file = root / ".lock"

    def check_place(self, noun: str, *leftovers: Path) -> None:
        """Raise `error` unless the folder can be used for new work.

        It is writable, or can be made, and holds nothing but what a failed start left.

        Args:
            noun: what the folder lacks, for the message, such as "run".
            leftovers: files that a failed start may leave, besides the manifest and the lock.
        """
        # Looks as if nothing were there, but no folder can be made in its place.
        if self.root.is_symlink() and not self.root.exists():
            raise self.error(
                f"{self.root} is a link to {self.root.readlink()}, which is not there; "
                "make that folder, or use another"
            )
        nearest = _nearest_existing(self.root)
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            raise self.error(
                f"{self.root} cannot be written: {nearest} is not a writable folder; "
                "use another folder"
            )
        if not self.root.exists():
            return
        allowed = set()
        for path in (self.manifest, self.lock_file, *leftovers):
            allowed.add(path.name)
            # And what a kill left while it was written.
            allowed.add(f".{path.name}.partial")
        # Files of the user's own would be mixed with those of the work, or overwritten.
        if any(path.name not in allowed for path in self.root.iterdir()):
            raise self.error(f"{self.root} is not empty and holds no {noun}; use another folder")

    def lock(self) -> AbstractContextManager[None]:
        """Lock the folder against other processes.

        The kernel releases the lock when the holder dies.
        """
        return hold_lock(
            self.lock_file,
            self.error(f"another process is writing {self.root}; wait, or use another folder"),
        )


def _nearest_existing(path: Path) -> Path:
    """Return a path, or the nearest folder above it that exists."""
    if path.exists():
        return path
    folder = path.absolute().parent
    while not folder.exists():
        folder = folder.parent
    return folder


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Append one JSON line and make it durable.

    A last line that a kill left half written is removed first. So there must be one writer at a
    time: a line that another is still writing would be removed too.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        end = file.tell()
        if end:
            file.seek(end - 1)
            if file.read(1) != b"\n":
                file.truncate(path.read_bytes().rfind(b"\n") + 1)
        file.write(to_line(row).encode())
        file.flush()
        os.fsync(file.fileno())


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a JSON-lines file by an atomic rename."""
    write_text(path, "".join(map(to_line, rows)))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSON-lines file, as `read_lines` yields them."""
    return [row for _, row in read_lines(path)]


def read_lines(path: Path, start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a JSON-lines file, each with the byte at which it begins.

    A last line without line end is left out: it is still being written, or a kill cut it off.

    Args:
        path: the file; if it is missing, nothing is yielded.
        start: the byte from which on to read.

    Raises:
        DataError: a line is damaged.
    """
    if not path.exists():
        return
    begin = start
    with path.open("rb") as file:
        file.seek(begin)
        # As bytes: a kill can cut the last line in the middle of a character.
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            # Read from the middle, lines have no known number.
            location = f"{path} at byte {begin}" if start else f"{path} line {number}"
            yield begin, _parse_row(line, location)
            begin += len(line)


def _parse_row(line: bytes, location: str) -> dict[str, Any]:
    try:
        row = parse_json(line)
    except ValueError as error:
        raise DataError(
            f"{location} is not JSON ({error}); the file was edited or damaged"
        ) from None
    if not isinstance(row, dict):
        raise DataError(
            f"{location} is {type(row).__name__}, not an object; the file was edited or damaged"
        )
    return row


@contextmanager
def hold_lock(path: Path, error: MicroCoderError) -> Iterator[None]:
    """Hold a lock file; raise `error` if it stays taken for 3 s.

    The lock ends with its holder and its children.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        give_up = time.monotonic() + _LOCK_PATIENCE_SECONDS
        while True:
            try:
                lock_file(file)
                break
            except BlockingIOError:
                if time.monotonic() > give_up:
                    raise error from None
                time.sleep(_LOCK_PAUSE_SECONDS)
        yield


def write_json(path: Path, value: object) -> None:
    """Write a JSON file by an atomic rename."""
    write_text(
        path,
        json.dumps(
            value,
            indent=2,
            ensure_ascii=False,
            sort_keys=False,
        )
        + "\n",
    )


def write_text(path: Path, text: str) -> None:
    """Write a text file by an atomic rename."""
    # Synced before it is renamed: else a power cut may leave a renamed file that is empty.
    with new_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def read_json(path: Path, *, what: str) -> dict[str, Any]:
    """Return the JSON object in a file; raises DataError, which calls the file `what`."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"{what} {path} does not exist; pass a folder that `microcoder train` or `eval` wrote"
        ) from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{what} {path} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{what} {path} holds {type(value).__name__}, not an object")
    return value


def write_parquet(
    path: Path,
    rows: Sequence[dict[str, Any]],
    schema: pa.Schema | None = None,
) -> None:
    """Write rows as zstd Parquet by an atomic rename.

    Without a schema its types are those of the rows.
    """
    # Imported where it is used: most of what imports this module reads no Parquet.
    import pyarrow as pa
    import pyarrow.parquet as pq

    with new_file(path) as partial:
        table = pa.Table.from_pylist(list(rows), schema=schema)
        pq.write_table(table, partial, compression="zstd")


def to_line(row: Mapping[str, Any]) -> str:
    """Return a row as one line of a JSON-lines file, newline included."""
    return json.dumps(row, ensure_ascii=False) + "\n"


T = TypeVar("T")
"""An item of an iterable."""


def cut_pieces(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Yield the items in order, in lists of `size`; the last list may be shorter."""
    # Python 3.11 has no `itertools.batched`.
    iterator = iter(items)
    while piece := list(islice(iterator, size)):
        yield piece


def take_in_turn(groups: Collection[Sequence[T]]) -> list[T]:
    """Return the first item of each group, then the second of each, and so on."""
    taken: list[T] = []
    longest = max(map(len, groups), default=0)
    for index in range(longest):
        for group in groups:
            if index < len(group):
                taken.append(group[index])
    return taken

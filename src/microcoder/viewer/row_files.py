"""Single rows of Parquet files and of JSON lines, of which a large one is never in memory whole."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow.parquet as pq

from microcoder.errors import DataError

Row = dict[str, Any]
ROWS_AT_ONCE = 64


def read_row(path: Path, row: int, names: Sequence[str]) -> Row:
    """Return those of a row's columns that the file has.

    Raises:
        DataError: the file is gone, damaged or shorter.
    """
    try:
        with pq.ParquetFile(path) as file:
            left = row
            for group in range(file.metadata.num_row_groups):
                num_rows = file.metadata.row_group(group).num_rows
                if left < num_rows:
                    for batch in file.iter_batches(ROWS_AT_ONCE, row_groups=[group], columns=present(file, names)):
                        if left < batch.num_rows:
                            return batch.slice(left, 1).to_pylist()[0]
                        left -= batch.num_rows
                left -= num_rows
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); was the run resumed or moved?") from None
    raise DataError(f"{path} has no row {row} any more; reload the page")


def present(file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    """Return those of some columns, or of their parts (`tests.list.element.detail`), that a file has."""
    held = set(file.schema_arrow.names) | {file.schema.column(place).path for place in range(len(file.schema))}
    return [name for name in names if name in held]


class LineFile:
    """JSON lines, which may be growing: where each begins, and the line when it is asked for."""

    def __init__(self, path: Path, *, is_foreign: bool = False) -> None:
        """Name a file.

        Args:
            path: the file; it may be gzipped.
            is_foreign: whether others wrote it: lines that are no JSON object are passed over, and the last one may
                lack its end. Of ours, a damaged line is an error, and an unfinished one is left for the next look.
        """
        self.path, self._is_foreign = path, is_foreign
        self._read_to = 0
        self._inode = 0

    def was_replaced(self) -> bool:
        """The file is another one than was read so far, or shorter: everything known of it is void."""
        try:
            status = self.path.stat()
        except OSError:
            return self._read_to > 0
        return self._read_to > 0 and (status.st_ino != self._inode or status.st_size < self._read_to)

    def restart(self) -> None:
        """Begin at the first line again."""
        self._read_to = 0

    def new_rows(self) -> Iterator[tuple[int, Row]]:
        """Yield the lines that were added since the last call, each with the byte it begins at.

        Raises:
            DataError: a line is damaged.
        """
        if not self.path.exists():
            return
        with self._open() as file:
            self._inode = self.path.stat().st_ino
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n") and not self._is_foreign:
                    return
                begin, self._read_to = self._read_to, self._read_to + len(line)
                try:
                    yield begin, self._parse(line)
                except DataError:
                    if not self._is_foreign:
                        raise

    def row_at(self, begin: int) -> Row:
        """Return the line that begins at a byte.

        Raises:
            DataError: no line begins there any more.
        """
        try:
            with self._open() as file:
                file.seek(begin)
                return self._parse(file.readline())
        except OSError as error:
            raise DataError(f"{self.path} cannot be read ({error.strerror})") from None

    def _open(self) -> BinaryIO | gzip.GzipFile:
        return gzip.open(self.path, "rb") if self.path.suffix == ".gz" else self.path.open("rb")

    def _parse(self, line: bytes) -> Row:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path} holds a line that is not JSON ({error}); it was edited or damaged") from None
        if not isinstance(row, dict):
            raise DataError(f"{self.path} holds a line that is no object; it was edited or damaged")
        return row

"""A file of JSON lines that may be growing: where each line begins, and the line when it is asked for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from microcoder.errors import DataError

Row = dict[str, Any]


class LineFile:
    """Lines by the byte they begin at; a last line without its end is left for the next look."""

    def __init__(self, path: Path) -> None:
        self.path = path
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
        with self.path.open("rb") as file:
            self._inode = self.path.stat().st_ino
            file.seek(self._read_to)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                begin, self._read_to = self._read_to, self._read_to + len(line)
                yield begin, self._parse(line)

    def row_at(self, begin: int) -> Row:
        """Return the line that begins at a byte.

        Raises:
            DataError: no line begins there any more.
        """
        try:
            with self.path.open("rb") as file:
                file.seek(begin)
                return self._parse(file.readline())
        except OSError as error:
            raise DataError(f"{self.path} cannot be read ({error.strerror})") from None

    def _parse(self, line: bytes) -> Row:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{self.path} holds a line that is not JSON ({error}); it was edited or damaged") from None
        if not isinstance(row, dict):
            raise DataError(f"{self.path} holds a line that is no object; it was edited or damaged")
        return row

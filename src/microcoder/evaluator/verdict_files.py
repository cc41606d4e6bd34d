"""A verdict file that can be resumed after an interruption.

    OUT.partial     a header, then one line per verdict as it comes; an interrupted run resumes from it
    OUT             the whole file, in input order, by an atomic rename
    OUT.meta.json   what it was made from and by: a repeated run has nothing to do

A program with a `sandbox_fault` is judged again by the next run.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from microcoder.errors import DataError
from microcoder.evaluator.submissions import verdict_record
from microcoder.files import read_json, read_rows, to_line, write_json, write_rows, write_text
from microcoder.machine import lock_file
from microcoder.types import Outcome, Verdict

Row = dict[str, Any]


def digest_input(path: Path) -> str:
    """Return the digest of an input file, which ties verdicts to it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class VerdictFile:
    """The verdicts of one input under one set of options; opening it reads the existing ones."""

    def __init__(self, path: Path, *, origin: dict[str, str]) -> None:
        """Name a verdict file.

        Args:
            path: the whole file.
            origin: what decides the verdicts: digest of the input, stop rule, version, Python and packages.
        """
        self.path = path
        self.done: dict[str, Row] = {}
        """Lines of earlier runs by submission id, sandbox faults left out."""
        self.isolation: Row | None = None
        """What held around the programs, and what they ran on, in the latest run that judged any."""
        self._origin = origin
        self._partial = path.with_name(path.name + ".partial")
        self._meta = path.with_name(path.name + ".meta.json")
        self._file: TextIO | None = None
        self._has_begun = False
        """Whether the partial file holds a verdict."""

    def delete(self) -> None:
        """Forget earlier runs."""
        for path in (self.path, self._partial, self._meta):
            path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Read what an earlier run left.

        Raises:
            DataError: it was made from something else, or another process is writing it.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            meta = read_json(self._meta, what="description") if self._meta.exists() else {}
            self._check_origin(meta.get("origin"), self.path)
            self.isolation = meta.get("isolation")
            self._take(read_rows(self.path))
        rows = self._lock_and_read()
        if rows:
            self._check_origin(rows[0].get("origin"), self._partial)
            self._take(rows[1:])
        self._has_begun = any("verdict" in row for row in rows)
        self._rewrite_partial()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or not self._has_begun:
            self._partial.unlink(missing_ok=True)
        if self._file is not None:
            self._file.close()

    def note_isolation(self, record: Row) -> None:
        """Store the isolation and environment of the next verdicts."""
        self.isolation = record
        self._append({"isolation": record})

    def add(self, name: str, verdict: Verdict) -> Row:
        """Append a verdict."""
        row = verdict_record(name, verdict)
        self.done[name] = row
        self._has_begun = True
        self._append(row)
        return row

    def finish(self, names: Sequence[str], summary: dict[str, Any]) -> None:
        """Write the whole file, in the order of the input."""
        write_json(self._meta, {"origin": self._origin, "isolation": self.isolation, **summary})
        write_rows(self.path, (self.done[name] for name in names))

    def _lock_and_read(self) -> list[Row]:
        # Opened for appending: a kill must never find the verdicts of an earlier run gone.
        self._file = self._partial.open("a", encoding="utf-8")
        try:
            lock_file(self._file)
        except BlockingIOError:
            raise DataError(f"another process is judging into {self.path}; wait for it or choose another -o") from None
        return read_rows(self._partial)

    def _rewrite_partial(self) -> None:
        """Drop an incomplete last line, and lines to be replaced."""
        assert self._file is not None
        head = [{"origin": self._origin}, *([{"isolation": self.isolation}] if self.isolation else [])]
        text = "".join(to_line(row) for row in (*head, *self.done.values()))
        if self._partial.read_text(encoding="utf-8") == text:
            return
        write_text(self._partial, text)
        previous, self._file = self._file, self._partial.open("a", encoding="utf-8")
        with contextlib.suppress(BlockingIOError):
            lock_file(self._file)
        previous.close()

    def _take(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if "verdict" not in row:
                self.isolation = row["isolation"]
            elif row["verdict"] != Outcome.SANDBOX_FAULT:
                self.done[row["id"]] = row

    def _check_origin(self, origin: object, path: Path) -> None:
        if origin == self._origin:
            return
        recorded = origin if isinstance(origin, dict) else {}
        changed = [
            key if key == "input" else f"{key} ({recorded.get(key)}, now {value})"
            for key, value in self._origin.items()
            if recorded.get(key) != value
        ]
        why = f"made with another {' and '.join(changed)}" if origin is not None else "not written by this command"
        raise DataError(f"{path} exists and was {why}; choose another -o, delete it, or pass --overwrite")

    def _append(self, row: Row) -> None:
        assert self._file is not None
        self._file.write(to_line(row))
        self._file.flush()

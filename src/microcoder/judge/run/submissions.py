"""Submission files, a program and the tests that decide it a line, and the lines of their verdicts.

`VerdictFile` can be resumed after an interruption:

    OUT.partial     a header, then one line per verdict as it comes; an interrupted run resumes here
    OUT             the whole file, in input order, by an atomic rename
    OUT.meta.json   its input and options: a repeated run has nothing to do

A program with a `sandbox_fault` is judged again by the next run.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self, TextIO

from pydantic import model_validator

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json, read_rows, to_line, write_json, write_rows
from microcoder.judge.core.machine import lock_file
from microcoder.judge.core.records import read_records
from microcoder.judge.core.types import Outcome, Problem, Program, TestResult, Verdict
from microcoder.judge.run.checks import check_problem

Row = dict[str, Any]


def digest_input(path: Path) -> str:
    """Return the digest of an input file, which ties verdicts to it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class VerdictFile:
    """The verdicts of one input under one set of options; opening it reads the existing ones."""

    def __init__(
        self,
        path: Path,
        *,
        origin: dict[str, str],
    ) -> None:
        """Name a verdict file.

        Args:
            path: where it is to be.
            origin: its input and options, which those of earlier runs must equal.
        """
        self.path = path
        self.done: dict[str, Row] = {}
        """Lines of earlier runs by submission id, sandbox errors left out."""
        self.isolation: Row | None = None
        """Isolation and environment of the latest run that judged any program."""
        self._origin = origin
        self._partial = path.with_name(path.name + ".partial")
        self._meta = path.with_name(path.name + ".meta.json")
        self._file: TextIO | None = None
        self._has_begun = False
        """Whether the partial file holds a verdict."""

    def delete(self) -> None:
        """Delete the files of earlier runs."""
        for path in (self.path, self._partial, self._meta):
            path.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        """Read the verdicts of earlier runs and lock the file.

        Raises:
            DataError: it is in use, or of another origin.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            meta = read_json(self._meta, what="description") if self._meta.exists() else {}
            self._check_origin(meta.get("origin"), self.path)
            self.isolation = meta.get("isolation")
            self._take(read_rows(self.path))
        # Opened for appending: a kill must never find the verdicts of an earlier run gone.
        self._file = self._partial.open("a", encoding="utf-8")
        try:
            lock_file(self._file)
        except BlockingIOError:
            raise DataError(
                f"another process is judging into {self.path}; wait for it or choose another -o"
            ) from None
        rows = read_rows(self._partial)
        if rows:
            self._check_origin(rows[0].get("origin"), self._partial)
            self._take(rows[1:])
        # A header alone is nothing to resume from.
        self._has_begun = any("verdict" in row for row in rows)
        # A last line that a kill cut off.
        self._file.truncate(self._partial.read_bytes().rfind(b"\n") + 1)
        if not rows:
            self._append({"origin": self._origin})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        *_: object,
    ) -> None:
        if kind is None or not self._has_begun:
            self._partial.unlink(missing_ok=True)
        if self._file is not None:
            self._file.close()

    def note_isolation(self, record: Row) -> None:
        """Store the isolation and environment of the next verdicts."""
        self.isolation = record
        self._append({"isolation": record})

    def add(self, name: str, verdict: Verdict) -> Row:
        """Append the verdict of the submission with this id; return its line."""
        row = verdict_record(name, verdict)
        self.done[name] = row
        self._has_begun = True
        self._append(row)
        return row

    def finish(
        self,
        names: Sequence[str],
        summary: dict[str, Any],
    ) -> None:
        """Write the whole file, in the order of these ids, and the file that describes it.

        Args:
            names: the ids of all submissions.
            summary: further keys of the description.
        """
        # The description first: a whole file without one would be taken for another command's.
        write_json(self._meta, {"origin": self._origin, "isolation": self.isolation, **summary})
        write_rows(self.path, (self.done[name] for name in names))

    def _take(self, rows: Sequence[Row]) -> None:
        for row in rows:
            if "verdict" not in row:
                self.isolation = row["isolation"]
            # A fault says nothing about its program, which is judged again.
            elif row["verdict"] != Outcome.SANDBOX_FAULT:
                self.done[row["id"]] = row

    def _check_origin(self, origin: object, path: Path) -> None:
        if origin == self._origin:
            return
        if origin is None:
            why = "not written by this command"
        else:
            why = f"made with another {' and '.join(self._list_changes(origin))}"
        raise DataError(
            f"{path} exists and was {why}; choose another -o, delete it, or pass --overwrite"
        )

    def _list_changes(self, origin: object) -> list[str]:
        """Return in words which keys of the origin differ from those of an earlier run."""
        recorded = origin if isinstance(origin, dict) else {}
        changes = []
        for key, value in self._origin.items():
            if recorded.get(key) == value:
                continue
            # Of the input there is a digest, which says nothing to a reader.
            changes.append(key if key == "input" else f"{key} ({recorded.get(key)}, now {value})")
        return changes

    def _append(self, row: Row) -> None:
        assert self._file is not None
        self._file.write(to_line(row))
        # At once: an interrupted run resumes from what was written.
        self._file.flush()


class Submission(Problem):
    """A problem together with one program for it; `id` names the pair."""

    code: str | None
    """The program; null if the response had none."""

    @model_validator(mode="after")
    def _can_be_judged(self) -> Self:
        check_problem(self)
        return self

    @property
    def program(self) -> Program:
        """The program as the judge takes it."""
        reason = "no_code_given" if self.code is None else ""
        return Program(self.code, self.language, reason)


def read_submissions(path: Path) -> list[Submission]:
    """Read a `.jsonl` or `.jsonl.gz` file of submissions, all of it or nothing.

    Raises:
        DataError: the file is missing or empty, or a line is broken: which line, what is wrong,
            what is allowed.
    """
    return read_records(path, Submission, what="submission file")


def verdict_record(name: str, verdict: Verdict) -> dict[str, Any]:
    """Return the line that a submission's verdict is written as."""
    record: dict[str, Any] = {
        "id": name,
        "verdict": verdict.outcome.value,
        "tests_passed": verdict.tests_passed,
        "tests_total": verdict.tests_total,
        "tests": [_result_record(result) for result in verdict.tests],
        "isolation": verdict.isolation,
    }
    if verdict.order:
        record["order"] = list(verdict.order)
    if verdict.uncounted:
        record["uncounted"] = [
            {"test": run.test, "reason": run.reason.value} for run in verdict.uncounted
        ]
    return record


def _result_record(result: TestResult) -> dict[str, Any]:
    """Return what is written of one test."""
    record = {
        "verdict": result.verdict.value,
        "cpu_seconds": round(result.cpu_seconds, 6),
        "wall_seconds": round(result.wall_seconds, 6),
        "memory_mib": round(result.memory_mib, 3),
        "method": result.method,
        "detail": result.detail,
    }
    if result.output is not None:
        record["output"] = result.output
    return record

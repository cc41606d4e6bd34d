"""Rows of a published file: JSON lines, plain or gzipped, or one JSON list; each with where it stands."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.errors import DataError
from microcoder.formats.evalplus import plus_tests
from microcoder.formats.row import Malformed, Row
from microcoder.formats.rows import read_problem
from microcoder.records import read_values
from microcoder.types import Problem, TestCase


@dataclass(frozen=True, slots=True)
class PublishedRow:
    """One object of a file."""

    where: str
    values: Mapping[str, Any]

    def text(self, *names: str) -> str:
        """Return the first of these fields that is there.

        Raises:
            DataError: none is, or it is no text.
        """
        for name in names:
            if name in self.values:
                value = self.values[name]
                if isinstance(value, str):
                    return value
                raise DataError(f"{self.where}: {name} is {type(value).__name__}, not text")
        raise DataError(f"{self.where}: {' or '.join(names)} is missing; is this the file as published?")

    def strings(self, name: str) -> list[str]:
        """Return a list of texts; empty where the field is missing.

        Raises:
            DataError: it is something else.
        """
        value = self.values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise DataError(f"{self.where}: {name} is no list of texts")
        return value

    def problem(self, format_name: str, name: str) -> Problem:
        """Return the problem of this row, read as any row of its format is.

        Raises:
            DataError: it cannot be judged: what is wrong with which field.
        """
        return self.own_problem(format_name).model_copy(update={"id": name})

    def own_problem(self, format_name: str) -> Problem:
        """Return the problem of this row under the name that the row gives it.

        Raises:
            ConfigError: there is no such format, or its reader failed.
            DataError: it cannot be judged: what is wrong with which field.
        """
        try:
            return read_problem(self.values, format_name)
        except DataError as error:
            raise DataError(f"{self.where}: {error}") from None

    def digest(self) -> str:
        """Return a digest of the whole row."""
        return hashlib.sha256(json.dumps(self.values, sort_keys=True).encode()).hexdigest()[:16]


def read_plus(path: Path) -> dict[str, PublishedRow]:
    """Read an EvalPlus file, by the digits of its task ids.

    Raises:
        DataError: the file is missing or a row is broken.
    """
    return {task_number(row.text("task_id")): row for row in read_published(path, "EvalPlus file")}


def task_number(task_id: str) -> str:
    """Return `12` for `HumanEval/12` and for `Mbpp/12`."""
    return task_id.rpartition("/")[2]


def plus_tests_of(row: PublishedRow, fields: Sequence[str]) -> tuple[TestCase, ...]:
    """Return tests of some of an EvalPlus row's inputs, such as `base_input` and `plus_input`.

    Raises:
        DataError: a field is missing or of another kind.
    """
    try:
        return tuple(plus_tests(Row(row.values, id=row.where, dataset="evalplus", is_judged=True), fields=fields))
    except Malformed as error:
        raise DataError(f"{row.where}: {error.detail}") from None


def read_published(path: Path, what: str) -> list[PublishedRow]:
    """Read every object of a file.

    Raises:
        DataError: the file is missing or empty, or holds something else: which line, what is wrong.
    """
    rows = read_values(path, what)
    for where, value in rows:
        if not isinstance(value, dict):
            raise DataError(f"{where} holds {type(value).__name__}, not an object")
    if not rows:
        raise DataError(f"{what} {path} is empty; it needs one JSON object a line")
    return [PublishedRow(where, value) for where, value in rows]

"""Problems of benchmarks and rows of published files, with where each stands; one that cannot be read is an error.

HumanEval and MBPP as published (`HumanEval.jsonl.gz`, `mbpp.jsonl`, `sanitized-mbpp.json`), and EvalPlus tests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from microcoder.data.formats.functions import plus_tests
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.rows import read_problem
from microcoder.data.rowfiles import LISTS, FilePart, RawRow, list_parts, read_part
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Problem, TestCase


@dataclass(frozen=True, slots=True)
class Question:
    """One problem of a benchmark; its tests are read when they are needed, for a release has gigabytes of them."""

    id: str
    statement: str
    digest: str
    """Of everything that decides the prompt and the verdict."""
    load: Callable[[], Problem] = field(repr=False)
    """Return the problem with its tests; raises DataError where the file has changed since."""
    title: str = ""
    platform: str = ""
    """`atcoder`, `leetcode`, `codeforces`, or empty."""
    difficulty: str = ""
    date: datetime | None = None
    starter_code: str = ""
    fn_name: str | None = None
    examples: tuple[str, ...] = ()
    """Assertions that the prompt shows (MBPP)."""
    language: str = "python"


def read_plus(path: Path) -> dict[str, FileRow]:
    """Read an EvalPlus file, by the digits of its task ids."""
    return {task_number(row.text("task_id")): row for row in read_published(path, "EvalPlus file")}


def task_number(task_id: str) -> str:
    """Return `12` for `HumanEval/12` and for `Mbpp/12`."""
    return task_id.rpartition("/")[2]


def plus_tests_of(row: FileRow, fields: Sequence[str]) -> tuple[TestCase, ...]:
    """Return tests of some of an EvalPlus row's inputs, such as `base_input` and `plus_input`."""
    try:
        return tuple(plus_tests(Row(row.values, id=row.where, dataset="evalplus", is_judged=True), fields=fields))
    except Malformed as error:
        raise DataError(f"{row.where}: {error.detail}") from None


def read_published(path: Path, what: str) -> list[FileRow]:
    """Read every object of a file.

    Raises:
        DataError: the file is missing or empty, or holds something else: which line, what is wrong.
    """
    rows = list(read_file(path, what))
    if not rows:
        raise DataError(f"{what} {path} is empty; it needs one JSON object a line")
    return rows


@dataclass(frozen=True, slots=True)
class FileRow:
    """A row as it stands in a file."""

    where: str
    values: Mapping[str, Any]
    digest: str
    read_again: Callable[[], FileRow] = field(repr=False)
    """Reads it from the file once more; raises DataError where that has changed."""

    def text(self, *names: str) -> str:
        """Return the first of these fields that is there."""
        for name in names:
            if name in self.values:
                value = self.values[name]
                if isinstance(value, str):
                    return value
                raise DataError(f"{self.where}: {name} is {type(value).__name__}, not text")
        raise DataError(f"{self.where}: {' or '.join(names)} is missing; is this the file as published?")

    def strings(self, name: str) -> list[str]:
        """Return a list of texts; empty where the field is missing."""
        value = self.values.get(name, [])
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise DataError(f"{self.where}: {name} is no list of texts")
        return value

    def problem(self, format_name: str, name: str) -> Problem:
        """Return the problem of this row, read as any row of its format is."""
        return self.own_problem(format_name).model_copy(update={"id": name})

    def own_problem(self, format_name: str) -> Problem:
        """Return the problem of this row under the name that the row gives it."""
        try:
            return read_problem(self.values, format_name)
        except DataError as error:
            raise DataError(f"{self.where}: {error}") from None

    def values_digest(self) -> str:
        """Return a digest of the row, however the file writes it."""
        return hashlib.sha256(json.dumps(self.values, sort_keys=True).encode()).hexdigest()[:16]


def read_file(path: Path, what: str) -> Iterator[FileRow]:
    """Yield the rows of a file, one at a time; of what is not packed none is kept."""
    if not path.is_file():
        raise DataError(f"{what} {path} does not exist; check the path")
    # Lines that are not packed are found again by their offset, rows of Parquet by their number.
    is_found_by_offset = path.name.endswith((".jsonl", ".ndjson"))
    for part in list_parts(path.parent, path.name, 1 if is_found_by_offset else 1 << 30):
        for number, row in enumerate(read_part(path.parent, part)):
            place = part if is_found_by_offset else FilePart(part.file, part.first + number, 1)
            yield _read(row, path, place, what)


def _read(row: RawRow, path: Path, place: FilePart, what: str) -> FileRow:
    where = f"{what} {path} {'item' if path.name.endswith(LISTS) else 'line'} {row.place.rpartition(':')[2]}"
    if row.values is None:
        reason, detail = row.fault or ("", "")
        said = {"not_json": f"is not JSON ({detail})", "not_an_object": f"holds {detail}, not an object"}
        raise DataError(f"{where} {said.get(reason, f'cannot be read ({detail})')}; download the file again")
    digest = hashlib.sha256(row.raw or json.dumps(dict(row.values), default=str).encode()).hexdigest()

    def read_again() -> FileRow:
        found = next(read_part(path.parent, place), None)
        if found is None or (again := _read(found, path, place, what)).digest != digest:
            raise DataError(f"{where} has changed since it was first read; start again")
        return again

    if path.suffix in (".gz", ".zst"):
        # All that stands before it would have to be unpacked once more.
        return FileRow(where, row.values, digest, lambda: FileRow(where, row.values or {}, digest, read_again))
    return FileRow(where, row.values, digest, read_again)


Split = Literal["test", "prompt", "validation", "train", "all"]
_SPLITS: dict[Split, range] = {
    "prompt": range(1, 11),
    "test": range(11, 511),
    "validation": range(511, 601),
    "train": range(601, 975),
    "all": range(1, 1_000_000),
}


def read_humaneval(path: Path, *, plus: Path | None = None) -> list[Question]:
    """Read HumanEval; with `plus`, the problems of that file, under its further inputs too.

    Raises:
        DataError: a file is missing, or a row is broken: which line, what is wrong.
    """
    further = read_plus(plus) if plus is not None else None
    questions = []
    for row in read_published(path, "HumanEval file"):
        more = None
        if further is not None and (more := further.get(task_number(row.text("task_id")))) is None:
            continue
        name, statement = row.text("task_id"), row.text("prompt")
        problem = row.problem("humaneval", name)
        if more is not None:
            tests = (*problem.tests, *plus_tests_of(more, ("plus_input",)))
            problem = problem.model_copy(update={"tests": tests})
        questions.append(_ask(row, problem, more, statement=statement))
    if not questions:
        raise DataError(f"{plus} shares no task with {path}; are both of the same benchmark?")
    return questions


def read_mbpp(path: Path, *, split: Split = "test", plus: Path | None = None) -> list[Question]:
    """Read a split of MBPP; with `plus`, the problems of that file, under its inputs in place of the assertions.

    Raises:
        DataError: a file is missing, or a row is broken: which line, what is wrong.
    """
    further = read_plus(plus) if plus is not None else None
    questions = []
    for row in read_published(path, "MBPP file"):
        number = row.values.get("task_id")
        if not isinstance(number, int):
            raise DataError(f"{row.where}: task_id is {number!r}, not a number; is this MBPP as published?")
        more = further.get(str(number)) if further is not None else None
        if number in _SPLITS[split] and (further is None or more is not None):
            problem = row.problem("mbpp", f"Mbpp/{number}")
            if more is not None:
                tests = plus_tests_of(more, ("base_input", "plus_input"))
                problem = problem.model_copy(update={"tests": tests, "fn_name": more.text("entry_point")})
            examples = tuple(row.strings("test_list"))
            questions.append(_ask(row, problem, more, statement=problem.statement, examples=examples))
    if not questions:
        raise DataError(f"{path} holds no task of split {split!r}{f' that {plus} has too' if plus else ''}; try all")
    return questions


def _ask(
    row: FileRow, problem: Problem, more: FileRow | None, *, statement: str, examples: tuple[str, ...] = ()
) -> Question:
    return Question(
        id=problem.id,
        statement=statement,
        fn_name=problem.fn_name,
        examples=examples,
        digest=row.values_digest() + (more.values_digest() if more is not None else ""),
        load=lambda: problem,
    )

"""LiveCodeBench's `code_generation_lite` (and `code_generation`), from the JSONL files as published, or as Parquet.

Read by hand, without `datasets`: the published loader is a script, which `datasets` 4 no longer runs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from microcoder.data.benchmarks.rows import FileRow, Question, read_file
from microcoder.data.formats.rows import read_problem
from microcoder.data.formats.sets import MEMORY_LIMIT_MIB, TIME_LIMIT_SECONDS
from microcoder.judge import check_problem
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Dialect, Problem

NEWEST_VERSION = 6
_WHAT = "LiveCodeBench file"

_TEXTS = (
    "question_title",
    "question_content",
    "platform",
    "question_id",
    "contest_date",
    "starter_code",
    "difficulty",
    "public_test_cases",
    "private_test_cases",
)
_RELEASE = re.compile(r"release_v(?P<last>\d+)|v(?P<first>\d+)(?:_v(?P<end>\d+))?")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which problems are asked; empty means all."""

    platforms: Collection[str] = ()
    difficulties: Collection[str] = ()
    start: datetime | None = None
    end: datetime | None = None
    """Both included. LiveCodeBench's end date is the midnight it begins with: a contest later that day is left out."""

    def holds(self, platform: str, difficulty: str, held: datetime) -> bool:
        """Whether a problem is selected."""
        if self.platforms and platform not in self.platforms:
            return False
        if self.difficulties and difficulty not in self.difficulties:
            return False
        return (self.start is None or self.start <= held) and (self.end is None or held <= self.end)


def release_files(release: str) -> list[str]:
    """Return the file names of a release: `release_v5` is the first five files, `v4_v6` the fourth to the sixth."""
    name = f"release_v{NEWEST_VERSION}" if release == "release_latest" else release
    found = _RELEASE.fullmatch(name)
    if found is not None:
        first = int(found["first"] or 1)
        last = int(found["last"] or found["end"] or first)
        if 1 <= first <= last <= NEWEST_VERSION:
            return [f"test{number}.jsonl" if number > 1 else "test.jsonl" for number in range(first, last + 1)]
    raise ConfigError(
        f"release {release!r} is unknown; use release_v1 to release_v{NEWEST_VERSION}, release_latest, "
        f"v1 to v{NEWEST_VERSION} for one file, or v2_v4 for a range"
    )


def find_files(path: Path, release: str | None) -> list[Path]:
    """Return the files to read: the one that was named, or those of a release in a folder."""
    if path.is_dir():
        files = [path / name for name in release_files(release or "release_latest")]
        missing = [file.name for file in files if not file.exists()]
        if missing:
            raise DataError(
                f"{path} lacks {', '.join(missing)} of {release or 'release_latest'}; download them from "
                "https://huggingface.co/datasets/livecodebench/code_generation_lite, or name another release"
            )
        return files
    if release is not None:
        raise ConfigError(f"release {release!r} is a choice of files, but {path} is no folder; leave the release out")
    return [path]


def read_livecodebench(
    path: Path,
    *,
    release: str | None = None,
    selection: Selection | None = None,
    time_limit_seconds: float = TIME_LIMIT_SECONDS,
    memory_limit_mib: int = MEMORY_LIMIT_MIB,
    dialect: Dialect = "plain",
    on_broken: Callable[[str], None] | None = None,
) -> list[Question]:
    """Read the selected problems, ordered by id as LiveCodeBench orders them.

    Every selected row is checked whole, its tests included, and the tests are then let go: a release unpacks to more
    than memory holds, so a question reads its own again when it is judged. A broken row is an error, unless `on_broken`
    is given: it is called with what is wrong, and the row is left out.

    Raises:
        ConfigError: the release does not fit the path.
        DataError: a file is missing, a row is broken (which line, what, how to fix it), or nothing is selected.
    """
    selection = selection or Selection()
    judged_by: dict[str, Any] = {"time_limit_seconds": time_limit_seconds, "memory_limit_mib": memory_limit_mib}
    if dialect != "plain":  # Only then: a run that was begun without the choice may go on.
        judged_by["dialect"] = dialect
    questions: dict[str, Question] = {}
    num_rows = 0
    for file in find_files(path, release):
        for row in read_file(file, _WHAT):
            num_rows += 1
            held = _check(row)
            if not selection.holds(row.values["platform"], row.values["difficulty"], held):
                continue
            try:
                question = _read_question(row, held, judged_by)
            except DataError as error:
                if on_broken is None:
                    raise
                on_broken(str(error))
                continue
            if question.id in questions:
                raise DataError(f"{row.where}: question_id {question.id!r} was used before; each may appear once")
            questions[question.id] = question
    if not questions:
        raise DataError(
            f"{path}: none of the {num_rows} problems is selected; widen the dates, platforms, difficulties"
        )
    return [questions[name] for name in sorted(questions)]


def is_livecodebench(path: Path) -> bool:
    """Return whether a file, or a folder of files, is LiveCodeBench's: by the fields of its first row."""
    if path.is_dir():
        path = path / "test.jsonl"
    if not path.is_file():
        return False
    try:
        first = next(read_file(path, _WHAT), None)
    except DataError:
        return False  # whoever reads it says what is wrong
    return first is not None and {"question_id", "question_content", "public_test_cases"} <= first.values.keys()


def _check(row: FileRow) -> datetime:
    values, where = row.values, row.where
    for name in _TEXTS:
        if not isinstance(values.get(name), str):
            what = f"is {type(values[name]).__name__}, not text" if name in values else "is missing"
            raise DataError(f"{where}: {name} {what}; is this code_generation_lite as published?")
    for name in ("question_id", "question_content"):
        if not values[name].strip():
            raise DataError(f"{where}: {name} is empty; download the file again")
    try:
        return datetime.fromisoformat(values["contest_date"]).replace(tzinfo=None)
    except ValueError:
        text = values["contest_date"]
        raise DataError(f"{where}: contest_date {text!r} is no ISO date such as 2025-01-18T00:00:00") from None


def _read_question(row: FileRow, held: datetime, judged_by: Mapping[str, Any]) -> Question:
    values, read_again = row.values, row.read_again
    problem = _read_problem(row, judged_by)
    return Question(
        id=values["question_id"],
        title=values["question_title"],
        statement=values["question_content"],
        platform=values["platform"],
        difficulty=values["difficulty"],
        date=held,
        starter_code=values["starter_code"],
        fn_name=problem.fn_name,
        digest=hashlib.sha256(f"{row.digest}{sorted(judged_by.items())}".encode()).hexdigest()[:16],
        load=lambda: _read_problem(read_again(), judged_by),
    )


def _read_problem(row: FileRow, judged_by: Mapping[str, Any]) -> Problem:
    values = row.values
    try:
        read = read_problem(values, "livecodebench")
        problem = read.model_copy(update={"id": values["question_id"], **judged_by})
        check_problem(problem)
    except DataError as error:
        raise DataError(f"{row.where}: {error}; download the file again") from None
    return problem

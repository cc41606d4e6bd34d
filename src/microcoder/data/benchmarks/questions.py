"""Benchmark files: which problems are asked, with which prompt and extra tests.

Reading a file executes nothing. Files are read by hand: LiveCodeBench's loader is a script, which
`datasets` 4 does not run. A broken row is an error.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date, datetime, time
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from microcoder.data.formats.columns import parse_columns
from microcoder.data.formats.evalplus import plus_programs
from microcoder.data.formats.format import recognise
from microcoder.data.formats.functions import MBPP_TEST
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.rows import FORMATS, find_record, read_problem
from microcoder.data.release.problems import read_problems
from microcoder.data.rowfiles import SUFFIXES, FileRow, placed, read_file
from microcoder.judge import check_problem
from microcoder.judge.core.config import Config, kind_or
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Dialect, Problem, TestCase

OnBroken = Callable[[str], None]
"""Called with what is wrong with a broken row, which is left out."""


@dataclass(frozen=True, slots=True)
class Question:
    """A problem of a benchmark, with what its prompt and the report need."""

    problem: Problem
    """The problem as it is asked.

    For LiveCodeBench without tests, of which a release has gigabytes (see `load`).
    """
    digest: str
    """Digest of everything that decides the prompt and the verdict."""
    load: Callable[[], Problem] = field(repr=False)
    """Returns the problem with its tests; raises DataError if the file has changed since."""
    title: str = ""
    platform: str = ""
    """Platform of the problem: `atcoder`, `leetcode`, `codeforces`; empty if not stated."""
    date: datetime | None = None
    examples: tuple[str, ...] = ()
    """Assertions that the prompt shows (MBPP)."""
    names: tuple[str, ...] = ()
    """The values that a problem's row has in `id_columns`."""
    id_columns: ClassVar[tuple[str, ...]] = ("problem_id", "question_id", "task_id", "id")
    """Columns of ids; a row of answers names its problem by the first of these that it has."""

    @property
    def id(self) -> str:
        """The problem's id, unique in its benchmark."""
        return self.problem.id

    @property
    def statement_digest(self) -> str:
        """Digest of the statement, by which the viewer recognises the problem."""
        return digest_statement(self.problem.statement)

    @property
    def difficulty(self) -> str:
        """The problem's tier: `easy`, `medium`, `hard`, or that of a problem file; else empty."""
        return self.problem.tier or ""


_DIGEST_CHARACTERS = 16
"""Hexadecimal digits of a digest."""
_KINDS = ("livecodebench", "humaneval", "mbpp")
"""Benchmarks that are asked with their published prompts; rows of others are `problems`."""


class Benchmark(Config):
    """A benchmark file: which problems are asked, with which prompt and extra tests."""

    kind: str
    path: Path
    """The benchmark's file; or the folder of LiveCodeBench's test.jsonl to test6.jsonl, or of a
    finished corpus."""
    noun: ClassVar[str] = "benchmark file"
    system: ClassVar[str | None] = None
    """System message as published; None if there is none."""

    def _name_kind(self, row: FileRow, error: DataError) -> DataError:
        """Return the error for a row that cannot be read.

        If the row is of another benchmark, the error says which.
        """
        if find_record(row.values) is not None:
            what = "a problem of ours"
            kind = "problems"
        else:
            row_format = recognise(row.values, FORMATS.values())
            if row_format is None:
                return error
            what = f"a row of {row_format.name}"
            kind = row_format.name if row_format.name in _KINDS else "problems"
        if kind == self.kind:
            return error
        return DataError(
            f"{row.where} is {what}, not of {self.kind}; "
            f"type: --benchmark.kind {kind} --benchmark.path {self.path}"
        )

    def read(self, *, on_broken: OnBroken | None = None) -> list[Question]:
        """Return the selected problems; nothing of them is executed.

        A broken row is an error, unless `on_broken` is given: it is called with what is wrong, and
        the row is left out.

        Raises:
            ConfigError: the release does not fit the path, or the format is unknown.
            DataError: a file is missing, a row is broken (which line, what, how to fix it), or
                nothing is selected.
        """
        questions: dict[str, Question] = {}
        num_rows = 0
        for row, more in self._find_rows():
            num_rows += 1
            try:
                with placed(row.where):
                    is_selected = self._holds(row.fields)
            except DataError as error:
                # Also with `on_broken`: it may be another benchmark's file.
                raise self._name_kind(row, error) from None
            if not is_selected:
                continue
            try:
                with placed(row.where):
                    question = self._read_question(row, more)
            except DataError as error:
                if on_broken is None:
                    raise self._name_kind(row, error) from None
                on_broken(str(error))
                continue
            # Answers name their problem by its id alone.
            if question.id in questions:
                raise DataError(
                    f"{row.where}: the id {question.id!r} was used before; each may appear once"
                )
            questions[question.id] = question
        if not questions:
            why = "it is empty; it needs one JSON object a line"
            if num_rows:
                why = f"none of the {num_rows} problems is selected; {self._why_none()}"
            raise DataError(f"{self.noun} {self.path}: {why}")
        return list(questions.values())

    def prompt(self, question: Question) -> str | None:
        """Return a question's prompt as published; None if the benchmark has none."""
        return None

    def _find_rows(self) -> Iterator[tuple[FileRow, FileRow | None]]:
        """Yield each row of the file, with EvalPlus's row of further tests for it or None."""
        for row in read_file(self.path, self.noun):
            yield row, None

    def _holds(self, row: Row) -> bool:
        """Whether a row is selected by the benchmark's options, such as dates.

        Raises:
            Malformed: the row is broken.
        """
        return True

    def _why_none(self) -> str:
        """Say which rows the benchmark accepts, and what to type, for a file without such rows."""
        return "widen the dates"

    def _read_question(self, row: FileRow, more: FileRow | None) -> Question:
        """Return the question of a row, with EvalPlus's further tests if there are any."""
        raise NotImplementedError


# The texts of prompts are LiveCodeBench's, letter by letter.
_EXPERT = (
    "You are an expert Python programmer. You will be given a question (problem specification) "
    "and will generate a correct Python program that matches the specification and passes all "
    "tests."
)
_WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your "
    "code within delimiters."
)
_WITHOUT_STARTER = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly "
    "test on the sample inputs). Enclose your code within delimiters as follows. Ensure that when "
    "the python program runs, it reads the inputs, runs the algorithm and writes output to STDOUT."
)
_RELEASE = re.compile(r"release_v(?P<last>\d+)|v(?P<first>\d+)(?:_v(?P<end>\d+))?")
"""A release: up to a file, one file, or a range of files."""
_NEWEST = 6
"""Number of the newest file."""


class LiveCodeBench(Benchmark):
    """LiveCodeBench code generation, as published."""

    kind: Literal["livecodebench"] = "livecodebench"
    release: str | None = None
    """For a folder: release_v1 to release_v6, release_latest (the default), v6 alone, or a range
    such as v4_v6."""
    start_date: date | None = None
    """Leaves out contests before this day."""
    end_date: date | None = None
    """Excludes contests after 00:00 of this day, as LiveCodeBench's own flag does."""
    dialect: Dialect = "plain"
    """`livecodebench` runs programs with LiveCodeBench's prelude (star imports, recursion limit
    50,000, integers of 50,000 digits), for results comparable with its leaderboard."""
    noun: ClassVar[str] = "LiveCodeBench file"
    system: ClassVar[str | None] = _EXPERT

    def read(self, *, on_broken: OnBroken | None = None) -> list[Question]:
        """Return the selected problems, ordered by id as LiveCodeBench orders them.

        See `Benchmark.read`.
        """
        questions = super().read(on_broken=on_broken)
        return sorted(questions, key=lambda question: question.id)

    def prompt(self, question: Question) -> str:
        """Return LiveCodeBench's prompt for chat models, verbatim.

        So results compare with published ones.
        """
        code = question.problem.starter_code
        instruction = _WITH_STARTER if code else _WITHOUT_STARTER
        return (
            f"### Question:\n{question.problem.statement}\n\n### Format: {instruction}\n"
            f"```python\n{code or '# YOUR CODE HERE'}\n```\n\n"
            "### Answer: (use the provided format with backticks)\n\n"
        )

    def _find_rows(self) -> Iterator[tuple[FileRow, FileRow | None]]:
        for file in self._find_files():
            for row in read_file(file, self.noun):
                yield row, None

    def _find_files(self) -> list[Path]:
        """Return the files of the release, or the file that `path` is."""
        if not self.path.is_dir():
            if self.release is not None:
                raise ConfigError(
                    f"release {self.release!r} is a choice of files, but {self.path} is not a "
                    "folder; leave the release out"
                )
            return [self.path]
        release = self.release or "release_latest"
        files = [self.path / name for name in release_files(release)]
        missing = [file.name for file in files if not file.exists()]
        if missing:
            raise DataError(
                f"{self.path} lacks {', '.join(missing)} of {release}; download them from "
                "https://huggingface.co/datasets/livecodebench/code_generation_lite, "
                "or name another release"
            )
        return files

    def _holds(self, row: Row) -> bool:
        """Whether a contest is between the dates."""
        # Broken rows are found before the dates leave any out.
        for name in ("question_id", "question_content"):
            row.statement(name)
        contest = _read_date(row)
        if self.start_date is not None:
            first = datetime.combine(self.start_date, time())
            if contest < first:
                return False
        if self.end_date is None:
            return True
        last = datetime.combine(self.end_date, time())
        return contest <= last

    def _read_question(self, row: FileRow, more: FileRow | None) -> Question:
        fields = row.fields
        # Not the row itself: it would keep its tests in memory.
        read_again = row.read_again
        changes = {"id": fields.text("question_id"), "dialect": self.dialect}

        def load() -> Problem:
            return read_problem(read_again(), self.kind).model_copy(update=changes)

        problem = read_problem(row.values, self.kind).model_copy(update=changes)
        check_problem(problem)
        return Question(
            # Every selected row is checked whole, and its tests are then let go: a release unpacks
            # to more than memory.
            problem.model_copy(update={"tests": ()}),
            _digest(row.digest + self.dialect),
            load,
            title=fields.text("question_title"),
            platform=fields.text("platform"),
            date=_read_date(fields),
        )


def release_files(release: str) -> list[str]:
    """Return the file names of a release.

    `release_v5` is the first five files, `v4_v6` the fourth to the sixth.
    """
    stated = f"release_v{_NEWEST}" if release == "release_latest" else release
    match = _RELEASE.fullmatch(stated)
    if match is not None:
        first = int(match["first"] or 1)
        last = int(match["last"] or match["end"] or first)
        if 1 <= first <= last <= _NEWEST:
            return [_file_name(number) for number in range(first, last + 1)]
    raise ConfigError(
        f"release {release!r} is unknown; use release_v1 to release_v{_NEWEST}, release_latest, "
        f"v1 to v{_NEWEST} for one file, or v2_v4 for a range"
    )


def _file_name(number: int) -> str:
    return "test.jsonl" if number == 1 else f"test{number}.jsonl"


def is_livecodebench(path: Path) -> bool:
    """Whether a file, or a folder of files, is LiveCodeBench's, by its first row's fields."""
    file = path / _file_name(1) if path.is_dir() else path
    if not file.name.endswith(SUFFIXES):
        return False
    try:
        # The first row alone: a release has gigabytes.
        row = next(read_file(file, "problem file"), None)
    except DataError:
        return False
    if row is None:
        return False
    return recognise(row.values, FORMATS.values()) is FORMATS["livecodebench"]


def _read_date(row: Row) -> datetime:
    """Return the date of the contest of a row of LiveCodeBench."""
    text = row.text("contest_date")
    try:
        # The dates of options have no time zone, and Python does not compare one with none.
        return datetime.fromisoformat(text).replace(tzinfo=None)
    except ValueError:
        detail = f"contest_date {text!r} is not an ISO date such as 2025-01-18T00:00:00"
        raise Malformed("wrong_value", detail) from None


class _Functions(Benchmark):
    """A benchmark of Python functions with assertions; with EvalPlus's inputs if `plus` is set."""

    plus: Path | None = None
    """EvalPlus's HumanEvalPlus.jsonl(.gz) or MbppPlus.jsonl(.gz); the latter's inputs replace the
    assertions."""
    plus_fields: ClassVar[tuple[str, ...]] = ()
    """Fields of EvalPlus's inputs that are used; with `base_input` among them they replace the
    assertions."""

    def _find_rows(self) -> Iterator[tuple[FileRow, FileRow | None]]:
        rows = read_file(self.path, self.noun)
        if self.plus is None:
            for row in rows:
                yield row, None
            return
        plus_rows = read_file(self.plus, "EvalPlus file")
        further = {_name(row): row for row in plus_rows}
        # EvalPlus has left out tasks of MBPP: only those that both have can be asked.
        shared = []
        for row in rows:
            name = _name(row)
            if name in further:
                shared.append((row, further[name]))
        if not shared:
            raise DataError(
                f"{self.plus} shares no task with {self.path}; are both of the same benchmark?"
            )
        yield from shared

    def _read_question(self, row: FileRow, more: FileRow | None) -> Question:
        problem = read_problem(row.values, self.kind)
        problem = problem.model_copy(update={"id": _name(row)})
        # Sorted, since the order of a row's keys decides nothing.
        digest = _digest(json.dumps(row.values, sort_keys=True))
        if more is not None:
            digest += _digest(json.dumps(more.values, sort_keys=True))
            problem = self._add_tests(problem, more)
        examples = row.fields.texts("test_list")
        return Question(problem, digest, lambda: problem, examples=examples)

    def _add_tests(self, problem: Problem, more: FileRow) -> Problem:
        """Return a problem with the tests of EvalPlus's row."""
        with placed(more.where):
            programs = plus_programs(more.fields, fields=self.plus_fields)
            fn_name = more.fields.text("entry_point")
        tests = [TestCase(input="", output=program) for program in programs]
        # HumanEval+ adds to the published test, MBPP+ replaces it.
        if "base_input" not in self.plus_fields:
            tests = [*problem.tests, *tests]
        added = {"tests": tuple(tests), "fn_name": fn_name}
        return problem.model_copy(update=added)


class HumanEval(_Functions):
    """HumanEval (HumanEval.jsonl.gz), with HumanEval+ where `plus` names its file."""

    kind: Literal["humaneval"]
    noun: ClassVar[str] = "HumanEval file"
    plus_fields: ClassVar[tuple[str, ...]] = ("plus_input",)

    def prompt(self, question: Question) -> str:
        """Return a prompt to complete the function that the statement begins."""
        return (
            "Complete this function. Answer with a self-contained Python program in one fenced "
            "code block (```python ... ```) that holds the whole function and all imports it "
            "needs.\n\n"
            f"```python\n{question.problem.statement.strip()}\n```\n"
        )


class Mbpp(_Functions):
    """MBPP (mbpp.jsonl or sanitized-mbpp.json), with MBPP+ where `plus` names its file."""

    kind: Literal["mbpp"]
    noun: ClassVar[str] = "MBPP file"
    plus_fields: ClassVar[tuple[str, ...]] = ("base_input", "plus_input")

    def prompt(self, question: Question) -> str:
        """Return a prompt with the statement and the assertions."""
        tests = "\n".join(question.examples)
        return (
            f"{question.problem.statement.strip()}\n\n"
            f"Your code should pass these tests:\n\n```python\n{tests}\n```\n\n"
            "Answer with a self-contained Python program in one fenced code block "
            "(```python ... ```).\n"
        )

    def _holds(self, row: Row) -> bool:
        number = row.get("task_id")
        if not isinstance(number, int):
            raise Malformed("wrong_type", f"task_id is {number!r}, not a number")
        # The test as published; the others are prompts, for validation and for training.
        return number in MBPP_TEST

    def _why_none(self) -> str:
        last = MBPP_TEST.stop - 1
        return (
            f"MBPP's test has the task_id {MBPP_TEST.start} to {last}, the others are for prompts, "
            "validation and training; to evaluate on these, "
            f"type: --benchmark.kind problems --benchmark.path {self.path}"
        )


def _name(row: FileRow) -> str:
    """Return a row's task id as EvalPlus writes it: MBPP's 12 is `Mbpp/12`.

    Raises:
        DataError: it has none.
    """
    with placed(row.where):
        name = row.fields.name("task_id")
        if not name:
            raise Malformed("missing_field", "task_id")
    return name if "/" in name else f"Mbpp/{name}"


class ProblemFile(Benchmark):
    """Problems in our own format, rows of any supported one, or your own benchmark.

    The same readers build a corpus. JSON lines (also .gz), one JSON list, Parquet, or a folder that
    `microcoder data build` finished.
    """

    kind: Literal["problems"]
    format: str | None = Field(default=None, min_length=1)
    """A format of docs/rows.md, or your own: path/to/file.py:function (docs/extending.md); None:
    recognised by a row's fields."""
    columns: str = ""
    """Columns of rows with names of their own, such as `id=uid,statement=task.text,input=stdin`
    (docs/rows.md)."""
    noun: ClassVar[str] = "problem file"

    def read(self, *, on_broken: OnBroken | None = None) -> list[Question]:
        """Return all problems of the file or folder; see `Benchmark.read`."""
        if self.path.is_dir():
            if self.format or self.columns:
                raise ConfigError(
                    f"{self.path} is a folder of a built corpus: leave out format and columns, "
                    "or name a file of rows"
                )
            return [_whole(problem) for problem in read_problems(self.path)]
        return super().read(on_broken=on_broken)

    def _read_question(self, row: FileRow, more: FileRow | None) -> Question:
        columns = parse_columns(self.columns)
        problem = read_problem(row.values, self.format, columns=columns)
        check_problem(problem)
        names = [row.fields.name(column) for column in Question.id_columns]
        return _whole(problem, tuple(name for name in names if name))


def _whole(problem: Problem, names: tuple[str, ...] = ()) -> Question:
    """Return the question of a problem that is kept in memory with its tests."""
    digest = _digest(problem.model_dump_json())
    return Question(problem, digest, lambda: problem, names=names)


def digest_questions(questions: Iterable[Question]) -> str:
    """Return the digest of all that decides prompts and verdicts of some questions, in order."""
    return _digest("\n".join(f"{question.id} {question.digest}" for question in questions))


def digest_statement(statement: str) -> str:
    """Return the digest of a statement, whatever its white space."""
    return _digest(" ".join(statement.split()))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]


AnyBenchmark = Annotated[
    LiveCodeBench | HumanEval | Mbpp | ProblemFile,
    Field(discriminator="kind"),
    kind_or("livecodebench"),
]
"""Any benchmark, by its `kind`; LiveCodeBench if that is left out."""

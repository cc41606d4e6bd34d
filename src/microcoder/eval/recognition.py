"""Files of problems and answers whose form nobody named: what they are taken for, and why.

Nothing is asked for that can be seen. The format of rows is told by their fields, as everywhere
(docs/rows.md). Where no format is known, columns are told by their values: tests are pairs of an
input and an output, a statement is the longest text, an answer is a program or holds one. What was
decided is said in words, and in the words of the command that would name it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.data.formats.columns import list_paths
from microcoder.data.formats.format import Columns, recognise
from microcoder.data.formats.rows import FORMATS, is_record, read_problem
from microcoder.data.formats.values import shorten
from microcoder.eval.any_rows import Row, is_table, read_cell, read_rows_of_any
from microcoder.judge.core.digits import dump_json
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.syntax import try_parse
from microcoder.judge.core.types import Problem

NUM_LOOKED_AT = 10
"""Rows by which a file is told."""
INPUT_KEYS = ("input", "stdin", "in", "input_data", "given", "args", "inputs")
"""Keys of a test's input, in the order in which they are looked for."""
OUTPUT_KEYS = ("output", "expected_output", "stdout", "expected", "out", "answer", "outputs")
"""Keys of its output."""
ANSWER_WORDS = (
    "response",
    "completion",
    "generat",
    "prediction",
    "model_output",
    "output",
    "sample",
    "answer",
    "messages",
    "code",
    "program",
    "solution",
    "text",
)
"""What names of columns with answers hold, the surest first."""
OWN_WORDS = (
    "canonical",
    "reference",
    "gold",
    "ground_truth",
    "starter",
    "prompt",
    "question",
    "statement",
    "description",
    "instruction",
    "problem",
    "test",
    "metadata",
)
"""What names of columns hold that are the problem's own and no answer."""
ANSWER_NAMES = (
    "response",
    "responses",
    "completion",
    "completions",
    "generation",
    "generations",
    "prediction",
    "model_output",
    "code",
    "program",
)
"""Names of columns that hold answers whatever is in them: a model may have said no program."""
NAMES = ("id", "problem", "task", "question", "uid", "qid", "name", "slug", "title", "idx", "index")
"""Names of columns that name a problem, besides those that end in `_id`, `_name` or `_slug`."""
REFERENCES = frozenset({"solution", "solutions", "reference", "canonical_solution"})
"""Columns of a problem's own right programs."""
ID_WORDS = ("id", "name", "slug", "title", "key", "idx", "index")
"""What names of columns with a problem's name hold or are."""
CODE_MARKS = ("```", "#include", "public class", "def ", "print(", "import ", "console.log")
"""What a program or a response with one holds."""


@dataclass(frozen=True, slots=True)
class Recognised:
    """Problems, and answers to them, in forms of our own."""

    problems: tuple[Problem, ...]
    answers: tuple[Mapping[str, Any], ...]
    """Rows of `problem_id` and `response`."""
    opinions: tuple[object, ...]
    """Of each row another judge's verdict, as it stands in the file; empty if none was asked
    for."""
    said: tuple[str, ...]
    """What the files were taken for, a line each."""

    def write(self, folder: Path) -> tuple[Path, Path]:
        """Write the problems and the answers into a folder, and return the files."""
        folder.mkdir(parents=True, exist_ok=True)
        problems = folder / "problems.jsonl"
        answers = folder / "answers.jsonl"
        rows = [problem.model_dump(mode="json", exclude_defaults=True) for problem in self.problems]
        problems.write_text("".join(f"{dump_json(row)}\n" for row in rows), encoding="utf-8")
        lines = [f"{dump_json(answer)}\n" for answer in self.answers]
        answers.write_text("".join(lines), encoding="utf-8")
        return problems, answers


@dataclass(frozen=True, slots=True)
class _Reading:
    """How a file's rows are read as problems."""

    format: str | None
    columns: Mapping[str, str]

    def describe(self) -> str:
        """Return it as options of a command."""
        parts = []
        if self.format is not None:
            parts.append(f"--format {self.format}")
        if self.columns:
            pairs = ",".join(f"{field}={column}" for field, column in self.columns.items())
            parts.append(f"--columns {pairs}")
        return " ".join(parts)


def recognise_files(paths: Sequence[Path], *, against: str = "") -> Recognised:
    """Return the problems and answers of one file or of two.

    Args:
        paths: the files.
        against: the column beside the answers with another judge's verdicts or rewards.

    Raises:
        DataError: no file has problems, or none has answers; what was seen and what is missing.
    """
    tables = [_open_table(path) for path in paths]
    with_problems = [table for table in tables if table.reading is not None]
    if not with_problems:
        raise _no_problems(tables)
    chosen = with_problems[0]
    if len(with_problems) > 1:
        chosen = _choose_problems(with_problems)
    others = [table for table in tables if table is not chosen]
    if not others:
        return _take_one(chosen, against)
    return _take_two(chosen, others[0], against)


@dataclass(frozen=True, slots=True)
class _Table:
    """A file's rows, and how they are read as problems."""

    path: Path
    rows: Sequence[Row]
    reading: _Reading | None
    """None if they are no problems."""

    @property
    def first_rows(self) -> Sequence[Row]:
        """The rows by which the file is told."""
        return self.rows[:NUM_LOOKED_AT]

    @property
    def own_columns(self) -> set[str]:
        """The columns that are the problems' own; none if the rows are no problems."""
        if self.reading is None:
            return set()
        return _own_columns(self.rows[0], self.reading)

    def find_answers(self) -> str:
        """Return the column of answers; empty without one."""
        return find_answers(self.first_rows, self.own_columns)

    def describe_columns(self) -> str:
        """Return the names of its columns."""
        return shorten(", ".join(list_paths(self.rows[0])))


def _open_table(path: Path) -> _Table:
    rows = read_rows_of_any(path)
    return _Table(path, rows, find_reading(rows[:NUM_LOOKED_AT]))


# ----- Problems.


def find_reading(rows: Sequence[Row]) -> _Reading | None:
    """Return how rows are read as problems; None if they are none."""
    for reading in _list_readings(rows):
        # A published set holds rows that cannot be judged whole; those are counted later.
        if 2 * sum(_is_problem(row, reading) for row in rows) >= len(rows):
            return reading
    return None


def _list_readings(rows: Sequence[Row]) -> Iterator[_Reading]:
    first = rows[0]
    if is_record(first):
        yield _Reading(None, {})
    known = recognise(dict(first), FORMATS.values())
    if known is not None and known.folders is None:
        yield _Reading(known.name, {})
    tests = _find_tests(first)
    if not tests:
        return
    taken = set(tests.values())
    columns = dict(tests)
    statement = _find_statement(rows, taken)
    if statement:
        columns["statement"] = statement
    name = _find_id(rows)
    if name:
        columns["id"] = name
    yield _Reading(None, columns)


def _is_problem(row: Row, reading: _Reading) -> bool:
    try:
        read_problem(row, reading.format, columns=reading.columns)
    except DataError:
        return False
    return True


def _value_at(row: Row, path: str) -> object:
    """Return the value in a column, `a.b` for a field of an object."""
    if path in row:
        return row[path]
    head, _, tail = path.partition(".")
    inner = row.get(head)
    return inner.get(tail) if isinstance(inner, Mapping) else None


def _find_tests(row: Row) -> dict[str, str]:
    """Return the columns and keys of tests, by their values; empty if there are none."""
    paths = list(list_paths(row))
    for path in paths:
        value = _value_at(row, path)
        if isinstance(value, str):
            value = read_cell(value)
        if is_table(value):
            assert isinstance(value, list)
            keys = _find_keys(value[0])
            if keys:
                return {"tests": path, **keys}
        if isinstance(value, Mapping) and _find_keys(value):
            return {"tests": path}
    # Two columns of equal length.
    lists = {path: _value_at(row, path) for path in paths}
    inputs = next((path for path in paths if _is_lists_of(path, lists, INPUT_KEYS)), "")
    outputs = next((path for path in paths if _is_lists_of(path, lists, OUTPUT_KEYS)), "")
    if inputs and outputs:
        return {"inputs": inputs, "outputs": outputs}
    return {}


def _is_lists_of(path: str, lists: Mapping[str, object], words: Sequence[str]) -> bool:
    """Whether a column is a list whose name says that it holds inputs, or outputs."""
    name = path.rpartition(".")[2].lower()
    if not isinstance(lists[path], list):
        return False
    return any(name in (word, f"{word}s", f"test_{word}s", f"test_{word}") for word in words)


def _find_keys(test: Row) -> dict[str, str]:
    """Return the keys of a test's input and output; empty if it has not both."""
    by_name = {str(key).lower(): str(key) for key in test}
    sent = next((by_name[key] for key in INPUT_KEYS if key in by_name), "")
    expected = next((by_name[key] for key in OUTPUT_KEYS if key in by_name), "")
    if not sent or not expected or sent == expected:
        return {}
    return {"input": sent, "output": expected}


def _find_statement(rows: Sequence[Row], taken: set[str]) -> str:
    """Return the column of the longest prose; empty without one."""
    lengths: dict[str, int] = {}
    for path in list_paths(rows[0]):
        values = [_value_at(row, path) for row in rows]
        texts = [value for value in values if isinstance(value, str)]
        is_prose = len(texts) == len(rows) and not any(map(_holds_code, texts))
        if path not in taken and is_prose:
            lengths[path] = sum(map(len, texts))
    return max(lengths, key=lambda path: lengths[path], default="")


def _find_id(rows: Sequence[Row]) -> str:
    """Return the column that names a row; empty without one."""
    for word in ID_WORDS:
        for path in list_paths(rows[0]):
            name = path.rpartition(".")[2].lower()
            is_named = name == word or name.endswith(f"_{word}") or name in (f"u{word}", f"q{word}")
            if is_named and all(isinstance(_value_at(row, path), str | int) for row in rows):
                return path
    return ""


# ----- Answers.


def _holds_code(text: str) -> bool:
    """Whether a text is a program, or a response that holds one."""
    if any(mark in text for mark in CODE_MARKS):
        return True
    return "=" in text and try_parse(text) is not None


def _is_answer(value: object) -> bool:
    """Whether a value is an answer: a text, a chat, or a list of answers."""
    if isinstance(value, str):
        return _holds_code(value)
    if isinstance(value, Mapping):
        return value.get("role") == "assistant" or _is_answer(value.get("content"))
    if isinstance(value, list):
        return bool(value) and any(map(_is_answer, value))
    return False


def find_answers(rows: Sequence[Row], taken: set[str]) -> str:
    """Return the column of answers: by its values, and of several by its name; empty without one.

    Args:
        rows: the first of a file.
        taken: columns that are the problem's own.
    """
    found = []
    for path in list_paths(rows[0]):
        name = path.rpartition(".")[2].lower()
        is_own = path in taken or any(word in name for word in OWN_WORDS)
        num_answers = sum(_is_answer(_value_at(row, path)) for row in rows)
        # A model may have said nothing in some.
        if is_own or (2 * num_answers < len(rows) and name not in ANSWER_NAMES):
            continue
        ranks = [rank for rank, word in enumerate(ANSWER_WORDS) if word in name]
        found.append((min(ranks, default=len(ANSWER_WORDS)), path))
    return min(found, default=(0, ""))[1]


def _own_columns(row: Row, reading: _Reading) -> set[str]:
    """Return the columns that a reading takes for the problem's own."""
    taken = set(reading.columns.values())
    if reading.format is None and not reading.columns:
        return {"reference", "statement", "starter_code", "tests"}
    taken |= REFERENCES
    known = FORMATS.get(reading.format or "")
    if known is None or not isinstance(known.read, Columns):
        return taken
    for names in (
        known.read.statement,
        known.read.tests,
        known.read.assertions,
        known.read.setup,
        known.read.starter_code,
        known.read.solutions,
    ):
        if isinstance(names, str):
            taken.add(names)
        elif isinstance(names, tuple):
            taken.update(names)
    # A format that names any of several: what is in the row.
    return {path for path in taken if _value_at(row, path) is not None}


def _name_problems(table: _Table, said: list[str]) -> tuple[list[Problem], list[str]]:
    """Return the distinct problems of a table, and the id of each row's.

    What was read, and what could not be, is added to what is said.

    Rows of one problem and several answers hold it several times. Different problems of one name,
    as some sets have them, are told apart by a number behind it.
    """
    reading = table.reading
    assert reading is not None
    how = reading.describe() or "our own rows"
    said.append(f"{table.path}: problems, {len(table.rows)} rows ({how})")
    problems: dict[str, Problem] = {}
    taken: set[str] = set()
    ids = []
    refused = []
    for number, row in enumerate(table.rows, 1):
        try:
            problem = read_problem(row, reading.format, columns=reading.columns)
        except DataError as error:
            ids.append("")
            refused.append(f"row {number}: {shorten(str(error))}")
            continue
        content = problem.model_dump_json(exclude={"id"})
        if content not in problems:
            name = _free_name(problem.id, taken)
            taken.add(name)
            problems[content] = problem.model_copy(update={"id": name})
        ids.append(problems[content].id)
    if refused:
        said.append(
            f"{len(refused)} rows are no problem that can be judged, and left out: {refused[0]}"
        )
    return list(problems.values()), ids


def _free_name(name: str, taken: set[str]) -> str:
    """Return a name that no problem has: itself, or with a number behind it."""
    number = 1
    free = name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def _take_one(table: _Table, against: str) -> Recognised:
    """Return the problems of a file, and the answers that stand beside them."""
    _check_column(table, against)
    said: list[str] = []
    problems, ids = _name_problems(table, said)
    column = table.find_answers()
    if not column and all(problem.reference is None for problem in problems):
        # What nobody reads as a reference is an answer.
        column = find_answers(table.first_rows, table.own_columns - REFERENCES)
    answers = []
    opinions = []
    if column:
        said.append(f"answers: column {column}")
        for row, problem_id in zip(table.rows, ids, strict=True):
            if problem_id:
                answers.append({"problem_id": problem_id, "response": _value_at(row, column)})
                opinions += _opinion_of(row, against)
    elif against:
        raise DataError(
            f"--against {against}: {table.path} has no column of answers that it could be about "
            f"(columns: {table.describe_columns()}); name the answers response, or code"
        )
    else:
        said.append("answers: none beside them, so their own references are judged")
        for problem in problems:
            if problem.reference is not None:
                answers.append({"problem_id": problem.id, "code": problem.reference})
    if not answers:
        raise DataError(
            f"{table.path} has problems, but no answers and no references (columns: "
            f"{table.describe_columns()}); add the file of answers: microcoder judge {table.path} "
            "ANSWERS"
        )
    return Recognised(tuple(problems), tuple(answers), tuple(opinions), tuple(said))


def _take_two(table: _Table, beside: _Table, against: str) -> Recognised:
    """Return the problems of one file, and the answers of another."""
    _check_column(beside, against)
    said: list[str] = []
    problems, ids = _name_problems(table, said)
    column = beside.find_answers()
    if not column:
        raise DataError(
            f"{beside.path} has no column with programs or responses that hold one (columns: "
            f"{beside.describe_columns()}); name the answers response, or code"
        )
    names, how = _join(table.rows, ids, beside.rows)
    said.append(f"{beside.path}: answers, column {column}, to the problem {how}")
    answers = []
    opinions = []
    num_strangers = 0
    for row, problem_id in zip(beside.rows, names, strict=True):
        if problem_id:
            answers.append({"problem_id": problem_id, "response": _value_at(row, column)})
            opinions += _opinion_of(row, against)
        else:
            num_strangers += 1
    if num_strangers:
        said.append(f"{num_strangers} answers name none of these problems, and are left out")
    return Recognised(tuple(problems), tuple(answers), tuple(opinions), tuple(said))


def _opinion_of(row: Row, against: str) -> list[object]:
    """Return another judge's verdict in a row, as a list of one; an empty list if none is asked."""
    if not against:
        return []
    # A row without it has no verdict of theirs; a file without it is refused before.
    return [_value_at(row, against)]


def _check_column(table: _Table, against: str) -> None:
    """Raise DataError where no row has the column with another judge's verdicts."""
    if against and not any(against in list(list_paths(row)) for row in table.rows):
        shown = table.describe_columns()
        raise DataError(f"--against {against}: the answers have no such column; they have {shown}")


@dataclass(frozen=True, slots=True)
class _Link:
    """A column of problems and one of answers that may name the same."""

    rank: tuple[int, int]
    """How much its names say, and how many answers find their problem by it."""
    names: tuple[str, ...]
    """The problem of each answer; empty for one that finds none."""
    how: str


def _join(
    rows: Sequence[Row], ids: Sequence[str], answer_rows: Sequence[Row]
) -> tuple[Sequence[str], str]:
    """Return the problem's id of each answer, and how it was told.

    Columns of one name say most, then those whose names say that they name a problem.

    Raises:
        DataError: nothing names a problem, or two pairs of columns do that disagree.
    """
    found = list(_find_links(rows, ids, answer_rows))
    most = max((link.rank[1] for link in found), default=0)
    # A column by which few find their problem names something else.
    links = [link for link in found if 2 * link.rank[1] >= most]
    links.sort(key=lambda link: link.rank, reverse=True)
    if links:
        best = links[0]
        for other in links[1:]:
            if other.rank == best.rank and other.names != best.names:
                raise DataError(
                    f"answers may name their problem {best.how} or {other.how}, and these differ; "
                    "give both files a column problem_id"
                )
        return best.names, best.how
    if len(rows) == len(answer_rows):
        return ids, "of the same row, for no column names one"
    raise DataError(
        f"no column of the answers names a problem, and {len(answer_rows)} answers are not a row "
        f"each of {len(rows)} problems; give both files a column problem_id"
    )


def _find_links(
    rows: Sequence[Row], ids: Sequence[str], answer_rows: Sequence[Row]
) -> Iterator[_Link]:
    for own in list_paths(rows[0]):
        by_value: dict[str, str] = {}
        for row, problem_id in zip(rows, ids, strict=True):
            value = _value_at(row, own)
            if problem_id and isinstance(value, str | int) and not isinstance(value, bool):
                by_value.setdefault(str(value), problem_id)
        # A column that names no row, such as a language.
        if len(by_value) < len(set(ids) - {""}):
            continue
        for theirs in list_paths(answer_rows[0]):
            values = [_value_at(row, theirs) for row in answer_rows]
            names = tuple(by_value.get(str(value), "") for value in values)
            num_found = sum(map(bool, names))
            says = _rate_names(own, theirs)
            # A number under any name may count anything: samples, or a reward.
            is_number = not all(isinstance(value, str) for value in values)
            if num_found and (says or not is_number):
                yield _Link((says, num_found), names, f"in {theirs}, as {own} there")


def _rate_names(own: str, theirs: str) -> int:
    """Return how much the names of two columns say that they name a problem: 0 to 3."""
    mine = own.rpartition(".")[2].lower()
    other = theirs.rpartition(".")[2].lower()
    is_name = other in NAMES or other.endswith(("_id", "_name", "_slug"))
    if mine == other:
        return 3 if is_name else 1
    return 2 if is_name else 0


def _choose_problems(tables: Sequence[_Table]) -> _Table:
    """Return of two files with problems the one without answers: the other repeats them."""
    without = [table for table in tables if not table.find_answers()]
    return without[0] if len(without) == 1 else tables[0]


def _no_problems(tables: Sequence[_Table]) -> DataError:
    seen = []
    for table in tables:
        column = table.find_answers()
        kind = f"answers in {column}" if column else "no answers"
        seen.append(f"{table.path} has {kind} and no tests (columns: {table.describe_columns()})")
    return DataError(
        f"{'; '.join(seen)}; what is missing are tests: add the file of problems, or name its "
        "columns: microcoder judge --problems P --responses A "
        "--columns tests=...,input=...,output=..."
    )

"""Rows of any known format -> a problem file that `microcoder train`, `init` and `eval` read.

Rows that cannot be judged whole are left out and counted by reason. Test rows of a benchmark are
left out too, unless asked for: a model that was trained on them has seen the answers. Nothing of a
row is executed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.data.formats.format import recognise
from microcoder.data.formats.functions import MBPP_TEST
from microcoder.data.formats.rows import FORMATS, load_format, read_problem
from microcoder.data.release.problems import read_rows, write_problems
from microcoder.data.rowfiles import FileRow
from microcoder.judge import check_problem
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Problem

_LONGEST_REASON = 400
"""Characters of a reason."""
_MOST_SHOWN = 3
"""Rows that are named for each reason."""
_NAMES = ("id", "task_id", "question_id", "problem_id", "uid")
"""Fields that name a row, by precedence."""


@dataclass(frozen=True, slots=True)
class ConversionResult:
    """What became of the rows of a file."""

    num_problems: int
    num_rows: int
    left_out: Mapping[str, tuple[str, ...]]
    """Why rows became no problem -> their ids or places; the most frequent reason first."""


def convert(
    source: Path,
    output: Path,
    *,
    format: str | None = None,
    columns: Mapping[str, str] | None = None,
    with_test_rows: bool = False,
) -> ConversionResult:
    """Write the problems of a file of rows, or of a folder of such files, as a problem file.

    It is written whole or not at all.

    Args:
        source: JSON lines, one JSON list or Parquet.
        output: The problem file (.jsonl).
        format: a format of docs/rows.md, or a reader of the user's own; None to recognise it row by
            row.
        columns: field -> column, where rows have names of their own.
        with_test_rows: also converts test rows of a benchmark, for held-out problems.

    Raises:
        ConfigError: the format or a column is unknown, or the output is the source.
        DataError: a row cannot be read at all, or none of the rows becomes a problem.
    """
    if output.suffix != ".jsonl":
        raise ConfigError(f"{output} is no problem file; name one that ends in .jsonl")
    if output.exists() and output.samefile(source):
        raise ConfigError(f"{output} is the source itself; choose another -o")
    problems: dict[str, Problem] = {}
    left_out: dict[str, list[str]] = {}
    num_rows = 0
    for row in read_rows(source):
        num_rows += 1
        # Asked first: of a test row nothing else matters.
        reason = "" if with_test_rows else _why_test(row.values, format)
        if not reason:
            reason = _add_problem(row.values, format, columns or {}, problems)
        if reason:
            left_out.setdefault(reason, []).append(_name_of(row))
    by_number = sorted(left_out.items(), key=lambda pair: -len(pair[1]))
    reasons = {reason: tuple(names) for reason, names in by_number}
    if not problems:
        lines = "\n".join(describe(ConversionResult(0, num_rows, reasons)))
        raise DataError(f"{source}: none of its {num_rows} rows became a problem\n{lines}")
    write_problems(output, list(problems.values()))
    return ConversionResult(len(problems), num_rows, reasons)


def _add_problem(
    values: Mapping[str, Any],
    format: str | None,
    columns: Mapping[str, str],
    problems: dict[str, Problem],
) -> str:
    """Add the problem of a row to `problems`, or say why the row has none.

    Empty if it was added.
    """
    try:
        problem = read_problem(values, format, columns=columns)
        # A whole problem file is refused for one such problem.
        check_problem(problem)
    except DataError as error:
        return _as_reason(str(error))
    reason = _why_not(problem, problems)
    if not reason:
        problems[problem.id] = problem
    return reason


def describe(converted: ConversionResult) -> list[str]:
    """Return a line for each reason why rows were left out, with the first such row."""
    lines = []
    for reason, names in converted.left_out.items():
        shown = ", ".join(names[:_MOST_SHOWN])
        more = ", ..." if len(names) > _MOST_SHOWN else ""
        lines.append(f"{len(names):,} left out: {reason} ({shown}{more})")
    return lines


def _name_of(row: FileRow) -> str:
    """Return the id of a row, or the number of its line."""
    for name in _NAMES:
        value = row.values.get(name)
        if isinstance(value, str | int) and str(value):
            return str(value)
    return row.where.rpartition(" ")[2]


def _why_test(values: Mapping[str, Any], format: str | None) -> str:
    """Say why a row belongs to a benchmark's test set; empty if it does not."""
    if format is None:
        row_format = recognise(values, FORMATS.values())
    else:
        row_format = load_format(format)
    if row_format is None or not row_format.is_benchmark:
        return ""
    if row_format.name == "mbpp":
        task = str(values.get("task_id", "")).rpartition("/")[2]
        # The other rows are published for training.
        if task.isdecimal() and int(task) not in MBPP_TEST:
            return ""
        what = f"rows of MBPP's test split (task_id {MBPP_TEST.start} to {MBPP_TEST.stop - 1})"
    else:
        what = f"rows of {row_format.name}, a benchmark"
    return (
        f"{what}: training would contaminate it; --with-test-rows keeps them, for held-out problems"
    )


def _why_not(problem: Problem, others: Mapping[str, Problem]) -> str:
    """Say why a problem cannot be in a file with the others; empty if it can."""
    if not problem.statement.strip():
        return "there is no statement; a model cannot be asked without one"
    if problem.id in others:
        return "the id was used before; each may appear once"
    return ""


def _as_reason(message: str) -> str:
    """Return an error's text without the row's name, so that equal errors count together."""
    head, _, reason = message.partition("): ")
    text = reason if head.startswith("row ") and reason else message
    if len(text) > _LONGEST_REASON:
        return f"{text[: _LONGEST_REASON - 3]}..."
    return text

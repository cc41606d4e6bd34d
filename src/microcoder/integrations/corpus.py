"""Where problems to ask come from: a finished corpus, or a file of rows of any format that `Problem.from_row` reads."""

from __future__ import annotations

from pathlib import Path

from microcoder.data.release.problems import read_problems
from microcoder.data.rowfiles import SUFFIXES, list_parts, read_part
from microcoder.judge import check_problem
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Problem

_ROWS_AT_ONCE = 1000


def read_corpus(path: Path, *, format: str | None = None) -> list[Problem]:
    """Return the problems of a corpus, each of which can be asked and judged.

    Args:
        path: a folder that `microcoder data build` finished, or a file of rows: JSON lines, a JSON list, parquet.
        format: what the rows are (docs/rows.md); None to recognise each by its fields.
    """
    if path.is_dir():
        return read_problems(path)
    if not path.is_file():
        raise DataError(f"corpus {path} does not exist; use a file of rows, or a folder of microcoder data build")
    if not path.name.endswith(SUFFIXES):
        raise DataError(f"corpus {path} is of no known kind; its name may end with {', '.join(SUFFIXES)}")
    problems: dict[str, Problem] = {}
    for part in list_parts(path.parent, path.name, _ROWS_AT_ONCE):
        for row in read_part(path.parent, part):
            if row.values is None:
                raise DataError(
                    f"corpus {row.place}: {': '.join(row.fault or ('unreadable',))}; fix or remove that row"
                )
            problem = _read_row(row.values, format, row.place)
            if problem.id in problems:
                raise DataError(f"corpus {row.place}: id {problem.id!r} was already used; give each problem its own")
            problems[problem.id] = problem
    if not problems:
        raise DataError(f"corpus {path} holds no row")
    return list(problems.values())


def _read_row(values: object, format: str | None, place: str) -> Problem:
    try:
        problem = Problem.from_row(values, format)  # pyrefly: ignore[bad-argument-type]
        check_problem(problem)
    except DataError as error:
        raise DataError(f"corpus {place}: {error}") from None
    if not problem.statement.strip():
        raise DataError(f"corpus {place}: problem {problem.id!r} has no statement; a model cannot be asked without one")
    return problem

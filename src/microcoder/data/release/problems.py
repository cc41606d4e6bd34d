"""Reads and writes problem files, one `Problem` a line; also reads a finished corpus."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from microcoder.judge import check_problem
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import new_file
from microcoder.judge.core.records import read_records
from microcoder.judge.core.types import Problem


def read_problems(path: Path) -> list[Problem]:
    """Read a problem file, or a folder that `microcoder data build` finished, for training or evaluation.

    Raises:
        DataError: a line is broken, a problem has no statement, or it cannot be judged (see `check_problem`).
    """
    if path.is_dir():
        # Parquet is read by a package that problem files do without.
        from microcoder.data.release.tables import read_released

        problems = read_released(path)
    else:
        problems = read_records(path, Problem, what="problem file")
    silent = [problem.id for problem in problems if not problem.statement.strip()]
    if silent:
        raise DataError(
            f"problem file {path}: {len(silent)} problems have no statement (first: {silent[0]!r}); "
            "a model cannot be asked without one"
        )
    for problem in problems:
        try:
            check_problem(problem)
        except DataError as error:
            raise DataError(f"problem file {path}: {error}") from None
    return problems


def write_problems(path: Path, problems: Sequence[Problem]) -> None:
    """Write a problem file by an atomic rename."""
    with new_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.writelines(problem.model_dump_json(exclude_defaults=True) + "\n" for problem in problems)

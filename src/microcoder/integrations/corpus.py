"""Where problems to ask come from: a finished corpus, or a file of rows of any format that `Problem.from_row` reads."""

from __future__ import annotations

from pathlib import Path

from microcoder.data.benchmarks import ProblemFile
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Problem


def read_corpus(path: Path, *, format: str | None = None) -> list[Problem]:
    """Return the problems of a corpus, each of which can be asked and judged, as `microcoder eval` reads them.

    Args:
        path: a folder that `microcoder data build` finished, or a file of rows: JSON lines, a JSON list, Parquet.
        format: what the rows are (docs/rows.md); None to recognise each by its fields.
    """
    problems = [question.load() for question in ProblemFile(kind="problems", path=path, format=format).read()]
    if silent := [problem.id for problem in problems if not problem.statement.strip()]:
        raise DataError(f"corpus {path}: problem {silent[0]!r} has no statement; a model cannot be asked without one")
    return problems

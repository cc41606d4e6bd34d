"""A corpus: the problems that `microcoder data build` kept, and the rows that it turned away, each with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from microcoder.errors import DataError
from microcoder.files import read_json
from microcoder.viewer.line_source import LineSource
from microcoder.viewer.problem_tests import tests_of_files
from microcoder.viewer.row_files import ROWS_AT_ONCE, present, read_row
from microcoder.viewer.sources import Row, RunInfo, tabulate_counts

KEPT = "kept"
_LIGHT = ("id", "dataset", "stage", "reason", "platform_difficulty", "difficulty", "pass_rate", "num_tests")
_HEAVY = (
    "id", "statement", "statement_found", "problem", "solutions", "raw", "candidate", "detail", "stage", "reason",
    "dataset", "source_row", "url", "licence", "date", "platform", "title", "natural_language", "flags", "difficulty",
    "pass_rate", "num_generated_tests", "num_hidden_tests", "mutation_score",
)  # fmt: skip
_FACTS = _HEAVY[7:]


class CorpusSource(LineSource):
    """Each problem as a rollout: its statement, how the source had it, a solution, its tests."""

    kind = "corpus"
    split = "corpus"

    def __init__(self, root: Path) -> None:
        super().__init__()
        manifest = read_json(root / "manifest.json", what="corpus manifest")
        self.name = str(manifest.get("name") or root.resolve().name)
        self.tests = tests_of_files([root])
        self._root = root
        self._files: list[tuple[Path, int]] = []
        """Each with the rows before it."""

    def read(self, record: Row) -> Row:
        """Return a problem's texts."""
        path, first = next((path, first) for path, first in reversed(self._files) if record["row"] >= first)
        return _as_rollout(read_row(path, record["row"] - first, _HEAVY))

    def read_all(self, index: Any) -> Iterator[Row]:
        """Yield every problem's texts, file by file."""
        for path, _ in self._files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=present(file, _HEAVY)):
                    yield from map(_as_rollout, batch.to_pylist())

    def about(self) -> RunInfo:
        """Return how many rows were kept, and why the others were not."""
        table = tabulate_counts("Rows by what became of them", "reason", "rows", self.index().count("verdict"))
        return RunInfo("finished", [("folder", str(self._root))], (), (), [table])

    def _take_lines(self) -> bool:
        if self._files:
            return False
        for path in (*sorted(self._root.glob("problems-*.parquet")), *sorted(self._root.glob("rejected-*.parquet"))):
            self._files.append((path, len(self._lights)))
            try:
                with pq.ParquetFile(path) as file:
                    rows = file.read(columns=present(file, _LIGHT)).to_pylist()
            except (OSError, ValueError) as error:
                raise DataError(f"{path} cannot be read ({error}); build the corpus again") from None
            for row in rows:
                self._lights.append(
                    {
                        "split": self.split,
                        "step": 0,
                        "row": len(self._lights),
                        "problem_id": row["id"],
                        "tier": row.get("platform_difficulty") or row.get("dataset") or "",
                        "verdict": row.get("reason") or KEPT,
                        "reward": row.get("pass_rate"),
                        "tests_total": row.get("num_tests"),
                    }
                )
        return True


def _as_rollout(row: Row) -> Row:
    facts = {name.replace("_", " "): _plain(row[name]) for name in _FACTS if row.get(name) not in (None, "", [])}
    candidate = _parse(row.get("candidate"))
    solutions = _parse(row.get("solutions")) or candidate.get("solutions") or []
    program = next((s.get("code") for s in solutions if s.get("known", "accepted") == "accepted"), None)
    problem = _parse(row.get("problem"))
    return {
        "prompt": row.get("statement") or candidate.get("statement") or "",
        "completion": row.get("statement_found") or candidate.get("statement_found") or row.get("raw") or None,
        "program": program or problem.get("reference"),
        "extraction": "" if program or problem.get("reference") else "the source gives no solution",
        "tests": [{"verdict": "given"} for _ in problem.get("tests") or ()],
        "facts": facts,
    }


def _plain(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _parse(text: str | None) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return {}

"""An evaluation: samples.jsonl and verdicts.jsonl of a folder that `microcoder eval` wrote, joined by sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from microcoder.config import flatten
from microcoder.errors import DataError
from microcoder.files import read_json, read_rows
from microcoder.viewer.line_source import LineSource, light_verdict
from microcoder.viewer.problem_tests import ProblemTests, tests_of_evaluation
from microcoder.viewer.row_files import LineFile
from microcoder.viewer.sources import Row, RunInfo, tabulate_counts

_SAMPLE_KEYS = ("problem_id", "sample_index", "num_tokens", "is_truncated")
_UNJUDGED = "not judged yet"
_WIRE = "\x1eresults "
"""What a harness puts before the values that calls returned."""


class EvaluationSource(LineSource):
    """Answers to a benchmark with their verdicts, complete or not."""

    kind = "evaluation"
    split = "evaluation"

    def __init__(self, root: Path, manifest: Row, tests: ProblemTests | None) -> None:
        super().__init__()
        self._root, self._manifest = root, manifest
        self.name = str(manifest.get("name") or root.resolve().name)
        self.tests = tests or tests_of_evaluation((manifest.get("config") or {}).get("benchmark") or {})
        self._samples = LineFile(root / "samples.jsonl")
        self._verdicts = LineFile(root / "verdicts.jsonl")
        self._places: dict[tuple[Any, Any], int] = {}
        self._sample_begins: list[int] = []
        self._verdict_begins: dict[int, int] = {}
        self._questions: dict[str, Row] = {}

    def read(self, record: Row) -> Row:
        """Return a sample's response, program and tests; the prompt is the statement, if the benchmark is here."""
        sample = self._samples.row_at(self._sample_begins[record["row"]])
        begin = self._verdict_begins.get(record["row"])
        verdict = self._verdicts.row_at(begin) if begin is not None else {}
        question = self._questions.get(record["problem_id"], {})
        facts = {name: question.get(name) for name in ("title", "platform", "difficulty", "date")}
        asked = self.tests.find(record["problem_id"])
        tests = [{**test, "output": _unwire(test.get("output"))} for test in verdict.get("tests") or []]
        shown = {"prompt": asked.statement} if asked else {}
        return {**shown, **sample, "tests": tests, "facts": {k: v for k, v in facts.items() if v}}

    def stamp(self) -> str:
        """Return what changes with the lines, and when the results are written."""
        return f"{super().stamp()} {(self._root / 'results.json').exists()}"

    def about(self) -> RunInfo:
        """Return the table of accuracies by platform and difficulty."""
        path = self._root / "results.json"
        results = read_json(path, what="results") if path.exists() else None
        tables = [_grid(results)] if results else []
        counts = (results or {}).get("outcomes") or self.index().count("verdict")
        tables.append(tabulate_counts("Samples by verdict", "verdict", "samples", counts))
        notices = []
        if counts.get(_UNJUDGED):
            notices.append(f"{counts[_UNJUDGED]} samples are not judged yet.")
        if self.tests.missing:
            notices.append(self.tests.missing)
        facts = [(key, str(value)) for key, value in flatten(self._manifest.get("config") or {}).items()]
        state = "finished" if results else "not finished"
        return RunInfo(state, [("started", str(self._manifest.get("started", ""))), *facts], notices, (), tables)

    def _take_lines(self) -> bool:
        if self._samples.was_replaced() or self._verdicts.was_replaced():
            for file in (self._samples, self._verdicts):
                file.restart()
            self._lights, self._places, self._sample_begins, self._verdict_begins = [], {}, [], {}
        if not self._questions:
            rows = read_rows(self._root / "questions.jsonl")
            self._questions = {row["problem_id"]: row for row in rows if "problem_id" in row}
        before = len(self._lights), len(self._verdict_begins)
        is_changed = False
        for begin, row in self._samples.new_rows():
            self._add_sample(begin, row)
        for begin, row in self._verdicts.new_rows():
            place = self._places.get((row.get("problem_id"), row.get("sample_index")))
            if place is not None:
                is_changed = True
                self._verdict_begins[place] = begin
                self._lights[place] |= light_verdict(row)
        return is_changed or before != (len(self._lights), len(self._verdict_begins))

    def _add_sample(self, begin: int, row: Row) -> None:
        if not {"problem_id", "sample_index"} <= row.keys():
            raise DataError(f"{self._samples.path} was edited or damaged: a line names no sample")
        place = len(self._lights)
        self._places[row["problem_id"], row["sample_index"]] = place
        self._sample_begins.append(begin)
        question = self._questions.get(row["problem_id"], {})
        tier = " ".join(filter(None, (question.get("platform"), question.get("difficulty"))))
        light = {name: row.get(name) for name in _SAMPLE_KEYS}
        self._lights.append({**light, "split": self.split, "step": 0, "row": place, "tier": tier, "verdict": _UNJUDGED})


def _unwire(output: str | None) -> str | None:
    """Return what calls returned, without the mark of its line."""
    return output.strip().removeprefix(_WIRE) if output and _WIRE in output else output


def _grid(results: Row) -> Row:
    """Accuracy by platform and difficulty, as results.json has it."""
    rows = [
        [
            str(cell.get("platform")),
            str(cell.get("difficulty")),
            f"pass@{cell.get('k')}",
            _percent(cell.get("value")),
            f"{_percent(cell.get('low'))} to {_percent(cell.get('high'))}",
            str(cell.get("num_problems")),
        ]
        for cell in results.get("cells") or []
    ]
    columns = ["platform", "difficulty", "figure", "value", "95 % interval", "problems"]
    return {"title": "Accuracy", "columns": columns, "rows": rows}


def _percent(value: object) -> str:
    return f"{100 * value:.1f} %" if isinstance(value, int | float) else "unknown"

"""A file of verdicts that `microcoder judge` wrote; the programs are in the submission file, if it is named."""

from __future__ import annotations

from pathlib import Path

from microcoder.errors import DataError
from microcoder.files import read_json
from microcoder.viewer.line_source import LineSource, light_verdict
from microcoder.viewer.problem_tests import ProblemTests
from microcoder.viewer.row_files import LineFile
from microcoder.viewer.sources import Row, RunInfo, tabulate_counts


class VerdictSource(LineSource):
    """Verdicts of submissions, whole or still growing (`.partial`)."""

    kind = "verdicts"
    split = "judged"

    def __init__(self, path: Path, tests: ProblemTests | None) -> None:
        super().__init__()
        self.name = path.name.removesuffix(".jsonl")
        self.tests = tests or ProblemTests()
        self._path = path
        self._file = LineFile(path)
        self._begins: list[int] = []
        first = next((row for _, row in LineFile(self._whole_or_partial()).new_rows()), None)
        if first is not None and not {"verdict", "origin"} & first.keys():
            raise DataError(
                f"{path} is no file of verdicts: its first line has no verdict; name the file that `microcoder judge` "
                "wrote by -o, or a folder of `microcoder train`, `microcoder eval` or `microcoder data build`"
            )

    def read(self, record: Row) -> Row:
        """Return a submission's tests, and its program and statement if the submission file is named."""
        row = self._file.row_at(self._begins[record["row"]])
        asked = self.tests.find(record["problem_id"])
        facts = {"isolation": row["isolation"]} if row.get("isolation") else {}
        return {
            "program": asked.code if asked else None,
            "prompt": asked.statement if asked else None,
            "tests": row.get("tests") or [],
            "facts": facts,
        }

    def about(self) -> RunInfo:
        """Return how many submissions got which verdict."""
        counts = self.index().count("verdict")
        meta_file = self._path.with_name(self._path.name + ".meta.json")
        meta = read_json(meta_file, what="description") if meta_file.exists() else {}
        facts = [(key, str(meta[key])) for key in ("num_submissions", "seconds") if key in meta]
        facts += [(key, str(value)) for key, value in (meta.get("origin") or {}).items()]
        notices = []
        if self.tests.is_empty:
            notices.append("Programs and tests are not in this file; name the submission file with --problems.")
        state = "finished" if self._path.exists() else "not finished"
        table = tabulate_counts("Submissions by verdict", "verdict", "submissions", counts)
        return RunInfo(state, facts, notices, (), [table])

    def _whole_or_partial(self) -> Path:
        return self._path if self._path.exists() else self._path.with_name(self._path.name + ".partial")

    def _take_lines(self) -> bool:
        wanted = self._whole_or_partial()
        if self._file.path != wanted or self._file.was_replaced():
            self._file, self._lights, self._begins = LineFile(wanted), [], []
        before = len(self._lights)
        for begin, row in self._file.new_rows():
            if "verdict" not in row:
                continue
            light = {"split": self.split, "step": 0, "row": len(self._lights), "sample_index": 0, **light_verdict(row)}
            self._lights.append({**light, "problem_id": str(row.get("id", ""))})
            self._begins.append(begin)
        return len(self._lights) != before

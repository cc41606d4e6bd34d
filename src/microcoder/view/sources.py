"""The sources of the viewer other than training runs, which are in `training_source`.

`CorpusSource`: the problems that `microcoder data build` kept, and the rows that it rejected, each with its reason.

`EvaluationSource`: samples.jsonl and verdicts.jsonl of a folder that `microcoder eval` wrote, joined by sample.

`VerdictSource`: a file that `microcoder judge` wrote; the programs are in the submission file, if it is given.
"""

import functools
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from microcoder.data.benchmarks import digest_statement
from microcoder.eval.report import EvaluationFolder, describe_cell
from microcoder.judge.core.config import flatten
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json, read_lines, read_rows
from microcoder.judge.core.types import Outcome
from microcoder.view.files import (
    ROWS_AT_ONCE,
    Asked,
    ProblemTests,
    Row,
    digest_asked,
    line_at,
    present,
    read_row,
    stamp_of,
    tests_of_evaluation,
    tests_of_files,
)
from microcoder.view.index import Index, IndexPart, RunInfo, RunSource, Texts
from microcoder.view.statements import (
    FoundTests,
    explain_other,
    is_of_this_version,
    is_small,
    note_change,
)


def tabulate_counts(title: str, words: str, counted: str, counts: Mapping[str, int]) -> Row:
    """Return a table of counts by word, the most frequent first; `words` and `counted` are its column titles."""
    rows = [[word, str(count)] for word, count in sorted(counts.items(), key=lambda item: -item[1])]
    return {"title": title, "columns": [words, counted], "rows": rows}


_ROWS_A_PART = 256


class LineSource(RunSource):
    """A run with one rollout per line or row of some files; a subclass defines how a line is read."""

    split: str
    """Value of the column `split` of all rollouts."""

    def __init__(self, *files: Path) -> None:
        super().__init__()
        self._files = files
        self._stamp: object = None

    def parts(self, index: Index) -> list[IndexPart]:
        """Return the rollouts in parts of some lines each, whose texts are read when needed."""
        num, read = len(index), functools.partial(self._read_texts, index)
        return [
            IndexPart(min(_ROWS_A_PART, num - i), functools.partial(read, i))
            for i in range(0, num, _ROWS_A_PART)
        ]

    def _read_texts(self, index: Index, start: int) -> Texts:
        rows = [
            self.read(index.record(place))
            for place in range(start, min(start + _ROWS_A_PART, len(index)))
        ]
        named = {"prompt": "prompt", "response": "completion", "program": "program"}
        texts = {field: [row.get(name) for row in rows] for field, name in named.items()}
        texts["errors"] = [
            "\n".join(
                f"{test.get('detail') or ''}\n{test.get('output') or ''}"
                for test in row.get("tests") or ()
            )
            for row in rows
        ]
        for column in texts.values():
            column[:] = [
                None if text is None else text.encode("utf-8", "replace").decode()
                for text in column
            ]
        return {field: pa.array(column, pa.string()) for field, column in texts.items()}

    def _refresh(self) -> bool:
        if (stamp := stamp_of(*self._files)) == self._stamp:
            return False
        rows = [
            {"split": self.split, "step": 0, "row": place, **light}
            for place, light in enumerate(self._lights())
        ]
        self._builder.put_rows("lines", rows)
        # Last: files that cannot be read are an error each time.
        self._stamp = stamp
        return True

    @abstractmethod
    def _lights(self) -> Iterable[Row]:
        """Read the files; return the small columns of each row, without split, step and row."""


def light_verdict(row: Row) -> Row:
    """Return a row's columns for the page's list: reward (None if the sandbox failed), verdict, test counts."""
    outcome = row.get("verdict")
    reward = None if outcome == Outcome.SANDBOX_FAULT else float(outcome == Outcome.ACCEPTED)
    return {
        "reward": reward,
        **{name: row.get(name) for name in ("verdict", "tests_passed", "tests_total")},
    }


KEPT = "kept"
_LIGHT = (
    "id",
    "dataset",
    "stage",
    "reason",
    "platform_difficulty",
    "difficulty",
    "pass_rate",
    "num_tests",
)
_HEAVY = (
    "id", "statement", "statement_found", "problem", "solutions", "raw", "candidate", "detail", "stage", "reason",
    "dataset", "source_row", "url", "licence", "date", "platform", "title", "natural_language", "flags",
    "platform_difficulty", "difficulty", "pass_rate", "pass_rates", "num_generated_tests", "num_hidden_tests",
)  # fmt: skip
_FACTS = _HEAVY[7:]


class CorpusSource(LineSource):
    """A built corpus, each problem as a rollout: its statement, the source's text, a solution, its tests."""

    kind = "corpus"
    split = "corpus"

    def __init__(self, root: Path) -> None:
        super().__init__(
            *sorted(root.glob("problems-*.parquet")), *sorted(root.glob("rejected-*.parquet"))
        )
        manifest = read_json(root / "manifest.json", what="corpus manifest")
        self.name = str(manifest.get("name") or root.resolve().name)
        self.tests = tests_of_files([root])
        self._root = root
        self._num_rows: list[int] = []
        """Number of rows of each file."""

    def read(self, record: Row) -> Row:
        """Return a problem's statement, source text, solution and facts, as the texts of a rollout."""
        row = record["row"]
        for path, num_rows in zip(self._files, self._num_rows, strict=True):
            if row < num_rows:
                return _as_rollout(read_row(path, row, _HEAVY))
            row -= num_rows
        raise DataError(f"{self._root} has no row {record['row']} any more; reload the page")

    def read_all(self, index: Any) -> Iterator[Row]:
        """Yield every problem's texts, file by file."""
        for path in self._files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=present(file, _HEAVY)):
                    yield from map(_as_rollout, batch.to_pylist())

    def about(self) -> RunInfo:
        """Return the run's facts with a table: how many rows were kept, and why the others were not."""
        table = tabulate_counts(
            "Rows by what became of them", "reason", "rows", self.index().count("verdict")
        )
        return RunInfo("finished", [("folder", str(self._root))], (), (), [table])

    def _lights(self) -> Iterator[Row]:
        self._num_rows = []
        for path in self._files:
            try:
                with pq.ParquetFile(path) as file:
                    rows = file.read(columns=present(file, _LIGHT)).to_pylist()
            except (OSError, ValueError) as error:
                raise DataError(
                    f"{path} cannot be read ({error}); build the corpus again"
                ) from None
            self._num_rows.append(len(rows))
            for row in rows:
                yield {
                    "problem_id": row["id"],
                    "tier": row.get("platform_difficulty") or row.get("dataset") or "",
                    "verdict": row.get("reason") or KEPT,
                    "reward": row.get("pass_rate"),
                    "tests_total": row.get("num_tests"),
                }


def _as_rollout(row: Row) -> Row:
    known = {name: row[name] for name in _FACTS if row.get(name) not in (None, "", [])}
    facts = {
        name.replace("_", " "): ", ".join(map(str, value))
        if isinstance(value, list)
        else str(value)
        for name, value in known.items()
    }
    candidate = _parse(row.get("candidate"))
    solutions = _parse(row.get("solutions")) or candidate.get("solutions") or []
    program = next(
        (s.get("code") for s in solutions if s.get("known", "accepted") == "accepted"), None
    )
    problem = _parse(row.get("problem"))
    return {
        "prompt": row.get("statement") or candidate.get("statement") or "",
        "completion": row.get("statement_found")
        or candidate.get("statement_found")
        or row.get("raw")
        or None,
        "program": program or problem.get("reference"),
        "extraction": "" if program or problem.get("reference") else "the source gives no solution",
        "tests": [{"verdict": "given"} for _ in problem.get("tests") or ()],
        "facts": facts,
    }


def _parse(text: str | None) -> Any:
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return {}


_SAMPLE_KEYS = ("problem_id", "sample_index", "num_tokens", "is_truncated")
_UNJUDGED = "not judged yet"
_WIRE = "\x1eresults "
"""Prefix of the values that calls returned, in the output of a harness."""


class EvaluationSource(LineSource):
    """A folder that `microcoder eval` wrote, finished or not: each answer with its verdict as a rollout."""

    kind = "evaluation"
    split = "evaluation"

    def __init__(self, root: Path, manifest: Row, tests: ProblemTests | None) -> None:
        self._folder, self._manifest = EvaluationFolder(root), manifest
        super().__init__(self._folder.samples, self._folder.verdicts)
        self.name = str(manifest.get("name") or root.resolve().name)
        self.tests = tests or tests_of_evaluation(
            (manifest.get("config") or {}).get("benchmark") or {}
        )
        self._questions: dict[str, Row] = {}
        self._benchmark: tuple[str, bool] | None = None
        self._reads_own_file = tests is None
        self._sample_begins: list[int] = []
        self._verdict_begins: dict[int, int] = {}

    def read(self, record: Row) -> Row:
        """Return a sample's response, program and tests; the prompt is the statement, if the benchmark can be read."""
        sample = line_at(self._folder.samples, self._sample_begins[record["row"]])
        begin = self._verdict_begins.get(record["row"])
        verdict = line_at(self._folder.verdicts, begin) if begin is not None else {}
        question = self._questions.get(record["problem_id"], {})
        facts = {name: question.get(name) for name in ("title", "platform", "difficulty", "date")}
        asked = self.find_tests(record["problem_id"]).asked
        tests = [dict(test) for test in verdict.get("tests") or []]
        for test in (test for test in tests if _WIRE in (test.get("output") or "")):
            test["output"] = test["output"].strip().removeprefix(_WIRE)
        shown = {"prompt": asked.statement} if asked else {}
        return {**shown, **sample, "tests": tests, "facts": {k: v for k, v in facts.items() if v}}

    def explain_difference(self, problem_id: str, asked: Asked) -> str:
        """Return why a problem of a file is not the one of this evaluation, by the digest of what was asked."""
        # The questions are read with the index.
        self.index()
        recorded = self._questions.get(problem_id, {}).get("statement_digest")
        if recorded is not None:
            is_same = recorded == digest_statement(asked.statement)
            return "" if is_same else explain_other(asked)
        # Written before statements were recorded: the manifest has one digest of the whole benchmark.
        if self._whole_benchmark() == (asked.origin, True):
            return ""
        return (
            "Not shown: this evaluation recorded no statements, and its benchmark's file is not the one that was "
            f"asked, or is not {asked.origin}. Evaluate again with this version to record them."
        )

    def find_tests(self, problem_id: str) -> FoundTests:
        """Return the tests of a problem, or why they are not shown; a file that changed since is named as such."""
        found = super().find_tests(problem_id)
        benchmark = (self._manifest.get("config") or {}).get("benchmark") or {}
        is_recorded = bool((self._manifest.get("benchmark") or {}).get("digest"))
        path = Path(str(benchmark.get("path")))
        is_comparable = is_recorded and is_of_this_version(self._manifest) and is_small([path])
        if not (found.asked and self._reads_own_file and is_comparable):
            return found
        return found if self._whole_benchmark()[1] else note_change(found)

    def _whole_benchmark(self) -> tuple[str, bool]:
        """Return the name of the benchmark's file, and whether it holds what the manifest says was asked."""
        if self._benchmark is None:
            values = (self._manifest.get("config") or {}).get("benchmark") or {}
            recorded = (self._manifest.get("benchmark") or {}).get("digest")
            self._benchmark = Path(str(values.get("path"))).name, False
            if recorded is not None and values:
                digest = digest_asked(values, list(self._questions))
                self._benchmark = self._benchmark[0], digest == recorded
        return self._benchmark

    def stamp(self) -> str:
        """Return a text that changes when samples or verdicts are added, or the results are written."""
        return f"{super().stamp()} {self._folder.results.exists()}"

    def about(self) -> RunInfo:
        """Return state, config and tables: accuracy by platform and difficulty, samples by verdict."""
        path = self._folder.results
        results = read_json(path, what="results") if path.exists() else None
        columns = ["platform", "difficulty", "figure", "%, with 95 % interval (n: problems)"]
        cells = (results or {}).get("cells") or ()
        rows = [
            [one["platform"], one["difficulty"], f"pass@{one['k']}", describe_cell(one)]
            for one in cells
        ]
        tables = [{"title": "Accuracy", "columns": columns, "rows": rows}] if rows else []
        counts = (results or {}).get("outcomes") or self.index().count("verdict")
        tables.append(tabulate_counts("Samples by verdict", "verdict", "samples", counts))
        waiting = (
            f"{counts[_UNJUDGED]} samples are not judged yet." if counts.get(_UNJUDGED) else ""
        )
        notices = [text for text in (waiting, self.tests.missing) if text]
        facts = {
            "started": self._manifest.get("started", ""),
            **flatten(self._manifest.get("config") or {}),
        }
        shown = [(key, str(value)) for key, value in facts.items()]
        return RunInfo("finished" if results else "not finished", shown, notices, (), tables)

    def _lights(self) -> list[Row]:
        self._questions = {
            row["problem_id"]: row
            for row in read_rows(self._folder.questions)
            if "problem_id" in row
        }
        self._sample_begins, self._verdict_begins = [], {}
        lights: list[Row] = []
        places: dict[tuple[Any, Any], int] = {}
        for place, (begin, row) in enumerate(read_lines(self._folder.samples)):
            if not {"problem_id", "sample_index"} <= row.keys():
                raise DataError(
                    f"{self._folder.samples} was edited or damaged: a line names no sample"
                )
            places[row["problem_id"], row["sample_index"]] = place
            self._sample_begins.append(begin)
            question = self._questions.get(row["problem_id"], {})
            tier = " ".join(filter(None, (question.get("platform"), question.get("difficulty"))))
            lights.append(
                {
                    **{name: row.get(name) for name in _SAMPLE_KEYS},
                    "tier": tier,
                    "verdict": _UNJUDGED,
                }
            )
        for begin, row in read_lines(self._folder.verdicts):
            place = places.get((row.get("problem_id"), row.get("sample_index")))
            if place is not None:
                self._verdict_begins[place] = begin
                lights[place] |= light_verdict(row)
        return lights


class VerdictSource(LineSource):
    """A file that `microcoder judge` wrote: each submission with its verdict as a rollout."""

    kind = "verdicts"
    split = "judged"

    def __init__(self, path: Path, tests: ProblemTests | None) -> None:
        super().__init__(path)
        self.name = path.name.removesuffix(".jsonl")
        self.tests = tests or ProblemTests()
        self._path = path
        self._begins: list[int] = []
        first = next((row for _, row in read_lines(path)), {})
        if not {"verdict", "origin"} & first.keys():
            raise DataError(
                f"{path} is not a file of verdicts: its first line has none; name the file that `microcoder judge` "
                "wrote by -o, or a folder of `microcoder train`, `microcoder eval` or `microcoder data build`"
            )

    def read(self, record: Row) -> Row:
        """Return a submission's tests, and its program and statement if the submission file is given."""
        row = line_at(self._path, self._begins[record["row"]])
        asked = self.find_tests(record["problem_id"]).asked
        facts = {"isolation": row["isolation"]} if row.get("isolation") else {}
        texts = {
            "program": asked.code if asked else None,
            "prompt": asked.statement if asked else None,
        }
        return {**texts, "tests": row.get("tests") or [], "facts": facts}

    def about(self) -> RunInfo:
        """Return the run's facts with a table of submissions by verdict."""
        meta_file = self._path.with_name(self._path.name + ".meta.json")
        meta = read_json(meta_file, what="description") if meta_file.exists() else {}
        facts = [(key, str(meta[key])) for key in ("num_submissions", "seconds") if key in meta]
        facts += [(key, str(value)) for key, value in (meta.get("origin") or {}).items()]
        missing = (
            "Programs and tests are not in this file; name the submission file with --problems."
        )
        notices = [missing] if self.tests.is_empty else []
        table = tabulate_counts(
            "Submissions by verdict", "verdict", "submissions", self.index().count("verdict")
        )
        return RunInfo("finished", facts, notices, (), [table])

    def _lights(self) -> list[Row]:
        rows = [(begin, row) for begin, row in read_lines(self._path) if "verdict" in row]
        self._begins = [begin for begin, _ in rows]
        return [
            {"sample_index": 0, "problem_id": str(row.get("id", "")), **light_verdict(row)}
            for _, row in rows
        ]

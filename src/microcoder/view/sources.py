"""The kinds of runs that the viewer shows besides training runs, which are in `training_source`.

`CorpusSource`: the problems that `microcoder data build` kept, and the rows that it rejected, each
with its reason.

`EvaluationSource`: samples.jsonl and verdicts.jsonl of a folder that `microcoder eval` wrote,
joined by sample.

`VerdictSource`: a file that `microcoder judge` wrote; the programs are in the submission file, if
it is given.
"""

import functools
import json
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

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
    ProblemTests,
    Row,
    ShownProblem,
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

ValueT = TypeVar("ValueT")

_ROWS_A_PART = 256
"""Number of rollouts whose texts are searched together."""

KEPT = "kept"
"""Verdict of a row of a corpus that was not rejected."""

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
"""Columns of a corpus that are read for all rows."""

_FACTS = (
    "detail",
    "stage",
    "reason",
    "dataset",
    "source_row",
    "url",
    "licence",
    "date",
    "platform",
    "title",
    "natural_language",
    "flags",
    "platform_difficulty",
    "difficulty",
    "pass_rate",
    "pass_rates",
    "num_generated_tests",
    "num_hidden_tests",
)
"""Columns of a corpus that are listed beside a problem."""

_HEAVY = (
    "id",
    "statement",
    "statement_found",
    "problem",
    "solutions",
    "raw",
    "candidate",
    *_FACTS,
)
"""Columns of a corpus that are read for a row which is shown."""

_SAMPLE_KEYS = ("problem_id", "sample_index", "num_tokens", "is_truncated")
"""Keys of samples.jsonl that are columns of the index."""

_UNJUDGED = "not judged yet"
"""Verdict of a sample without one."""


def tabulate_counts(
    title: str,
    words: str,
    counted: str,
    counts: Mapping[str, int],
) -> Row:
    """Return a table of counts by word, the most frequent first.

    Args:
        title: of the table.
        words: title of the column of words.
        counted: title of the column of counts.
        counts: word -> count.
    """
    by_count = sorted(counts.items(), key=lambda item: -item[1])
    rows = [[word, str(count)] for word, count in by_count]
    return {"title": title, "columns": [words, counted], "rows": rows}


class LineSource(RunSource):
    """A run with one rollout per line or row of some files.

    A subclass defines how a line is read.
    """

    split: str
    """Value of the column `split` of all rollouts."""

    def __init__(self, *files: Path) -> None:
        super().__init__()
        self._files = files
        self._stamp: object = None

    def parts(self, index: Index) -> list[IndexPart]:
        """Return the rollouts in parts of some lines each, whose texts are read when needed."""
        num = len(index)
        parts = []
        for start in range(0, num, _ROWS_A_PART):
            read = functools.partial(self._read_texts, index, start)
            parts.append(IndexPart(min(_ROWS_A_PART, num - start), read))
        return parts

    def _read_texts(self, index: Index, start: int) -> Texts:
        end = min(start + _ROWS_A_PART, len(index))
        rows = [self.read(index.record(position)) for position in range(start, end)]
        return {
            "prompt": _as_column([row.get("prompt") for row in rows]),
            "response": _as_column([row.get("completion") for row in rows]),
            "program": _as_column([row.get("program") for row in rows]),
            "errors": _as_column([_join_errors(row) for row in rows]),
        }

    def _refresh(self) -> bool:
        stamp = stamp_of(*self._files)
        if stamp == self._stamp:
            return False
        rows = []
        for number, light in enumerate(self._lights()):
            rows.append(
                {
                    "split": self.split,
                    "step": 0,
                    "row": number,
                    **light,
                }
            )
        self._builder.put_rows("lines", rows)
        # Last: files that cannot be read are an error each time, and not only the first.
        self._stamp = stamp
        return True

    @abstractmethod
    def _lights(self) -> Iterable[Row]:
        """Read the files; return the small columns of each row, without split, step and row."""


def _as_column(texts: Sequence[str | None]) -> pa.Array:
    """Return texts as an Arrow array, which refuses lone surrogates."""
    whole = []
    for text in texts:
        if text is not None:
            text = text.encode("utf-8", "replace").decode()
        whole.append(text)
    return pa.array(whole, pa.string())


def _join_errors(row: Row) -> str:
    """Return the messages and output of a rollout's tests as one text."""
    tests = row.get("tests") or ()
    return "\n".join(f"{test.get('detail') or ''}\n{test.get('output') or ''}" for test in tests)


def light_verdict(row: Row) -> Row:
    """Return a row's columns for the page's list.

    They are the reward (None if the sandbox failed), the verdict and the counts of tests.
    """
    outcome = row.get("verdict")
    reward = None
    if outcome != Outcome.SANDBOX_FAULT:
        reward = float(outcome == Outcome.ACCEPTED)
    return {
        "reward": reward,
        "verdict": outcome,
        "tests_passed": row.get("tests_passed"),
        "tests_total": row.get("tests_total"),
    }


class CorpusSource(LineSource):
    """A built corpus, each problem as a rollout.

    It has the problem's statement, the source's text, a solution, and the tests.
    """

    kind = "corpus"
    split = "corpus"

    def __init__(self, root: Path) -> None:
        problems = sorted(root.glob("problems-*.parquet"))
        rejected = sorted(root.glob("rejected-*.parquet"))
        super().__init__(*problems, *rejected)
        manifest = read_json(root / "manifest.json", what="corpus manifest")
        name = manifest.get("name") or root.resolve().name
        self.name = str(name)
        self.tests = tests_of_files([root])
        self._root = root
        self._num_rows: list[int] = []
        """Number of rows of each file."""

    def read(self, record: Row) -> Row:
        """Return a problem's statement, source text, solution and facts, as the texts of a
        rollout."""
        row = record["row"]
        for path, num_rows in zip(self._files, self._num_rows, strict=True):
            if row < num_rows:
                return _as_rollout(read_row(path, row, _HEAVY))
            row -= num_rows
        raise DataError(f"{self._root} has no row {record['row']} any more; reload the page")

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield every problem's texts, file by file."""
        for path in self._files:
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(ROWS_AT_ONCE, columns=present(file, _HEAVY)):
                    yield from map(_as_rollout, batch.to_pylist())

    def about(self) -> RunInfo:
        """Return the run's facts with a table: how many rows were kept, and why the others were
        not."""
        counts = self.index().count("verdict")
        table = tabulate_counts("Rows by what became of them", "reason", "rows", counts)
        folder = ("folder", str(self._root))
        return RunInfo("finished", facts=[folder], tables=[table])

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
    """Return a row of a corpus as the texts of a rollout."""
    candidate = _parse(row.get("candidate"), dict)
    problem = _parse(row.get("problem"), dict)
    found = row.get("statement_found") or candidate.get("statement_found")
    solutions = _parse(row.get("solutions"), list)
    solutions = solutions or candidate.get("solutions") or []
    program = _first_accepted(solutions) or problem.get("reference")
    extraction = "" if program else "the source gives no solution"
    tests = problem.get("tests") or ()
    # A corpus has tests and no verdicts of them.
    shown_tests = [{"verdict": "given"} for _ in tests]
    return {
        "prompt": row.get("statement") or candidate.get("statement") or "",
        "completion": found or row.get("raw") or None,
        "program": program,
        "extraction": extraction,
        "tests": shown_tests,
        "facts": _list_facts(row),
    }


def _first_accepted(solutions: Iterable[Row]) -> object:
    """Return the code of the first solution that the source does not say is wrong."""
    for solution in solutions:
        # A source that says nothing means its solutions to be right.
        if solution.get("known", "accepted") == "accepted":
            return solution.get("code")
    return None


def _list_facts(row: Row) -> Row:
    """Return the facts of a row by name: all columns that have a value, as texts."""
    facts: Row = {}
    for column in _FACTS:
        value = row.get(column)
        if value in (None, "", []):
            continue
        if isinstance(value, list):
            value = ", ".join(map(str, value))
        facts[column.replace("_", " ")] = str(value)
    return facts


def _parse(text: str | None, kind: type[ValueT]) -> ValueT:
    """Return a column's JSON value of a kind; an empty one where there is none."""
    if not text:
        return kind()
    try:
        value = json.loads(text)
    except ValueError:
        return kind()
    return value if isinstance(value, kind) else kind()


class EvaluationSource(LineSource):
    """A folder that `microcoder eval` wrote, finished or not: each answer as a rollout."""

    kind = "evaluation"
    split = "evaluation"

    def __init__(self, root: Path, manifest: Row, tests: ProblemTests | None) -> None:
        self._folder = EvaluationFolder(root)
        self._manifest = manifest
        super().__init__(self._folder.samples, self._folder.verdicts)
        name = manifest.get("name") or root.resolve().name
        self.name = str(name)
        config: Row = manifest.get("config") or {}
        asked: Row = manifest.get("benchmark") or {}
        self._benchmark: Row = config.get("benchmark") or {}
        """The benchmark of the config."""
        self._digest = asked.get("digest")
        """The digest of what was asked; None if it was not recorded."""
        self.tests = tests or tests_of_evaluation(self._benchmark)
        self._reads_own_file = tests is None
        self._questions: dict[str, Row] = {}
        self._is_file_as_asked: bool | None = None
        self._sample_begins: list[int] = []
        self._verdict_begins: dict[int, int] = {}

    def read(self, record: Row) -> Row:
        """Return a sample's response, program and tests.

        The prompt is the statement, if the sample has none and the benchmark can be read.
        """
        sample_begin = self._sample_begins[record["row"]]
        sample = line_at(self._folder.samples, sample_begin)
        begin = self._verdict_begins.get(record["row"])
        verdict: Row = {}
        if begin is not None:
            verdict = line_at(self._folder.verdicts, begin)
        tests = []
        for test in verdict.get("tests") or []:
            tests.append(test)
        question = self._questions.get(record["problem_id"], {})
        facts = {}
        for name in ("title", "platform", "difficulty", "date"):
            if question.get(name):
                facts[name] = question[name]
        shown: Row = {}
        problem = self.find_tests(record["problem_id"]).problem
        if problem:
            shown["prompt"] = problem.statement
        # What the model was given comes before the statement that it was made of.
        return {**shown, **sample, "tests": tests, "facts": facts}

    def explain_difference(self, problem_id: str, problem: ShownProblem) -> str:
        """Return why a file's problem is not the one of this evaluation.

        Problems are compared by the digest of the question.
        """
        # The questions are read with the index.
        self.index()
        recorded = self._questions.get(problem_id, {}).get("statement_digest")
        if recorded is not None:
            is_same = recorded == digest_statement(problem.statement)
            return "" if is_same else explain_other(problem)
        # Written before statements were recorded: the manifest has one digest of the whole
        # benchmark.
        if problem.origin == self._path_of_benchmark().name and self._has_file_as_asked():
            return ""
        return (
            "Not shown: this evaluation recorded no statements, and its benchmark's file is not "
            f"the one that was asked, or is not {problem.origin}. Evaluate again with this version "
            "to record them."
        )

    def find_tests(self, problem_id: str) -> FoundTests:
        """Return the tests of a problem, or why they are not shown.

        Tests of a file that has changed come with a note.
        """
        found = super().find_tests(problem_id)
        if not found.problem or not self._reads_own_file:
            return found
        # Where the digests can be compared, and the file is read in no time.
        is_comparable = bool(self._digest) and is_of_this_version(self._manifest)
        if not is_comparable or not is_small([self._path_of_benchmark()]):
            return found
        return found if self._has_file_as_asked() else note_change(found)

    def _path_of_benchmark(self) -> Path:
        return Path(str(self._benchmark.get("path")))

    def _has_file_as_asked(self) -> bool:
        """Whether the benchmark's file holds what the manifest says was asked."""
        # Compared once, since it reads the whole benchmark.
        if self._is_file_as_asked is None:
            self._is_file_as_asked = False
            if self._digest is not None and self._benchmark:
                digest = digest_asked(self._benchmark, list(self._questions))
                self._is_file_as_asked = digest == self._digest
        return self._is_file_as_asked

    def stamp(self) -> str:
        """Return a text that changes when samples or verdicts are added, or the results are
        written."""
        return f"{super().stamp()} {self._folder.results.exists()}"

    def about(self) -> RunInfo:
        """Return state, config and tables: accuracy by platform and difficulty, samples by
        verdict."""
        path = self._folder.results
        results = read_json(path, what="results") if path.exists() else {}
        tables = []
        if results.get("cells"):
            tables.append(_tabulate_accuracy(results["cells"]))
        counts = results.get("outcomes") or self.index().count("verdict")
        tables.append(tabulate_counts("Samples by verdict", "verdict", "samples", counts))
        notices = []
        if counts.get(_UNJUDGED):
            notices.append(f"{counts[_UNJUDGED]} samples are not judged yet.")
        if self.tests.missing:
            notices.append(self.tests.missing)
        facts = [("started", str(self._manifest.get("started", "")))]
        config = flatten(self._manifest.get("config") or {})
        for key, value in config.items():
            facts.append((key, str(value)))
        state = "finished" if results else "not finished"
        return RunInfo(state, facts=facts, notices=notices, tables=tables)

    def _lights(self) -> list[Row]:
        self._questions = {}
        for row in read_rows(self._folder.questions):
            if "problem_id" in row:
                self._questions[row["problem_id"]] = row
        self._sample_begins = []
        self._verdict_begins = {}
        lights: list[Row] = []
        numbers: dict[tuple[Any, Any], int] = {}
        for number, (begin, row) in enumerate(read_lines(self._folder.samples)):
            if not {"problem_id", "sample_index"} <= row.keys():
                raise DataError(
                    f"{self._folder.samples} was edited or damaged: a line names no sample"
                )
            numbers[row["problem_id"], row["sample_index"]] = number
            self._sample_begins.append(begin)
            question = self._questions.get(row["problem_id"], {})
            parts = (question.get("platform"), question.get("difficulty"))
            light = {name: row.get(name) for name in _SAMPLE_KEYS}
            light["tier"] = " ".join(filter(None, parts))
            light["verdict"] = _UNJUDGED
            lights.append(light)
        # Of two verdicts on a sample the later one counts.
        for begin, row in read_lines(self._folder.verdicts):
            sample_key = (row.get("problem_id"), row.get("sample_index"))
            number = numbers.get(sample_key)
            if number is not None:
                self._verdict_begins[number] = begin
                lights[number] |= light_verdict(row)
        return lights


def _tabulate_accuracy(cells: Iterable[Row]) -> Row:
    rows = []
    for cell in cells:
        figure = f"pass@{cell['k']}"
        rows.append([cell["platform"], cell["difficulty"], figure, describe_cell(cell)])
    columns = ["platform", "difficulty", "figure", "%, with 95 % interval (n: problems)"]
    return {"title": "Accuracy", "columns": columns, "rows": rows}


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
        # A file begins with its origin, and may hold no verdict yet.
        if not {"verdict", "origin"} & first.keys():
            raise DataError(
                f"{path} is not a file of verdicts: its first line has none; name the file that "
                "`microcoder judge` wrote by -o, or a folder of `microcoder train`, `microcoder "
                "eval` or `microcoder data build`"
            )

    def read(self, record: Row) -> Row:
        """Return a submission's tests, and its program and statement if the submission file is
        given."""
        row = line_at(self._path, self._begins[record["row"]])
        shown: Row = {"program": None, "prompt": None, "facts": {}}
        shown["tests"] = row.get("tests") or []
        problem = self.find_tests(record["problem_id"]).problem
        if problem:
            shown["program"] = problem.code
            shown["prompt"] = problem.statement
        if row.get("isolation"):
            shown["facts"] = {"isolation": row["isolation"]}
        return shown

    def about(self) -> RunInfo:
        """Return the run's facts with a table of submissions by verdict."""
        meta_file = self._path.with_name(self._path.name + ".meta.json")
        meta = read_json(meta_file, what="description") if meta_file.exists() else {}
        facts = []
        for key in ("num_submissions", "seconds"):
            if key in meta:
                facts.append((key, str(meta[key])))
        origin = meta.get("origin") or {}
        for key, value in origin.items():
            facts.append((key, str(value)))
        notices = []
        if self.tests.is_empty:
            notices.append(
                "Programs and tests are not in this file; name the submission file with --problems."
            )
        counts = self.index().count("verdict")
        table = tabulate_counts("Submissions by verdict", "verdict", "submissions", counts)
        return RunInfo("finished", facts=facts, notices=notices, tables=[table])

    def _lights(self) -> list[Row]:
        self._begins = []
        lights = []
        for begin, row in read_lines(self._path):
            # The line with the file's origin has none.
            if "verdict" in row:
                self._begins.append(begin)
                problem_id = str(row.get("id", ""))
                lights.append(
                    {
                        "sample_index": 0,
                        "problem_id": problem_id,
                        **light_verdict(row),
                    }
                )
        return lights

"""Reads single rows of Parquet and JSON-lines files, without loading a large file whole.

Also reads problems, for the tests' inputs and expected outputs, which rollout files do not repeat.
"""

import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import TypeAdapter

from microcoder.data.benchmarks import AnyBenchmark, Benchmark, LiveCodeBench, ProblemFile, Question, is_livecodebench
from microcoder.data.formats.assertions import RESULTS
from microcoder.data.formats.rows import read_problem
from microcoder.data.micro import generate_problems
from microcoder.data.rowfiles import read_file
from microcoder.judge.core.errors import DataError, MicroCoderError
from microcoder.judge.core.files import read_lines
from microcoder.judge.core.types import Problem

Row = dict[str, Any]
ROWS_AT_ONCE = 64


def read_row(path: Path, row: int, names: Sequence[str]) -> Row:
    """Return the columns `names` of a row, those that the file has; raises DataError."""
    try:
        with pq.ParquetFile(path) as file:
            left = row
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=present(file, names)):
                if left < batch.num_rows:
                    return batch.slice(left, 1).to_pylist()[0]
                left -= batch.num_rows
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read ({error}); was the run resumed or moved?") from None
    raise DataError(f"{path} has no row {row} any more; reload the page")


def present(file: pq.ParquetFile, names: Sequence[str]) -> list[str]:
    """Return those of `names`, columns or parts of them (`tests.list.element.detail`), that a file has."""
    held = set(file.schema_arrow.names) | {file.schema.column(place).path for place in range(len(file.schema))}
    return [name for name in names if name in held]


def line_at(path: Path, begin: int) -> Row:
    """Return the JSON line that begins at byte `begin`; raises DataError."""
    if (found := next(read_lines(path, begin), None)) is None:
        raise DataError(f"{path} has no line at byte {begin} any more; reload the page")
    return found[1]


def stamp_of(*paths: Path) -> list[tuple[int, int]]:
    """Return the modification time (ns) and size of each file, to detect changes; zeros for a missing one."""
    known = [path.stat() if path.exists() else None for path in paths]
    return [(status.st_mtime_ns, status.st_size) if status else (0, 0) for status in known]


_MICRO_KEYS = ("seed", "tiers", "styles")


@dataclass(frozen=True, slots=True)
class Asked:
    """A problem as its file holds it."""

    tests: Sequence[Mapping[str, str]]
    """Each an `input` and an `output`."""
    statement: str
    code: str | None
    """The program, if the file is one of submissions."""
    checker: str
    origin: str
    """Where it was read, for display."""


Find = Callable[[], Asked]
Place = Callable[[], Iterable[tuple[str, Find]]]
"""A function that yields the names of problems, each with a function that reads the problem."""


class ProblemTests:
    """Problems by id, each read when needed: a release of a benchmark is larger than memory."""

    def __init__(self, places: Sequence[Place] = (), *, missing: str = "") -> None:
        """Keep the places; nothing is read yet.

        Args:
            places: functions that list problems.
            missing: the message in place of tests, if the file that a run names is not here.
        """
        self._places = list(places)
        self.missing = missing
        self._lock = threading.Lock()
        self._known: dict[str, Find] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there are no places to read problems from."""
        return not self._places

    def find(self, problem_id: str) -> Asked | None:
        """Return the problem of an id, or None if there is none; if a file cannot be read, `missing` then says why."""
        with self._lock:
            if self._known is None:
                self._known = {}
                for place in self._places:
                    try:
                        self._known |= place()
                    except (MicroCoderError, OSError, KeyError, TypeError, ValueError) as error:
                        self.missing = f"Tests' inputs are not shown: {error}"
            read = self._known.get(problem_id)
        return read() if read else None


def tests_of_files(files: Sequence[Path]) -> ProblemTests:
    """Return the problems of files given by --problems; DataError if one is missing or holds none."""
    for file in files:
        if not file.exists():
            raise DataError(f"--problems {file} does not exist; check the path")
        try:
            first = next(iter(_read_file(file)), None)
        except (MicroCoderError, OSError) as error:
            raise DataError(f"--problems {file}: {error}") from None
        if first is None:
            raise DataError(
                f"--problems {file} holds no problem or submission; name a file of a format in docs/rows.md"
            )
    return ProblemTests([partial(_read_file, file) for file in files])


def tests_of_run(config: Mapping[str, Any]) -> ProblemTests:
    """Return the problems of a training run, by the files or the generator in its config."""
    problems = config.get("problems") or {}
    if problems.get("kind") == "micro":
        return ProblemTests([partial(_generate, problems)])
    named = [Path(problems[split]) for split in ("train", "heldout") if isinstance(problems.get(split), str)]
    return _tests_here(named, lambda path: partial(_read_file, path))


def tests_of_evaluation(benchmark: Mapping[str, Any]) -> ProblemTests:
    """Return the problems of an evaluation, by the `benchmark` of its config."""
    path, plus = benchmark.get("path"), benchmark.get("plus")
    named = [Path(name) for name in (path, plus) if isinstance(name, str)]
    return _tests_here(named[:1] if all(name.exists() for name in named) else named, lambda _: partial(_ask, benchmark))


def _tests_here(named: Sequence[Path], place: Callable[[Path], Place]) -> ProblemTests:
    gone = [str(path) for path in named if not path.exists()]
    missing = (
        f"Tests' inputs are not shown: {', '.join(gone)} is not here. Name the file with --problems." if gone else ""
    )
    return ProblemTests([place(path) for path in named if path.exists()], missing=missing)


def _generate(problems: Mapping[str, Any]) -> Iterator[tuple[str, Find]]:
    """Yield the problems of the micro lab; a config of another version raises."""
    shared = {key: problems[key] for key in _MICRO_KEYS if key in problems}
    for split, number in (("train", "num_train"), ("heldout", "num_heldout")):
        for problem in generate_problems(split=split, num_problems=int(problems[number]), **shared):
            yield problem.id, partial(_asked, problem, "the run's seed, generated anew")


def _ask(values: Mapping[str, Any]) -> Iterator[tuple[str, Find]]:
    """Yield the problems of a benchmark; a config of another version raises."""
    benchmark: Benchmark = TypeAdapter(AnyBenchmark).validate_python(values)
    if isinstance(benchmark, ProblemFile):
        yield from _read_file(benchmark.path)
    else:
        yield from _of_questions(benchmark.read(on_broken=lambda _: None), benchmark.path)


def _of_questions(questions: Iterable[Question], path: Path) -> Iterator[tuple[str, Find]]:
    for question in questions:
        yield question.id, lambda question=question: _asked(question.load(), path.name)


def _read_file(path: Path) -> Iterator[tuple[str, Find]]:
    """Yield problems or submissions of ours, of LiveCodeBench, or of any known row format; other rows are skipped."""
    if is_livecodebench(path):
        yield from _of_questions(LiveCodeBench(path=path).read(on_broken=lambda _: None), path)
    elif path.is_dir():
        from microcoder.data.release.tables import read_released

        yield from ((problem.id, partial(_asked, problem, path.name)) for problem in read_released(path))
    else:
        for row in read_file(path, "problem file"):
            yield from ((name, partial(_read_row, row.read_again, path.name)) for name in _names(row.values))


def _names(values: Mapping[str, Any]) -> list[str]:
    """Return the names that a run may have for a row's problem; none if the row is of no known format."""
    if _is_own(values):
        return [values["id"]]
    try:
        problem = read_problem(values)
    except MicroCoderError:
        return []
    task = values.get("task_id", values.get("question_id"))
    also = f"Mbpp/{task}" if isinstance(task, int) else task if isinstance(task, str) else problem.id
    return [problem.id, also]


def _read_row(read_again: Callable[[], Mapping[str, Any]], origin: str) -> Asked:
    values = read_again()
    return _submitted(values, origin) if _is_own(values) else _asked(read_problem(values), origin)


def _is_own(values: Mapping[str, Any]) -> bool:
    return isinstance(values.get("id"), str) and isinstance(values.get("tests"), list)


def _submitted(row: Mapping[str, Any], origin: str) -> Asked:
    tests = [test for test in row["tests"] if isinstance(test, dict)]
    return Asked(
        [{name: str(test.get(name, "")) for name in ("input", "output")} for test in tests],
        str(row.get("statement") or ""),
        row.get("code") if isinstance(row.get("code"), str) else None,
        str((row.get("checker") or {}).get("type", "default")),
        origin,
    )


def _asked(problem: Problem, origin: str) -> Asked:
    show = _as_claims if problem.harness else lambda given, wanted: (given, wanted)
    shown = [show(test.input, test.output) for test in problem.tests]
    tests = [{"input": given, "output": wanted} for given, wanted in shown]
    return Asked(tests, problem.statement, None, problem.checker.type, origin)


def _as_claims(given: str, wanted: str) -> tuple[str, str]:
    try:
        asked, claimed = json.loads(given), json.loads(wanted)
        if "replay" in asked:
            return asked["replay"], "every assertion of the input holds"
        lines = [*filter(None, [asked.get("setup")]), *asked["calls"]]
        name = "result" if len(asked["calls"]) == 1 else "results"
        said = "\n".join(claimed["claims"]).replace(f"{RESULTS}[0]" if name == "result" else RESULTS, name)
        return "\n".join(lines), said
    except (ValueError, KeyError, TypeError):
        return given, wanted

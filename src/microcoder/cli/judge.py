"""`microcoder judge`: verdicts for a file of programs."""

from __future__ import annotations

import json as json_module
import os
import sys
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

from cyclopts import Parameter
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

import microcoder
from microcoder.errors import DataError
from microcoder.evaluator import Judge, StopRule
from microcoder.evaluator.isolation import DEGRADED_MEANS
from microcoder.evaluator.submissions import Submission, read_submissions
from microcoder.evaluator.verdict_files import VerdictFile, digest_input
from microcoder.types import Outcome, Verdict

_SECONDS_BETWEEN_LINES = 5.0


def judge(
    input_path: Path,
    /,
    *,
    output: Annotated[Path, Parameter(name=["--output", "-o"])],
    workers: int | None = None,
    stop: StopRule = "first_limit",
    time_scale: float | None = None,
    json: Annotated[bool, Parameter(negative="")] = False,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    unsafe: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Judge the programs of a file; the same command goes on with a run that was cut off.

    Parameters
    ----------
    input_path
        Submissions (.jsonl or .jsonl.gz), one object a line: id, code, tests, and optionally language, fn_name,
        time_limit_seconds, memory_limit_mib, checker.
    output
        Where the verdicts go, one line per submission in the order of the input.
    workers
        Programs judged at the same time; by default one per processor.
    stop
        When to leave out a program's remaining tests: after its first failure, after a test that hit a limit,
        or never.
    time_scale
        What CPU limits are multiplied by; by default measured, and never below 1 (`microcoder doctor` shows it).
    json
        Print a summary as one JSON object.
    overwrite
        Forget what earlier runs wrote to the same output.
    unsafe
        Unsafe: run even where the sandbox cannot be closed. Only for programs you trust.
    """
    submissions = read_submissions(input_path)
    _check_writable(output)
    if output.exists() and output.samefile(input_path):
        raise DataError(f"{output} is the input file; choose another -o")
    origin = {
        "input": digest_input(input_path),
        "stop rule": stop,
        "time scale": "measured" if time_scale is None else f"{time_scale:g}",
        "version": microcoder.__version__,
    }
    verdicts = VerdictFile(output, origin=origin)
    if overwrite:
        verdicts.delete()
    started = time.monotonic()
    with verdicts:
        num_found = len(verdicts.done)
        todo = [submission for submission in submissions if submission.id not in verdicts.done]
        if todo:
            with Judge(workers=workers, stop=stop, time_scale=time_scale, unsafe=unsafe) as judging:
                verdicts.note_isolation({**judging.isolation.as_record(), "time_scale": judging.time_scale})
                _announce(judging)
                _judge_all(judging, todo, verdicts, num_total=len(submissions))
        summary = _summarise(verdicts, num_found, time.monotonic() - started)
        if todo or not output.exists():
            verdicts.finish([submission.id for submission in submissions], summary)
    if json:
        print(json_module.dumps({"output": str(output), **summary}))
    else:
        _print_summary(output, summary)


def _check_writable(output: Path) -> None:
    nearest = next(folder for folder in output.absolute().parents if folder.exists())
    if output.is_dir() or not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise DataError(f"{output} cannot be written: it or {nearest} is no place for a file; choose another -o")


def _judge_all(judging: Judge, todo: list[Submission], verdicts: VerdictFile, *, num_total: int) -> None:
    counts = Counter(row["verdict"] for row in verdicts.done.values())
    with _Progress(num_total, counts) as progress:

        def keep(index: int, verdict: Verdict) -> None:
            verdicts.add(todo[index].id, verdict)
            progress.count(verdict.outcome)

        judging.judge([submission.program for submission in todo], todo, on_verdict=keep)


def _announce(judging: Judge) -> None:
    """Say on stderr how well programs are closed in, and how limits are stretched."""
    text = f"sandbox is {judging.isolation.level}"
    if judging.isolation.missing:
        text += f"; missing: {judging.isolation.describe_missing()}"
    if judging.time_scale != 1:
        text += f"; CPU limits are multiplied by {judging.time_scale:g}"
    if judging.isolation.level == "degraded":
        text += f". That is: {DEGRADED_MEANS}"
    print(f"microcoder: {text}", file=sys.stderr)


def _summarise(verdicts: VerdictFile, num_found: int, seconds: float) -> dict[str, Any]:
    counts = Counter(row["verdict"] for row in verdicts.done.values())
    return {
        "num_submissions": len(verdicts.done),
        "num_judged": len(verdicts.done) - num_found,
        "verdicts": {outcome.value: counts[outcome.value] for outcome in Outcome if counts[outcome.value]},
        "seconds": round(seconds, 3),
        "isolation": verdicts.isolation,
    }


def _print_summary(output: Path, summary: dict[str, Any]) -> None:
    if not summary["num_judged"]:
        print(f"{output} is complete already: {_counts_text(summary['verdicts'])}")
        return
    print(f"{output}: {_counts_text(summary['verdicts'])}, {summary['seconds']:.1f} s")
    num_faults = summary["verdicts"].get(Outcome.SANDBOX_FAULT, 0)
    if num_faults:
        print(
            f"microcoder: {num_faults} submissions have no verdict because the sandbox failed; "
            "type the same command again to judge just these",
            file=sys.stderr,
        )


def _counts_text(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} {outcome}" for outcome, count in counts.items()) or "nothing yet"


class _Progress:
    """A bar on a terminal, a line every few seconds elsewhere; both on stderr."""

    def __init__(self, num_total: int, counts: Counter[str]) -> None:
        self._counts = counts
        self._num_total = num_total
        self._last_line = time.monotonic()
        self._bar: Progress | None = None
        if sys.stderr.isatty():
            self._bar = Progress(
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TimeRemainingColumn(),
                TextColumn("{task.description}"),
                console=Console(stderr=True),
            )
            self._task = self._bar.add_task(_counts_text(counts), total=num_total, completed=counts.total())

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def count(self, outcome: Outcome) -> None:
        """Show one more verdict."""
        self._counts[outcome.value] += 1
        if self._bar is not None:
            self._bar.update(self._task, advance=1, description=_counts_text(self._counts))
        elif time.monotonic() - self._last_line >= _SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            print(f"{self._counts.total()}/{self._num_total}: {_counts_text(self._counts)}", file=sys.stderr)

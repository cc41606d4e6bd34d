"""Shared by integrations: the judge of a process, scores of its verdicts, reading of corpora.

The judge is started on first use, closed at exit, and not inherited by forks.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Unpack

from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.rewards import score_verdict
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.fleet.judge import BaseJudge
from microcoder.judge.run.options import JudgeKeys

Mode = Literal["all", "fraction"]
"""How programs are scored: `all`, 1 if every test passed, else 0; `fraction`, the share of passed
tests."""

_DEFAULTS = {**dict(JudgeOptions()), "url": None}
"""Every option of a process's judge, with its default."""


class SharedJudgeKeys(JudgeKeys, total=False):
    """Options of `Judge`, or a service's address in place of them."""

    url: str | None
    """Address of a judge service (`microcoder serve`), such as `http://judge:8077`."""


@dataclass(eq=False, slots=True)
class _State:
    options: dict[str, Any] = field(default_factory=dict)
    judge: BaseJudge | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)
    thread: ThreadPoolExecutor = field(
        default_factory=lambda: ThreadPoolExecutor(1, "microcoder-judge")
    )
    """Runs blocking work off the event loop: starting the judge, reading tests, waiting for a free
    worker."""


_state = _State()
"""The judge of this process, and how it was asked for."""


class SharedJudge:
    """The judge of this process; all instances share one `Judge` or client."""

    def judge(self, programs: Sequence[Program], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge each program against the problem at the same position.

        Raises like `Judge.judge`.
        """
        return _running().judge(programs, problems)

    async def judge_async(self, program: Program, problem: Problem) -> Verdict:
        """Judge one program from a coroutine without blocking its event loop.

        Raises like `Judge.judge_async`.
        """

        def submit() -> Future[Verdict]:
            return _running().submit(program, problem)

        # Starting the judge and waiting for a free worker both block.
        loop = asyncio.get_running_loop()
        future = await loop.run_in_executor(_state.thread, submit)
        return await asyncio.wrap_future(future)


def shared_judge(**options: Unpack[SharedJudgeKeys]) -> SharedJudge:
    """Return this process's judge, started on first use.

    Options that are left out keep the value of an earlier caller, or `Judge`'s default.

    Args:
        options: those of `Judge`; or `url`, the address of a service (`microcoder serve`) that
            judges in its place.

    Raises:
        ConfigError: an option is unknown, or the process's judge has another value of it.
    """
    unknown = sorted(options.keys() - _DEFAULTS.keys())
    if unknown:
        raise ConfigError(
            f"the judge takes no option {unknown[0]!r}; use one of {', '.join(_DEFAULTS)}"
        )
    with _state.lock:
        known = _state.options
        if _state.judge is not None:
            # It runs: what no caller named is settled, too.
            known = _DEFAULTS | known
        for name, value in options.items():
            if name in known and known[name] != value:
                raise ConfigError(
                    f"{name} = {value!r}, but this process's judge has {name} = {known[name]!r}; "
                    "a process has one judge: give the same value everywhere, before the first "
                    "program is judged"
                )
        _state.options |= options
    return SharedJudge()


def _running() -> BaseJudge:
    """Return the judge of this process, started now if it was not."""
    # Frameworks call from several threads, and a process has one judge.
    with _state.lock:
        if _state.judge is None:
            _state.judge = _open(_state.options)
        return _state.judge


def _open(options: Mapping[str, Any]) -> BaseJudge:
    url = options.get("url")
    if url is None:
        return Judge(**{name: value for name, value in options.items() if name != "url"})
    # The service was started with its own: ours would change nothing.
    others = sorted(options.keys() - {"url", "stop"})
    if others:
        raise ConfigError(
            f"{others[0]} is an option of the service at {url}; pass it to `microcoder serve` "
            "instead"
        )
    from microcoder.judge.fleet.http import JudgeClient
    from microcoder.train.run.judging import TOKEN_VARIABLE

    client = JudgeClient(url, token=os.environ.get(TOKEN_VARIABLE))
    # `fraction` would get shares of some tests from a service that stops at a failure.
    stop = client.about()["stop"]
    if stop != options.get("stop", stop):
        raise ConfigError(
            f"{url} stops tests by the rule {stop}; start it with --stop {options['stop']}"
        )
    return client


def _close() -> None:
    if _state.judge is not None:
        _state.judge.close()


def _forget() -> None:
    """Drop the judge in a forked child.

    The parent's threads do not exist here, and its sandboxes answer the parent.
    """
    global _state
    # The options stay: a judge of the child is to be like the parent's.
    _state = _State(dict(_state.options))


atexit.register(_close)
os.register_at_fork(after_in_child=_forget)


def check_mode(mode: str, options: SharedJudgeKeys) -> SharedJudgeKeys:
    """Return the judge's options, with `stop="never"` added for mode `fraction`.

    Raises:
        ConfigError: the mode is unknown, or the options leave out tests that it counts.
    """
    if mode not in ("all", "fraction"):
        raise ConfigError(
            f'mode = {mode!r}; use "all" (1 where every test passed, else 0) or "fraction" (of '
            "tests)"
        )
    if mode == "all":
        return options
    # A share is of all tests: none may be left out after a failure.
    if options.get("stop", "never") != "never":
        raise ConfigError(
            f'mode = "fraction" counts every test, stop = {options["stop"]!r} leaves some out; '
            "drop stop"
        )
    return {**options, "stop": "never"}


def score(verdict: Verdict, mode: Mode) -> float | None:
    """Return a program's score, 0 to 1; None if the sandbox failed."""
    if mode == "all" or not verdict.is_scorable:
        return score_verdict(verdict)
    return verdict.tests_passed / verdict.tests_total


def as_figures(verdict: Verdict) -> dict[str, float | str]:
    """Return a verdict as plain values for frameworks' metrics.

    The keys are the same for all verdicts; the list of tests is left out.
    """
    ran = verdict.tests
    figures: dict[str, float | str] = {
        "outcome": str(verdict.outcome),
        "detail": verdict.detail,
        "tests_passed": float(verdict.tests_passed),
        "tests_run": float(len(ran)),
        "tests_total": float(verdict.tests_total),
        # 0 where nothing was run, since frameworks average these.
        "cpu_seconds": max((test.cpu_seconds for test in ran), default=0.0),
        "wall_seconds": max((test.wall_seconds for test in ran), default=0.0),
        "memory_mib": max((test.memory_mib for test in ran), default=0.0),
    }
    # One key an outcome, so that a framework's mean over programs is its share.
    for outcome in Outcome:
        figures[f"is_{outcome}"] = float(verdict.outcome is outcome)
    return figures


def fault_of(verdict: Verdict) -> EvaluatorFault:
    """Return the error to raise for a sandbox that failed, where a framework has no score of
    None."""
    return EvaluatorFault(f"the sandbox failed, so the program has no verdict: {verdict.detail}")


def read_corpus(path: Path, *, format: str | None = None) -> list[Problem]:
    """Return the problems of a corpus, as `microcoder eval` reads them.

    Args:
        path: a folder that `microcoder data build` finished, or a file of rows: JSON lines, a JSON
            list, Parquet.
        format: row format (docs/rows.md); None to detect it by each row's fields.

    Raises:
        DataError: a problem has no statement, or a row cannot be read.
    """
    # What reads rows; most who ask for a score read none.
    from microcoder.data.benchmarks import ProblemFile

    benchmark = ProblemFile(kind="problems", path=path, format=format)
    problems = [question.load() for question in benchmark.read()]
    for problem in problems:
        if not problem.statement.strip():
            raise DataError(
                f"corpus {path}: problem {problem.id!r} has no statement; a model cannot be asked "
                "without one"
            )
    return problems

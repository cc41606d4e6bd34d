"""Checker programs: for problems with many right answers. They run in the sandbox, as any program does.

| protocol  | called with                       | stdin      | right | wrong | anything else     |
|-----------|-----------------------------------|------------|-------|-------|-------------------|
| `testlib` | input output answer               | empty      | 0     | 1, 2  | the checker broke |
| `kattis`  | input answer feedback/ arguments  | the output | 42    | 43    | the checker broke |

A checker that broke is asked about the problem's own answer in place of the output. Where it decides about that one, it
works, and the output that broke it is wrong; if it breaks there, too, nothing is known about the program.

User-defined checkers: the function's file becomes a checker program, which runs in the sandbox.

The function is `check(test_input: str, output: str, answer: str) -> bool | str`: True accepts; False, or a text that
says why, refuses. The file must be whole by itself: it is the program.
"""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from microcoder.judge.compare.compare import Comparison
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.extensions import load_extension
from microcoder.judge.core.types import CHECKER_CRASHED, Checker
from microcoder.judge.run import verdicts
from microcoder.judge.run.runtimes import Loaded
from microcoder.judge.run.supervisor import Run, TestTask
from microcoder.judge.sandbox.protocol import CPU_EXPIRED, FINISHED, WALL_EXPIRED

_MAIN = """

import sys as _sys

_texts = [open(_name, encoding="utf-8", errors="surrogateescape", newline="").read() for _name in _sys.argv[1:4]]
_said = {name}(*_texts, **{options!r})
if _said is not True:
    print(_said if isinstance(_said, str) else "wrong", file=_sys.stderr)
    _sys.exit(1)
"""


def load_checker(reference: str, options: Mapping[str, Any] | None = None) -> Checker:
    """Return the checker that a function makes; its source is in it, so whatever keeps problems keeps that too.

    Args:
        reference: path/to/file.py:function, module:function, or the name of an entry point, see `extensions`.
        options: the function's keyword-only parameters.
    """
    extension = load_extension("checker", reference, builtins={}, options=options)
    function = extension.function
    if not inspect.isfunction(function) or extension.source is None or function.__qualname__ != function.__name__:
        raise ConfigError(f"checker {reference} is not a function of a file; name one defined there by `def`")
    needed = [p for p in inspect.signature(function).parameters.values() if p.kind is not p.KEYWORD_ONLY]
    if len(needed) != 3:
        raise extension.fault("takes other arguments than (test_input, output, answer)")
    code = Path(extension.source.file).read_text(encoding="utf-8")
    return Checker(type="program", code=code + _MAIN.format(name=function.__name__, options=dict(extension.options)))


METHOD = "program"
CPU_SECONDS, MEMORY_MIB = 10.0, 1024
"""Limits of a checker program, whatever the problem's own; a judge has the former as `checker_seconds`."""

_INPUT, _OUTPUT, _ANSWER, _FEEDBACK = "input", "output", "answer", "feedback/"
_UNCAUGHT = "Traceback (most recent call last)"
_UNCAUGHT_CODE = 1
"""Python ends with it after an exception, which must not read as "wrong"."""
_RIGHT = {"testlib": (0,), "kattis": (42,)}
_WRONG = {"testlib": (1, 2), "kattis": (43,)}
ANY_NUMBER = 0
"""Digits of an integer: an output of 10^5 digits is data to a checker, whatever Python thinks of it."""


class CheckerFailed(Exception):
    """The checker gave no verdict, so the program has none; the message says why."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a checker's run ended."""

    exit_code: int | None
    signal: int
    is_late: bool
    """It reached its CPU or wall-time limit."""
    said: str
    """Its message: the end of its stderr, else the beginning of its stdout."""
    has_traceback: bool = False


class AnswerMemory:
    """Of one problem: on which tests its checker decided about the problem's own answer. Kept, as it decides anew
    whenever an output breaks it; safe for several threads, of which two may ask the same at worst."""

    def __init__(self) -> None:
        self._works: dict[int, bool] = {}

    def works(self, test: object, ask: Callable[[], Comparison]) -> bool:
        """Return whether the checker decides about the answer of a test, which lives as long as this memory."""
        known = self._works.get(id(test))
        if known is None:
            try:
                ask()
                known = True
            except CheckerFailed:
                known = False
            self._works[id(test)] = known
        return known


def checker_task(checker: Checker, program: Loaded, test_input: bytes, output: bytes, answer: bytes) -> TestTask:
    """Return the run that decides about an output."""
    stdin, arguments, files = checker_call(checker, test_input, output, answer)
    return replace(program.task(stdin, arguments=arguments, files=files), int_digits=ANY_NUMBER)


def checker_call(
    checker: Checker, test_input: bytes, output: bytes, answer: bytes
) -> tuple[bytes, tuple[str, ...], dict[str, bytes | None]]:
    """Return stdin, arguments and files of a checker's run."""
    if checker.protocol == "testlib":
        return (
            b"",
            (_INPUT, _OUTPUT, _ANSWER, *checker.arguments),
            {_INPUT: test_input, _OUTPUT: output, _ANSWER: answer},
        )
    return (
        output,
        (_INPUT, _ANSWER, _FEEDBACK, *checker.arguments),
        {_INPUT: test_input, _ANSWER: answer, _FEEDBACK: None},
    )


def was_killed(run: Run) -> bool:
    """Whether our machine may have ended a checker: no limit of its own did. What idles, idles by itself."""
    return run.result.signal == signal.SIGKILL and run.result.expired == FINISHED


def has_traceback(stderr: str) -> bool:
    """Whether Python may have reported an uncaught exception."""
    return _UNCAUGHT in stderr


def ending_of(run: Run) -> Ending:
    """Return how a run in a sandbox ended."""
    said = (run.stderr or run.stdout[:1000].decode("utf-8", "replace")).strip()
    result = run.result
    return Ending(
        result.exit_code,
        result.signal,
        result.expired in (CPU_EXPIRED, WALL_EXPIRED) or result.signal == signal.SIGXCPU,
        said,
        has_traceback(run.stderr),
    )


def read_verdict(checker: Checker, ending: Ending) -> Comparison:
    """Return what a checker decided."""
    is_uncaught = ending.has_traceback and ending.exit_code == _UNCAUGHT_CODE
    if not ending.is_late and not ending.signal and not is_uncaught:
        if ending.exit_code in _RIGHT[checker.protocol]:
            return Comparison(True, METHOD, "")
        if ending.exit_code in _WRONG[checker.protocol]:
            said = f": {ending.said}" if ending.said else ""
            return Comparison(False, "", f"the checker refused it{said}")
    if ending.is_late:
        why = "it took too long"
    elif ending.signal:
        why = f"killed by {verdicts.signal_name(ending.signal)}"
    else:
        why = f"exit code {ending.exit_code}"
    raise CheckerFailed(f"failed ({why}): {ending.said[-150:]}")


def broken_by(failed: CheckerFailed) -> Comparison:
    """Return what is decided about an output that broke a checker which works on the problem's own answer."""
    return Comparison(False, CHECKER_CRASHED, f"the checker crashed on this output: it {failed}")

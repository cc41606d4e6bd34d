"""Checker programs: for problems with many right answers. They run in the sandbox, as any program does.

| protocol  | called with                       | stdin      | right | wrong | anything else                  |
|-----------|-----------------------------------|------------|-------|-------|--------------------------------|
| `testlib` | input output answer               | empty      | 0     | 1, 2  | the checker failed: unscored   |
| `kattis`  | input answer feedback/ arguments  | the output | 42    | 43    | the checker failed: unscored   |
"""

from __future__ import annotations

import signal

from microcoder.evaluator.compare import Comparison
from microcoder.evaluator.supervisor import LoadedBinary, LoadedProgram, Run, Task
from microcoder.types import Checker

METHOD = "program"
CPU_SECONDS, MEMORY_MIB = 30.0, 1024
"""What a checker may use, whatever the problem's own limits."""

_INPUT, _OUTPUT, _ANSWER, _FEEDBACK = "input", "output", "answer", "feedback/"
_UNCAUGHT = "Traceback (most recent call last)"
"""Python ends with 1 after an exception, which must not read as "wrong"."""
_RIGHT = {"testlib": (0,), "kattis": (42,)}
_WRONG = {"testlib": (1, 2), "kattis": (43,)}


class CheckerFailed(Exception):
    """The checker gave no verdict; nothing is known about the program. The message is what it did."""


def checker_task(
    checker: Checker, program: LoadedProgram | LoadedBinary, test_input: bytes, output: bytes, answer: bytes
) -> Task:
    """Return the run that decides about an output."""
    if checker.protocol == "testlib":
        files = {_INPUT: test_input, _OUTPUT: output, _ANSWER: answer}
        return program.task(b"", arguments=(_INPUT, _OUTPUT, _ANSWER, *checker.arguments), files=files)
    folders = {_INPUT: test_input, _ANSWER: answer, _FEEDBACK: None}
    return program.task(output, arguments=(_INPUT, _ANSWER, _FEEDBACK, *checker.arguments), files=folders)


def read_verdict(checker: Checker, run: Run) -> Comparison:
    """Return what a checker decided.

    Raises:
        CheckerFailed: it crashed, ran out of time, or ended with a code that means nothing.
    """
    said = (run.stderr or run.stdout[:1000].decode("utf-8", "replace")).strip()
    result = run.result
    if not result.expired and not result.signal and _UNCAUGHT not in run.stderr:
        if result.exit_code in _RIGHT[checker.protocol]:
            return Comparison(True, METHOD, "")
        if result.exit_code in _WRONG[checker.protocol]:
            return Comparison(False, "", f"the checker refused it: {said}" if said else "the checker refused it")
    if result.expired:
        why = "it took too long"
    elif result.signal:
        why = f"killed by {signal.Signals(result.signal).name}"
    else:
        why = f"exit code {result.exit_code}"
    raise CheckerFailed(f"failed ({why}): {said[-150:]}")

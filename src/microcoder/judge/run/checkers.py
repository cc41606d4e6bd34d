"""Checker programs: for problems with many right answers. They run in the sandbox, as any program does.

| protocol  | called with                       | stdin      | right | wrong | anything else     |
|-----------|-----------------------------------|------------|-------|-------|-------------------|
| `testlib` | input output answer               | empty      | 0     | 1, 2  | the checker broke |
| `kattis`  | input answer feedback/ arguments  | the output | 42    | 43    | the checker broke |

A checker that broke is run on the problem's own answer in place of the output. If it decides about that, it works, and
the output that broke it is wrong; if it breaks there, too, the program gets no verdict.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence

from microcoder.judge.compare.compare import Comparison
from microcoder.judge.core.types import Checker, Outcome, Problem, Program, Verdict
from microcoder.judge.run import verdicts
from microcoder.judge.run.supervisor import Loaded, Run, TestTask
from microcoder.judge.sandbox.protocol import CPU_EXPIRED, WALL_EXPIRED

METHOD = "program"
CPU_SECONDS, MEMORY_MIB = 10.0, 1024
"""Limits of a checker program, whatever the problem's own; a judge's option `checker_seconds` replaces the first."""

_INPUT, _OUTPUT, _ANSWER, _FEEDBACK = "input", "output", "answer", "feedback/"
_UNCAUGHT, _UNCAUGHT_CODE = "Traceback (most recent call last)", 1
"""How Python ends after an exception, which must not read as "wrong"."""
_RIGHT = {"testlib": (0,), "kattis": (42,)}
_WRONG = {"testlib": (1, 2), "kattis": (43,)}


_AS_PRINTED = {
    **{"language": "python", "language_version": "", "dialect": "plain"},
    **dict.fromkeys(("fn_name", "call", "harness")),
    **{"time_limit_seconds": CPU_SECONDS, "memory_limit_mib": MEMORY_MIB},
}
"""Fields that turn a problem into one whose answers a Python program prints."""


def checker_task(checker: Checker, program: Loaded, test_input: bytes, output: bytes, answer: bytes) -> TestTask:
    """Return the task that runs a checker program on an output."""
    files: dict[str, bytes | None]
    if checker.protocol == "testlib":
        stdin, names = b"", (_INPUT, _OUTPUT, _ANSWER)
        files = {_INPUT: test_input, _OUTPUT: output, _ANSWER: answer}
    else:
        stdin, names = output, (_INPUT, _ANSWER, _FEEDBACK)
        files = {_INPUT: test_input, _ANSWER: answer, _FEEDBACK: None}
    # An output of 10^5 digits is data to a checker, whatever Python thinks of it.
    return program.task(stdin, arguments=(*names, *checker.arguments), files=files, int_digits=0)


def read_verdict(checker: Checker, run: Run, rejection: str | None) -> Comparison | str:
    """Return a checker's decision, or as text how it failed: not compiled, crashed, late, or another exit code."""
    if rejection is not None:
        return f"does not compile: {rejection}"
    ended = run.result
    said = (run.stderr or run.stdout[:1000].decode("utf-8", "replace")).strip()
    is_uncaught = _UNCAUGHT in run.stderr and ended.exit_code == _UNCAUGHT_CODE
    if ended.expired in (CPU_EXPIRED, WALL_EXPIRED) or ended.signal == signal.SIGXCPU:
        why = "it took too long"
    elif ended.signal:
        why = f"killed by {verdicts.signal_name(ended.signal)}"
    elif ended.exit_code in _RIGHT[checker.protocol]:
        return Comparison(True, METHOD, "")
    elif ended.exit_code in _WRONG[checker.protocol] and not is_uncaught:
        return Comparison(False, "", f"the checker refused it{f': {said}' if said else ''}")
    else:
        why = f"exit code {ended.exit_code}"
    return f"failed ({why}): {said[-150:]}"


def judge_answers(judge: Callable[[Sequence[Program], Sequence[Problem]], list[Verdict]], problem: Problem) -> Verdict:
    """Judge a problem's own answers by its checker program, on all tests.

    A checker that breaks on one is a `sandbox_fault` that names the checker. Without a checker program: accepted.

    Args:
        judge: such as `Judge.judge`.
        problem: with its tests.

    Raises:
        DataError: the checker cannot be run.
        EvaluatorFault: there is no compiler for it, or the judge is closed.
    """
    if problem.checker.type != "program":
        return Verdict(Outcome.ACCEPTED, (), 0)
    answers = [test.output.encode("utf-8", "surrogatepass") for test in problem.tests]
    programs = [Program(f"import sys\nsys.stdout.buffer.write({answer!r})") for answer in answers]
    problems = [problem.model_copy(update=_AS_PRINTED | {"tests": (test,)}) for test in problem.tests]
    return verdicts.conclude([verdict.tests[0] for verdict in judge(programs, problems)], len(problems))

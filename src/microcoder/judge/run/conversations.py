"""Tests that are Python programs: the test and the program run in two processes that converse.

The test runs as it was published, in a sandbox that the program never enters, and calls the
program's function in another (see `sandbox/conversation.py`). The verdict is the test's:

| seen                                                              | outcome         |
|-------------------------------------------------------------------|-----------------|
| the program broke a limit, crashed, or ended before its time      | as of any run   |
| its process wrote something that is no reply                      | `RUNTIME_ERROR` |
| a message beyond what may be sent                                 | `OUTPUT_LIMIT`  |
| an exception of the program that the test did not expect          | `RUNTIME_ERROR` |
| an assertion failed, or the test raised an error after a call     | `WRONG_ANSWER`  |
| the test broke a limit after it had begun to call                 | that limit's    |
| the test broke before it called the program, or never called it   | `SANDBOX_FAULT` |
| the test ended well                                               | `ACCEPTED`      |

What is wrong with a test shows before its first call: nothing of the program has run in it. After
that a program must not escape its verdict by breaking the test.
"""

from __future__ import annotations

import json
import os
import select
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from microcoder.judge.core.types import CHECKER_FAULT, Outcome, TestResult
from microcoder.judge.run import verdicts
from microcoder.judge.run.supervisor import Loaded, PassedOn, Sandbox, TestTask
from microcoder.judge.run.timing import CHECKER_MIB, Limits
from microcoder.judge.run.verdicts import PreparedProblem, Run
from microcoder.judge.sandbox.protocol import ANSWERS, ASKS, Ending, Expiry

_BY_LIMIT = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT, Outcome.PROCESS_LIMIT)
_PATIENCE = 20.0
"""Wall limit of a test, in wall limits of the program that it waits for."""
_METHOD = "assertions"
"""`TestResult.method` of a test that is a program."""


def converse(
    answering: Sandbox,
    asking: Sandbox,
    program: Loaded,
    test: Loaded,
    *,
    settings: bytes,
    limits: Limits,
    test_limits: Limits,
) -> Run:
    """Run a test and the program that it calls; return the program's run, with the test's in it.

    Args:
        answering: sandbox of the program.
        asking: sandbox of the test; another one.
        program: the program, loaded.
        test: the test, loaded.
        settings: `PreparedProblem.settings`.
        limits: of the program. While it waits for the test its wall time passes, so it gets more:
            what the test may take, or as much again.
        test_limits: of the test.

    Raises:
        SandboxDied: one of the sandboxes is gone or does not answer.
    """
    wall_seconds = limits.wall_seconds + min(limits.wall_seconds, test_limits.cpu_seconds)
    limits = replace(limits, wall_seconds=wall_seconds)
    # The program's limits end first, also where it waits for a processor: a test only waits for it.
    test_limits = replace(test_limits, wall_seconds=_PATIENCE * wall_seconds)
    call_read, call_write = os.pipe2(os.O_CLOEXEC)
    reply_read, reply_write = os.pipe2(os.O_CLOEXEC)
    # A test may spell out integers of any length.
    test_task = _with_pipes(test.task(settings, role=ASKS, int_digits=0), reply_read, call_write)
    task = _with_pipes(program.task(b"", role=ANSWERS), call_read, reply_write)
    running = _Running(asking, test_task, test_limits)
    try:
        # The time that a test takes to import packages is none of the program's.
        _wait_for_message(call_read)
        run = answering.run(task, limits)
    finally:
        # Without the program the test ends, too.
        task.pipes.close()
        test_run = running.wait()
    return replace(run, test=test_run)


def converse_once(
    sandboxes: tuple[Sandbox, Sandbox],
    loaded: tuple[Loaded, Loaded],
    settings: bytes,
    limits: tuple[Limits, Limits],
    find_failure: FindFailure,
) -> TestResult:
    """Run a program and a test, and judge; of each pair the program's is first."""
    program, test = loaded
    run = converse(
        *sandboxes, program, test, settings=settings, limits=limits[0], test_limits=limits[1]
    )
    rejection = program.rejection()
    if rejection is not None:
        return verdicts.result_of(run, Outcome.COMPILE_ERROR, rejection)
    return judge_conversation(run, test, find_failure, limits[1])


def conversation_task(
    program: Loaded,
    test: Loaded,
    prepared: PreparedProblem,
    use: Callable[[Callable[[Sandbox], Run]], Run],
) -> TestTask:
    """Return the task of running a program with a test that calls it.

    Args:
        program: the program, loaded.
        test: the test, loaded.
        prepared: the problem.
        use: calls a function with the sandbox for the test.
    """

    def run_in(answering: Sandbox, limits: Limits) -> Run:
        def run(asking: Sandbox) -> Run:
            return converse(
                answering,
                asking,
                program,
                test,
                settings=prepared.settings,
                limits=limits,
                test_limits=prepared.checker_limits,
            )

        return use(run)

    return replace(program.task(b"", role=ANSWERS), run_in=run_in)


def _wait_for_message(pipe: int) -> None:
    """Wait until a pipe has something to read, or nobody writes to it any more."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.poll()


def _with_pipes(task: TestTask, incoming: int, outgoing: int) -> TestTask:
    return replace(task, pipes=PassedOn([incoming, outgoing]))


class _Running:
    """A test that runs in a thread of its own."""

    def __init__(self, sandbox: Sandbox, task: TestTask, limits: Limits) -> None:
        self._arguments = (sandbox, task, limits)
        self._run: Run | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        sandbox, task, limits = self._arguments
        try:
            self._run = sandbox.run(task, limits)
        except BaseException as error:
            self._error = error
        finally:
            # The program ends once its test has.
            task.pipes.close()

    def wait(self) -> Run:
        """Return the test's run, or raise what went wrong with it."""
        self._thread.join()
        if self._run is None:
            assert self._error is not None
            raise self._error
        return self._run


@dataclass(frozen=True, slots=True)
class Report:
    """What a test's process says of its end."""

    ending: Ending
    detail: str
    num_calls: int


def read_report(run: Run) -> Report | None:
    """Return the report that a test has written; None if it ended before it had called."""
    if not run.wire:
        return None
    said: dict[str, Any] = json.loads(run.wire)
    # A lone surrogate, which an answer may have raised, could not be written into a file.
    detail = said["detail"].encode("utf-8", "backslashreplace").decode()
    return Report(Ending(said["ending"]), detail, said["num_calls"])


_ENDS_OF_TALK = {
    Ending.TOO_LONG: (
        Outcome.OUTPUT_LIMIT,
        "a returned value, or what was printed in a call, exceeds 16 MiB",
    ),
    Ending.LEFT: (Outcome.RUNTIME_ERROR, "the program ended before its function returned"),
    Ending.MALFORMED: (
        Outcome.RUNTIME_ERROR,
        "the program wrote something that is no reply to a call: ",
    ),
}
"""Outcome and words of a program that broke off the conversation."""
FindFailure = Callable[[Run], tuple[Outcome, str] | None]
"""Returns outcome and reason of a run that failed whatever its output is."""


def judge_conversation(
    run: Run, test: Loaded, find_failure: FindFailure, test_limits: Limits
) -> TestResult:
    """Return the result of a test that is a program, by the table above.

    Args:
        run: what `converse` returned.
        test: the test, loaded.
        find_failure: judges the program's run by the problem's limits.
        test_limits: of the test.
    """
    assert run.test is not None
    report = read_report(run.test)
    # Meanwhile the program only waited.
    if report is None and run.test.result.expired == Expiry.CPU:
        return _refuse_test(f"it took more than {test_limits.cpu_seconds:g} s of CPU time")
    failure = find_failure(run)
    if failure is not None:
        return verdicts.result_of(run, *failure)
    if report is None:
        return _refuse_test(test.rejection() or _last_words(run.test))
    match report.ending:
        case Ending.PASSED if report.num_calls:
            return verdicts.result_of(run, Outcome.ACCEPTED, "", _METHOD)
        case Ending.PASSED:
            return _refuse_test("it ended without a call of the program")
        case Ending.BROKEN:
            return _refuse_test(report.detail)
        case Ending.FAILED:
            return verdicts.result_of(run, Outcome.WRONG_ANSWER, report.detail, _METHOD)
        case Ending.RAISED:
            # As if it had ended the program, which reported it on stderr.
            ended = run.result._replace(exit_code=1)
            failure = find_failure(replace(run, stderr=report.detail, result=ended))
            return verdicts.result_of(run, *(failure or (Outcome.RUNTIME_ERROR, report.detail)))
    if report.ending in _ENDS_OF_TALK:
        outcome, words = _ENDS_OF_TALK[report.ending]
        return verdicts.result_of(run, outcome, words + report.detail)
    # The test was ended while it used what it had got.
    failure = verdicts.find_failure(run.test, test_limits, CHECKER_MIB)
    outcome, words = failure or (Outcome.RUNTIME_ERROR, "it ended")
    if outcome not in _BY_LIMIT:
        outcome = Outcome.WRONG_ANSWER
    return verdicts.result_of(run, outcome, f"the test itself: {words}")


def _refuse_test(words: str) -> TestResult:
    return verdicts.without_run(Outcome.SANDBOX_FAULT, f"{CHECKER_FAULT}failed: the test: {words}")


def _last_words(run: Run) -> str:
    lines = run.stderr.strip().splitlines()
    return lines[-1] if lines else f"exit code {run.result.exit_code}"

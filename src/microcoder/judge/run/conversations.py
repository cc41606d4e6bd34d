"""A test that is a Python program, and the program that it calls, in two processes that converse.

The test runs as it was published, in a sandbox that the program never enters, and calls the
program's function in the other (see `sandbox/conversation.py`). What its end says of the program is
said in `reports.py`.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable
from dataclasses import replace

from microcoder.judge.run.executor import Run
from microcoder.judge.run.supervisor import Loaded, PassedOn, Sandbox, TestTask
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.watchdog import Side
from microcoder.judge.sandbox.protocol import ANSWERS, ASKS

_PATIENCE = 20.0
"""Wall limit of a test, in wall limits of the program that it waits for."""


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
    limits, test_limits = lengthen_limits(limits, test_limits)
    call_read, call_write = os.pipe2(os.O_CLOEXEC)
    reply_read, reply_write = os.pipe2(os.O_CLOEXEC)
    # A test may spell out integers of any length.
    test_task = _with_pipes(test.task(settings, role=ASKS, int_digits=0), reply_read, call_write)
    task = _with_pipes(program.task(b"", role=ANSWERS), call_read, reply_write)
    # The program ends once its test has.
    running = Running(asking, test_task, test_limits)
    try:
        # The time that a test takes to import packages is none of the program's.
        _wait_for_message(call_read)
        run = answering.run(task, limits)
    finally:
        # Without the program the test ends, too.
        task.pipes.close()
        test_run = running.wait()
    return replace(run, test=test_run)


def lengthen_limits(limits: Limits, partner_limits: Limits) -> tuple[Limits, Limits]:
    """Return the limits of a program and of what it talks with.

    While the program waits its wall time passes, so it gets more: what its partner may take, or as
    much again.
    """
    longer = min(limits.wall_seconds, partner_limits.cpu_seconds)
    wall_seconds = limits.wall_seconds + longer
    # The program's limits end first, also where it waits for a processor: its partner waits for it.
    patient = replace(partner_limits, wall_seconds=_PATIENCE * wall_seconds)
    return replace(limits, wall_seconds=wall_seconds), patient


def _wait_for_message(pipe: int) -> None:
    """Wait until a pipe has something to read, or nobody writes to it any more."""
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    poll.poll()


def _with_pipes(task: TestTask, incoming: int, outgoing: int) -> TestTask:
    return replace(task, pipes=PassedOn([incoming, outgoing]))


def _do_nothing(run: Run | None) -> None:
    """Let the other side see the end by its pipe."""


class Running:
    """A test, or an interactor, that runs in a thread of its own."""

    def __init__(
        self,
        sandbox: Sandbox,
        task: TestTask,
        limits: Limits,
        side: Side | None = None,
        at_end: Callable[[Run | None], None] = _do_nothing,
    ) -> None:
        """Start it.

        Args:
            sandbox: where it runs.
            task: what is run.
            limits: of the run.
            side: which side of an interaction it is.
            at_end: called in its thread with the run, or with None if the sandbox failed.
        """
        self._arguments = (sandbox, task, limits, side)
        self._at_end = at_end
        self._run: Run | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        sandbox, task, limits, side = self._arguments
        try:
            self._run = sandbox.run(task, limits, side)
        except BaseException as error:
            self._error = error
        finally:
            task.pipes.close()
            self._at_end(self._run)

    def wait(self) -> Run:
        """Return its run, or raise what went wrong with it."""
        self._thread.join()
        if self._run is None:
            assert self._error is not None
            raise self._error
        return self._run

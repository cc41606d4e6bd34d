"""A program and an interactor, in two sandboxes, that talk over their stdin and stdout.

The order in which the two end decides, so it must not be luck. Each would see at once that the
other has ended: by the end of its stdin, or by a signal as it writes. So this side keeps an end of
both pipes open. The program sees that the interactor has ended only when that is known here:

- it accepted: the program's stdin ends, what it still writes is read by nobody, and it must end
  well by itself;
- anything else: the program is ended, as nothing that it does can matter any more.

An interactor sees that the program has ended by the end of its stdin, and by nothing else: what it
still writes is read by nobody. If the program failed, the interactor is ended: the failure decides.
"""

from __future__ import annotations

import contextlib
import os
import select
from dataclasses import replace

from microcoder.judge.run.conversations import Running, lengthen_limits
from microcoder.judge.run.executor import Leader, Run, Task
from microcoder.judge.run.supervisor import Loaded, PassedOn, Sandbox, TestTask
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.watchdog import Interaction, Side
from microcoder.judge.sandbox.protocol import TALKS, Expiry

_BLOCK_BYTES = 1 << 16
"""What is read at a time of an output that nobody waits for."""


def interact(
    answering: Sandbox,
    leading: Sandbox,
    program: Loaded,
    interactor: Loaded,
    *,
    task: Task,
    leader: Leader,
    limits: Limits,
) -> Run:
    """Run a program and an interactor; return the program's run, with the interactor's in it.

    Args:
        answering: sandbox of the program.
        leading: sandbox of the interactor; another one.
        program: the program, loaded.
        interactor: the interactor, loaded.
        task: what the program is run on.
        leader: the interactor's; its wall time counts from the program's end.
        limits: of the program; its wall time is lengthened by what the interactor may take.

    Raises:
        SandboxDied: one of the sandboxes is gone or does not answer.
    """
    limits, leader_limits = lengthen_limits(limits, leader.limits)
    pipes = _Pipes()
    interaction = Interaction(pipes.answer_input.close, leader.limits.wall_seconds)
    talking = _talk(program, task, pipes.of_answer)
    leading_task = _talk(interactor, leader.task, pipes.of_leader)

    def end(run: Run | None) -> None:
        interaction.has_ended = True
        if run is not None and leader.accepts(run):
            pipes.drain_answer()
        else:
            pipes.end_answer.close()

    running = Running(leading, leading_task, leader_limits, Side(interaction), end)
    is_over = True
    try:
        run = answering.run(talking, limits, Side(interaction, is_answer=True))
        is_over = _has_failed(run)
    finally:
        talking.pipes.close()
        try:
            if is_over:
                pipes.end_leader.close()
            else:
                interaction.is_answered = True
                pipes.drain_leader()
            leader_run = running.wait()
        finally:
            pipes.close()
    return replace(run, test=leader_run)


def _has_failed(run: Run) -> bool:
    """Whether a program failed whatever the interactor says."""
    result = run.result
    is_ended = result.expired not in (Expiry.FINISHED, Expiry.CONVERSATION)
    return is_ended or bool(result.exit_code) or bool(result.signal)


def _talk(loaded: Loaded, task: Task, pipes: PassedOn) -> TestTask:
    """Return the task of one side: its stdin and stdout are pipes, whatever they are called."""
    own = loaded.task_of(task, task.files, has_named_streams=False)
    return replace(own, pipes=pipes, options={**own.options, "role": TALKS})


class _Pipes:
    """The pipes of an interaction."""

    def __init__(self) -> None:
        to_answer, from_leader = os.pipe2(os.O_CLOEXEC)
        to_leader, from_answer = os.pipe2(os.O_CLOEXEC)
        answer_line, end_answer = os.pipe2(os.O_CLOEXEC)
        leader_line, end_leader = os.pipe2(os.O_CLOEXEC)
        self.of_answer = PassedOn([to_answer, from_answer, answer_line])
        """The program's stdin and stdout, and what tells it that it is over."""
        self.of_leader = PassedOn([to_leader, from_leader, leader_line])
        """The same of the interactor."""
        self.answer_input = PassedOn([os.dup(from_leader)])
        """Keeps the program's stdin from ending."""
        self._to_leader = os.dup(to_leader)
        self._to_answer = os.dup(to_answer)
        self.end_answer = PassedOn([end_answer])
        """Once closed, the program is ended."""
        self.end_leader = PassedOn([end_leader])
        """Once closed, the interactor is ended."""

    def drain_answer(self) -> None:
        """End the program's stdin, and read what it writes until it has ended."""
        self.answer_input.close()
        _drain(self._to_leader)

    def drain_leader(self) -> None:
        """Read what the interactor writes until it has ended."""
        self.answer_input.close()
        _drain(self._to_answer)

    def close(self) -> None:
        """Close all that is still open here."""
        self.answer_input.close()
        self.end_answer.close()
        self.end_leader.close()
        os.close(self._to_leader)
        os.close(self._to_answer)


def _drain(pipe: int) -> None:
    """Read a pipe until nobody writes to it any more."""
    # Not by waiting in `read`: who has read it may have made it one that waits for nobody.
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    block = b"-"
    while block:
        poll.poll()
        with contextlib.suppress(BlockingIOError):
            block = os.read(pipe, _BLOCK_BYTES)

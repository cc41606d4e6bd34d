"""A process of a judge, with its workers, until the parent closes the channel."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import NoReturn

from microcoder.errors import EvaluatorFault, MicroCoderError
from microcoder.evaluator import channel
from microcoder.evaluator.alone import SharedGate
from microcoder.evaluator.calibration import Pace
from microcoder.evaluator.channel import Channel, JudgeSetup, pack_answer
from microcoder.evaluator.executions import Execution, Invocation
from microcoder.evaluator.memory import KnownProblem
from microcoder.evaluator.package_folders import PackageShelf
from microcoder.evaluator.packages import load_profile
from microcoder.evaluator.preparation import PreparedProblem
from microcoder.evaluator.sandbox.syscalls import PR_SET_PDEATHSIG, prctl
from microcoder.evaluator.workers import Work, Workers
from microcoder.types import Problem, Program, Verdict


def main() -> None:
    """Serve a socket, then end with all sandboxes; arguments: the parent's process id, the descriptor."""
    # Also if another process has the other end of the socket, such as a fork of the one that ended.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[-2]):
        # It ended before it could be tied to us.
        os._exit(0)
    signal.signal(signal.SIGTERM, _end)
    JudgeProcess(Channel(int(sys.argv[-1]))).serve()
    # What still runs are threads whose sandboxes were ended.
    os._exit(0)


def _end(*_: object) -> NoReturn:
    """End as if the other side had closed the channel."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit


class JudgeProcess:
    """Executes the messages of its channel."""

    def __init__(self, judge: Channel) -> None:
        message = judge.receive()
        if message is None:
            os._exit(0)
        self._judge = judge
        self._setup: JudgeSetup = message[0]
        self._gate = SharedGate(
            ask=lambda: judge.send(channel.ASK),
            over=lambda: judge.send(channel.OVER),
            paused=lambda number: judge.send(channel.PAUSED, number),
        )
        self._is_ending = False
        self._given_up: set[int] = set()
        self._begun: set[int] = set()
        self._lock = threading.Lock()
        self._problems: dict[int, KnownProblem] = {}

    def serve(self) -> None:
        """Start the workers, pass them the incoming work, and end them."""
        settings, pace = self._setup.settings, self._setup.pace
        try:
            packages = PackageShelf(load_profile(settings.packages))
            self._workers = Workers(self._setup.num_workers, settings, packages, gate=self._gate, pace=Pace(pace))
        except Exception as error:
            self._fail(error)
            return
        try:
            if pace is not None:
                self._judge.send(channel.READY)
            else:
                isolation, scale = self._workers.open()
                self._judge.send(channel.READY, isolation, scale, self._workers.pace.best, self._workers.call_stack)
            while (message := self._judge.receive()) is not None:
                self._take(*message)
        except SystemExit:
            pass
        except Exception as error:
            self._fail(error)
        finally:
            # Tests that are cut off now say nothing about their programs, which another process judges.
            self._is_ending = True
            self._workers.close()

    def _fail(self, error: Exception) -> None:
        known = isinstance(error, MicroCoderError)
        self._judge.send(channel.FAILED, error if known else EvaluatorFault(f"{type(error).__name__}: {error}"))

    def _take(self, kind: int, *content: object) -> None:
        match kind, content:
            case channel.JUDGE, (int(number), Program() as program, int(known), problem):
                assert problem is None or isinstance(problem, Problem)
                self._put(number, program, self._find(known, problem), None)
            case channel.RUN, (int(number), Invocation() as invocation):
                self._put(number, invocation.program, None, invocation)
            case channel.GIVE_UP, (int(number),):
                with self._lock:
                    if number in self._begun:
                        self._given_up.add(number)
            case channel.FORGET, (int(number),):
                del self._problems[number]
            case channel.PAUSE, (int(number),):
                self._gate.pause(number)
            case channel.GRANT, ():
                self._gate.grant()
            case channel.RESUME, ():
                self._gate.resume()
            case _:
                raise EvaluatorFault(f"a judge process was sent {kind}, {content!r:.200}")

    def _find(self, number: int, problem: Problem | None) -> KnownProblem:
        if problem is not None:
            scale, checker_seconds = self._workers.time_scale, self._setup.settings.checker_seconds
            prepared = PreparedProblem(problem, time_scale=scale, checker_seconds=checker_seconds)
            self._problems[number] = KnownProblem(number, prepared)
        return self._problems[number]

    def _put(self, number: int, program: Program, problem: KnownProblem | None, invocation: Invocation | None) -> None:
        def finish(answer: Verdict | Execution | None) -> None:
            with self._lock:
                self._begun.discard(number)
                self._given_up.discard(number)
            if not self._is_ending:
                self._judge.send(channel.DONE, number, pack_answer(answer), self._workers.counts)

        with self._lock:
            self._begun.add(number)
        self._workers.put(Work(program, problem, invocation, lambda: number not in self._given_up, finish))

"""Workers spread over several processes, since one Python process keeps up with few of them.

Each process is a fresh interpreter with threads and sandboxes of its own, which ends with the judge
that started it. Programs are sent in the order in which they came. A process is started if those
that start have fewer workers than programs wait. Programs of a process that ended go to another
one, once.

Each has one socket to the judge, which sandboxes cannot reach. A message is a tuple, the kind
first:

| from the judge                               | from a process                              |
|----------------------------------------------|---------------------------------------------|
| workers, options, calibration; once          | `ready` isolation, time scale, calibration  |
| `begin` number, program, problem number,     | `done` number, answer or None, counts       |
| problem, invocation                          |                                             |
| `give_up` number                             | `failed` error                              |
| `forget` problem number                      |                                             |

The calibration is None if it is to be measured. Of `begin` the last three may be None: a program
that is only run has no problem, one that is judged has no invocation, and a problem is sent once.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from multiprocessing.connection import Connection
from typing import Any, NoReturn, TypeAlias, cast

from microcoder.judge.core.errors import EvaluatorFault, MicroCoderError
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet.fleet import Backend, Fleet
from microcoder.judge.run.counts import Statistics, sum_counts
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.lru_cache import LruCache
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.slots import make_lock_files
from microcoder.judge.run.timing import Calibration
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.run.workers import Answer, Work, Workers
from microcoder.judge.sandbox.kernel import PR_SET_PDEATHSIG, prctl

_Measured: TypeAlias = "tuple[Isolation, float, dict[str, float] | None]"
"""What a process measures as it starts: isolation, time scale and calibration."""


class Channel:
    """One end of a socket; any thread may send, one receives."""

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor)
        self._lock = threading.Lock()

    def send(self, *message: object) -> None:
        """Send a message; if the other side is gone, the receiving thread notices."""
        # Before the lock is taken: long tests take a while.
        packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._lock, contextlib.suppress(OSError):
            self._connection.send_bytes(packed)

    def receive(self) -> tuple[Any, ...] | None:
        """Return the next message, or None once the other side is gone."""
        try:
            return pickle.loads(self._connection.recv_bytes())
        except (EOFError, OSError):
            return None

    def close(self) -> None:
        """Close the channel; only for the receiving thread."""
        with self._lock:
            self._connection.close()


def main() -> None:
    """Run a judge process: serve its socket, then end with all sandboxes.

    Arguments of the command: the parent's process id, the descriptors of the socket and of the
    files for `Slot`.
    """
    # Also if another process has the other end of the socket, such as a fork of the one that ended.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    parent, descriptor, *lock_files = map(int, sys.argv[-4:])
    if os.getppid() != parent:
        # It ended before it could be tied to us.
        os._exit(0)
    signal.signal(signal.SIGTERM, _end)
    judge = Channel(descriptor)
    try:
        message = judge.receive()
        if message is not None:
            JudgeProcess(judge, lock_files, *message).serve()
    except SystemExit:
        pass
    except Exception as error:
        if not isinstance(error, MicroCoderError):
            # Other exceptions need not be picklable, or known to the judge.
            error = EvaluatorFault(f"{type(error).__name__}: {error}")
        judge.send("failed", error)
    # What still runs are threads whose sandboxes were ended.
    os._exit(0)


def _end(*_: object) -> NoReturn:
    """Handle a signal: end the process as if the judge had closed the channel."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit


class JudgeProcess:
    """The process's side of the channel: each message calls the method that its kind names."""

    def __init__(
        self,
        judge: Channel,
        lock_files: Sequence[int],
        num_workers: int,
        options: JudgeOptions,
        calibration: dict[str, float] | None,
    ) -> None:
        self._workers = Workers(
            num_workers,
            options,
            lock_files=lock_files,
            calibration=Calibration(calibration),
        )
        self._judge = judge
        self._options = options
        self._is_ending = False
        self._wanted: dict[int, Work] = {}
        """Work that has not ended, by number."""
        self._problems: dict[int, PreparedProblem] = {}
        """Problems that were sent and not forgotten, by number."""

    def serve(self) -> None:
        """Start the workers, pass them the incoming work, and end them."""
        try:
            self._judge.send("ready", *self._measure())
            while (message := self._judge.receive()) is not None:
                getattr(self, message[0])(*message[1:])
        finally:
            # Tests that are cut off now say nothing about their programs, which another process
            # judges.
            self._is_ending = True
            self._workers.close()

    def _measure(self) -> tuple[object, ...]:
        """Return isolation, time scale and calibration of this machine; nothing if they are
        known already."""
        if self._workers.calibration.best:
            return ()
        isolation, time_scale = self._workers.open()
        return isolation, time_scale, self._workers.calibration.best

    def begin(
        self,
        number: int,
        program: Program,
        known: int | None,
        problem: Problem | None,
        invocation: Invocation | None,
    ) -> None:
        """Begin to judge or to run a program.

        Args:
            number: of the program.
            program: what to judge or to run.
            known: number of its problem; None for a program that is only run.
            problem: the problem itself, only with its first program.
            invocation: how to run it; None for a program that is judged.
        """
        if problem is not None and known is not None:
            self._problems[known] = PreparedProblem(
                problem,
                time_scale=self._workers.time_scale,
                checker_seconds=self._options.checker_seconds,
            )
        prepared = None if known is None else self._problems[known]
        work = Work(
            program,
            prepared,
            invocation,
            end=self._end,
            number=number,
        )
        self._wanted[number] = work
        self._workers.put(work)

    def give_up(self, number: int) -> None:
        """Stop work after its current test, if it has not ended."""
        work = self._wanted.get(number)
        if work is not None:
            work.waiting[0].cancel()

    def forget(self, number: int) -> None:
        """Drop a problem; it is sent again if another program needs it."""
        del self._problems[number]

    def _end(
        self,
        work: Work,
        answer: Answer | None,
    ) -> None:
        del self._wanted[work.number]
        # Counts go with each answer, so that few are lost with a process.
        if not self._is_ending:
            self._judge.send("done", work.number, answer, self._workers.counts)


_MOST_PROBLEMS = 512
"""Most prepared problems that one process keeps."""
_MOST_PROBLEM_BYTES = 128 << 20
"""Most bytes of them."""
_MOST_FAILED_STARTS = 3
"""After this many failed starts in a row, none is tried for `_REST_SECONDS`."""
_REST_SECONDS = 10.0
"""How long no start is tried after too many have failed."""
_CLOSE_SECONDS = 10.0
"""How long processes may take to end before they are killed."""
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from microcoder.judge.fleet import pipe; pipe.main()"
)
"""What a judge process runs; its first argument is this process's import path."""


class _Process(Backend):
    channel: Channel
    """Set when the process starts; messages sent after its end are dropped."""

    def __init__(
        self,
        pool: Processes,
        name: str,
        size: int,
    ) -> None:
        """Start the process from a thread that outlives it.

        The kernel kills it when that thread ends.
        """
        super().__init__()
        self.name = name
        self.size = size
        """How many workers it is to have."""
        self.counts = Statistics()
        self.process: subprocess.Popen[bytes] | None = None
        self._pool = pool
        self._sent: LruCache[bool] = LruCache(_MOST_PROBLEMS, _MOST_PROBLEM_BYTES)
        self._sending = threading.Lock()
        self._thread = threading.Thread(
            target=self._tend,
            name="judge-process",
            daemon=True,
        )
        self._thread.start()

    def next_batch_size(self, num_waiting: int, num_backends: int) -> int:
        # Once all have started, also for programs that are paused.
        most = self.most if self._pool.is_complete else self.size
        return 1 if len(self.held) < most else 0

    def send(self, batch: Sequence[Work]) -> None:
        for item in batch:
            with self._sending:
                self._send_one(item)
            if not item.is_wanted():
                self.channel.send("give_up", item.number)

    def _send_one(self, item: Work) -> None:
        """Send a program, with its problem if the process does not have it."""
        number = None
        problem = None
        if item.problem is not None:
            number = item.problem.number
            if self._sent.find(number) is None:
                self._sent.add(number, True, item.problem.num_bytes)
                problem = item.problem.problem
        self.channel.send(
            "begin",
            item.number,
            item.program,
            number,
            problem,
            item.invocation,
        )
        for forgotten in self._sent.trim():
            self.channel.send("forget", forgotten)

    def end(self, latest: float) -> None:
        """Wait for the process to end, until `latest` (`time.monotonic`), then kill it."""
        self._thread.join(max(0.0, latest - time.monotonic()))
        # It has had its time.
        if self._thread.is_alive() and self.process is not None:
            self.process.kill()
            self._thread.join(_CLOSE_SECONDS)

    def _tend(self) -> None:
        """Start the process, handle its messages, and wait for its end."""
        failure: Exception | None = None
        try:
            ours, theirs = socket.socketpair()
            self.channel = Channel(ours.detach())
            # Closed here once the process has it: its end then closes the socket.
            with theirs:
                self.process = _spawn(theirs.fileno(), *self._pool.lock_files)
        except OSError as error:
            self._pool.note_end(self, EvaluatorFault(f"cannot start {sys.executable}: {error}"))
            return
        # The pool was closed while this one started, and did not see its process.
        if self._pool.is_closed:
            self.process.kill()
        self.channel.send(self.size, self._pool.options, self._pool.calibration)
        try:
            while (message := self.channel.receive()) is not None:
                failure = self._pool.note(self, *message) or failure
        finally:
            self.channel.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(_CLOSE_SECONDS)
            self.process.kill()
            self.process.wait()
            self._pool.note_end(self, failure)


class Processes(Fleet[_Process]):
    """A pool of judge processes."""

    def __init__(
        self,
        num_processes: int,
        num_workers: int,
        options: JudgeOptions,
    ) -> None:
        """Spread `num_workers` evenly over `num_processes`; none is started yet."""
        super().__init__()
        self.options = options
        self.calibration: dict[str, float] | None = None
        """Calibration of this machine, once the first process has measured it."""
        self.is_closed = False
        """Whether the pool is closing."""
        self.lock_files = make_lock_files()
        """Files whose locks let a test of one process run alone among the tests of all
        processes."""
        self._idle: dict[str, int] = {}
        """Name of each process that is not running -> the number of workers it is to have."""
        for number in range(num_processes):
            self._idle[str(number)] = len(range(number, num_workers, num_processes))
        self._past_counts = Statistics()
        """Counts of processes that ended."""
        self._num_failed_starts = 0
        """Failed starts in a row."""
        self._start_failure = ""
        """Why the latest of them failed."""
        self._rests_until = 0.0
        """Time (`time.monotonic`) until which no start is tried, if too many have failed."""
        self._opened: Future[tuple[Isolation, float]] = Future()
        """What the first process has measured, or why it did not start."""

    @property
    def counts(self) -> Statistics:
        """Counts so far, those of ended processes included."""
        with self._lock:
            running = [member.counts for member in self._backends.values()]
            again = Statistics(retries=self._num_again)
            return sum_counts([again, self._past_counts, *running])

    @property
    def is_complete(self) -> bool:
        """Whether all processes have started and are ready."""
        return not self._idle and all(member.workers for member in self._backends.values())

    def open(self) -> tuple[Isolation, float]:
        """Start the first process with its first sandbox.

        Returns:
            The isolation, and the factor on CPU limits.
        """
        with self._lock:
            self._start()
        return self._opened.result()

    def put(self, work: Work) -> None:
        """Queue work; it is begun in the order in which it came."""
        self._put([work])

    def withdraw(self, work: Work) -> None:
        """Stop work after its current test if it runs.

        If it is queued, it is dropped when it would be sent.
        """
        with self._lock:
            members = list(self._backends.values())
            holding = [member for member in members if work.number in member.held]
        for member in holding:
            member.channel.send("give_up", work.number)

    def close(self) -> None:
        """End all processes with their sandboxes."""
        with self._lock:
            self.is_closed = True
            members = list(self._backends.values())
        for member in members:
            if member.process is not None:
                member.process.terminate()
        latest = time.monotonic() + _CLOSE_SECONDS
        for member in members:
            member.end(latest)
        for file in self.lock_files:
            os.close(file)

    def note(
        self,
        member: _Process,
        kind: str,
        *content: object,
    ) -> Exception | None:
        """Handle a message of a process; return the error if it reports that the process failed."""
        match kind, content:
            case (
                "done",
                (
                    int(number),
                    Verdict() | Execution() | MicroCoderError() as answer,
                    Statistics() as counts,
                ),
            ):
                member.counts = counts
                self._land(member, number, answer)
            case "ready", _:
                if content:
                    isolation, scale, self.calibration = cast(_Measured, content)
                    self.options = self.options.model_copy(update={"time_scale": scale})
                    self._opened.set_result((isolation, scale))
                # Failures count in a row.
                self._num_failed_starts = 0
                self._open(member, member.size)
            case "failed", (Exception() as error,):
                return error
        return None

    def note_end(
        self,
        member: _Process,
        failure: Exception | None,
    ) -> None:
        """Queue the programs of an ended process again, once.

        It may have ended before it was ready.
        """
        with self._lock:
            was_ready = member.workers > 0
            member.workers = 0
            del self._backends[member.name]
            self._idle[member.name] = member.size
            # What it did is not lost with it.
            self._past_counts = sum_counts([self._past_counts, member.counts])
            if self.is_closed:
                return
            if not was_ready:
                self._num_failed_starts += 1
                self._start_failure = str(failure or "it ended while it started")
                self._rests_until = time.monotonic() + _REST_SECONDS
        if self.calibration is None:
            self._opened.set_exception(
                failure or EvaluatorFault("the first judge process ended while it started")
            )
        else:
            self._lose(member, "the judge process ended twice while this was judged")

    def _find_end(
        self,
        backend: _Process,
        item: Work,
        why: str,
    ) -> str:
        return why if item.num_losses > 1 else ""

    def _wake(self) -> None:
        """Give work to the processes that may take more, and start another if it is needed."""
        if self.is_closed:
            return
        self._hand_out()
        with self._lock:
            if self.is_closed or not self._queue or self._start_another():
                return
        # Nothing runs and nothing starts: these programs would wait for ever.
        self._give_all_up(f"no judge process starts: {self._start_failure}")

    def _start_another(self) -> bool:
        """Start a process if the processes that are starting have too few workers.

        Returns:
            Whether any starts or runs.
        """
        num_starting = sum(member.size for member in self._backends.values() if not member.workers)
        has_failed = self._num_failed_starts >= _MOST_FAILED_STARTS
        rests = has_failed and time.monotonic() < self._rests_until
        if len(self._queue) > num_starting and self._idle and not rests:
            self._start()
        return bool(self._backends)

    def _start(self) -> None:
        name = next(iter(self._idle))
        size = self._idle.pop(name)
        self._backends[name] = _Process(self, name, size)


def _spawn(*descriptors: int) -> subprocess.Popen[bytes]:
    """Start a judge process with this process's import path.

    Ctrl-C in a terminal does not reach it, since it has a process group of its own.
    """
    # An empty entry means the working folder, which may be another one there.
    path = json.dumps([entry or os.getcwd() for entry in sys.path])
    command = [
        sys.executable,
        "-P",
        "-c",
        _START,
        path,
        str(os.getpid()),
        *map(str, descriptors),
    ]
    return subprocess.Popen(
        command,
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        process_group=0,
    )

"""Workers spread over several processes, since one Python process keeps up with few of them.

Each process is a fresh interpreter with threads and sandboxes of its own. Programs go to the one that
has the fewest, as places become free; a process is started if there is more work than the others have places for.
One that ends takes no verdict with it: what it had goes to another one, once.

A process of a judge, with its workers, until the parent closes the channel.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import OrderedDict, deque
from dataclasses import dataclass
from queue import SimpleQueue
from typing import NoReturn

from microcoder.judge.core.errors import EvaluatorFault, MicroCoderError
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.fleet import channel
from microcoder.judge.fleet.alone import SharedGate, make_lock_files
from microcoder.judge.fleet.channel import Channel, JudgeSetup, pack_answer, unpack_answer
from microcoder.judge.languages.packages import PackageShelf, load_profile
from microcoder.judge.run.executions import Execution, Invocation
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.problem import PreparedProblem
from microcoder.judge.run.timing import Pace
from microcoder.judge.run.turns import most_workers
from microcoder.judge.run.verdicts import Counts, sum_counts
from microcoder.judge.run.workers import KnownProblem, Work, Workers
from microcoder.judge.sandbox.kernel import PR_SET_PDEATHSIG, prctl


def main() -> None:
    """Serve a socket, then end with all sandboxes.

    Arguments: the parent's process id, the descriptors of the socket and of the files for `SharedGate`.
    """
    # Also if another process has the other end of the socket, such as a fork of the one that ended.
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    parent, descriptor, *lock_files = map(int, sys.argv[-4:])
    if os.getppid() != parent:
        # It ended before it could be tied to us.
        os._exit(0)
    signal.signal(signal.SIGTERM, _end)
    JudgeProcess(Channel(descriptor), SharedGate(lock_files)).serve()
    # What still runs are threads whose sandboxes were ended.
    os._exit(0)


def _end(*_: object) -> NoReturn:
    """End as if the other side had closed the channel."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise SystemExit


class JudgeProcess:
    """Executes the messages of its channel."""

    def __init__(self, judge: Channel, gate: SharedGate) -> None:
        message = judge.receive()
        if message is None:
            os._exit(0)
        self._judge = judge
        self._setup: JudgeSetup = message[0]
        self._gate = gate
        self._is_ending = False
        self._given_up: set[int] = set()
        self._begun: set[int] = set()
        self._lock = threading.Lock()
        self._problems: dict[int, KnownProblem] = {}

    def serve(self) -> None:
        """Start the workers, pass them the incoming work, and end them."""
        options, pace = self._setup.options, self._setup.pace
        try:
            packages = PackageShelf(load_profile(options.packages))
            self._workers = Workers(self._setup.num_workers, options, packages, gate=self._gate, pace=Pace(pace))
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
            case _:
                raise EvaluatorFault(f"a judge process was sent {kind}, {content!r:.200}")

    def _find(self, number: int, problem: Problem | None) -> KnownProblem:
        if problem is not None:
            scale, checker_seconds = self._workers.time_scale, self._setup.options.checker_seconds
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


_MOST_PROBLEMS, _MOST_PROBLEM_BYTES = 512, 128 << 20
"""That a process holds prepared."""
_MOST_FAILED_STARTS, _REST_SECONDS = 3, 10.0
"""After so many starts that failed, in a row, none is tried for a while."""
_CLOSE_SECONDS = 10.0
_START = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from microcoder.judge.fleet.processes import main
main()
"""


@dataclass(eq=False, slots=True)
class _Item:
    """A unit of work and its state."""

    work: Work
    has_lost_its_process: bool = False


class Processes:
    """A pool of judge processes."""

    def __init__(self, num_processes: int, num_workers: int, options: JudgeOptions) -> None:
        """Start nothing yet; the workers are spread evenly."""
        self._options = options
        self._pace: dict[str, float] | None = None
        self._lock = threading.Lock()
        self._waiting: deque[_Item] = deque()
        self._owners: dict[Work, tuple[_Process, int]] = {}
        self._retries = 0
        self._failed_starts = 0
        self._start_failure = ""
        self._rests_until = 0.0
        self.is_closed = False
        """Whether the pool is closing."""
        self._opened: SimpleQueue[tuple[Isolation, float] | Exception] = SimpleQueue()
        self.call_stack = ""
        """What the first sandbox says of the call stack, see `Sandbox`."""
        self.lock_files = make_lock_files()
        """By which a test of one process runs alone among all."""
        self.members = [
            _Process(self, num_workers // num_processes + (number < num_workers % num_processes))
            for number in range(num_processes)
        ]
        """One for each process, started or not."""

    @property
    def counts(self) -> Counts:
        """What was counted so far, by processes that have ended, too."""
        return sum_counts([Counts(retries=self._retries), *(member.counts for member in self.members)])

    def open(self) -> tuple[Isolation, float]:
        """Start the first process with its first sandbox; return what holds, and what CPU limits are multiplied by.

        Raises:
            EvaluatorFault: it does not start, or does not hold.
        """
        with self._lock:
            self.members[0].start(JudgeSetup(self.members[0].size, self._options, None))
        answer = self._opened.get()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def put(self, work: Work) -> None:
        """Take work, which is begun in the order in which it came."""
        with self._lock:
            self._waiting.append(_Item(work))
        self._distribute()

    def withdraw(self, work: Work) -> None:
        """Cancel work: drop it if queued, stop it after its current test if running."""
        with self._lock:
            owner = self._owners.get(work)
        if owner is not None:
            member, number = owner
            member.send(channel.GIVE_UP, number)

    def close(self) -> None:
        """End all processes with their sandboxes."""
        with self._lock:
            self.is_closed = True
        for member in self.members:
            member.terminate()
        latest = time.monotonic() + _CLOSE_SECONDS
        for member in self.members:
            member.end(latest)
        for file in self.lock_files:
            file.close()

    def note_open(
        self, member: _Process, isolation: Isolation, scale: float, pace: dict[str, float], call_stack: str
    ) -> None:
        """Keep the first process's isolation and time scale."""
        self.call_stack = call_stack
        self._options = self._options.model_copy(update={"time_scale": scale})
        self._pace = pace
        self._opened.put((isolation, scale))

    def note_ready(self) -> None:
        """Give a process work that has just started."""
        with self._lock:
            self._failed_starts = 0
        self._distribute()

    def note_done(self, member: _Process, number: int, packed: object, counts: Counts) -> None:
        """Hand over an answer."""
        with self._lock:
            item = member.items.pop(number, None)
            member.latest_counts = counts
            if item is not None:
                del self._owners[item.work]
        self._distribute()
        if item is not None:
            item.work.finish(unpack_answer(packed))

    def note_end(self, member: _Process, failure: Exception | None) -> None:
        """Give what a process had to others, once; it may have ended before it had any."""
        with self._lock:
            was_ready, member.is_ready, member.is_started = member.is_ready, False, False
            lost, member.items = list(member.items.values()), {}
            member.past_counts, member.latest_counts = member.counts, Counts()
            for item in lost:
                del self._owners[item.work]
            if self.is_closed:
                return
            if not was_ready:
                self._failed_starts += 1
                self._start_failure = str(failure or "it ended while it started")
                self._rests_until = time.monotonic() + _REST_SECONDS
            again = [item for item in lost if not item.has_lost_its_process]
            self._retries += len(again)
            for item in reversed(again):
                item.has_lost_its_process = True
                self._waiting.appendleft(item)
        if self._pace is None:
            self._opened.put(failure or EvaluatorFault("the first judge process ended while it started"))
            return
        for item in lost:
            if item not in again:
                item.work.finish(item.work.fault("the judge process ended twice while this was judged"))
        self._distribute()

    def _distribute(self) -> None:
        """Give work to the processes that have places, and start another if it is needed."""
        given: list[tuple[_Process, int, _Item]] = []
        dropped: list[tuple[Work, str]] = []
        with self._lock:
            while self._waiting and not self.is_closed:
                if not self._waiting[0].work.is_wanted():
                    dropped.append((self._waiting.popleft().work, ""))
                    continue
                member = min((m for m in self.members if m.is_ready), key=lambda m: m.load, default=None)
                if member is None or member.load >= self._most_load(member):
                    break
                item = self._waiting.popleft()
                number = member.add(item)
                self._owners[item.work] = (member, number)
                given.append((member, number, item))
            if self._waiting and not self.is_closed and not self._start_another():
                why = f"no judge process starts: {self._start_failure}"
                dropped += [(item.work, why) for item in self._waiting]
                self._waiting.clear()
        for member, number, item in given:
            member.give(number, item.work)
        for work, why in dropped:
            work.finish(work.fault(why) if why else None)

    def _most_load(self, member: _Process) -> float:
        """Return how much a process is given: once all have started, also for those that stand aside."""
        has_all = all(each.is_ready for each in self.members)
        return most_workers(member.size) / member.size if has_all else 1.0

    def _start_another(self) -> bool:
        """Start a process if there is more work than those that start will have places for.

        Returns:
            Whether any process runs, or may come to run.
        """
        starting = sum(member.size for member in self.members if member.is_started and not member.is_ready)
        rests = self._failed_starts >= _MOST_FAILED_STARTS and time.monotonic() < self._rests_until
        if len(self._waiting) > starting and not rests:
            member = next((member for member in self.members if not member.is_started), None)
            if member is not None:
                member.start(JudgeSetup(member.size, self._options, self._pace))
        return any(member.is_started for member in self.members)


class _Process:
    """One of the processes, as the judge sees it; started again if it is needed after it has ended."""

    def __init__(self, pool: Processes, size: int) -> None:
        self.size = size
        self.items: dict[int, _Item] = {}
        self.is_started = self.is_ready = False
        self.latest_counts = self.past_counts = Counts()
        self._pool = pool
        self._num_given = 0
        self._known: OrderedDict[int, int] = OrderedDict()
        self._giving = threading.Lock()
        self._channel: Channel | None = None
        self._thread: threading.Thread | None = None
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def load(self) -> float:
        """The share of its places that is taken."""
        return len(self.items) / self.size

    @property
    def counts(self) -> Counts:
        """What it and its predecessors have counted."""
        return sum_counts([self.past_counts, self.latest_counts])

    def start(self, setup: JudgeSetup) -> None:
        """Start it, in a thread that lives as long as it does: the kernel would end it with that thread."""
        self.is_started = True
        self._thread = threading.Thread(target=self._tend, args=(setup,), name="judge-process", daemon=True)
        self._thread.start()

    def add(self, item: _Item) -> int:
        """Note work that is its own from now on; return the number it goes by."""
        self._num_given += 1
        self.items[self._num_given] = item
        return self._num_given

    def give(self, number: int, work: Work) -> None:
        """Send it work, with the problem if it does not have that yet."""
        if work.problem is None:
            self.send(channel.RUN, number, work.invocation)
            return
        with self._giving:
            if self._channel is None:
                return
            problem = self._introduce(work.problem)
            self.send(channel.JUDGE, number, work.program, work.problem.number, problem)
            while len(self._known) > 1 and (
                len(self._known) > _MOST_PROBLEMS or sum(self._known.values()) > _MOST_PROBLEM_BYTES
            ):
                self.send(channel.FORGET, self._known.popitem(last=False)[0])
        if not work.is_wanted():
            self.send(channel.GIVE_UP, number)

    def _introduce(self, known: KnownProblem) -> Problem | None:
        """Return the problem, or None if it was sent before."""
        if known.number in self._known:
            self._known.move_to_end(known.number)
            return None
        self._known[known.number] = known.num_bytes
        return known.prepared.problem

    def send(self, *message: object) -> None:
        """Send it a message, if it runs."""
        if (opened := self._channel) is not None:
            opened.send(*message)

    def terminate(self) -> None:
        """Ask it to end at once."""
        if self.process is not None:
            self.process.terminate()

    def end(self, latest: float) -> None:
        """Wait for its end, and enforce it if that takes too long."""
        if self._thread is None:
            return
        self._thread.join(max(0.0, latest - time.monotonic()))
        if self._thread.is_alive() and self.process is not None:
            self.process.kill()
            self._thread.join(_CLOSE_SECONDS)

    def _tend(self, setup: JudgeSetup) -> None:
        """Start it, handle its messages, and wait for its end."""
        failure: Exception | None = None
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                self.process = _spawn(theirs.fileno(), *(file.fileno() for file in self._pool.lock_files))
        except OSError as error:
            ours.close()
            self._pool.note_end(self, EvaluatorFault(f"cannot start {sys.executable}: {error}"))
            return
        if self._pool.is_closed:
            self.process.kill()
        opened = Channel(ours.detach())
        with self._giving:
            self._known.clear()
            self._channel = opened
        opened.send(setup)
        try:
            while (message := opened.receive()) is not None:
                failure = self._take(*message) or failure
        finally:
            with self._giving:
                self._channel = None
            opened.close()
            self._see_end(self.process)
            self._pool.note_end(self, failure)

    def _see_end(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for the end of a process that has hung up, and enforce it if that takes too long."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_CLOSE_SECONDS)
        process.kill()
        process.wait()

    def _take(self, kind: int, *content: object) -> Exception | None:
        pool = self._pool
        match kind, content:
            case channel.DONE, (int(number), packed, Counts() as counts):
                pool.note_done(self, number, packed, counts)
            case channel.READY, _:
                self.is_ready = True
                if content:
                    pool.note_open(self, *content)  # type: ignore[arg-type]
                pool.note_ready()
            case channel.FAILED, (Exception() as error,):
                return error
        return None


def _spawn(*descriptors: int) -> subprocess.Popen[bytes]:
    """Start a judge process that imports what this process would, and is not there for a terminal's Ctrl-C."""
    path = json.dumps([entry or os.getcwd() for entry in sys.path])
    return subprocess.Popen(
        [sys.executable, "-P", "-c", _START, path, str(os.getpid()), *map(str, descriptors)],
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        process_group=0,
    )

"""A fleet of judges: each program gets exactly one answer, also if a judge is lost.

Programs wait in one queue. A backend is a judge process behind a pipe, a service behind HTTP or a
node of a Ray cluster. The fleet only schedules: which backend gets which program, what was lost,
what is late. A subclass is the transport: it reports when a backend is available, when an answer
has arrived and when a backend is lost, and sends programs to backends.

- Programs of one problem go to a backend before those of the next; each one that is sent moves its
  problem to the end.
- The next program goes to the least loaded backend, so all workers are busy before any backend gets
  spares.
- Programs of a lost backend go back to the front of the queue. Those that were lost more than once
  wait apart, and a backend has at most one of them: they may be what crashes backends.
"""

import heapq
import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from microcoder.judge.run.slots import most_workers
from microcoder.judge.run.workers import Answer, Work


class Queue:
    """Programs that wait for a backend."""

    def __init__(self) -> None:
        self._groups: OrderedDict[int, deque[Work]] = OrderedDict()
        self.suspects: deque[Work] = deque()
        """Programs that were lost more than once, apart from all others."""
        self._num_waiting = 0

    def __len__(self) -> int:
        return self._num_waiting + len(self.suspects)

    def add(self, item: Work) -> None:
        """Queue a program; a program whose backend was lost goes before all others."""
        if item.num_losses > 1:
            self.suspects.append(item)
            return
        group = self._groups.setdefault(item.group, deque())
        self._num_waiting += 1
        if item.num_losses:
            # To the front: somebody has waited for it the longest.
            group.appendleft(item)
            self._groups.move_to_end(item.group, last=False)
        else:
            group.append(item)

    def take(self, group: int) -> Work | None:
        """Remove and return the next program, of this group if possible.

        None if no program waits, or only `suspects` do.
        """
        if not self._groups:
            return None
        number = group if group in self._groups else next(iter(self._groups))
        waiting = self._groups[number]
        item = waiting.popleft()
        self._num_waiting -= 1
        if waiting:
            # To the end: programs of other problems come before its next one.
            self._groups.move_to_end(number)
        else:
            del self._groups[number]
        return item

    def clear(self) -> list[Work]:
        """Remove and return all waiting programs."""
        items = [*self.suspects, *itertools.chain.from_iterable(self._groups.values())]
        self.suspects.clear()
        self._groups.clear()
        self._num_waiting = 0
        return items


class Backend(ABC):
    """One judge of a fleet: a process, a service or a node."""

    def __init__(self) -> None:
        self.workers = 0
        """How many programs it judges at the same time; 0 while it is not available."""
        self.held: dict[int, Work] = {}
        """Programs that were sent to it and not answered yet, by number."""
        self.latest = 0
        """Number of the problem of the last program given to it."""

    @property
    def load(self) -> float:
        """Unanswered programs per worker."""
        return len(self.held) / self.workers

    @property
    def most(self) -> int:
        """How many programs the backend may hold.

        These are the running ones, and spares to begin when a running one pauses (`slots`) or ends.
        """
        return most_workers(self.workers)

    def next_batch_size(self, num_waiting: int, num_backends: int) -> int:
        """Return how many programs this backend should get next, 0 if it is full.

        It depends on how many programs wait, and for how many backends.
        """
        share = num_waiting
        if num_backends > 1:
            # Half of an even share, so that backends end together; one alone leaves nothing to
            # others.
            share = num_waiting // (2 * num_backends)
        is_full = len(self.held) >= min(self.most, self.workers + share)
        return 0 if is_full else 1

    def take(self, batch: Sequence[Work]) -> None:
        """Record programs as given to this backend."""
        for item in batch:
            self.held[item.number] = item
            self.latest = item.group

    @abstractmethod
    def send(self, batches: Sequence[Sequence[Work]]) -> None:
        """Send these batches, which `take` has recorded."""


BackendT = TypeVar("BackendT", bound=Backend)


class Fleet(ABC, Generic[BackendT]):
    """Backends and their queue; thread-safe. Nothing is sent or answered with the lock held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._queue: Queue = Queue()
        self._backends: dict[str, BackendT] = {}
        self._able: dict[BackendT, None] = {}
        """Backends that may take more: all but the full ones."""
        self._num_again = 0
        """How many programs were queued again after their backend was lost."""

    @abstractmethod
    def _wake(self) -> None:
        """Arrange for a call of `_hand_out` soon, in a thread that may send."""

    @abstractmethod
    def _find_end(
        self,
        backend: BackendT,
        item: Work,
        why: str,
    ) -> str:
        """Return why the program of a lost backend is given up; empty to queue it again."""

    def _put(self, items: Sequence[Work]) -> None:
        with self._lock:
            for item in items:
                self._queue.add(item)
        self._wake()

    def _open(self, backend: BackendT, workers: int) -> None:
        """Note that a backend is available, or has another number of workers."""
        with self._lock:
            backend.workers = workers
            self._able[backend] = None
        self._wake()

    def _hand_out(self) -> None:
        """Give programs to the backends that may take more, the least loaded first."""
        batches_of: dict[BackendT, list[list[Work]]] = {}
        dropped: list[Work] = []
        with self._lock:
            if not self._queue or not self._able:
                return
            # Of equal loads the one that was put first comes first; backends are not compared.
            number = itertools.count()
            able = [backend for backend in self._able if backend.workers]
            waiting = [(backend.load, next(number), backend) for backend in able]
            heapq.heapify(waiting)
            while waiting and self._queue:
                _, _, backend = heapq.heappop(waiting)
                batch = self._next_batch(backend, dropped)
                if batch:
                    backend.take(batch)
                    batches_of.setdefault(backend, []).append(batch)
                    heapq.heappush(waiting, (backend.load, next(number), backend))
                elif len(backend.held) >= backend.most:
                    self._able.pop(backend, None)
        # Outside of the lock: a transport may block, or come back here.
        for backend, batches in batches_of.items():
            backend.send(batches)
        for item in dropped:
            item.finish(None)

    def _next_batch(
        self,
        backend: BackendT,
        dropped: list[Work],
    ) -> list[Work]:
        """Take the next programs for a backend from the queue; add those unwanted to `dropped`."""
        size = backend.next_batch_size(len(self._queue), len(self._backends))
        batch: list[Work] = []
        while len(batch) < size:
            item = self._take_next(backend, batch)
            if item is None:
                break
            if not item.is_wanted():
                dropped.append(item)
                continue
            batch.append(item)
            if item.num_losses > 1:
                break
        return batch

    def _take_next(
        self,
        backend: BackendT,
        batch: Sequence[Work],
    ) -> Work | None:
        """Remove and return the next program for a backend's batch; None if there is none."""
        if batch:
            return self._queue.take(batch[-1].group)
        if self._queue.suspects and all(item.num_losses < 2 for item in backend.held.values()):
            # Only one at a time: it may be what crashes backends.
            return self._queue.suspects.popleft()
        return self._queue.take(backend.latest)

    def _land(
        self,
        backend: BackendT,
        number: int,
        answer: Answer,
    ) -> None:
        """Answer the program of this number; ignored if the backend no longer has it."""
        with self._lock:
            item = backend.held.pop(number, None)
            if item is None:
                return
            if item.num_losses:
                answer = self._note_losses(answer)
            self._able[backend] = None
        # It may take another program now.
        self._wake()
        item.finish(answer)

    def _note_losses(self, answer: Answer) -> Answer:
        """Return the answer for a program whose earlier backend was lost; some transports add a
        note."""
        return answer

    def _lose(
        self,
        backend: BackendT,
        why: str,
        items: Sequence[Work] | None = None,
        *,
        is_counted: bool = True,
    ) -> None:
        """Queue again the programs of a backend.

        Args:
            backend: the one that is lost, or has failed.
            why: in words.
            items: only these programs of it.
            is_counted: the loss counts against the programs, since they may have caused it.
        """
        ended: list[tuple[Work, Any]] = []
        with self._lock:
            lost = list(backend.held.values())
            if items is not None:
                lost = [item for item in items if item.number in backend.held]
            # In the order in which they were given: the first goes in front of all.
            for item in reversed(lost):
                del backend.held[item.number]
                end = ""
                if is_counted:
                    item.num_losses += 1
                    item.lost_since = item.lost_since or time.monotonic()
                    end = self._find_end(backend, item, why)
                if not item.is_wanted():
                    ended.append((item, None))
                elif end:
                    ended.append((item, item.fault(end)))
                else:
                    self._num_again += 1
                    self._queue.add(item)
            # One that only failed a request is still there.
            if backend.workers:
                self._able[backend] = None
        for item, answer in ended:
            item.finish(answer)
        self._wake()

    def _answer(
        self,
        answer: Callable[[Work], None],
        *backends: BackendT,
    ) -> None:
        """Call `answer` for each program that waits, and for those that these backends have.

        Nobody will judge them.
        """
        items: list[Work] = []
        with self._lock:
            for backend in backends:
                items += backend.held.values()
            items += self._queue.clear()
        for item in items:
            answer(item)

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
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

from microcoder.judge.core.errors import MicroCoderError
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

    def take(
        self,
        group: int,
        *,
        may_be_suspect: bool,
    ) -> Work | None:
        """Remove and return the next program; None if none waits.

        Args:
            group: the problem's number whose programs come first.
            may_be_suspect: one of `suspects` goes before all others; else they are left out.
        """
        if self.suspects and may_be_suspect:
            return self.suspects.popleft()
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
        others = itertools.chain.from_iterable(self._groups.values())
        items = [*self.suspects, *others]
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

    def may_take_more(self) -> bool:
        """Whether it is available, and not full."""
        return self.workers > 0 and len(self.held) < self.most

    def next_batch_size(self, num_waiting: int, num_backends: int) -> int:
        """Return how many programs this backend should get next, 0 if it is full.

        It depends on how many programs wait, and for how many backends.
        """
        share = num_waiting
        if num_backends > 1:
            # Half of an even share, so that backends end together; one alone leaves nothing to
            # others.
            share = num_waiting // (2 * num_backends)
        return 1 if len(self.held) < self.workers + share else 0

    def take(self, item: Work) -> None:
        """Record a program as given to this backend."""
        self.held[item.number] = item
        self.latest = item.group

    @abstractmethod
    def send(self, batch: Sequence[Work]) -> None:
        """Send programs that `take` has recorded."""


BackendT = TypeVar("BackendT", bound=Backend)


class Fleet(ABC, Generic[BackendT]):
    """Backends and their queue; thread-safe. Nothing is sent or answered with the lock held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._queue: Queue = Queue()
        self._backends: dict[str, BackendT] = {}
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
        backend.workers = workers
        self._wake()

    def _hand_out(self) -> None:
        """Give programs to the backends that may take more, the least loaded first."""
        batches: list[tuple[BackendT, list[Work]]] = []
        dropped: list[Work] = []
        with self._lock:
            if not self._queue:
                return
            # With their positions, so that backends of the same load are not compared.
            able: list[tuple[float, int, BackendT]] = []
            for position, backend in enumerate(self._backends.values()):
                if backend.may_take_more():
                    able.append((backend.load, position, backend))
            heapq.heapify(able)
            while able and self._queue:
                _, position, backend = heapq.heappop(able)
                batch = self._next_batch(backend, dropped)
                if batch:
                    batches.append((backend, batch))
                    if backend.may_take_more():
                        heapq.heappush(able, (backend.load, position, backend))
        # Outside of the lock: a transport may block, or come back here.
        for backend, batch in batches:
            backend.send(batch)
        for item in dropped:
            item.finish(None)

    def _next_batch(
        self,
        backend: BackendT,
        dropped: list[Work],
    ) -> list[Work]:
        """Give a backend the next programs of the queue; add those unwanted to `dropped`."""
        size = backend.next_batch_size(len(self._queue), len(self._backends))
        # Only one at a time: it may be what crashes backends.
        may_be_suspect = True
        if self._queue.suspects:
            may_be_suspect = all(item.num_losses < 2 for item in backend.held.values())
        batch: list[Work] = []
        while len(batch) < size:
            item = self._queue.take(
                backend.latest,
                may_be_suspect=may_be_suspect and not batch,
            )
            if item is None:
                break
            if not item.is_wanted():
                dropped.append(item)
                continue
            backend.take(item)
            batch.append(item)
            if item.num_losses > 1:
                break
        return batch

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
        for item, answer in ended:
            item.finish(answer)
        self._wake()

    def _give_all_up(self, why: str | MicroCoderError) -> None:
        """Answer all programs, also those that backends have: nobody will judge them.

        Args:
            why: an error, or the words of a fault.
        """
        with self._lock:
            items = self._queue.clear()
            for backend in self._backends.values():
                items += backend.held.values()
        for item in items:
            answer = item.fault(why) if isinstance(why, str) else why
            item.finish(answer)

"""A fleet of judges: programs wait in one queue, and each gets exactly one answer, also if a judge is lost.

A place is a judge process behind a pipe, a service behind HTTP or a node of a Ray cluster. The fleet only schedules:
which place gets which program, what was lost, what is late. A subclass is the transport: it reports when a place is
available, when an answer has arrived and when a place is lost, and sends programs to places.

- Programs of one problem go to a place before those of the next; each one that is sent moves its problem to the end.
- The next program goes to the least loaded place, so all workers are busy before any place gets spares.
- Programs of a lost place go back to the front of the queue. Those that were lost more than once wait apart, and a
  place has at most one of them: they may be what crashes places.
"""

import heapq
import itertools
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from microcoder.judge.run.turns import most_workers
from microcoder.judge.run.workers import Work


class Queue:
    """Programs that wait for a place."""

    def __init__(self) -> None:
        self._groups: OrderedDict[int, deque[Work]] = OrderedDict()
        self.suspects: deque[Work] = deque()
        """Programs that were lost more than once, apart from all others."""
        self._num_waiting = 0

    def __len__(self) -> int:
        return self._num_waiting + len(self.suspects)

    def add(self, item: Work) -> None:
        """Queue a program; one whose place was lost goes before all others."""
        if item.num_losses > 1:
            self.suspects.append(item)
            return
        group = self._groups.setdefault(item.group, deque())
        self._num_waiting += 1
        if item.num_losses:
            group.appendleft(item)
            self._groups.move_to_end(item.group, last=False)
        else:
            group.append(item)

    def take(self, group: int) -> Work | None:
        """Remove and return the next program, of this group if possible; None if only `suspects` wait, or none."""
        if not self._groups:
            return None
        number = group if group in self._groups else next(iter(self._groups))
        waiting = self._groups[number]
        item = waiting.popleft()
        self._num_waiting -= 1
        if waiting:
            self._groups.move_to_end(number)
        else:
            del self._groups[number]
        return item

    def clear(self) -> list[Work]:
        """Remove and return all waiting programs."""
        found = [*self.suspects, *itertools.chain.from_iterable(self._groups.values())]
        self.suspects.clear()
        self._groups.clear()
        self._num_waiting = 0
        return found


class Place(ABC):
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
        """How many programs the place may hold: those that run, and spares for when these pause (`turns`) or end."""
        return most_workers(self.workers)

    def find_room(self, num_waiting: int, num_places: int) -> int:
        """Return the size of the place's next batch, 0 for none, while so many programs wait for so many places."""
        # Half of an even share, so that places end together; one alone need leave nothing for others.
        share = num_waiting // (2 * num_places) if num_places > 1 else num_waiting
        return int(len(self.held) < min(self.most, self.workers + share))

    def take(self, batch: Sequence[Work]) -> None:
        """Record programs as given to this place."""
        for item in batch:
            self.held[item.number] = item
            self.latest = item.group

    @abstractmethod
    def send(self, batches: Sequence[Sequence[Work]]) -> None:
        """Send these batches, which `take` has recorded."""


PlaceT = TypeVar("PlaceT", bound=Place)


class Fleet(ABC, Generic[PlaceT]):
    """Places and their queue; thread-safe. Nothing is sent or answered with the lock held."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._queue: Queue = Queue()
        self._places: dict[str, PlaceT] = {}
        self._able: dict[PlaceT, None] = {}
        """Places that may have room: all but the full ones."""
        self._num_again = 0
        """How many programs were queued again after their place was lost."""

    @abstractmethod
    def _wake(self) -> None:
        """Arrange for a call of `_hand_out` soon, in a thread that may send."""

    @abstractmethod
    def _find_end(self, place: PlaceT, item: Work, why: str) -> str:
        """Return why the program of a lost place is given up; empty to queue it again."""

    def _put(self, items: Sequence[Work]) -> None:
        with self._lock:
            for item in items:
                self._queue.add(item)
        self._wake()

    def _open(self, place: PlaceT, workers: int) -> None:
        """Note that a place is available, or has another number of workers."""
        with self._lock:
            place.workers = workers
            self._able[place] = None
        self._wake()

    def _hand_out(self) -> None:
        """Give programs to the places that have room, the least loaded first."""
        given: dict[PlaceT, list[list[Work]]] = {}
        dropped: list[Work] = []
        with self._lock:
            if not self._queue or not self._able:
                return
            number = itertools.count()
            waiting = [(place.load, next(number), place) for place in self._able if place.workers]
            heapq.heapify(waiting)
            while waiting and self._queue:
                _, _, place = heapq.heappop(waiting)
                if batch := self._next_batch(place, dropped):
                    place.take(batch)
                    given.setdefault(place, []).append(batch)
                    heapq.heappush(waiting, (place.load, next(number), place))
                elif len(place.held) >= place.most:
                    self._able.pop(place, None)
        for place, batches in given.items():
            place.send(batches)
        for item in dropped:
            item.finish(None)

    def _next_batch(self, place: PlaceT, dropped: list[Work]) -> list[Work]:
        size = place.find_room(len(self._queue), len(self._places))
        batch: list[Work] = []
        while len(batch) < size:
            if (
                not batch
                and self._queue.suspects
                and all(item.num_losses < 2 for item in place.held.values())
            ):
                # Only one at a time: it may be what crashes places.
                item = self._queue.suspects.popleft()
            elif (item := self._queue.take(batch[-1].group if batch else place.latest)) is None:
                break
            if not item.is_wanted():
                dropped.append(item)
                continue
            batch.append(item)
            if item.num_losses > 1:
                break
        return batch

    def _land(self, place: PlaceT, number: int, answer: Any) -> None:
        """Answer the program of this number; ignored if the place no longer has it."""
        with self._lock:
            if (item := place.held.pop(number, None)) is None:
                return
            if item.num_losses:
                answer = self._note_losses(answer)
            self._able[place] = None
        self._wake()
        item.finish(answer)

    def _note_losses(self, answer: Any) -> Any:
        """Return an answer, marked by some transports, on a program that was first given to a place that is lost."""
        return answer

    def _lose(
        self,
        place: PlaceT,
        why: str,
        items: Sequence[Work] | None = None,
        *,
        is_counted: bool = True,
    ) -> None:
        """Queue again the programs of a place, or these items of it.

        `is_counted`: the loss counts against the programs, since they may have caused it.
        """
        ended: list[tuple[Work, Any]] = []
        with self._lock:
            lost = (
                list(place.held.values())
                if items is None
                else [i for i in items if i.number in place.held]
            )
            # In the order in which they were given: the first goes in front of all.
            for item in reversed(lost):
                del place.held[item.number]
                if is_counted:
                    item.num_losses += 1
                    item.lost_since = item.lost_since or time.monotonic()
                if not item.is_wanted():
                    ended.append((item, None))
                elif is_counted and (end := self._find_end(place, item, why)):
                    ended.append((item, item.fault(end)))
                else:
                    self._num_again += 1
                    self._queue.add(item)
            if place.workers:
                self._able[place] = None
        for item, answer in ended:
            item.finish(answer)
        self._wake()

    def _answer(self, answer: Callable[[Work], None], *places: PlaceT) -> None:
        """Call `answer` for each program that waits, or that these places have: nobody will judge them."""
        with self._lock:
            items = [item for place in places for item in place.held.values()] + self._queue.clear()
        for item in items:
            answer(item)

"""What a judge and its processes say to each other, over one socket each.

Both ends are ours: sandboxes have no part of it. A message is a tuple, its kind first:

| from the judge                                         | from a process                                       |
|--------------------------------------------------------|------------------------------------------------------|
| `JudgeSetup`, once                                     | READY isolation, time scale, pace; or FAILED error   |
| JUDGE number, program, problem number, problem or None | DONE number, packed answer or None, counts           |
| RUN number, invocation                                 |                                                      |
| GIVE_UP number                                         |                                                      |
| FORGET problem number                                  |                                                      |
"""

from __future__ import annotations

import pickle
import threading
from dataclasses import dataclass, fields
from multiprocessing.connection import Connection
from operator import attrgetter
from typing import Any

from microcoder.judge.core.types import TestResult, Verdict
from microcoder.judge.run.executions import Execution
from microcoder.judge.run.options import JudgeOptions

READY, FAILED, DONE = range(3)
JUDGE, RUN, GIVE_UP, FORGET = range(4)

_of_test = attrgetter(*(field.name for field in fields(TestResult)))
_of_verdict = attrgetter(*(field.name for field in fields(Verdict)))
_TESTS_AT = [field.name for field in fields(Verdict)].index("tests")


@dataclass(frozen=True, slots=True)
class JudgeSetup:
    """The first message to a judge process."""

    num_workers: int
    options: JudgeOptions
    pace: dict[str, float] | None
    """How fast this machine runs; None to find out."""


class Channel:
    """One end of a socket; any thread may send, one receives."""

    def __init__(self, descriptor: int) -> None:
        self._connection = Connection(descriptor)
        self._lock = threading.Lock()

    def send(self, *message: object) -> None:
        """Send a message; if the other side is gone, the receiving thread notices."""
        packed = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            try:
                self._connection.send_bytes(packed)
            except OSError:
                return

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


def pack_answer(answer: Verdict | Execution | None) -> object:
    """Return an answer in a form that is a few times quicker to send."""
    if not isinstance(answer, Verdict):
        return answer
    values = list(_of_verdict(answer))
    values[_TESTS_AT] = [_of_test(test) for test in answer.tests]
    return values


def unpack_answer(packed: Any) -> Verdict | Execution | None:
    """Return the answer."""
    if packed is None or isinstance(packed, Execution):
        return packed
    packed[_TESTS_AT] = tuple(TestResult(*test) for test in packed[_TESTS_AT])
    return Verdict(*packed)

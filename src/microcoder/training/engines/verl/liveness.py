"""Whether the processes that a run waits for are alive: nobody tells a poller of TransferQueue that they died."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import ray

EVERY_SECONDS = 10.0


class Liveness:
    """Asks Ray actors now and then for a sign of life; a busy one may take its time, a dead one answers at once."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = list(actors)
        self._asked: list[Any] = []
        self._last = time.monotonic()

    def check(self) -> None:
        """Ask, at most every few seconds, and read what was answered.

        Raises:
            ray.exceptions.RayActorError: an actor is dead.
        """
        if self._asked:
            answered, self._asked = ray.wait(self._asked, num_returns=len(self._asked), timeout=0)
            ray.get(answered)
        elif time.monotonic() - self._last > EVERY_SECONDS:
            self._asked = [actor.__ray_ready__.remote() for actor in self._actors]
            self._last = time.monotonic()

"""Ctrl-C: the first stops a run after the current step, saved; the second stops it at once."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from microcoder.training.observer import Observer


class Stoppable(Protocol):
    """A trainer that checks between steps whether it should stop."""

    @property
    def stop_requested(self) -> bool:
        """Whether a stop was requested."""
        ...

    @stop_requested.setter
    def stop_requested(self, value: bool) -> None: ...


@contextmanager
def stop_between_steps(trainer: Stoppable, observer: Observer) -> Iterator[None]:
    """Turn the first Ctrl-C into a request, within the body."""

    def request(signum: int, frame: FrameType | None) -> None:
        if trainer.stop_requested:
            raise KeyboardInterrupt
        trainer.stop_requested = True
        observer.note("stopping after this step; press Ctrl-C again to stop at once")

    before = signal.signal(signal.SIGINT, request)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

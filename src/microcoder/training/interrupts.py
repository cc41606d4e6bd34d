"""Ctrl-C: the first stops a run after the current step, saved; the second stops it at once."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from microcoder.training.observer import Observer


@contextmanager
def stop_between_steps(ask: Callable[[], bool], observer: Observer) -> Iterator[None]:
    """Turn the first Ctrl-C into a request, within the body.

    Args:
        ask: asks the trainer to stop after its step; returns False if it was asked before.
        observer: hears of it.
    """

    def request(signum: int, frame: FrameType | None) -> None:
        if not ask():
            raise KeyboardInterrupt
        observer.note("stopping after this step; press Ctrl-C again to stop at once")

    before = signal.signal(signal.SIGINT, request)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

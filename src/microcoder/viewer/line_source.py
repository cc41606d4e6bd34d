"""What sources made of JSON lines share: light values by line, an index when lines were added."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from microcoder.viewer.index import FLAGS, FLOATS, INTEGERS, UNKNOWN, WORDS, Columns, Index, IndexBuilder
from microcoder.viewer.sources import Row

_SECONDS_BETWEEN_LOOKS = 1.0


class LineSource:
    """A run whose rollouts are lines; a subclass says which files, and how a line is read."""

    split: str
    """The one split of such a run."""

    def __init__(self) -> None:
        self._lights: list[Row] = []
        self._index = IndexBuilder().build()
        self._looked = -_SECONDS_BETWEEN_LOOKS
        self._lock = threading.Lock()

    def index(self) -> Index:
        """Return the light columns, lines added since among them."""
        with self._lock:
            if time.monotonic() - self._looked >= _SECONDS_BETWEEN_LOOKS:
                if self._take_lines():
                    self._index = _build(self._lights)
                self._looked = time.monotonic()
            return self._index

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield every rollout's texts and tests."""
        for place in range(len(index)):
            yield self.read(index.record(place))

    def read(self, record: Row) -> Row:
        """Return a rollout's texts and tests."""
        raise NotImplementedError

    def _take_lines(self) -> bool:
        """Read what was added to the files into `_lights`; return whether anything was."""
        raise NotImplementedError


def _build(lights: list[Row]) -> Index:
    builder = IndexBuilder()
    columns: dict[str, Any] = {name: builder.encode(name, [row.get(name) for row in lights]) for name in WORDS}
    for names, unknown, kind in (
        (INTEGERS, UNKNOWN, np.int32),
        (FLOATS, float("nan"), np.float64),
        (FLAGS, False, np.bool_),
    ):
        for name in names:
            values = [unknown if row.get(name) is None else row[name] for row in lights]
            columns[name] = np.array(values, dtype=kind)
    taken: Columns = columns
    builder.put("lines", taken)
    return builder.build()

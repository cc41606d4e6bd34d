"""What sources made of JSON lines share: light values by line, an index when lines were added."""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterator

import pyarrow as pa

from microcoder.types import Outcome
from microcoder.viewer.index import Index
from microcoder.viewer.search import IndexPart, Texts
from microcoder.viewer.sources import Row, RunSource

_ROWS_A_PART = 256


class LineSource(RunSource):
    """A run whose rollouts are lines; a subclass says which files, and how a line is read."""

    split: str
    """The one split of such a run."""

    def __init__(self) -> None:
        super().__init__()
        self._lights: list[Row] = []

    def parts(self, index: Index) -> list[IndexPart]:
        """Return the texts of all rollouts, some lines a part."""
        starts = range(0, len(index), _ROWS_A_PART)
        return [
            IndexPart(
                (id(self), start),
                index.version,
                min(_ROWS_A_PART, len(index) - start),
                functools.partial(self._read_texts, index, start),
            )
            for start in starts
        ]

    def _read_texts(self, index: Index, start: int) -> Texts:
        rows = [self.read(index.record(place)) for place in range(start, min(start + _ROWS_A_PART, len(index)))]
        errors = [
            "\n".join(f"{test.get('detail') or ''}\n{test.get('output') or ''}" for test in row.get("tests") or ())
            for row in rows
        ]
        named = {"prompt": "prompt", "response": "completion", "program": "program"}
        texts = {field: [row.get(name) for row in rows] for field, name in named.items()} | {"errors": errors}
        return {
            field: pa.array(
                [None if text is None else text.encode("utf-8", "replace").decode() for text in column], pa.string()
            )
            for field, column in texts.items()
        }

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield every rollout's texts and tests."""
        for place in range(len(index)):
            yield self.read(index.record(place))

    def _refresh(self) -> bool:
        if is_changed := self._take_lines():
            self._builder.put_rows("lines", self._lights)
        return is_changed

    @abstractmethod
    def _take_lines(self) -> bool:
        """Read what was added to the files into `_lights`; return whether anything was."""


def light_verdict(row: Row) -> Row:
    """Return the light values of a line that holds a verdict."""
    outcome = row.get("verdict")
    reward = None if outcome == Outcome.SANDBOX_FAULT else float(outcome == Outcome.ACCEPTED)
    return {"reward": reward, **{name: row.get(name) for name in ("verdict", "tests_passed", "tests_total")}}

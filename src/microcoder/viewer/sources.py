"""One run as the viewer sees it, whether a training run, an evaluation, a corpus or a file of verdicts."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.files import read_json
from microcoder.viewer.index import Index, IndexBuilder
from microcoder.viewer.problem_tests import ProblemTests
from microcoder.viewer.search import IndexPart

Row = dict[str, Any]
_SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True, slots=True)
class RunInfo:
    """What is known of a run as a whole, as plain JSON values."""

    state: str
    """Such as `finished` or `24 steps so far`."""
    facts: Sequence[tuple[str, str]] = ()
    notices: Sequence[str] = ()
    """What a reader must know before trusting what is shown."""
    charts: Sequence[Row] = ()
    tables: Sequence[Row] = ()
    """Each a title, column names and rows of texts."""


def tabulate_counts(title: str, words: str, counted: str, counts: Mapping[str, int]) -> Row:
    """Return a table of how many there are of each word, the most frequent first."""
    rows = [[word, str(count)] for word, count in sorted(counts.items(), key=lambda item: -item[1])]
    return {"title": title, "columns": [words, counted], "rows": rows}


class RunSource(ABC):
    """One opened run; its files, which may grow, are looked at again at most once a second."""

    kind: str
    name: str
    tests: ProblemTests

    def __init__(self) -> None:
        self._builder = IndexBuilder()
        self._index = self._builder.build()
        self._looked = -_SECONDS_BETWEEN_LOOKS
        self._lock = threading.Lock()

    def index(self) -> Index:
        """Return the light columns of all rollouts; files that were added to or rewound are read again."""
        with self._lock:
            if time.monotonic() - self._looked >= _SECONDS_BETWEEN_LOOKS:
                if self._refresh():
                    self._index = self._builder.build()
                self._looked = time.monotonic()
            return self._index

    def stamp(self) -> str:
        """Return what changes whenever `index` or `about` would return something else."""
        return str(self.index().version)

    @abstractmethod
    def _refresh(self) -> bool:
        """Put what is new into the builder; return whether anything was."""

    @abstractmethod
    def parts(self, index: Index) -> list[IndexPart]:
        """Return the texts of all rollouts, in the order of the index."""

    @abstractmethod
    def read(self, record: Row) -> Row:
        """Return the texts and tests of a rollout (see `Index.record`): what the files hold of it.

        Raises:
            DataError: the file is gone or damaged.
        """

    @abstractmethod
    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield what `read` returns for every rollout, in the order of the index."""

    @abstractmethod
    def about(self) -> RunInfo:
        """Return what is known of the run as a whole."""


def name_run(root: Path, manifest: Row) -> str:
    """Return a run's own name; of a study's run, the study, level and seed, as `runs.json` beside it has them."""
    folder = root.resolve()
    beside = folder.parent / "runs.json"
    labels = read_json(beside, what="list of a study's runs").get(folder.name) if beside.is_file() else None
    return str(labels[0] if labels else manifest.get("name") or folder.name)

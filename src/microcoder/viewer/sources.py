"""What can be opened: a training run, an evaluation, a file of verdicts. The rest of the viewer sees one kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from microcoder.errors import DataError
from microcoder.files import read_json
from microcoder.viewer.index import Index
from microcoder.viewer.problem_tests import ProblemTests

Row = dict[str, Any]


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


class RunSource(Protocol):
    """One opened run; every call looks for what the files have gained since."""

    name: str
    kind: str
    tests: ProblemTests

    def index(self) -> Index:
        """Return the light columns of all rollouts."""
        ...

    def read(self, record: Row) -> Row:
        """Return the texts and tests of a rollout (see `Index.record`): what the files hold of it.

        Raises:
            DataError: the file is gone or damaged.
        """
        ...

    def read_all(self, index: Index) -> Iterator[Row]:
        """Yield what `read` returns for every rollout, in the order of the index."""
        ...

    def about(self) -> RunInfo:
        """Return what is known of the run as a whole."""
        ...


@dataclass(frozen=True)
class Collection:
    """The opened runs by the key that links use."""

    sources: dict[str, RunSource] = field(default_factory=dict)

    def __getitem__(self, key: str) -> RunSource:
        """Return a run.

        Raises:
            DataError: no such run is open.
        """
        try:
            return self.sources[key]
        except KeyError:
            raise DataError(f"run={key!r} is not open; open are {', '.join(self.sources)}") from None


def open_collection(paths: Sequence[Path], *, problem_files: Sequence[Path] = ()) -> Collection:
    """Open runs; problem files say where tests' inputs and expected outputs are, when a run does not.

    Raises:
        DataError: a path is none of the things that can be opened.
    """
    sources: dict[str, RunSource] = {}
    for path in paths:
        source = _open(path, problem_files)
        base = re.sub(r"[^\w.+-]+", "-", source.name, flags=re.ASCII).strip("-.") or "run"
        key, number = base, 1
        while key in sources:
            number += 1
            key = f"{base}-{number}"
        sources[key] = source
    return Collection(sources)


def _open(path: Path, problem_files: Sequence[Path]) -> RunSource:
    from microcoder.viewer.evaluation_source import EvaluationSource
    from microcoder.viewer.training_source import TrainingSource
    from microcoder.viewer.verdict_source import VerdictSource

    if path.is_file() or path.with_name(path.name + ".partial").is_file():
        return VerdictSource(path, problem_files)
    if not (path / "manifest.json").is_file():
        raise DataError(
            f"{path} is no run: it has no manifest.json; name a folder that `microcoder train` or `microcoder eval` "
            "wrote, or a file of verdicts that `microcoder judge` wrote"
        )
    manifest = read_json(path / "manifest.json", what="manifest")
    kind = EvaluationSource if manifest.get("kind") == "evaluation" else TrainingSource
    return kind(path, manifest, problem_files)

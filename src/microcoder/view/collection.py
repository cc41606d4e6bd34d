"""The runs that a viewer has open, by the key that links use."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json
from microcoder.lab.studies.history import read_history
from microcoder.lab.studies.report import describe_report
from microcoder.view.files import ProblemTests, tests_of_files
from microcoder.view.sources import CorpusSource, EvaluationSource, RunSource, VerdictSource
from microcoder.view.training_source import TrainingSource


@dataclass(frozen=True)
class Collection:
    """The opened runs by the key that links use."""

    sources: dict[str, RunSource] = field(default_factory=dict)

    def __getitem__(self, key: str) -> RunSource:
        """Return a run."""
        try:
            return self.sources[key]
        except KeyError:
            raise DataError(f"run={key!r} is not open; open are {', '.join(self.sources)}") from None

    def overview(self, key: str) -> dict[str, Any]:
        """Return what the report of a training run says, compared with the other open runs on the same problems."""
        source = self[key]
        if not isinstance(source, TrainingSource):
            raise DataError(f"run={key!r} is not a training run, so there is no report on it")
        runs = [run for run in self.sources.values() if isinstance(run, TrainingSource) and run is not source]
        return describe_report(read_history(source.root), [run.root for run in runs if run.asked == source.asked])


def open_collection(paths: Sequence[Path], *, problem_files: Sequence[Path] = ()) -> Collection:
    """Open runs; problem files say where tests' inputs and expected outputs are, when a run does not.

    Raises:
        DataError: a path is none of the things that can be opened, or a problem file is missing or holds no problem.
    """
    tests = tests_of_files(problem_files) if problem_files else None
    sources: dict[str, RunSource] = {}
    for path in paths:
        source = _open(path, tests)
        base = re.sub(r"[^\w.+-]+", "-", source.name, flags=re.ASCII).strip("-.") or "run"
        key, number = base, 1
        while key in sources:
            number += 1
            key = f"{base}-{number}"
        sources[key] = source
    return Collection(sources)


def _open(path: Path, tests: ProblemTests | None) -> RunSource:
    if path.is_file():
        return VerdictSource(path, tests)
    if not (path / "manifest.json").is_file():
        raise DataError(
            f"{path} is not a run: it has no manifest.json; name a folder of `microcoder train`, `microcoder eval` or "
            "`microcoder data build`, or a file of verdicts that `microcoder judge` wrote"
        )
    if any(path.glob("problems-*.parquet")):
        return CorpusSource(path)
    manifest = read_json(path / "manifest.json", what="manifest")
    kind = EvaluationSource if manifest.get("kind") == "evaluation" else TrainingSource
    return kind(path, manifest, tests)

"""The opened runs of a viewer, by the keys that its links use."""

import re
from collections.abc import Sequence
from pathlib import Path

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import read_json
from microcoder.view.files import ProblemTests, tests_of_files
from microcoder.view.index import RunSource
from microcoder.view.notes import Notes
from microcoder.view.sources import CorpusSource, EvaluationSource, VerdictSource
from microcoder.view.training_source import TrainingSource


class Collection(dict[str, RunSource]):
    """The opened runs by the key that links use; DataError for another key."""

    def __missing__(self, key: str) -> RunSource:
        raise DataError(f"run={key!r} is not open; open are {', '.join(self)}")


def open_collection(paths: Sequence[Path], *, problem_files: Sequence[Path] = ()) -> Collection:
    """Open runs.

    Args:
        paths: of the runs.
        problem_files: say where tests' inputs and expected outputs are, when a run does not.

    Raises:
        DataError: a path is no run, corpus or file of verdicts, or a problem file is missing or
            holds no problem.
    """
    tests = tests_of_files(problem_files) if problem_files else None
    collection = Collection()
    for path in paths:
        source = _open(path, tests)
        if path.is_dir():
            source.notes = Notes(path)
        # Keys are in addresses and in names of folders.
        base = re.sub(r"[^\w.+-]+", "-", source.name, flags=re.ASCII)
        base = base.strip("-.") or "run"
        # Runs of several folders may have one name, and links must tell them apart.
        key = base
        number = 1
        while key in collection:
            number += 1
            key = f"{base}-{number}"
        collection[key] = source
    return collection


def find_newest_run(folder: Path) -> Path:
    """Return the run of a folder of runs that was written to last.

    Raises:
        DataError: the folder holds no run.
    """
    latest: dict[Path, float] = {}
    for manifest in folder.glob("*/manifest.json"):
        # A run that goes writes its metrics, and its manifest at the start alone.
        metrics = manifest.with_name("metrics.jsonl")
        times = [path.stat().st_mtime for path in (manifest, metrics) if path.exists()]
        latest[manifest.parent] = max(times)
    if not latest:
        raise DataError(
            f"no run is named, and {folder} holds none; type: microcoder view RUN [RUN...], or "
            "make demo for a first run"
        )
    return max(latest, key=lambda run: latest[run])


def _open(path: Path, tests: ProblemTests | None) -> RunSource:
    if path.is_file():
        return VerdictSource(path, tests)
    if not (path / "manifest.json").is_file():
        raise DataError(
            f"{path} is not a run: it has no manifest.json; name a folder of `microcoder train`, "
            "`microcoder eval` or `microcoder data build`, or a file of verdicts that `microcoder "
            "judge` wrote"
        )
    if any(path.glob("problems-*.parquet")):
        return CorpusSource(path)
    manifest = read_json(path / "manifest.json", what="manifest")
    if manifest.get("kind") == "evaluation":
        return EvaluationSource(path, manifest, tests)
    return TrainingSource(path, manifest, tests)

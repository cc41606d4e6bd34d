"""What a recipe needs before it can start: model folder and problem files; and their sizes.

Nothing is fetched, and of a benchmark no test is read: a release has gigabytes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from microcoder.dataset import read_problems
from microcoder.dataset.benchmarks import is_livecodebench, read_livecodebench
from microcoder.dataset.published import check_format
from microcoder.errors import DataError
from microcoder.training.checkpoints import check_model_folder, model_folder
from microcoder.training.config import TrainConfig
from microcoder.training.model_config import HuggingFaceModel
from microcoder.training.problems_config import HubProblems, ProblemFiles


def find_missing(config: TrainConfig) -> list[str]:
    """Return what is missing or unusable, one sentence each with what to type; the Hub is not queried."""
    faults = []
    if isinstance(config.model, HuggingFaceModel) and (folder := model_folder(config.model.path)) is not None:
        faults += _fault_of(lambda: check_model_folder(folder))
    problems = config.problems
    if isinstance(problems, HubProblems):
        faults += _fault_of(lambda: check_format(problems.format, is_trained_on=True))
        if model_folder(problems.id) is not None and not Path(problems.id).expanduser().is_dir():
            faults.append(f"problems.id {problems.id} is not a folder; use a folder, or owner/name on the Hub")
    files = {
        "problems.train": problems.train if isinstance(problems, ProblemFiles) else None,
        "problems.heldout": problems.heldout if isinstance(problems, ProblemFiles | HubProblems) else None,
    }
    faults += [
        f"{key} {path} does not exist; check the path, or pass --{key} FILE"
        for key, path in files.items()
        if path is not None and not path.exists()
    ]
    return faults


@dataclass(frozen=True, slots=True)
class ProblemCounts:
    """What is known of a problem file without judging anything."""

    num_problems: int
    longest_statement: int
    """In characters."""
    tests_per_problem: float | None
    """None of a benchmark."""


@cache
def count_problems(path: Path) -> ProblemCounts | None:
    """Return the counts of a problem file, a finished corpus or LiveCodeBench; None if it is not here yet.

    Raises:
        DataError: it is broken.
    """
    if not path.exists():
        return None
    if is_livecodebench(path):
        lengths = [len(question.statement) for question in read_livecodebench(path)]
        return ProblemCounts(len(lengths), max(lengths, default=0), None)
    problems = read_problems(path)
    num_tests = sum(len(problem.tests) for problem in problems)
    longest = max((len(problem.statement) for problem in problems), default=0)
    return ProblemCounts(len(problems), longest, num_tests / max(1, len(problems)))


def _fault_of(check: Callable[[], None]) -> list[str]:
    try:
        check()
    except DataError as error:
        return [str(error)]
    return []

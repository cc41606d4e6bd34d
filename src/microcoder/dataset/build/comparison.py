"""The step that compares problems with benchmarks' by what their programs compute."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from pydantic import Field

from microcoder.dataset.behaviour import BehaviourSettings, ProgramRunner, find_behaviour, index_behaviour
from microcoder.dataset.build.config import SourceSettings
from microcoder.dataset.build.judging import JudgingStep
from microcoder.dataset.build.works import read_benchmark_problems
from microcoder.dataset.pipeline import Row
from microcoder.dataset.pipeline.steps import Work
from microcoder.dataset.rejections import process_row, reject
from microcoder.formats.candidates import Candidate

_HITS_SHOWN = 3


class CompareStep(JudgingStep):
    """What the compare step needs."""

    behaviour: BehaviourSettings
    benchmarks: tuple[SourceSettings, ...] = Field(exclude=True)
    """Where they lie; `benchmarks_digest` says what they hold."""
    benchmarks_digest: str
    memory: Path = Field(exclude=True)
    """Where outputs are kept; it decides nothing."""


@contextmanager
def open_compare(settings: CompareStep) -> Iterator[Work]:
    """Turn away what does the same as a problem of a benchmark."""
    index = index_behaviour(read_benchmark_problems(settings.benchmarks))
    # A file of SQLite is for one machine; another one runs its own.
    store = settings.memory / f"outputs-{platform.node()}.sqlite"
    with (
        settings.open_judge() as judge,
        closing(ProgramRunner(judge, store)) as runner,
        ThreadPoolExecutor(judge.workers) as threads,
    ):

        def compare(candidate: Candidate) -> Row:
            hits = find_behaviour(candidate, index, runner, settings.behaviour)
            if not hits:
                return candidate
            shown = "; ".join(f"{hit.problem_id} by {hit.by} ({hit.detail})" for hit in hits[:_HITS_SHOWN])
            return reject(candidate, "filter", "contaminated", shown)

        def work(candidates: Sequence[Candidate]) -> Iterable[Row]:
            return threads.map(lambda one: process_row(one, "filter", compare), candidates)

        yield work

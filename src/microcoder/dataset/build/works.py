"""What each step of a build does, set up once in each worker; verification and attempts are in `verification`."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import cache
from itertools import starmap
from typing import Any

from microcoder.completions import Endpoint
from microcoder.config import Config
from microcoder.dataset.behaviour import BehaviourSettings, ProgramRunner, find_behaviour, index_behaviour
from microcoder.dataset.build.config import DifficultySettings, SourceSettings
from microcoder.dataset.build.inputs import open_settings, read_all, read_place
from microcoder.dataset.build.resources import Resources
from microcoder.dataset.collect import collect_row, collect_shard
from microcoder.dataset.difficulty.predictor import predict_difficulty
from microcoder.dataset.difficulty.scoring import score_difficulty
from microcoder.dataset.filter import ContaminationIndex, FilterSettings, build_index, filter_row
from microcoder.dataset.filter.fingerprints import LONGEST_EXAMPLE
from microcoder.dataset.generation import GenerateSettings, Judges, generate
from microcoder.dataset.pipeline.steps import Row, Work
from microcoder.dataset.process import ProcessSettings, process
from microcoder.dataset.rejections import process_row, reject
from microcoder.dataset.sources import Source, read_shard
from microcoder.errors import DataError
from microcoder.formats.candidates import Candidate, Rejection, Stage

_HITS_SHOWN = 3


class CollectSettings(Config):
    """Nothing: a shard says itself how it is read."""


@contextmanager
def open_collect(settings: CollectSettings) -> Iterator[Callable[[Mapping[str, Any]], Iterable[Row]]]:
    """Read shards of raw rows."""

    @cache
    def find(source: str) -> Source:
        return open_settings(SourceSettings.model_validate_json(source))

    def work(described: Mapping[str, Any]) -> Iterable[Row]:
        source, shard = read_place(described["place"])
        return collect_shard(find(source.model_dump_json()), shard)

    yield work


@contextmanager
def open_process(settings: ProcessSettings, resources: Resources) -> Iterator[Work]:
    """Clean, lay out, identify, translate."""
    with ExitStack() as opened:
        endpoint = resources.open_endpoint(settings.translation.endpoint, opened)
        yield lambda candidates: _map("process", lambda one: process(one, settings, endpoint), candidates, endpoint)


@contextmanager
def open_filter(settings: FilterSettings, resources: Resources) -> Iterator[Work]:
    """Apply the rules, the benchmarks' index and, where there is one, the judging model to each row."""
    with ExitStack() as opened:
        endpoint = resources.open_endpoint(settings.judge, opened)
        index = read_benchmarks(resources.benchmarks, settings) if resources.benchmarks else None
        yield lambda candidates: _map(
            "filter", lambda one: filter_row(one, settings, index, endpoint), candidates, endpoint
        )


@contextmanager
def open_predict(settings: DifficultySettings, resources: Resources) -> Iterator[Work]:
    """Say how hard each problem is."""
    with ExitStack() as opened:
        endpoint = resources.open_endpoint(settings.endpoint if settings.predictor == "model" else None, opened)

        def predict(one: Candidate) -> Candidate:
            return predict_difficulty(one) if endpoint is None else score_difficulty(one, endpoint, settings.scoring)

        yield lambda candidates: _map("filter", predict, candidates, endpoint)


@contextmanager
def open_compare(settings: BehaviourSettings, resources: Resources) -> Iterator[Work]:
    """Reject what does the same as a problem of a benchmark."""
    index = index_behaviour(read_benchmark_problems(resources.benchmarks))
    # A file of SQLite is for one machine; another one runs its own.
    store = resources.work / "comparison" / f"outputs-{platform.node()}.sqlite"
    with (
        resources.open_judge() as judge,
        closing(ProgramRunner(judge, store)) as runner,
        ThreadPoolExecutor(judge.workers) as threads,
    ):

        def compare(candidate: Candidate) -> Row:
            hits = find_behaviour(candidate, index, runner, settings)
            if not hits:
                return candidate
            shown = "; ".join(f"{hit.problem_id} by {hit.by} ({hit.detail})" for hit in hits[:_HITS_SHOWN])
            return reject(candidate, "filter", "contaminated", shown)

        yield lambda candidates: threads.map(lambda one: process_row(one, "filter", compare), candidates)


@contextmanager
def open_generate(settings: GenerateSettings, resources: Resources) -> Iterator[Work]:
    """Make tests for problems that have few."""
    with ExitStack() as opened:
        endpoint = resources.open_endpoint(settings.endpoint, opened)

        @cache
        def open_judges() -> Judges:
            # A shard whose problems all have tests enough starts no sandbox.
            thorough = resources.open_judge(stop="first_limit", cache_size=0, batch_tests=True)
            brief = resources.open_judge(stop="first_failure", cache_size=0, batch_tests=True)
            return Judges(opened.enter_context(thorough), opened.enter_context(brief))

        def work(candidates: Collection[Candidate]) -> Iterable[Row]:
            # One by one, so that progress is shown by rows.
            for one in candidates:
                yield process_row(one, "generate", lambda one: generate(one, open_judges, settings, endpoint))

        yield work


def read_benchmarks(sources: Sequence[SourceSettings], settings: FilterSettings) -> ContaminationIndex:
    """Index the problems of benchmarks; raises like `read_benchmark_problems`."""
    return build_index(read_benchmark_problems(sources), settings.contamination)


def read_benchmark_problems(sources: Sequence[SourceSettings]) -> list[Candidate]:
    """Return the problems of benchmarks, those that could not be judged too.

    Raises:
        DataError: no row of a benchmark could be read, so nothing would be kept out.
    """
    problems: list[Candidate] = []
    for benchmark in sources:
        num_rows, num_before, first = 0, len(problems), ""
        raw_rows = ((source, raw) for source, shard in read_all([benchmark]) for raw in read_shard(source, shard))
        for row in starmap(collect_row, raw_rows):
            num_rows += 1
            if isinstance(row, Rejection):
                first = first or f"; the first: {row.reason}, {row.detail}"
            if (problem := row if isinstance(row, Candidate) else row.candidate) is not None:
                problems.append(_without_long_tests(problem))
        if len(problems) == num_before:
            raise DataError(
                f"benchmark {benchmark.prefix!r} ({benchmark.path}): none of {num_rows} rows is of the format "
                f"{benchmark.format!r}{first}; check its path, inside and format (microcoder data formats)"
            )
    return problems


def _without_long_tests(problem: Candidate) -> Candidate:
    """Leave out tests that no comparison reads: of a benchmark's bytes nearly all."""
    short = [max(len(test.input), len(test.output)) <= LONGEST_EXAMPLE for test in problem.tests]
    if all(short):
        return problem
    tests = tuple(test for test, is_short in zip(problem.tests, short, strict=True) if is_short)
    return problem.model_copy(update={"tests": tests, "groups": (), "origins": ()})


def _map(
    stage: Stage, work: Callable[[Candidate], Row], candidates: Iterable[Candidate], endpoint: Endpoint | None
) -> Iterator[Row]:
    """Take candidates one after the other; many at the same time where a model is waited for."""

    # In a thread of its own, however deep the caller stands, the same rows are nested too deeply.
    with ThreadPoolExecutor(endpoint.settings.concurrency if endpoint else 1) as threads:
        yield from threads.map(lambda one: process_row(one, stage, work), candidates)

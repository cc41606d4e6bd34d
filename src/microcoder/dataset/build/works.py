"""What each step of a build does, set up once in each worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import cache
from itertools import starmap
from pathlib import Path
from typing import Any

from pydantic import Field

from microcoder.config import Config
from microcoder.dataset.build.config import SourceSettings
from microcoder.dataset.build.inputs import open_settings, read_all, read_place
from microcoder.dataset.collect import collect_row, collect_shard
from microcoder.dataset.difficulty import ScoringSettings, predict_difficulty, score_difficulty
from microcoder.dataset.endpoint import Endpoint, EndpointSettings
from microcoder.dataset.filter import ContaminationIndex, FilterSettings, build_index, filter_row
from microcoder.dataset.filter.fingerprints import LONGEST_EXAMPLE
from microcoder.dataset.pipeline import Row
from microcoder.dataset.pipeline.steps import Work
from microcoder.dataset.process import ProcessSettings, process
from microcoder.dataset.rejections import process_row
from microcoder.dataset.sources import Source, read_shard
from microcoder.errors import DataError
from microcoder.formats.candidates import Candidate, Rejection, Stage


class CollectSettings(Config):
    """Nothing: a shard says itself how it is read."""


class ProcessStep(Config):
    """What the process step needs."""

    process: ProcessSettings
    answers: Path = Field(exclude=True)
    """Where a model's answers are kept; it decides nothing."""


class FilterStep(Config):
    """What the filter step needs."""

    filter: FilterSettings
    benchmarks: tuple[SourceSettings, ...] = Field(exclude=True)
    """Where they lie; `benchmarks_digest` says what they hold."""
    benchmarks_digest: str
    answers: Path = Field(exclude=True)


class PredictStep(Config):
    """What the predict step needs."""

    endpoint: EndpointSettings | None
    scoring: ScoringSettings | None
    answers: Path = Field(exclude=True)


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
def open_process(settings: ProcessStep) -> Iterator[Work]:
    """Clean, lay out, identify, translate."""
    with ExitStack() as opened:
        endpoint = _open_endpoint(settings.process.translation.endpoint, settings.answers, opened)
        yield lambda candidates: _map(
            "process", lambda one: process(one, settings.process, endpoint), candidates, endpoint
        )


@contextmanager
def open_filter(settings: FilterStep) -> Iterator[Work]:
    """Apply the rules, the benchmarks' index and, where there is one, the judging model to each row."""
    with ExitStack() as opened:
        endpoint = _open_endpoint(settings.filter.judge, settings.answers, opened)
        index = read_benchmarks(settings.benchmarks, settings.filter) if settings.benchmarks else None
        yield lambda candidates: _map(
            "filter", lambda one: filter_row(one, settings.filter, index, endpoint), candidates, endpoint
        )


@contextmanager
def open_predict(settings: PredictStep) -> Iterator[Work]:
    """Say how hard each problem is."""
    with ExitStack() as opened:
        endpoint = _open_endpoint(settings.endpoint, settings.answers, opened)

        def predict(one: Candidate) -> Candidate:
            return predict_difficulty(one) if endpoint is None else score_difficulty(one, endpoint, settings.scoring)

        yield lambda candidates: _map("filter", predict, candidates, endpoint)


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
    stage: Stage, work: Callable[[Candidate], Row], candidates: Sequence[Candidate], endpoint: Endpoint | None
) -> Iterator[Row]:
    """Take candidates one after the other; many at the same time where a model is waited for."""

    # In a thread of its own, however deep the caller stands, the same rows are nested too deeply.
    with ThreadPoolExecutor(endpoint.settings.concurrency if endpoint else 1) as threads:
        yield from threads.map(lambda one: process_row(one, stage, work), candidates)


def _open_endpoint(settings: EndpointSettings | None, answers: Path, opened: ExitStack) -> Endpoint | None:
    if settings is None:
        return None
    endpoint = Endpoint(settings, cache=answers)
    opened.callback(endpoint.close)
    return endpoint

"""A build from start to end: inputs, steps, corpus. The same command resumes a build that was stopped.

What a build will take, before it starts: rows are counted, seconds rest on the constants below.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from microcoder.data.build.config import BuildConfig
from microcoder.data.build.inputs import FileDigests, describe_sources, list_inputs, unpack_sources
from microcoder.data.build.steps import collect_step, later_steps
from microcoder.data.build.verification import read_rates
from microcoder.data.filter.contamination import THRESHOLDS
from microcoder.data.formats.candidates import STAGES, Candidate, Stage
from microcoder.data.hub import MARKER
from microcoder.data.pipeline.engine import Missing, OnProgress, StepCounts, count_missing, run_steps
from microcoder.data.pipeline.parts import Part, read_kept, read_rejected
from microcoder.data.pipeline.steps import InputShard, Step, digest, source_digest
from microcoder.data.pipeline.workers import Runner
from microcoder.data.release.publishing import write_croissant
from microcoder.data.release.tables import CARD, find_licence, write_card, write_tables
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import check_folder, hold_lock, write_json
from microcoder.judge.core.machine import is_disk_full

SECONDS_PER_ROW = {
    "collect": 0.002,
    "process": 0.012,
    "filter": 0.006,
    "deduplicate": 0.004,
    "predict": 0.006,
    "attempts": 2.0,
    "select": 0.001,
    "compare": 0.8,
    "generate": 6.0,
    "verify": 4.0,
}
"""CPU seconds a row, measured on the public sets in this project's tests; verification varies a hundredfold with the
number of programs and tests, and a model behind an endpoint takes as long as it takes."""
SECONDS_PER_MB = {
    "collect": 0.03,
    "process": 0.03,
    "filter": 0.02,
    "deduplicate": 0.02,
    "predict": 0.02,
    "attempts": 0.02,
    "select": 0.02,
    "compare": 0.02,
    "verify": 0.6,
}
"""CPU seconds a megabyte of rows, mostly of tests: each step reads and writes it, and programs are given it."""
PACKAGE_SECONDS = 40.0
"""CPU seconds to verify a contest package: several accepted and wrong programs, most of them to be compiled."""
_SURVIVE = {"collect": 1.0, "process": 1.0, "filter": 0.9, "deduplicate": 0.7, "predict": 0.7, "attempts": 0.7}
"""Share of the raw rows that come as far as a step."""


def estimate_seconds(missing: Mapping[str, Missing], *, workers: int, package_share: float = 0.0) -> float:
    """Return the wall seconds of what is missing.

    Args:
        missing: rows and bytes that each step has still to do.
        workers: processes at the same time.
        package_share: of the rows that are contest packages.
    """
    verify = SECONDS_PER_ROW["verify"] * (1 - package_share) + PACKAGE_SECONDS * package_share
    seconds = {**SECONDS_PER_ROW, "verify": verify}
    work = sum(
        (seconds[step] * left.num_rows + SECONDS_PER_MB.get(step, 0.05) * left.num_bytes / 1e6)
        * _SURVIVE.get(step, 0.6)
        for step, left in missing.items()
    )
    return work / workers


_RELEASE_CODE = "microcoder.data.release"


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """Steps, sources and costs of a build that is to be made."""

    shards: tuple[InputShard, ...]
    steps: tuple[Step, ...]
    """After collect."""
    missing: dict[str, Missing]
    """Step -> rows and bytes of the input in the shards that it has still to see."""

    @property
    def num_rows(self) -> int:
        """Raw rows of all sources."""
        return sum(shard.num_rows for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Built:
    """Counts and paths of a finished build."""

    step_counts: tuple[StepCounts, ...]
    corpus: Path | None
    """Folder of the corpus; None if the build was to end before its last stage."""
    was_finished: bool
    """Whether the build was complete before this run."""


def plan_build(config: BuildConfig, *, last: Stage = "verify") -> BuildPlan:
    """Find all input, and what of the work is done.

    Args:
        config: the build.
        last: the stage to end with.

    Raises:
        DataError: a source or benchmark cannot be found or read, or the output is a file.
    """
    check_folder(config.output, "output")
    check_folder(config.work_folder, "work")
    if (config.output / CARD).exists() and not (config.output / MARKER).exists() and not config.work_folder.exists():
        raise DataError(
            f"output = {str(config.output)!r} has a {CARD} that is of no build and would be overwritten; name a folder "
            "of its own"
        )
    digests = FileDigests(config.work_folder / "inputs.json")
    unpacked = config.work_folder / "unpacked"
    sources = unpack_sources(config.sources, into=unpacked, digests=digests)
    benchmarks = unpack_sources(config.benchmarks, into=unpacked, digests=digests)
    shards = list_inputs(
        sources, rows_per_shard=config.rows_per_shard, bytes_per_shard=config.bytes_per_shard, digests=digests
    )
    wanted = STAGES[: STAGES.index(last) + 1]
    steps = [s for s in later_steps(config, benchmarks=benchmarks, digests=digests) if s.stage in wanted]
    digests.save()
    missing = count_missing(shards, collect_step(), steps, work=config.work_folder / "parts")
    return BuildPlan(tuple(shards), tuple(steps), missing)


def run_build(
    config: BuildConfig, plan: BuildPlan, *, on_progress: OnProgress = lambda step, done, total: None
) -> Built:
    """Do what is missing, and write the corpus when every stage was run.

    Raises:
        DataError: an endpoint failed, a file of an earlier run is damaged, or another build is at work here.
        EvaluatorFault: the sandbox does not hold.
    """
    with hold_work(config):
        parts, step_counts = run_plan(config, plan, on_progress)
        if not plan.steps or plan.steps[-1].name != "verify":
            return Built(tuple(step_counts), None, was_finished=not any(one.num_redone for one in step_counts))
        keys = (part.key for of_step in parts for part in of_step)
        key = digest(config.name, source_digest(_RELEASE_CODE), *keys)
        marker = config.output / MARKER
        was_finished = marker.exists() and json.loads(marker.read_text(encoding="utf-8"))["key"] == key
        if not was_finished:
            on_progress("release", 0, 1)
            _release(config, plan, parts, step_counts, key)
        on_progress("release", 1, 1)
        return Built(tuple(step_counts), config.output, was_finished)


@contextmanager
def hold_work(config: BuildConfig) -> Iterator[None]:
    """Hold the folder of what is kept between runs, of which two builds would each destroy the other's.

    Raises:
        DataError: another build holds it.
        OSError: the disk is full, also where it was SQLite that met its end.
    """
    busy = DataError(f"another build is at work in {config.work_folder}; wait for it, or use another output")
    with hold_lock(config.work_folder / "lock", busy):
        try:
            yield
        except sqlite3.Error as error:
            if not is_disk_full(error):
                raise
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(config.work_folder)) from None


def run_plan(
    config: BuildConfig, plan: BuildPlan, on_progress: OnProgress
) -> tuple[list[list[Part]], list[StepCounts]]:
    """Do what is missing of a plan; return every step's parts and counts."""
    runner = Runner(kind=config.runner, workers=config.workers, address=config.ray_address)
    collect = replace(collect_step(), turns_away=all(step.turns_away for step in plan.steps))
    work = config.work_folder / "parts"
    return run_steps(plan.shards, collect, plan.steps, work=work, runner=runner, on_progress=on_progress)


def _release(
    config: BuildConfig, plan: BuildPlan, parts: Sequence[Sequence[Part]], step_counts: Sequence[StepCounts], key: str
) -> None:
    """Write everything, the marker last: without it, nothing in the folder is taken for whole."""
    folder = config.output
    (folder / MARKER).unlink(missing_ok=True)
    rejected = chain.from_iterable(read_rejected(part.path) for of_step in parts for part in of_step)
    tally = write_tables(folder, _kept(parts[-1]), rejected)
    tests = {"made_by_certificate": dict(sorted(tally.certificates.items())), "guessable": tally.guessable}
    figures = {**_figures(config, parts, step_counts), "tests": tests}
    record = config.model_dump(mode="json", exclude={"output", "work", "workers", "ray_address", "runner"})
    sources = describe_sources(config.sources, plan.shards, digests=FileDigests(config.work_folder / "inputs.json"))
    write_card(
        folder,
        name=config.name,
        tally=tally,
        step_counts=step_counts,
        figures=figures,
        config=record,
        sources=sources,
    )
    write_croissant(folder, name=config.name, licence=find_licence(tally.counts["licence"]), sources=sources)
    write_json(folder / MARKER, {"name": config.name, "key": key, "num_problems": tally.num_problems})


def _kept(parts: Sequence[Part]) -> Iterator[Candidate]:
    return chain.from_iterable(read_kept(part.path) for part in parts)


def _figures(config: BuildConfig, parts: Sequence[Sequence[Part]], step_counts: Sequence[StepCounts]) -> dict[str, Any]:
    by_step = {step_count.step: step_count for step_count in step_counts}
    verified, rates = by_step["verify"], read_rates(config, parts[-2])
    return {
        "decontamination": {
            "benchmarks": [source.prefix for source in config.benchmarks],
            "rows_compared": by_step["filter"].num_in,
            "problems_compared_by_execution": by_step["compare"].num_in if "compare" in by_step else 0,
            "thresholds": THRESHOLDS,
        },
        "verification": {"problems_tried": verified.num_in, "problems_kept": verified.num_kept, **rates},
    }

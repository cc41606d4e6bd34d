"""A build from start to end: inputs, steps, corpus.

The same command resumes a build that was stopped. `audit` runs the steps without rejecting rows,
and reports what each would have rejected, and why.
"""

import errno
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from microcoder.data.corpus.findings import REPORT, Finding, write_report
from microcoder.data.corpus.inputs import describe_sources, list_inputs, unpack_sources
from microcoder.data.corpus.patches import Patch, write_patches
from microcoder.data.corpus.settings import BuildConfig
from microcoder.data.corpus.steps import collect_step, later_steps
from microcoder.data.corpus.work import read_rates
from microcoder.data.formats.candidates import STAGES, Rejection, Stage
from microcoder.data.pipeline.engine import OnProgress, StepCounts, count_missing, run_steps
from microcoder.data.pipeline.parts import KeptRows, Part, read_rejected
from microcoder.data.pipeline.runner import Runner
from microcoder.data.pipeline.steps import (
    InputShard,
    Row,
    Step,
    digest,
    source_digest,
)
from microcoder.data.release.card import CARD, find_licence, write_card
from microcoder.data.release.publishing import write_croissant
from microcoder.data.release.tables import Tally, write_tables
from microcoder.data.sources import MARKER
from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import (
    check_folder,
    hold_lock,
    read_json,
    write_json,
)
from microcoder.judge.core.machine import is_disk_full

_RELEASE_CODE = "microcoder.data.release"
"""The package whose code decides how a finished corpus is written."""
_BYTES_PER_SHARD = 16 << 20
"""Decompressed bytes of rows at which a shard ends early (our choice).

A process needs several times that memory.
"""


@dataclass(frozen=True, slots=True)
class BuildPlan:
    """Shards and steps of a build, and how many rows each step has yet to do."""

    shards: tuple[InputShard, ...]
    steps: tuple[Step, ...]
    """The steps after collect."""
    missing: dict[str, int]
    """Name of each step -> number of its input rows in shards that it has not done yet."""

    @property
    def num_rows(self) -> int:
        """Raw rows of all sources."""
        return sum(shard.num_rows for shard in self.shards)


@dataclass(frozen=True, slots=True)
class Built:
    """Counts and paths of a finished build."""

    step_counts: tuple[StepCounts, ...]
    corpus: Path | None
    """Folder of the corpus; None if the plan ended before the verify stage."""
    was_finished: bool
    """Whether the build was complete before this run."""


def plan_build(
    config: BuildConfig,
    *,
    last: Stage = "verify",
) -> BuildPlan:
    """Return all shards, the steps up to `last`, and the rows that each has yet to do.

    A build until `filter` ends before the comparison with benchmarks by execution: that costs more
    than all before it.

    Raises:
        DataError: there are no rows, or the output folder holds something else than a build.
    """
    # Before anything is unpacked, which may take long.
    check_folder(config.output, "output")
    check_folder(config.work_folder, "work")
    _check_output(config)
    # Kept between runs, in folders named by their content.
    unpacked = config.work_folder / "unpacked"
    sources = unpack_sources(config.sources, into=unpacked)
    benchmarks = unpack_sources(config.benchmarks, into=unpacked)
    shards = list_inputs(
        sources,
        rows_per_shard=config.rows_per_shard,
        bytes_per_shard=_BYTES_PER_SHARD,
    )
    if not sum(shard.num_rows for shard in shards):
        names = " and ".join(source.path for source in config.sources)
        raise DataError(f"source {names} holds no rows; check that the file is whole")
    # A shorter build is a part of the whole one, with the same keys.
    stages = STAGES[: STAGES.index(last) + 1]
    all_steps = later_steps(config, benchmarks=benchmarks)
    steps = tuple(step for step in all_steps if step.stage in stages)
    if last == "filter":
        steps = tuple(takewhile(lambda step: not step.executes, steps))
    missing = count_missing(
        shards,
        collect_step(),
        steps,
        work=config.work_folder / "parts",
    )
    return BuildPlan(tuple(shards), steps, missing)


def _check_output(config: BuildConfig) -> None:
    """Raise DataError if the output folder has files that are of no build."""
    card = config.output / CARD
    marker = config.output / MARKER
    foreign = ""
    if marker.exists():
        if "key" not in read_json(marker, what="manifest"):
            foreign = MARKER
    elif card.exists() and not config.work_folder.exists():
        # A build that is not finished has a card and no marker, but also a work folder.
        foreign = CARD
    if foreign:
        raise DataError(
            f"output = {str(config.output)!r} has a {foreign} that is of no build and would be "
            "overwritten; name a folder of its own"
        )


def run_build(
    config: BuildConfig,
    plan: BuildPlan,
    *,
    on_progress: OnProgress = lambda step, done, total: None,
) -> Built:
    """Run the missing steps and, if the plan includes verify, write the corpus.

    Raises:
        DataError: another build runs.
    """
    with hold_work(config):
        parts, step_counts = run_plan(config, plan, on_progress)
        if not plan.steps or plan.steps[-1].name != "verify":
            was_finished = not any(counts.num_redone for counts in step_counts)
            return Built(tuple(step_counts), None, was_finished)
        key = _corpus_key(config, parts)
        marker = config.output / MARKER
        was_finished = False
        if marker.exists():
            was_finished = read_json(marker, what="manifest")["key"] == key
        if not was_finished:
            on_progress("release", 0, 1)
            _release(config, plan, parts, step_counts, key)
        on_progress("release", 1, 1)
        return Built(tuple(step_counts), config.output, was_finished)


def _corpus_key(
    config: BuildConfig,
    parts: Sequence[Sequence[Part]],
) -> str:
    """Return the digest of everything that decides a finished corpus."""
    keys = [part.key for part in chain.from_iterable(parts)]
    return digest(config.name, source_digest(_RELEASE_CODE), *keys)


@contextmanager
def hold_work(config: BuildConfig) -> Iterator[None]:
    """Lock the work folder, since two builds would destroy each other's results.

    Raises:
        DataError: it is locked.
    """
    folder = config.work_folder
    busy = DataError(f"another build is at work in {folder}; wait for it, or use another output")
    with hold_lock(folder / "lock", busy):
        # Under the lock, since what another build has not finished is not left over.
        _remove_partial(folder)
        try:
            yield
        except sqlite3.Error as error:
            # A user is told by the same words as for any other file.
            if not is_disk_full(error):
                raise
            raise OSError(
                errno.ENOSPC,
                os.strerror(errno.ENOSPC),
                str(folder),
            ) from None


def _remove_partial(folder: Path) -> None:
    """Remove the unfinished files of a build that was killed."""
    for pattern in ("parts/*/.*.partial", "unpacked/.*.partial"):
        for path in folder.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def run_plan(
    config: BuildConfig,
    plan: BuildPlan,
    on_progress: OnProgress,
) -> tuple[list[list[Part]], list[StepCounts]]:
    """Run the missing steps of a plan; return every step's parts and row counts."""
    runner = Runner(kind=config.runner, workers=config.workers)
    # An audit rejects nothing, so its first step must not either.
    turns_away = all(step.turns_away for step in plan.steps)
    return run_steps(
        plan.shards,
        replace(collect_step(), turns_away=turns_away),
        plan.steps,
        work=config.work_folder / "parts",
        runner=runner,
        on_progress=on_progress,
    )


def _release(
    config: BuildConfig,
    plan: BuildPlan,
    parts: Sequence[Sequence[Part]],
    step_counts: Sequence[StepCounts],
    key: str,
) -> None:
    """Write tables, card and metadata, and the marker last.

    A folder without it counts as unfinished.
    """
    folder = config.output
    # From here on the folder is no finished corpus.
    (folder / MARKER).unlink(missing_ok=True)
    kept = chain.from_iterable(KeptRows(part.path) for part in parts[-1])
    tally = write_tables(folder, kept, _read_all_rejected(parts))
    sources = describe_sources(config.sources, plan.shards)
    write_card(
        folder,
        name=config.name,
        tally=tally,
        step_counts=step_counts,
        figures=_list_figures(
            config,
            parts[-1],
            step_counts,
            tally,
        ),
        # What decides nothing about the corpus, and would differ from machine to machine, is left
        # out.
        config=config.model_dump(
            mode="json",
            exclude={"output", "work", "workers", "runner"},
        ),
        sources=sources,
    )
    licence = find_licence(tally.counts["licence"])
    write_croissant(
        folder,
        name=config.name,
        licence=licence,
        sources=sources,
    )
    manifest = {"name": config.name, "key": key, "num_problems": tally.num_problems}
    write_json(folder / MARKER, manifest)


def _read_all_rejected(parts: Sequence[Sequence[Part]]) -> Iterator[Rejection]:
    """Yield the rows that any step rejected."""
    for part in chain.from_iterable(parts):
        yield from read_rejected(part.path)


def _list_figures(
    config: BuildConfig,
    last_parts: Sequence[Part],
    step_counts: Sequence[StepCounts],
    tally: Tally,
) -> dict[str, Any]:
    """Return the figures of the card."""
    num_in = {counts.step: counts.num_in for counts in step_counts}
    return {
        "decontamination": {
            "benchmarks": [source.prefix for source in config.benchmarks],
            "rows_compared": num_in["filter"],
            "problems_compared_by_execution": num_in.get("compare", 0),
        },
        "verification": {
            "problems_tried": num_in["verify"],
            "problems_kept": step_counts[-1].num_kept,
            **read_rates(last_parts),
        },
        "tests": {
            "made_by_certificate": dict(sorted(tally.certificates.items())),
            "guessable": tally.guessable,
        },
    }


# Duplicates last, since those that stay are merged.
_STATIC = ("process", "filter", "boilerplate", "deduplicate")
"""Steps of an audit in order, without programs run."""
_RUNNING = ("process", "filter", "compare", "verify", "boilerplate", "deduplicate")
"""Steps of an audit in order, with programs run."""


class AuditResult(NamedTuple):
    """Counts and paths of a finished audit."""

    num_rows: int
    """Rows that were audited."""
    findings: tuple[Finding, ...]
    report: Path
    patches: tuple[Patch, ...] = ()
    """Changes that are proposed to the set's maintainers, where asked for."""


def audit(
    config: BuildConfig,
    *,
    limit: int | None = None,
    seed: int = 0,
    runs_programs: bool = True,
    patch_folder: Path | None = None,
    on_progress: OnProgress = lambda step, done, total: None,
) -> AuditResult:
    """Run the steps of a build without rejecting rows, and report what each would have rejected.

    Args:
        config: settings of a build; its output gets `report.md`, `summary.json` and
            `findings.jsonl`, a line a finding.
        limit: rows to look at, drawn by the seed; a larger limit includes those of a smaller one.
        seed: decides which rows are drawn.
        runs_programs: whether the programs of rows and benchmarks are run.
        patch_folder: gets `patch.jsonl`, the changes that are proposed; None: none are.
        on_progress: called with a step's name, its rows that are done, and all of them.
    """
    if limit is not None:
        # Rows are drawn by the shard.
        config = config.model_copy(update={"rows_per_shard": 1})
    plan = plan_build(config)
    chosen = BuildPlan(
        shards=_draw_shards(plan.shards, limit, seed),
        steps=_audit_steps(plan.steps, runs_programs=runs_programs),
        missing={},
    )
    with hold_work(config):
        parts, _ = run_plan(config, chosen, on_progress)
    rows: list[Row] = []
    for part in parts[-1]:
        rows += KeptRows(part.path)
    # Only what never became a record is gone by then.
    rows += _read_all_rejected(parts)
    # In one order, whatever shard a row came from.
    rows.sort(key=lambda row: row.id)
    name = config.sources[0].prefix
    findings = write_report(config.output, name, rows, num_rows=plan.num_rows)
    patches: list[Patch] = []
    if patch_folder is not None:
        opener = partial(_open_judge, config) if runs_programs else None
        patches = write_patches(patch_folder, rows, opener)
    return AuditResult(
        len(rows),
        tuple(findings),
        config.output / REPORT,
        tuple(patches),
    )


def _open_judge(config: BuildConfig) -> Judge:
    """Return a judge that runs programs on all tests."""
    options = JudgeOptions(
        workers=config.workers,
        packages=config.packages,
        unsafe=config.unsafe,
    )
    return Judge(options, stop="first_limit", cache_size=0)


def _draw_shards(
    shards: Sequence[InputShard],
    limit: int | None,
    seed: int,
) -> tuple[InputShard, ...]:
    """Return some shards in order, drawn by the seed; all without a limit."""
    shuffled = list(shards)
    # All are shuffled before some are taken, so that a larger limit adds to a smaller one.
    random.Random(seed).shuffle(shuffled)
    taken = shuffled[:limit]
    return tuple(sorted(taken, key=lambda shard: shard.number))


def _audit_steps(
    steps: Sequence[Step],
    *,
    runs_programs: bool,
) -> tuple[Step, ...]:
    """Return the steps of an audit, which reject no row."""
    by_name = {step.name: step for step in steps}
    names = _RUNNING if runs_programs else _STATIC
    chosen = []
    for name in names:
        if name in by_name:
            chosen.append(replace(by_name[name], turns_away=False))
    return tuple(chosen)

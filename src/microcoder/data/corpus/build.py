"""A build from start to end: inputs, steps, corpus. The same command resumes a build that was stopped.

`audit` runs the steps without rejecting rows, and reports what each would have rejected, and why.
"""

import errno
import os
import random
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from microcoder.data.clean.stage import RESTORE_POWERS
from microcoder.data.corpus.steps import (
    BuildConfig,
    collect_step,
    describe_sources,
    later_steps,
    list_inputs,
    read_rates,
    unpack_sources,
)
from microcoder.data.formats.candidates import REASONS, STAGES, Rejection, Stage
from microcoder.data.pipeline.engine import OnProgress, StepCounts, count_missing, run_steps
from microcoder.data.pipeline.parts import KeptRows, Part, read_rejected
from microcoder.data.pipeline.runner import Runner
from microcoder.data.pipeline.steps import (
    WOULD_REJECT,
    InputShard,
    Row,
    Step,
    digest,
    source_digest,
)
from microcoder.data.release.card import CARD, find_licence, write_card
from microcoder.data.release.publishing import write_croissant
from microcoder.data.release.tables import write_tables
from microcoder.data.sources import MARKER
from microcoder.data.verify.rates import rate_with_interval
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.files import (
    check_folder,
    hold_lock,
    read_json,
    write_json,
    write_rows,
    write_text,
)
from microcoder.judge.core.machine import is_disk_full

_RELEASE_CODE = "microcoder.data.release"
_BYTES_PER_SHARD = 16 << 20
"""Decompressed bytes of rows at which a shard ends early: a process needs several times that memory (our choice)."""


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


def plan_build(config: BuildConfig, *, last: Stage = "verify") -> BuildPlan:
    """Return all shards, steps up to `last` and the rows each has yet to do; DataError if no rows or foreign output."""
    check_folder(config.output, "output")
    check_folder(config.work_folder, "work")
    card, marker = config.output / CARD, config.output / MARKER
    is_foreign = marker.exists() and "key" not in read_json(marker, what="manifest")
    if is_foreign or (card.exists() and not marker.exists() and not config.work_folder.exists()):
        raise DataError(
            f"output = {str(config.output)!r} has a {MARKER if is_foreign else CARD} that is of no build and would be "
            "overwritten; name a folder of its own"
        )
    unpacked = config.work_folder / "unpacked"
    sources = unpack_sources(config.sources, into=unpacked)
    benchmarks = unpack_sources(config.benchmarks, into=unpacked)
    shards = list_inputs(
        sources, rows_per_shard=config.rows_per_shard, bytes_per_shard=_BYTES_PER_SHARD
    )
    if not sum(shard.num_rows for shard in shards):
        names = " and ".join(str(source.path) for source in config.sources)
        raise DataError(f"source {names} holds no rows; check that the file is whole")
    wanted = STAGES[: STAGES.index(last) + 1]
    steps = [s for s in later_steps(config, benchmarks=benchmarks) if s.stage in wanted]
    missing = count_missing(shards, collect_step(), steps, work=config.work_folder / "parts")
    return BuildPlan(tuple(shards), tuple(steps), missing)


def run_build(
    config: BuildConfig,
    plan: BuildPlan,
    *,
    on_progress: OnProgress = lambda step, done, total: None,
) -> Built:
    """Run the missing steps and, if the plan includes verify, write the corpus; DataError if another build runs."""
    with hold_work(config):
        parts, step_counts = run_plan(config, plan, on_progress)
        if not plan.steps or plan.steps[-1].name != "verify":
            return Built(
                tuple(step_counts),
                None,
                was_finished=not any(one.num_redone for one in step_counts),
            )
        keys = (part.key for of_step in parts for part in of_step)
        key = digest(config.name, source_digest(_RELEASE_CODE), *keys)
        marker = config.output / MARKER
        was_finished = marker.exists() and read_json(marker, what="manifest")["key"] == key
        if not was_finished:
            on_progress("release", 0, 1)
            _release(config, plan, parts, step_counts, key)
        on_progress("release", 1, 1)
        return Built(tuple(step_counts), config.output, was_finished)


@contextmanager
def hold_work(config: BuildConfig) -> Iterator[None]:
    """Lock the work folder, since two builds would destroy each other's results; DataError if it is locked."""
    busy = DataError(
        f"another build is at work in {config.work_folder}; wait for it, or use another output"
    )
    with hold_lock(config.work_folder / "lock", busy):
        # Of a build that was killed.
        for left in chain.from_iterable(
            map(config.work_folder.glob, ("parts/*/.*.partial", "unpacked/.*.partial"))
        ):
            shutil.rmtree(left, ignore_errors=True) if left.is_dir() else left.unlink(
                missing_ok=True
            )
        try:
            yield
        except sqlite3.Error as error:
            if not is_disk_full(error):
                raise
            raise OSError(
                errno.ENOSPC, os.strerror(errno.ENOSPC), str(config.work_folder)
            ) from None


def run_plan(
    config: BuildConfig, plan: BuildPlan, on_progress: OnProgress
) -> tuple[list[list[Part]], list[StepCounts]]:
    """Run the missing steps of a plan; return every step's parts and row counts."""
    runner = Runner(kind=config.runner, workers=config.workers)
    collect = replace(collect_step(), turns_away=all(step.turns_away for step in plan.steps))
    work = config.work_folder / "parts"
    return run_steps(
        plan.shards, collect, plan.steps, work=work, runner=runner, on_progress=on_progress
    )


def _release(
    config: BuildConfig,
    plan: BuildPlan,
    parts: Sequence[Sequence[Part]],
    step_counts: Sequence[StepCounts],
    key: str,
) -> None:
    """Write tables, card and metadata, and the marker last: a folder without it counts as unfinished."""
    folder = config.output
    (folder / MARKER).unlink(missing_ok=True)
    rejected = chain.from_iterable(
        read_rejected(part.path) for of_step in parts for part in of_step
    )
    tally = write_tables(
        folder, chain.from_iterable(KeptRows(part.path) for part in parts[-1]), rejected
    )
    num_in = {one.step: one.num_in for one in step_counts}
    figures = {
        "decontamination": {
            "benchmarks": [source.prefix for source in config.benchmarks],
            "rows_compared": num_in["filter"],
            "problems_compared_by_execution": num_in.get("compare", 0),
        },
        "verification": {
            "problems_tried": num_in["verify"],
            "problems_kept": step_counts[-1].num_kept,
            **read_rates(parts[-1]),
        },
        "tests": {
            "made_by_certificate": dict(sorted(tally.certificates.items())),
            "guessable": tally.guessable,
        },
    }
    record = config.model_dump(mode="json", exclude={"output", "work", "workers", "runner"})
    sources = describe_sources(config.sources, plan.shards)
    write_card(
        folder,
        name=config.name,
        tally=tally,
        step_counts=step_counts,
        figures=figures,
        config=record,
        sources=sources,
    )
    write_croissant(
        folder, name=config.name, licence=find_licence(tally.counts["licence"]), sources=sources
    )
    write_json(
        folder / MARKER, {"name": config.name, "key": key, "num_problems": tally.num_problems}
    )


_STATIC, _RUNNING = (
    ("process", "filter", "deduplicate"),
    ("process", "filter", "compare", "verify", "deduplicate"),
)
"""Steps of an audit in order, without and with programs run: duplicates last, since those that stay are merged."""
_FEW_TESTS = 5
_ORDER = ("collect", "process", "filter", "verify", "flag", "check")
_MEANINGS = {
    **REASONS,
    "few_tests": f"fewer than {_FEW_TESTS} tests",
    "no_licence": "no licence is named",
    "wrong_bounds": "a bound such as 105 that was 10^5",
}
"""Kind of finding -> its meaning; for the last three a build rejects no row."""
_EXAMPLES, _MOST_DETAIL = 3, 300


class Finding(NamedTuple):
    """One kind of fault, and how many of the audited rows have it."""

    stage: str
    """The stage that would reject the row; `flag` and `check` never reject."""
    kind: str
    num: int
    share: float
    low: float
    high: float
    """Upper end of the 95 % interval of `share`, as if the rows were drawn from more; `low` is the lower end."""


class Audited(NamedTuple):
    """Counts and paths of a finished audit."""

    num_rows: int
    """Rows that were audited."""
    findings: tuple[Finding, ...]
    report: Path


def audit(
    config: BuildConfig,
    *,
    limit: int | None = None,
    seed: int = 0,
    runs_programs: bool = True,
    on_progress: OnProgress = lambda step, done, total: None,
) -> Audited:
    """Run the steps of a build without rejecting rows, and write a report of what each would have rejected.

    Args:
        config: settings of a build; its output gets `report.md`, `summary.json` and `findings.jsonl`, a line a finding.
        limit: rows to look at, drawn by the seed; a larger limit includes those of a smaller one.
        runs_programs: whether the programs of rows and benchmarks are run.
    """
    if limit is not None:
        config = config.model_copy(update={"rows_per_shard": 1})
    plan = plan_build(config)
    shards = list(plan.shards)
    random.Random(seed).shuffle(shards)
    by_name = {step.name: step for step in plan.steps}
    names = _RUNNING if runs_programs else _STATIC
    steps = tuple(replace(by_name[name], turns_away=False) for name in names if name in by_name)
    chosen = BuildPlan(tuple(sorted(shards[:limit], key=lambda shard: shard.number)), steps, {})
    with hold_work(config):
        parts, _ = run_plan(config, chosen, on_progress)
    rows: list[Row] = [row for part in parts[-1] for row in KeptRows(part.path)]
    # Only what never became a record is gone by then.
    rows += [row for of_step in parts for part in of_step for row in read_rejected(part.path)]
    return _write_report(config, sorted(rows, key=lambda row: row.id), of=plan.num_rows)


def find_in(row: Row) -> list[tuple[str, str, str]]:
    """Return (stage, kind, detail) of each finding of a row; a kind once, by the first stage that reports it."""
    if isinstance(row, Rejection):
        return [(row.stage, row.reason, row.detail)]
    told = [
        (line.stage, line.field, line.detail) for line in row.lineage if line.step == WOULD_REJECT
    ]
    told += [("flag", flag, "") for flag in row.flags]
    mended = [
        line for line in row.lineage if line.step == RESTORE_POWERS and line.field == "statement"
    ]
    told += [("check", "wrong_bounds", line.detail) for line in mended]
    told += [("check", "no_licence", "")] if not row.licence else []
    few = "few_tests" if row.tests else "no_tests"
    told += [("check", few, f"{len(row.tests)} tests")] if len(row.tests) < _FEW_TESTS else []
    return list({kind: (stage, kind, detail) for stage, kind, detail in reversed(told)}.values())[
        ::-1
    ]


def _write_report(config: BuildConfig, rows: Sequence[Row], *, of: int) -> Audited:
    of_kind: dict[tuple[str, str], list[tuple[Row, str]]] = {}
    for row in rows:
        for stage, kind, detail in find_in(row):
            of_kind.setdefault((stage, kind), []).append((row, detail[:_MOST_DETAIL]))
    findings, lines, examples = [], [], []
    for stage, kind in sorted(
        of_kind, key=lambda one: (_ORDER.index(one[0]), -len(of_kind[one]), one[1])
    ):
        found = of_kind[stage, kind]
        names = {row.id for row, _ in found}
        rate = rate_with_interval([(int(row.id in names), 1) for row in rows])
        assert rate is not None
        findings.append(Finding(stage, kind, rate.right, rate.value, rate.low, rate.high))
        share = f"{rate.value:.1%} | {rate.low:.1%} to {rate.high:.1%}"
        lines.append(f"| {stage} | {kind} | {rate.right:,} | {share} | {_MEANINGS.get(kind, '')} |")
        examples += ["", f"## {kind}"]
        for row, detail in found[:_EXAMPLES]:
            plain = (
                " ".join(detail.split()).replace("`", "'").replace("<", "&lt;").replace("|", "\\|")
            )
            examples.append(f"- `{row.id}` {plain}")
    folder = config.output
    write_text(
        folder / "report.md",
        "\n".join([
            f"# Audit of {config.sources[0].prefix}", "", f"{len(rows):,} of {of:,} rows.", "",
            "| stage | finding | rows | share | 95 % interval | meaning |", "| --- | --- | --: | --: | --- | --- |",
            *lines, *examples, "",
        ]),
    )  # fmt: skip
    of_rows = [
        {"id": row.id, "source_row": row.source_row, "stage": stage, "kind": kind, "detail": detail}
        for (stage, kind), found in of_kind.items()
        for row, detail in found
    ]
    write_rows(folder / "findings.jsonl", of_rows)
    write_json(
        folder / "summary.json",
        {"rows": len(rows), "of": of, "findings": [one._asdict() for one in findings]},
    )
    return Audited(len(rows), tuple(findings), folder / "report.md")

"""Runs steps over shards, and computes only results that are missing.

The file name of each result holds a digest of what decides it: the step's key, and the key of its
input. A run that was killed finds its files and resumes; a changed step has other keys and is
computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from microcoder.data.formats.candidates import Candidate
from microcoder.data.pipeline.parts import KeptRows, Part, Spilled, count_reasons, write_part
from microcoder.data.pipeline.runner import Looks, Runner
from microcoder.data.pipeline.steps import (
    Barrier,
    BarrierStep,
    InputShard,
    MapStep,
    Row,
    Step,
    digest,
    step_key,
)

OnProgress = Callable[[str, int, int], None]
"""Called with a step's name, the number of input rows in shards that it has done, and in all."""


def _ignore_progress(step: str, done: int, total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Row counts of one step: rows in are rows kept plus rows rejected."""

    step: str
    stage: str
    num_in: int
    num_kept: int
    num_rejected: int
    reasons: Mapping[str, int]
    """Reason -> number of rejected rows, the commonest first."""
    num_redone: int
    """Shards computed in this run; the others existed already."""


def run_steps(
    shards: Sequence[InputShard],
    collect: MapStep,
    steps: Sequence[Step],
    *,
    work: Path,
    runner: Runner,
    on_progress: OnProgress = _ignore_progress,
) -> tuple[list[list[Part]], list[StepCounts]]:
    """Run all steps over all shards; return, by step, the parts and the row counts.

    Args:
        collect: the first step; its work gets a shard's `place` instead of candidates.
        work: folder of the parts.
    """
    all_steps = (collect, *steps)
    plan = _plan(all_steps, shards, work)
    # Before anything runs: afterwards none is missing.
    num_redone = {name: len(_find_missing(parts)) for name, parts in plan.items()}
    num_rows = sum(shard.num_rows for shard in shards)
    before: list[Part] = []
    # Worker processes end with the run, also where a step fails.
    with closing(runner):
        for step in all_steps:
            parts = plan[step.name]
            missing = _find_missing(parts)
            done = num_rows - sum(shards[index].num_rows for index in missing)
            on_progress(step.name, done, num_rows)
            for index in _run_step(step, shards, before, parts, runner):
                done += shards[index].num_rows
                on_progress(step.name, done, num_rows)
            before = parts
    step_counts = _count(shards, all_steps, plan, num_redone)
    return list(plan.values()), step_counts


def count_missing(
    shards: Sequence[InputShard],
    collect: MapStep,
    steps: Sequence[Step],
    *,
    work: Path,
) -> dict[str, int]:
    """Return, by step, the number of input rows in shards that it has not done yet."""
    num_missing = {}
    for name, parts in _plan((collect, *steps), shards, work).items():
        missing = _find_missing(parts)
        num_missing[name] = sum(shards[index].num_rows for index in missing)
    return num_missing


def _plan(
    steps: Sequence[Step],
    shards: Sequence[InputShard],
    work: Path,
) -> dict[str, list[Part]]:
    """Return the parts of every step; each key is a digest of the step's key and its input's."""
    plan: dict[str, list[Part]] = {}
    keys = [digest("input", shard.digest) for shard in shards]
    for step in steps:
        own = step_key(step)
        if isinstance(step, BarrierStep):
            # Each of its parts depends on the rows of all shards.
            of_all = digest(own, *keys)
            keys = [digest(of_all, str(shard.number)) for shard in shards]
        else:
            keys = [digest(own, key) for key in keys]
        folder = work / step.name
        parts = []
        for shard, key in zip(shards, keys, strict=True):
            # With the key in its name a stale part is never taken.
            parts.append(Part(key, folder / f"{shard.number:06d}-{key}.parquet"))
        plan[step.name] = parts
    return plan


def _find_missing(parts: Sequence[Part]) -> list[int]:
    """Return the indices of the parts whose files are missing."""
    return [index for index, part in enumerate(parts) if not part.is_there]


def _run_step(
    step: Step,
    shards: Sequence[InputShard],
    before: Sequence[Part],
    parts: Sequence[Part],
    runner: Runner,
) -> Iterator[int]:
    """Write the missing parts of a step, and yield the index of each as soon as it is written.

    Args:
        before: the parts of the step before; none for the first step, which reads `place`.
    """
    missing = _find_missing(parts)
    if not missing:
        return
    if isinstance(step, BarrierStep):
        # It decides from all rows, though only some of its parts may be missing.
        looks = Spilled[Looks]()
        inputs = [part.path.absolute() for part in before]
        for index, shard_looks in runner.run(step, inputs, inputs):
            looks.add(index, shard_looks)
        yield from _decide(step, looks, before, parts)
        return
    # Absolute, since a worker on another node has a working directory of its own.
    if before:
        inputs = [before[index].path.absolute() for index in missing]
    else:
        inputs = [shards[index].place for index in missing]
    paths = [parts[index].path.absolute() for index in missing]
    for position, _ in runner.run(step, inputs, paths):
        yield missing[position]


def _decide(
    step: Step,
    looks: Spilled[Looks],
    before: Sequence[Part],
    parts: Sequence[Part],
) -> Iterator[int]:
    """Let a barrier decide from all looks, then write the missing parts and yield their indices.

    In memory are the rows of one shard, and the other rows that the row at work needs.
    """
    barrier: Barrier = step.opens(step.settings)
    barrier.decide(looks)
    missing = _find_missing(parts)
    needed = set[str]()
    for index in missing:
        for name in KeptRows(before[index].path).ids:
            needed.update(barrier.needs(name))
    others = _set_aside(needed, before)
    for index in missing:
        rows = list(KeptRows(before[index].path))
        decided = (_apply(barrier, row, others) for row in rows)
        write_part(parts[index].path, map(step.keep, decided))
        yield index


def _set_aside(names: set[str], parts: Sequence[Part]) -> Spilled[Candidate]:
    """Return the rows with these ids, stored on disk by id."""
    rows = Spilled[Candidate]()
    for part in parts:
        kept = KeptRows(part.path)
        # Ids are a column of their own, so that rows nobody needs are not read.
        if names.isdisjoint(kept.ids):
            continue
        for row in kept:
            if row.id in names:
                rows.add(row.id, row)
    return rows


def _apply(barrier: Barrier, row: Candidate, others: Spilled[Candidate]) -> Row:
    needed = {name: others.find(name) for name in barrier.needs(row.id)}
    return barrier.apply(row, needed)


def _count(
    shards: Sequence[InputShard],
    steps: Sequence[Step],
    plan: Mapping[str, Sequence[Part]],
    num_redone: Mapping[str, int],
) -> list[StepCounts]:
    """Return the row counts of each step, from its parts."""
    step_counts = []
    num_in = sum(shard.num_rows for shard in shards)
    for step in steps:
        reasons = Counter[str]()
        for part in plan[step.name]:
            reasons += count_reasons(part.path)
        num_kept = reasons.pop("", 0)
        commonest_first = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
        step_counts.append(
            StepCounts(
                step=step.name,
                stage=step.stage,
                num_in=num_in,
                num_kept=num_kept,
                num_rejected=reasons.total(),
                reasons=dict(commonest_first),
                num_redone=num_redone[step.name],
            )
        )
        num_in = num_kept
    return step_counts

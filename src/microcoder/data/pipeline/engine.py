"""Runs steps over shards, and does only what is missing.

What was done is known by its files: the name of each result holds the key of everything that decides it. A run that
was killed finds its files and resumes; a changed step finds none of its own.
"""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from microcoder.data.pipeline.parts import (
    Part,
    SpilledObservations,
    SpilledRows,
    count_reasons,
    read_kept,
    read_ticks,
    write_part,
)
from microcoder.data.pipeline.steps import BarrierStep, InputShard, MapStep, Step, digest, step_key
from microcoder.data.pipeline.workers import Runner, run_step
from microcoder.judge.core.errors import DataError

OnProgress = Callable[[str, int, int], None]
"""Called with a step's name, the rows of the input that it has seen, and all of them; also if nothing changed, every
half second."""

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Row counts of one step: rows in are rows kept plus rows rejected."""

    step: str
    stage: str
    num_in: int
    num_kept: int
    num_rejected: int
    reasons: Mapping[str, int]
    """Why rows were rejected, the commonest first."""
    num_redone: int
    """Shards computed in this run; the others existed already."""


class Missing(NamedTuple):
    """Shards that a step has still to compute."""

    num_rows: int
    """Raw rows."""
    num_bytes: int
    """Bytes of these rows, unpacked."""


def run_steps(
    shards: Sequence[InputShard],
    collect: MapStep,
    steps: Sequence[Step],
    *,
    work: Path,
    runner: Runner,
    on_progress: OnProgress = lambda step, done, total: None,
) -> tuple[list[list[Part]], list[StepCounts]]:
    """Run all steps over all shards; return every step's parts and what came of it.

    Args:
        shards: the input.
        collect: the first step; its work is given the shards themselves.
        steps: the others, in order.
        work: folder of the parts.
        runner: where to run.
        on_progress: called as each step advances.

    Raises:
        DataError: a step lost a row or made one up.
    """
    everything = (collect, *steps)
    plan = _plan(everything, shards, work)
    redone = {name: sum(not part.is_there for part in parts) for name, parts in plan.items()}
    num_rows = sum(shard.num_rows for shard in shards)

    def tell(name: str, parts: Sequence[Part]) -> None:
        on_progress(name, _rows_done(shards, parts), num_rows)

    before: list[Part] = []
    for step in everything:
        parts = plan[step.name]
        tell(step.name, parts)
        missing = [index for index, part in enumerate(parts) if not part.is_there]
        if isinstance(step, BarrierStep) and missing:
            looks = SpilledObservations()
            of_rows = [str(part.path.absolute()) for part in before]
            for place, found in run_step(step, of_rows, [""] * len(of_rows), runner):
                looks.add(place, *found)
            _decide(step, looks, before, parts, tell)
        elif missing:
            given = [str(before[index].path.absolute()) if before else _describe(shards[index]) for index in missing]
            with _watched(step.name, parts, tell):
                list(run_step(step, given, [str(parts[index].path.absolute()) for index in missing], runner))
        before = parts
    return list(plan.values()), _count(shards, everything, plan, redone)


def count_missing(
    shards: Sequence[InputShard], collect: MapStep, steps: Sequence[Step], *, work: Path
) -> dict[str, Missing]:
    """Return, for each step, what the shards hold that it has still to do."""
    plan = _plan((collect, *steps), shards, work)
    left = {
        name: [shard for shard, part in zip(shards, parts, strict=True) if not part.is_there]
        for name, parts in plan.items()
    }
    return {
        name: Missing(sum(shard.num_rows for shard in found), sum(shard.num_bytes for shard in found))
        for name, found in left.items()
    }


def _plan(steps: Sequence[Step], shards: Sequence[InputShard], work: Path) -> dict[str, list[Part]]:
    """Name every part of every step: each key holds the step's own and its input's."""
    plan: dict[str, list[Part]] = {}
    keys = [digest("input", shard.digest) for shard in shards]
    for step in steps:
        own = step_key(step)
        if isinstance(step, BarrierStep):
            everything = digest(own, *keys)
            keys = [digest(everything, str(shard.number)) for shard in shards]
        else:
            keys = [digest(own, key) for key in keys]
        plan[step.name] = [Part.of(work, step.name, s.number, key) for s, key in zip(shards, keys, strict=True)]
    return plan


def _count(
    shards: Sequence[InputShard], steps: Sequence[Step], plan: Mapping[str, list[Part]], redone: Mapping[str, int]
) -> list[StepCounts]:
    step_counts = []
    num_in = sum(shard.num_rows for shard in shards)
    for step in steps:
        reasons = sum((count_reasons(part.path) for part in plan[step.name]), Counter())
        kept = reasons.pop("", 0)
        rejected = reasons.total()
        if kept + rejected != num_in:
            raise DataError(
                f"step {step.name} was given {num_in} rows and left {kept} + {rejected}; "
                "this is a fault of ours: please report it with the config"
            )
        why = dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0])))
        step_counts.append(StepCounts(step.name, step.stage, num_in, kept, rejected, why, redone[step.name]))
        num_in = kept
    return step_counts


def _decide(
    step: Step,
    looks: SpilledObservations,
    before: Sequence[Part],
    parts: Sequence[Part],
    tell: Callable[[str, Sequence[Part]], None],
) -> None:
    """Decide from what was seen of every row, then write the parts.

    A shard of rows is in memory, and the others that one of them needs.
    """
    barrier = step.opens(step.settings)
    barrier.decide(looks)
    missing = [index for index, part in enumerate(parts) if not part.is_there]
    wanted = {name for index in missing for own in looks.ids(index) for name in barrier.needs(own)}
    aside = SpilledRows()
    for index in range(len(parts)):
        if names := wanted.intersection(looks.ids(index)):
            aside.add(before[index].path, names)
    for index in missing:
        kept = read_kept(before[index].path)
        write_part(
            parts[index].path,
            (step.keep(barrier.apply(one, aside.find(barrier.needs(one.id)))) for one in kept),
        )
        tell(step.name, parts)


def _describe(shard: InputShard) -> str:
    return json.dumps({"source": shard.source, "place": shard.place, "num_rows": shard.num_rows})


def _rows_done(shards: Sequence[InputShard], parts: Sequence[Part]) -> int:
    ticks = read_ticks(parts[0].path.parent) if parts else {}
    return sum(
        shard.num_rows if part.is_there else int(ticks.get(part.path.name, 0.0) * shard.num_rows)
        for shard, part in zip(shards, parts, strict=True)
    )


@contextmanager
def _watched(name: str, parts: Sequence[Part], tell: Callable[[str, Sequence[Part]], None]) -> Iterator[None]:
    """Tell of rows that are done by looking for files: the same on one machine and on a cluster."""
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(_SECONDS_BETWEEN_LOOKS):
            tell(name, parts)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        is_over.set()
        watcher.join()
        tell(name, parts)

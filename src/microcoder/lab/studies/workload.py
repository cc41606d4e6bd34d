"""Time estimates of a study's runs: work from the recipes, speed from finished runs if there are any."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import count_processors
from microcoder.lab.studies.measure import read_measured
from microcoder.lab.studies.study import StudyMeasurement, StudyRun, Work
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.estimate import count_heldout
from microcoder.train.runs import RunDirectory

SECONDS_PER_TOKEN = 0.00016
"""Micro lab, one core, sampling, judging and updates: of a rollout, by the tokens that it may have."""
SECONDS_PER_SAMPLED_TOKEN = 0.00004
"""The same without updates."""
SECONDS_PER_RUN = 4.0
SECONDS_PER_MEASUREMENT = 30.0
"""Assumed until one of its kind is finished."""
SECONDS_PER_WORKER = 25.0
"""Loading torch and TRL."""
WARM_START_SECONDS = 150.0
MEMORY_GIB_PER_WORKER = 1.5


def count_work(config: TrainConfig) -> float:
    """Return the seconds a run takes on a quiet machine of reference (micro lab)."""
    rollouts = config.num_steps * config.batch.train_batch_size * config.rollout.num_samples
    longest, (_, sampled) = config.rollout.longest_response_tokens, count_heldout(config)
    return SECONDS_PER_RUN + SECONDS_PER_TOKEN * rollouts * longest + SECONDS_PER_SAMPLED_TOKEN * sampled


class StudySpeeds:
    """Measured speeds of finished work on this machine, by study, since their worlds differ."""

    def __init__(self, works: Sequence[Work]) -> None:
        """Measure the speeds of finished work."""
        self._factors: dict[str, list[float]] = {}
        self._measured: dict[tuple[str, str], list[float]] = {}
        self.spent_seconds = 0.0
        """By all finished work, one process at a time."""
        for work in works:
            if (seconds := recorded_seconds(work)) is None:
                continue
            self.spent_seconds += seconds
            if isinstance(work, StudyRun):
                self._factors.setdefault(work.study, []).append(seconds / count_work(work.config))
            else:
                self._measured.setdefault((work.study, work.name), []).append(seconds)

    @property
    def is_known(self) -> bool:
        """Anything is finished."""
        return bool(self._factors or self._measured)

    def seconds_of(self, work: Work) -> float:
        """Return the remaining seconds of a unit of work."""
        if isinstance(work, StudyMeasurement):
            known = self._measured.get((work.study, work.name))
            return median(known) if known else SECONDS_PER_MEASUREMENT
        own = self._factors.get(work.study)
        every = [factor for factors in self._factors.values() for factor in factors]
        return remaining_work(work) * (median(own) if own else median(every) if every else 1.0)


def recorded_seconds(work: Work) -> float | None:
    """Return the wall seconds of finished work; None if it is not finished."""
    if not work.is_finished:
        return None
    try:
        if isinstance(work, StudyMeasurement):
            return float(read_measured(work.folder)[1]["wall_seconds"])
        summary = RunDirectory(work.folder).read_summary()
    except DataError:
        return None
    return float(summary["wall_seconds"]) if summary else None


def remaining_work(run: StudyRun) -> float:
    """Return the estimated remaining seconds of a run, from its saved steps."""
    done = (RunDirectory(run.folder).latest_checkpoint_step() or 0) / run.config.num_steps
    return count_work(run.config) * (1 - done)


def estimate_seconds(missing: Sequence[Work], *, jobs: int, speeds: StudySpeeds) -> float:
    """Return the wall seconds that missing work will take by several processes."""
    if not missing:
        return 0.0
    works = [speeds.seconds_of(work) for work in missing]
    return SECONDS_PER_WORKER + max(sum(works) / jobs, *works) + (WARM_START_SECONDS if lacks_model(missing) else 0)


def lacks_model(missing: Sequence[Work]) -> bool:
    """Whether the micro model is not in the cache folder yet."""
    caches = {work.config.model.cache for work in missing if work.config.model.kind == "micro"}
    return any(not any(cache.glob("micro-*")) for cache in caches)


def default_jobs() -> int:
    """Return one process per core, limited by memory."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return max(1, min(count_processors(), int(pages / MEMORY_GIB_PER_WORKER)))


def catalogue(works: Sequence[Work], root: Path) -> dict[str, list[str]]:
    """Return what a folder stands for: folder -> study, level or measurement, seed."""
    named: dict[str, list[str]] = {}
    for work in works:
        named.setdefault(str(work.folder.relative_to(root)), []).append(work.label)
    return dict(sorted(named.items()))

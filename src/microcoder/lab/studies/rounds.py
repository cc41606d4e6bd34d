"""The order of a study's work: rounds of seeds until the intervals are narrow enough or the time is spent.

The first round is the first `first_look` seeds of every study. After each round a study's claims are looked at: those
whose primary effect has an interval wider than its smallest effect of interest get one more seed, of the levels and
measurements that they compare, as long as the study names seeds and the budget lasts. Narrow enough is a half width of
`precision` times the smallest effect at 95 %, and of the smallest effect at the strictest step of Holm's correction:
else a study would end with intervals that conclude by themselves and not among all.

What is looked at is the half width alone, never the effect or its sign, so that looking does not favour a verdict
(Chow and Robbins 1965: intervals of a fixed width keep their coverage in the limit). With few seeds a lucky small
spread stops too early; five before the first look keep that small: from five to ten seeds the intervals cover 93.1 % at
worst, and 2.7 % at worst of effects that are none are "supported", in place of 95 and 2.5.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import count_processors
from microcoder.lab.studies.claims import ClaimResult, judge_work
from microcoder.lab.studies.design import INSIGHTS, Claim, Study
from microcoder.lab.studies.effects import ALPHA
from microcoder.lab.studies.measure import read_measured
from microcoder.lab.studies.study import StudyFile, StudyMeasurement, StudyRun, Work, distinct_work, plan_work
from microcoder.lab.studies.verdicts import ClaimFinding
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.estimate import count_heldout
from microcoder.train.runs import RunDirectory

Look = Callable[[StudyFile], Sequence[ClaimResult]]
"""Judges a study's claims by its finished work."""


@dataclass
class StudyRounds:
    """A study's work, round by round."""

    file: StudyFile
    rounds: list[list[Work]]
    """The first holds several seeds, each further one a seed."""
    index: int = 0
    """Index of the round in progress."""
    open: dict[Path, Work] = field(default_factory=dict)
    """Unfinished work of that round."""


class Rounds:
    """Work for several processes; see the module."""

    def __init__(
        self,
        planned: Sequence[tuple[StudyFile, Sequence[Work]]],
        *,
        look: Look,
        seconds_of: Callable[[Work], float],
        budget_seconds: float | None = None,
        spent_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Begin with the first rounds.

        Args:
            planned: each study's work, as `plan_work` has it.
            look: see `Look`.
            seconds_of: expected time of a unit of work.
            budget_seconds: when to start nothing more; None: never.
            spent_seconds: time already spent by earlier commands.
            clock: seconds from any start.
        """
        self._look, self._seconds_of, self._clock = look, seconds_of, clock
        self._budget, self._spent, self._started = budget_seconds, spent_seconds, clock()
        self._waiting: list[Work] = []
        self._running: set[Path] = set()
        self._is_closed = False
        self._ended: set[Path] = set()
        self.studies = [StudyRounds(file, split_rounds(file.study, works)) for file, works in planned]
        self.left_out: list[Work] = []
        """Work left out for lack of time."""
        for study in self.studies:
            self._begin(study, study.rounds[0] if study.rounds else [])

    @property
    def waiting(self) -> list[Work]:
        """Work to do, as far as it is known yet."""
        return list(self._waiting)

    @property
    def is_exhausted(self) -> bool:
        """Whether no more work will come."""
        return not self._waiting and not self._running

    def take(self) -> Work | None:
        """Return the next work; None if it depends on work in progress, or there is none."""
        for work in self._waiting:
            if isinstance(work, StudyMeasurement) and not work.is_ready:
                if any(folder in self._running or self._is_waiting(folder) for folder in work.runs.values()):
                    continue
                self._waiting.remove(work)
                self._close(work.folder)
                return self.take()
            spent = self._spent + self._clock() - self._started
            if self._budget is not None and spent + self._seconds_of(work) > self._budget:
                self._is_closed = True
                self.left_out, self._waiting = self._waiting, []
                return None
            self._waiting.remove(work)
            self._running.add(work.folder)
            return work
        return None

    def ended(self, work: Work) -> None:
        """Note finished or failed work; looks at the claims of a study whose round is over."""
        self._running.discard(work.folder)
        self._close(work.folder)

    def _close(self, folder: Path) -> None:
        self._ended.add(folder)
        for study in self.studies:
            if study.open.pop(folder, None) is not None and not study.open:
                self._go_on(study)

    def _go_on(self, study: StudyRounds) -> None:
        while not self._is_closed and not study.open and study.index + 1 < len(study.rounds):
            study.index += 1
            levels, measurements = needed_work(study.file.study, self._look(study.file))
            if not levels and not measurements:
                return
            self._begin(
                study,
                [
                    work
                    for work in study.rounds[study.index]
                    if (work.level in levels if isinstance(work, StudyRun) else work.name in measurements)
                ],
            )

    def _begin(self, study: StudyRounds, works: Sequence[Work]) -> None:
        for work in works:
            if work.is_finished or work.folder in self._ended:
                continue
            study.open[work.folder] = work
            if not self._is_waiting(work.folder) and work.folder not in self._running:
                self._waiting.append(work)
        # Measurements are cheap, and low seeds of all studies come before high ones of any.
        self._waiting.sort(key=lambda work: (isinstance(work, StudyRun), work.seed))
        if not study.open and study.index == 0:
            self._go_on(study)

    def _is_waiting(self, folder: Path) -> bool:
        return any(work.folder == folder for work in self._waiting)


@dataclass(frozen=True)
class StudyPlan:
    """The work of some studies and its rounds."""

    works: Sequence[Work]
    """Each unit of work once."""
    shared: Sequence[Work]
    """The work, once for each study that needs it."""
    rounds: Rounds
    speeds: StudySpeeds


def plan_rounds(
    studies: Sequence[StudyFile], *, scale: str, root: Path, seeds_from: int, jobs: int, budget_seconds: float | None
) -> StudyPlan:
    """Plan the work of some studies; arguments as in `plan_runs` and `Rounds`."""
    planned = {file.name: plan_work(file, scale=scale, root=root, seeds_from=seeds_from) for file in studies}
    shared = [work for found in planned.values() for work in found]
    works = distinct_work(shared)
    speeds = StudySpeeds(works)
    rounds = Rounds(
        [(file, planned[file.name]) for file in studies],
        look=lambda file: judge_work(file, planned[file.name], scale=scale).claims,
        seconds_of=speeds.seconds_of,
        budget_seconds=budget_seconds,
        spent_seconds=speeds.spent_seconds / jobs,
    )
    return StudyPlan(works, shared, rounds, speeds)


def split_rounds(study: Study, works: Sequence[Work]) -> list[list[Work]]:
    """Return the work by rounds: the first seeds together, then seed by seed; runs before what reads them."""
    places: dict[str, list[int]] = {}
    by_round: dict[int, list[Work]] = {}
    round_of_run: dict[Path, int] = {}
    for work in sorted(works, key=lambda work: isinstance(work, StudyMeasurement)):
        seeds = places.setdefault(work.level if isinstance(work, StudyRun) else f"measurement {work.name}", [])
        seeds.append(work.seed)
        # Without claims there is nothing to look at on the way.
        number = max(0, len(seeds) - study.first_look) if study.claims else 0
        if isinstance(work, StudyRun):
            round_of_run[work.folder] = number
        else:
            number = max([number, *(round_of_run.get(folder, 0) for folder in work.runs.values())])
        by_round.setdefault(number, []).append(work)
    return [by_round[number] for number in sorted(by_round)]


def needed_work(study: Study, results: Sequence[ClaimResult]) -> tuple[set[str], set[str]]:
    """Return the levels and measurements that claims without a narrow enough interval compare."""
    levels: set[str] = set()
    measurements: set[str] = set()
    for result in results:
        if result.primary is None or result.raw is ClaimFinding.CANNOT_APPEAR or is_precise(result, study):
            continue
        wanted, read = compared_work(result.claim, study)
        levels |= wanted
        measurements |= read
    return levels, measurements


def is_precise(result: ClaimResult, study: Study) -> bool:
    """The interval of the primary effect is narrow enough, also at the strictest step of the correction for many."""
    part = result.primary
    if part is None or part.effect is None:
        return False
    num_claims = 1 if result.claim.says else len(INSIGHTS)
    least = part.predicate.least
    return part.effect.half_width <= study.precision * least and part.effect.half_width_at(ALPHA / num_claims) <= least


def compared_work(claim: Claim, study: Study) -> tuple[set[str], set[str]]:
    """Return the levels and measurements behind a claim's primary predicate."""
    primary = claim.primary
    if primary is None:
        return set(), set()
    if primary.measurement:
        return set(study.measurements[primary.measurement].uses), {primary.measurement}
    return set(primary.levels), set()


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
        done = (RunDirectory(work.folder).latest_checkpoint_step() or 0) / work.config.num_steps
        return count_work(work.config) * (1 - done) * (median(own) if own else median(every) if every else 1.0)


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

"""A study's work, round by round, in a pool of processes that each stay for much work: loading torch takes long.

The first round is the first `first_look` seeds of every study. After each round a study's claims are looked at: those
whose primary effect has too wide an interval get one more seed, of the levels and measurements that they compare, as
long as the study names seeds. Narrow enough is a half width of half the smallest effect of interest at the strictest
step of Holm's correction: wherever such an interval lies, it excludes no effect or the smallest one, so that the claim
is decided among all.

What is looked at is the half width alone, never the effect or its sign, so that looking does not favour a verdict
(Chow and Robbins 1965: intervals of a fixed width keep their coverage in the limit). With few seeds a lucky small
spread stops too early; five before the first look keep that small: from five to ten seeds the intervals cover 93.1 % at
worst, and 2.7 % at worst of effects that are none are "supported", in place of 95 and 2.5.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import shutil
import signal
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.connection import wait as wait_for_end
from pathlib import Path

from microcoder.judge.core.machine import count_processors
from microcoder.lab.studies.claims import ClaimResult, judge_work
from microcoder.lab.studies.design import INSIGHTS, Study, StudyFile
from microcoder.lab.studies.effects import ALPHA
from microcoder.lab.studies.measure import Job, run_measurement
from microcoder.lab.studies.verdicts import ClaimFinding
from microcoder.lab.studies.work import Work, distinct_work
from microcoder.train.run.checkpoints import Observer
from microcoder.train.runs import RunDirectory

Planned = Sequence[tuple[StudyFile, Sequence[Work]]]
"""Each study with its work, as `plan_work` has it."""
_MEMORY_GIB_PER_PROCESS = 1.5
_ATTEMPTS = 2
"""Of work whose process died (out of memory, killed)."""


def default_jobs() -> int:
    """Return one process per core, limited by memory."""
    gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return max(1, min(count_processors(), int(gib / _MEMORY_GIB_PER_PROCESS)))


def missing_work(planned: Planned, *, scale: str, failed: Collection[Path] = ()) -> list[Work]:
    """Return the work that can be done now of the round that each study is in; none if all are precise enough."""
    found: list[Work] = []
    for file, works in planned:
        needed: set[str] | None = None
        for number, of_round in enumerate(split_rounds(file.study, works)):
            if number and needed is None:
                needed = needed_names(file.study, judge_work(file, works, scale=scale).claims)
            missing = [
                work
                for work in of_round
                if (not number or work.name in (needed or ()))
                and work.folder not in failed
                and not work.is_finished
                and work.is_ready
            ]
            if missing:
                found += missing
                break
    return distinct_work(found)


def split_rounds(study: Study, works: Sequence[Work]) -> list[list[Work]]:
    """Return the work by rounds: the first seeds together, then seed by seed; a measurement comes with its runs."""
    places: Counter[tuple[bool, str]] = Counter()
    by_round: dict[int, list[Work]] = {}
    round_of: dict[Path, int] = {}
    for work in sorted(works, key=lambda work: work.measurement is not None):
        key = (work.measurement is None, work.name)
        places[key] += 1
        # Without claims there is nothing to look at on the way.
        number = max(0, places[key] - study.first_look) if study.claims else 0
        number = max([number, *(round_of.get(folder, 0) for folder in work.runs.values())])
        round_of[work.folder] = number
        by_round.setdefault(number, []).append(work)
    return [by_round[number] for number in sorted(by_round)]


def needed_names(study: Study, results: Sequence[ClaimResult]) -> set[str]:
    """Return the levels and measurements that claims without a narrow enough interval compare."""
    needed: set[str] = set()
    for result in results:
        part = result.primary
        if part is None or result.raw is ClaimFinding.CANNOT_APPEAR:
            continue
        family = INSIGHTS if result.claim.is_catalogued else [one for one in study.claims if not one.is_catalogued]
        contrast, alpha = part.contrast, ALPHA / len(family)
        if part.effect is not None and part.effect.half_width_at(alpha) <= contrast.least / 2:
            continue
        read = study.measurements[contrast.measurement].uses if contrast.measurement else contrast.levels
        needed |= {*read, *filter(None, [contrast.measurement])}
    return needed


def do_work(
    planned: Planned,
    *,
    scale: str,
    jobs: int,
    logs: Path,
    on_end: Callable[[Work, str], None],
    command: Sequence[str] = (),
) -> dict[str, str]:
    """Do what is missing of some studies; return why work failed, by its label.

    Args:
        planned: the studies.
        scale: as in `plan_runs`.
        jobs: processes.
        logs: folder of what they print.
        on_end: is called with each piece of work that is done, or has failed, and how.
        command: what the user typed, for the runs' manifests.

    Raises:
        KeyboardInterrupt: stopped by the user; each process ended after the step at hand, which was saved.
    """
    logs.mkdir(parents=True, exist_ok=True)
    failed: dict[Path, str] = {}
    labels: dict[Path, str] = {}

    def open_pool() -> ProcessPoolExecutor:
        # Spawned: a fork of a process with threads may hang.
        context = multiprocessing.get_context("spawn")
        return ProcessPoolExecutor(jobs, mp_context=context, initializer=_begin, initargs=(logs, jobs))

    pool, attempts, is_broken = open_pool(), Counter[Path](), False
    try:
        while waiting := missing_work(planned, scale=scale, failed=failed):
            running: dict[Future[str], Work] = {}
            while waiting or running:
                # No more than run at once: what is handed over can no longer be called back.
                while waiting and len(running) < jobs and not is_broken:
                    work = waiting.pop(0)
                    attempts[work.folder] += 1
                    running[pool.submit(_do, work, list(command))] = work
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    work = running.pop(future)
                    labels[work.folder] = work.label
                    try:
                        result = future.result()
                    except BrokenProcessPool:
                        is_broken = True
                        if attempts[work.folder] < _ATTEMPTS:
                            waiting.insert(0, work)
                            continue
                        result = failed[work.folder] = f"its process died; see {logs}"
                    except Exception as error:
                        result = failed[work.folder] = " ".join(f"{type(error).__name__}: {error}".split())
                    on_end(work, f"FAILED: {result}" if work.folder in failed else result)
                if is_broken and not running:
                    pool.shutdown()
                    pool, is_broken = open_pool(), False
    except KeyboardInterrupt:
        for process in multiprocessing.active_children():
            if process.pid:
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return {labels[folder]: reason for folder, reason in failed.items()}


def _begin(logs: Path, jobs: int) -> None:
    """Set up a process of the pool, before it loads anything."""
    if jobs > 1:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A Ctrl-C reaches it once, from the parent, and only at work.
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log = os.open(logs / f"worker-{os.getpid()}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(log, descriptor)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait_for_end([parent.sentinel])
    os._exit(0)


def _do(work: Work, command: list[str]) -> str:
    """Do a run or a measurement; return its result in words."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if work.measurement is not None:
            job = Job(work.seed, work.config, work.folder, work.runs)
            return f"{run_measurement(work.measurement, job)['num_rows']} rows"
        from microcoder.train.run.session import run_training

        summary = run_training(work.config, run_directory=work.folder, observer=Observer(), command=command)
        # A finished run is never resumed, and its weights are in model/: a catalogue would keep gigabytes of moments.
        shutil.rmtree(RunDirectory(work.folder).checkpoints, ignore_errors=True)
        return f"{summary['accuracy_before']:.3f} -> {summary['accuracy_after']:.3f}"
    except Exception:
        traceback.print_exc()
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.collect()

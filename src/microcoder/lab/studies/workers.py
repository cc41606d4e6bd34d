"""Runs a study's work in a pool of long-lived processes, since loading torch takes long."""

import gc
import multiprocessing
import os
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

from microcoder.judge.core.errors import TrainingError
from microcoder.judge.core.machine import count_processors, end_with_parent
from microcoder.lab.studies.work import Work, distinct_work, run_measurement
from microcoder.train.run.checkpoints import Observer
from microcoder.train.runs import RunDirectory

_MEMORY_GIB_PER_PROCESS = 1.5
"""Memory that a run of the micro lab is given, torch included."""


def default_jobs() -> int:
    """Return the default number of processes: one per core, limited by memory."""
    gib = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return max(1, min(count_processors(), int(gib / _MEMORY_GIB_PER_PROCESS)))


def missing_work(works: Sequence[Work], *, failed: Collection[Path] = ()) -> list[Work]:
    """Return the work that can be done now, each piece once.

    A measurement waits for the runs that it reads.

    Args:
        works: all planned work.
        failed: folders of work that failed, which is not done again.
    """
    missing = []
    for work in works:
        if work.folder in failed or work.is_finished:
            continue
        if work.is_ready:
            missing.append(work)
    return distinct_work(missing)


def do_work(
    works: Sequence[Work],
    *,
    jobs: int,
    logs: Path,
    on_end: Callable[[Work, str], None],
    command: Sequence[str] = (),
) -> dict[str, str]:
    """Do all work that is not finished; return the reasons of failures, by the work's label.

    Args:
        works: the studies' work, from `plan_work`.
        jobs: number of processes.
        logs: folder of their output.
        on_end: called with each work that is done or has failed, and its result as text.
        command: what the user typed, for the runs' manifests.

    Raises:
        TrainingError: a process died, killed or out of memory.
        KeyboardInterrupt: stopped by the user; each process ended after the step at hand, which
            was saved.
    """
    logs.mkdir(parents=True, exist_ok=True)
    failed: dict[Path, tuple[str, str]] = {}
    # Spawned: a fork of a process with threads may hang.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(
        jobs,
        mp_context=context,
        initializer=_begin,
        initargs=(logs, jobs),
    )
    try:
        running: dict[Future[str], Work] = {}
        while True:
            # Asked again and again: what reads a run comes as soon as that is finished, before the
            # runs of later seeds.
            busy = {work.folder for work in running.values()}
            missing = missing_work(works, failed=failed)
            waiting = [work for work in missing if work.folder not in busy]
            # No more than run at once: what is handed over can no longer be called back.
            for work in waiting[: jobs - len(running)]:
                running[pool.submit(_do, work, list(command))] = work
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                work = running.pop(future)
                try:
                    result = future.result()
                except BrokenProcessPool:
                    raise TrainingError(
                        f"the process of {work.label} died, of memory, say; see {logs}, and type "
                        "the same command again, with fewer --jobs"
                    ) from None
                except Exception as error:
                    reason = " ".join(f"{type(error).__name__}: {error}".split())
                    failed[work.folder] = (work.label, reason)
                    result = f"FAILED: {reason}"
                on_end(work, result)
    except KeyboardInterrupt:
        # They have sessions of their own, where the terminal's Ctrl-C does not reach them.
        for process in multiprocessing.active_children():
            if process.pid:
                os.kill(process.pid, signal.SIGINT)
        raise
    finally:
        pool.shutdown(cancel_futures=True)
    return dict(failed.values())


def _begin(logs: Path, jobs: int) -> None:
    """Prepare a process of the pool before it loads anything."""
    if jobs > 1:
        # Each process has a core: more threads would only wait for each other.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
    # A Ctrl-C reaches it once, from the parent, and only at work.
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    log_file = logs / f"worker-{os.getpid()}.log"
    log = os.open(log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    # The descriptors themselves, since libraries in C write there, too.
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(log, descriptor)
    end_with_parent()


def _do(work: Work, command: list[str]) -> str:
    """Do a training run or a measurement in this process; return its result in words."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        if work.measurement is not None:
            return f"{run_measurement(work, work.measurement)['num_rows']} rows"
        from microcoder.train.run.training import run_training

        summary = run_training(
            work.config,
            run_directory=work.folder,
            observer=Observer(),
            command=command,
        )
        # A finished run is never resumed, and its weights are in model/: a catalogue would keep
        # gigabytes of moments.
        shutil.rmtree(RunDirectory(work.folder).checkpoints, ignore_errors=True)
        return f"{summary['accuracy_before']:.3f} -> {summary['accuracy_after']:.3f}"
    except Exception:
        # Into this process's log: the parent gets one line of it.
        traceback.print_exc()
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        # The process lives on, and the next run's memory must not come on top.
        gc.collect()

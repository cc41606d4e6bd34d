"""Runs `python -m verl.trainer.main_ppo` in a process of its own, and tells the run's observer what it writes."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from microcoder.judge.core.errors import TrainingError
from microcoder.judge.fleet.ray import allow_slow_start
from microcoder.train.algorithm.schedules import transitions
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.alarms import find_alarms, select_new
from microcoder.train.run.checkpoints import stop_between_steps
from microcoder.train.run.observer import Observer
from microcoder.train.runs import RunDirectory
from microcoder.train.verl.recording import stop_file
from microcoder.train.verl.translate import Launch

POLL_SECONDS = 0.2
PATIENCE_SECONDS = 20.0
"""For verl's processes to end by themselves."""
_ERROR = re.compile(r"^(?:\x1b\[\d+m)?(?:\(.*?\) ?)?(?:\x1b\[0m ?)?(?:[\w.]+\.)?(\w*(?:Error|Fault|Exception)): (.+)")
OWN_ERRORS = ("ConfigError", "DataError", "EvaluatorFault", "TrainingError")
_PARENT_DIED = 1  # prctl's PR_SET_PDEATHSIG


def build_environment(*, num_threads: int | None) -> dict[str, str]:
    """Return what verl's processes are started with."""
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "HYDRA_FULL_ERROR": "1"}
    allow_slow_start(environment)
    if num_threads is not None:
        environment["OMP_NUM_THREADS"] = str(num_threads)
    return environment


def run_verl(
    launch: Launch,
    *,
    run: RunDirectory,
    config: TrainConfig,
    environment: Mapping[str, str],
    observer: Observer,
) -> None:
    """Train until verl ends; Ctrl-C ends it after the step at hand, saved."""
    run.logs.mkdir(parents=True, exist_ok=True)
    stop_file(run).unlink(missing_ok=True)
    log_file = run.logs / "verl.log"
    begins = log_file.stat().st_size if log_file.exists() else 0
    command = [sys.executable, "-m", "verl.trainer.main_ppo", *launch.words]
    watcher = _Watcher(run, config, observer)

    def ask() -> bool:
        """Ask by a file that the trainer looks for: it runs in another process, perhaps on another machine."""
        is_new = not stop_file(run).exists()
        stop_file(run).touch()
        return is_new

    observer.phase("start verl")
    with log_file.open("ab") as log:
        process = subprocess.Popen(
            command,
            env=dict(environment),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_die_with_parent,
        )
        try:
            with stop_between_steps(ask, observer):
                while process.poll() is None:
                    watcher.look()
                    time.sleep(POLL_SECONDS)
            watcher.look()
        finally:
            _end(process)
            stop_file(run).unlink(missing_ok=True)
    if process.returncode:
        cause = find_cause(log_file, begins) or f"it ended with code {process.returncode}"
        raise TrainingError(
            f"verl failed: {cause}; its log is {log_file}; the same command resumes from the last checkpoint"
        )


def find_cause(log_file: Path, begins: int) -> str | None:
    """Return the last error that a log names, from a place on; one of ours before what others made of it."""
    with log_file.open("rb") as file:
        file.seek(begins)
        lines = file.read().decode("utf-8", "replace").splitlines()
    found = [match for line in lines if (match := _ERROR.match(line.strip()))]
    found.sort(key=lambda match: match[1] in OWN_ERRORS)
    return f"{found[-1][2].strip()} ({found[-1][1]})" if found else None


class _Watcher:
    def __init__(self, run: RunDirectory, config: TrainConfig, observer: Observer) -> None:
        self._run, self._config, self._observer = run, config, observer
        self._sizes: dict[Path, int] = {}
        self._rows = run.read_metrics()
        self._evaluated = {row["step"] for row in run.read_evaluations()}
        self._has_changed(run.metrics)
        self._has_changed(run.evaluations)
        self._has_changed(run.probe)

    def look(self) -> None:
        if self._has_changed(self._run.probe):
            from microcoder.train.run.probe import read_probe

            self._observer.probe(read_probe(self._run))
        if self._has_changed(self._run.evaluations):
            for row in self._run.read_evaluations():
                if row["step"] not in self._evaluated:
                    self._evaluated.add(row["step"])
                    self._observer.evaluation(EvaluationMetrics(**row))
        if self._has_changed(self._run.metrics):
            rows = self._run.read_metrics()
            for number in range(len(self._rows), len(rows)):
                self._tell_step(rows[: number + 1])
            self._rows = rows

    def _has_changed(self, path: Path) -> bool:
        size = path.stat().st_size if path.exists() else 0
        before, self._sizes[path] = self._sizes.get(path, 0), size
        return size != before

    def _tell_step(self, rows: Sequence[Mapping[str, Any]]) -> None:
        metrics, before, rollout = StepMetrics(**rows[-1]), rows[:-1], self._config.rollout
        self._observer.step(metrics, num_steps=self._config.num_steps)
        breaks = transitions(rollout.temperature)
        alarms = find_alarms(metrics, history=before, watch=rollout.diversity_watch, breaks=breaks)
        for alarm in select_new(alarms, before):
            self._observer.note(f"step {metrics.step}: {alarm}")


def _die_with_parent() -> None:
    """A launcher that is killed leaves nothing behind: the run can be resumed at once."""
    ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is not None:
        return
    for sign in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(process.pid, sign)
        try:
            process.wait(PATIENCE_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue

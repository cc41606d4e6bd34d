"""The pool of processes that does the runs and measurements of studies, and replaces processes that die.

A study at full scale: one overlay per level, the commands that start its runs, and their cost.

A worker process of a study: reads runs and measurements from standard input, one JSON line each, and writes events
to standard output.

It stays for much work, since loading torch and TRL takes longer than a short run's first steps. It ends when its input
does, also in the middle of a run: the parent has gone, and finished steps are in checkpoints.
"""

from __future__ import annotations

import gc
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Protocol, TextIO

from microcoder.judge.core.config import SHIPPED
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.files import write_text
from microcoder.lab.studies.design import Measurement
from microcoder.lab.studies.jobs import Job
from microcoder.lab.studies.measure import run_measurement
from microcoder.lab.studies.rounds import Rounds
from microcoder.lab.studies.study import StudyFile, StudyRun, Work, level_keys, resolve_config
from microcoder.train.metrics import EvaluationMetrics, StepMetrics
from microcoder.train.recipe.recipe import ProblemFiles, TrainConfig
from microcoder.train.run.estimate import RunEstimate, estimate_run
from microcoder.train.run.manifest import digest_config
from microcoder.train.run.observer import Observer
from microcoder.train.runs import RunDirectory

_UNSAFE = " ,./%"


@dataclass(frozen=True, slots=True)
class RunToStart:
    """A run to start, with all studies that share it."""

    names: list[str]
    overlay: Path
    recipe: Path
    seed: int
    config: TrainConfig
    estimate: RunEstimate

    @property
    def gpu_hours(self) -> float | None:
        """Sampling and updating on one H100, every response as long as allowed."""
        if self.estimate.generate_hours is None or self.estimate.update_hours is None:
            return None
        return self.estimate.generate_hours + self.estimate.update_hours


def write_plan(studies: Sequence[StudyFile], *, scale: str, output: Path, dollars_per_hour: float) -> Path:
    """Write overlays, `launch.sh` and the plan with its costs; return the plan."""
    launches: dict[str, RunToStart] = {}
    for file in studies:
        for seed in file.scale(scale).seeds:
            for level in file.study.levels:
                config = resolve_config(file, scale=scale, level=level, seed=seed)
                name, digest = f"{file.name}, {level}", digest_config(config)
                if digest in launches:
                    launches[digest].names.append(name)
                    continue
                overlay = _write_overlay(file, scale=scale, level=level, output=output)
                recipe = Path(os.path.relpath(file.path.parent / file.scale(scale).baseline))
                estimate = estimate_run(config, device="gpu")
                launches[digest] = RunToStart([name], overlay, recipe, seed, config, estimate)
    if not launches:
        raise ConfigError(f"nothing to plan at {scale}")
    write_text(output / "launch.sh", "\n".join(["#!/bin/sh", "set -e", *map(_command, launches.values()), ""]))
    path = output / "plan.md"
    write_text(path, "\n".join(_plan(list(launches.values()), scale, dollars_per_hour)))
    return path


def _write_overlay(file: StudyFile, *, scale: str, level: str, output: Path) -> Path:
    keys = {**file.study.set, **file.scale(scale).set, **level_keys(file.study, scale=scale, level=level)}
    stem = "".join("-" if c in _UNSAFE else c for c in level).strip("-")
    path = output / file.name / f"{stem}.toml"
    lines = [f"# {file.study.question} Level: {level}."]
    write_text(path, "\n".join([*lines, *(f"{key} = {to_toml(value)}" for key, value in keys.items()), ""]))
    return path


def to_toml(value: object) -> str:
    """Return a value of a recipe as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {to_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return json.dumps(value)


def _command(launch: RunToStart) -> str:
    folder = Path("runs") / launch.overlay.parent.name / f"{launch.overlay.stem}-seed{launch.seed}"
    sharding = os.path.relpath(SHIPPED / "recipes" / "accelerate" / "fsdp.yaml")
    words = [
        "accelerate", "launch", "--config_file", sharding, "-m", "microcoder", "train",
        "-c", str(launch.recipe), "-c", str(launch.overlay), "--seed", str(launch.seed), "--run-dir", str(folder),
    ]  # fmt: skip
    return shlex.join(words)


def _plan(launches: Sequence[RunToStart], scale: str, dollars_per_hour: float) -> list[str]:
    known = [hours for launch in launches if (hours := launch.gpu_hours) is not None]
    judging = sum(launch.estimate.judge_core_hours for launch in launches)
    rows = [
        "| run | seed | steps | rollouts | tokens, at most | H100-hours, at most | dollars |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for launch in launches:
        hours, estimate = launch.gpu_hours, launch.estimate
        cost = ["-", "-"] if hours is None else [f"{hours:,.0f}", f"{hours * dollars_per_hour:,.0f}"]
        cells: list[Any] = [
            "; ".join(launch.names), launch.seed, estimate.num_steps, f"{estimate.rollouts:,}",
            f"{estimate.max_tokens:,}", *cost,
        ]  # fmt: skip
        rows.append(f"| {' | '.join(map(str, cells))} |")
    problems = [launch.config.problems for launch in launches]
    files = sorted({str(path) for p in problems if isinstance(p, ProblemFiles) for path in (p.train, p.heldout)})
    return [
        f"# Launch plan at {scale}",
        "",
        f"{len(launches)} distinct runs, at most {sum(known):,.0f} H100-hours "
        f"({sum(known) * dollars_per_hour:,.0f} dollars at {dollars_per_hour:g} an hour) and {judging:,.0f} "
        "core-hours of judging. Every response is counted at its limit, and speeds are assumptions "
        "(docs/resources.md): a bound for planning, no measurement.",
        "",
        f"Needed first: {', '.join(files) or 'nothing'}. Then `sh launch.sh`, or its lines one by one on as many nodes "
        "as there are; a line that is run again resumes its run.",
        "",
        *rows,
        "",
    ]


_ATTEMPTS = 2
"""Retries of a run whose process died (out of memory, killed)."""
_POLL_SECONDS = 0.2
_PATIENCE_SECONDS = 120
"""Time for a stopped process to finish its step."""


class StudyObserver(Protocol):
    """Receives the events of a study's runs; calls come from one thread at a time."""

    def started(self, work: Work, *, worker: int) -> None:
        """A process has started the work."""

    def advanced(self, work: Work, event: dict[str, Any], *, worker: int) -> None:
        """A step, an evaluation or a phase of a run."""

    def ended(self, work: Work, event: dict[str, Any], *, worker: int) -> None:
        """The work is done, or has failed: the event has `error`."""


@dataclass(frozen=True, slots=True)
class FailedWork:
    """Work that failed."""

    work: Work
    error: str


class StudyWorkers:
    """A pool of processes; `run` returns when all work is done or has failed."""

    def __init__(self, *, jobs: int, logs: Path, observer: StudyObserver, command: Sequence[str] = ()) -> None:
        self.jobs, self.logs, self.command = jobs, logs, list(command)
        self._observer = observer
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._failures: list[FailedWork] = []
        self._broken: Exception | None = None

    def run(self, source: Rounds) -> list[FailedWork]:
        """Do the work; return what failed.

        Raises:
            KeyboardInterrupt: stopped by the user; each process ended after the step at hand, which was saved.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        threads = [
            threading.Thread(target=self._guard, args=(number, source), daemon=True) for number in range(self.jobs)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.5)
        except KeyboardInterrupt:
            self._stop(threads)
            raise
        if self._broken is not None:
            self._signal(signal.SIGKILL)
            raise self._broken
        return self._failures

    def _guard(self, number: int, source: Rounds) -> None:
        """Stop everything on an internal error, such as unreadable finished work; `run` raises it."""
        try:
            self._work(number, source)
        except Exception as error:
            with self._lock:
                self._broken = self._broken or error
            self._is_stopping.set()

    def _stop(self, threads: Sequence[threading.Thread]) -> None:
        self._is_stopping.set()
        self._signal(signal.SIGINT)
        try:
            for thread in threads:
                thread.join(_PATIENCE_SECONDS)
        except KeyboardInterrupt:
            pass
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with self._lock:
            for process in self._processes.values():
                if process.poll() is None:
                    process.send_signal(number)

    def _work(self, number: int, source: Rounds) -> None:
        process: subprocess.Popen[str] | None = None
        last: dict[str, Any] | None = None
        while (work := self._take(source)) is not None:
            self._notify(self._observer.started, work, worker=number)
            for attempt in range(1, _ATTEMPTS + 1):
                if process is None or process.poll() is not None:
                    process = self._start(number)
                last = self._follow(process, work, number)
                if last is not None or self._is_stopping.is_set() or attempt == _ATTEMPTS:
                    break
            if last is None:
                last = {"kind": "failed", "error": f"its process died; see {self._log(number)}"}
            if last["kind"] == "stopped" or self._is_stopping.is_set():
                break
            if last["kind"] == "failed":
                with self._lock:
                    self._failures.append(FailedWork(work, last["error"]))
                # What failed may have left it half-loaded or short of memory.
                if process is not None:
                    _dismiss(process)
            self._notify(self._observer.ended, work, last, worker=number)
            with self._lock:
                source.ended(work)
        if process is not None:
            _dismiss(process)

    def _take(self, source: Rounds) -> Work | None:
        while not self._is_stopping.is_set():
            with self._lock:
                if (work := source.take()) is not None:
                    return work
                if source.is_exhausted:
                    return None
            self._is_stopping.wait(_POLL_SECONDS)
        return None

    def _log(self, number: int) -> Path:
        return self.logs / f"worker-{number}.log"

    def _start(self, number: int) -> subprocess.Popen[str]:
        # A session of its own: a Ctrl-C reaches it once, from here.
        environment = {"OMP_NUM_THREADS": "1", **os.environ} if self.jobs > 1 else dict(os.environ)
        with self._log(number).open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "microcoder.lab.studies.workers"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=environment,
                start_new_session=True,
            )
        with self._lock:
            self._processes[number] = process
        return process

    def _follow(self, process: subprocess.Popen[str], work: Work, number: int) -> dict[str, Any] | None:
        """Let a process do work; return its last event, or None if the process died."""
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(self._order(work)) + "\n")
            process.stdin.flush()
        except OSError:
            return None
        for line in process.stdout:
            event = json.loads(line)
            if event["kind"] in ("done", "failed", "stopped"):
                return event
            self._notify(self._observer.advanced, work, event, worker=number)
        process.wait()
        return None

    def _order(self, work: Work) -> dict[str, Any]:
        config = work.config.model_dump(mode="json")
        if isinstance(work, StudyRun):
            return {"kind": "run", "folder": str(work.folder), "config": config, "command": self.command}
        return {
            "kind": "measurement",
            "folder": str(work.folder),
            "config": config,
            "seed": work.seed,
            "measurement": work.measurement.model_dump(mode="json"),
            "runs": {level: str(folder) for level, folder in work.runs.items()},
        }

    def _notify(self, listener: Callable[..., None], *facts: Any, worker: int) -> None:
        with self._lock:
            listener(*facts, worker=worker)


def _dismiss(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    process.wait()
    process.stdout.close()


class _Events(Observer):
    def __init__(self, channel: TextIO) -> None:
        self._channel = channel

    def emit(self, kind: str, **facts: Any) -> None:
        """Write one line; if nobody reads it, the end of standard input ends the process."""
        self._channel.write(json.dumps({"kind": kind, **facts}) + "\n")
        self._channel.flush()

    def phase(self, name: str) -> None:
        """Building the micro model is the one phase that takes minutes."""
        if name == "warm start":
            self.emit("phase", name=name)

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        self.emit("step", step=metrics.step, num_steps=num_steps)

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        self.emit("evaluation", step=metrics.step, accuracy=metrics.accuracy)

    def note(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Do the incoming work until the input ends."""
    # Libraries print; what is read as our lines must be ours alone.
    channel = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    events = _Events(channel)
    waiting: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_read, args=(waiting,), daemon=True).start()
    while True:
        if not _run(json.loads(waiting.get()), events):
            return


def _read(waiting: SimpleQueue[str]) -> None:
    for line in sys.stdin:
        waiting.put(line)
    os._exit(0)


def _run(order: dict[str, Any], events: _Events) -> bool:
    try:
        result = _measure(order) if order["kind"] == "measurement" else _train(order, events)
    except KeyboardInterrupt:
        events.emit("stopped")
        return False
    except Exception as error:
        traceback.print_exc()
        events.emit("failed", error=" ".join(f"{type(error).__name__}: {error}".split()))
        return True
    gc.collect()
    events.emit("done", result=result)
    return True


def _train(order: dict[str, Any], events: _Events) -> str:
    from microcoder.train.run.session import run_training

    folder = Path(order["folder"])
    config = TrainConfig.model_validate(order["config"])
    summary = run_training(config, run_directory=folder, observer=events, command=order["command"])
    # A finished run is never resumed, and its weights are in model/: a catalogue would keep gigabytes of moments.
    shutil.rmtree(RunDirectory(folder).checkpoints, ignore_errors=True)
    return f"{summary['accuracy_before']:.3f} -> {summary['accuracy_after']:.3f}"


def _measure(order: dict[str, Any]) -> str:
    config = TrainConfig.model_validate(order["config"])
    runs = {level: Path(folder) for level, folder in order["runs"].items()}
    job = Job(order["seed"], config, Path(order["folder"]), runs)
    summary = run_measurement(Measurement.model_validate(order["measurement"]), job)
    return f"{summary['num_rows']} rows"


if __name__ == "__main__":
    main()

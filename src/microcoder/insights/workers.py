"""The pool of processes that does the runs and measurements of studies, and replaces processes that die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from microcoder.insights.rounds import Rounds
from microcoder.insights.study import StudyRun, Work

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
        """Wait for the next piece of work; None when there is no more."""
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
                [sys.executable, "-m", "microcoder.insights.worker"],
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
    """End an idle process by closing its input."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    process.wait()
    process.stdout.close()

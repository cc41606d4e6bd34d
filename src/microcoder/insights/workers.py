"""Several training processes at work on the runs of a study: started, fed, watched, replaced when they die."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from microcoder.insights.study import StudyRun

_ATTEMPTS = 2
"""A process that dies on a run (out of memory, killed) is replaced once for it."""
_PATIENCE_SECONDS = 120
"""Given to a stopped process for the step at hand."""


class StudyObserver(Protocol):
    """Told how the runs of a study go on; calls come from one thread at a time."""

    def started(self, run: StudyRun, *, worker: int) -> None:
        """A process has taken a run."""

    def advanced(self, run: StudyRun, event: dict[str, Any], *, worker: int) -> None:
        """A step, an evaluation or a phase of a run."""

    def ended(self, run: StudyRun, event: dict[str, Any], *, worker: int) -> None:
        """A run is done, or has failed: the event has `error`."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A run that could not be finished."""

    run: StudyRun
    error: str


class Workers:
    """Does runs by several processes; `run` returns when all are done or failed."""

    def __init__(self, *, jobs: int, logs: Path, observer: StudyObserver, command: Sequence[str] = ()) -> None:
        self.jobs, self.logs, self.command = jobs, logs, list(command)
        self._observer = observer
        self._lock = threading.Lock()
        self._is_stopping = threading.Event()
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._failures: list[Failure] = []

    def run(self, runs: Sequence[StudyRun]) -> list[Failure]:
        """Do the runs; return those that failed.

        Raises:
            KeyboardInterrupt: stopped by the user; each process ended after the step at hand, which was saved.
        """
        waiting = deque(runs)
        self.logs.mkdir(parents=True, exist_ok=True)
        threads = [
            threading.Thread(target=self._work, args=(number, waiting), daemon=True)
            for number in range(min(self.jobs, len(waiting)))
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
        return self._failures

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

    def _work(self, number: int, waiting: deque[StudyRun]) -> None:
        process: subprocess.Popen[str] | None = None
        while waiting and not self._is_stopping.is_set():
            try:
                run = waiting.popleft()
            except IndexError:
                break
            self._tell(self._observer.started, run, worker=number)
            for attempt in range(1, _ATTEMPTS + 1):
                if process is None or process.poll() is not None:
                    process = self._start(number)
                last = self._follow(process, run, number)
                if last is not None or self._is_stopping.is_set() or attempt == _ATTEMPTS:
                    break
            if last is None:
                last = {"kind": "failed", "error": f"its process died; see {self._log(number)}"}
            if last["kind"] == "stopped" or self._is_stopping.is_set():
                break
            if last["kind"] == "failed":
                with self._lock:
                    self._failures.append(Failure(run, last["error"]))
                # What failed may have left it half-loaded or short of memory.
                if process is not None:
                    _dismiss(process)
            self._tell(self._observer.ended, run, last, worker=number)
        if process is not None:
            _dismiss(process)

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

    def _follow(self, process: subprocess.Popen[str], run: StudyRun, number: int) -> dict[str, Any] | None:
        """Have a run done; return its last event, or None when the process died over it."""
        assert process.stdin is not None
        assert process.stdout is not None
        order = {"folder": str(run.folder), "config": run.config.model_dump(mode="json"), "command": self.command}
        try:
            process.stdin.write(json.dumps(order) + "\n")
            process.stdin.flush()
        except OSError:
            return None
        for line in process.stdout:
            event = json.loads(line)
            if event["kind"] in ("done", "failed", "stopped"):
                return event
            self._tell(self._observer.advanced, run, event, worker=number)
        process.wait()
        return None

    def _tell(self, listener: Callable[..., None], *facts: Any, worker: int) -> None:
        with self._lock:
            listener(*facts, worker=worker)


def _dismiss(process: subprocess.Popen[str]) -> None:
    """End a process that has nothing to do, by ending its input."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.close()
    process.wait()
    process.stdout.close()

"""The disposable process of a judge, seen from outside: a case in, an answer out, killed if none comes."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import secrets
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import microcoder
from microcoder.errors import EvaluatorFault
from microcoder.yardstick.cases import Case
from microcoder.yardstick.catalogue import TestedJudge

_WORKER = Path(__file__).parent / "inside" / "worker.py"
_START_SECONDS = 180.0
_KILL_SECONDS, _KILL_FACTOR = 25.0, 2.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer to a case."""

    accepted: bool | None
    """None: no answer, or an undecided one."""
    error: str = ""
    """The exception it raised; `killed` if it gave no answer in time, `ended` if its process ended."""
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the judge and all it started."""
    left: tuple[str, ...] = ()
    """Processes without a parent and files in shared folders that were not there before."""


class Lane:
    """One judge's process; a new one is started whenever the last was killed or went away."""

    def __init__(self, judged: TestedJudge, *, contain: bool = True, patience_seconds: float = _KILL_SECONDS) -> None:
        """Start the judge.

        Args:
            judged: which.
            contain: whether programs that run in its process are kept from this machine.
            patience_seconds: how long it may take beyond twice the time limits of a case's tests.

        Raises:
            EvaluatorFault: it does not start, or cannot be contained.
        """
        self.judged, self._contain, self._patience = judged, contain and judged.known.runs_here, patience_seconds
        self.num_started = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.about, self.containment, self.start_seconds = "", "", 0.0
        self._start()

    def ask(self, case: Case) -> Answer:
        """Put a case to the judge."""
        if self._process is None:
            self._start()
        patience = self._patience + _KILL_FACTOR * case.time_limit_seconds * len(case.tests)
        started = time.monotonic()
        said = self._exchange(
            {"problem": {}, **case.as_record(), "time_limit_seconds": case.time_limit_seconds}, patience
        )
        if said is None:
            seconds = time.monotonic() - started
            self.close()
            return Answer(None, "killed" if seconds >= patience else "ended", seconds)
        return Answer(said["accepted"], said["error"], said["seconds"], said["cpu_seconds"], tuple(said["left"]))

    def close(self) -> None:
        """End the judge and everything it started."""
        if self._process is None:
            return
        process, self._process = self._process, None
        # Its namespaces end with it; without them, what it started in its session does.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for stream in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                if stream:
                    stream.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._folder, self._token = tempfile.mkdtemp(prefix="yardstick-"), secrets.token_hex(8)
        log = Path(self._folder) / "log"
        keep = [str(_WORKER.parents[2]), *_folders_of(self.judged)]
        settings = {
            "judge": self.judged.name,
            "path": self.judged.path,
            "contain": self._contain,
            "keep": keep,
            "token": self._token,
            "log": str(log),
            "folder": os.path.join("/tmp", os.path.basename(self._folder)),
        }
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if self.judged.name in ("microcoder", "http-v1"):
            environment["PYTHONPATH"] = str(Path(microcoder.__file__).parents[1])
        command = [self.judged.python, str(_WORKER), json.dumps(settings)]
        with log.open("ab") as said_of_it:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said_of_it,
                start_new_session=True,
                env=environment,
            )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        threading.Thread(target=_read, args=(self._process.stdout, self._lines), daemon=True).start()
        said = self._read_answer(_START_SECONDS)
        self.num_started += 1
        if said is None:
            words = log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
            self.close()
            raise EvaluatorFault(f"the judge {self.judged.label} does not start: {words[0]}")
        if self._contain and said["containment"]:
            self.close()
            raise EvaluatorFault(
                f"the judge {self.judged.label} cannot be contained here ({said['containment']}), and forged programs "
                "would run as you; use a machine with user namespaces, or a container made for nothing else, "
                "with --uncontained"
            )
        self.about, self.containment, self.start_seconds = said["about"], said["containment"], said["start_seconds"]

    def _exchange(self, message: dict[str, Any], patience: float) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            return None
        return self._read_answer(patience, message["id"])

    def _read_answer(self, patience: float, case_id: str | None = None) -> dict[str, Any] | None:
        """Return the next line of the worker's own: programs may write into whatever is open to them."""
        end = time.monotonic() + patience
        while (rest := end - time.monotonic()) > 0:
            try:
                line = self._lines.get(timeout=rest)
            except queue.Empty:
                return None
            if line is None:
                return None
            try:
                said = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(said, dict) and said.get("token") == self._token and said.get("id") == case_id:
                return said
        return None


def _folders_of(judged: TestedJudge) -> list[str]:
    """Return the folders that a judge is read from, which must stay in sight wherever they are."""
    file = judged.path.rpartition(":")[0] if judged.name in ("function", "lcb") else judged.path
    path = Path(file).absolute()
    folders = [] if not file or not path.exists() else [str(path if path.is_dir() else path.parent)]
    # A virtual environment: what its interpreter is, and what it holds.
    environment = Path(judged.python).absolute().parents[1]
    return [*folders, str(environment)] if (environment / "pyvenv.cfg").exists() else folders


def _read(stream: Any, lines: queue.Queue[bytes | None]) -> None:
    with contextlib.suppress(OSError, ValueError):
        for line in iter(lambda: stream.readline(1 << 20), b""):
            lines.put(line)
    lines.put(None)

"""The process of a judge under test, which is asked one case after the other."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import microcoder
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.sandbox import kernel
from microcoder.lab.yardstick.cases import Case
from microcoder.lab.yardstick.named_judges import TestedJudge

_QUICK_SECONDS = 10.0
"""Time of an answer above which a case is not asked again."""

_WORKER = Path(__file__).parent / "contained" / "worker.py"
"""The script that runs in the judge's process."""

_START_SECONDS = 180.0
"""Time that a judge has to start."""

_KILL_SECONDS = 25.0
"""Time of an answer beyond the time limits of its tests, after which the judge is killed."""

_KILL_FACTOR = 2.0
"""Number of its time limits that each test may take."""

_ASKED = ("id", "title", "code", "tests", "fn_name", "time_limit_seconds", "problem")
"""Fields of a case that are sent to a judge: without the right answer and its reason."""

_READ_BYTES = 1 << 16
"""Most bytes that are read at a time."""

_LONGEST_BYTES = 1 << 20
"""Bytes of a line without an end that are kept; a worker's own lines are shorter."""


def _canary(name: str, code: str, *, expect: bool) -> Case:
    """Return a case that a judge gets right unless a program before has damaged it."""
    return Case(
        id=f"canary-{name}",
        suite="isolation",
        title="canary",
        flaw="V1",
        expect=expect,
        why="",
        code=code,
        tests=(("20 22\n", "42\n"),),
    )


_RIGHT = _canary("right", "print(sum(map(int, input().split())))", expect=True)
"""A program that every judge accepts."""

_WRONG = _canary("wrong", "print(41)", expect=False)
"""A program that every judge refuses."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A judge's answer to a case, and what was wrong with it."""

    case: Case
    accepted: bool | None = None
    """The judge's answer; None if there was none, or it was undecided."""
    error: str = ""
    """The exception that the judge raised; `killed` if it gave no answer in time, `ended` if its
    process ended."""
    seconds: float = 0.0
    left: tuple[str, ...] = ()
    """Processes without a parent and files in shared folders that were not there before."""
    what: str = ""
    """What was wrong with the first answer; empty if nothing was."""
    is_unsteady: bool = False
    """Whether the judge was wrong at first and right on the second try, which does not count as a
    miss."""

    @property
    def is_miss(self) -> bool:
        """Whether the judge was wrong on all tries."""
        return bool(self.what) and not self.is_unsteady


def put_case(lane: Lane, case: Case) -> CaseResult:
    """Run a case on a judge, again after a miss.

    So a busy machine does not count against the judge.
    """
    first = _put_once(lane, case)
    if not first.what:
        return first
    # A second try would take as long again.
    if first.seconds > _QUICK_SECONDS or first.error in ("killed", "ended"):
        return first
    second = _put_once(lane, case)
    if second.what:
        return first
    return replace(second, what=first.what, is_unsteady=True)


def _put_once(lane: Lane, case: Case) -> CaseResult:
    answer = lane.ask(case)
    fault = _find_miss(case, answer)
    if case.suite == "isolation" and not fault:
        fault = _find_damage(lane, answer)
    return replace(answer, what=fault)


def _find_miss(case: Case, answer: CaseResult) -> str:
    """Return what is wrong with an answer; empty if nothing is.

    Any answer but an acceptance counts as a refusal, even that the judge's process ended. Only
    cases about crashes tell these apart.
    """
    is_ending_wrong = case.expect or case.suite in ("isolation", "timeouts")
    if is_ending_wrong and answer.error == "killed":
        return "no verdict in time"
    if is_ending_wrong and answer.error == "ended":
        return "the judge's own process ended"
    if case.expect and answer.accepted is None:
        return f"no verdict: {answer.error or 'unscored'}"
    if bool(answer.accepted) == case.expect:
        return ""
    if case.expect:
        return "refused"
    return "the program says that it did harm" if case.suite == "isolation" else "accepted"


def _find_damage(lane: Lane, answer: CaseResult) -> str:
    """Return the damage that a case's program did; empty if none.

    Damage is something left behind, or a judge that now fails.
    """
    if answer.left:
        return f"left behind: {', '.join(answer.left[:3])}"
    if not lane.ask(_RIGHT).accepted:
        return "the judge then refused a right program"
    if lane.ask(_WRONG).accepted:
        return "the judge then accepted a wrong program"
    return ""


class Lane:
    """One judge's process; a new one is started whenever the last was killed or ended."""

    def __init__(
        self,
        judged: TestedJudge,
        *,
        contain: bool = True,
        patience_seconds: float = _KILL_SECONDS,
    ) -> None:
        """Start the process of a judge.

        Args:
            judged: the judge.
            contain: whether its process is isolated from this machine, if it runs programs itself.
            patience_seconds: how long an answer may take beyond twice the time limits of a case's
                tests.

        Raises:
            EvaluatorFault: it does not start, or cannot be isolated.
        """
        self.judged = judged
        self._contain = contain and judged.runs_here
        self._patience = patience_seconds
        self.about = ""
        self.containment = ""
        self.cannot: frozenset[str] = frozenset()
        """Abilities that the judge turned out to lack when it started."""
        self._process: subprocess.Popen[bytes] | None = None
        self._start()

    def ask(self, case: Case) -> CaseResult:
        """Return the judge's answer to a case; a judge that takes too long is killed."""
        if self._process is None:
            self._start()
        patience = self._patience + _KILL_FACTOR * case.time_limit_seconds * len(case.tests)
        asked = {name: getattr(case, name) for name in _ASKED}
        request = json.dumps(asked)
        started = time.monotonic()
        message = None
        # The pipe is broken where the process has ended.
        with contextlib.suppress(OSError):
            self._requests.write(request.encode() + b"\n")
            self._requests.flush()
            message = self._read_message(patience, case.id)
        if message is None:
            seconds = time.monotonic() - started
            self.close()
            error = "killed" if seconds >= patience else "ended"
            return CaseResult(case, accepted=None, error=error, seconds=seconds)
        return CaseResult(
            case,
            accepted=message["accepted"],
            error=message["error"],
            seconds=message["seconds"],
            left=tuple(message["left"]),
        )

    def close(self) -> None:
        """Kill the judge's process and all that it started."""
        process = self._process
        if process is None:
            return
        self._process = None
        # Its namespaces end with it; without them, what it started in its session does.
        with contextlib.suppress(OSError), process:
            os.killpg(process.pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _start(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="yardstick-")
        # A hostile program may write into the pipe, too: it must not forge an answer.
        self._token = secrets.token_hex(8)
        log = Path(self._folder) / "log"
        self._spawn(log)
        message = self._read_message(_START_SECONDS)
        if message is None:
            said = log.read_text(errors="replace").strip()
            lines = said.splitlines() or ["it said nothing"]
            self.close()
            raise EvaluatorFault(f"the judge {self.judged.label} does not start: {lines[-1]}")
        if self._contain and message["containment"]:
            self.close()
            raise EvaluatorFault(
                f"the judge {self.judged.label} cannot be isolated here "
                f"({message['containment']}), and hostile programs would run with your rights; "
                "use a machine with user namespaces, or a container made for nothing else, with "
                "--uncontained"
            )
        self.about = message["about"]
        self.containment = message["containment"]
        self.cannot = frozenset(message["cannot"])

    def _spawn(self, log: Path) -> None:
        """Start the worker, with its output to programs in the log."""
        keep = [str(_WORKER.parents[2]), *_folders_of(self.judged)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        if self.judged.name in ("microcoder", "http-v1"):
            package = str(Path(microcoder.__file__).parents[1])
            keep.append(package)
            environment["PYTHONPATH"] = package
        settings = {
            "judge": self.judged.name,
            "path": self.judged.path,
            "contain": self._contain,
            "keep": keep,
            "kernel": kernel.__file__,
            "token": self._token,
            "folder": os.path.join("/tmp", os.path.basename(self._folder)),
        }
        with log.open("ab") as errors:
            process = subprocess.Popen(
                [self.judged.python, str(_WORKER), json.dumps(settings)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                # A session of its own, by which all that it starts can be killed.
                start_new_session=True,
                env=environment,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._requests = process.stdin
        self._answers = process.stdout.fileno()
        self._unread = b""

    def _read_message(self, patience: float, case_id: str | None = None) -> dict[str, Any] | None:
        """Return the worker's next message; None if none comes in time.

        Args:
            patience: seconds to wait.
            case_id: the case that it answers; None: the message of its start.
        """
        end = time.monotonic() + patience
        while True:
            rest = end - time.monotonic()
            if rest <= 0:
                return None
            readable, _, _ = select.select([self._answers], [], [], rest)
            if not readable:
                return None
            content = os.read(self._answers, _READ_BYTES)
            if not content:
                return None
            *lines, last = (self._unread + content).split(b"\n")
            self._unread = last[:_LONGEST_BYTES]
            for line in lines:
                message = self._parse(line, case_id)
                if message is not None:
                    return message

    def _parse(self, line: bytes, case_id: str | None) -> dict[str, Any] | None:
        """Return a line as a message; None for other lines, since programs may write too.

        A message has a token that programs do not know.
        """
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(message, dict) or message.get("token") != self._token:
            return None
        return message if message.get("id") == case_id else None


def _folders_of(judged: TestedJudge) -> list[str]:
    """Return the folders that a judge is loaded from, which its isolated process must see."""
    folders = []
    names = [judged.name.rpartition(":")[0], judged.path, judged.path.rpartition(":")[0]]
    if judged.name == "command":
        names += shlex.split(judged.path)
    for name in names:
        if name and Path(name).exists():
            path = Path(name).absolute()
            folders.append(str(path if path.is_dir() else path.parent))
    # A virtual environment: what its interpreter is, and what it holds.
    environment = Path(judged.python).absolute().parents[1]
    if (environment / "pyvenv.cfg").exists():
        folders.append(str(environment))
    return folders

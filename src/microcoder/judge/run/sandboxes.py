"""One worker's sandboxes: a plain one, and others once they are asked for, such as one that compiles."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict, TypeVar

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.languages import find_language
from microcoder.judge.languages.interpreter import CURRENT_VERSION, find_interpreter
from microcoder.judge.languages.packages import STANDARD, PackageShelf, load_profile
from microcoder.judge.run.builds import find_toolchain
from microcoder.judge.run.inputs import InputShelf
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.runtimes import find_room
from microcoder.judge.run.supervisor import Sandbox, SandboxDied
from microcoder.judge.run.timing import TimeRecord
from microcoder.judge.run.turns import WorkerTurn
from microcoder.judge.sandbox.protocol import NO_RUNTIME

_MAX_FAILED_STARTS = 3
_REST_SECONDS = 10.0
"""After this many failed starts, programs fail at once for a while without another try."""
_SCRATCH_MIB, _LARGE_SCRATCH_MIB = 16, 256
"""The larger one is for builds, for files given to a checker or a run, and for a large input that is read as a file."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SandboxKind:
    """The kind of a sandbox; runs that need the same kind share one."""

    version: str = CURRENT_VERSION
    """Version of Python."""
    preload: tuple[str, ...] = ()
    """Packages that are loaded before the program starts."""
    is_large: bool = False
    """Whether it has room for files."""
    builds: str = ""
    """The language that it compiles; empty for one that runs programs."""
    runs: str = ""
    """The language whose runtime it gives room to; empty if programs are Python's or binaries."""


class _Common(TypedDict):
    """Arguments that all sandboxes of a worker share."""

    layers: tuple[str, ...]
    record: TimeRecord
    turn: WorkerTurn
    nice: int


class Sandboxes:
    """Started when they are first used, ended when anything goes wrong in them; for one thread."""

    def __init__(
        self,
        options: JudgeOptions | None = None,
        *,
        inputs: InputShelf | None = None,
        packages: PackageShelf | None = None,
        turn: WorkerTurn | None = None,
    ) -> None:
        """Start none yet."""
        self.packages = packages or PackageShelf(load_profile(STANDARD))
        self._options = options or JudgeOptions()
        self._turn = turn or WorkerTurn()
        self._inputs = inputs or InputShelf()
        self._started: dict[SandboxKind, Sandbox] = {}
        self._failed_starts = 0
        self._start_failure = ""
        self._rests_until = 0.0
        self._is_closed = False
        self.level = ""
        """Isolation of the latest sandbox."""
        self.retries = 0
        """Uses that were begun again because the sandbox died."""
        self.record = TimeRecord()
        """Decisions about the time of its tests."""

    def open(self) -> Sandbox:
        """Start and return the plain one."""
        return self._find(SandboxKind())

    def use(self, kind: SandboxKind, action: Callable[[Sandbox], T]) -> T:
        """Call an action with a sandbox of a kind, and again with a fresh one if it dies or the machine refuses it."""
        try:
            return action(self._find(kind))
        except (SandboxDied, OSError):
            if self._is_closed:
                raise
            self._discard(kind)
            self.retries += 1
            try:
                return action(self._find(kind))
            except BaseException:
                self._discard(kind)
                raise
        except BaseException:
            self._discard(kind)
            raise

    def renew(self) -> None:
        """End the sandboxes, so that the next program starts fresh ones; also after starts that failed."""
        for kind in list(self._started):
            self._discard(kind)
        self._failed_starts = 0

    def interrupt(self) -> None:
        """End the sandboxes from another thread; what is being judged ends as a fault."""
        self._is_closed = True
        for sandbox in list(self._started.values()):
            sandbox.interrupt()

    def close(self) -> None:
        """End the sandboxes; only from the thread that opened them."""
        self._is_closed = True
        for sandbox in self._started.values():
            sandbox.close()
        self._started.clear()

    def _find(self, kind: SandboxKind) -> Sandbox:
        """Return a sandbox of this kind, started if there is none yet."""
        if self._is_closed:
            raise SandboxDied("the judge was closed")
        if kind not in self._started:
            sandbox = self._start_again(kind)
            self._started[kind] = sandbox
            if self._is_closed:
                raise SandboxDied("the judge was closed")
        return self._started[kind]

    def _start_again(self, kind: SandboxKind) -> Sandbox:
        """Start a sandbox; try twice, since it may have been killed while it started."""
        if self._failed_starts >= _MAX_FAILED_STARTS and time.monotonic() < self._rests_until:
            raise EvaluatorFault(f"gave up after {self._failed_starts} failed starts: {self._start_failure}")
        for is_last in (False, True):
            try:
                sandbox = self._start(kind)
            except EvaluatorFault as fault:
                self._failed_starts, self._start_failure = self._failed_starts + 1, str(fault)
                self._rests_until = time.monotonic() + _REST_SECONDS
                if is_last:
                    raise
            else:
                self._failed_starts = 0
                return sandbox
        raise AssertionError("the last try returned or raised")

    def _start(self, kind: SandboxKind) -> Sandbox:
        layers, nice = self._options.layers, self._options.nice
        common: _Common = {"layers": layers, "record": self.record, "turn": self._turn, "nice": nice}
        if kind.builds:
            toolchain = find_toolchain(find_language(kind.builds))
            sandbox = Sandbox(toolchain=toolchain, scratch_mib=_LARGE_SCRATCH_MIB, **common)
        else:
            interpreter = find_interpreter(kind.version)
            sandbox = Sandbox(
                interpreter=interpreter,
                packages=self.packages.provide(interpreter).folder,
                preload=kind.preload,
                runtime=find_room(find_language(kind.runs)).as_message() if kind.runs else NO_RUNTIME,
                scratch_mib=_LARGE_SCRATCH_MIB if kind.is_large else _SCRATCH_MIB,
                inputs=self._inputs,
                **common,
            )
        self.level = sandbox.isolation.level
        try:
            sandbox.isolation.require(unsafe=self._options.unsafe)
        except EvaluatorFault:
            sandbox.close()
            raise
        return sandbox

    def _discard(self, kind: SandboxKind) -> None:
        sandbox = self._started.pop(kind, None)
        if sandbox is not None:
            sandbox.close()

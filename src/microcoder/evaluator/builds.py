"""Source -> binary, inside a sandbox that sees the toolchain; equal sources are built once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from microcoder.errors import EvaluatorFault
from microcoder.evaluator.languages import Language
from microcoder.evaluator.sandbox.protocol import CPU_EXPIRED, WALL_EXPIRED
from microcoder.evaluator.supervisor import Limits, Sandbox, SandboxDied, Task

_WALL_FACTOR = 3.0
_MAX_BINARY_BYTES = 128 << 20
_MAX_KEPT_BYTES = 512 << 20
_NO_SOURCE = b""


@dataclass(frozen=True, slots=True)
class Build:
    """A binary, or the compiler's first complaint."""

    binary: bytes
    message: str = ""

    @property
    def is_built(self) -> bool:
        """Whether there is a binary."""
        return bool(self.binary)


class BuildCache:
    """Builds by language, version and source, shared by all workers of a judge; the longest unused go first."""

    def __init__(self, max_bytes: int = _MAX_KEPT_BYTES) -> None:
        self._builds: OrderedDict[tuple[str, str, str], Build] = OrderedDict()
        self._lock = threading.Lock()
        self._bytes = 0
        self._max_bytes = max_bytes

    def get(self, language: Language, code: str, build: Callable[[], Build]) -> Build:
        """Return a build, making it where it is not there yet."""
        key = (language.name, language.version, code)
        with self._lock:
            if key in self._builds:
                self._builds.move_to_end(key)
                return self._builds[key]
        made = build()
        with self._lock:
            if key not in self._builds:
                self._builds[key] = made
                self._bytes += len(made.binary)
            while self._bytes > self._max_bytes and len(self._builds) > 1:
                self._bytes -= len(self._builds.popitem(last=False)[1].binary)
        return made


def require_compiler(language: Language) -> str:
    """Return the compiler's path.

    Raises:
        EvaluatorFault: there is none; the message says what to install.
    """
    compiler = language.find_compiler()
    if compiler is None:
        raise EvaluatorFault(language.find_problem())
    return compiler


def build_program(sandbox: Sandbox, language: Language, code: str) -> Build:
    """Build a program.

    Raises:
        SandboxDied: the sandbox broke, or the compiler stood still for most of its time: no source asks that of it.
        EvaluatorFault: there is no compiler.
    """
    command = language.build_command(require_compiler(language))
    limits = Limits(
        cpu_seconds=language.build_seconds,
        wall_seconds=_WALL_FACTOR * language.build_seconds,
        memory_bytes=language.build_memory_mib << 20,
        output_bytes=_MAX_BINARY_BYTES,
    )
    files = {language.source_file: code.encode("utf-8", "surrogatepass")}
    run = sandbox.run(Task(sandbox.nothing, -1, _NO_SOURCE, command=command, files=files), limits)
    if run.result.expired == WALL_EXPIRED:
        raise SandboxDied(
            f"the compiler stood still: {run.cpu_seconds:.1f} s of CPU in {run.result.wall_us / 1e6:.0f} s"
        )
    if run.result.expired == CPU_EXPIRED:
        return Build(b"", f"the compiler took more than {language.build_seconds:g} s of CPU time")
    if run.result.exit_code or run.result.signal or not run.wire:
        return Build(b"", _first_error(run.stderr) or f"the compiler ended with exit code {run.result.exit_code}")
    return Build(run.wire)


def _first_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "")

"""Source -> binary, inside a sandbox that sees the toolchain; equal sources are built once."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from microcoder.errors import EvaluatorFault
from microcoder.evaluator.languages import Language
from microcoder.evaluator.sandbox.protocol import CPU_EXPIRED, WALL_EXPIRED
from microcoder.evaluator.supervisor import Limits, Sandbox, SandboxDied, TestTask
from microcoder.machine import count_processors

_WALL_FACTOR = 3.0
_MAX_BINARY_BYTES = 128 << 20
_MAX_KEPT_BYTES = 512 << 20
_NO_SOURCE = b""
_OUT_OF_TIME = "the compiler took more than {seconds:g} s of CPU time"


_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Build:
    """A binary, or the compiler's first complaint."""

    binary: bytes
    message: str = ""

    @property
    def is_built(self) -> bool:
        """Whether the build succeeded."""
        return bool(self.binary)


class BuildCache:
    """Builds by language, version and source, shared by all workers of a judge; the longest unused go first.

    As many run at a time as there are processors, however many workers there are: each takes a core, and far more
    memory than a test. Who asks for what is being built waits for it.
    """

    def __init__(self, build_seconds: float | None = None, max_bytes: int = _MAX_KEPT_BYTES) -> None:
        self.build_seconds = build_seconds
        """CPU time of a compiler in place of what its language says; None for that."""
        self.time_scale = 1.0
        """What that is multiplied by on this machine."""
        self._builds: OrderedDict[_Key, Build] = OrderedDict()
        self._running: dict[_Key, threading.Event] = {}
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(count_processors())
        self._bytes = 0
        self._max_bytes = max_bytes

    def limit(self, language: Language) -> Language:
        """Return a language with the CPU time that its compiler may take here."""
        return language.model_copy(
            update={"build_seconds": (self.build_seconds or language.build_seconds) * self.time_scale}
        )

    def get(self, language: Language, code: str, build: Callable[[], Build]) -> Build:
        """Return a build, made on first use; an exception is raised to the first caller only, others try again."""
        key = (language.name, language.version, code)
        while True:
            with self._lock:
                if key in self._builds:
                    self._builds.move_to_end(key)
                    return self._builds[key]
                running = self._running.get(key)
                if running is None:
                    is_over = self._running[key] = threading.Event()
                    break
            running.wait()
        try:
            with self._places:
                made = build()
            self._keep(key, made)
            return made
        finally:
            with self._lock:
                del self._running[key]
            is_over.set()

    def _keep(self, key: _Key, made: Build) -> None:
        with self._lock:
            self._builds[key] = made
            self._bytes += len(made.binary)
            while self._bytes > self._max_bytes and len(self._builds) > 1:
                self._bytes -= len(self._builds.popitem(last=False)[1].binary)


def require_compiler(language: Language) -> str:
    """Return the compiler's path.

    Raises:
        EvaluatorFault: there is none; the message says what to install.
    """
    compiler = language.find_compiler()
    if compiler is None:
        raise EvaluatorFault(language.find_problem())
    return compiler


def build_program(sandbox: Sandbox, language: Language, code: str, headers: str = "") -> Build:
    """Build a program, with a folder of a precompiled header if there is one.

    The compiler's complaint about the program's own text is the same with the header as without. Any other failure may
    be the header's, such as a file that was cut short, and is believed without it only.

    Raises:
        SandboxDied: the sandbox broke, or the compiler stood still for most of its time: no source asks that of it.
        EvaluatorFault: there is no compiler.
    """
    compiler = require_compiler(language)
    if headers:
        build = run_compiler(sandbox, language, language.build_command(compiler, headers), code)
        if build.is_built or _is_about_source(build, language):
            return build
    return run_compiler(sandbox, language, language.build_command(compiler), code)


def _is_about_source(build: Build, language: Language) -> bool:
    is_complaint = build.message.startswith(f"{language.source_file}:") and ": error: " in build.message
    # Without the header it would take longer.
    return is_complaint or build.message == _OUT_OF_TIME.format(seconds=language.build_seconds)


def run_compiler(
    sandbox: Sandbox, language: Language, command: tuple[str, ...], code: str, *, max_bytes: int = _MAX_BINARY_BYTES
) -> Build:
    """Run a compiler's command on a source, and return the file named `main` that it leaves.

    Raises:
        SandboxDied: as `build_program`.
    """
    limits = Limits(
        cpu_seconds=language.build_seconds,
        wall_seconds=_WALL_FACTOR * language.build_seconds,
        memory_bytes=language.build_memory_mib << 20,
        output_bytes=max_bytes,
    )
    files = {language.source_file: code.encode("utf-8", "surrogatepass")}
    run = sandbox.run(TestTask(sandbox.nothing, -1, _NO_SOURCE, command=command, files=files), limits)
    if run.result.expired == WALL_EXPIRED:
        raise SandboxDied(
            f"the compiler stood still: {run.cpu_seconds:.1f} s of CPU in {run.result.wall_us / 1e6:.0f} s"
        )
    if run.result.expired == CPU_EXPIRED:
        return Build(b"", _OUT_OF_TIME.format(seconds=language.build_seconds))
    if run.result.exit_code or run.result.signal or not run.wire:
        return Build(b"", _first_error(run.stderr) or f"the compiler ended with exit code {run.result.exit_code}")
    return Build(run.wire)


def _first_error(stderr: str) -> str:
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    return next((line for line in lines if "error" in line), lines[-1] if lines else "")

"""Source -> binary, inside a sandbox that sees the toolchain; equal sources are built once.

Headers are kept precompiled, so that a compiler need not read the standard library anew for every program:

    <root>/headers/<digest>/bits/stdc++.h.gch   used by g++ if a program includes that header before all else
    <root>/headers/<digest>/bits/stdc++.h       includes the header itself, for a second include of it

<root> is where packages are kept, too; each combination of compiler version, header and flags has a folder of its own.
A program sees no other names with the precompiled header than without: it has included it.
g++ ignores a precompiled header that does not fit the program (macros or pragmas before it, other flags).

What was built is run by itself, or by its language's runtime, which is resolved on this machine.
"""

import contextlib
import hashlib
import json
import logging
import os
import platform
import re
import signal
import struct
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.machine import count_processors, is_disk_full
from microcoder.judge.languages.definition import Language, Runtime, ask_version, expand_paths
from microcoder.judge.languages.packages import find_kept, find_roots, keep_folder, open_place
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.recent import Recent
from microcoder.judge.run.supervisor import Loaded, Sandbox, SandboxDied, TestTask, make_memory_file
from microcoder.judge.run.timing import Limits
from microcoder.judge.sandbox.protocol import BUILT_FILE, CPU_EXPIRED, WALL_EXPIRED

_WALL_FACTOR = 3.0
_MAX_BINARY_BYTES = 128 << 20
_MAX_KEPT_BYTES = 512 << 20
_OUT_OF_TIME = "the compiler took more than {seconds:g} s of CPU time"
_KILLED = "Killed"
"""The system's text for an end by signal 9, which compiler drivers also print if the compiler was killed."""
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Build:
    """A binary, or the compiler's first error message."""

    binary: bytes
    message: str = ""

    @property
    def is_built(self) -> bool:
        """Whether the build succeeded."""
        return bool(self.binary)


class Builds:
    """Builds by language, version and source, shared by a judge's workers; the least recently used are dropped first.

    As many run at a time as there are processors, however many workers there are: each takes a core, and far more
    memory than a test. A second request for a build in progress waits for it.
    """

    def __init__(self, options: JudgeOptions | None = None) -> None:
        self._options = options or JudgeOptions()
        self.time_scale = self._options.time_scale or 1.0
        """Factor on the compilers' CPU time on this machine."""
        self._builds: Recent[Build] = Recent(most_bytes=_MAX_KEPT_BYTES)
        self._running: WeakValueDictionary[_Key, threading.Lock] = WeakValueDictionary()
        """A lock for each build that runs or is waited for."""
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(count_processors())
        self._settled: dict[_Key, str] = {}
        """Folder of each header that exists, empty if it will not be made; by language, version and header."""
        self._misses: Counter[_Key] = Counter()

    def limit(self, language: Language) -> Language:
        """Return a language with the CPU time that its compiler may take here."""
        seconds = (self._options.build_seconds or language.build_seconds) * self.time_scale
        return language.model_copy(update={"build_seconds": seconds})

    def get(self, language: Language, code: str, build: Callable[[], Build]) -> Build:
        """Return a build, made on first use; an exception is raised to the first caller only, others try again."""
        key = (language.name, language.version, code)
        with self._lock:
            one_at_a_time = self._running.setdefault(key, threading.Lock())
        with one_at_a_time:
            with self._lock:
                if (made := self._builds.find(key)) is not None:
                    return made
            with self._places:
                made = build()
            with self._lock:
                self._builds.add(key, made, len(made.binary) + len(code))
                self._builds.trim()
            return made

    def provide(self, language: Language, code: str) -> str:
        """Return the folder of the precompiled header that a program can use; empty for none.

        Programs use one that exists; the fifth that lacks one has it made: a judge that compiles a program or two does
        not pay for it. While it is made, by whichever process, other programs are built without it; if it cannot be
        made, all are, after one warning.
        """
        header = find_included(language, code)
        if not header or not language.precompile_command(require_compiler(language)):
            return ""
        key = (language.name, language.version, header)
        with self._lock:
            if key in self._settled:
                return self._settled[key]
            found = find_header(language, header)
            self._misses[key] += found is None
            if found is None and self._misses[key] <= BUILDS_WITHOUT:
                return ""
            # Until it is there it counts as settled that there is none.
            self._settled[key] = str(found or "")
        if found is None:
            try:
                self._settled[key] = str(make_header(language, header, self._options, waits=False))
            except BlockingIOError:
                # By another process, so that the next program may find it.
                del self._settled[key]
                return ""
            except EvaluatorFault as fault:
                _LOG.warning(
                    "microcoder: %s programs take longer to build: %s", language.name, fault
                )
        return self._settled[key]


def require_compiler(language: Language) -> str:
    """Return the compiler's path; EvaluatorFault if there is none."""
    compiler = language.find_compiler()
    if compiler is None:
        raise EvaluatorFault(language.find_problem())
    return compiler


def build_program(sandbox: Sandbox, language: Language, code: str, headers: str = "") -> Build:
    """Build a program; `headers` is the folder of a precompiled header, empty for none.

    The compiler's complaint about the program's own text is the same with the header as without. Any other failure may
    be the header's, such as a file that was cut short, so the program is then built without it; as it is if something
    killed the compiler, once.
    """
    compiler = require_compiler(language)
    build = run_compiler(sandbox, language, language.build_command(compiler, headers), code)
    is_complaint = (
        build.message.startswith(f"{language.source_file}:") and ": error: " in build.message
    )
    # Without the header it would take longer.
    is_late = build.message == _OUT_OF_TIME.format(seconds=language.build_seconds)
    if build.is_built or is_complaint or is_late or not (headers or _KILLED in build.message):
        return build
    return run_compiler(sandbox, language, language.build_command(compiler), code)


def run_compiler(
    sandbox: Sandbox,
    language: Language,
    command: tuple[str, ...],
    code: str,
    *,
    max_bytes: int = _MAX_BINARY_BYTES,
) -> Build:
    """Run a compiler's command on a source; return the file `main` that it leaves, or the error. Raises SandboxDied."""
    limits = Limits(
        cpu_seconds=language.build_seconds,
        wall_seconds=_WALL_FACTOR * language.build_seconds,
        memory_bytes=language.build_memory_mib << 20,
        output_bytes=max_bytes,
    )
    files = {language.source_file: code.encode("utf-8", "surrogatepass")}
    run = sandbox.run(
        TestTask(sandbox.nothing, sandbox.nothing, b"", files, {"command": command}), limits
    )
    if run.result.expired == WALL_EXPIRED:
        raise SandboxDied(
            f"the compiler stood still: {run.cpu_seconds:.1f} s of CPU in {run.result.wall_us / 1e6:.0f} s"
        )
    if run.result.expired == CPU_EXPIRED:
        return Build(b"", _OUT_OF_TIME.format(seconds=language.build_seconds))
    if run.result.exit_code or run.result.signal or not run.wire:
        if is_disk_full(OSError(run.stderr)):
            sandbox.check_room()
        ended = (
            _KILLED if run.result.signal == signal.SIGKILL else f"exit code {run.result.exit_code}"
        )
        lines = [line.strip() for line in run.stderr.splitlines() if line.strip()] or [
            f"the compiler ended: {ended}"
        ]
        return Build(b"", next((line for line in lines if "error" in line), lines[-1]))
    return Build(run.wire)


BUILDS_WITHOUT = 4
"""Programs with a header that a judge builds before it makes that header: making costs as much as five such builds."""

_SCRATCH_MIB = 512
_MAX_BYTES = 480 << 20
_FIRST_INCLUDE = re.compile(
    r'(?>\s+|//[^\n]*|/\*[\s\S]*?\*/)*+#[ \t]*include[ \t]*(?:<([^<>\n]+)>|"([^"\n]+)")', re.ASCII
)
_LOG = logging.getLogger(__name__)


def find_included(language: Language, code: str) -> str:
    """Return the precompilable header that a program includes first; empty for none."""
    found = _FIRST_INCLUDE.match(code)
    if found is None or language.precompiled is None:
        return ""
    name = found[1] or found[2]
    return name if name in language.precompiled.headers else ""


def find_places() -> tuple[Path, ...]:
    """Return the folders that are searched for headers; new ones are made in the first."""
    return tuple((root / "headers").resolve() for root in find_roots())


def find_toolchain(language: Language) -> tuple[str, ...]:
    """Return the paths that a build may read, the folders of headers included, which are made if possible.

    A sandbox sees the headers that are made later only in a folder which was there when it started.
    """
    if language.precompiled is None:
        return language.find_readable()
    places = find_places()
    with contextlib.suppress(OSError):
        open_place(places[0])
    return (*language.find_readable(), *(str(place) for place in places if place.is_dir()))


def find_header(language: Language, header: str) -> Path | None:
    """Return the folder of a precompiled header; None if it was not made yet."""
    return find_kept(find_places(), _digest(language, header))


def list_headers(language: Language) -> dict[str, Path | None]:
    """Return the folder of each header that a language's compiler takes precompiled, None if it is not made."""
    compiler = language.find_compiler()
    if (
        language.precompiled is None
        or compiler is None
        or not language.precompile_command(compiler)
    ):
        return {}
    return {header: find_header(language, header) for header in language.precompiled.headers}


def make_header(
    language: Language, header: str, options: JudgeOptions | None = None, *, waits: bool = True
) -> Path:
    """Return the folder of a header, precompiling it first if it is missing.

    This is done in a new sandbox, only from the system's files: no program has run there.
    """
    given = options or JudgeOptions()

    def fill(folder: Path) -> None:
        _LOG.warning(
            "microcoder: precompiling <%s> for %s into %s, once",
            header,
            language.label,
            folder.parent,
        )
        command = language.precompile_command(require_compiler(language))
        try:
            layers, nice = given.layers, given.nice
            sandbox = Sandbox(
                toolchain=language.readable, scratch_mib=_SCRATCH_MIB, layers=layers, nice=nice
            )
            with contextlib.closing(sandbox):
                made = run_compiler(
                    sandbox, language, command, f"#include <{header}>\n", max_bytes=_MAX_BYTES
                )
        except SandboxDied as died:
            raise EvaluatorFault(f"<{header}> cannot be precompiled: {died}") from None
        if not made.is_built:
            raise EvaluatorFault(f"<{header}> cannot be precompiled: {made.message}")
        path = folder / f"{header}.gch"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made.binary)
        (folder / header).write_text(f"#include_next <{header}>\n", encoding="utf-8")

    return keep_folder(find_places(), _digest(language, header), fill, waits=waits)


def _digest(language: Language, header: str) -> str:
    """Return the name of a header's folder."""
    compiler = require_compiler(language)
    if not (version := ask_version(compiler)):
        raise EvaluatorFault(
            f"{compiler} --version says nothing; run it, and install another compiler if it fails"
        )
    identity = os.path.realpath(compiler), platform.machine(), version
    content = [header, identity, language.precompile_command(compiler)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


_PROGRAM_INTERPRETER = 3
_MOST_HEADERS_BYTES = 1 << 16


def require_runtime(language: Language) -> tuple[Runtime, str]:
    """Return a language's runtime and the path of its command; EvaluatorFault if there is none."""
    command = language.runtime.find_command() if language.runtime else None
    if language.runtime is None or command is None:
        raise EvaluatorFault(language.find_problem())
    return language.runtime, os.path.realpath(command)


def find_room(language: Language) -> dict[str, Any]:
    """Return what a sandbox adds for a language's runtime (files, variables, memory), in the form sent to it."""
    runtime, command = require_runtime(language)
    readable = expand_paths(runtime.fill(path, command) for path in runtime.readable)
    return {
        "readable": (*readable, command),
        # The only files that may be started: the runtime itself and the system's loader.
        "executables": (command, *_find_loader(command)),
        "environment": {
            name: runtime.fill(value, command) for name, value in runtime.environment.items()
        },
        "address_space_bytes": runtime.address_space_mib << 20,
        "reserved_bytes": runtime.reserved_memory_mib << 20,
    }


def load_built(language: Language, built: bytes, memory_mib: int) -> Loaded:
    """Return a built program ready to be run: by itself, or by its language's runtime."""
    if language.runtime is None:
        source = make_memory_file(built)
        return Loaded(source, source, (BUILT_FILE,))
    runtime, command = require_runtime(language)
    started = tuple(runtime.fill(part, command, memory_mib) for part in runtime.run)
    source = os.open(command, os.O_RDONLY | os.O_CLOEXEC)
    return Loaded(source, source, started, {runtime.program_file: built})


def _find_loader(command: str) -> tuple[str, ...]:
    """Return the path of an executable's dynamic loader, in a tuple that is empty for a static one."""
    with open(command, "rb") as file:
        head = file.read(_MOST_HEADERS_BYTES)
    if head[:5] != b"\x7fELF\x02":
        raise EvaluatorFault(
            f"{command} is no 64-bit executable; name the program itself, not a script that starts it"
        )
    (offset,), (size, count) = (
        struct.unpack_from("<Q", head, 32),
        struct.unpack_from("<HH", head, 54),
    )
    for start in range(offset, offset + size * count, size):
        kind, _, place, _, _, length = struct.unpack_from("<IIQQQQ", head, start)
        if kind == _PROGRAM_INTERPRETER:
            name = head[place : place + length].rstrip(b"\0").decode()
            return (os.path.realpath(name),)
    return ()

"""Source -> binary, inside a sandbox that sees the toolchain; equal sources are built once.

Headers are kept precompiled, so that a compiler need not read the standard library for every
program:

    <root>/headers/<digest>/bits/stdc++.h.gch   used by g++ if a program includes that header first
    <root>/headers/<digest>/bits/stdc++.h       includes the header, for a second include of it

<root> is where packages are kept, too. Each combination of compiler version, header and flags has a
folder of its own. A program sees no other names with the precompiled header than without: it has
included it. g++ ignores a precompiled header that does not fit the program (macros or pragmas
before it, other flags).

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
from microcoder.judge.languages.kept_folders import find_kept, find_roots, keep_folder, make_root
from microcoder.judge.run.lru_cache import LruCache
from microcoder.judge.run.options import JudgeOptions
from microcoder.judge.run.supervisor import Loaded, Sandbox, SandboxDied, TestTask, make_memory_file
from microcoder.judge.run.timing import Limits
from microcoder.judge.run.verdicts import Run
from microcoder.judge.sandbox.protocol import BUILT_FILE, Expiry

_WALL_FACTOR = 3.0
"""Wall limit of a build, in CPU limits."""
_MAX_BINARY_BYTES = 128 << 20
"""Largest binary of a program."""
_MAX_KEPT_BYTES = 512 << 20
"""Most bytes of binaries and their sources that are kept."""
_OUT_OF_TIME = "the compiler took more than {seconds:g} s of CPU time"
"""Message of a build that was stopped."""
_KILLED = "Killed"
"""The system's text for an end by signal 9, which drivers also print if the compiler was killed."""
_Key = tuple[str, str, str]
"""Language, its version, and a source or a header."""


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
    """Builds by language, version and source, shared by a judge's workers.

    The least recently used are dropped first. As many run at a time as there are processors,
    however many workers there are: each takes a core, and far more memory than a test. A second
    request for a build in progress waits for it.
    """

    def __init__(self, options: JudgeOptions | None = None) -> None:
        self._options = options or JudgeOptions()
        self.time_scale = self._options.time_scale or 1.0
        """Factor on the compilers' CPU time on this machine."""
        self._builds: LruCache[Build] = LruCache(most_bytes=_MAX_KEPT_BYTES)
        self._running: WeakValueDictionary[_Key, threading.Lock] = WeakValueDictionary()
        """A lock for each build that runs or is waited for."""
        self._lock = threading.Lock()
        self._slots = threading.BoundedSemaphore(count_processors())
        self._settled: dict[_Key, str] = {}
        """Folder of each header that exists, empty if it will not be made."""
        self._misses: Counter[_Key] = Counter()
        """How many programs were built without a header that was not made yet."""

    def limit(self, language: Language) -> Language:
        """Return a language with the CPU time that its compiler may take here."""
        seconds = (self._options.build_seconds or language.build_seconds) * self.time_scale
        return language.model_copy(update={"build_seconds": seconds})

    def get(
        self,
        language: Language,
        code: str,
        build: Callable[[], Build],
    ) -> Build:
        """Return a build, made on first use.

        An exception is raised to the first caller only; others try again.
        """
        key = (language.name, language.version, code)
        with self._lock:
            # The map is weak: a lock is there for as long as somebody holds it or waits for it.
            one_at_a_time = self._running.setdefault(key, threading.Lock())
        with one_at_a_time:
            with self._lock:
                known = self._builds.find(key)
            if known is not None:
                return known
            # Without the lock: others may look for builds meanwhile.
            with self._slots:
                made = build()
            with self._lock:
                self._builds.add(key, made, len(made.binary) + len(code))
                self._builds.trim()
            return made

    def provide(self, language: Language, code: str) -> str:
        """Return the folder of the precompiled header that a program can use; empty for none.

        Programs use one that exists. The fifth that lacks one has it made: a judge that compiles a
        program or two does not pay for it. While it is made, by whichever process, other programs
        are built without it. If it cannot be made, all are, after one warning.
        """
        header = find_included(language, code)
        if not header or not language.precompile_command(require_compiler(language)):
            return ""
        key = (language.name, language.version, header)
        with self._lock:
            if key in self._settled:
                return self._settled[key]
            folder = find_header(language, header)
            if folder is not None:
                self._settled[key] = str(folder)
                return str(folder)
            self._misses[key] += 1
            if self._misses[key] <= BUILDS_WITHOUT:
                return ""
            # Until it is there it counts as settled that there is none.
            self._settled[key] = ""
        try:
            self._settled[key] = str(
                make_header(
                    language,
                    header,
                    self._options,
                    waits=False,
                )
            )
        except BlockingIOError:
            # Made by another process, so that the next program may find it.
            del self._settled[key]
            return ""
        except EvaluatorFault as fault:
            _LOG.warning("microcoder: %s programs take longer to build: %s", language.name, fault)
        return self._settled[key]


def require_compiler(language: Language) -> str:
    """Return the compiler's path; EvaluatorFault if there is none."""
    compiler = language.find_compiler()
    if compiler is None:
        raise EvaluatorFault(language.find_problem())
    return compiler


def build_program(
    sandbox: Sandbox,
    language: Language,
    code: str,
    headers: str = "",
) -> Build:
    """Build a program.

    The compiler's complaint about the program's own text is the same with the header as without.
    Any other failure may be the header's, such as a file that was cut short, so the program is then
    built without it. That is done once, too, if something killed the compiler.

    Args:
        sandbox: one with the language's toolchain.
        language: of the program.
        code: its source.
        headers: the folder of a precompiled header; empty for none.
    """
    compiler = require_compiler(language)
    build = run_compiler(sandbox, language, language.build_command(compiler, headers), code)
    if build.is_built or _is_final(build.message, language):
        return build
    if not headers and _KILLED not in build.message:
        return build
    return run_compiler(sandbox, language, language.build_command(compiler), code)


def _is_final(message: str, language: Language) -> bool:
    """Whether a failed build would not succeed without a precompiled header."""
    if message.startswith(f"{language.source_file}:") and ": error: " in message:
        return True
    # Without the header it would take longer.
    return message == _OUT_OF_TIME.format(seconds=language.build_seconds)


def run_compiler(
    sandbox: Sandbox,
    language: Language,
    command: tuple[str, ...],
    code: str,
    *,
    max_bytes: int = _MAX_BINARY_BYTES,
) -> Build:
    """Run a compiler's command on a source; return the file `main` that it leaves, or the error.

    Raises:
        SandboxDied: the sandbox broke, or the machine did not let the compiler run.
    """
    limits = Limits(
        cpu_seconds=language.build_seconds,
        wall_seconds=_WALL_FACTOR * language.build_seconds,
        memory_bytes=language.build_memory_mib << 20,
        output_bytes=max_bytes,
    )
    files = {language.source_file: code.encode("utf-8", "surrogatepass")}
    task = TestTask(
        sandbox.nothing,
        sandbox.nothing,
        b"",
        files,
        {"command": command},
    )
    run = sandbox.run(task, limits)
    result = run.result
    # CPU time was left: the machine is at fault, not the program.
    if result.expired == Expiry.WALL:
        wall_seconds = result.wall_us / 1e6
        raise SandboxDied(
            f"the compiler stood still: {run.cpu_seconds:.1f} s of CPU in {wall_seconds:.0f} s"
        )
    if result.expired == Expiry.CPU:
        return Build(b"", _OUT_OF_TIME.format(seconds=language.build_seconds))
    if result.exit_code or result.signal or not run.wire:
        # A disk that is full fails a build whatever its source is.
        if is_disk_full(OSError(run.stderr)):
            sandbox.check_disk_space()
        return Build(b"", _first_error(run))
    return Build(run.wire)


def _first_error(run: Run) -> str:
    """Return the first error in what a compiler said, else its last line, or how it ended."""
    lines = [line.strip() for line in run.stderr.splitlines() if line.strip()]
    # Warnings and notes may come before it.
    for line in lines:
        if "error" in line:
            return line
    if lines:
        return lines[-1]
    if run.result.signal == signal.SIGKILL:
        return f"the compiler ended: {_KILLED}"
    return f"the compiler ended: exit code {run.result.exit_code}"


BUILDS_WITHOUT = 4
"""Programs with a header that a judge builds before it makes that header.

Making it costs as much as five such builds.
"""

_SCRATCH_MIB = 512
"""What making a header may write."""
_MAX_BYTES = 480 << 20
"""Largest precompiled header."""
_FIRST_INCLUDE = re.compile(
    r'(?>\s+|//[^\n]*|/\*[\s\S]*?\*/)*+#[ \t]*include[ \t]*(?:<([^<>\n]+)>|"([^"\n]+)")', re.ASCII
)
"""A first include behind blanks and comments only; possessive, as a source may be hostile."""
_LOG = logging.getLogger(__name__)


def find_included(language: Language, code: str) -> str:
    """Return the precompilable header that a program includes first; empty for none."""
    include = _FIRST_INCLUDE.match(code)
    if include is None or language.precompiled is None:
        return ""
    name = include[1] or include[2]
    return name if name in language.precompiled.headers else ""


def find_header_roots() -> tuple[Path, ...]:
    """Return the folders that are searched for headers; new ones are made in the first."""
    return tuple((root / "headers").resolve() for root in find_roots())


def find_toolchain(language: Language) -> tuple[str, ...]:
    """Return the paths that a build may read.

    The folders of headers are among them, and made if possible: a sandbox sees the headers that are
    made later only in a folder which was there when it started.
    """
    if language.precompiled is None:
        return language.find_readable()
    folders = find_header_roots()
    with contextlib.suppress(OSError):
        make_root(folders[0])
    existing = [str(folder) for folder in folders if folder.is_dir()]
    return (*language.find_readable(), *existing)


def find_header(language: Language, header: str) -> Path | None:
    """Return the folder of a precompiled header; None if it was not made yet."""
    return find_kept(find_header_roots(), _digest(language, header))


def list_headers(language: Language) -> dict[str, Path | None]:
    """Return the folder of each header that a compiler takes precompiled.

    It is None if the header is not made.
    """
    compiler = language.find_compiler()
    if language.precompiled is None or compiler is None:
        return {}
    if not language.precompile_command(compiler):
        return {}
    return {header: find_header(language, header) for header in language.precompiled.headers}


def make_header(
    language: Language, header: str, options: JudgeOptions | None = None, *, waits: bool = True
) -> Path:
    """Return the folder of a header, precompiling it first if it is missing.

    This is done in a new sandbox, only from the system's files: no program has run there.
    """
    used = options or JudgeOptions()

    def fill(folder: Path) -> None:
        _LOG.warning(
            "microcoder: precompiling <%s> for %s into %s, once",
            header,
            language.label,
            folder.parent,
        )
        made = _precompile(language, header, used)
        path = folder / f"{header}.gch"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(made)
        # A second include of the header in one program finds this file, which leads to the real
        # one.
        (folder / header).write_text(f"#include_next <{header}>\n", encoding="utf-8")

    return keep_folder(
        find_header_roots(),
        _digest(language, header),
        fill,
        waits=waits,
    )


def _precompile(
    language: Language,
    header: str,
    options: JudgeOptions,
) -> bytes:
    """Return a precompiled header, made in a sandbox of its own; raises EvaluatorFault."""
    command = language.precompile_command(require_compiler(language))
    source = f"#include <{header}>\n"
    try:
        sandbox = Sandbox(
            toolchain=language.readable,
            scratch_mib=_SCRATCH_MIB,
            layers=options.layers,
            nice=options.nice,
        )
        with contextlib.closing(sandbox):
            made = run_compiler(sandbox, language, command, source, max_bytes=_MAX_BYTES)
    except SandboxDied as died:
        raise EvaluatorFault(f"<{header}> cannot be precompiled: {died}") from None
    if not made.is_built:
        raise EvaluatorFault(f"<{header}> cannot be precompiled: {made.message}")
    return made.binary


def _digest(language: Language, header: str) -> str:
    """Return the name of a header's folder."""
    compiler = require_compiler(language)
    version = ask_version(compiler)
    if not version:
        raise EvaluatorFault(
            f"{compiler} --version says nothing; run it, and install another compiler if it fails"
        )
    # A compiler that was replaced, or is given other flags, needs another header.
    identity = os.path.realpath(compiler), platform.machine(), version
    content = [header, identity, language.precompile_command(compiler)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


_MAGIC_OF_64_BITS = b"\x7fELF\x02"
"""First bytes of a 64-bit executable."""
_PROGRAM_INTERPRETER = 3
"""Type of a program header that holds the loader's path (PT_INTERP)."""
_MOST_HEADERS_BYTES = 1 << 16
"""Bytes at the start of an executable in which its program headers are looked for."""


def require_runtime(language: Language) -> tuple[Runtime, str]:
    """Return a language's runtime and the path of its command; EvaluatorFault if there is none."""
    command = language.runtime.find_command() if language.runtime else None
    if language.runtime is None or command is None:
        raise EvaluatorFault(language.find_problem())
    return language.runtime, os.path.realpath(command)


def describe_runtime(language: Language) -> dict[str, Any]:
    """Return what a sandbox adds for a language's runtime, in the form that is sent to it.

    These are files, variables and memory.
    """
    runtime, command = require_runtime(language)
    readable = expand_paths(runtime.fill(path, command) for path in runtime.readable)
    environment = {}
    for name, value in runtime.environment.items():
        environment[name] = runtime.fill(value, command)
    return {
        "readable": (*readable, command),
        # The only files that may be started: the runtime itself and the system's loader.
        "executables": (command, *_find_loader(command)),
        "environment": environment,
        "address_space_bytes": runtime.address_space_mib << 20,
        "reserved_bytes": runtime.reserved_memory_mib << 20,
    }


def load_built(
    language: Language,
    built: bytes,
    memory_mib: int,
) -> Loaded:
    """Return a built program ready to be run: by itself, or by its language's runtime."""
    if language.runtime is None:
        source = make_memory_file(built)
        return Loaded(source, source, (BUILT_FILE,))
    runtime, command = require_runtime(language)
    started = tuple(runtime.fill(part, command, memory_mib) for part in runtime.run)
    # The runtime is what is started; the program is a file that it reads.
    source = os.open(command, os.O_RDONLY | os.O_CLOEXEC)
    return Loaded(source, source, started, {runtime.program_file: built})


def _find_loader(command: str) -> tuple[str, ...]:
    """Return the path of an executable's dynamic loader, in a tuple.

    It is empty for a static executable.
    """
    with open(command, "rb") as file:
        head = file.read(_MOST_HEADERS_BYTES)
    if not head.startswith(_MAGIC_OF_64_BITS):
        raise EvaluatorFault(
            f"{command} is no 64-bit executable; name the program itself, "
            "not a script that starts it"
        )
    # Fields e_phoff, e_phentsize and e_phnum of the file's header: where the program headers are.
    (first,) = struct.unpack_from("<Q", head, 32)
    size, count = struct.unpack_from("<HH", head, 54)
    for start in range(first, first + size * count, size):
        kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", head, start)
        if kind == _PROGRAM_INTERPRETER:
            name = head[offset : offset + length].rstrip(b"\0").decode()
            return (os.path.realpath(name),)
    return ()

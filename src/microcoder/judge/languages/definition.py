"""The keys of a language file (docs/languages.md), and the Python that runs programs.

`Language` is a file; `current_interpreter` says which Python runs and which files it may read.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field, ValidationInfo, field_validator, model_validator

from microcoder.judge.core.types import Record

CURRENT_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
"""Version of the Python that MicroCoder, and so programs, run on."""

_Texts = Mapping[str, str] | tuple[str, ...]
"""Texts of a runtime: of a command, or by name."""

_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
"""Where a Linux system keeps its libraries."""
_PACKAGE_FOLDERS = ("site-packages", "dist-packages")
"""Names of folders of installed packages."""

_PRELOAD = (
    "array bisect collections contextlib copy dataclasses datetime decimal enum fractions "
    "functools heapq io itertools json math operator os queue random re statistics string sys "
    "threading time typing"
)
STANDARD_PRELOAD = tuple(_PRELOAD.split())
"""Modules that are loaded once, before programs are: those that answers import most."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and the files it needs."""

    executable: str
    """The interpreter itself, without its virtual environment."""
    abi: str
    """ABI tag that compiled packages must have, such as cpython-313-x86_64-linux-gnu."""
    stdlib: str
    """Folder of the standard library."""
    libraries: tuple[str, ...]
    """What programs may read: the system's libraries and the interpreter's."""
    hidden: tuple[str, ...]
    """Folders inside the libraries that programs must not read.

    They are installed packages, this one among them.
    """


@cache
def current_interpreter() -> Interpreter:
    """Return the interpreter this process runs on, without its virtual environment."""
    # A virtual environment is none of the files that programs may read.
    interpreter = getattr(sys, "_base_executable", None) or sys.executable
    executable = os.path.realpath(interpreter)
    stdlib = os.path.realpath(sysconfig.get_path("stdlib"))
    candidates = (*_SYSTEM_LIBRARIES, str(Path(stdlib).parent))
    libraries = tuple(path for path in candidates if os.path.exists(path))
    return Interpreter(
        executable=executable,
        abi=sysconfig.get_config_var("SOABI") or "",
        stdlib=stdlib,
        libraries=libraries,
        hidden=tuple(sorted(_find_package_folders(libraries))),
    )


def _find_package_folders(libraries: Iterable[str]) -> set[str]:
    """Return the folders of installed packages inside folders of libraries."""
    folders: set[str] = set()
    for library in libraries:
        for name in _PACKAGE_FOLDERS:
            pattern = f"{os.path.realpath(library)}/python*/{name}"
            matching = glob.glob(pattern)
            folders.update(map(os.path.realpath, matching))
    return folders


_FLAGS = "{flags}"
"""The piece of a build command that stands for the flags of the version."""
_HEADERS = "{headers}"
"""The piece of a build command that stands for where to look for headers first."""
_FILLED = {
    "build": ("compiler", "home"),
    "run": ("runtime", "home", "memory_mib"),
    "": ("runtime", "home"),
}
"""Key of a file, or empty for others -> the words in braces that are filled in its texts."""
_VERSION_SECONDS = 20
"""Longest time that a command may take to tell its version."""


class LanguageVersion(Record):
    """One version of a language."""

    aliases: tuple[str, ...] = ()
    """Names of the language that mean this version."""
    flags: tuple[str, ...] = ()
    """Arguments of the compiler."""


class PrecompiledHeaders(Record):
    """Headers that a compiler can read precompiled.

    It does so for a program that includes one of them before all else.
    """

    compiler: str
    """File name of the compiler that can precompile headers."""
    headers: tuple[str, ...]
    build: tuple[str, ...]
    """The command that precompiles a source that includes one header; it must leave a file named
    `main`."""


class Runtime(Record):
    """The command that runs a built program such as a jar, and what that needs.

    It needs files, variables and memory. In its texts, `{runtime}` is the path of the command,
    `{home}` the parent of its folder, with links resolved.
    """

    commands: tuple[str, ...] = Field(min_length=1)
    """Commands; the first found is used."""
    run: tuple[str, ...] = Field(min_length=1)
    """Command line that starts the program, in the program's folder; `{memory_mib}` is the
    problem's limit."""
    program_file: str = Field(pattern=r"^[\w][\w.-]*$")
    """File name of the built program in that folder."""
    environment: Mapping[str, str] = {}
    """Environment variables, added to those that a binary gets."""
    readable: tuple[str, ...] = ()
    """Paths that the runtime may read besides the system's libraries; may hold wildcards."""
    address_space_mib: int = Field(ge=64, le=1 << 20)
    """Address space that the runtime may reserve; memory in use is still bounded by the problem's
    limit."""
    reserved_memory_mib: int = Field(default=0, ge=0, le=1 << 14)
    """Writable memory that the runtime asks for and hardly uses, such as the stacks of its own
    threads."""

    @field_validator("run", "environment", "readable")
    @classmethod
    def _check_texts(cls, value: _Texts, info: ValidationInfo) -> _Texts:
        texts = value.values() if isinstance(value, Mapping) else value
        _check_fields(texts, "run" if info.field_name == "run" else "")
        return value

    def find_command(self) -> str | None:
        """Return the path of the runtime to use, or None if there is none."""
        return _find_command(self.commands)

    def fill(self, text: str, runtime: str, memory_mib: int = 0) -> str:
        """Return a text with `{runtime}`, `{home}` and `{memory_mib}` filled in."""
        return text.format(
            runtime=runtime,
            home=_home(runtime),
            memory_mib=memory_mib,
        )


class Language(Record):
    """How programs of one language are built and run."""

    name: str = Field(pattern=r"^[a-z][\w+#.-]*$")
    aliases: tuple[str, ...] = ()
    """Other names of the language, accepted wherever one is given."""
    source_file: str = ""
    compilers: tuple[str, ...] = ()
    """Commands to look for, or paths with `~` and wildcards; the first one found is used."""
    build: tuple[str, ...] = ()
    """The command, run in an empty folder that holds the source; it must leave a file named
    `main`: a static binary, or what the runtime runs. Filled in are `{compiler}`, `{home}` (the
    parent of the compiler's folder, with links resolved), `{flags}` (those of the version) and
    `{headers}` (where to look for headers first)."""
    precompiled: PrecompiledHeaders | None = None
    """Headers that are kept precompiled."""
    readable: tuple[str, ...] = ()
    """Paths that a build may read besides the system's libraries; may hold `{home}`, `~` and
    wildcards."""
    build_seconds: float = Field(default=10.0, gt=0)
    """CPU time of the compiler, where a judge does not set another."""
    build_memory_mib: int = Field(default=2048, ge=64)
    """Address space of the compiler."""
    runtime: Runtime | None = None
    """Runtime of programs that are not built to a binary."""
    startup_seconds: float = Field(default=0.0, ge=0, le=10)
    """CPU time that a program of this language may take beyond a problem's limit, on the reference
    machine."""
    startup_memory_mib: int = Field(default=0, ge=0, le=4096)
    """Memory that a program of this language may take beyond a problem's limit."""
    out_of_memory: str = ""
    """Text on stderr by which a program that ran out of memory is known."""
    install: str = ""
    """Command that installs the compiler, shown if none is found."""

    versions: Mapping[str, LanguageVersion] = {}
    default_version: str = ""
    """The version if neither problem nor program names one; for Python the one that MicroCoder runs
    on."""
    version: str = ""
    """The version to run, once chosen; empty if the language has none. Not a key of the file."""
    digest: str = ""
    """Digest of a language file from outside the package, which verdicts are tied to. Not a key of
    the file."""

    @field_validator("build")
    @classmethod
    def _check_build(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        texts = [piece for piece in value if piece not in (_FLAGS, _HEADERS)]
        _check_fields(texts, "build")
        return value

    @model_validator(mode="after")
    def _check_whole(self) -> Language:
        if self.runtime is not None and not self.build:
            raise ValueError(
                "a runtime needs a `build` that leaves `main`; to only copy the source, use cp"
            )
        if self.build and not (self.source_file and self.compilers):
            raise ValueError("`build` needs `source_file` and `compilers` too")
        return self

    @property
    def is_built(self) -> bool:
        """Whether programs are compiled before they run."""
        return bool(self.build)

    @property
    def label(self) -> str:
        """Name and version, for messages."""
        return f"{self.name} {self.version}".rstrip()

    def find_compiler(self) -> str | None:
        """Return the path of the compiler to use, or None if there is none."""
        return _find_command(self.compilers)

    def find_problem(self) -> str:
        """Return why programs of this language cannot be judged here; empty if they can."""
        if not self.is_built and self.version != CURRENT_VERSION:
            return (
                f"no Python {self.version} here: programs run on the Python that MicroCoder runs "
                f"on, {CURRENT_VERSION}; judge them where MicroCoder is installed for that one, "
                "on this machine or by `microcoder serve` there"
            )
        runtimes = self.runtime.commands if self.runtime else ()
        for noun, names in (("compiler", self.compilers), ("runtime", runtimes)):
            if names and not _find_command(names):
                known = ", ".join(names)
                return (
                    f"no {noun} for {self.name}: none of {known} found; "
                    f"install one ({self.install})"
                )
        return ""

    def find_readable(self) -> tuple[str, ...]:
        """Return the existing paths that a build may read besides the system's libraries."""
        home = _home(self.find_compiler() or "")
        return expand_paths(path.format(home=home) for path in self.readable)

    def build_command(self, compiler: str, headers: str = "") -> tuple[str, ...]:
        """Return the command that builds a program.

        Args:
            compiler: path of the compiler.
            headers: the folder of a precompiled header; empty for none.
        """
        return self._fill(self.build, compiler, headers)

    def precompile_command(self, compiler: str) -> tuple[str, ...]:
        """Return the command that precompiles a header.

        Empty if the language has none for this compiler.
        """
        # The precompiled form is the compiler's own: no other could read it.
        if self.precompiled is None:
            return ()
        if Path(compiler).name != self.precompiled.compiler:
            return ()
        return self._fill(self.precompiled.build, compiler)

    def _fill(
        self,
        pieces: tuple[str, ...],
        compiler: str,
        headers: str = "",
    ) -> tuple[str, ...]:
        flags = self.versions[self.version].flags if self.version else ()
        command: list[str] = []
        # A whole piece may become several arguments or none, which text in braces cannot.
        for piece in pieces:
            if piece == _FLAGS:
                command += flags
            elif piece == _HEADERS:
                if headers:
                    command += ["-I", headers]
            else:
                argument = piece.format(compiler=compiler, home=_home(compiler))
                command.append(argument)
        return tuple(command)


def expand_paths(patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the existing paths that match patterns with `~` and wildcards."""
    paths: list[str] = []
    for pattern in patterns:
        expanded = Path(pattern).expanduser()
        paths += sorted(glob.glob(str(expanded)))
    return tuple(paths)


@cache
def ask_version(command: str) -> str:
    """Return what a compiler or a runtime prints for `--version`.

    Empty if it says nothing within 20 s.
    """
    try:
        result = subprocess.run(
            [command, "--version"],
            capture_output=True,
            timeout=_VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return result.stdout.decode("utf-8", "replace")


def _find_command(names: Iterable[str]) -> str | None:
    for name in names:
        # A name is looked for in PATH; a path may have wildcards.
        candidates = expand_paths([name]) if "/" in name else (name,)
        for candidate in candidates:
            command = shutil.which(candidate)
            if command:
                return command
    return None


def _home(command: str) -> str:
    """Return the folder that a toolchain is installed in: its command is in `bin` there."""
    return str(Path(command).resolve().parent.parent)


def _check_fields(pieces: Iterable[str], key: str) -> None:
    """Raise ValueError if a text has words in braces that are not filled in for this key."""
    for piece in pieces:
        try:
            # Tried when the file is read: a typo should not wait for the first program.
            piece.format(**dict.fromkeys(_FILLED[key], ""))
        except (ValueError, LookupError) as error:
            known = ", ".join(f"{{{word}}}" for word in _FILLED[key])
            raise ValueError(
                f"{piece!r} cannot be filled in ({error!r}); {key or 'here'} knows {known}; "
                "write a brace as two"
            ) from None

"""The languages that programs may be written in: one declarative file each in this folder.

A language without `build` is the fork server's own (Python). Any other is built inside a sandbox that sees its
toolchain, into one static binary, and that binary is what the tests run. A language may have versions, of which a
problem may choose one. See docs/languages.md.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from pydantic import Field

from microcoder.errors import DataError, MicroCoderError
from microcoder.evaluator.interpreter import CURRENT_VERSION, Interpreter, find_interpreter
from microcoder.types import Problem, Program, Record

_FOLDER = Path(__file__).parent
_FLAGS, _HEADERS = "{flags}", "{headers}"


class LanguageVersion(Record):
    """One version of a language."""

    aliases: tuple[str, ...] = ()
    """Names of the language that mean this version."""
    flags: tuple[str, ...] = ()
    """What the compiler is told."""


class PrecompiledHeaders(Record):
    """Headers that a compiler takes in precompiled form, where a program includes one of them before all else."""

    compiler: str
    """The one of the compilers that does."""
    headers: tuple[str, ...]
    build: tuple[str, ...]
    """The command that precompiles a source that includes one header; it must leave a file named `main`."""


class Language(Record):
    """How programs of one language become something to run."""

    name: str
    aliases: tuple[str, ...] = ()
    """Other names that are accepted."""
    source_file: str = ""
    compilers: tuple[str, ...] = ()
    """Commands to look for; the first one found is used."""
    build: tuple[str, ...] = ()
    """The command, run in an empty folder that holds the source; it must leave a static binary named `main`.
    `{compiler}`, `{flags}`, those of the version, and `{headers}`, where to look for headers first, are filled in."""
    precompiled: PrecompiledHeaders | None = None
    """What is kept precompiled; see `headers`."""
    readable: tuple[str, ...] = ()
    """What a build may read besides the system's libraries."""
    build_seconds: float = Field(default=30.0, gt=0)
    build_memory_mib: int = Field(default=2048, ge=64)
    out_of_memory: str = ""
    """What a program that ran out of memory says last on stderr."""
    install: str = ""
    """What to type where no compiler is found."""

    versions: Mapping[str, LanguageVersion] = {}
    default_version: str = ""
    """The version where neither problem nor program names one; for Python the one that MicroCoder runs on."""
    version: str = ""
    """The version at hand; empty where the language has none. Not a key of the file."""

    @property
    def is_built(self) -> bool:
        """Whether programs are compiled before they run."""
        return bool(self.build)

    @property
    def label(self) -> str:
        """Name and version for a reader."""
        return f"{self.name} {self.version}".rstrip()

    def find_compiler(self) -> str | None:
        """Return the path of the compiler to use, or None where there is none."""
        return next((found for name in self.compilers if (found := shutil.which(name))), None)

    def find_interpreter(self) -> Interpreter:
        """Return the interpreter of a language that is not built.

        Raises:
            EvaluatorFault: there is none of this version; the message says what to install.
        """
        return find_interpreter(self.version)

    def find_problem(self) -> str:
        """Return why programs of this language cannot be judged here; empty where they can."""
        if not self.is_built:
            try:
                self.find_interpreter()
            except MicroCoderError as error:
                return str(error)
            return ""
        if self.find_compiler():
            return ""
        return f"no compiler for {self.name}: none of {', '.join(self.compilers)} found; install one ({self.install})"

    def build_command(self, compiler: str, headers: str = "") -> tuple[str, ...]:
        """Return the command that builds a program, with a folder of a precompiled header where there is one."""
        return self._fill(self.build, compiler, headers)

    def precompile_command(self, compiler: str) -> tuple[str, ...]:
        """Return the command that precompiles a header; empty where this compiler takes none."""
        if self.precompiled is None or Path(compiler).name != self.precompiled.compiler:
            return ()
        return self._fill(self.precompiled.build, compiler)

    def _fill(self, pieces: tuple[str, ...], compiler: str, headers: str = "") -> tuple[str, ...]:
        flags = self.versions[self.version].flags if self.version else ()
        filled = {_FLAGS: flags, _HEADERS: ("-I", headers) if headers else ()}
        return tuple(
            part
            for piece in pieces
            for part in (filled[piece] if piece in filled else (piece.format(compiler=compiler),))
        )


def _load() -> dict[str, Language]:
    found = [Language.model_validate(tomllib.loads(path.read_text())) for path in sorted(_FOLDER.glob("*.toml"))]
    return {
        language.name: language.model_copy(
            update={"version": language.default_version if language.is_built else CURRENT_VERSION}
        )
        for language in found
    }


LANGUAGES: Mapping[str, Language] = MappingProxyType(_load())
"""By name."""


def _name_all() -> Iterator[tuple[str, tuple[Language, str]]]:
    """Yield each name with its language and the version that it means, if it means one."""
    for language in LANGUAGES.values():
        yield from ((name, (language, "")) for name in (language.name, *language.aliases))
        for version, described in language.versions.items():
            yield from ((name, (language, version)) for name in described.aliases)


_BY_ANY_NAME = dict(_name_all())


@lru_cache(256)
def find_language(name: str, version: str = "") -> Language:
    """Return a language by its name or one of its aliases, in a version or in the one that is usual here.

    Raises:
        DataError: there is no such language, or not in this version.
    """
    if name.lower() not in _BY_ANY_NAME:
        raise DataError(f"language = {name!r}; use one of {', '.join(LANGUAGES)}")
    language, named = _BY_ANY_NAME[name.lower()]
    if version and named and version != named:
        raise DataError(
            f"language = {name!r} and language_version = {version!r} contradict each other; use one of them"
        )
    chosen = version or named or language.version
    if chosen != language.version and chosen not in language.versions:
        raise DataError(
            f"language_version = {version!r}; for {language.name} use one of {', '.join(language.versions) or 'none'}, "
            f"or leave it out for {language.version}"
        )
    return language if chosen == language.version else language.model_copy(update={"version": chosen})


def language_of(problem: Problem) -> Language:
    """Return the language, and its version, that a problem's programs are written in.

    Raises:
        DataError: there is no such language or version.
    """
    return find_language(problem.language, problem.language_version)


def check_language(program: Program, problem: Problem, what: str) -> None:
    """Refuse a program that is written in another language than its problem wants.

    Raises:
        DataError: it is; `what` names the program.
    """
    if program.language == problem.language:
        return
    wanted, written = language_of(problem), find_language(program.language)
    if written.name != wanted.name or (_BY_ANY_NAME[program.language.lower()][1] or wanted.version) != wanted.version:
        raise DataError(f"{what} is in {program.language!r}, problem {problem.id} wants {wanted.label!r}")

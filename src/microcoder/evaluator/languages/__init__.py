"""The languages that programs may be written in: one declarative file each in this folder.

A language without `build` is the fork server's own (Python). Any other is built inside a sandbox that sees its
toolchain, into one static binary, and that binary is what the tests run. See docs/languages.md.
"""

from __future__ import annotations

import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from pydantic import Field

from microcoder.errors import DataError
from microcoder.types import Problem, Program, Record

_FOLDER = Path(__file__).parent


class Language(Record):
    """How programs of one language become something to run."""

    name: str
    aliases: tuple[str, ...] = ()
    """Other names that are accepted."""
    source_file: str = ""
    compilers: tuple[str, ...] = ()
    """Commands to look for; the first one found is used."""
    build: tuple[str, ...] = ()
    """The command, run in an empty folder that holds the source; it must leave a static binary named `main`."""
    readable: tuple[str, ...] = ()
    """What a build may read besides the system's libraries."""
    build_seconds: float = Field(default=30.0, gt=0)
    build_memory_mib: int = Field(default=2048, ge=64)
    out_of_memory: str = ""
    """What a program that ran out of memory says last on stderr."""
    install: str = ""
    """What to type where no compiler is found."""

    @property
    def is_built(self) -> bool:
        """Whether programs are compiled before they run."""
        return bool(self.build)

    def find_compiler(self) -> str | None:
        """Return the path of the compiler to use, or None where there is none."""
        return next((found for name in self.compilers if (found := shutil.which(name))), None)

    def find_problem(self) -> str:
        """Return why programs of this language cannot be judged here; empty where they can."""
        if not self.is_built or self.find_compiler():
            return ""
        return f"no compiler for {self.name}: none of {', '.join(self.compilers)} found; install one ({self.install})"

    def build_command(self, compiler: str) -> tuple[str, ...]:
        """Return the command that builds a program."""
        return tuple(part.format(compiler=compiler) for part in self.build)


def _load() -> dict[str, Language]:
    found = [Language.model_validate(tomllib.loads(path.read_text())) for path in sorted(_FOLDER.glob("*.toml"))]
    return {language.name: language for language in found}


LANGUAGES: Mapping[str, Language] = MappingProxyType(_load())
"""By name."""

_BY_ANY_NAME = {name: language for language in LANGUAGES.values() for name in (language.name, *language.aliases)}


def find_language(name: str) -> Language:
    """Return a language by its name or one of its aliases.

    Raises:
        DataError: there is no such language.
    """
    language = _BY_ANY_NAME.get(name.lower())
    if language is None:
        raise DataError(f"language = {name!r}; use one of {', '.join(LANGUAGES)}")
    return language


def check_language(program: Program, problem: Problem, what: str) -> None:
    """Refuse a program that is written in another language than its problem wants.

    Raises:
        DataError: it is; `what` names the program.
    """
    if program.language != problem.language and find_language(program.language) is not find_language(problem.language):
        raise DataError(f"{what} is in {program.language!r}, problem {problem.id} wants {problem.language!r}")

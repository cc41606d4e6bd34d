"""The languages that programs may be written in: one declarative file each.

The files are in this folder, or the user's own. A language without `build` is the fork server's own
(Python). Any other is built inside a sandbox that sees its toolchain, into one static binary, or
into a file that its runtime runs, and that is what the tests run. A language may have versions, of
which a problem may choose one. See docs/languages.md.

`find_language` and `LANGUAGES` give a `Language`, whose keys are in `definition`: read that first.
`packages` says which third-party packages programs may import, `kept_folders` where those are kept.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from microcoder.judge.core.errors import ConfigError, DataError, Location, explain_fault
from microcoder.judge.core.types import Problem, Program
from microcoder.judge.languages.definition import CURRENT_VERSION, Language

LANGUAGES_VARIABLE = "MICROCODER_LANGUAGES"
"""Environment variable: the user's own language files, separated by ":".

Child processes inherit it.
"""
_FOLDER = Path(__file__).parent
"""Folder of the package's own language files."""
_MOST_SHOWN = 50
"""Most characters of a language's name that a message shows."""


class _Languages(Mapping[str, Language]):
    """All languages by name: built in, and from the files named in the environment."""

    def __getitem__(self, name: str) -> Language:
        return _load(_list_files())[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_load(_list_files()))

    def __len__(self) -> int:
        return len(_load(_list_files()))


def _list_files() -> str:
    """Return the paths of the user's own files, separated by ":"."""
    # Read at each look, since a language may be added at any time.
    return os.environ.get(LANGUAGES_VARIABLE, "")


@lru_cache(1)
def _load(files: str) -> dict[str, Language]:
    """Return all languages; once for each value of the environment variable."""
    shipped = map(_read, sorted(_FOLDER.glob("*.toml")))
    own = {language.name: language for language in shipped}
    further = [Path(path) for path in files.split(":") if path]
    return _join(own, further)


def _read(path: Path) -> Language:
    text = path.read_text()
    language = Language.model_validate(tomllib.loads(text))
    version = language.default_version if language.is_built else CURRENT_VERSION
    # Those of the package are tied to verdicts by its version.
    digest = ""
    if path.parent != _FOLDER:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return language.model_copy(update={"version": version, "digest": digest})


def _join(own: dict[str, Language], paths: list[Path]) -> dict[str, Language]:
    """Return languages with those of further files; ConfigError if a name is taken."""
    languages = dict(own)
    for path in paths:
        language = read_language(path)
        known_names = _by_any_name(languages.values()).keys()
        taken = known_names & _by_any_name([language]).keys()
        if taken:
            raise ConfigError(
                f"language file {path}: {min(taken)} is a language already; use another name"
            )
        languages[language.name] = language
    return languages


def _by_any_name(languages: Iterable[Language]) -> dict[str, tuple[Language, str]]:
    """Return languages by name and alias, each with the version in that name (`cpp17`).

    The version is empty if the name has none.
    """
    by_name: dict[str, tuple[Language, str]] = {}
    for language in languages:
        names = (language.name, *language.aliases)
        by_name |= dict.fromkeys(names, (language, ""))
        for number, version in language.versions.items():
            by_name |= dict.fromkeys(version.aliases, (language, number))
    return by_name


def read_language(path: Path) -> Language:
    """Read a language file of the user's own.

    Raises:
        ConfigError: it is missing, invalid or has no `build`.
    """
    try:
        language = _read(path)
    except OSError as error:
        raise ConfigError(
            f"language file {path}: {error.strerror}; check the path, taken from {Path.cwd()}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"language file {path}: {error}") from None
    except ValidationError as error:
        # A misspelt key says more than that the right one is missing.
        errors = error.errors()
        misspelt = [fault for fault in errors if fault["type"] == "extra_forbidden"]
        first = (misspelt or errors)[0]
        key = ".".join(map(str, first["loc"]))
        message = explain_fault(first, key)
        line = _find_line(path.read_text(), first["loc"])
        raise ConfigError(f"language file {path} line {line}: {message}") from None
    if not language.is_built:
        raise ConfigError(f"language file {path}: it has no build; see docs/languages.md")
    return language


def _find_line(text: str, location: Location) -> int:
    """Return the number of the first line that has a setting's key, or its table's.

    It is 1 if the key is missing.
    """
    # From the innermost key outwards: that line is the nearest to the fault.
    for part in reversed(location):
        key = re.compile(rf"\s*\[?\"?{re.escape(str(part))}\"?\s*[=.\]]")
        for number, line in enumerate(text.splitlines(), 1):
            if key.match(line):
                return number
    return 1


LANGUAGES = _Languages()
"""All languages, by name."""


def add_language(path: str | Path) -> Language:
    """Register a language file in this process and its later children; return the language.

    Raises:
        ConfigError: it cannot be used, or its name is taken.
    """
    resolved = Path(path).expanduser().resolve()
    files = [file for file in _list_files().split(":") if file]
    # To add a file twice is no error, though its own name is taken by then.
    if str(resolved) in files:
        return read_language(resolved)
    # Read and compared with all others first: a bad file must not get into the environment.
    languages = _join(dict(LANGUAGES), [resolved])
    # In the environment, so that worker processes know it, too.
    known_files = [*files, str(resolved)]
    os.environ[LANGUAGES_VARIABLE] = ":".join(known_files)
    return languages[next(reversed(languages))]


def find_language(name: str, version: str = "") -> Language:
    """Return a language by name or alias, in the version given or its default one.

    Raises:
        DataError: there is no such language, or no such version.
    """
    return _find(name, version, _list_files())[0]


def known_language(name: object) -> str:
    """Return the language that a text names, by any alias (`C++`); empty if it names none."""
    if not isinstance(name, str):
        return ""
    try:
        return find_language(name).name
    except DataError:
        return ""


@lru_cache(256)
def _find(name: str, version: str, files: str) -> tuple[Language, str]:
    """Return the language, and the version in its name (`cpp17`), empty if it has none."""
    # By an argument and not read here, so that the cache notices a new file.
    by_any_name = _by_any_name(_load(files).values())
    if name.lower() not in by_any_name:
        raise DataError(
            f"language = {name[:_MOST_SHOWN]!r}; use one of {', '.join(LANGUAGES)}, "
            "or add a language file (docs/languages.md)"
        )
    language, named_version = by_any_name[name.lower()]
    if version and named_version and version != named_version:
        raise DataError(
            f"language = {name!r} and language_version = {version!r} contradict each other; "
            "use one of them"
        )
    chosen = version or named_version or language.version
    if chosen != language.version:
        if chosen not in language.versions:
            raise DataError(
                f"language_version = {version!r}; for {language.name} use one of "
                f"{', '.join(language.versions) or 'none'}, "
                f"or leave it out for {language.version}"
            )
        language = language.model_copy(update={"version": chosen})
    return language, named_version


def language_of(problem: Problem) -> Language:
    """Return the language of a problem's programs, in the problem's version."""
    return find_language(problem.language, problem.language_version)


def check_language(program: Program, problem: Problem, what: str) -> None:
    """Raise DataError unless a program can be judged against a problem.

    It is a `Program`, in the problem's language and version.

    Args:
        program: the program.
        problem: the problem.
        what: the program's name, for the message.
    """
    if not isinstance(program, Program):
        raise DataError(
            f"{what} is a {type(program).__name__}; "
            "pass Program(code), or extract_program(response)"
        )
    if not isinstance(problem, Problem):
        raise DataError(
            f"{what} has a {type(problem).__name__} for a problem; pass read_problem(row)"
        )
    if program.language == problem.language:
        return
    wanted = language_of(problem)
    written, named_version = _find(program.language, "", _list_files())
    is_other_version = bool(named_version) and named_version != wanted.version
    if written.name != wanted.name or is_other_version:
        raise DataError(
            f"{what} is in {program.language!r}, problem {problem.id} wants {wanted.label!r}"
        )

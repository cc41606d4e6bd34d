"""The languages that programs may be written in: one declarative file each, in this folder or the user's own.

A language without `build` is the fork server's own (Python). Any other is built inside a sandbox that sees its
toolchain, into one static binary, or into a file that its runtime runs, and that is what the tests run. A language may
have versions, of which a problem may choose one. See docs/languages.md.
"""

import hashlib
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from microcoder.judge.core.errors import ConfigError, DataError, explain_fault
from microcoder.judge.core.types import Problem, Program
from microcoder.judge.languages.definition import CURRENT_VERSION, Language

LANGUAGES_VARIABLE = "MICROCODER_LANGUAGES"
"""Environment variable: the user's own language files, separated by ":"; child processes inherit it."""
_FOLDER = Path(__file__).parent


class _Languages(Mapping[str, Language]):
    """All languages by name: built in, and from the files named in the environment."""

    def __getitem__(self, name: str) -> Language:
        return _load(_named())[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_load(_named()))

    def __len__(self) -> int:
        return len(_load(_named()))


def _named() -> str:
    return os.environ.get(LANGUAGES_VARIABLE, "")


@lru_cache(1)
def _load(named: str) -> dict[str, Language]:
    own = {language.name: language for language in map(_read, sorted(_FOLDER.glob("*.toml")))}
    return _join(own, [Path(path) for path in named.split(":") if path])


def _read(path: Path) -> Language:
    text = path.read_text()
    language = Language.model_validate(tomllib.loads(text))
    version = language.default_version if language.is_built else CURRENT_VERSION
    digest = "" if path.parent == _FOLDER else hashlib.sha256(text.encode()).hexdigest()[:16]
    return language.model_copy(update={"version": version, "digest": digest})


def _join(own: dict[str, Language], paths: list[Path]) -> dict[str, Language]:
    found = dict(own)
    for path in paths:
        language = read_language(path)
        taken = _by_any_name(found.values()).keys() & _by_any_name([language]).keys()
        if taken:
            raise ConfigError(
                f"language file {path}: {min(taken)} is a language already; use another name"
            )
        found[language.name] = language
    return found


def _by_any_name(languages: Iterable[Language]) -> dict[str, tuple[Language, str]]:
    """Return languages by name and alias, each with the version in that name (`cpp17`), empty if it has none."""
    found: dict[str, tuple[Language, str]] = {}
    for one in languages:
        found |= dict.fromkeys((one.name, *one.aliases), (one, ""))
        for number, described in one.versions.items():
            found |= dict.fromkeys(described.aliases, (one, number))
    return found


def read_language(path: Path) -> Language:
    """Read a language file of the user's own; ConfigError if it is missing, invalid or has no `build`."""
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
        first = max(error.errors(), key=lambda one: one["type"] == "extra_forbidden")
        fault = explain_fault(first, ".".join(map(str, first["loc"])))
        line = _find_line(path.read_text(), first["loc"])
        raise ConfigError(f"language file {path} line {line}: {fault}") from None
    if not language.is_built:
        raise ConfigError(f"language file {path}: it has no build; see docs/languages.md")
    return language


def _find_line(text: str, place: tuple[int | str, ...]) -> int:
    """Return the number of the first line that has a setting's key, or its table's; 1 if the key is missing."""
    for part in reversed(place):
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
    named = [one for one in _named().split(":") if one]
    if str(resolved) in named:
        return read_language(resolved)
    known = _join(dict(LANGUAGES), [resolved])
    os.environ[LANGUAGES_VARIABLE] = ":".join([*named, str(resolved)])
    return known[next(reversed(known))]


def find_language(name: str, version: str = "") -> Language:
    """Return a language by name or alias, in the version given or its default one; raises DataError."""
    return _find(name, version, _named())[0]


def known_language(name: object) -> str:
    """Return the language that a text names, by any alias (`C++`); empty if it names none."""
    with suppress(DataError):
        return find_language(name).name if isinstance(name, str) else ""
    return ""


@lru_cache(256)
def _find(name: str, version: str, files: str) -> tuple[Language, str]:
    """Return the language, and the version in its name (`cpp17`), empty if it has none."""
    by_any_name = _by_any_name(_load(files).values())
    if name.lower() not in by_any_name:
        raise DataError(
            f"language = {name[:50]!r}; use one of {', '.join(LANGUAGES)}, or add a language file (docs/languages.md)"
        )
    language, named = by_any_name[name.lower()]
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
    return (
        language if chosen == language.version else language.model_copy(update={"version": chosen})
    ), named


def language_of(problem: Problem) -> Language:
    """Return the language of a problem's programs, in the problem's version."""
    return find_language(problem.language, problem.language_version)


def check_language(program: Program, problem: Problem, what: str) -> None:
    """Raise DataError unless `program` is a `Program` in the problem's language and version; `what`: its name."""
    if not isinstance(program, Program):
        raise DataError(
            f"{what} is a {type(program).__name__}; pass Program(code), or extract_program(response)"
        )
    if not isinstance(problem, Problem):
        raise DataError(
            f"{what} has a {type(problem).__name__} for a problem; pass read_problem(row)"
        )
    if program.language == problem.language:
        return
    wanted, written = language_of(problem), find_language(program.language)
    named = _find(program.language, "", _named())[1]
    if written.name != wanted.name or (named or wanted.version) != wanted.version:
        raise DataError(
            f"{what} is in {program.language!r}, problem {problem.id} wants {wanted.label!r}"
        )

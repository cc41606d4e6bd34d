"""Reads packages in the Kattis and ICPC format.

https://www.kattis.com/problem-package-format/ describes it. Read are statements (TeX, Markdown,
HTML), tests by group, output validators and submissions. The time limit is `.timelimit` or
`limits.time_limit`. Some packages only say how many times its slowest accepted submission may take:
these are left to the verify stage.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from microcoder.data.formats import input_kits
from microcoder.data.formats.candidates import Candidate, Known
from microcoder.data.formats.format import Folders, Format
from microcoder.data.formats.includes import inline_includes
from microcoder.data.formats.packages import (
    Package,
    PackagedProgram,
    PackagedTest,
    read_amount,
    setting_text,
)
from microcoder.data.formats.programs import language_of
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import read_licence
from microcoder.judge.core.types import Checker, Interactor

TAKES = (
    "problem.yaml",
    ".timelimit",
    "domjudge-problem.ini",
    "problem_statement/*",
    "statement/*",
    "data/**",
    "output_validators/**",
    "output_validator/**",
    "submissions/**",
    "include/**",
    *input_kits.TAKES,
)
"""Patterns of the files of a package that are read; generators may lie below `data`."""
_TEXTS = (
    r"problem\.yaml|\.timelimit|(problem_)?statement/problem\.(en[^/.]*\.)?(tex|md|html?)"
    r"|output_validators?/.*\.(py3?|cc|cpp|cxx|h|hpp)"
)
"""Paths that must be UTF-8, else the package is rejected. Tests must be too; submissions that are
not are left out."""
_KNOWN: dict[str, Known] = {
    "accepted": "accepted",
    "wrong_answer": "wrong_answer",
    "time_limit_exceeded": "time_limit",
    "memory_limit_exceeded": "memory_limit",
    "run_time_error": "runtime_error",
    "runtime_error": "runtime_error",
    "compile_error": "compile_error",
    "partially_accepted": "partial",
    # Of the format of 2023-07: wrong on some test in some way; right, and too slow.
    "rejected": "wrong_answer",
    "brute_force": "time_limit",
    # DOMjudge's own names, as a submission says them itself.
    "correct": "accepted",
    "no_output": "wrong_answer",
    "output_limit": "wrong_answer",
    "timelimit": "time_limit",
    "memory_limit": "memory_limit",
    "run_error": "runtime_error",
    "compiler_error": "compile_error",
}
"""Verdict by the name of a submission's folder, or by a name in its comment for DOMjudge."""
_EXPECTED = re.compile(
    r"@EXPECTED_RESULTS@:?[ \t]*([a-z_-]+(?:[ \t]*,[ \t]*[a-z_-]+)*)", re.IGNORECASE
)
"""DOMjudge's comment in a submission that says its verdict."""
_DOMJUDGE_LIMIT = re.compile(r"^timelimit[ \t]*=[ \t]*['\"]?([\d.]+)", re.MULTILINE)
_STATEMENT = (
    r"(?:problem_statement|statement)/problem(?:\.(?P<language>\w{2,3}(?:-\w+)?))?"
    r"\.(?:tex|md|html?)"
)
"""Path of a statement."""
_NAME = re.compile(
    r"\\problemname\{([^}]{0,300})\}|^#\s+(.+)$|<h1[^>]{0,200}>([^<]{1,300})</h1>", re.MULTILINE
)
"""Title in a statement: in TeX, in Markdown, in HTML."""
_SETTINGS_OF_TESTS = (
    "data/testdata.yaml",
    "data/secret/testdata.yaml",
    "data/test_group.yaml",
    "data/secret/test_group.yaml",
)
_FLAGS = ("validator_flags", "output_validator_flags", "output_validator_args")
"""Settings that hold the flags of the output validator, by version of the format."""
_VALIDATORS = ("output_validators/", "output_validator/")
"""Folders of output validators, by version of the format."""
_REAL = re.compile(
    r"\b(?:error|precision|tolerance|decimals?|accuracy|real numbers?|floating)\b|10\^\{?-",
    re.IGNORECASE,
)
_REAL_TOKEN = re.compile(r"(?:^|\s)-?\d*(?:\.\d+|\d[eE]-?\d+)(?=\s|$)")
_DEFAULT_MEMORY_MIB = 2048
"""The format's default memory limit."""


def read_kattis(row: Row) -> Candidate:
    """Read a package in the Kattis format into a candidate; Malformed if it cannot be read."""
    package = Package.open(row, texts=_TEXTS)
    files = package.files
    settings = package.read_settings("problem.yaml")
    path = package.find_statement((_STATEMENT,))
    statement = files[path]
    language = _find_language(path)
    package.read_tests(_list_tests(package), missing="without an answer")
    interactor = None
    checker = Checker()
    if _is_interactive(settings):
        interactor = _read_interactor(settings, package)
    else:
        checker = _drop_idle_tolerance(_read_checker(settings, package), statement, package)
    package.read_solutions(
        _list_submissions(package),
        left_out="of several files, another language, no known verdict, or no text",
    )
    if "score" in setting_text(settings, "validation").split():
        package.flag("gives_points")
    if any(name.startswith("include/") for name in files):
        package.flag("needs_files")
    limits = settings.get("limits")
    if not isinstance(limits, Mapping):
        limits = {}
    seconds = _read_seconds(limits, files)
    multiplier = _read_multiplier(limits) if seconds is None else None
    return package.candidate(
        statement,
        url=setting_text(settings, "source_url"),
        platform="kattis",
        title=_find_title(settings, statement, language) or row.name("name"),
        licence=read_licence(settings.get("license")) or row.licence,
        tags=tuple(setting_text(settings, "keywords").split()),
        natural_language=language,
        kit=input_kits.read_kit(files),
        checker=checker,
        interactor=interactor,
        time_limit_seconds=seconds,
        time_multiplier=multiplier,
        memory_limit_mib=round(read_amount(limits.get("memory")) or _DEFAULT_MEMORY_MIB),
    )


def _find_language(path: str) -> str:
    """Return the language that the path of a statement names; empty if it names none."""
    match = re.fullmatch(_STATEMENT, path, re.IGNORECASE)
    if match is None:
        return ""
    return match["language"] or ""


def _find_title(settings: Mapping[str, Any], statement: str, language: str) -> str:
    """Return the title in the settings, else in the statement; empty without one."""
    name = settings.get("name")
    if isinstance(name, Mapping):
        name = name.get(language) or next(iter(name.values()), "")
    if isinstance(name, str) and name.strip():
        return name.strip()
    heading = _NAME.search(statement)
    if heading is None:
        return ""
    return heading[1] or heading[2] or heading[3]


def _read_seconds(limits: Mapping[str, Any], files: Mapping[str, str]) -> float | None:
    """Return the first time limit that is a number: `.timelimit`, the settings', DOMjudge's."""
    of_domjudge = _DOMJUDGE_LIMIT.search(files.get("domjudge-problem.ini", ""))
    amounts = [files.get(".timelimit"), limits.get("time_limit")]
    if of_domjudge:
        amounts.append(of_domjudge[1])
    for amount in amounts:
        seconds = read_amount(amount)
        if seconds is not None:
            return seconds
    return None


def _read_multiplier(limits: Mapping[str, Any]) -> float | None:
    """Return the factor from the slowest accepted submission's time to the time limit.

    It is read in the form of 2023-07, else in the legacy one.
    """
    multipliers = limits.get("time_multipliers")
    if isinstance(multipliers, Mapping):
        return read_amount(multipliers.get("ac_to_time_limit"))
    return read_amount(limits.get("time_multiplier"))


def _list_tests(package: Package) -> Iterator[PackagedTest]:
    """Yield group, path of the input and path of the answer of each test."""
    # Also files that are no text: a test of these makes the package malformed, not smaller.
    for path in package.paths:
        if path.startswith("data/") and path.endswith(".in"):
            group = posixpath.dirname(path).removeprefix("data").strip("/")
            yield group, path, f"{path.removesuffix('.in')}.ans"


def _list_submissions(package: Package) -> Iterator[PackagedProgram]:
    """Yield path and verdict of each submission's file.

    The verdict is None if it is not known, or if the submission has several files.
    """
    for path in package.paths:
        if not path.startswith("submissions/"):
            continue
        folder, _, rest = path.removeprefix("submissions/").partition("/")
        is_single_file = bool(rest) and "/" not in rest
        if is_single_file:
            yield path, _find_verdict(package.files.get(path, ""), folder)
        else:
            yield path, None


def _find_verdict(code: str, folder: str) -> Known | None:
    """Return the verdict in a program's comment, else its folder's; None if it is unknown.

    Of several, some right and some wrong, none is known; of several wrong ones: wrong answer.
    """
    comment = _EXPECTED.search(code)
    names = [folder]
    if comment:
        written = comment[1].lower().replace("-", "_")
        names = written.split(",")
    verdicts = {_KNOWN.get(name.strip()) for name in names}
    if len(verdicts) > 1:
        return None if "accepted" in verdicts else "wrong_answer"
    return verdicts.pop()


def _read_checker(settings: Mapping[str, Any], package: Package) -> Checker:
    """Return the checker that a package's settings and output validators make up."""
    files = package.files
    validation = setting_text(settings, "validation")
    flags = _find_flags(settings, package)
    # The format of 2023-07 has no word `custom`: the folder says it.
    has_own = any(name.startswith("output_validator/") for name in files)
    if "custom" not in validation and not has_own:
        checker = _read_flags(flags)
        if "space_change_sensitive" in flags and checker.type != "exact":
            package.notes.append(("checker", "spaces are not compared, though its flags say so"))
        return checker
    validator = _read_validator(package)
    if validator is None:
        return Checker()
    code, language = validator
    return Checker(
        type="program",
        code=code,
        language=language,
        protocol="kattis",
        arguments=tuple(flags),
    )


def _is_interactive(settings: Mapping[str, Any]) -> bool:
    """Whether the output validator of a package talks with the program."""
    kind = setting_text(settings, "type")
    validation = setting_text(settings, "validation")
    return "interactive" in validation or "interactive" in kind or "multi-pass" in kind


def _read_interactor(settings: Mapping[str, Any], package: Package) -> Interactor | None:
    """Return the output validator that talks with programs; None, and a flag, if it cannot."""
    # The program is run again on what it said before.
    if "multi-pass" in setting_text(settings, "type"):
        package.flag("interactive", "it is run in several passes")
        return None
    validator = _read_validator(package)
    if validator is None:
        package.flag("interactive")
        return None
    code, language = validator
    flags = _find_flags(settings, package)
    return Interactor(code=code, language=language, protocol="kattis", arguments=tuple(flags))


def _read_validator(package: Package) -> tuple[str, str] | None:
    """Return source and language of the output validator; None, and a flag, if it is not one."""
    files = package.files
    sources = []
    for name in sorted(files):
        if name.startswith(_VALIDATORS) and language_of(name) in ("python", "cpp"):
            sources.append(name)
    # Which of several is the validator, nothing says.
    if len(sources) != 1:
        package.flag("needs_checker", f"{len(sources)} sources of output validators")
        return None
    code, missing = inline_includes(sources[0], files)
    package.note_checker(sources[0], missing)
    # An empty text is refused, which a blank one stands for.
    return code or " ", language_of(sources[0])


def _find_flags(settings: Mapping[str, Any], package: Package) -> list[str]:
    """Return the flags of the output validator: the package's, else those of its tests."""
    all_settings = [settings]
    for name in _SETTINGS_OF_TESTS:
        if name in package.files:
            all_settings.append(package.read_settings(name))
    for some in all_settings:
        for name in _FLAGS:
            flags = setting_text(some, name)
            if flags:
                return flags.split()
    return []


def _read_flags(flags: Sequence[str]) -> Checker:
    """Return the checker for flags of Kattis' default validator.

    It compares tokens, ignoring case. Spaces are compared only by an `exact` checker, so not
    together with a tolerance, nor if case is ignored.
    """
    is_case_sensitive = "case_sensitive" in flags
    # The value of a flag is the word behind it.
    values = dict(itertools.pairwise(flags))
    both = values.get("float_tolerance")
    absolute = _read_tolerance(both or values.get("float_absolute_tolerance"))
    relative = _read_tolerance(both or values.get("float_relative_tolerance"))
    if absolute or relative:
        return Checker(
            type="float",
            case_sensitive=is_case_sensitive,
            absolute=absolute,
            relative=relative,
        )
    if is_case_sensitive and "space_change_sensitive" in flags:
        return Checker(type="exact")
    return Checker(type="tokens", case_sensitive=is_case_sensitive)


def _read_tolerance(text: str | None) -> float | None:
    if text is None:
        return None
    with suppress(ValueError):
        tolerance = float(text)
        if 0 <= tolerance < 1:
            return tolerance
    raise Malformed("bad_checker", f"validator_flags: {text} is not a tolerance")


def _drop_idle_tolerance(checker: Checker, statement: str, package: Package) -> Checker:
    """Return the checker; without its tolerance where the problem has no real numbers.

    Archives set one tolerance for all of their problems; of integers it would let wrong ones pass.
    """
    # Words of real numbers in the statement are enough.
    if checker.type != "float" or _REAL.search(statement):
        return checker
    if any(_REAL_TOKEN.search(test.output) for _, test in package.tests):
        return checker
    package.notes.append(
        ("checker", "a tolerance, but neither statement nor answers have real numbers")
    )
    return Checker(type="tokens", case_sensitive=checker.case_sensitive)


FORMAT = Format(
    "kattis",
    "Kattis problem packages",
    read_kattis,
    folders=Folders(("problem.yaml",), TAKES, skips=("testdata_tools",)),
)
"""Kattis problem packages."""

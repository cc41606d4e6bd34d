"""Kattis problem packages: statements (TeX, Markdown, HTML), tests by group, output validators, submissions.

The format: https://www.kattis.com/problem-package-format/. The time limit is `.timelimit` or `limits.time_limit`; where
a package only says how many times its slowest accepted submission may take, it is left to the verify stage.
"""

from __future__ import annotations

import itertools
import math
import posixpath
import re
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from microcoder.formats import input_kits
from microcoder.formats.candidates import Candidate, Known, Solution
from microcoder.formats.format import Folders, Format
from microcoder.formats.packages import inline_includes, read_amount, read_file_solution, read_settings
from microcoder.formats.row import Malformed, Row
from microcoder.formats.text import shorten
from microcoder.types import Checker, TestCase

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
"""What is read of a package; `data` holds generators too."""

_KNOWN: dict[str, Known] = {
    "accepted": "accepted",
    "wrong_answer": "wrong_answer",
    "time_limit_exceeded": "time_limit",
    "memory_limit_exceeded": "memory_limit",
    "run_time_error": "runtime_error",
    "runtime_error": "runtime_error",
    "compile_error": "compile_error",
    "partially_accepted": "partial",
}
_STATEMENT = re.compile(r"(?:problem_statement|statement)/problem(?:\.(\w{2,3}(?:-\w+)?))?\.(tex|md|html?)")
_NAME = re.compile(r"\\problemname\{([^}]{0,300})\}|^#\s+(.+)$|<h1[^>]{0,200}>([^<]{1,300})</h1>", re.MULTILINE)
_SECONDS = re.compile(r"\btime ?limit(?: per test)?\b\W{0,3}(\d+(?:\.\d+)?) ?s(?:ec(?:onds?)?)?\b", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{1,300}>")
_DOMJUDGE_LIMIT = re.compile(r"^timelimit[ \t]*=[ \t]*['\"]?(\d+(?:\.\d+)?)", re.MULTILINE)
_TEXTS = (
    r"problem\.yaml|\.timelimit|(problem_)?statement/problem\.([^/]*\.)?(tex|md|html?)"
    r"|output_validators?/.*\.(py3?|cc|cpp|cxx|h|hpp)"
)
"""Of the rest, tests must be text too, and submissions that are none are counted."""
_KINDS = ("tex", "md", "htm")
_SCRIPTS = {".py3": "python", ".py": "python", ".cpp": "cpp", ".cc": "cpp", ".cxx": "cpp"}
_TEST_FLAGS = re.compile(r"^output_validator_flags:[ \t]*([^\n#]{1,300})", re.MULTILINE)
_REAL = re.compile(
    r"\b(?:error|precision|tolerance|decimals?|accuracy|real numbers?|floating)\b|10\^\{?-", re.IGNORECASE
)
_REAL_TOKEN = re.compile(r"(?:^|\s)-?\d*(?:\.\d+|\d[eE]-?\d+)(?=\s|$)")
_SAYS_KATTIS = re.compile(r"\b4[23]\b")


def read_kattis(row: Row) -> Candidate:
    """Read a package.

    Raises:
        Malformed: `problem.yaml` is no YAML, there is no statement, or a test is no UTF-8.
    """
    files = row.files(texts=_TEXTS)
    settings = read_settings("problem.yaml", files)
    language, path, others = _choose_statement(files)
    statement = files[path]
    if not statement.strip():
        raise Malformed("no_statement", f"{path} is blank")
    tests, unanswered = _read_tests(row, files)
    checker, flags, notes = _read_checker(settings, files)
    if checker.type == "float" and not _speaks_of_reals(statement, tests):
        # Archives set one tolerance for all of their problems; of integers it would let wrong ones pass.
        checker = Checker(type="tokens", case_sensitive=checker.case_sensitive)
        notes.append(("checker", "a tolerance, but neither statement nor answers have real numbers"))
    seconds, limit_notes = _read_time_limit(settings, files, statement)
    solutions, left_out = _read_submissions(row, files)
    if unanswered:
        notes.append(("tests", f"{len(unanswered)} left out, without an answer: {unanswered[0]}"))
    notes += [*limit_notes, *(("statement_found", f"also there as {other}") for other in others)]
    if left_out:
        why = "of several files, another language, no known verdict, or no text"
        notes.append(("solutions", f"{len(left_out)} left out, {why}: {left_out[0]}"))
    if "score" in _text(settings, "validation").split():
        flags.append("gives_points")
    if any(name.startswith("include/") for name in files):
        flags.append("needs_files")
    if tests and all(group.startswith("sample") for group, _ in tests):
        flags.append("only_samples")
    found = _NAME.search(statement)
    return row.candidate(
        statement,
        notes=notes,
        url=_text(settings, "source_url"),
        platform="kattis",
        title=_title(settings, language) or (found[1] or found[2] or found[3] if found else "") or row.name("name"),
        licence=_text(settings, "license") or row.licence,
        tags=tuple(_text(settings, "keywords").split()),
        natural_language=language,
        tests=tuple(test for _, test in tests),
        groups=tuple(group for group, _ in tests),
        kit=input_kits.read_kit(files),
        checker=checker,
        time_limit_seconds=seconds,
        memory_limit_mib=round(read_amount(_limits(settings).get("memory")) or 2048),
        solutions=solutions,
        flags=tuple(flags),
    )


def _choose_statement(files: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """Return language and path of the statement, English where there is one, and the paths of the others."""
    found = sorted(
        (match[1] != "en", match[1] is not None, match[1] or "", _KINDS.index(match[2][:3]), name)
        for name in files
        if (match := _STATEMENT.fullmatch(name))
    )
    if not found:
        raise Malformed("no_statement", "no problem_statement/problem.*.tex, .md or .html")
    return found[0][2], found[0][-1], [path for *_, path in found[1:]]


def _read_tests(row: Row, files: Mapping[str, str]) -> tuple[list[tuple[str, TestCase]], list[str]]:
    """Return groups and tests, the samples first, and the inputs that have no answer."""
    tests, unanswered = [], []
    names = row.values["files"]
    inputs = sorted(
        (name for name in names if name.startswith("data/") and name.endswith(".in")),
        key=lambda name: (not name.startswith("data/sample/"), name),
    )
    for name in inputs:
        answer = name.removesuffix(".in") + ".ans"
        if answer not in names:
            unanswered.append(name)
            continue
        if name not in files or answer not in files:
            raise Malformed("not_utf8", f"{name} or its answer")
        group = posixpath.dirname(name).removeprefix("data").strip("/")
        tests.append((group, TestCase(input=files[name], output=files[answer])))
    return tests, unanswered


def _read_checker(
    settings: Mapping[str, Any], files: Mapping[str, str]
) -> tuple[Checker, list[str], list[tuple[str, str]]]:
    """Return checker, flags and notes."""
    validation, kind = _text(settings, "validation"), _text(settings, "type")
    names = ("validator_flags", "output_validator_flags")
    flags = next((said for name in names if (said := _text(settings, name))), _flags_of_tests(files)).split()
    if "interactive" in validation or "interactive" in kind or "multi-pass" in kind:
        return Checker(), ["interactive"], []
    if "custom" not in validation and not any(name.startswith("output_validator/") for name in files):
        return _read_flags(flags), [], []
    folders = ("output_validators/", "output_validator/")
    sources = [name for name in sorted(files) if name.startswith(folders) and _suffix(name) in _SCRIPTS]
    if len(sources) != 1:
        return Checker(), ["needs_checker"], [("checker", f"{len(sources)} sources of output validators")]
    code, missing = inline_includes(sources[0], files)
    language = _SCRIPTS[_suffix(sources[0])]
    checker = Checker(type="program", code=code or " ", language=language, protocol="kattis", arguments=tuple(flags))
    if not missing and "argv[3]" in code and not _SAYS_KATTIS.search(code):
        # It takes input, output and answer as files, and ends with 0 or 1.
        checker = checker.model_copy(update={"protocol": "testlib", "arguments": ()})
        return checker, [], [("checker", f"{sources[0]}, which is called as testlib's checkers are")]
    if missing:
        return checker, ["needs_checker"], [("checker", f"{sources[0]} needs {', '.join(missing)}")]
    return checker, [], [("checker", f"{sources[0]}, with the files that it includes")]


def _flags_of_tests(files: Mapping[str, str]) -> str:
    """Return the flags of the output validator that all tests have."""
    found = _TEST_FLAGS.search(files.get("data/testdata.yaml", "") or files.get("data/secret/testdata.yaml", ""))
    return found[1].strip().strip("'\"") if found else ""


def _speaks_of_reals(statement: str, tests: list[tuple[str, TestCase]]) -> bool:
    return _REAL.search(statement) is not None or any(_REAL_TOKEN.search(test.output) for _, test in tests)


def _read_flags(flags: list[str]) -> Checker:
    """Return what the flags of the default validator mean; it compares tokens, in any letter case."""
    is_case_sensitive = "case_sensitive" in flags
    values = dict(itertools.pairwise(flags))
    both = values.get("float_tolerance")
    absolute = _tolerance(both or values.get("float_absolute_tolerance"))
    relative = _tolerance(both or values.get("float_relative_tolerance"))
    if "space_change_sensitive" in flags:
        return Checker(type="exact")
    if absolute or relative:
        return Checker(type="float", case_sensitive=is_case_sensitive, absolute=absolute, relative=relative)
    return Checker(type="tokens", case_sensitive=is_case_sensitive)


def _tolerance(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < 1:
        raise Malformed("bad_checker", f"validator_flags: {text} is no tolerance")
    return number


def _read_time_limit(
    settings: Mapping[str, Any], files: Mapping[str, str], statement: str
) -> tuple[float | None, list[tuple[str, str]]]:
    limits = _limits(settings)
    domjudge = _DOMJUDGE_LIMIT.search(files.get("domjudge-problem.ini", ""))
    seconds = (
        read_amount(files.get(".timelimit"))
        or read_amount(limits.get("time_limit"))
        or (read_amount(domjudge[1]) if domjudge else None)
    )
    if seconds:
        return seconds, []
    multiplier = read_amount(limits.get("time_multiplier"))
    if multiplier:
        return None, [("time_limit_seconds", f"{multiplier:g} times the slowest accepted submission")]
    said = _SECONDS.search(_TAG.sub(" ", statement))
    return (float(said[1]), [("time_limit_seconds", "as the statement says")]) if said else (None, [])


def _read_submissions(row: Row, files: Mapping[str, str]) -> tuple[tuple[Solution, ...], list[str]]:
    """Return the submissions of one file, and the paths of what was left out."""
    solutions, left_out = [], []
    for name in sorted(row.values["files"]):
        if not name.startswith("submissions/"):
            continue
        folder, _, rest = name.removeprefix("submissions/").partition("/")
        known = _KNOWN.get(folder)
        is_taken = rest and "/" not in rest and known and name in files
        solution = read_file_solution(name, files[name], known) if is_taken and known else None
        if solution is None:
            left_out.append(name)
        else:
            solutions.append(solution)
    return tuple(solutions), left_out


def _limits(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    limits = settings.get("limits")
    return limits if isinstance(limits, Mapping) else {}


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _text(settings: Mapping[str, Any], name: str) -> str:
    value = settings.get(name)
    if isinstance(value, list):
        return " ".join(shorten(item, 1000) for item in value if isinstance(item, str | int))
    return shorten(value, 1000).strip() if isinstance(value, str | int | float) else ""


def _title(settings: Mapping[str, Any], language: str) -> str:
    name = settings.get("name")
    if isinstance(name, Mapping):
        name = name.get(language) or next(iter(name.values()), "")
    return name.strip() if isinstance(name, str) else ""


FORMATS = (Format("kattis", "Kattis problem packages", read_kattis, folders=Folders(("problem.yaml",), TAKES)),)

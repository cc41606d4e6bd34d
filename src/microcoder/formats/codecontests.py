"""CodeContests (`deepmind/code_contests`) and CodeContests+ (`ByteDance-Seed/Code-Contests-Plus`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from microcoder.formats.apps import read_mebibytes, read_seconds
from microcoder.formats.candidates import Candidate, Known, Solution
from microcoder.formats.encodings import DecodedTests, decode_tests, pair_tests
from microcoder.formats.programs import name_language
from microcoder.formats.row import Malformed, Row
from microcoder.types import Checker

_SOURCES = ("", "codechef", "codeforces", "hackerearth", "codejam", "", "atcoder", "aizu")
_LANGUAGES = ("unknown", "python2", "cpp", "python", "java")
_LETTER = 7
"""Difficulties from here on are places in a Codeforces contest, A first."""
INCLUDES_TESTLIB = re.compile(r'#[ \t]*include[ \t]*["<]testlib\.h[">]')
LOCAL_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"[^"]+"', re.MULTILINE)


def read_code_contests(row: Row) -> Candidate:
    """Read a row of CodeContests: parallel lists, integer codes, known-wrong solutions."""
    found = [(group, _tests_of(row, f"{group}_tests")) for group in ("public", "private", "generated")]
    limit = row.inner("time_limit")
    seconds = (limit.number("seconds") or 0) + (limit.number("nanos") or 0) / 1e9
    contest, index = row.number("cf_contest_id"), row.optional("cf_index")
    is_translated = row.values.get("is_description_translated") is True
    return row.candidate(
        row.statement("description"),
        notes=[("statement_found", "the source has translated it into English")] if is_translated else (),
        url=f"https://codeforces.com/contest/{contest:.0f}/problem/{index}" if contest and index else "",
        platform=_code(row, "source", _SOURCES),
        title=row.name("name"),
        tags=row.tags("cf_tags"),
        platform_difficulty=_difficulty(row),
        natural_language="en" if is_translated else "",
        tests=tuple(test for _, tests in found for test in tests.tests),
        groups=tuple(group for group, tests in found for _ in tests.tests),
        time_limit_seconds=seconds or None,
        memory_limit_mib=round((row.number("memory_limit_bytes") or 0) / (1 << 20)) or None,
        solutions=(*_solutions(row, "solutions", "accepted"), *_solutions(row, "incorrect_solutions", "wrong_answer")),
        flags=("file_io",) if row.optional("input_file") or row.optional("output_file") else (),
    )


def read_code_contests_plus(row: Row) -> Candidate:
    """Read a row of CodeContests+: its checkers are testlib programs."""
    tests = decode_tests(row.decoded("test_cases"))
    checker, flags = read_testlib(row.optional("checker"))
    return row.candidate(
        row.statement("description"),
        platform=row.optional("source").lower(),
        title=row.name("title", "id"),
        tests=tests.tests,
        checker=checker,
        flags=flags,
        time_limit_seconds=_milliseconds(row),
        memory_limit_mib=read_mebibytes(row.name("memory_limit")),
        solutions=(
            *_listed(row, "correct_submissions", "accepted"),
            *_listed(row, "incorrect_submissions", "wrong_answer"),
        ),
    )


def read_testlib(code: str) -> tuple[Checker, tuple[str, ...]]:
    """Return the checker of a C++ source, and `needs_checker` where it lacks the header that it includes."""
    if not code.strip():
        return Checker(), ()
    checker = Checker(type="program", code=code, language="cpp", protocol="testlib")
    return checker, ("needs_checker",) if LOCAL_INCLUDE.search(code) or INCLUDES_TESTLIB.search(code) else ()


def _tests_of(row: Row, name: str) -> DecodedTests:
    lists = row.mapping(name)
    if not lists:
        return DecodedTests()
    return pair_tests(lists.get("input"), lists.get("output"))


def _solutions(row: Row, name: str, known: Known) -> Iterator[Solution]:
    lists = row.mapping(name)
    languages, codes = lists.get("language", []), lists.get("solution", [])
    if not isinstance(languages, list) or not isinstance(codes, list) or len(languages) != len(codes):
        raise Malformed("wrong_type", f"{name}: language and solution are no lists of one length")
    for number, code in zip(languages, codes, strict=True):
        if not isinstance(code, str) or not isinstance(number, int) or not 0 <= number < len(_LANGUAGES):
            raise Malformed("wrong_type", f"{name}: a language is {number!r:.20}, or a program is no text")
        yield Solution(code=code, language=_LANGUAGES[number], known=known)


def _listed(row: Row, name: str, known: Known) -> Iterator[Solution]:
    for item in row.rows(name):
        language = item.values.get("language")
        if isinstance(language, int) and 0 <= language < len(_LANGUAGES):
            named = _LANGUAGES[language]
        else:
            named = name_language(item.optional("language"))
        yield Solution(code=item.text("code", "solution"), language=named or "unknown", known=known)


def _code(row: Row, name: str, words: tuple[str, ...]) -> str:
    value = row.values.get(name)
    if value is None:
        return ""
    if isinstance(value, str):
        return value.lower()
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed("wrong_type", f"{name} is {type(value).__name__}, not a code number")
    return words[value] if 0 <= value < len(words) else ""


def _difficulty(row: Row) -> str:
    rating, value = row.number("cf_rating"), row.number("difficulty")
    if rating:
        return f"{rating:.0f}"
    if value is None:
        return ""
    place = int(value) - _LETTER
    return chr(ord("A") + place) if 0 <= place < 26 else f"{value:.0f}"


def _milliseconds(row: Row) -> float | None:
    """Their limits are numbers of milliseconds."""
    if isinstance(row.values.get("time_limit"), str):
        return read_seconds(row.text("time_limit"))
    limit = row.number("time_limit")
    return limit / 1000 if limit else None

"""Gives tests one form: UTF-8, a newline at the end, JSON arguments, groups that match them."""

import json
import re
from collections import Counter

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.values import read_json, write_json
from microcoder.judge.core.digits import dump_json
from microcoder.judge.core.types import TestCase

STEP = "normalise_tests/2"
"""Name and version of the step in the lineage of a candidate."""
_COUNTED = ("repeated", "broken", "truncated", "conflicting")
"""Kinds of tests that the lineage counts."""
_TRUNCATED = re.compile(r"(?<=[^.\s])(?:\.\.\.|\u2026)\s*\Z")
"""Three dots behind a value, at the very end: a site showed the beginning of a long test."""
_MOST_BEHIND = 8
"""Characters of a text's end in which those dots are looked for."""
_NUMBERS_CUT = re.compile(r"(?:-?\d{1,40}\s+){2,}-?\d{0,40}\s?(?:\.\.\.|\u2026)\s*")
"""Three numbers or more, of which the last is followed by dots: cut off, however short."""
_LEAST_TRUNCATED = 200
"""Characters of a test that a site may have cut off (our choice; Codeforces shows more)."""


def normalise_tests(candidate: Candidate) -> Candidate | Rejection:
    """Return a candidate with its tests in one form, each once.

    Left out are repeated tests, and those of a function whose arguments or value are not JSON,
    which are broken, and tests of which a site shows only the beginning.

    Returns:
        A rejection if all tests are broken, or if some contradict each other.
    """
    if candidate.assertions is not None:
        return _normalise_programs(candidate)
    kept: list[TestCase] = []
    names: list[str] = []
    outputs_of: dict[str, list[str]] = {}
    counts = Counter[str]()
    groups = candidate.groups or ("",) * len(candidate.tests)
    for test, name in zip(candidate.tests, groups, strict=True):
        try:
            given, printed = _normalise(test, is_call=candidate.fn_name is not None)
        except ValueError:
            counts["broken"] += 1
            continue
        if candidate.fn_name is None and (_is_cut_input(given) or _is_truncated(printed)):
            counts["truncated"] += 1
            continue
        # Empty lines at the end make no other input here, though each test keeps its own.
        known = outputs_of.setdefault(_lines(given), [])
        if any(_is_same_output(printed, output) for output in known):
            counts["repeated"] += 1
            continue
        if known:
            counts["conflicting"] += 1
        known.append(printed)
        kept.append(TestCase(input=given, output=printed))
        names.append(name.strip().strip("/"))
    detail = ", ".join(f"{counts[kind]} {kind}" for kind in _COUNTED if counts[kind])
    if candidate.tests and not kept:
        return candidate.reject("process", "broken_tests", detail)
    # A checker of its own may accept several outputs, and an interactor compares none.
    only_compares = candidate.checker.type != "program" and candidate.interactor is None
    if counts["conflicting"] and only_compares:
        return candidate.reject("process", "conflicting_tests", detail)
    # Rows without groups stay without them.
    named_groups = tuple(names) if any(names) else ()
    flags = candidate.flags
    if counts["broken"] or counts["truncated"]:
        flags = tuple(sorted({*flags, "tests_dropped"}))
    return candidate.change(
        "process",
        STEP,
        detail,
        tests=tuple(kept),
        groups=named_groups,
        flags=flags,
    )


def _normalise_programs(candidate: Candidate) -> Candidate:
    """Return a candidate whose tests are Python programs, each once."""
    programs = dict.fromkeys(_text(test.output) for test in candidate.tests)
    tests = tuple(TestCase(input="", output=program) for program in programs)
    num_repeated = len(candidate.tests) - len(tests)
    detail = f"{num_repeated} repeated" if num_repeated else ""
    return candidate.change("process", STEP, detail, tests=tests)


def _is_truncated(text: str) -> bool:
    """Whether a text is the beginning of a longer one."""
    if len(text) < _LEAST_TRUNCATED:
        return False
    found = _TRUNCATED.search(text, len(text) - _MOST_BEHIND)
    # The last row of a grid may end in dots, too.
    return found is not None and text.find("..", 0, found.start()) < 0


def _is_cut_input(text: str) -> bool:
    """Whether an input is the beginning of a longer one; short ones are, if all are numbers.

    Not so an output: "3 2 1..." may be what is asked for.
    """
    if len(text) < _LEAST_TRUNCATED:
        return _NUMBERS_CUT.fullmatch(text) is not None
    return _is_truncated(text)


def _normalise(test: TestCase, *, is_call: bool) -> tuple[str, str]:
    """Return a test's input and output in the one form.

    Raises:
        ValueError: arguments or value of a call are not JSON.
    """
    given = _text(test.input)
    printed = _text(test.output)
    if is_call:
        return _json_lines(given), _json_lines(printed)
    # An empty last line may be one that a program reads: a list of no numbers.
    if given and not given.endswith("\n"):
        given += "\n"
    return given, _lines(printed)


def _is_same_output(output: str, other: str) -> bool:
    """Whether two outputs differ at most in spaces at the ends of lines."""
    lines = [line.rstrip() for line in output.split("\n")]
    return lines == [line.rstrip() for line in other.split("\n")]


def _text(text: str) -> str:
    # A test may have a hundred megabytes: what is fine already is not copied.
    if not text.isascii():
        # Lone surrogates cannot be written as UTF-8.
        text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    text = text.removeprefix("\ufeff")
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text.replace("\x00", "")


def _lines(text: str) -> str:
    """Return a text with one newline at its end; an empty one if it is blank.

    Other spaces are left to the comparison.
    """
    if not text or text.isspace():
        return ""
    # The usual case, in which a long test is not copied.
    if text.endswith("\n") and not text.endswith("\n\n"):
        return text
    return text.rstrip("\n") + "\n"


def _json_lines(text: str) -> str:
    """Return JSON values, one a line; ValueError if they are not JSON.

    Letters are not escaped, unless one is a lone surrogate.
    """
    try:
        values = [read_json(line) for line in text.split("\n") if line.strip()]
    except json.JSONDecodeError:
        values = [read_json(text)]  # One value over several lines.
    try:
        written = "\n".join(dump_json(value, ensure_ascii=False) for value in values)
        # It fails for a lone surrogate, which is then escaped.
        written.encode("utf-8")
    except (ValueError, RecursionError):
        return "\n".join(map(write_json, values))
    return written

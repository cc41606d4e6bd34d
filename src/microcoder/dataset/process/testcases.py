"""Tests in one form: UTF-8 text, `\\n`, a newline at the end; JSON arguments; groups that match."""

from __future__ import annotations

import json
from typing import NamedTuple

from microcoder.formats.text import read_json, write_json
from microcoder.types import TestCase


class Tests(NamedTuple):
    """Normalised tests and what was found in them."""

    __test__ = False  # not a pytest class

    tests: tuple[TestCase, ...]
    groups: tuple[str, ...]
    num_repeated: int
    """Tests that were there before, word for word."""
    num_conflicting: int
    """Tests whose input another test has with a different output."""
    num_broken: int
    """Tests of a function whose arguments or value are no JSON."""


def normalise_tests(tests: tuple[TestCase, ...], groups: tuple[str, ...], *, is_function: bool) -> Tests:
    """Return the tests in one form, each once.

    Args:
        tests: as the source has them.
        groups: one name per test, or empty.
        is_function: inputs are JSON arguments, one a line; outputs are JSON.
    """
    names = groups if len(groups) == len(tests) else ("",) * len(tests)
    kept: list[TestCase] = []
    kept_names: list[str] = []
    outputs: dict[str, set[str]] = {}
    num_repeated = num_conflicting = num_broken = 0
    for test, name in zip(tests, names, strict=True):
        given, printed = _text(test.input), _text(test.output)
        if is_function:
            try:
                given, printed = _json_lines(given), _json_lines(printed)
            except ValueError:
                num_broken += 1
                continue
        else:
            # An empty last line may be one that a program reads: a list of no numbers.
            given, printed = given if given.endswith("\n") or not given else f"{given}\n", _lines(printed)
        known = outputs.setdefault(_lines(given), set())
        if printed in known:
            num_repeated += 1
            continue
        num_conflicting += bool(known)
        known.add(printed)
        kept.append(TestCase(input=given, output=printed))
        kept_names.append(name.strip().strip("/"))
    has_names = any(kept_names)
    return Tests(tuple(kept), tuple(kept_names) if has_names else (), num_repeated, num_conflicting, num_broken)


def _text(text: str) -> str:
    # A test may have a hundred megabytes: what is fine already is not copied.
    if not text.isascii():
        text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")


def _lines(text: str) -> str:
    """One newline at the end; spaces within are the problem's business, the comparison decides on them."""
    if not text or text.isspace():
        return ""
    return text if text.endswith("\n") and not text.endswith("\n\n") else text.rstrip("\n") + "\n"


def _json_lines(text: str) -> str:
    """Return JSON values, one a line, each written in one way."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        values = [read_json(line) for line in lines]
    except json.JSONDecodeError:
        values = [read_json(text)]  # One value over several lines.
    return "\n".join(map(_write, values))


def _write(value: object) -> str:
    """Write a value with its letters; escaped where it has half a surrogate pair or an integer of absurd length."""
    try:
        text = json.dumps(value, ensure_ascii=False)
        text.encode("utf-8")
    except (ValueError, TypeError, RecursionError):
        return write_json(value)
    return text

"""What a statement says of how its answers are compared: in any order, or within a tolerance.

Builds and `Problem.from_row` apply the same function, `find_checker`, to problems whose rows name no checker.
"""

import html
import re
from typing import NamedTuple

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.values import read_json
from microcoder.judge.core.types import Checker, TestCase

_ANY_ORDER = re.compile(
    r"\b(?:return|output|print)(?:ed|s)?\b(?P<what>[^.\n]{0,160}?)"
    r"\bin \**(?:any(?: arbitrary)?|(?:an )?arbitrary) order\b(?! you)"
    r"|(?P<named>[^.\n]{0,80})\b(?:return|output|print)ed in \**(?:any(?: arbitrary)?|arbitrary) order\b"
    r"|\border (?P<of>[^.\n]{0,60}\b(?:output|answers?|results?|returned|printed)\b[^.\n]{0,60})"
    r"\b(?:do(?:es)?(?: not|n['\u2019]t) matter|is (?:not important|unimportant|irrelevant))\b",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\b(?:integers|elements|indices|numbers|values|items)\b", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MINUS = "[-\u2212\u2013\u2010\u2011]"
_NUMBER = (
    r"(?:(?P<factor>\d+(?:\.\d+)?)[ ]?(?:\\times|\\cdot|\u00d7|\u22c5|\*|x)[ ]?)?"
    rf"\b10(?:[ ]?(?:\^|\*\*)[ ]?[{{(]*[ ]?{_MINUS}[ ]?|{_MINUS}(?=[2-9]|1\d))(?P<power>\d{{1,2}})(?!\d)"
    r"|\b10(?P<raised>\u207b[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,2})"
    rf"|(?P<mantissa>\d+(?:\.\d+)?)[ ]?[eE][ ]?{_MINUS}[ ]?(?P<exponent>\d{{1,2}})(?!\d)"
    r"|(?<![\d.])(?P<decimal>0?\.0*[15])(?![\d.]*\d)"
)
"""A small number: a power of ten in any notation, 1e-6, or 0.001."""
_ALLOWED = re.compile(
    r"\b(?:errors?|precision|tolerance|accura(?:cy|te)|deviat\w+|differ(?:s|ence)?|within)\b"
    rf"[^!?\n]{{0,100}}?(?:{_NUMBER})(?=(?P<behind>[^.]{{0,40}}))",
    re.IGNORECASE,
)
_ALLOWED_BEHIND = re.compile(
    rf"(?:{_NUMBER})[$}})\\ ]*"
    r"(?P<behind>(?:(?:absolute|relative)(?: ?(?:or|and|/) ?(?:absolute|relative))? )?"
    r"(?:errors?|tolerance|precision)\b)",
    re.IGNORECASE,
)
_CHARACTERS_BEFORE = 30
"""Characters before the word `error` in which `absolute` and `relative` are looked for."""
_OF_ANSWERS = re.compile(
    r"\b(?:answers?|outputs?|results?|accept\w*|correct\w*|print\w*|consider\w*|judg\w*|allow\w*|returns?|absolute|"
    r"relative|values?|solutions?|toleran\w+|precision)\b",
    re.IGNORECASE,
)
_UNITS = re.compile(
    r"[$})\\ ]*(?:s|secs?|seconds?|ms|milliseconds?|k?m|meters?|metres?|units?|cm|mm|kg|points?|per ?cent|%)\b",
    re.I,
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[^\d\s])|\n\s*\n")
_RAISED = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789"
)
_REAL = re.compile(r"(?<![\w.])-?\d*\.(?P<places>\d+)(?P<exponent>[eE][-+]?\d+)?(?![\w.])")
_DEFAULT_OF_OUTPUTS = 1e-6
_DEFAULT_OF_VALUES = 1e-5
"""Tolerances of the default comparison (docs/comparison.md)."""
_LOOSEST = 0.1


class Tolerance(NamedTuple):
    """How far a real number may be off; None where the statement allows none of that kind."""

    absolute: float | None
    relative: float | None


def find_checker(candidate: Candidate) -> Checker | None:
    """Return the checker that the statement asks for, where the row names none; None for the default comparison."""
    if not candidate.tests or candidate.checker != Checker():
        return None
    return find_order(candidate) or _check_reals(candidate)


def find_order(candidate: Candidate) -> Checker | None:
    """Return the checker of a function whose statement asks for a list in any order; None where it does not.

    Where lists of lists are expected and the statement speaks of numbers or indices, it means the inner lists. "The
    order of the output and the order of the triplets does not matter" means all of them.
    """
    call = candidate.call
    if not candidate.fn_name or not candidate.tests or candidate.checker != Checker():
        return None
    if call is not None and (call.style == "design" or call.returns != "json"):
        return None
    found = _ANY_ORDER.search(_as_text(candidate.statement))
    if found is None:
        return None
    try:
        values = [read_json(test.output) for test in candidate.tests]
    except ValueError:
        return None
    if not all(isinstance(value, list) for value in values):
        return None
    is_nested = any(values) and all(isinstance(item, list) for value in values for item in value)
    told = found["what"] or found["named"] or found["of"] or ""
    if is_nested and found["of"] and "order of" in told:
        return Checker(type="unordered", lists="all")
    is_inner = is_nested and _PARTS.search(told) is not None
    return Checker(type="unordered", lists="inner" if is_inner else "outermost")


def find_tolerance(statement: str) -> Tolerance | None:
    """Return the tolerance that a statement allows its answers; None where it names none, or several of a kind."""
    absolute, relative = set[float](), set[float]()
    for sentence in _SENTENCE_END.split(_as_text(statement)):
        if not _OF_ANSWERS.search(sentence):
            continue
        last = 0
        for found in (*_ALLOWED.finditer(sentence), *_ALLOWED_BEHIND.finditer(sentence)):
            size = _size_of(found)
            begin = max(last, found.start() - _CHARACTERS_BEFORE)
            last = found.end()
            if not 0 < size <= _LOOSEST or _UNITS.match(found["behind"]):
                continue
            kinds = sentence[begin:last].lower()
            if "relative" in kinds or "absolute" not in kinds:
                relative.add(size)
            if "absolute" in kinds or "relative" not in kinds:
                absolute.add(size)
    if len(absolute) > 1 or len(relative) > 1 or not (absolute or relative):
        return None
    return Tolerance(next(iter(absolute), None), next(iter(relative), None))


def _as_text(statement: str) -> str:
    """Return a statement without the tags and entities of a page; non-breaking spaces are spaces."""
    return html.unescape(_TAG.sub("", statement)).replace("\u00a0", " ")


def _size_of(found: re.Match[str]) -> float:
    if found["decimal"]:
        return float(found["decimal"])
    if found["raised"]:
        return float(f"1e-{found['raised'][1:].translate(_RAISED)}")
    if found["exponent"]:
        return float(f"{found['mantissa']}e-{found['exponent']}")
    return float(f"{found['factor'] or 1}e-{found['power']}")


def _check_reals(candidate: Candidate) -> Checker | None:
    """Return the checker of a problem with real numbers whose statement names a tolerance other than the default."""
    call = candidate.call
    if (
        candidate.fn_name
        and call is not None
        and (call.style == "design" or call.returns != "json")
    ):
        return None
    finest = _finest_place(candidate.tests)
    allowed = None if finest is None else find_tolerance(candidate.statement)
    if finest is None or allowed is None:
        return None
    default = _DEFAULT_OF_VALUES if candidate.fn_name else _DEFAULT_OF_OUTPUTS
    sizes = {size for size in allowed if size is not None}
    # Expected numbers that were rounded more coarsely say nothing about a finer tolerance.
    if sizes == {default} or min(sizes) < min(default, finest):
        return None
    if allowed.absolute == allowed.relative:
        return Checker(type="float", tolerance=allowed.absolute)
    return Checker(type="float", absolute=allowed.absolute, relative=allowed.relative)


def _finest_place(tests: tuple[TestCase, ...]) -> float | None:
    """Return the place to which the most coarsely written real number among the outputs is given; None without one."""
    coarsest: float | None = None
    for test in tests:
        for number in _REAL.finditer(test.output):
            if number["exponent"]:
                continue
            place = 10.0 ** -len(number["places"])
            coarsest = place if coarsest is None else max(coarsest, place)
    return coarsest

"""What a statement says of how its answers are compared: in any order, or within a tolerance.

Builds and `read_problem` apply the same function, `find_checker`, to problems whose rows name
no checker.
"""

import html
import re
from itertools import chain
from typing import NamedTuple

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.values import read_json
from microcoder.judge.core.types import Checker, TestCase

_ANY_ORDER = re.compile(
    r"\b(?:return|output|print)(?:ed|s)?\b(?P<what>[^.\n]{0,160}?)"
    r"\bin \**(?:any(?: arbitrary)?|(?:an )?arbitrary) order\b(?! you)"
    r"|(?P<named>[^.\n]{0,80})\b(?:return|output|print)ed"
    r" in \**(?:any(?: arbitrary)?|arbitrary) order\b"
    r"|\border (?P<order>[^.\n]{0,60}"
    r"\b(?:output|answers?|results?|returned|printed)\b[^.\n]{0,60})"
    r"\b(?:do(?:es)?(?: not|n['\u2019]t) matter|is (?:not important|unimportant|irrelevant))\b",
    re.IGNORECASE,
)
"""A statement that asks for a list in any order; its groups are the words that say which."""
_RESULT = r"(?:results?|outputs?|answers?|returned (?:list|array|values?)|solutions?)"
_NO_NUMBER = r"(?![^.\n]{0,40}\b(?:number|count|minimum|maximum|sum|amount)s? of\b)"
"""Not before a number of things: their order is none of the answer."""
_FREE_ORDER = re.compile(
    rf"\b{_RESULT}[^.\n]{{0,30}} (?:can|may|could|will)? ?be (?:given |listed )?in "
    r"\**(?:any|whatever|an arbitrary|arbitrary) order\b"
    r"|\b(?:return|print|output|list|report)(?:ed|s)? (?:[^.\n]{0,60} )?in"
    r" (?:whatever|whichever|no (?:particular|specific|special)) order\b"
    rf"|\b(?:return|print|output|list|report)(?:ed|s)?\b{_NO_NUMBER}[^.\n]{{0,80}}[ (]"
    r"(?:any order (?:will do|is (?:fine|ok|okay|accepted|allowed|acceptable|valid))"
    r"|(?:the )?order (?:(?:does|do) ?n[o\u2019']t matter|is (?:not important|unimportant"
    r"|irrelevant|not relevant)))\b"
    rf"|\b{_RESULT} (?:(?:does not|doesn['\u2019]t) (?:need|have) to be|need not be"
    r"|can be un|may be un)[ ]?(?:sorted|ordered)\b"
    r"|\bno (?:particular|specific|special) order is (?:required|needed|asked|necessary)\b"
    r"|\border of (?:the )?(?:lines|printed \w+|output \w+|returned \w+)(?: [^.\n]{0,30})?"
    r" (?:(?:does|do)(?: not|n['\u2019]t) matter|is (?:not important|unimportant|irrelevant))\b",
    re.IGNORECASE,
)
"""Further words by which the values of an answer may come in any order."""
_SORTED = re.compile(
    r"\b(?:return|print|report)(?:ed|s)?\b[^.\n]{0,60}"
    r"(?<!need to be )(?<!have to be )(?<!need not be )\b(?:sorted|(?:in|by) (?:strictly )?"
    r"(?:ascending|descending|increasing|decreasing|non-decreasing|alphabetical|lexicographic\w*"
    r"|sorted|numerical))\b",
    re.IGNORECASE,
)
"""Words of an answer that has an order: what else is in any order is the input."""
_PARTS = re.compile(r"\b(?:integers|elements|indices|numbers|values|items)\b", re.IGNORECASE)
"""Words for the items of an inner list."""
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>")
_MINUS = "[-\u2212\u2013\u2010\u2011]"
_NUMBER = (
    r"(?:(?P<factor>\d+(?:\.\d+)?)[ ]?(?:\\times|\\cdot|\u00d7|\u22c5|\*|x)[ ]?)?"
    rf"\b10(?:[ ]?(?:\^|\*\*)[ ]?[{{(]*[ ]?{_MINUS}[ ]?|{_MINUS}(?=[2-9]|1\d))"
    r"(?P<power>\d{1,2})(?!\d)"
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
    r"\b(?:answers?|outputs?|results?|accept\w*|correct\w*|print\w*|consider\w*|judg\w*|allow\w*"
    r"|returns?|absolute|relative|values?|solutions?|toleran\w+|tolerated|ignored|precision)\b",
    re.IGNORECASE,
)
_OF_THE_TASK = re.compile(
    r"\b(?:until|while|iterat\w+|converg\w+|stops? when|(?:is|are) (?:given|measured|read|known)"
    r" (?:with|to|within|up to))\b",
    re.IGNORECASE,
)
"""Words of a sentence whose small number is a part of the task, or says how inputs are written."""
_JUDGED = re.compile(
    r"\b(?:accept\w*|correct\w*|judg\w+|jury(?:'s)?|checker|considered|counts? as|right|wrong)\b",
    re.IGNORECASE,
)
_FORMULA = re.compile(
    r"(?:\babs ?\(|\|)[^|=<>\n]{1,40}?[-\u2212][^|=<>\n]{1,40}?[|)][^<>=\n]{0,80}?"
    rf"(?:<=?|\u2264|\u2a7d|\\l(?:eq?|t)(?:slant)?\b)[ ]?(?:{_NUMBER})[^\n]{{0,40}}"
)
"""`|a - b| / max(1, |b|) <= 10^-6`, which is how a judge says it."""
_DIGITS = re.compile(
    r"\b(?:at least|minimum of|no (?:fewer|less) than) (?P<places>\d{1,2}|[a-z]{3,6}) "
    r"(?:decimals? (?:places?|digits?)\b|decimals\b(?! of)"
    r"|(?:digits?|places?|numbers?) (?:after|behind)\b"
    r"|digits? of (?:precision|accuracy)\b)",
    re.IGNORECASE,
)
"""How many digits of a real number a program must print, or more."""
_NUMERALS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_UNITS = re.compile(
    r"[$})\\ ]*(?:s|secs?|seconds?|ms|milliseconds?|k?m|meters?|metres?|units?|cm|mm|kg|points?"
    r"|per ?cent|%)\b",
    re.I,
)
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+(?=[^\d\s])|\n\s*\n")
_RAISED = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789"
)
_REAL = re.compile(r"(?<![\w.])-?\d*\.(?P<places>\d+)(?P<exponent>[eE][-+]?\d+)?(?![\w.])")
_WHOLE = re.compile(r"\s*(?:-?\d+\s+)*-?\d+\s*")
"""Whole numbers and nothing else."""
_DEFAULT_OF_OUTPUTS = 1e-6
"""Tolerance of the default comparison of printed numbers (docs/comparison.md)."""
_DEFAULT_OF_VALUES = 1e-5
"""Tolerance of the default comparison of returned numbers."""
_LOOSEST = 0.1
"""A larger number is no tolerance."""
_LEAST_PLACES = 2
"""One digit says how a number is written; a tenth is no tolerance."""
_MOST_PLACES = 15
"""Digits that a real number of a machine has."""


class Tolerance(NamedTuple):
    """How far a real number may be off; None where the statement allows none of that kind."""

    absolute: float | None
    relative: float | None


def find_checker(candidate: Candidate) -> Checker | None:
    """Return the checker that the statement asks for.

    None if it asks for no other than the default, the row names a checker, or there are no tests.
    """
    if not candidate.tests or candidate.checker != Checker():
        return None
    return find_order(candidate) or _check_reals(candidate)


def find_order(candidate: Candidate) -> Checker | None:
    """Return the checker of a function that may return its list in any order; None otherwise.

    Where lists of lists are expected and the statement speaks of numbers or indices, it means the
    inner lists. "The order of the output and the order of the triplets does not matter" means all
    of them.
    """
    if not candidate.fn_name or not candidate.tests or candidate.checker != Checker():
        return None
    if not _returns_json(candidate):
        return None
    text = _as_text(candidate.statement)
    match = _ANY_ORDER.search(text)
    if match is None and not says_free_order(text):
        return None
    try:
        values = [read_json(test.output) for test in candidate.tests]
    except ValueError:
        return None
    # A value that is no list has no order to leave open.
    if not all(isinstance(value, list) for value in values):
        return None
    items = list(chain.from_iterable(values))
    is_nested = bool(items) and all(isinstance(item, list) for item in items)
    if not is_nested or match is None:
        return Checker(type="unordered", lists="outermost")
    words = match["what"] or match["named"] or match["order"] or ""
    if match["order"] and "order of" in words:
        return Checker(type="unordered", lists="all")
    if _PARTS.search(words):
        return Checker(type="unordered", lists="inner")
    return Checker(type="unordered", lists="outermost")


def says_free_order(text: str) -> bool:
    """Whether a statement says by the rarer words that an answer's values may come in any order."""
    return _FREE_ORDER.search(text) is not None and _SORTED.search(text) is None


def _returns_json(candidate: Candidate) -> bool:
    """Whether a function's values are compared as plain JSON, not as values of some class."""
    call = candidate.call
    return call is None or (call.style != "design" and call.returns == "json")


def find_tolerance(statement: str) -> Tolerance | None:
    """Return the tolerance that a statement allows its answers.

    None where it names none, or several of a kind.
    """
    absolute = set[float]()
    relative = set[float]()
    for sentence in _SENTENCE_END.split(_as_text(statement)):
        if not _OF_ANSWERS.search(sentence) or _OF_THE_TASK.search(sentence):
            continue
        formula = _FORMULA.search(sentence) if _JUDGED.search(sentence) else None
        if formula is not None and 0 < _size_of(formula) <= _LOOSEST:
            absolute.add(_size_of(formula))
            # What is divided by the answer, or multiplied with it, is relative for large ones.
            if "max" in formula.group():
                relative.add(_size_of(formula))
            continue
        last = 0
        matches = (*_ALLOWED.finditer(sentence), *_ALLOWED_BEHIND.finditer(sentence))
        for match in matches:
            size = _size_of(match)
            # Not from before the last number: words there are about that one.
            begin = max(last, match.start() - _CHARACTERS_BEFORE)
            last = match.end()
            # A number with a unit is a length or a time that the story speaks of.
            if not 0 < size <= _LOOSEST or _UNITS.match(match["behind"]):
                continue
            kinds = sentence[begin:last].lower()
            # An error of no named kind is allowed as either.
            if "relative" in kinds or "absolute" not in kinds:
                relative.add(size)
            if "absolute" in kinds or "relative" not in kinds:
                absolute.add(size)
    if len(absolute) > 1 or len(relative) > 1:
        return None
    if not absolute and not relative:
        return _by_digits(statement)
    only_absolute = next(iter(absolute), None)
    only_relative = next(iter(relative), None)
    return Tolerance(only_absolute, only_relative)


def _by_digits(statement: str) -> Tolerance | None:
    """Return the tolerance of answers that have at least so many digits behind the point.

    Who prints more of them is right, whatever was rounded away in the expected number.
    """
    digits = _DIGITS.search(_as_text(statement))
    if digits is None:
        return None
    places = digits["places"].lower()
    if places in _NUMERALS:
        num_places = _NUMERALS.index(places)
    elif places.isdecimal():
        num_places = int(places)
    else:
        return None
    if not _LEAST_PLACES <= num_places <= _MOST_PLACES:
        return None
    return Tolerance(10.0**-num_places, None)


def _as_text(statement: str) -> str:
    """Return a statement without a page's tags and entities; non-breaking spaces are spaces."""
    plain = html.unescape(_TAG.sub("", statement))
    return plain.replace("\u00a0", " ")


def _size_of(match: re.Match[str]) -> float:
    """Return the number that `_NUMBER` has matched."""
    if match["decimal"]:
        return float(match["decimal"])
    if match["raised"]:
        return float(f"1e-{match['raised'][1:].translate(_RAISED)}")
    if match["exponent"]:
        return float(f"{match['mantissa']}e-{match['exponent']}")
    return float(f"{match['factor'] or 1}e-{match['power']}")


def _check_reals(candidate: Candidate) -> Checker | None:
    """Return the checker of a problem whose statement names a tolerance other than the default.

    None without real numbers among its outputs.
    """
    if candidate.fn_name and not _returns_json(candidate):
        return None
    finest = _finest_place(candidate.tests)
    if finest is None:
        return None
    allowed = find_tolerance(candidate.statement)
    if allowed is None:
        return None
    default = _DEFAULT_OF_VALUES if candidate.fn_name else _DEFAULT_OF_OUTPUTS
    sizes = {size for size in allowed if size is not None}
    # The default holds large numbers of a printed output, and whole ones of both, more strictly.
    is_default = sizes == {default} and candidate.fn_name is not None
    if is_default and not _has_whole_numbers(candidate.tests):
        return None
    # Expected numbers that were rounded more coarsely say nothing about a finer tolerance.
    if min(sizes) < min(default, finest):
        return None
    if allowed.absolute == allowed.relative:
        return Checker(type="float", tolerance=allowed.absolute)
    return Checker(type="float", absolute=allowed.absolute, relative=allowed.relative)


def _has_whole_numbers(tests: tuple[TestCase, ...]) -> bool:
    """Whether some outputs are whole numbers alone."""
    return any(_WHOLE.fullmatch(test.output) for test in tests)


def _finest_place(tests: tuple[TestCase, ...]) -> float | None:
    """Return the place of the most coarsely written real number among the outputs, such as 0.01.

    None without one. Numbers with an exponent say nothing.
    """
    coarsest: float | None = None
    for test in tests:
        for number in _REAL.finditer(test.output):
            if number["exponent"]:
                continue
            place = 10.0 ** -len(number["places"])
            coarsest = place if coarsest is None else max(coarsest, place)
    return coarsest

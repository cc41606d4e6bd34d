"""Makes the checker of a problem whose program may print its values in any order.

Returned lists are the business of `formats.statements`, which knows their shape. What is printed
has none: the tests show whether the lines are free, or the values of the only line.
"""

import re
from typing import Literal

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.statements import says_free_order
from microcoder.judge.core.types import Checker

FLAG = "in_any_order"
"""Flag of a problem whose checker was made here: a second right program must confirm it."""
_DENIALS = (
    "not",
    "n't",
    "n\u2019t",
    "never",
    "not ever",
    "without",
    r"\bno",
    r"\bnor",
    "not to",
    *(
        f"{denied} {asked} to"
        for denied in ("not", "n't", "n\u2019t")
        for asked in ("need", "have")
    ),
    "no need to",
    "not required to",
    "not asked to",
)
"""Words before a verb that take back what it says."""
NOT_DENIED = r"\b" + "".join(f"(?<!{words} )" for words in _DENIALS)
"""Before a verb: nothing takes it back, as in "you do not need to print any value"."""
_PLAIN_VERB = r"(?:print|output|return|report)(?:s|ed|ing)?"
_STORY_VERB = r"(?:find|write|give|construct|display|provide|produce|show|list|name)"
VERB = rf"{NOT_DENIED}(?:{_PLAIN_VERB}|{_STORY_VERB}(?:ed|ing)?)\b(?: out)?"
"""What a program does with an answer; what "displays" something is a thing of the story."""
_PRINTED = re.compile(
    rf"(?:{VERB}|\b(?:finds|writes|gives|constructs|displays|provides|produces|shows)\b)"
    r"(?![^.\n]{0,40}\b(?:number|count|minimum|maximum|sum|amount) of)"
    r"[^.\n]{0,100}\bin \**(?:any|an arbitrary|arbitrary|whatever|whichever) order\b"
    r"(?! you (?:want|like) to)",
    re.IGNORECASE,
)
"""Words of a problem whose printed values may come in any order."""
_SEVERAL_CASES = re.compile(r"\b(?:test ?cases?|queries|data ?sets?)\b", re.IGNORECASE)
"""Words of an input with several problems in one, whose answers keep their order."""
_MOST_CHARACTERS = 1 << 20
"""Characters of an output; of longer ones the shape is not looked at."""


def says_any_order(words: str) -> bool:
    """Whether a statement lets a program print its values in any order."""
    return _PRINTED.search(words) is not None or says_free_order(words)


def find_printed_order(candidate: Candidate) -> Checker | None:
    """Return the checker of a program that may print in any order.

    None if the statement does not say so, the source names a checker, the input has several cases,
    or the tests do not show what may change places.
    """
    if candidate.fn_name is not None or candidate.checker != Checker():
        return None
    if not says_any_order(candidate.statement) or _SEVERAL_CASES.search(candidate.statement):
        return None
    units: set[Literal["lines", "tokens"]] = set()
    for test in candidate.tests:
        if len(test.output) > _MOST_CHARACTERS:
            return None
        unit = _find_unit(test.output)
        if unit is not None:
            units.add(unit)
    # A single value has no order to leave open, and two kinds say nothing.
    if len(units) != 1:
        return None
    return Checker(type="unordered", by=units.pop())


def _find_unit(output: str) -> Literal["lines", "tokens"] | None:
    """Return what may change places in an output; None for a single value."""
    lines = [line.split() for line in output.split("\n") if line.strip()]
    if len(lines) > 1 and len(lines[0]) == 1 and lines[0][0].isdecimal():
        # A count before the values is no line of them, and says what they are.
        count = lines[0][0]
        rest = lines[1:]
        if count == str(len(rest)):
            return "lines" if len(rest) > 1 else None
        if count == str(sum(map(len, rest))):
            lines = rest
    if len(lines) > 1:
        return "lines"
    if len(lines) == 1 and len(lines[0]) > 1:
        return "tokens"
    return None

"""Is everything there to solve and to judge the problem? What is found becomes flags of the candidate."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from microcoder.data.clean.sections import Sections, split
from microcoder.data.formats.candidates import Candidate

_IMAGE = re.compile(r"!\[[^\]\n]{0,500}\]\([^)\n]|<image>|\\includegraphics|\[image\]|<img\b", re.IGNORECASE)
_INTERACTIVE = re.compile(
    r"\bthis is an? (?:interactive|reactive) (?:problem|task)|\binteractive (?:problem|task)s?\b|"
    r"\bflush (?:the )?(?:output|stdout)"
    r"|\bfflush\b|\bsys\.stdout\.flush|\bcout\.flush|\byour program (?:will|should) interact|\bthe interactor\b"
    r"|\binteraktiv(?:t)? (?:problem|uppgift)|交互题|интерактивная задача|"
    r"\byou (?:can|may) (?:ask|make) (?:at most|up to|no more than) [\w$^{}\\ ]{1,20} quer(?:y|ies) to "
    r"the (?:judge|jury)",
    re.IGNORECASE,
)
_MANY_ANSWERS = re.compile(
    r"\b(?:if|when|should|in case) there (?:are|is|exist|be) (?:multiple|several|many|more than one)\b"
    r"(?![^.\n,]{0,30}\b(?:person|people|player|team|friend)s?\b)[^.\n]{0,60}"
    r"(?<!choose )(?<!pick )(?<!select )\b(?:any|either|one of them|whichever)\b"
    r"|\b(?:print|output|return|find|report|write) any (?:of (?:them|the)|one|valid|such|"
    r"solution|answer|possible|correct)"
    r"|\bany (?:valid |correct |possible |such |of the )?(?:answers?|solutions?|outputs?|orders?|"
    r"sequences?)\b[^.\n]{0,40}(?:accepted|allowed|fine|valid|correct)"
    r"|\b(?:multiple|several) (?:valid |correct |possible )?(?:answers|solutions)\b[^.\n]{0,60}(?:any|accepted)"
    r"|\byou (?:may|can) (?:return|print|output) (?:the )?(?:answers?|them|it|results?|"
    r"any)[^.\n]{0,30}(?:in any order|any)"
    r"|如果(?:有|存在)多(?:个|种)[^。\n]{0,30}(?:任意|任何)|任意顺序|返回(?:其中)?任意|"
    r"输出(?:其中)?任意|任意一(?:个|种)[^。\n]{0,8}(?:答案|解|方案|即可)"
    r"|\bom det finns flera[^.\n]{0,60}(?:valfri|vilken som helst|någon)|если (?:существует|есть) "
    r"несколько[^.\n]{0,60}люб",
    re.IGNORECASE,
)
# A number begins where its digits begin, and has no more than nine groups: tried anywhere else, a long run of digits
# would cost its square.
WRITTEN = r"-?(?<!\d)(?:\d{1,3}(?:[ ,_]\d{3}){1,9}\b|\d++(?:\.\d++)?)(?:[ ]*[*x][ ]*\d++)?(?:\^[ ]*\(?\d++\)?)?"
_BOUND = re.compile(
    rf"(?P<low>{WRITTEN})\s*<=?\s*"
    r"(?P<names>\|?[^\W\d][^<>=\n]{0,60}?(?:\s*(?:<=?|==)\s*\|?[^\W\d][\w.|()\[\]]{0,40}){0,3})\s*<=?\s*"
    rf"(?P<high>{WRITTEN}|[^\W\d]\w*)"
)
# `n,m <= 500`: a bound with no other end, which says no range and leaves nobody without one.
_UPPER = re.compile(rf"[^\W\d]\w*\|?\s*<=?\s*{WRITTEN}")
# What "less" can be written with; most texts without a bound have none of these.
_LESS = ("<", "≤", "⩽", "&le;", "\\")


_MOST_OF_A_SAMPLE = 50_000
"""Characters; a longer test is none that a statement shows."""


class Bound(NamedTuple):
    """A stated range of one name, by its two numbers as they are written: `< 1000` is kept as 1000."""

    name: str
    low: float
    high: float


def parse_bounds(text: str) -> tuple[Bound, ...]:
    """Return the ranges that a statement states, such as `1 <= n <= 10^5`; a bound by another name is left out.

    In a chain such as `1 <= k <= n <= 100` each name has the chain's ends.
    """
    if not any(mark in text for mark in _LESS):
        return ()
    plain = plain_formulae(text)
    bounds: dict[str, Bound] = {}
    for found in _BOUND.finditer(plain):
        low, high = read_number(found["low"]), read_number(found["high"])
        if low is None or high is None or low > high:
            continue
        for name in re.split(r"\s*(?:[,;]|<=?|==)\s*|\s+and\s+", found["names"]):
            name = name.strip("` $|")
            if name and len(name) <= 40:
                bounds.setdefault(name, Bound(name, low, high))
    return tuple(bounds.values())


def plain_formulae(text: str) -> str:
    """Return a text with its formulae in ASCII: `<=`, `*`, `^`, no `$`."""
    text = re.sub(r"\\leq?(?:slant)?(?![a-zA-Z])|≤|⩽|&le;", "<=", text)
    text = re.sub(r"\\(?:cdot|times)(?![a-zA-Z])|⋅|×|·", "*", text)
    # A bold name is a name, `10**5` a power.
    text = re.sub(r"(?<![\w*)])\*\*(?=[^\s*])([^*\n]{1,60}?)(?<=[^\s*])\*\*(?![\w*])", r"\1", text).replace("**", "^")
    text = re.sub(r"\\[,;!: ]|\{,\}|\\text\w*|\\mathrm", "", text)
    text = re.sub(r"(?<![ \t])[ \t]*\^[ \t]*", "^", text)
    text = re.sub(r"\^\{(-?\d+)\}", r"^\1", text).replace("{", "").replace("}", "")
    return text.replace("$", "").replace("`", "").replace("<=<=", "<=").replace("\\lt", "<")


def read_number(text: str) -> float | None:
    """Return what a number stands for that is written as in a bound, such as `2 * 10^5`; None where it is none."""
    text = re.sub(r"[ ,_](?=\d{3}\b)", "", text.strip(" .,")).replace(" ", "")
    found = re.fullmatch(r"(-?\d{1,30}(?:\.\d{1,30})?)(?:[*x](\d{1,30}))?(?:\^\(?(\d{1,2})\)?)?", text)
    if not found:
        return None
    factor, power = found[2], found[3]
    if factor and not power and re.fullmatch(r"10[1-9]\d?", factor):
        # 2 * 10^5 that lost its superscript on the way: of two copies of a problem one may have lost it.
        factor, power = "10", factor[2:]
    base, exponent = float(found[1]), int(power or 1)
    if exponent > 30:
        return None
    try:
        # -10^9 is minus ten to the nine.
        number = base * float(factor) ** exponent if factor else (-1 if base < 0 else 1) * abs(base) ** exponent
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def samples_of(sections: Sections) -> tuple[tuple[str, str], ...]:
    """Return the statement's examples as pairs of input and output, values only."""
    return tuple((values_of(one.input), values_of(one.output)) for one in sections.examples if one.input and one.output)


def values_of(text: str) -> str:
    """Return the values of an example or a test, in small letters between single spaces, without names and brackets."""
    text = re.sub(r"\b[^\W\d]\w*\s*=(?!=)\s*", " ", text)
    return " ".join(re.findall(r"[^\s,\[\]{}()\"'`]+", text)).lower()


def find_flags(candidate: Candidate) -> tuple[str, ...]:
    """Return what stands in the way, and what is worth knowing, sorted.

    `has_image` (a picture, kept as a reference), `interactive`, `many_answers` (several answers are right and nothing
    but a comparison decides), `samples_missing` (an example of the statement is not among the tests), `samples_differ`
    (a test has an example's input and another output), `no_constraints` (no range could be read).
    """
    text = candidate.statement
    sections = split(text)
    told = "\n".join(
        [sections.statement, sections.input, sections.output, sections.note, *map("\n".join, sections.other)]
    )
    flags = set(candidate.flags)
    if _IMAGE.search(text):
        flags.add("has_image")
    if _INTERACTIVE.search(told):
        flags.add("interactive")
    if candidate.checker.type in ("default", "exact", "tokens", "float") and _MANY_ANSWERS.search(told):
        flags.add("many_answers")
    if not parse_bounds(text) and not _UPPER.search(plain_formulae(text)):
        flags.add("no_constraints")
    return tuple(sorted(flags | _compare_samples(candidate, sections)))


def _compare_samples(candidate: Candidate, sections: Sections) -> set[str]:
    outputs: dict[str, set[str]] = {}
    for test in candidate.tests:
        if len(test.input) + len(test.output) <= _MOST_OF_A_SAMPLE:
            outputs.setdefault(values_of(test.input), set()).add(values_of(test.output))
    flags = set()
    for given, printed in samples_of(sections):
        if given not in outputs:
            flags.add("samples_missing")
        elif printed not in outputs[given]:
            flags.add("samples_differ")
    return flags if candidate.tests else set()

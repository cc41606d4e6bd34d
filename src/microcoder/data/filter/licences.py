"""Brings the many ways of writing a licence to one name, and compares licences by their duties."""

import re
from collections.abc import Iterable

PERMISSIVE = (
    "MIT",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "CC0-1.0",
    "CC-BY",
    "ODC-BY",
    "PDDL",
    "Unlicense",
)
"""Licences that ask for no more than to be named."""
SHARE_ALIKE = ("CC-BY-SA", "ODbL", "GPL", "LGPL", "MPL-2.0")
"""Licences under which what is made from a work must be passed on."""
_BY_DUTIES = (
    "CC0-1.0",
    "PDDL",
    "Unlicense",
    "ISC",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "Apache-2.0",
    "ODC-BY",
    "CC-BY",
    "MPL-2.0",
    "LGPL",
    "ODbL",
    "CC-BY-SA",
    "GPL",
)
"""Known licences, those with the fewest duties first."""

_NO_COMMERCE = (
    r"\bnc\b|bync|\bno[nt]?\b[^.;]{0,20}commerc|noncommerc"
    r"|commercial use (?:is |are )?(?:not|prohibit|forbid)"
)
_NO_CHANGE = r"\bnd\b|bynd|\bno[nt]?\b[ -]*deriv|noderiv"
_CC_PARTS = (
    ("NC", re.compile(_NO_COMMERCE)),
    ("SA", re.compile(r"\bsa\b|bysa|share[ -]*alike")),
    ("ND", re.compile(_NO_CHANGE)),
)
"""Parts of Creative Commons licences in the order of their names, and the words for them."""
_CC = r"(?:https?: )?(?:www\.)?creative ?commons(?:\.org)?"
_IS_CC = re.compile(rf"cc(?=by|[^a-z0-9]|$)|{_CC}")
_IS_ZERO = re.compile(
    rf"cc[ -]*(?:0|zero)\b|{_CC}[ :]+(?:zero|0|publicdomain)\b|public domain",
)
"""Begins a text that gives up all rights."""
_WITHHELD = re.compile(
    r"all rights reserved|commons[ -]clause|\bno[nt]?\b[^.;]{0,20}redistribut",
)
"""Words that withhold rights which any licence here gives."""
_RESTRICTED = re.compile(
    rf"{_NO_COMMERCE}|{_NO_CHANGE}"
    r"|\b(?:research|academi|education|personal|evaluation)\w*\b[^.;]{0,20}\bonly\b"
)
"""Words that restrict a licence.

`normalise_licence` returns such a text unchanged, so that no list allows it.
"""
_NAMES = (
    (re.compile(r"apache"), "Apache-2.0"),
    (re.compile(r"(?:the )?mit\b"), "MIT"),
    (re.compile(r"bsd[ -]*2|simplified bsd"), "BSD-2-Clause"),
    # Four clauses ask for more than three, and the nuclear one forbids a use.
    (re.compile(r"bsd(?![ -]*4|.*nuclear)"), "BSD-3-Clause"),
    (re.compile(r"odc[ -]*by"), "ODC-BY"),
    (re.compile(r"odbl|odc odbl"), "ODbL"),
    (re.compile(r"lgpl"), "LGPL"),
    (re.compile(r"a?gpl|gnu"), "GPL"),
    (re.compile(r"isc\b"), "ISC"),
    (re.compile(r"mpl"), "MPL-2.0"),
    (re.compile(r"pddl"), "PDDL"),
    # Of "Unlicense" the word "license" is gone by then.
    (re.compile(r"(?:the )?un$"), "Unlicense"),
)
"""How the text of a known licence begins; the first that fits decides."""

_BRACKETS = re.compile(r"\(([^()]+)\)")
# Not inside brackets, which are read by themselves.
_OR = re.compile(r"\s+or\s+(?![^(]*\))", re.IGNORECASE)
_AND = re.compile(r"\s+and\s+(?![^(]*\))", re.IGNORECASE)
_LISTED = re.compile(r"\s*[,;&]\s*|\s\+\s")
_DASHES = re.compile("[\u2010-\u2015\u2212]")
_SEPARATORS = re.compile(r"[\s_/]+")


def normalise_licence(text: str) -> str:
    """Return one name, mostly SPDX's, for the ways of writing a licence.

    An unknown text is returned unchanged. For SPDX's `A AND B`, or a list, it is the strictest
    part's name; for `A OR B`, that of the known part with the fewest duties.
    """
    without_brackets = _BRACKETS.sub(_replace_brackets, text)
    if without_brackets != text:
        return _known_name(without_brackets) or text.strip()
    choice = _name_of_choice(text)
    if choice:
        return choice
    # All parts of a conjunction bind, so the strictest names it.
    parts = _AND.split(text)
    if len(parts) > 1:
        return _known_name(strictest_licence(parts)) or text.strip()
    parts = _LISTED.split(text)
    if len(parts) > 1 and all(map(_known_name, parts)):
        return normalise_licence(strictest_licence(parts))
    return _name_of_one(text)


def _known_name(text: str) -> str:
    """Return the name of a licence; empty if its duties are not known."""
    name = normalise_licence(text)
    return name if name in _BY_DUTIES else ""


def _replace_brackets(found: re.Match[str]) -> str:
    """Return the name of a licence in brackets, or the brackets as they are."""
    return _known_name(found[1]) or found[0]


def _name_of_choice(text: str) -> str:
    """Return the licence with the fewest duties of a choice; empty if the text is not a choice."""
    parts = _OR.split(text)
    if len(parts) == 1:
        return ""
    known = [name for name in map(_known_name, parts) if name]
    # In prose (`GPL-3.0 or later`) what is no licence may say more than a choice.
    is_choice = " OR " in text or len(known) == len(parts)
    if not known or not is_choice:
        return ""
    return min(known, key=_BY_DUTIES.index)


def _name_of_one(text: str) -> str:
    """Return the name of a single licence, neither a choice nor a list."""
    unchanged = text.strip()
    with_hyphens = _DASHES.sub("-", unchanged.lower())
    plain = _SEPARATORS.sub(" ", with_hyphens)
    # "MIT", "MIT License" and "mit-license" are one.
    plain = plain.replace("license", "").replace("licence", "")
    plain = plain.strip()
    if not plain:
        return ""
    # Looked for first: such words may follow the name of any licence.
    is_withheld = _WITHHELD.search(plain) is not None
    is_zero = _IS_ZERO.match(plain) is not None
    is_licence = not is_withheld and not is_zero
    if is_licence and _IS_CC.match(plain):
        return _name_of_creative_commons(plain) or unchanged
    if is_withheld or _RESTRICTED.search(plain):
        return unchanged
    if is_zero:
        return "CC0-1.0"
    for pattern, name in _NAMES:
        if pattern.match(plain):
            return name
    return unchanged


def _name_of_creative_commons(plain: str) -> str:
    """Return the name of a Creative Commons licence; empty if the text does not say which."""
    # Anywhere: "CC-BY-4.0-NC", "CC BY 4.0, non-commercial use only".
    parts = [part for part, pattern in _CC_PARTS if pattern.search(plain)]
    if not parts and not re.search(r"by|attribut", plain):
        return ""
    return "-".join(["CC-BY", *parts])


def strictest_licence(licences: Iterable[str]) -> str:
    """Return the strictest of some licences.

    The strictest is none at all (empty), then an unknown licence, then the one with most duties.
    """
    return max(licences, key=_rank_by_duties)


def _rank_by_duties(licence: str) -> tuple[bool, int, str]:
    """Return a rank that is higher for a stricter licence, and orders equal ones."""
    name = normalise_licence(licence)
    num_duties = _BY_DUTIES.index(name) if name in _BY_DUTIES else len(_BY_DUTIES)
    return not name, num_duties, licence

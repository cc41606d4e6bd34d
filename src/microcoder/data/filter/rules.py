"""The filter stage, row by row: quality, licence, benchmarks.

`check_quality` finds rows that are not programming problems, or not stated well enough to solve.

`check_licence` looks up the source's licence, brought to one name, in a list of allowed ones.

Duplicates need every row (`duplicates.py`).
"""

import re
from collections.abc import Iterable
from typing import Literal

from microcoder.data.filter.contamination import ContaminationIndex, describe_hits, find_hits, words
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge.core.config import Config

Finding = tuple[str, str] | None
"""A reason code and a detail text; None if the row passes."""


_LEAST_WORDS = 12
"""Fewest words and numbers in a statement; a Chinese character counts as one (our choice)."""
BLOCKING_FLAGS = (
    "needs_image",
    "interactive",
    "file_io",
    "many_answers",
    "gives_points",
    "needs_files",
)
"""Flags of the source or of the process stage for which a row is rejected."""
_EMPTY = re.compile(
    r"(?:problem )?(?:statement|description)s? (?:is )?(?:un|not )available|\bto be (?:added|announced)\b|lorem ipsum|"
    r"^\s*(?:tbd|n/?a|none|null|todo|coming soon)\W*$|\[deleted\]|page not found|404 not found|access "
    r"denied|subscribe to unlock",
    re.IGNORECASE,
)
_NOT_A_PROGRAM = re.compile(
    r"\bSQL\s*(?:schema|query)|\bwrite (?:a|an) (?:SQL|MySQL|bash|shell|regex) |\bprimary "
    r"key (?:for|of|column)|\bTable:\s*`?[A-Z]\w+`?\s*$"
    r"|\+-{3,}\+-{3,}[^\n]*\n[ \t>|]*Column Name\b"
    r"|\bwrite a bash script|\bpandas DataFrame\b|\bDataFrame `?\w+`?\s*$"
    r"|\bmultiple[- ]choice question|\bwhich of the following (?:is|are)\b",
    re.IGNORECASE | re.MULTILINE,
)


def check_quality(candidate: Candidate) -> Finding:
    """Return why a row is not a problem that can be solved, or None if it passes every rule."""
    text = candidate.statement
    if not text.strip():
        return "no_statement", "empty"
    if len(text) < 400 and (found := _EMPTY.search(text)):
        return "no_statement", found[0][:60]
    if (num := len(words(text))) < _LEAST_WORDS:
        return "too_short", f"{num} words"
    if found := _NOT_A_PROGRAM.search(text):
        return "not_a_program", found[0].strip()[:60]
    flags = sorted(set(candidate.flags) & set(BLOCKING_FLAGS))
    return (flags[0], ", ".join(flags)) if flags else None


PERMISSIVE = (
    "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "CC0-1.0", "CC-BY", "ODC-BY", "PDDL", "Unlicense",
)  # fmt: skip
SHARE_ALIKE = ("CC-BY-SA", "ODbL", "GPL", "LGPL", "MPL-2.0")

_NO_COMMERCE = (
    r"\bnc\b|bync|\bno[nt]?\b[^.;]{0,20}commerc|noncommerc"
    r"|commercial use (?:is |are )?(?:not|prohibit|forbid)"
)
_NO_CHANGE = r"\bnd\b|bynd|\bno[nt]?\b[ -]*deriv|noderiv"
_CC_PARTS = (("NC", _NO_COMMERCE), ("SA", r"\bsa\b|bysa|share[ -]*alike"), ("ND", _NO_CHANGE))
_CC = r"(?:https?: )?(?:www\.)?creative ?commons(?:\.org)?"
_WITHHELD = r"all rights reserved|commons[ -]clause|\bno[nt]?\b[^.;]{0,20}redistribut"
_RESTRICTED = (
    rf"{_NO_COMMERCE}|{_NO_CHANGE}"
    r"|\b(?:research|academi|education|personal|evaluation)\w*\b[^.;]{0,20}\bonly\b"
)
"""Words that restrict a licence: `normalise_licence` returns such a text unchanged, so that no list allows it."""


class LicenceSettings(Config):
    """Which licences a row may have."""

    allowed: tuple[str, ...] = (*PERMISSIVE, *SHARE_ALIKE)
    """Names as `normalise_licence` gives them, versions of Creative Commons and GPL left out (our choice: what may be
    passed on under its own terms; non-commercial and no-derivatives may not)."""
    unknown: Literal["keep", "reject"] = "keep"
    """Whether a row without a licence is kept (our choice: it can be trained on; `data push` leaves it out)."""


_BRACKETS = re.compile(r"\(([^()]+)\)")
_OR, _AND = (re.compile(rf"\s+{word}\s+(?![^(]*\))", re.IGNORECASE) for word in ("or", "and"))
_LISTED = re.compile(r"\s*[,;&]\s*|\s\+\s")


def normalise_licence(text: str) -> str:
    """Return one name, mostly SPDX's, for the ways of writing a licence; an unknown text is returned unchanged.

    Of SPDX's `A AND B`, or a list, that is the strictest part's, of `A OR B` the known part's with the fewest duties.
    """
    plain = _BRACKETS.sub(
        lambda found: name if (name := normalise_licence(found[1])) in _BY_DUTIES else found[0],
        text,
    )
    if plain != text:
        return name if (name := normalise_licence(plain)) in _BY_DUTIES else text.strip()
    parts = _OR.split(text)
    known = [
        name for part in parts if len(parts) > 1 and (name := normalise_licence(part)) in _BY_DUTIES
    ]
    # In prose (`GPL-3.0 or later`) what is no licence may say more than a choice.
    if known and (" OR " in text or len(known) == len(parts)):
        return min(known, key=_BY_DUTIES.index)
    if len(parts := _AND.split(text)) > 1:
        return (
            name
            if (name := normalise_licence(strictest_licence(parts))) in _BY_DUTIES
            else text.strip()
        )
    if len(parts := _LISTED.split(text)) > 1 and {*map(normalise_licence, parts)} <= {*_BY_DUTIES}:
        return normalise_licence(strictest_licence(parts))
    words = re.sub(r"[\s_/]+", " ", re.sub("[\u2010-\u2015\u2212]", "-", text.strip().lower()))
    words = words.replace("license", "").replace("licence", "").strip()
    if not words:
        return ""
    is_zero = re.match(
        rf"cc[ -]*(?:0|zero)\b|{_CC}[ :]+(?:zero|0|publicdomain)\b|public domain", words
    )
    if (
        not re.search(_WITHHELD, words)
        and not is_zero
        and re.match(rf"cc(?=by|[^a-z0-9]|$)|{_CC}", words)
    ):
        # Anywhere: "CC-BY-4.0-NC", "CC BY 4.0, non-commercial use only". "Creative Commons" alone may be any.
        parts = [part for part, said in _CC_PARTS if re.search(said, words)]
        return (
            "-".join(["CC-BY", *parts])
            if parts or re.search(r"by|attribut", words)
            else text.strip()
        )
    if re.search(rf"{_RESTRICTED}|{_WITHHELD}", words):
        return text.strip()
    if is_zero:
        return "CC0-1.0"
    for pattern, name in (
        (r"apache", "Apache-2.0"), (r"(?:the )?mit\b", "MIT"), (r"bsd[ -]*2|simplified bsd", "BSD-2-Clause"),
        (r"bsd(?![ -]*4|.*nuclear)", "BSD-3-Clause"), (r"odc[ -]*by", "ODC-BY"), (r"odbl|odc odbl", "ODbL"),
        (r"lgpl", "LGPL"), (r"a?gpl|gnu", "GPL"), (r"isc\b", "ISC"), (r"mpl", "MPL-2.0"), (r"pddl", "PDDL"),
        (r"(?:the )?un$", "Unlicense"),  # its "license" is gone
    ):  # fmt: skip
        if re.match(pattern, words):
            return name
    return text.strip()


_BY_DUTIES = ("CC0-1.0", "PDDL", "Unlicense", "ISC", "MIT", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "ODC-BY",
              "CC-BY", "MPL-2.0", "LGPL", "ODbL", "CC-BY-SA", "GPL")  # fmt: skip
"""Known licences, those with the fewest duties first."""


def strictest_licence(licences: Iterable[str]) -> str:
    """Return the strictest licence: none at all (empty), or else an unknown one, or else the one with most duties."""

    def duties(licence: str) -> tuple[bool, int, str]:
        name = normalise_licence(licence)
        return not name, _BY_DUTIES.index(name) if name in _BY_DUTIES else len(_BY_DUTIES), licence

    return max(licences, key=duties)


def check_licence(candidate: Candidate, settings: LicenceSettings | None = None) -> Finding:
    """Return why a row's licence is not allowed, or None if it is."""
    settings = settings or LicenceSettings()
    found = normalise_licence(candidate.licence)
    if not found:
        return (
            ("licence_unknown", "the source says nothing") if settings.unknown == "reject" else None
        )
    return None if found in settings.allowed else ("licence_refused", found)


def filter_row(
    candidate: Candidate,
    settings: LicenceSettings | None = None,
    index: ContaminationIndex | None = None,
) -> Candidate | Rejection:
    """Return the candidate where every rule passes, or the rejection of the first that does not.

    Args:
        candidate: a processed candidate.
        settings: which licences pass.
        index: the benchmarks' problems; without one nothing is compared.
    """
    found = check_quality(candidate) or check_licence(candidate, settings)
    if found:
        return candidate.reject("filter", *found)
    if index is not None and (hits := find_hits(candidate, index)):
        return candidate.reject("filter", "contaminated", describe_hits(hits))
    return candidate

"""The filter stage, row by row: quality, licence, benchmarks.

`check_quality` finds rows that are not programming problems, or not stated well enough to solve.

`check_licence` looks up the source's licence, brought to one name, in a list of allowed ones.

Duplicates need every row (`duplicates.py`).
"""

import re
from typing import Literal

from microcoder.data.filter.contamination import ContaminationIndex, describe_hits, find_hits
from microcoder.data.filter.licences import PERMISSIVE, SHARE_ALIKE, normalise_licence
from microcoder.data.filter.texts import words
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge.core.config import Config

Finding = tuple[str, str] | None
"""A reason code and a detail text; None if the row passes."""
_LEAST_WORDS = 12
"""Fewest words and numbers in a statement; a Chinese character counts as one (our choice)."""
_LEAST_WORDS_OF_FUNCTION = 9
"""Fewest where its signature is shown beside them.

"Write a function to find the nth bell number" is whole. Of MBPP's 29 such texts 25 are, of its ten
of eight words four.
"""
_LONGEST_EMPTY = 400
"""Characters below which a statement may be a notice that there is none."""
_MOST_QUOTED = 60
"""Characters of a statement that a rejection quotes."""
BLOCKING_FLAGS = (
    "needs_image",
    "interactive",
    "file_io",
    "many_answers",
    "unstated_output",
    "gives_points",
    "needs_files",
)
"""Flags of the source or of the process stage for which a row is rejected."""
_EMPTY = re.compile(
    r"(?:problem )?(?:statement|description)s? (?:is )?(?:un|not )available"
    r"|\bto be (?:added|announced)\b|lorem ipsum"
    r"|^\s*(?:tbd|n/?a|none|null|todo|coming soon)\W*$|\[deleted\]|page not found|404 not found"
    r"|access denied|subscribe to unlock",
    re.IGNORECASE,
)
"""Stands where a source has no statement to show."""
_NOT_A_PROGRAM = re.compile(
    r"\bSQL\s*(?:schema|query)|\bwrite (?:a|an) (?:SQL|MySQL|bash|shell|regex) |\bprimary "
    r"key (?:for|of|column)|\bTable:\s*`?[A-Z]\w+`?\s*$"
    r"|\+-{3,}\+-{3,}[^\n]*\n[ \t>|]*Column Name\b"
    r"|\bwrite a bash script|\bpandas DataFrame\b|\bDataFrame `?\w+`?\s*$"
    r"|\bmultiple[- ]choice question|\bwhich of the following (?:is|are)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Asks for a query, a script or a choice, which no judge here can run."""


def check_quality(candidate: Candidate) -> Finding:
    """Return why a row is not a problem that can be solved; None if it passes every rule."""
    text = candidate.statement
    if not text.strip():
        return "no_statement", "empty"
    # A long statement may speak of such a page.
    if len(text) < _LONGEST_EMPTY:
        notice = _EMPTY.search(text)
        if notice:
            return "no_statement", notice[0][:_MOST_QUOTED]
    # Cheap rules first: the patterns below search whole statements.
    num_words = len(words(text))
    least = _LEAST_WORDS
    if candidate.fn_name and candidate.starter_code:
        least = _LEAST_WORDS_OF_FUNCTION
    if num_words < least:
        return "too_short", f"{num_words} words"
    asked = _NOT_A_PROGRAM.search(text)
    if asked:
        return "not_a_program", asked[0].strip()[:_MOST_QUOTED]
    flags = sorted(set(candidate.flags) & set(BLOCKING_FLAGS))
    if flags:
        return flags[0], ", ".join(flags)
    return None


class LicenceSettings(Config):
    """Which licences a row may have."""

    allowed: tuple[str, ...] = (*PERMISSIVE, *SHARE_ALIKE)
    """Names as `normalise_licence` gives them, versions of Creative Commons and GPL left out (our
    choice: what may be passed on under its own terms; non-commercial and no-derivatives may
    not)."""
    unknown: Literal["keep", "reject"] = "keep"
    """Whether a row without a licence is kept (our choice: it can be trained on; `data push` leaves
    it out)."""


def check_licence(
    candidate: Candidate,
    settings: LicenceSettings | None = None,
) -> Finding:
    """Return why a row's licence is not allowed, or None if it is."""
    # Without settings, the defaults of a build.
    settings = settings or LicenceSettings()
    name = normalise_licence(candidate.licence)
    if not name:
        if settings.unknown == "reject":
            return "licence_unknown", "the source says nothing"
        return None
    if name not in settings.allowed:
        return "licence_refused", name
    return None


def filter_row(
    candidate: Candidate,
    settings: LicenceSettings | None = None,
    index: ContaminationIndex | None = None,
) -> Candidate | Rejection:
    """Return the candidate if all rules pass, else the rejection by the first rule that does not.

    Args:
        candidate: a processed candidate.
        settings: which licences pass.
        index: the benchmarks' problems; without one nothing is compared.
    """
    finding = check_quality(candidate) or check_licence(candidate, settings)
    if finding:
        return candidate.reject("filter", *finding)
    if index is None:
        return candidate
    # Last, since it costs most.
    hits = find_hits(candidate, index)
    if hits:
        return candidate.reject("filter", "contaminated", describe_hits(hits))
    return candidate

"""May this row be passed on? The licence as the source says it, brought to one name, against a list."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import Field

from microcoder.config import Config
from microcoder.formats.candidates import Candidate

PERMISSIVE = (
    "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "CC0-1.0", "CC-BY", "ODC-BY", "PDDL", "Unlicense",
)  # fmt: skip
SHARE_ALIKE = ("CC-BY-SA", "ODbL", "GPL", "LGPL", "MPL-2.0")

_NO_COMMERCE = (
    r"\bnc\b|bync|\bno[nt]?\b[^.;]{0,20}commerc|noncommerc|commercial use (?:is |are )?(?:not|prohibit|forbid)"
)
_NO_CHANGE = r"\bnd\b|bynd|\bno[nt]?\b[ -]*deriv|noderiv"
_CC_PARTS = (("NC", _NO_COMMERCE), ("SA", r"\bsa\b|bysa|share[ -]*alike"), ("ND", _NO_CHANGE))
_RESTRICTED = (
    rf"{_NO_COMMERCE}|{_NO_CHANGE}|\b(?:research|academi|education|personal|evaluation)\w*\b[^.;]{{0,20}}\bonly\b"
)
"""What makes another licence of the one that is named: such a text is returned as it is, and is on no list."""


class LicenceSettings(Config):
    """Which licences pass."""

    allowed: tuple[str, ...] = (*PERMISSIVE, *SHARE_ALIKE)
    """Names as `normalise_licence` gives them, versions of Creative Commons and GPL left out (our choice: what may be
    passed on under its own terms; non-commercial and no-derivatives may not)."""
    unknown: Literal["keep", "reject"] = "keep"
    """What happens to a row that says nothing. Kept rows keep the empty licence for the release to
    sort out (our choice)."""
    datasets: dict[str, str] = Field(default_factory=dict)
    """The licence of a whole dataset, for rows that say nothing."""


def normalise_licence(text: str) -> str:
    """Return one name for the ways of writing a licence; what is not known is returned as it is."""
    words = re.sub(r"[\s_/]+", " ", re.sub("[\u2010-\u2015\u2212]", "-", text.strip().lower()))
    words = words.replace("license", "").replace("licence", "").strip()
    if not words:
        return ""
    if re.match(r"(?:cc(?=by|[^a-z0-9]|$)|creative commons)", words):
        # Anywhere: "CC-BY-4.0-NC", "CC BY 4.0, non-commercial use only".
        return "-".join(["CC-BY", *(part for part, said in _CC_PARTS if re.search(said, words))])
    if re.search(_RESTRICTED, words):
        return text.strip()
    if re.match(r"cc0|public domain|cc zero", words):
        return "CC0-1.0"
    for pattern, name in (
        (r"apache", "Apache-2.0"), (r"(?:the )?mit\b", "MIT"), (r"bsd[ -]*2|simplified bsd", "BSD-2-Clause"),
        (r"bsd", "BSD-3-Clause"), (r"odc[ -]*by", "ODC-BY"), (r"odbl|odc odbl", "ODbL"), (r"lgpl", "LGPL"),
        (r"a?gpl|gnu", "GPL"), (r"isc\b", "ISC"), (r"mpl", "MPL-2.0"), (r"unlicense", "Unlicense"), (r"pddl", "PDDL"),
    ):  # fmt: skip
        if re.match(pattern, words):
            return name
    return text.strip()


def check_licence(candidate: Candidate, settings: LicenceSettings | None = None) -> tuple[str, str] | None:
    """Return a reason code and what was seen, or None where the row passes."""
    settings = settings or LicenceSettings()
    found = normalise_licence(candidate.licence or settings.datasets.get(candidate.dataset, ""))
    if not found:
        return ("licence_unknown", "the source says nothing") if settings.unknown == "reject" else None
    return None if found in settings.allowed else ("licence_refused", found)

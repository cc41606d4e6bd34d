"""Tells which natural language a statement is written in."""

import re
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from microcoder.data.clean.markdown import prose

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

LANGUAGES = (
    "en",
    "zh",
    "ru",
    "ja",
    "ko",
    "es",
    "pt",
    "fr",
    "de",
    "sv",
    "is",
    "nl",
    "fi",
    "et",
    "ar",
)
"""Languages that a statement can be identified as (our choice): the fewer, the surer it is."""
_CODE_LINE = re.compile(
    r"^\s*(?:>>>|\.\.\.|(?:def|class|import|from|return|assert)\b).*$", re.MULTILINE
)
"""A line of code that no fence encloses."""
_LEAST_LETTERS = 12
"""Statements with fewer letters than this are taken for English: too little to say (our choice)."""


class DetectedLanguage(NamedTuple):
    """The language that a text was identified as, and with which probability."""

    code: str
    """ISO 639-1 code, one of `LANGUAGES`."""
    probability: float
    """0 to 1, among `LANGUAGES`; 0 for a text with too few letters to tell, taken for English."""


def identify(text: str) -> DetectedLanguage:
    """Return the language of a statement.

    Code (examples too, if fenced), formulae and web addresses are ignored.
    """
    # Programs are in English in every language.
    words = _CODE_LINE.sub(" ", prose(text))
    letters = [char for char in words if char.isalpha()]
    # A few Chinese characters are enough to tell, a few Latin letters are not.
    if len(letters) < _LEAST_LETTERS and all(letter.isascii() for letter in letters):
        return DetectedLanguage("en", 0.0)
    code, probability = _identifier().classify(words)
    return DetectedLanguage(str(code), float(probability))


@cache
def _identifier() -> "LanguageIdentifier":
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier

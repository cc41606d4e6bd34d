"""The process stage: one candidate in, a clean one in English out, or a rejection. No I/O.

`identify` tells which natural language a statement is written in.
"""

import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

from microcoder.data.clean.cleaning import LOST_IN, clean, drop_embedded, prose, restore_powers
from microcoder.data.clean.sections import Sections, find_starter_code, normalise, render, split, strip_instruction
from microcoder.data.clean.tests import find_flags, find_order, normalise_tests, restore_samples
from microcoder.data.formats.candidates import Candidate, Rejection

RESTORE_POWERS = "restore_powers/1"
"""The step that puts powers back, as lineage names it."""
_BETWEEN = "\ue010"

_MOST_CHARACTERS = 100_000
"""A longer statement, as found, is a web page rather than a problem: it is rejected before it is cleaned."""


def process(candidate: Candidate) -> Candidate | Rejection:
    """Return the candidate cleaned, laid out and flagged, or its rejection; `statement_found` is never changed."""
    length = len(drop_embedded(candidate.statement_found))
    if length > _MOST_CHARACTERS:
        return candidate.reject("process", "too_long", f"{length} characters as found")
    candidate = _clean(candidate)
    if not candidate.statement.strip():
        return candidate.reject("process", "no_statement", "empty after cleaning")
    tests = normalise_tests(candidate)
    if isinstance(tests, Rejection):
        return tests
    starter = find_starter_code(tests)
    candidate = tests.change("process", "find_signature/1", "from an accepted solution", starter_code=starter)
    candidate = _identify(_restore_powers(restore_samples(candidate)))
    if candidate.natural_language != "en":
        return candidate.reject("process", "not_english", candidate.natural_language)
    if candidate.fn_name and not candidate.starter_code:
        return candidate.reject("process", "no_signature", candidate.fn_name)
    candidate = candidate.change("process", "find_order/1", checker=find_order(candidate) or candidate.checker)
    return candidate.change("process", "find_flags/1", flags=find_flags(candidate))


def _clean(candidate: Candidate) -> Candidate:
    cleaned = clean(candidate.statement_found)
    title = " ".join(clean(candidate.title).text.split())
    asked = strip_instruction(cleaned.text, candidate.starter_code)
    laid_out = normalise(asked)
    if laid_out != candidate.statement:
        candidate = candidate.change("process", "clean/2", ", ".join(cleaned.steps), statement=cleaned.text)
        candidate = candidate.change("process", "strip_instruction/1", "the source's own prompt", statement=asked)
    return candidate.change("process", "arrange_sections/1", statement=laid_out, title=title)


def _restore_powers(candidate: Candidate) -> Candidate:
    """Put lost powers back in all parts of a statement but its examples, whose numbers are data."""
    sections = split(candidate.statement)
    names = ("statement", "input", "output", "constraints", "note")
    texts = [*(getattr(sections, name) for name in names), *(text for _, text in sections.other)]
    texts = [text.replace(_BETWEEN, "") for text in texts]
    found = restore_powers(_BETWEEN.join(texts), has_lost_all=candidate.dataset in LOST_IN)
    if not found.why:
        return candidate
    mended = found.text.split(_BETWEEN)
    others = tuple((title, text) for (title, _), text in zip(sections.other, mended[len(names) :], strict=True))
    changed = Sections(**dict(zip(names, mended, strict=False)), examples=sections.examples, other=others)
    return candidate.change("process", RESTORE_POWERS, ", ".join(found.why), statement=render(changed))


def _identify(candidate: Candidate) -> Candidate:
    found = identify(candidate.statement)
    detail = f"probability {found.probability:.2f}"
    if candidate.natural_language and candidate.natural_language != found.code:
        detail += f"; the source says {candidate.natural_language}"
        if found.probability < 0.9:
            return candidate
    return candidate.change("process", "identify_language/1", detail, natural_language=found.code)


LANGUAGES = ("en", "zh", "ru", "ja", "ko", "es", "pt", "fr", "de", "sv", "is", "nl", "fi", "et", "ar")
"""Languages of public problem sets (our choice): a short list makes the identification sure."""
_ENGLISH = frozenset({
    "the", "and", "that", "which", "are", "each", "this", "will", "you", "your", "there", "their", "they", "what",
    "how", "when", "many", "these", "those",
})  # fmt: skip
"""Words that neither another language of Latin letters nor code has."""
_ENOUGH_WORDS, _MOSTLY, _ASCII = 30, 0.09, 0.98
"""English prose has half as many again of these words (our choice)."""
_LEAST_LETTERS = 12
"""Statements with fewer letters than this are taken for English: too little to say (our choice)."""


class DetectedLanguage(NamedTuple):
    """A language and how sure it is."""

    code: str
    """ISO 639-1."""
    probability: float
    """0 to 1, among the languages that were allowed."""


def identify(text: str) -> DetectedLanguage:
    """Return the language of a statement; code, formulae, examples' numbers and addresses are not read."""
    words = _readable(text)
    letters = [char for char in words if char.isalpha()]
    if len(letters) < _LEAST_LETTERS and all(map(_is_latin, letters)):
        return DetectedLanguage("en", 0.0)
    # First: an English statement may name a person or a game in another script, which the identifier would go by.
    if _is_english(prose(text)):
        return DetectedLanguage("en", 1.0)
    code, probability = _identifier().classify(words)
    return DetectedLanguage(str(code), float(probability))


def _readable(text: str) -> str:
    """Return the words of the prose; names, numbers and calls are in English in every language."""
    text = re.sub(r"^\s*(>>>|\.\.\.).*$|^\s*(def|class|import|from|return|assert)\b.*$", " ", prose(text), flags=re.M)
    text = re.sub(r"[\"'][^\"'\n]{0,80}[\"']", " ", text)
    text = re.sub(r"\\[a-zA-Z]+|<[^<>\n]{0,200}>", " ", text)
    words = re.findall(r"[^\W\d_]+(?:['’-][^\W\d_]+)*", text)
    if sum(not word.isascii() for word in words) >= 3:
        # A Chinese or Russian statement is still full of English names; a Spanish one loses its plain words with them.
        foreign = " ".join(word for word in words if not word.isascii())
        if sum(not _is_latin(char) for char in foreign if char.isalpha()) > 10:
            return foreign
    return " ".join(words)


def _is_english(words: str) -> bool:
    """Whether many of the words are ones that only English has; invented names mislead the identifier."""
    letters = [char for char in words if char.isalpha()]
    if sum(map(str.isascii, letters)) < _ASCII * len(letters):
        return False
    said = re.findall(r"[^\W\d_]+", words.lower())
    return len(said) >= _ENOUGH_WORDS and sum(word in _ENGLISH for word in said) >= _MOSTLY * len(said)


def _is_latin(char: str) -> bool:
    return unicodedata.name(char, "").startswith("LATIN")


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier

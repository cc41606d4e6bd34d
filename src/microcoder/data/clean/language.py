"""Which natural language a statement is written in."""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import Any, NamedTuple

from microcoder.data.clean.markup import prose

LANGUAGES = ("en", "zh", "ru", "ja", "ko", "es", "pt", "fr", "de", "sv", "nl", "fi", "et", "ar")
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
    if code := _by_script(letters):
        return DetectedLanguage(code, 1.0)
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


def _by_script(letters: list[str]) -> str | None:
    """Return the language that a script decides alone, where there is enough of it."""
    kana = sum("぀" <= char <= "ヿ" for char in letters)
    hangul = sum("가" <= char <= "힯" for char in letters)
    han = sum("一" <= char <= "鿿" for char in letters)
    if kana >= 3 and kana * 10 > han:
        return "ja"
    if hangul >= 3 and hangul > han:
        return "ko"
    if sum(char in "ðþÐÞ" for char in letters) >= 3:
        # Of the identifier's languages none has these letters, and Swedish is the nearest.
        return "is"
    return "zh" if han >= 3 and not kana else None


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier

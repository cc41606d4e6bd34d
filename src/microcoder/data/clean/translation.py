"""Which natural language a statement is written in, and the statement in English by a model.

What must not change goes out as placeholders, and every reply is checked.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from functools import cache
from itertools import count
from typing import Any, NamedTuple

from microcoder.data.clean.markup import FENCE, INLINE_CODE, MATH, prose
from microcoder.data.clean.sections import split
from microcoder.data.clean.tests import samples_of
from microcoder.data.completions import BadReply, Endpoint, EndpointSettings, Message, hash_prompt
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge.core.config import Config

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


PROMPT = (
    "You translate statements of programming problems from {language} into English. Keep the meaning exact: every "
    "condition, every number, every limit. Keep Markdown as it is. Marks such as {mark}0]] stand for "
    "code, formulae and "
    "examples: copy each one unchanged to where it belongs, and invent none. Add nothing, explain "
    "nothing. Reply with a "
    'JSON object {{"title": "...", "statement": "..."}}.'
)
SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string"}, "statement": {"type": "string"}},
    "required": ["title", "statement"],
    "additionalProperties": False,
}
STEP = "translate/1"
_IN_TERM = r"[A-Za-z0-9_.\[\]()^*+|-]"
_TERM = rf"{_IN_TERM}++"
_KEPT = re.compile(
    "|".join(
        (
            FENCE,
            INLINE_CODE,
            MATH,
            r"!?\[[^\]\n]{0,200}\]\([^)\n]{1,400}\)",  # images and links
            r"https?://[^\s)\"'<>]+",
            rf"(?<!{_IN_TERM}){_TERM}(?:\s*(?:<=|>=|==|!=|<|>|≤|≥|=)\s*{_TERM})+",  # 1 <= n <= 100
            r"\"[^\"\n]{1,60}\"",
            # identifiers, elements, calls
            r"\b[A-Za-z]+_\w+\b|\b[a-z]+[A-Z]\w*\b|\b\w+\[[^\]\n]{1,30}\]|\b[A-Za-z_]\w*\([^()\n]{0,40}\)",
            r"^\#{1,6} (?:Input|Output|Constraints|Examples?|Example \d+|Note)[ \t]*$|^(?:Input|"
            r"Output|Explanation):[ \t]*$",
        )
    ),
    re.DOTALL | re.MULTILINE,
)
_ATTEMPTS = 3
"""Replies asked for before a row is given up."""


class TranslationSettings(Config):
    """Whether and how statements are translated into English."""

    endpoint: EndpointSettings | None = None
    """Without one, what is not in English is kept apart with the reason `not_english`."""


def translate(candidate: Candidate, endpoint: Endpoint) -> Candidate | Rejection:
    """Return the candidate with title and statement in English; the original stays in `statement_found`.

    Each reply must hold the same placeholders and numbers, keep the examples as they were, and be in English; what
    was wrong is reported to the model in the next attempt. After the last one the row is turned away.
    """
    protected = protect(candidate.statement)
    messages: list[Message] = [
        {"role": "system", "content": PROMPT.format(language=candidate.natural_language, mark=protected.mark)},
        {"role": "user", "content": f"Title: {candidate.title}\n\n{protected.text}"},
    ]
    faults: list[str] = []
    for _ in range(_ATTEMPTS):
        try:
            reply = endpoint.ask(messages, SCHEMA)
            translated, title = str(reply["statement"]), str(reply["title"])
            faults = check_translation(candidate.statement, translated, protected)
        except BadReply as error:
            translated, title, faults = "", "", [str(error)]
        if not faults:
            detail = f"{candidate.natural_language} to en by {endpoint.settings.model}, prompt {hash_prompt(PROMPT)}"
            statement = restore(translated, protected).strip() + "\n"
            return candidate.change("process", STEP, detail, statement=statement, title=title or candidate.title)
        messages = [
            *messages[:2],
            {"role": "assistant", "content": translated},
            {"role": "user", "content": f"That is not right: {'; '.join(faults[:8])}. Reply again, in full."},
        ]
    return candidate.reject("process", "translation_failed", f"{_ATTEMPTS} attempts: {'; '.join(faults[:4])}")


def check_translation(original: str, translated: str, protected: Protected) -> list[str]:
    """Return what is wrong with a translation, in words that help to do better; nothing where it holds."""
    if not translated.strip():
        return ["the statement is empty"]
    faults = find_damage(translated, protected)
    if faults:
        return faults
    statement = restore(translated, protected)
    if samples_of(split(statement)) != samples_of(split(original)):
        faults.append("the examples are no longer the same")
    if (found := identify(statement)).code != "en":
        faults.append(f"the text is still in {found.code}")
    return faults


class Protected(NamedTuple):
    """A text whose code, formulae, identifiers and samples are placeholders."""

    text: str
    kept: tuple[str, ...]
    """Text of each placeholder, by number."""
    mark: str
    """Prefix of placeholders, which the text does not contain."""


def protect(text: str) -> Protected:
    """Return the text with placeholders such as `[[P0]]`; equal pieces share one."""
    mark = next(mark for length in count(1) if (mark := "[[" + "P" * length) not in text)
    numbers: dict[str, int] = {}

    def replace(match: re.Match[str]) -> str:
        return f"{mark}{numbers.setdefault(match[0], len(numbers))}]]"

    return Protected(_KEPT.sub(replace, text), tuple(numbers), mark)


def restore(text: str, protected: Protected) -> str:
    """Return the text with every placeholder replaced by what it stands for."""

    def back(match: re.Match[str]) -> str:
        number = int(match[1])
        return protected.kept[number] if number < len(protected.kept) else match[0]

    return re.sub(rf"{re.escape(protected.mark)}([0-9]+)\]\]", back, text)


def find_damage(translated: str, protected: Protected) -> list[str]:
    """Return what a translation did to the placeholders and numbers, in words; nothing where all are there."""
    pattern = rf"{re.escape(protected.mark)}[0-9]+\]\]"
    before, after = Counter(re.findall(pattern, protected.text)), Counter(re.findall(pattern, translated))
    damage = [f"{name} is missing" for name in sorted(before.keys() - after.keys())]
    damage += [f"{name} was made up" for name in sorted(after.keys() - before.keys())]
    left, found = (_numbers(re.sub(pattern, " ", text)) for text in (protected.text, translated))
    damage += [f"the number {number} is missing" for number in sorted(left.keys() - found.keys())]
    return damage


def _numbers(text: str) -> Counter[str]:
    return Counter(re.findall(r"(?<![\w.])\d{2,}(?:\.\d+)?(?![\w])", text, re.ASCII))

"""Statements in another language, translated into English by a model or by a function.

    Candidate -> mask -> translator -> check -> restore -> Candidate, or Rejection

Code, formulae, samples, numbers and names of variables go out as marks such as `[[P3]]`, and must
come back. Nothing of a translation is believed that the checks do not hold: what is missing is told
to the model, and after the last attempt the row is turned away.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple, Protocol

from microcoder.data.clean.bounds import parse_bounds
from microcoder.data.clean.languages import identify
from microcoder.data.clean.markdown import FENCE, INLINE_CODE, MATH
from microcoder.data.clean.samples import samples_of
from microcoder.data.clean.sections import normalise, split
from microcoder.data.completions import AnswerCache, BadReply, Endpoint, hash_asked
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.judge.core.extensions import Extension
from microcoder.judge.core.types import Record

STEP = "translate/1"
"""Name of the step in a candidate's lineage."""
_ATTEMPTS = 3
"""Translations that a model is asked for before a row is given up."""
_LONG_PARAGRAPH = 40
"""Letters from which on a paragraph's language and length say something (our choice)."""
_SURE = 0.9
"""Probability from which on a paragraph counts as still in its first language."""
_LEAST_LENGTH = 0.5
"""Least letters of a paragraph in English, as a share of those that it had (our choice).

Of 180 Chinese statements and their English originals, whole ones are never that much shorter: the
least is 1.1, counted by `_LETTERS_A_SIGN`. Single paragraphs were not compared.
"""
_LETTERS_A_SIGN = 2.0
"""English letters that a Chinese, Japanese or Korean sign stands for, at least."""
_MOST_SHOWN = 6
"""Faults that a model is told of, and that a rejection names."""
_MOST_COPIES = 3
"""Times that a mark may stand in a translation: a pronoun may become a name."""

# ASCII classes: a Chinese letter before a number is none of its digits.
_NAME = r"[A-Za-z0-9_]"
_TERM = r"[A-Za-z0-9_.\[\]()^*+|-]++"
_THOUSANDS = r"(?:[ \u00a0,_]\d{3}(?!\d))*"
"""Groups of digits behind the first, as in `100 000`."""
_LISTED = r"(?:\s*,\s*[A-Za-z0-9_.\[\]()]{1,30}+)*+"
"""Further names of a range, as in `1 <= a, b <= 8`."""
_NUMBER = (
    rf"(?:(?<![A-Za-z0-9_.])|(?<=\.\.))[-\u2212]?\d+{_THOUSANDS}(?:[.,]\d+)?"
    r"(?: ?[*x\u00b7\u00d7] ?\d+)?(?:\^\(?\d+\)?)?"
)
_KEPT = re.compile(
    "|".join(
        (
            FENCE,
            INLINE_CODE,
            MATH,
            # Pictures and links.
            r"!?\[[^\]\n]{0,200}\]\([^)\n]{1,400}\)",
            r"https?://[^\s)\"'<>]+",
            # Ranges and equations.
            rf"(?<!{_NAME}){_TERM}(?:{_LISTED}\s*(?:<=|>=|==|!=|<|>|≤|≥|=)\s*{_TERM}{_THOUSANDS})+",
            # What is read or printed is quoted.
            r"\"[^\"\n]{1,60}\"|“[^”\n]{1,60}”|”[^”\n]{1,60}”|„[^“”\n]{1,60}[“”]|«[^»\n]{1,60}»",
            # Names with underscores or digits, names in camel case, elements, calls.
            rf"(?<!{_NAME})[A-Za-z]+(?:_|\d){_NAME}*",
            rf"(?<!{_NAME})[a-z]+[A-Z]{_NAME}*",
            rf"(?<!{_NAME}){_NAME}+\[[^\]\n]{{1,30}}\]",
            rf"(?<!{_NAME})[A-Za-z_]{_NAME}*\([^()\s]{{0,40}}\)",
            # A capital letter alone inside a sentence.
            r"(?:(?<=[^\W\d_A-Z][ \u00a0])|(?<=[,;:(][ \u00a0])|(?<=[(⺀-鿿]))"
            r"[A-Z](?![A-Za-z0-9_À-ÿ])",
            _NUMBER,
            # Headings and labels of the one layout.
            r"^\#{1,6} (?:Input|Output|Constraints|Examples?|Example \d+|Note)[ \t]*$",
            r"^(?:Input|Output|Explanation):[ \t]*$",
        )
    ),
    re.DOTALL | re.MULTILINE,
)
"""What a translation leaves as it is."""
_DIGITS = re.compile(r"\d+")
_FOREIGN_SCRIPT = re.compile(r"[\u0400-\u04ff\u0600-\u06ff぀-ヿ一-鿿가-힯]{3,}")
"""Words of a script that no English text has: Cyrillic, Arabic, Japanese, Chinese, Korean."""
_SIGNS = re.compile(r"[぀-ヿ一-鿿가-힯]")

PROMPT = """\
Translate the statement of a programming problem from {language} (ISO 639-1) into English.

Keep its meaning exact: every condition, every number, every limit. Keep the paragraphs and the \
Markdown as they are: an empty line stays where it is. The first line is the title. Marks such as \
{mark}0]] stand for numbers, code, formulae, names and examples: copy each one unchanged to where \
it belongs, write none that is not there, and write no digits of your own. Add nothing and explain \
nothing.

Reply with a JSON object {{"translation": "..."}}.
"""
"""What a model is asked."""
SECOND_PROMPT = """\
Here is the statement of a programming problem in {language} (ISO 639-1), and a translation into \
English. Would a program that solves one solve the other? Look for a condition, a limit, a unit, \
an order or a negation that is missing, added or changed. Style does not matter.

Reply with a JSON object {{"differences": ["..."]}}, with an empty list where there are none.
"""
"""What a model is asked about a translation."""


class Translation(Record):
    """A model's reply: title and statement in English, with the marks."""

    translation: str


class SecondReading(Record):
    """A model's reply about a translation."""

    differences: list[str]
    """What a program would have to do otherwise; empty where nothing."""


class Masked(NamedTuple):
    """A text whose code, formulae, numbers and names are marks."""

    text: str
    kept: tuple[str, ...]
    """What each mark stands for, by its number."""
    mark: str
    """How marks begin; the text itself has nothing that begins so."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches a mark; its first group is the number."""
        return re.compile(rf"{re.escape(self.mark)}(\d+)\]\]")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a translator is asked for."""

    masked: Masked
    """The title, an empty line, and the statement."""
    language: str
    """ISO 639-1 code."""
    attempt: int
    """0 for the first; a later one follows `faults`."""
    faults: tuple[str, ...] = ()
    """What was wrong with the attempt before."""


class Translator(Protocol):
    """Translates masked texts."""

    attempts: int
    """How often it is asked about a text whose translation has faults."""

    @property
    def name(self) -> str:
        """What a candidate's lineage calls it."""

    def translate(self, asked: Asked) -> str:
        """Return the text in English, with its marks.

        Raises:
            BadReply: there is no translation in what it answered.
        """

    def find_differences(self, original: str, translated: str, language: str) -> Sequence[str]:
        """Return where the meaning differs; empty where nothing does, or it is not asked."""


class ModelTranslator:
    """Asks a model; its replies are cached by what was asked."""

    attempts = _ATTEMPTS

    def __init__(self, endpoint: Endpoint, *, second_reading: bool) -> None:
        self._endpoint = endpoint
        self._second_reading = second_reading

    @property
    def name(self) -> str:
        """The model, with the digest of its prompts."""
        prompts = f"{PROMPT}{SECOND_PROMPT if self._second_reading else ''}"
        digest = hashlib.sha256(prompts.encode()).hexdigest()[:12]
        return f"{self._endpoint.settings.model}, prompt {digest}"

    def translate(self, asked: Asked) -> str:
        """Return the model's translation."""
        prompt = PROMPT.format(language=asked.language, mark=asked.masked.mark)
        if asked.faults:
            faults = "; ".join(asked.faults[:_MOST_SHOWN])
            prompt += f"\nAn earlier translation was refused: {faults}.\n"
        text = f"{prompt}\n{asked.masked.text}"
        return self._endpoint.ask(text, Translation, seed=asked.attempt).translation

    def find_differences(self, original: str, translated: str, language: str) -> Sequence[str]:
        """Return what a second call finds changed, if it is asked for."""
        if not self._second_reading:
            return ()
        prompt = SECOND_PROMPT.format(language=language)
        text = f"{prompt}\nThe statement:\n\n{original}\n\nThe translation:\n\n{translated}\n"
        try:
            return self._endpoint.ask(text, SecondReading).differences
        except BadReply as error:
            return [f"the second reading was no answer: {error}"]


class FunctionTranslator:
    """Calls a function of the user's own: `translate(text, language) -> str`."""

    # It has no part that is random: a second call would give the same.
    attempts = 1

    def __init__(self, extension: Extension, cache: AnswerCache) -> None:
        assert extension.source is not None
        self._extension = extension
        self._source = extension.source
        self._cache = cache

    @property
    def name(self) -> str:
        """The function's reference, with the digest of its file."""
        return f"{self._extension.reference}, {self._source.digest}"

    def translate(self, asked: Asked) -> str:
        """Return what the function returns, or returned for this text before."""
        label = self._extension.label
        key = hash_asked(self._source.digest, label, asked.language, asked.masked.text)
        cached = self._cache.read(key)
        if cached is None:
            cached = self._extension(asked.masked.text, asked.language)
            if not isinstance(cached, str):
                raise self._extension.fault(
                    f"returned {cached!r:.80}; return the text in English, as a str"
                )
            self._cache.write(key, cached)
        return str(cached)

    def find_differences(self, original: str, translated: str, language: str) -> Sequence[str]:
        """Return nothing: a function is not asked twice."""
        return ()


def translate(candidate: Candidate, translator: Translator) -> Candidate | Rejection:
    """Return the candidate with title and statement in English, or its rejection.

    `statement_found` keeps the original. The lineage says who translated it.
    """
    original = candidate.statement.strip()
    if _has_words(candidate.title):
        original = f"{candidate.title.strip()}\n\n{original}"
    masked = mask(original)
    language = candidate.natural_language
    faults: tuple[str, ...] = ()
    for attempt in range(translator.attempts):
        try:
            reply = translator.translate(Asked(masked, language, attempt, faults)).strip()
        except BadReply as error:
            faults = (str(error),)
            continue
        translated = restore(reply, masked)
        faults = find_faults(reply, masked, original=original, language=language)
        if not faults:
            faults = tuple(translator.find_differences(original, translated, language))
        if not faults:
            return _take(candidate, translated, translator.name)
    told = "; ".join(faults[:_MOST_SHOWN])
    return candidate.reject("process", "translation_failed", f"{translator.name}: {told}")


def _take(candidate: Candidate, translated: str, translator: str) -> Candidate:
    """Return the candidate with a translation that holds."""
    title = candidate.title
    statement = translated
    if _has_words(title):
        title, _, statement = translated.partition("\n\n")
    return candidate.change(
        "process",
        STEP,
        f"{candidate.natural_language} to en by {translator}",
        # A title that is marked as a heading is none the less one line of text.
        title=title.strip().lstrip("# "),
        statement=normalise(statement.strip() + "\n"),
        natural_language="en",
    )


def _has_words(title: str) -> bool:
    """Whether there is something to translate in a title; some are a number."""
    return any(character.isalpha() for character in title)


def mask(text: str) -> Masked:
    """Return a text with a mark for each piece that must not change."""
    mark = next(mark for length in count(1) if (mark := "[[" + "P" * length) not in text)
    kept: list[str] = []

    def replace(found: re.Match[str]) -> str:
        kept.append(found[0])
        return f"{mark}{len(kept) - 1}]]"

    return Masked(_KEPT.sub(replace, text), tuple(kept), mark)


def restore(text: str, masked: Masked) -> str:
    """Return a text with every mark replaced by what it stands for; unknown marks stay."""

    def put_back(found: re.Match[str]) -> str:
        number = int(found[1])
        return masked.kept[number] if number < len(masked.kept) else found[0]

    return masked.pattern.sub(put_back, text)


def find_faults(reply: str, masked: Masked, *, original: str, language: str) -> tuple[str, ...]:
    """Return what a translation lost, added or left, in words that help to do better.

    Args:
        reply: the translation, with marks.
        masked: the text that was to be translated.
        original: the same text without marks.
        language: ISO 639-1 code of the original.
    """
    if not reply:
        return ("it is empty",)
    faults = [
        *_find_lost_marks(reply, masked),
        *_find_added_numbers(reply, masked),
        *_find_lost_paragraphs(reply, masked, language),
    ]
    if faults:
        return tuple(faults)
    translated = restore(reply, masked)
    if samples_of(split(translated)) != samples_of(split(original)):
        faults.append("the examples are not the same")
    lost = set(parse_bounds(original)) - set(parse_bounds(translated))
    for bound in sorted(lost):
        faults.append(f"the range of {bound.name}, {bound.low:g} to {bound.high:g}, is lost")
    detected = identify(translated)
    if detected.code != "en":
        faults.append(f"the text is in {detected.code}, not in English")
    return tuple(faults)


def _find_lost_marks(reply: str, masked: Masked) -> list[str]:
    """Return which marks are missing, made up or repeated."""
    before = Counter(masked.pattern.findall(masked.text))
    after = Counter(masked.pattern.findall(reply))
    faults = []
    for number in sorted(before.keys() - after.keys(), key=int):
        shown = " ".join(masked.kept[int(number)].split())[:40]
        faults.append(f"{masked.mark}{number}]] ({shown}) is missing")
    faults += [f"{masked.mark}{name}]] is made up" for name in after.keys() - before.keys()]
    for number, times in after.items():
        if number in before and times > _MOST_COPIES:
            faults.append(f"{masked.mark}{number}]] stands there {times} times")
    return faults


def _find_added_numbers(reply: str, masked: Masked) -> list[str]:
    """Return which numbers stand in a translation beside the marks, and not in the text."""
    before = Counter(_DIGITS.findall(masked.pattern.sub(" ", masked.text)))
    after = Counter(_DIGITS.findall(masked.pattern.sub(" ", reply)))
    return [f"the number {number} is added" for number in sorted(after - before)]


def _find_lost_paragraphs(reply: str, masked: Masked, language: str) -> list[str]:
    """Return which paragraphs are missing, far too short, or still as they were."""
    paragraphs = _cut(masked.text)
    translated = _cut(reply)
    if len(paragraphs) != len(translated):
        return [f"it has {len(translated)} paragraphs, and the text {len(paragraphs)}"]
    faults = []
    for number, (paragraph, english) in enumerate(_match(paragraphs, translated, masked), start=1):
        words = masked.pattern.sub(" ", paragraph)
        english_words = masked.pattern.sub(" ", english)
        foreign = _FOREIGN_SCRIPT.search(english_words)
        if foreign is not None:
            faults.append(f"paragraph {number} has {foreign[0]!r} in it")
        expected = _count_letters(words) * _LEAST_LENGTH
        if expected >= _LONG_PARAGRAPH * _LEAST_LENGTH and _count_letters(english_words) < expected:
            faults.append(f"paragraph {number} is far shorter than it was")
        elif _is_still(language, english_words):
            faults.append(f"paragraph {number} is still in {language}")
    return faults


def _match(
    paragraphs: Sequence[str],
    translated: Sequence[str],
    masked: Masked,
) -> list[tuple[str, str]]:
    """Return each paragraph with its translation, which has the same marks, wherever it stands.

    Paragraphs without such a one are matched in order.
    """
    places: dict[frozenset[str], int] = {}
    for place, english in enumerate(translated):
        marks = frozenset(masked.pattern.findall(english))
        if marks:
            places.setdefault(marks, place)
    matched: dict[int, int] = {}
    for number, paragraph in enumerate(paragraphs):
        found = places.pop(frozenset(masked.pattern.findall(paragraph)), None)
        if found is not None:
            matched[number] = found
    taken = set(matched.values())
    others = (place for place in range(len(translated)) if place not in taken)
    pairs = []
    for number, paragraph in enumerate(paragraphs):
        place = matched[number] if number in matched else next(others)
        pairs.append((paragraph, translated[place]))
    return pairs


def _cut(text: str) -> list[str]:
    """Return the paragraphs of a text."""
    return [piece for piece in re.split(r"\n[ \t]*\n", text) if piece.strip()]


def _count_letters(words: str) -> float:
    """Return the letters of a paragraph; a sign of Chinese counts as the letters it stands for."""
    num_signs = len(_SIGNS.findall(words))
    num_letters = sum(character.isalpha() for character in words)
    return num_letters - num_signs + _LETTERS_A_SIGN * num_signs


def _is_still(language: str, words: str) -> bool:
    """Whether a paragraph that should be in English is in its first language."""
    if _count_letters(words) < _LONG_PARAGRAPH:
        return False
    detected = identify(words)
    return detected.code == language and detected.probability >= _SURE

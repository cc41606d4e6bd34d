"""The process stage: one candidate in, a clean one in English out, or a rejection. No I/O.

`identify` tells which natural language a statement is written in.

`normalise_tests` gives tests one form: UTF-8 text, `\n`, a newline at the end; JSON arguments; groups that match.

`restore_samples` puts a package's samples into its statement, as the judge's page shows them. `find_shown` says which
tests a statement shows: their answers could be written down in place of a solution.

`find_flags` looks for what is missing to solve or to judge a problem, and flags it.
"""

import json
import re
from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

from microcoder.data.clean.cleaning import LOST_IN, clean, drop_embedded, prose, restore_powers
from microcoder.data.clean.sections import (
    Example,
    Sections,
    find_starter_code,
    normalise,
    render,
    split,
)
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.statements import find_checker
from microcoder.data.formats.values import read_json, write_json
from microcoder.judge.core.digits import dump_json
from microcoder.judge.core.types import TestCase

RESTORE_POWERS = "restore_powers/1"
"""Name of the step that restores lost powers, in a candidate's lineage."""
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
    candidate = tests.change(
        "process", "find_signature/1", "from an accepted solution", starter_code=starter
    )
    candidate = _identify(_restore_powers(restore_samples(candidate)))
    if candidate.natural_language != "en":
        return candidate.reject("process", "not_english", candidate.natural_language)
    if candidate.fn_name and not candidate.starter_code:
        return candidate.reject("process", "no_signature", candidate.fn_name)
    candidate = candidate.change(
        "process", "find_checker/1", checker=find_checker(candidate) or candidate.checker
    )
    return candidate.change("process", "find_flags/1", flags=find_flags(candidate))


def _clean(candidate: Candidate) -> Candidate:
    cleaned = clean(candidate.statement_found)
    title = " ".join(clean(candidate.title).text.split())
    laid_out = normalise(cleaned.text)
    if laid_out != candidate.statement:
        candidate = candidate.change(
            "process", "clean/2", ", ".join(cleaned.steps), statement=cleaned.text
        )
    return candidate.change("process", "arrange_sections/1", statement=laid_out, title=title)


def _restore_powers(candidate: Candidate) -> Candidate:
    """Restore lost powers in all parts of a statement but its examples, whose numbers are data."""
    sections = split(candidate.statement)
    names = ("statement", "input", "output", "constraints", "note")
    texts = [*(getattr(sections, name) for name in names), *(text for _, text in sections.other)]
    texts = [text.replace(_BETWEEN, "") for text in texts]
    found = restore_powers(_BETWEEN.join(texts), has_lost_all=candidate.dataset in LOST_IN)
    if not found.why:
        return candidate
    mended = found.text.split(_BETWEEN)
    others = tuple(
        (title, text) for (title, _), text in zip(sections.other, mended[len(names) :], strict=True)
    )
    changed = Sections(
        **dict(zip(names, mended, strict=False)), examples=sections.examples, other=others
    )
    return candidate.change(
        "process", RESTORE_POWERS, ", ".join(found.why), statement=render(changed)
    )


def _identify(candidate: Candidate) -> Candidate:
    found = identify(candidate.statement)
    detail = f"probability {found.probability:.2f}"
    if candidate.natural_language and candidate.natural_language != found.code:
        detail += f"; the source says {candidate.natural_language}"
        if found.probability < 0.9:
            return candidate
    return candidate.change("process", "identify_language/1", detail, natural_language=found.code)


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
"""Languages that a statement can be identified as (our choice): the fewer, the surer the identification."""
_CODE_LINE = re.compile(
    r"^\s*(?:>>>|\.\.\.|(?:def|class|import|from|return|assert)\b).*$", re.MULTILINE
)
_LEAST_LETTERS = 12
"""Statements with fewer letters than this are taken for English: too little to say (our choice)."""


class DetectedLanguage(NamedTuple):
    """The language that a text was identified as, and with which probability."""

    code: str
    """ISO 639-1 code, one of `LANGUAGES`."""
    probability: float
    """0 to 1, among `LANGUAGES`; 0 for a text with too few letters to tell, which counts as English."""


def identify(text: str) -> DetectedLanguage:
    """Return the language of a statement; code (examples too, if fenced), formulae and web addresses are ignored."""
    # Programs are in English in every language.
    words = _CODE_LINE.sub(" ", prose(text))
    letters = [char for char in words if char.isalpha()]
    if len(letters) < _LEAST_LETTERS and all(map(str.isascii, letters)):
        return DetectedLanguage("en", 0.0)
    code, probability = _identifier().classify(words)
    return DetectedLanguage(str(code), float(probability))


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
    identifier.set_languages(list(LANGUAGES))
    return identifier


def normalise_tests(candidate: Candidate) -> Candidate | Rejection:
    """Return a candidate with its tests in one form, each once; a rejection if all are broken, or some contradict.

    Left out are repeated tests, and those of a function whose arguments or value are not JSON, which are broken.
    """
    kept: list[tuple[TestCase, str]] = []
    outputs: dict[str, set[str]] = {}
    counts = Counter[str]()
    groups = candidate.groups or ("",) * len(candidate.tests)
    for test, name in zip(candidate.tests, groups, strict=True):
        given, printed = _text(test.input), _text(test.output)
        if candidate.fn_name is not None:
            try:
                given, printed = _json_lines(given), _json_lines(printed)
            except ValueError:
                counts["broken"] += 1
                continue
        else:
            # An empty last line may be one that a program reads: a list of no numbers.
            given, printed = (
                given if given.endswith("\n") or not given else f"{given}\n",
                _lines(printed),
            )
        known = outputs.setdefault(_lines(given), set())
        if any(
            [*map(str.rstrip, printed.split("\n"))] == [*map(str.rstrip, one.split("\n"))]
            for one in known
        ):
            counts["repeated"] += 1
            continue
        counts["conflicting"] += bool(known)
        known.add(printed)
        kept.append((TestCase(input=given, output=printed), name.strip().strip("/")))
    detail = ", ".join(
        f"{counts[what]} {what}" for what in ("repeated", "broken", "conflicting") if counts[what]
    )
    if candidate.tests and not kept:
        return candidate.reject("process", "broken_tests", detail)
    if counts["conflicting"] and candidate.checker.type != "program":
        return candidate.reject("process", "conflicting_tests", detail)
    names = tuple(name for _, name in kept)
    found = {"tests": tuple(test for test, _ in kept), "groups": names if any(names) else ()}
    flags = (
        tuple(sorted({*candidate.flags, "tests_dropped"})) if counts["broken"] else candidate.flags
    )
    return candidate.change("process", "normalise_tests/2", detail, **found, flags=flags)


def _text(text: str) -> str:
    # A test may have a hundred megabytes: what is fine already is not copied.
    if not text.isascii():
        text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    return text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "")


def _lines(text: str) -> str:
    """Return a text with one newline at its end (blank: empty); other spaces are left to the comparison."""
    if not text or text.isspace():
        return ""
    return text if text.endswith("\n") and not text.endswith("\n\n") else text.rstrip("\n") + "\n"


def _json_lines(text: str) -> str:
    """Return JSON values, one a line, letters unescaped unless one is a lone surrogate; ValueError if not JSON."""
    try:
        values = [read_json(line) for line in text.split("\n") if line.strip()]
    except json.JSONDecodeError:
        values = [read_json(text)]  # One value over several lines.
    try:
        written = "\n".join(dump_json(value, ensure_ascii=False) for value in values)
        written.encode("utf-8")
    except (ValueError, RecursionError):
        return "\n".join(map(write_json, values))
    return written


_SAMPLE_GROUPS = ("sample", "example", "public")
_LEAST_VALUES = 4
"""Fewest values of an input that count as shown if they stand side by side in the statement."""
_MOST_SHOWN = 2000
"""Characters of an input; a longer one counts as not shown unless it is among the samples."""


_SAMPLE_CHARACTERS = 4_000
"""Most characters, input and output together, of a package's sample that is put into the statement; for longer ones
the flag `samples_not_shown` is set (our choice)."""


def restore_samples(candidate: Candidate) -> Candidate:
    """Put the package's samples, unless too long, into the statement as its first examples; explanations are kept."""
    samples = [
        Example(test.input.strip("\n"), test.output.strip("\n"))
        for test, group in zip(candidate.tests, candidate.groups, strict=False)
        if is_sample(group)
    ]
    if candidate.fn_name or not samples:
        return candidate
    fitting = [one for one in samples if len(one.input) + len(one.output) <= _SAMPLE_CHARACTERS]
    sections, statement, flags = split(candidate.statement), candidate.statement, candidate.flags
    known = {_values(one): one for one in sections.examples}
    num_added = sum(_values(one) not in known for one in fitting)
    detail = f"{num_added} of the package's samples put in"
    if num_added:
        # In place of what the statement shows of them; its other examples stay, behind them.
        merged = [
            replace(known.pop(_values(one), one), input=one.input, output=one.output)
            for one in fitting
        ]
        statement = render(replace(sections, examples=(*merged, *known.values())))
    if num_left_out := len(samples) - len(fitting):
        detail += f", {num_left_out} too long"
        flags = tuple(sorted({*flags, "samples_not_shown"}))
    return candidate.change(
        "process", "restore_samples/1", detail, statement=statement, flags=flags
    )


def _values(example: Example) -> tuple[str, str]:
    return values_of(example.input), values_of(example.output)


def is_sample(group: str) -> bool:
    """Whether tests of a group are shown to solvers, by its name: `sample`, `example`, `public`."""
    return group.partition("/")[0].lower().startswith(_SAMPLE_GROUPS)


def find_shown(candidate: Candidate) -> tuple[bool, ...]:
    """Return for each test whether the statement shows its input.

    That is: a package keeps it among the samples, an example of the statement has its values, or its values (four or
    more) stand in the statement one after the other.
    """
    statement = candidate.statement
    samples = {given for given, _ in samples_of(split(statement))}
    everything = f" {values_of(statement)} "
    groups = candidate.groups or ("",) * len(candidate.tests)

    def is_shown(given: str, group: str) -> bool:
        if is_sample(group):
            return True
        if len(given) > _MOST_SHOWN:
            return False
        values = values_of(given)
        return values in samples or (
            values.count(" ") >= _LEAST_VALUES - 1 and f" {values} " in everything
        )

    return tuple(
        is_shown(test.input, group) for test, group in zip(candidate.tests, groups, strict=True)
    )


def count_hidden(candidate: Candidate) -> int:
    """Return how many tests the statement does not show."""
    return len(candidate.tests) - sum(find_shown(candidate))


_IMAGE = re.compile(
    r"!\[[^\]\n]{0,500}\]\([^)\n]|<image>|\\includegraphics|\[image\]|<img\b", re.IGNORECASE
)
_INTERACTIVE = re.compile(
    r"\bthis is an? (?:interactive|reactive) (?:problem|task)|\binteractive (?:problem|task)s?\b|"
    r"\bflush (?:the )?(?:output|stdout)"
    r"|\bfflush\b|\bsys\.stdout\.flush|\bcout\.flush|\byour program (?:will|should) interact|\bthe interactor\b"
    r"|\byou (?:can|may) (?:ask|make) (?:at most|up to|no more than) [\w$^{}\\ ]{1,20} quer(?:y|ies) to "
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
    r"any)[^.\n]{0,30}(?:in any order|any)",
    re.IGNORECASE,
)
_MOST_OF_A_SAMPLE = 50_000
"""Characters of a test; a longer one is not compared with the statement's examples."""


def samples_of(sections: Sections) -> tuple[tuple[str, str], ...]:
    """Return the complete examples as pairs of input and output, by `values_of`."""
    return tuple(
        (values_of(one.input), values_of(one.output))
        for one in sections.examples
        if one.input and one.output
    )


_BRACKETS = r"(?<=[\"'`])[()\[\]{}]+(?=[\"'`])|(?<!\S)(?=\S*[()])[()\[\]{}]{2,}(?!\S)"
"""Matches brackets that are a value, not punctuation: in quotes, or a word of its own with round ones."""


def values_of(text: str) -> str:
    """Return the values of an example or a test, in lower case between single spaces, without names and brackets;
    where it has nothing but brackets, these."""
    text = re.sub(r"\b[^\W\d]\w*\s*=(?!=)\s*", " ", text)
    values = re.findall(rf"{_BRACKETS}|[^\s,\[\]{{}}()\"'`]+", text)
    return " ".join(values or re.sub(r"[\s,\"'`]", "", text).split()).lower()


def find_flags(candidate: Candidate) -> tuple[str, ...]:
    """Return the candidate's flags and those found here, sorted.

    `has_image` (a picture, kept as a reference), `interactive`, `many_answers` (several answers are right and nothing
    but a comparison decides), `samples_missing` (an example of the statement is not among the tests), `samples_differ`
    (a test has an example's input and another output).
    """
    text = candidate.statement
    sections = split(text)
    told = "\n".join(
        [
            sections.statement,
            sections.input,
            sections.output,
            sections.note,
            *map("\n".join, sections.other),
        ]
    )
    is_compared = candidate.checker.type in ("default", "exact", "tokens", "float")
    found = {
        "has_image": _IMAGE.search(text),
        "interactive": _INTERACTIVE.search(told),
        "many_answers": is_compared and _MANY_ANSWERS.search(told),
    }
    flags = {*candidate.flags, *(flag for flag, is_seen in found.items() if is_seen)}
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

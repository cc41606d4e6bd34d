"""Is it a programming problem, told well enough to solve? Readable rules, each with its reason."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from pydantic import Field

from microcoder.config import Config
from microcoder.dataset.filter.fingerprints import words
from microcoder.dataset.process.spans import prose
from microcoder.dataset.process.tex import looks_like_tex
from microcoder.formats.candidates import Candidate

Finding = tuple[str, str] | None
"""A reason code and what was seen."""


class QualitySettings(Config):
    """What a statement must be (our choices)."""

    min_words: int = Field(default=12, ge=0)
    """Words and numbers in the statement; a Chinese character counts as one."""
    max_characters: int = Field(default=20_000, ge=1)
    """Longer ones are pages, not problems, and leave no room for an answer."""
    max_repeated_lines: float = Field(default=0.5, ge=0, le=1)
    """Share of the lines of 30 letters or more that were there before."""
    min_letters: float = Field(default=0.2, ge=0, le=1)
    """Share of letters among the characters that are no space, code and formulae left out."""
    blocking_flags: tuple[str, ...] = (
        "needs_image",
        "interactive",
        "file_io",
        "many_answers",
        "gives_points",
        "needs_files",
        "only_samples",
    )
    """Flags of the source or of the process stage that turn a row away."""
    needs_tests: bool = True
    """Turn away what has no test; not asked where the generate stage comes later."""
    min_relevance: float = Field(default=0.5, ge=0, le=1)
    """With a model as judge: relevance and quality from which a row passes."""


_EMPTY = re.compile(
    r"(?:problem )?(?:statement|description)s? (?:is )?(?:un|not )available|\bto be (?:added|announced)\b|lorem ipsum|"
    r"^\s*(?:tbd|n/?a|none|null|todo|coming soon)\W*$|\[deleted\]|page not found|404 not found|access "
    r"denied|subscribe to unlock",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"(?:statement|description|problem) (?:(?:can be found|is(?: available| given)?)(?: at| in| on| here)?|here|at)"
    r"(?:[:\s<>()\[\]]|\bhere\b)*(?:https?://|the (?:attached )?pdf)"
    r"|see (?:the )?(?:attached )?pdf\b|\bin the pdf (?:below|above|attached)",
    re.IGNORECASE,
)
_NOT_A_PROGRAM = re.compile(
    r"\bSQL\s*(?:schema|query|架构)|\bwrite (?:a|an) (?:SQL|MySQL|bash|shell|regex) |\bprimary "
    r"key (?:for|of|column)|\b(?:Table|表)[:：]\s*`?[A-Z]\w+`?\s*$"
    r"|\+-{3,}\+-{3,}[^\n]*\n[ \t>|]*Column Name\b"
    r"|\bwrite a bash script|\bpandas DataFrame\b|\bDataFrame `?\w+`?\s*$|编写(?:一个|"
    r"解决方案)?.{0,8}SQL"
    r"|\bmultiple[- ]choice question|\bwhich of the following (?:is|are)\b",
    re.IGNORECASE | re.MULTILINE,
)
_CUT_OFF = re.compile(r"(?:\b(?:the|a|an|of|to|and|or|is|are|with|for|from|in|that)|[,(\[])\s*$", re.IGNORECASE)
_MARKUP = re.compile(r"</?(?:div|span|p|td|tr|table|br|li|ul|script)\b[^<>]*>", re.IGNORECASE)


def no_statement(candidate: Candidate, settings: QualitySettings) -> Finding:
    """Nothing is asked, or the page said that there was nothing."""
    if not candidate.statement.strip():
        return "no_statement", "empty"
    found = _EMPTY.search(candidate.statement) if len(candidate.statement) < 400 else None
    return ("no_statement", found[0][:60]) if found else None


def too_short(candidate: Candidate, settings: QualitySettings) -> Finding:
    """Too few words to say a problem."""
    num = len(words(candidate.statement))
    return ("too_short", f"{num} words") if num < settings.min_words else None


def too_long(candidate: Candidate, settings: QualitySettings) -> Finding:
    """A page rather than a problem."""
    num = len(candidate.statement)
    return ("too_long", f"{num} characters") if num > settings.max_characters else None


def not_text(candidate: Candidate, settings: QualitySettings) -> Finding:
    """Hardly a letter in the prose."""
    said = [char for char in prose(candidate.statement) if not char.isspace()]
    share = sum(char.isalpha() for char in said) / max(1, len(said))
    return ("not_text", f"{share:.2f} letters") if len(said) >= 40 and share < settings.min_letters else None


def repetitive(candidate: Candidate, settings: QualitySettings) -> Finding:
    """The same long lines over and over."""
    lines = [line.strip() for line in candidate.statement.split("\n") if sum(map(str.isalpha, line)) >= 30]
    repeated = sum(count - 1 for count in Counter(lines).values())
    share = repeated / max(1, len(lines))
    return (
        ("repetitive", f"{share:.2f} of the lines") if len(lines) >= 4 and share > settings.max_repeated_lines else None
    )


def markup_left(candidate: Candidate, settings: QualitySettings) -> Finding:
    """HTML or TeX that cleaning could not read."""
    if looks_like_tex(candidate.statement):
        return "markup_left", "a TeX document"
    found = _MARKUP.findall(candidate.statement)
    return ("markup_left", f"{len(found)} tags, such as {found[0][:30]}") if len(found) >= 5 else None


def told_elsewhere(candidate: Candidate, settings: QualitySettings) -> Finding:
    """The statement is behind a link or in a PDF."""
    found = _ELSEWHERE.search(candidate.statement)
    return ("told_elsewhere", found[0][:60]) if found and len(words(candidate.statement)) < 80 else None


def cut_off(candidate: Candidate, settings: QualitySettings) -> Finding:
    """The text ends in the middle of a sentence."""
    found = _CUT_OFF.search(candidate.statement.rstrip())
    return ("cut_off", candidate.statement.rstrip()[-40:]) if found and not candidate.starter_code else None


def not_a_program(candidate: Candidate, settings: QualitySettings) -> Finding:
    """A database, a shell or a quiz is asked for."""
    found = _NOT_A_PROGRAM.search(candidate.statement)
    return ("not_a_program", found[0].strip()[:60]) if found else None


def flagged(candidate: Candidate, settings: QualitySettings) -> Finding:
    """Something was found that stands in the way."""
    found = sorted(set(candidate.flags) & set(settings.blocking_flags))
    return (found[0], ", ".join(found)) if found else None


def no_tests(candidate: Candidate, settings: QualitySettings) -> Finding:
    """Nothing to judge an answer by."""
    return ("no_tests", "") if settings.needs_tests and not candidate.tests else None


RULES: tuple[Callable[[Candidate, QualitySettings], Finding], ...] = (
    no_statement, told_elsewhere, too_short, too_long, not_text, repetitive, markup_left, not_a_program, cut_off,
    flagged, no_tests,
)  # fmt: skip


def check_quality(candidate: Candidate, settings: QualitySettings | None = None) -> Finding:
    """Return the first rule's finding, or None where the row passes all."""
    settings = settings or QualitySettings()
    return next((found for rule in RULES if (found := rule(candidate, settings)) is not None), None)

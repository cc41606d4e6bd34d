"""Looks for what is missing to solve or to judge a problem, and flags it."""

import re

from microcoder.data.clean.many_answers import says_many_answers, shows_another_answer
from microcoder.data.clean.orders import FLAG, says_any_order
from microcoder.data.clean.pictures import IMAGE, needs_picture
from microcoder.data.clean.samples import samples_of, values_of
from microcoder.data.clean.sections import Sections, split
from microcoder.data.clean.unstated import FLAG as UNSTATED
from microcoder.data.clean.unstated import has_unstated_answer
from microcoder.data.formats.candidates import Candidate

_INTERACTIVE = re.compile(
    r"\bthis is an? (?:interactive|reactive) (?:problem|task)|\binteractive (?:problem|task)s?\b|"
    r"\bflush (?:the )?(?:output|stdout)"
    r"|\bfflush\b|\bsys\.stdout\.flush|\bcout\.flush|\byour program (?:will|should) interact"
    r"|\bthe interactor\b"
    r"|\byou (?:can|may) (?:ask|make) (?:at most|up to|no more than) "
    r"[\w$^{}\\ ]{1,20} quer(?:y|ies) to the (?:judge|jury)",
    re.IGNORECASE,
)
"""Words of a problem whose program talks with a judge."""
_COMPARISONS = ("default", "exact", "tokens", "float")
"""Types of checkers that accept one answer only."""
_MOST_OF_A_SAMPLE = 50_000
"""Characters of a test; a longer one is not compared with the statement's examples."""


def find_flags(candidate: Candidate) -> tuple[str, ...]:
    """Return the candidate's flags and those found here, sorted.

    `has_image` (a picture, kept as a reference), `needs_image` (the text leaves something to a
    picture), `interactive`, `many_answers` (several answers are
    right and nothing but a comparison decides), `unstated_output` (the tests expect what the
    statement never names), `samples_missing` (an example of the statement is
    not among the tests), `samples_differ` (a test has an example's input and another output). An
    interactor decides about all but the pictures.
    """
    sections = split(candidate.statement)
    words = _words_of(sections)
    flags = set(candidate.flags)
    if IMAGE.search(candidate.statement):
        flags.add("has_image")
    if needs_picture(sections):
        flags.add("needs_image")
    if candidate.interactor is not None:
        return tuple(sorted(flags))
    if _INTERACTIVE.search(words):
        flags.add("interactive")
    only_compares = candidate.checker.type in _COMPARISONS or FLAG in flags
    if only_compares and _has_many_answers(candidate, words):
        flags.add("many_answers")
    if candidate.checker.type in _COMPARISONS and has_unstated_answer(candidate):
        flags.add(UNSTATED)
    flags |= _compare_samples(candidate, sections)
    return tuple(sorted(flags))


def _has_many_answers(candidate: Candidate, words: str) -> bool:
    """Whether a statement speaks of several right answers."""
    if says_many_answers(words):
        return True
    for example in split(candidate.statement).examples:
        if shows_another_answer(example.explanation):
            return True
    # Those that have a checker for that were given it (`find_order`, `find_printed_order`).
    has_no_order = candidate.fn_name is None and FLAG not in candidate.flags
    return has_no_order and says_any_order(words)


def _words_of(sections: Sections) -> str:
    """Return a statement without constraints and examples: words there say nothing about the
    task."""
    texts = [sections.statement, sections.input, sections.output, sections.note]
    for title, text in sections.other:
        texts += [title, text]
    return "\n".join(texts)


def _compare_samples(candidate: Candidate, sections: Sections) -> set[str]:
    """Return flags for examples of the statement that are missing among the tests, or differ
    there."""
    # Without tests, or in tests that are programs, no example is missing.
    if not candidate.tests or candidate.assertions is not None:
        return set()
    outputs: dict[str, set[str]] = {}
    for test in candidate.tests:
        if len(test.input) + len(test.output) <= _MOST_OF_A_SAMPLE:
            known_outputs = outputs.setdefault(values_of(test.input), set())
            known_outputs.add(values_of(test.output))
    flags = set()
    for given, printed in samples_of(sections):
        if given not in outputs:
            flags.add("samples_missing")
        elif printed not in outputs[given]:
            flags.add("samples_differ")
    return flags

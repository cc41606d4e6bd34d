"""Looks for what is missing to solve or to judge a problem, and flags it."""

import re

from microcoder.data.clean.samples import samples_of, values_of
from microcoder.data.clean.sections import Sections, split
from microcoder.data.formats.candidates import Candidate

_IMAGE = re.compile(
    r"!\[[^\]\n]{0,500}\]\([^)\n]|<image>|\\includegraphics|\[image\]|<img\b", re.IGNORECASE
)
"""A picture, in Markdown, HTML or TeX."""
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
_MANY_ANSWERS = re.compile(
    r"\b(?:if|when|should|in case) there (?:are|is|exist|be) "
    r"(?:multiple|several|many|more than one)\b"
    r"(?![^.\n,]{0,30}\b(?:person|people|player|team|friend)s?\b)[^.\n]{0,60}"
    r"(?<!choose )(?<!pick )(?<!select )\b(?:any|either|one of them|whichever)\b"
    r"|\b(?:print|output|return|find|report|write) any (?:of (?:them|the)|one|valid|such|"
    r"solution|answer|possible|correct)"
    r"|\bany (?:valid |correct |possible |such |of the )?(?:answers?|solutions?|outputs?|orders?|"
    r"sequences?)\b[^.\n]{0,40}(?:accepted|allowed|fine|valid|correct)"
    r"|\b(?:multiple|several) (?:valid |correct |possible )?(?:answers|solutions)\b"
    r"[^.\n]{0,60}(?:any|accepted)"
    r"|\byou (?:may|can) (?:return|print|output) (?:the )?(?:answers?|them|it|results?|"
    r"any)[^.\n]{0,30}(?:in any order|any)",
    re.IGNORECASE,
)
"""Words of a problem with several right answers."""
_COMPARISONS = ("default", "exact", "tokens", "float")
"""Types of checkers that accept one answer only."""
_MOST_OF_A_SAMPLE = 50_000
"""Characters of a test; a longer one is not compared with the statement's examples."""


def find_flags(candidate: Candidate) -> tuple[str, ...]:
    """Return the candidate's flags and those found here, sorted.

    `has_image` (a picture, kept as a reference), `interactive`, `many_answers` (several answers are
    right and nothing but a comparison decides), `samples_missing` (an example of the statement is
    not among the tests), `samples_differ` (a test has an example's input and another output).
    """
    sections = split(candidate.statement)
    words = _words_of(sections)
    flags = set(candidate.flags)
    if _IMAGE.search(candidate.statement):
        flags.add("has_image")
    if _INTERACTIVE.search(words):
        flags.add("interactive")
    if candidate.checker.type in _COMPARISONS and _MANY_ANSWERS.search(words):
        flags.add("many_answers")
    flags |= _compare_samples(candidate, sections)
    return tuple(sorted(flags))


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
    # Without tests, no example is missing among them.
    if not candidate.tests:
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

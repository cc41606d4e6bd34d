"""Why a row was turned away after collect, verify's own reasons left out: one word a reason, the same everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from microcoder.data.formats.candidates import Candidate, Rejection, Stage
from microcoder.judge.core.errors import MicroCoderError

Made = TypeVar("Made")

_MAX_DETAIL = 300

REASONS: dict[str, str] = {
    "no_statement": "nothing is asked, or the page said that there was nothing",
    "not_english": "the statement is in another language and no endpoint translates",
    "translation_failed": "no reply of the model kept placeholders, numbers and examples",
    "broken_tests": "no test could be read",
    "conflicting_tests": "more tests than allowed give one input two outputs, and nothing but a comparison decides",
    "no_signature": "a function is asked for whose parameters are nowhere said",
    "told_elsewhere": "the statement is behind a link or in a PDF",
    "too_short": "too few words to say a problem",
    "too_long": "a page rather than a problem",
    "not_text": "hardly a letter in the prose",
    "repetitive": "the same long lines over and over",
    "markup_left": "HTML or TeX that cleaning could not read",
    "not_a_program": "a database, a shell or a quiz is asked for",
    "cut_off": "the text ends in the middle of a sentence",
    "needs_image": "it cannot be understood without its picture",
    "interactive": "the program talks with a judge",
    "file_io": "the program reads or writes files",
    "many_answers": "several answers are right and no checker decides",
    "gives_points": "its output validator gives points, and nothing says from how many on an answer is right",
    "needs_files": "a program is built together with files of its package, such as a grader that calls it",
    "only_samples": "the package has no tests but the examples that its statement shows",
    "no_tests": "nothing to judge an answer by, and nothing could be made",
    "all_tests_shown": "its statement shows every test that is left, so that writing them down passes",
    "not_relevant": "a model found it unclear, or no programming problem",
    "licence_refused": "its licence is not on the list",
    "licence_unknown": "the source names no licence",
    "no_date": "a window is set and the row has no date",
    "too_old": "published before the window",
    "too_new": "published after the window",
    "before_cutoff": "published before the model's cutoff",
    "contaminated": "it is a problem of a benchmark",
    "duplicate_of": "another record of the same problem is kept",
    "no_difficulty": "problems are selected by difficulty and nothing says this one's",
    "too_easy": "more easy problems than wanted (`paper`); the hardest of them stay",
    "not_selected": "more problems in its band than wanted (`target`)",
    "row_fault": "our own code failed on it: a fault of ours, please report it",
}
"""Reason code to its meaning; docs/dataset-reasons.md shows the same table."""


def reject(candidate: Candidate, stage: Stage, reason: str, detail: str = "") -> Rejection:
    """Return the rejection of a candidate, which it keeps whole."""
    if reason not in REASONS:
        raise KeyError(f"{reason!r} is no reason code; add it to REASONS")
    return candidate.reject(stage, reason, detail)


def process_row(candidate: Candidate, stage: Stage, work: Callable[[Candidate], Made]) -> Made | Rejection:
    """Return what some work makes of a candidate, or its rejection where our own code fails on it: one row in a million
    must not end a run.
    """
    try:
        return work(candidate)
    except MicroCoderError:
        raise
    except Exception as error:
        # Where recursion or memory ended differs from run to run; the rows must not.
        said = "" if isinstance(error, RecursionError | MemoryError) else f": {error}"
        text = f"{type(error).__name__}{said}".encode("utf-8", "replace").decode("utf-8")
        return reject(candidate, stage, "row_fault", " ".join(text.split())[:_MAX_DETAIL])

"""The process stage: takes a candidate; returns a clean one in English, or a rejection. No I/O."""

from microcoder.data.clean.cleaning import clean
from microcoder.data.clean.flags import find_flags
from microcoder.data.clean.languages import identify
from microcoder.data.clean.normal_tests import normalise_tests
from microcoder.data.clean.orders import FLAG, find_printed_order
from microcoder.data.clean.pages import drop_embedded, has_tags_as_data
from microcoder.data.clean.powers import LOST_IN, restore_powers
from microcoder.data.clean.promises import keep_promises
from microcoder.data.clean.samples import restore_samples
from microcoder.data.clean.sections import (
    Sections,
    find_starter_code,
    names_another_function,
    normalise,
    render,
    split,
)
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.formats.statements import find_checker

RESTORE_POWERS = "restore_powers/1"
"""Name of the step that restores lost powers, in a candidate's lineage."""
_BETWEEN = "\ue010"
"""Stands between the parts of a statement; a character that is in no text."""
_MOST_CHARACTERS = 100_000
"""A longer statement, as found, is a web page rather than a problem.

It is rejected before it is cleaned.
"""
_SURE = 0.9
"""Probability of a language from which on it counts more than what the source says."""


def process(candidate: Candidate, *, keeps_foreign: bool = False) -> Candidate | Rejection:
    """Return the candidate cleaned, laid out and flagged, or its rejection.

    `statement_found` is never changed.

    Args:
        keeps_foreign: a statement that is not in English is returned as far as it can be, to be
            translated and given to `finish`.
    """
    arranged = arrange(candidate)
    if isinstance(arranged, Rejection):
        return arranged
    if arranged.natural_language == "en":
        return finish(arranged)
    if keeps_foreign:
        return arranged
    return arranged.reject("process", "not_english", arranged.natural_language)


def arrange(candidate: Candidate) -> Candidate | Rejection:
    """Return the candidate cleaned and laid out, in whichever language it is, or its rejection."""
    # Pictures do not count: a problem with a drawing in it is no web page.
    length = len(drop_embedded(candidate.statement_found))
    if length > _MOST_CHARACTERS:
        return candidate.reject("process", "too_long", f"{length} characters as found")
    candidate = _clean(candidate)
    if not candidate.statement.strip():
        return candidate.reject("process", "no_statement", "empty after cleaning")
    normal = normalise_tests(candidate)
    if isinstance(normal, Rejection):
        return normal
    starter_code = find_starter_code(normal)
    candidate = normal.change(
        "process", "find_signature/1", "from an accepted solution", starter_code=starter_code
    )
    # What an interactive problem shows are talks, and its tests are read by the interactor.
    if candidate.interactor is not None:
        return _identify(_restore_powers(candidate))
    candidate = restore_samples(candidate)
    candidate = _restore_powers(candidate)
    candidate = keep_promises(candidate)
    return _identify(candidate)


def finish(candidate: Candidate) -> Candidate | Rejection:
    """Return a candidate in English with its checker and its flags, or its rejection."""
    if candidate.fn_name and not candidate.starter_code:
        return candidate.reject("process", "no_signature", candidate.fn_name)
    if names_another_function(candidate):
        return candidate.reject("process", "other_function", f"tests call {candidate.fn_name}")
    # Before the flags, since `many_answers` depends on the checker.
    found = None if candidate.interactor else find_checker(candidate)
    checker = found or candidate.checker
    flags = candidate.flags
    # A stated tolerance is no order, and must not be lost to one.
    is_open = found is None and candidate.interactor is None
    order = find_printed_order(candidate) if is_open else None
    if order is not None:
        checker = order
        flags = (*flags, FLAG)
    candidate = candidate.change("process", "find_checker/1", checker=checker, flags=flags)
    return candidate.change("process", "find_flags/1", flags=find_flags(candidate))


def _clean(candidate: Candidate) -> Candidate:
    """Clean statement and title, and lay the statement out.

    A reader may have handed over a statement beside the one that it found: a translation.
    """
    text = candidate.statement or candidate.statement_found
    cleaned = clean(text, keeps_tags=has_tags_as_data(text, candidate.tests))
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
    texts = [
        sections.statement,
        sections.input,
        sections.output,
        sections.constraints,
        sections.note,
    ]
    num_named = len(texts)
    texts += [text for _, text in sections.other]
    # All at once: evidence in one part counts for the others.
    joined = _BETWEEN.join(text.replace(_BETWEEN, "") for text in texts)
    restored = restore_powers(joined, has_lost_all=candidate.dataset in LOST_IN)
    if not restored.why:
        return candidate
    mended = restored.text.split(_BETWEEN)
    statement, given, output, constraints, note = mended[:num_named]
    titles = [title for title, _ in sections.other]
    changed = Sections(
        statement=statement,
        input=given,
        output=output,
        constraints=constraints,
        note=note,
        examples=sections.examples,
        other=tuple(zip(titles, mended[num_named:], strict=True)),
    )
    return candidate.change(
        "process", RESTORE_POWERS, ", ".join(restored.why), statement=render(changed)
    )


def _identify(candidate: Candidate) -> Candidate:
    """Set the language of the statement, unless the source names another and the guess is not
    sure."""
    detected = identify(candidate.statement)
    detail = f"probability {detected.probability:.2f}"
    if candidate.natural_language and candidate.natural_language != detected.code:
        detail += f"; the source says {candidate.natural_language}"
        if detected.probability < _SURE:
            return candidate
    return candidate.change(
        "process", "identify_language/1", detail, natural_language=detected.code
    )

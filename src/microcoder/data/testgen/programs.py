"""The submissions of a problem that run here, and what the judge says of its references."""

from collections.abc import Collection, Sequence

from microcoder.data.formats.candidates import Candidate
from microcoder.data.testgen.answers import Answering
from microcoder.data.verify.plans import language_of
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Program

_SLOW = ("time_limit", "memory_limit", "partial")
"""Verdicts of submissions that only large inputs catch."""
_MOST_REFERENCES = 3
"""Accepted programs that must agree on an answer, where there are so many (our choice)."""
_TRIAL_SECONDS = 20.0
"""CPU seconds that a reference gets for a known test, unless the source allows more."""


def find_references(candidate: Candidate) -> list[Program]:
    """Return the accepted programs that run here, first those in the language of the answers."""
    references = find_programs(candidate, ("accepted",))
    # Its times are those that limits of answers are derived from.
    answers_language = candidate.programming_language
    return sorted(references, key=lambda program: program.language != answers_language)


def find_programs(
    candidate: Candidate,
    known: Collection[str],
) -> list[Program]:
    """Return the submissions with one of these verdicts, if their language runs here."""
    programs = []
    for solution in candidate.solutions:
        if solution.known in known:
            language = language_of(solution, candidate)
            if language:
                programs.append(Program(solution.code, language))
    return programs


def find_passing_references(answering: Answering) -> Sequence[Program]:
    """Return the first references that pass the known tests."""
    tests = answering.candidate.tests
    # Twice as many are tried, since some may fail here.
    tried = answering.references[: 2 * _MOST_REFERENCES]
    if not tests:
        return tried[:_MOST_REFERENCES]
    seconds = max(_TRIAL_SECONDS, answering.candidate.time_limit_seconds or 0.0)
    return answering.list_accepted(tried, tests, seconds=seconds)[:_MOST_REFERENCES]


def read_programs(candidate: Candidate, responses: Sequence[str]) -> list[Program]:
    """Return the different programs in a model's answers, in order."""
    programs: dict[str, Program] = {}
    for text in responses:
        program = extract_program(text, language=candidate.programming_language)
        if program.code and program.code.strip():
            programs.setdefault(program.code.strip(), program)
    return list(programs.values())


def knows_slow(candidate: Candidate) -> bool:
    """Whether there are slow or partial submissions, which only large inputs catch."""
    return any(solution.known in _SLOW for solution in candidate.solutions)

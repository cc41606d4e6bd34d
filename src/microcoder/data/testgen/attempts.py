"""Gives a problem without a right program one that a model's attempts agree on.

    attempts -> those that pass the given tests -> answers to certified inputs
    -> the largest group that answers alike -> its programs, as references

Agreement is no proof: attempts of one model share its mistakes. So the row is flagged, and its
lineage says how many agreed, and on what.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from microcoder.data.clean.shown import count_hidden
from microcoder.data.completions import Endpoint
from microcoder.data.formats.candidates import Candidate, Solution
from microcoder.data.testgen.answers import Answering, Judges
from microcoder.data.testgen.copies import drop_copies
from microcoder.data.testgen.made import MadeInput
from microcoder.data.testgen.programs import find_references, read_programs
from microcoder.data.testgen.search import find_inputs
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.judge.core.types import Program

STEP = "references/1"
"""Name and version of the step in the lineage of a candidate."""
FLAG = "reference_by_attempts"
"""Flag of a row whose references are a model's attempts."""
_MOST_ATTEMPTS = 16
"""Different programs that are tried, the first (our choice)."""
_MOST_KEPT = 3
"""Programs of the group that become references (our choice)."""
_LEAST_AGREEING = 2
"""Fewest programs that must answer alike."""
_LEAST_INPUTS = 5
"""Fewest inputs that the statement does not show and on which they agree (our choice)."""
_TRIAL_SECONDS = 20.0
"""CPU seconds that an attempt gets for a given test, unless the source allows more."""
_AGREE_SECONDS = 4.0
"""CPU seconds that an attempt gets for another's test, twice those of the first."""


class _Agreement(NamedTuple):
    """Attempts that answer inputs alike."""

    programs: list[Program]
    num_answered: int
    """Inputs that they answered."""


def adopt_references(
    candidate: Candidate,
    responses: Sequence[str],
    judges: Callable[[], Judges],
    settings: GenerateSettings,
    endpoint: Endpoint | None = None,
) -> Candidate:
    """Return a candidate without a right program with those that attempts agree on.

    One that has a right program is returned unchanged, and one whose attempts do not agree gets a
    line of its lineage that says so.

    Args:
        candidate: from the filter stage.
        responses: a model's answers to it.
        judges: starts or returns the judges; not called where nothing is tried.
        settings: of the generate stage, whose inputs are answered.
        endpoint: the model that writes validators, where the settings name one.
    """
    if not responses or find_references(candidate):
        return candidate
    # Of copies in other names none confirms another.
    attempts = drop_copies(read_programs(candidate, responses))[:_MOST_ATTEMPTS]
    if len(attempts) < _LEAST_AGREEING:
        return candidate
    answering = Answering(judges(), candidate, attempts)
    passing = _find_passing(answering)
    shares = f"{len(passing)} of {len(attempts)} attempts pass {len(candidate.tests)} tests"
    if len(passing) < _LEAST_AGREEING:
        return _note(candidate, shares)
    answering.references = passing
    inputs = find_inputs(answering, settings, endpoint)
    num_hidden = count_hidden(candidate)
    if num_hidden + len(inputs) < _LEAST_INPUTS:
        return _note(candidate, f"{shares}; {len(inputs)} inputs are certified, too few")
    agreeing, num_answered = _find_agreeing(answering, passing, inputs)
    detail = f"{shares}; {len(agreeing)} agree on {num_answered} of {len(inputs)} certified inputs"
    # As many must agree as would win a vote.
    is_majority = 2 * len(agreeing) > len(passing)
    if len(agreeing) < _LEAST_AGREEING or not is_majority:
        return _note(candidate, detail)
    # What was made and not answered is no agreement.
    if num_hidden + num_answered < _LEAST_INPUTS:
        return _note(candidate, detail)
    adopted = tuple(
        Solution(code=program.code or "", language=program.language, name="attempt")
        for program in agreeing[:_MOST_KEPT]
    )
    return candidate.change(
        "filter",
        STEP,
        detail,
        solutions=(*adopted, *candidate.solutions),
        flags=tuple(sorted({*candidate.flags, FLAG})),
    )


def _note(candidate: Candidate, detail: str) -> Candidate:
    """Return the candidate with a flag that its attempts do not agree, and why."""
    flags = tuple(sorted({*candidate.flags, "attempts_disagree"}))
    return candidate.change("filter", STEP, detail, flags=flags)


def _find_passing(answering: Answering) -> list[Program]:
    """Return the attempts that pass all given tests; all where there are none."""
    tests = answering.candidate.tests
    if not tests:
        return list(answering.references)
    seconds = max(_TRIAL_SECONDS, answering.candidate.time_limit_seconds or 0.0)
    return answering.list_accepted(answering.references, tests, seconds=seconds)


def _find_agreeing(
    answering: Answering,
    passing: Sequence[Program],
    inputs: Sequence[MadeInput],
) -> _Agreement:
    """Return the largest group of attempts that answer the inputs alike, of equals the first.

    Without inputs all do: they passed the same tests.
    """
    if not inputs:
        return _Agreement(list(passing), 0)
    best = _Agreement([], 0)
    left = list(passing)
    while len(left) > len(best.programs):
        leader = left[0]
        # Half of the inputs, since one may be slow on some.
        answers = Answering(answering.judges, answering.candidate, [leader])
        tests = [made.test for made in answers.answer_all(inputs, num_slow=0)]
        group = [leader]
        if 2 * len(tests) >= len(inputs):
            group += answering.list_accepted(left[1:], tests, seconds=_AGREE_SECONDS)
        if len(group) > len(best.programs):
            best = _Agreement(group, len(tests))
        left = [program for program in left if program not in group]
    return best

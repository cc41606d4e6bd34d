"""What it means that accepted programs differ on a valid input: a rule of comparison, or none.

Programs that pass all given tests and print other things on certified inputs are right in another
order, or several answers are right and nothing here can say which.
"""

from collections import Counter

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.testgen.answers import Answering, Difference
from microcoder.judge.compare.compare import compare_output, compare_value
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.types import Checker

STEP = "differences/1"
"""Name and version of the step in the lineage of a candidate."""
_LEAST_INPUTS = 3
"""Fewest inputs on which programs must differ (our choice): one may be no valid input."""
_LEAST_SHARE = 0.25
"""Least share of the answered inputs on which they must (our choice)."""
_PRINTED = (
    Checker(type="unordered", by="lines"),
    Checker(type="unordered", by="tokens"),
)
"""Rules that are tried on what programs print, the strictest first."""
_RETURNED = (
    Checker(type="unordered", lists="outermost"),
    Checker(type="unordered", lists="inner"),
    Checker(type="unordered", lists="all"),
)
"""Rules that are tried on what functions return."""


def settle(answering: Answering) -> Candidate | Rejection:
    """Return the candidate, with another comparison where its accepted programs show one.

    A rejection if they differ and no rule of ours makes their outputs one. Nothing follows from a
    few differences, from those of one program among three or more, and where there is a checker.
    """
    candidate = answering.candidate
    differing = answering.differences
    if candidate.checker != Checker() or not _are_many(answering):
        return candidate
    num_inputs = len({difference.test.input for difference in differing})
    shares = (
        f"accepted programs differ on {num_inputs} of {answering.num_answered} certified inputs"
    )
    rules = _PRINTED if candidate.fn_name is None else _RETURNED
    for rule in rules:
        if all(_accepts(rule, difference, candidate) for difference in differing):
            detail = f"{shares}, and only in the order"
            return candidate.change("generate", STEP, detail, checker=rule)
    return candidate.reject("generate", "many_answers", shares)


def _are_many(answering: Answering) -> bool:
    """Whether differences are so many, and of so many programs, that no single one is wrong."""
    differing = answering.differences
    num_inputs = len({difference.test.input for difference in differing})
    if num_inputs < _LEAST_INPUTS or num_inputs < _LEAST_SHARE * answering.num_answered:
        return False
    by_program = Counter(difference.reference for difference in differing)
    num_agreeing = len(answering.references) - len(by_program)
    # Two that agree against one show that one to be wrong.
    return num_agreeing < 2


def _accepts(rule: Checker, difference: Difference, candidate: Candidate) -> bool:
    """Whether both outputs are one by a rule."""
    expected = difference.test.output
    if candidate.fn_name is None:
        return compare_output(difference.output, expected, rule).accepted
    try:
        values = parse_json(difference.output), parse_json(expected)
    except ValueError:
        return False
    return compare_value(*values, rule).accepted

"""What it means that accepted programs differ on a valid input: a rule of comparison, or none.

Programs that pass all given tests and print other things on certified inputs are right in another
order, or several answers are right and nothing here can say which.
"""

from collections import Counter
from collections.abc import Sequence

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
_LEAST_AGREEING = 2
"""Fewest programs whose agreement on an input says that the others are wrong there."""
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
    few differences, from inputs on which two or more agree against others, and where there is a
    checker.
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
    by_input: dict[str, list[Difference]] = {}
    for difference in answering.differences:
        by_input.setdefault(difference.test.input, []).append(difference)
    num_inputs = 0
    for differing in by_input.values():
        # Two that agree against one show that one to be wrong.
        if _count_agreeing(differing, len(answering.references)) < _LEAST_AGREEING:
            num_inputs += 1
    return num_inputs >= max(_LEAST_INPUTS, _LEAST_SHARE * answering.num_answered)


def _count_agreeing(differing: Sequence[Difference], num_references: int) -> int:
    """Return how many programs the largest group has that gives one output for an input.

    Args:
        differing: the outputs for it that are not the first program's.
        num_references: programs; those that do not differ agree with the first.
    """
    outputs = {item.reference: " ".join(item.output.split()) for item in differing}
    groups = Counter(outputs.values())
    return max(num_references - len(outputs), *groups.values())


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

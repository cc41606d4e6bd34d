"""What it means that accepted programs differ on a valid input.

Programs that pass all given tests and print other things on certified inputs are right in another
order, or several answers are right and nothing here can say which. Or one is wrong, which two that
agree against it show.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.testgen.answers import Answering, Difference
from microcoder.data.testgen.copies import count_voters
from microcoder.data.testgen.made import MadeInput, MadeTest
from microcoder.data.testgen.programs import find_references
from microcoder.judge.compare.compare import compare_output, compare_value
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.types import Checker, Outcome, Program

STEP = "differences/1"
"""Name and version of the step in the lineage of a candidate."""
_LEAST_INPUTS = 3
"""Fewest inputs on which programs must differ (our choice): one may be no valid input."""
_LEAST_SHARE = 0.25
"""Least share of the answered inputs on which they must (our choice)."""
_LEAST_AGREEING = 2
"""Fewest programs whose agreement on an input says that the others are wrong there."""
_MOST_OTHERS = 12
"""Accepted programs beside the references that are asked before one is outvoted.

Verify runs six, and finds them among these where most of these agree.
"""
_OTHERS_SECONDS = 10.0
"""CPU seconds that they get for a test: a clock is not to decide."""
_PRINTED = (
    Checker(type="unordered", by="lines"),
    Checker(type="unordered", by="tokens"),
)
"""Rules that are tried on what programs print, the strictest first."""
_ROUNDED = Checker(type="float")
"""A rule by which numbers with other digits are the same."""
_RETURNED = (
    Checker(type="unordered", lists="outermost"),
    Checker(type="unordered", lists="inner"),
    Checker(type="unordered", lists="all"),
)
"""Rules that are tried on what functions return."""


class Settled(NamedTuple):
    """A problem about whose answers accepted programs agree."""

    answering: Answering
    """The problem, perhaps with another comparison, or with fewer references."""
    tests: list[MadeTest]
    """The inputs that have answers."""


class _Others(NamedTuple):
    """What accepted programs that are no references say of tests."""

    passing: list[Program]
    refused: list[Program]
    """Those that give a wrong answer."""


def vote(answering: Answering, inputs: Sequence[MadeInput]) -> Settled | None:
    """Return the problem without the references that others agree against; None if there is none.

    A mistake that a source's own tests never met shows on few inputs. Where programs differ on
    many, more than one answer is right, and nothing follows from a vote. So it is where as many
    accepted programs fail the returned tests as pass them. Those on which the rest agree are these
    tests. Copies of one program have one vote.

    Args:
        answering: what has answered the inputs.
        inputs: certified ones.
    """
    outvoted = _find_outvoted(answering)
    left = []
    for number, program in enumerate(answering.references):
        if number not in outvoted:
            left.append(program)
    if not outvoted or count_voters(left) < _LEAST_AGREEING:
        return None
    disputed = {item.test.input for item in answering.differences}
    again = Answering(answering.judges, answering.candidate, left)
    tests = again.answer_all([made for made in inputs if made.text in disputed], num_slow=0)
    # Those left may differ, too, or take too long.
    if not tests:
        return None
    others = _ask_others(answering, tests)
    against = [answering.references[number] for number in sorted(outvoted)]
    num_agreeing = count_voters([*left, *others.passing])
    if count_voters([*against, *others.refused]) >= num_agreeing:
        return None
    answering.take_back(tests)
    wrong = {program.code for program in (*against, *others.refused)}
    on_inputs = f"on {len(tests)} of {answering.num_answered} certified inputs"
    candidate = _mark_wrong(
        answering.candidate,
        wrong,
        f"{num_agreeing} accepted programs agree {on_inputs}",
    )
    kept = Answering(answering.judges, candidate, left, answering.dropped)
    return Settled(kept, tests)


def _mark_wrong(
    candidate: Candidate,
    wrong: Collection[str | None],
    shares: str,
) -> Candidate:
    """Return a candidate whose accepted programs with this code are known to be wrong.

    Args:
        shares: how many agree against them, and on what.
    """
    solutions = []
    names = []
    for solution in candidate.solutions:
        if solution.code in wrong and solution.known == "accepted":
            names.append(solution.name or "accepted program")
            solution = solution.model_copy(update={"known": "wrong_answer"})
        solutions.append(solution)
    detail = f"{shares}, against {', '.join(names)}"
    return candidate.change("generate", STEP, detail, solutions=tuple(solutions))


def _ask_others(answering: Answering, tests: Sequence[MadeTest]) -> _Others:
    """Return what accepted programs that are no references say of tests: verify will run them."""
    programs = []
    for program in find_references(answering.candidate):
        if program not in answering.references:
            programs.append(program)
    programs = programs[:_MOST_OTHERS]
    passing: list[Program] = []
    refused: list[Program] = []
    if not programs:
        return _Others(passing, refused)
    given = [made.test for made in tests]
    verdicts = answering.judge_briefly(programs, given, seconds=_OTHERS_SECONDS)
    for program, verdict in zip(programs, verdicts, strict=True):
        if verdict.is_accepted:
            passing.append(program)
        # One that crashes or is late says nothing.
        elif verdict.outcome is Outcome.WRONG_ANSWER:
            refused.append(program)
    return _Others(passing, refused)


def _find_outvoted(answering: Answering) -> set[int]:
    """Return the indices of the references that differ from a majority on some inputs, and few."""
    candidate = answering.candidate
    num_references = len(answering.references)
    # A checker may refuse the answers of the first, and be right.
    if candidate.checker.type == "program" or num_references <= _LEAST_AGREEING:
        return set()
    num_outvoted: Counter[int] = Counter()
    for text, differing in _by_input(answering).items():
        # Another number of digits is no mistake.
        if any(_accepts(_ROUNDED, item, candidate) for item in differing):
            continue
        groups = _group_by_output(answering, text, differing)
        sizes = []
        for group in groups:
            sizes.append(count_voters([answering.references[number] for number in group]))
        largest = groups[sizes.index(max(sizes))]
        if max(sizes) >= _LEAST_AGREEING and 2 * max(sizes) > sum(sizes):
            for group in groups:
                if group is not largest:
                    num_outvoted.update(group)
    most = _LEAST_SHARE * answering.num_answered
    return {number for number, count in num_outvoted.items() if count < most}


def _group_by_output(
    answering: Answering,
    text: str,
    differing: Sequence[Difference],
) -> list[list[int]]:
    """Return the references by what they give for an input, without those that give nothing."""
    outputs = {item.reference: " ".join(item.output.split()) for item in differing}
    silent = answering.silent.get(text, set())
    # Those without an output of their own agree with the first, which is not to print nothing.
    groups: dict[str | None, list[int]] = {}
    for number in range(len(answering.references)):
        if number not in silent:
            groups.setdefault(outputs.get(number), []).append(number)
    return list(groups.values())


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
    num_inputs = 0
    for text, differing in _by_input(answering).items():
        agreeing = 0
        for group in _group_by_output(answering, text, differing):
            voters = count_voters([answering.references[number] for number in group])
            agreeing = max(agreeing, voters)
        # Two that agree against one show that one to be wrong.
        if agreeing < _LEAST_AGREEING:
            num_inputs += 1
    return num_inputs >= max(_LEAST_INPUTS, _LEAST_SHARE * answering.num_answered)


def _by_input(answering: Answering) -> dict[str, list[Difference]]:
    """Return the differences for each input."""
    by_input: dict[str, list[Difference]] = {}
    for difference in answering.differences:
        by_input.setdefault(difference.test.input, []).append(difference)
    return by_input


def _accepts(
    rule: Checker,
    difference: Difference,
    candidate: Candidate,
) -> bool:
    """Whether both outputs are one by a rule."""
    expected = difference.test.output
    if candidate.fn_name is None:
        return compare_output(difference.output, expected, rule).accepted
    try:
        values = parse_json(difference.output), parse_json(expected)
    except ValueError:
        return False
    return compare_value(*values, rule).accepted

"""Finds benchmark problems by behaviour: the program of one is run on the inputs of the other.

    Candidate -> forms -> benchmark's forms of the same kinds -> a few inputs
    -> all inputs, both ways -> Hit

Another story, language or input format changes the words, but not what a program computes.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from microcoder.data.behaviour.forms import ValueCase
from microcoder.data.behaviour.outputs import (
    LATE,
    Agreement,
    Outputs,
    Tokens,
    chance_of,
    compare,
    is_outside,
    is_small,
    tokens_of_value,
)
from microcoder.data.behaviour.pairs import BehaviourIndex, Pair, find_pairs, render
from microcoder.data.behaviour.running import SECONDS_AN_INPUT, ProgramRun, run_programs
from microcoder.data.behaviour.trials import Trial
from microcoder.data.filter.contamination import Hit
from microcoder.data.formats.candidates import Candidate
from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.mutating import vary
from microcoder.judge import Judge

# Cheap first: only pairs that agree on these are run on all inputs.
_FEW = 3
"""Number of inputs on which a pair of forms is tried first, the most telling one before the others.
"""
_SECONDS_AT_FIRST = 0.02
"""CPU seconds that a program may take for that one: a wrong order of values may let it run on."""
_MOST_CLOSE = 24
"""At most so many pairs per form of the problem are then tried on all inputs."""
_LITTLE_SHARE = 0.9
"""Share of varied inputs on which programs must agree if outputs are labels or small numbers."""
_LITTLE_TIMES = 3
"""How many times more of these inputs are run then."""
_ENOUGH_PROGRAMS = 10
"""Fewest benchmark programs from which the share that agrees by chance is estimated."""
_EXPECTED_AGREEING = 2
"""Benchmark programs that may agree and are right, so that they say nothing about chance."""

# When two problems do the same (our choices, measured in docs/contamination.md).
_OWN_SHARE = 0.9
"""Share of the problem's own inputs on which they agree."""
_OTHER_SHARE = 0.75
"""Share of the benchmark's inputs on which they agree."""
_VARIED_SHARE = 0.75
"""Share of varied inputs on which they agree."""
_NUM_VARIED = 16
"""How many inputs are varied."""


class Compared(NamedTuple):
    """What the comparison of a problem with the benchmarks came to, the strongest evidence
    first."""

    hits: list[Hit]
    """A hit for each benchmark problem that behaves like it."""
    suspects: list[Hit]
    """Benchmark problems that may: nothing differs, and there is too little evidence for a hit."""


def find_behaviour(
    candidates: Sequence[Candidate],
    index: BehaviourIndex,
    judge: Judge,
) -> list[Compared]:
    """Compare what each candidate computes with what the benchmarks' problems compute."""
    return compare_pairs([find_pairs(candidate, index) for candidate in candidates], judge)


def compare_pairs(pairs_by_row: Sequence[Sequence[Pair]], judge: Judge) -> list[Compared]:
    """Compare problems, each with its pairs, and return what came of it for each.

    All together, since a process then loads a benchmark's program once for many problems.
    """
    # From cheap to dear: each phase runs only what the one before has left.
    trials = _try_few_inputs(pairs_by_row, judge)
    trials = _try_cases(trials, judge, runs_other=True)
    trials = _try_cases(trials, judge, runs_other=False)
    trials = _try_varied(trials, judge)
    compared = [Compared([], []) for _ in pairs_by_row]
    for trial in trials:
        if trial.is_convincing:
            compared[trial.row].hits.append(trial.to_hit())
        elif trial.is_suspect:
            compared[trial.row].suspects.append(trial.to_hit())
    return [
        Compared(
            _keep_strongest(hits),
            _keep_strongest(suspects),
        )
        for hits, suspects in compared
    ]


def _keep_strongest(hits: list[Hit]) -> list[Hit]:
    """Return the strongest hit of each benchmark problem, the strongest first."""
    # By id among equals, for one order in every run.
    hits.sort(key=lambda hit: (-hit.score, hit.problem_id))
    # Several forms of a benchmark's problem may agree: the strongest hit stands for it.
    strongest: dict[str, Hit] = {}
    for hit in hits:
        strongest.setdefault(hit.problem_id, hit)
    return list(strongest.values())


class _Close(NamedTuple):
    """A pair of forms that agrees on a few inputs, so that all inputs are worth trying."""

    pair: Pair
    bits: float


@dataclass
class _First:
    """The first comparison of a pair: one side's program on the first inputs of the other."""

    row: int
    pair: Pair
    runs_other: bool
    """Whether the benchmark's program runs on the problem's inputs, not the other way round."""
    run: _CaseRun = field(init=False)


def _try_few_inputs(
    pairs_by_row: Sequence[Sequence[Pair]],
    judge: Judge,
) -> list[Trial]:
    """Return the pairs that agree on a few inputs, the best of each form."""
    firsts: list[_First] = []
    for row, pairs in enumerate(pairs_by_row):
        for pair in pairs:
            # The benchmark's program where it has one: it is known to be right.
            firsts.append(_First(row, pair, runs_other=bool(pair.other.program)))
    # One input first: nearly all pairs differ there.
    firsts = _run_firsts(firsts, judge, only_most_telling=True)
    firsts = _run_firsts(firsts, judge)
    firsts_by_row: list[list[_First]] = [[] for _ in pairs_by_row]
    for first in firsts:
        firsts_by_row[first.row].append(first)
    trials = []
    for pairs, of_row in zip(pairs_by_row, firsts_by_row, strict=True):
        trials += _choose_closest(pairs, of_row)
    return trials


def _run_firsts(
    firsts: Sequence[_First],
    judge: Judge,
    *,
    only_most_telling: bool = False,
) -> list[_First]:
    """Run the programs on a few inputs, and return the comparisons in which all agree."""
    choose = _choose_most_telling if only_most_telling else _choose_few
    seconds = _SECONDS_AT_FIRST if only_most_telling else SECONDS_AN_INPUT
    left: list[_First] = []
    for runs_other in (True, False):
        some = [first for first in firsts if first.runs_other is runs_other]
        runs = _run_on_cases(
            [(first.row, first.pair) for first in some],
            judge,
            runs_other=runs_other,
            choose=choose,
            seconds=seconds,
        )
        for first, run in zip(some, runs, strict=True):
            # On so few inputs, a single difference is too large a share to forgive.
            if _agree(run, runs_other=runs_other).share == 1:
                first.run = run
                left.append(first)
    return left


def _choose_few(cases: Sequence[ValueCase]) -> Sequence[ValueCase]:
    return cases[:_FEW]


def _choose_most_telling(cases: Sequence[ValueCase]) -> Sequence[ValueCase]:
    """Return the case whose output the fewest unrelated programs give, of the first few."""
    return [min(cases[:_FEW], key=lambda case: chance_of(case.expected))]


def _choose_all(cases: Sequence[ValueCase]) -> Sequence[ValueCase]:
    return cases


def _choose_closest(pairs: Sequence[Pair], firsts: Sequence[_First]) -> list[Trial]:
    """Return trials of the pairs of one problem that agreed on a few inputs, the best of each form.

    Args:
        pairs: all pairs of the problem.
        firsts: those that agreed.
    """
    close: list[_Close] = []
    agreeing_ids: set[str] = set()
    for first in firsts:
        agreement = _agree(first.run, runs_other=first.runs_other)
        close.append(_Close(first.pair, agreement.bits))
        # Only plain agreement with benchmark programs tells how often unrelated ones agree.
        if first.runs_other and agreement.how == "same":
            agreeing_ids.add(first.pair.other.id)
    chance = _estimate_chance(pairs, agreeing_ids)
    # The most telling first: only some of each form are tried further.
    close.sort(key=lambda item: -item.bits)
    # Counted form by form: where an input is misread as many cases of one value each, dozens of
    # programs that give back what they get are close, and would leave no place for the form that is
    # right.
    num_taken: dict[str, int] = defaultdict(int)
    trials = []
    for pair, _ in close:
        form = f"{pair.own.layout!r} {pair.own.kinds}"
        num_taken[form] += 1
        if num_taken[form] <= _MOST_CLOSE:
            num_shared = _count_shared(pair)
            trials.append(
                Trial(firsts[0].row, pair, chance, bits=-pair.bits, num_shared=num_shared)
            )
    return trials


def _count_shared(pair: Pair) -> int:
    """Return how many inputs both problems show, in whatever format, that are no small number."""
    shown = {json.dumps(case.values) for case in pair.other.cases}
    num_shared = 0
    for case in pair.own.cases:
        if is_small(tokens_of_value(case.values)):
            continue
        num_shared += json.dumps(pair.arrange(case.values)) in shown
    return num_shared


def _estimate_chance(
    pairs: Sequence[Pair],
    agreeing: set[str],
) -> float:
    """Return the share of unrelated benchmark programs that agree on a few inputs; 0 if unknown."""
    # Counted by problem: one with several forms has still one program.
    programs = {pair.other.id for pair in pairs if pair.other.program}
    if len(programs) < _ENOUGH_PROGRAMS:
        return 0.0
    num_unrelated = max(0, len(agreeing) - _EXPECTED_AGREEING)
    return num_unrelated / len(programs)


class _CaseRun(NamedTuple):
    """Cases of one side, and what the other side's program prints or returns on them."""

    cases: Sequence[ValueCase]
    outputs: Outputs
    """Empty where there is no program."""


def _run_on_cases(
    pairs: Sequence[tuple[int, Pair]],
    judge: Judge,
    *,
    runs_other: bool,
    choose: Callable[[Sequence[ValueCase]], Sequence[ValueCase]] = _choose_all,
    seconds: float = SECONDS_AN_INPUT,
) -> list[_CaseRun]:
    """Run one side's program on the other's cases.

    Args:
        pairs: forms whose programs are run, each with the index of its problem.
        judge: runs them.
        runs_other: run the benchmark's programs on the problem's cases, not the other way round.
        choose: returns the cases that are run.
        seconds: CPU seconds that a program may take for an input.
    """
    cases_by_pair: list[list[ValueCase]] = []
    runs = []
    for row, pair in pairs:
        seen = pair if runs_other else pair.swapped
        inputs: list[object] = []
        cases = []
        for case in choose(seen.own.cases):
            program_input = seen.render(case.values)
            # What the other program cannot be given says nothing.
            if program_input is not None:
                cases.append(case)
                inputs.append(program_input)
        if not seen.other.program:
            inputs = []
        cases_by_pair.append(cases)
        # Also without inputs, so that each pair keeps its run.
        runs.append(
            ProgramRun(
                seen.other.program,
                seen.other.entry,
                tuple(inputs),
                row,
            )
        )
    outputs_by_pair = run_programs(runs, judge, seconds=seconds)
    return list(map(_leave_out_late, cases_by_pair, outputs_by_pair))


def _leave_out_late(cases: Sequence[ValueCase], outputs: Outputs) -> _CaseRun:
    """Return the cases for which a program had time, which is all that it can be told by."""
    if not outputs:
        return _CaseRun(cases, outputs)
    in_time = []
    for case, output in zip(cases, outputs, strict=True):
        if output != LATE:
            in_time.append((case, output))
    return _CaseRun(
        [case for case, _ in in_time],
        [output for _, output in in_time],
    )


def _agree(
    run: _CaseRun,
    *,
    runs_other: bool,
    chance: float = 0.0,
    how: str = "",
) -> Agreement:
    """Compare the expected outputs of cases with a program's outputs."""
    expected = [case.expected for case in run.cases]
    # The problem's own side first, so that a freedom is the same one in both directions.
    if runs_other:
        return compare(
            expected,
            run.outputs,
            chance=chance,
            how=how,
        )
    return compare(
        run.outputs,
        expected,
        chance=chance,
        how=how,
    )


def _try_cases(
    trials: Sequence[Trial],
    judge: Judge,
    *,
    runs_other: bool,
) -> list[Trial]:
    """Run the programs of one side on all cases of the other.

    Return the trials that still agree, and the trials without such a program.
    """
    least = _OWN_SHARE if runs_other else _OTHER_SHARE
    left = []
    pairs = [(trial.row, trial.pair) for trial in trials]
    runs = _run_on_cases(pairs, judge, runs_other=runs_other)
    for trial, run in zip(trials, runs, strict=True):
        # For want of a program nothing was run, which says nothing against the pair.
        if not run.outputs:
            left.append(trial)
            continue
        # It was estimated with the benchmark's programs, and says nothing about the problem's own.
        chance = trial.chance if runs_other else 0.0
        agreement = _agree(
            run,
            runs_other=runs_other,
            chance=chance,
            how=trial.how,
        )
        if agreement.share < least:
            continue
        trial.add(agreement, _describe_cases(agreement, runs_other=runs_other), run.cases)
        if runs_other or not trial.pair.other.program:
            trial.num_own = sum(agreement.agreed)
        left.append(trial)
    return left


def _describe_cases(agreement: Agreement, *, runs_other: bool) -> str:
    """Describe the result of running one side's program on the other side's cases."""
    program = "its program" if runs_other else "the program here"
    where = "here" if runs_other else "there"
    share = f"{sum(agreement.agreed)} of {len(agreement.agreed)}"
    return f"{program} gives {share} answers {where} ({agreement.how})"


def _try_varied(
    trials: Sequence[Trial],
    judge: Judge,
) -> list[Trial]:
    """Run both programs on varied inputs.

    Return the trials that agree wherever both have an output, and the trials without such inputs.
    """
    runs: list[ProgramRun] = []
    inputs_by_trial = []
    for trial in trials:
        own = trial.pair.own
        other = trial.pair.other
        inputs = _vary_inputs(trial)
        inputs_by_trial.append(inputs)
        # The same values, each time as that program reads them.
        own_inputs = tuple(render(own, values) for values in inputs)
        other_inputs = tuple(map(trial.pair.render, inputs))
        runs.append(
            ProgramRun(
                own.program,
                own.entry,
                own_inputs,
                trial.row,
            )
        )
        runs.append(
            ProgramRun(
                other.program,
                other.entry,
                other_inputs,
                trial.row,
            )
        )
    # All in one call, since few processes then run many programs.
    outputs = run_programs(runs, judge)
    left = []
    for trial, inputs, ours, theirs in zip(
        trials,
        inputs_by_trial,
        outputs[::2],
        outputs[1::2],
        strict=True,
    ):
        answered = _find_answered(trial.pair, inputs, ours, theirs)
        # Where one of them has no program, nothing speaks against the pair.
        if not answered:
            left.append(trial)
            continue
        agreement = compare(
            [answer.own for answer in answered],
            [answer.other for answer in answered],
            how=trial.how,
        )
        # Labels and small numbers agree by chance so often that a higher share is asked for.
        least = _LITTLE_SHARE if trial.says_little else _VARIED_SHARE
        if agreement.share < least:
            continue
        share = f"{sum(agreement.agreed)} of {len(agreement.agreed)}"
        trial.add(
            agreement,
            f"both give the same on {share} varied inputs",
            [(answer.values, answer.own) for answer in answered],
        )
        left.append(trial)
    return left


def _vary_inputs(trial: Trial) -> list[Values]:
    """Return further inputs, made from the cases of both problems; none if a program is missing."""
    if not trial.has_both_programs:
        return []
    pair = trial.pair
    known = [case.values for case in pair.own.cases]
    # In the problem's own order, from which `render` starts.
    known += [pair.swapped.arrange(case.values) for case in pair.other.cases]
    num = _NUM_VARIED
    # Each input says little then.
    if trial.says_little:
        num *= _LITTLE_TIMES
    # Seeded by both ids: the same inputs in every run.
    varied = vary(known, num=num, seed=f"{pair.own.id} {pair.other.id}")
    readable = []
    for values in varied:
        if render(pair.own, values) is not None and pair.render(values) is not None:
            readable.append(values)
    # The small first: after an input that takes too long, none is waited for.
    return sorted(readable, key=lambda values: len(json.dumps(values)))


class _Answered(NamedTuple):
    """An input for which both programs have an output."""

    values: Values
    own: Tokens
    other: Tokens


def _find_answered(
    pair: Pair,
    inputs: Sequence[Values],
    ours: Outputs,
    theirs: Outputs,
) -> list[_Answered]:
    """Return the inputs for which both programs have an output that answers the question."""
    known = [case.expected for case in (*pair.own.cases, *pair.other.cases)]
    answered = []
    for values, our_output, their_output in zip(inputs, ours, theirs, strict=True):
        if our_output is None or their_output is None or LATE in (our_output, their_output):
            continue
        if is_outside(our_output, known) or is_outside(their_output, known):
            continue
        answered.append(_Answered(values, our_output, their_output))
    return answered

"""Finds benchmark problems by behaviour: the program of one is run on the inputs of the other.

    Candidate -> forms -> benchmark's forms of the same kinds -> a few inputs
    -> all inputs, both ways -> Hit

Another story, language or input format changes the words, but not what a program computes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice, permutations
from typing import NamedTuple

from microcoder.data.behaviour.forms import Form, ValueCase, find_forms
from microcoder.data.behaviour.outputs import Agreement, Outputs, are_labels, compare
from microcoder.data.behaviour.running import ProgramRun, run_programs
from microcoder.data.filter.contamination import Hit
from microcoder.data.formats.candidates import Candidate
from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.mutating import vary
from microcoder.judge import Judge

# Cheap first: only pairs that agree on these are run on all inputs.
_FEW = 3
"""Number of inputs on which a pair of forms is tried first."""
# Orders grow with the factorial of the number of values.
_MOST_ORDERS = 6
"""Orders of the values in which a pair of forms is tried."""
_MOST_CLOSE = 24
"""At most so many pairs per form of the problem are then tried on all inputs."""
_MOST_FORMS = 4
"""Forms of a problem that are compared, the likeliest."""
_LABELS_SHARE = 0.9
"""Share of varied inputs on which programs must agree if outputs are labels."""
_LABELS_TIMES = 3
"""How many times more of these inputs are run if outputs are labels."""
_ENOUGH_PROGRAMS = 10
"""Fewest benchmark programs from which the share that agrees by chance is estimated."""
_EXPECTED_AGREEING = 2
"""Benchmark programs that may agree and are right, so that they say nothing about chance."""

# When two problems do the same (our choices, measured in docs/contamination.md).
_LEAST_INPUTS = 4
"""On how many different inputs at least they agree."""
_LEAST_BITS = 14.0
"""Evidence in bits: minus the binary logarithm of how likely an unrelated program agrees as far."""
_OWN_SHARE = 0.9
"""Share of the problem's own inputs on which they agree."""
_OTHER_SHARE = 0.75
"""Share of the benchmark's inputs on which they agree."""
_VARIED_SHARE = 0.75
"""Share of varied inputs on which they agree."""
_NUM_VARIED = 16
"""How many inputs are varied."""


@dataclass(frozen=True, slots=True)
class BehaviourIndex:
    """Forms of benchmark problems, and their indices by the kinds of their values."""

    forms: tuple[Form, ...]
    by_kinds: dict[str, tuple[int, ...]]
    """By the keys of `_keys`."""


@dataclass(frozen=True, slots=True)
class _Pair:
    """A form of the problem, a form of a benchmark problem, and how their values correspond."""

    own: Form
    other: Form
    order: tuple[int, ...]
    """For each value of the benchmark's form, the index of the problem's own value."""

    @property
    def swapped(self) -> _Pair:
        """The pair with the problem and the benchmark's problem swapped."""
        places = range(len(self.order))
        return _Pair(
            self.other,
            self.own,
            tuple(map(self.order.index, places)),
        )

    def arrange(self, values: Values) -> Values:
        """Return the problem's values in the benchmark's order."""
        return tuple(values[place] for place in self.order)

    def render(self, values: Values) -> object:
        """Return the problem's values as an input of the benchmark's program.

        The input is a list of arguments, or a text for stdin.
        """
        return self.other.layout.render(self.arrange(values))


def index_behaviour(benchmark: Iterable[Candidate]) -> BehaviourIndex:
    """Index the forms of benchmark problems for `find_behaviour`; nothing is run."""
    forms: list[Form] = []
    for problem in benchmark:
        forms += find_forms(problem)[:_MOST_FORMS]
    numbers_by_kinds: dict[str, list[int]] = defaultdict(list)
    for number, form in enumerate(forms):
        for key in _keys(form.kinds):
            numbers_by_kinds[key].append(number)
    by_kinds = {key: tuple(numbers) for key, numbers in numbers_by_kinds.items()}
    return BehaviourIndex(tuple(forms), by_kinds)


def _keys(kinds: Sequence[str]) -> set[str]:
    """Return index keys that do not depend on the order of kinds.

    `E`, only empty lists, may be any kind of list.
    """
    if "E" not in kinds:
        return {"".join(sorted(kinds))}
    keys = set()
    for kind_of_list in "NSTR":
        filled = "".join(kinds).replace("E", kind_of_list)
        keys.add("".join(sorted(filled)))
    return keys


def find_behaviour(
    candidate: Candidate,
    index: BehaviourIndex,
    judge: Judge,
) -> list[Hit]:
    """Return a hit for each benchmark problem that behaves like a candidate.

    The strongest evidence comes first.
    """
    pairs = _find_pairs(candidate, index)
    if not pairs:
        return []
    # From cheap to dear: each phase runs only what the one before has left.
    trials = _try_few_inputs(pairs, judge)
    trials = _try_cases(trials, judge, runs_other=True)
    trials = _try_cases(trials, judge, runs_other=False)
    trials = _try_varied(trials, judge)
    hits = [trial.to_hit() for trial in trials if trial.is_convincing]
    # By id among equals, for one order in every run.
    hits.sort(key=lambda hit: (-hit.score, hit.problem_id))
    # Several forms of a benchmark's problem may agree: the strongest hit stands for it.
    strongest: dict[str, Hit] = {}
    for hit in hits:
        strongest.setdefault(hit.problem_id, hit)
    return list(strongest.values())


@dataclass
class _Trial:
    """A pair of forms that agreed on a few inputs, with the evidence for it so far."""

    pair: _Pair
    chance: float
    """Estimated share of unrelated programs that agree on an input."""
    bits: float = 0.0
    num_agreed: int = 0
    details: tuple[str, ...] = ()
    """What each phase came to."""
    how: str = ""
    """`Agreement.how` of the phases so far; empty before the first."""

    @property
    def has_labels(self) -> bool:
        """Whether the outputs are a few labels, on which unrelated programs often agree."""
        return are_labels([case.expected for case in self.pair.own.cases])

    @property
    def has_both_programs(self) -> bool:
        """Whether both problems have a program."""
        return bool(self.pair.own.program and self.pair.other.program)

    @property
    def is_convincing(self) -> bool:
        """Whether there is enough evidence for a hit."""
        return self.bits >= _LEAST_BITS and self.num_agreed >= _LEAST_INPUTS

    def add(self, agreement: Agreement, detail: str) -> None:
        """Add the agreement found by one comparison to the evidence; `detail` describes it."""
        # Bits are logarithms: adding them multiplies the chances.
        self.bits += agreement.bits
        self.num_agreed += sum(agreement.agreed)
        self.details += (detail,)
        # Labels that were renamed once stay renamed.
        if self.how in ("", "same"):
            self.how = agreement.how

    def to_hit(self) -> Hit:
        """Return the hit."""
        detail = "; ".join(self.details)
        return Hit(
            self.pair.other.id,
            "behaviour",
            round(self.bits, 1),
            detail,
        )


def _find_pairs(candidate: Candidate, index: BehaviourIndex) -> list[_Pair]:
    """Return the pairs of forms whose values have the same kinds, if either form has a program."""
    pairs: list[_Pair] = []
    for own in find_forms(candidate)[:_MOST_FORMS]:
        # A dict, as a set that keeps its order.
        numbers: dict[int, None] = {}
        # Sorted, since a set of texts has another order in each process.
        for key in sorted(_keys(own.kinds)):
            of_these_kinds = index.by_kinds.get(key, ())
            numbers.update(dict.fromkeys(of_these_kinds))
        for number in numbers:
            other = index.forms[number]
            # Without any program there is nothing to run.
            if other.program or own.program:
                pairs += _pair_up(own, other)
    return pairs


def _pair_up(own: Form, other: Form) -> list[_Pair]:
    """Return pairs of two forms: for the first orders of values in which the kinds are the same."""
    # Another story may name the same values in another order.
    orders = permutations(range(len(own.kinds)))
    fitting = (
        order
        for order in orders
        if _fits(
            own.kinds,
            other.kinds,
            order,
        )
    )
    return [
        _Pair(
            own,
            other,
            order,
        )
        for order in islice(fitting, _MOST_ORDERS)
    ]


def _fits(
    own: Sequence[str],
    other: Sequence[str],
    order: Sequence[int],
) -> bool:
    """Whether values in this order have the same kinds."""
    for place, kind in zip(order, other, strict=True):
        kinds = {own[place], kind}
        # Only empty lists fit any list.
        has_empty = "E" in kinds and kinds <= set("ENSTR")
        if len(kinds) > 1 and not has_empty:
            return False
    return True


class _Close(NamedTuple):
    """A pair of forms that agrees on a few inputs, so that all inputs are worth trying."""

    pair: _Pair
    bits: float


def _try_few_inputs(
    pairs: Sequence[_Pair],
    judge: Judge,
) -> list[_Trial]:
    """Return the pairs that agree on a few inputs, the best of each form."""
    close: list[_Close] = []
    agreeing: set[tuple[str, str]] = set()
    # The benchmark's program where it has one: it is known to be right.
    for runs_other in (True, False):
        some = [pair for pair in pairs if bool(pair.other.program) is runs_other]
        runs = _run_on_cases(some, judge, runs_other=runs_other, most=_FEW)
        for pair, run in zip(some, runs, strict=True):
            agreement = _agree(run, runs_other=runs_other)
            # On so few inputs, a single difference is too large a share to forgive.
            if agreement.share < 1:
                continue
            close.append(_Close(pair, agreement.bits))
            # Only plain agreement with benchmark programs tells how often unrelated ones agree.
            if runs_other and agreement.how == "same":
                layout = repr(pair.own.layout)
                agreeing.add((layout, pair.other.id))
    agreeing_ids = {problem_id for _, problem_id in agreeing}
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
            trials.append(_Trial(pair, chance))
    return trials


def _estimate_chance(
    pairs: Sequence[_Pair],
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
    pairs: Sequence[_Pair],
    judge: Judge,
    *,
    runs_other: bool,
    most: int | None = None,
) -> list[_CaseRun]:
    """Run one side's program on the other's cases.

    Args:
        pairs: forms whose programs are run.
        judge: runs them.
        runs_other: run the benchmark's programs on the problem's cases, not the other way round.
        most: at most so many cases are run.
    """
    cases_by_pair = []
    runs = []
    for pair in pairs:
        seen = pair if runs_other else pair.swapped
        cases = seen.own.cases[:most]
        inputs: list[object] = []
        if seen.other.program:
            inputs = [seen.render(case.values) for case in cases]
        cases_by_pair.append(cases)
        # Also without inputs, so that each pair keeps its run.
        runs.append(
            ProgramRun(
                seen.other.program,
                seen.other.entry,
                tuple(inputs),
            )
        )
    outputs_by_pair = run_programs(runs, judge)
    return list(map(_CaseRun, cases_by_pair, outputs_by_pair))


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
    trials: Sequence[_Trial],
    judge: Judge,
    *,
    runs_other: bool,
) -> list[_Trial]:
    """Run the programs of one side on all cases of the other.

    Return the trials that still agree, and the trials without such a program.
    """
    least = _OWN_SHARE if runs_other else _OTHER_SHARE
    left = []
    pairs = [trial.pair for trial in trials]
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
        trial.add(agreement, _describe_cases(agreement, runs_other=runs_other))
        left.append(trial)
    return left


def _describe_cases(agreement: Agreement, *, runs_other: bool) -> str:
    """Describe the result of running one side's program on the other side's cases."""
    program = "its program" if runs_other else "the program here"
    where = "here" if runs_other else "there"
    share = f"{sum(agreement.agreed)} of {len(agreement.agreed)}"
    return f"{program} gives {share} answers {where} ({agreement.how})"


def _try_varied(
    trials: Sequence[_Trial],
    judge: Judge,
) -> list[_Trial]:
    """Run both programs on varied inputs.

    Return the trials that agree wherever both have an output, and the trials without such inputs.
    """
    runs: list[ProgramRun] = []
    for trial in trials:
        own = trial.pair.own
        other = trial.pair.other
        inputs = _vary_inputs(trial)
        # The same values, each time as that program reads them.
        own_inputs = tuple(map(own.layout.render, inputs))
        other_inputs = tuple(map(trial.pair.render, inputs))
        runs.append(
            ProgramRun(
                own.program,
                own.entry,
                own_inputs,
            )
        )
        runs.append(
            ProgramRun(
                other.program,
                other.entry,
                other_inputs,
            )
        )
    # All in one call, since few processes then run many programs.
    outputs = run_programs(runs, judge)
    left = []
    for trial, ours, theirs in zip(
        trials,
        outputs[::2],
        outputs[1::2],
        strict=True,
    ):
        agreement = _compare_where_both(ours, theirs, trial.how)
        # Where one of them has no program, nothing speaks against the pair.
        if agreement is None:
            left.append(trial)
            continue
        # Labels agree by chance so often that a higher share is asked for.
        least = _VARIED_SHARE
        if trial.has_labels:
            least = max(least, _LABELS_SHARE)
        if agreement.share < least:
            continue
        share = f"{sum(agreement.agreed)} of {len(agreement.agreed)}"
        trial.add(agreement, f"both give the same on {share} varied inputs")
        left.append(trial)
    return left


def _vary_inputs(trial: _Trial) -> list[Values]:
    """Return further inputs, made from the cases of both problems; none if a program is missing."""
    if not trial.has_both_programs:
        return []
    pair = trial.pair
    known = [case.values for case in pair.own.cases]
    # In the problem's own order, from which `render` starts.
    known += [pair.swapped.arrange(case.values) for case in pair.other.cases]
    num = _NUM_VARIED
    # Each input says little then.
    if trial.has_labels:
        num *= _LABELS_TIMES
    # Seeded by both ids: the same inputs in every run.
    return vary(known, num=num, seed=f"{pair.own.id} {pair.other.id}")


def _compare_where_both(
    ours: Outputs,
    theirs: Outputs,
    how: str,
) -> Agreement | None:
    """Compare two programs on the inputs for which both have an output; None if there is no such
    input."""
    ours_there = []
    theirs_there = []
    for our_output, their_output in zip(ours, theirs, strict=True):
        if our_output is not None and their_output is not None:
            ours_there.append(our_output)
            theirs_there.append(their_output)
    if not ours_there:
        return None
    return compare(ours_there, theirs_there, how=how)

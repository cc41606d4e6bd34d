"""Is a problem one of a benchmark's by what it computes? Programs of the one run on the inputs of the other.

    Candidate -> forms -> benchmark's forms of the same kinds -> a few inputs -> all inputs, both ways -> Hit

A story, a translation or another input format changes every word and leaves this as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, permutations

from pydantic import Field

from microcoder.data.behaviour.forms import Form, ValueCase, find_forms
from microcoder.data.behaviour.runner import ProgramRun, ProgramRunner
from microcoder.data.behaviour.values import Agreement, Tokens, are_labels, compare, describe_kinds
from microcoder.data.filter.contamination import Hit
from microcoder.data.formats.candidates import Candidate
from microcoder.data.inputs.layouts import Values
from microcoder.data.inputs.mutating import vary
from microcoder.judge.core.config import Config

_FEW = 3
"""Inputs that a pair is first tried on."""
_MOST_ORDERS = 6
_MOST_CLOSE = 24
"""Pairs of one form of the problem that are tried on all inputs."""
_MOST_FORMS = 4
_LABELS_SHARE, _LABELS_TIMES = 0.9, 3
"""Of programs that answer by a label: how far they must agree on varied inputs, and how many times
more of these they are asked about."""
_ENOUGH_PROGRAMS = 10
"""From so many on, how many of them agree by chance is measured."""


class BehaviourSettings(Config):
    """When a problem counts as a benchmark's if their programs do the same (thresholds: docs/contamination.md)."""

    is_on: bool = True
    """Whether programs are compared where benchmarks are named; a problem takes about half a CPU second."""
    min_inputs: int = Field(default=4, ge=1)
    """Different inputs on which they must agree (our choice)."""
    min_bits: float = Field(default=14.0, gt=0)
    """Evidence: minus the binary logarithm of how likely an unrelated program agrees as far (our choice)."""
    min_own_share: float = Field(default=0.9, gt=0, le=1)
    """Share of the problem's own inputs on which the benchmark's program must give its answer (our choice)."""
    min_other_share: float = Field(default=0.75, gt=0, le=1)
    """Share of the benchmark's inputs on which the problem's program must give the benchmark's answer (our choice)."""
    min_varied_share: float = Field(default=0.75, gt=0, le=1)
    """Share of the varied inputs on which both programs must give the same (our choice)."""
    num_varied: int = Field(default=16, ge=0)
    """Varied inputs that both programs are run on (our choice)."""


@dataclass(frozen=True, slots=True)
class BehaviourIndex:
    """The forms of benchmarks' problems by the kinds of their values."""

    forms: tuple[Form, ...]
    by_kinds: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A form of the problem beside a form of a benchmark's, and which value stands for which."""

    own: Form
    other: Form
    order: tuple[int, ...]
    """For each value of the benchmark's, its place among the problem's own."""

    def there(self, values: Values) -> object:
        """Return the input of the benchmark's program that holds the problem's values."""
        return self.other.layout.render(tuple(values[place] for place in self.order))

    def back(self, values: Values) -> Values:
        """Return the benchmark's values in the problem's order."""
        own: list[object] = [None] * len(values)
        for value, place in zip(values, self.order, strict=True):
            own[place] = value
        return tuple(own)


def index_behaviour(benchmark: Iterable[Candidate]) -> BehaviourIndex:
    """Index the problems of benchmarks that have a program or cases; nothing is run."""
    forms = tuple(form for problem in benchmark for form in find_forms(problem)[:_MOST_FORMS])
    by_kinds: dict[str, list[int]] = defaultdict(list)
    for number, form in enumerate(forms):
        for key in _keys(form.kinds):
            by_kinds[key].append(number)
    return BehaviourIndex(forms, {key: tuple(numbers) for key, numbers in by_kinds.items()})


def _keys(kinds: Sequence[str]) -> set[str]:
    """Return the kinds in any order; an empty list may be of anything."""
    if "E" not in kinds:
        return {"".join(sorted(kinds))}
    return {"".join(sorted(any_of if kind == "E" else kind for kind in kinds)) for any_of in "NSTR"}


def find_behaviour(
    candidate: Candidate, index: BehaviourIndex, runner: ProgramRunner, settings: BehaviourSettings | None = None
) -> list[Hit]:
    """Return the benchmark problems whose program does what a candidate asks for, the strongest evidence first."""
    settings = settings or BehaviourSettings()
    pairs = _pairs(candidate, index)
    if not pairs:
        return []
    best: dict[str, Hit] = {}
    trials = [_Trial(pair, chance) for pair, chance in _close(pairs, runner)]
    for phase in (partial(_try_cases, is_there=True), partial(_try_cases, is_there=False), _try_varied):
        trials = phase(trials, runner, settings)
    for hit in filter(None, (trial.hit(settings) for trial in trials)):
        if hit.problem_id not in best or hit.score > best[hit.problem_id].score:
            best[hit.problem_id] = hit
    return sorted(best.values(), key=lambda hit: (-hit.score, hit.problem_id))


@dataclass
class _Trial:
    """A pair that is close, and what speaks for it so far."""

    pair: _Pair
    chance: float
    bits: float = 0.0
    num: int = 0
    said: tuple[str, ...] = ()
    how: str = ""
    """The freedom that was taken in comparing outputs so far."""

    @property
    def has_labels(self) -> bool:
        """Whether inputs are only sorted into two or three kinds: there most programs agree mostly."""
        return are_labels([case.expected for case in self.pair.own.cases])

    def add(self, agreement: Agreement, said: str) -> None:
        """Take what a phase showed into account."""
        self.bits += agreement.bits
        self.num += sum(agreement.agreed)
        self.said += (said,)
        self.how = agreement.how if self.how in ("", "same") else self.how

    def hit(self, settings: BehaviourSettings) -> Hit | None:
        """Return the evidence, where there is enough."""
        if self.bits < settings.min_bits or self.num < settings.min_inputs:
            return None
        said = "; ".join((*self.said, f"inputs: {describe_kinds(self.pair.own.kinds)}"))
        return Hit(self.pair.other.id, "behaviour", round(self.bits, 1), said)


def _pairs(candidate: Candidate, index: BehaviourIndex) -> list[_Pair]:
    pairs = []
    for own in find_forms(candidate)[:_MOST_FORMS]:
        numbers = dict.fromkeys(number for key in sorted(_keys(own.kinds)) for number in index.by_kinds.get(key, ()))
        for other in (index.forms[number] for number in numbers):
            if other.program or own.program:
                orders = (o for o in permutations(range(len(own.kinds))) if _fits(own.kinds, other.kinds, o))
                pairs += [_Pair(own, other, order) for order in islice(orders, _MOST_ORDERS)]
    return pairs


def _fits(own: Sequence[str], other: Sequence[str], order: Sequence[int]) -> bool:
    return all(
        own[place] == kind or ("E" in (own[place], kind) and {own[place], kind} <= set("ENSTR"))
        for place, kind in zip(order, other, strict=True)
    )


def _close(pairs: Sequence[_Pair], runner: ProgramRunner) -> list[tuple[_Pair, float]]:
    """Return the pairs that agree on a few inputs, with the share of all that do so on these."""
    forward = [pair for pair in pairs if pair.other.program]
    given = runner.run([_ask_other(pair, [case.values for case in pair.own.cases[:_FEW]]) for pair in forward])
    found: list[tuple[float, _Pair]] = []
    agreeing: set[tuple[str, str]] = set()
    for pair, outputs in zip(forward, given, strict=True):
        agreement = _agree(pair.own.cases[:_FEW], outputs, is_there=True)
        if agreement.share == 1:
            found.append((agreement.bits, pair))
            agreeing |= {(repr(pair.own.layout), pair.other.id)} if agreement.how == "same" else set()
    backward = [pair for pair in pairs if not pair.other.program]
    given = runner.run([_ask_own(pair, [case.values for case in pair.other.cases[:_FEW]]) for pair in backward])
    for pair, outputs in zip(backward, given, strict=True):
        agreement = _agree(pair.other.cases[:_FEW], outputs, is_there=False)
        if agreement.share == 1:
            found.append((agreement.bits, pair))
    num_programs = len({pair.other.id for pair in forward})
    chance = max(0, len({name for _, name in agreeing}) - 2) / num_programs if num_programs >= _ENOUGH_PROGRAMS else 0.0
    found.sort(key=lambda item: -item[0])
    # Counted form by form: where an input is misread as many cases of one value each, dozens of programs that give back
    # what they get are close, and would leave no place for the form that is right.
    num_taken: dict[str, int] = defaultdict(int)
    close = []
    for _, pair in found:
        form = f"{pair.own.layout!r} {pair.own.kinds}"
        num_taken[form] += 1
        if num_taken[form] <= _MOST_CLOSE:
            close.append((pair, chance))
    return close


def _ask_own(pair: _Pair, inputs: Sequence[Values]) -> ProgramRun:
    """Return the run of the problem's own program on the benchmark's values."""
    return ProgramRun(
        pair.own.program, pair.own.entry, tuple(pair.own.layout.render(pair.back(values)) for values in inputs)
    )


def _ask_other(pair: _Pair, inputs: Sequence[Values]) -> ProgramRun:
    """Return the run of the benchmark's program on the problem's values."""
    return ProgramRun(pair.other.program, pair.other.entry, tuple(map(pair.there, inputs)))


def _agree(
    cases: Sequence[ValueCase], outputs: Sequence[Tokens | None], *, is_there: bool, chance: float = 0.0, how: str = ""
) -> Agreement:
    """Compare what cases expect with what a program gave; nothing is never right."""
    expected = [case.expected for case in cases]
    given: list[Tokens] = [("\0nothing",) if output is None else output for output in outputs]
    # The problem's own side first, so that a freedom is the same one in both directions.
    own, other = (expected, given) if is_there else (given, expected)
    reaches = [_reach(case.values) for case in cases]
    return compare(own, other, reaches=reaches, chances=[chance] * len(cases), how=how)


def _reach(values: Values) -> int:
    """Return the length of the longest list or text of an input."""
    return max((len(value) for value in values if isinstance(value, list | str)), default=0)


def _try_cases(
    trials: Sequence[_Trial], runner: ProgramRunner, settings: BehaviourSettings, *, is_there: bool
) -> list[_Trial]:
    """Run the programs of one side on all cases of the other; return the trials that go on.

    Args:
        trials: what is close.
        runner: runs programs.
        settings: how many must agree.
        is_there: the benchmark's programs on the problem's own inputs; otherwise the other way round.
    """
    least = settings.min_own_share if is_there else settings.min_other_share
    asked = []
    for trial in trials:
        program, cases = _side(trial.pair, is_there=is_there)
        inputs = [case.values for case in cases] if program else []
        asked.append((_ask_other if is_there else _ask_own)(trial.pair, inputs))
    left = []
    for trial, outputs in zip(trials, runner.run(asked), strict=True):
        _, cases = _side(trial.pair, is_there=is_there)
        if outputs:
            chance = trial.chance if is_there else 0.0
            found = _agree(cases, outputs, is_there=is_there, chance=chance, how=trial.how)
            if found.share < least:
                continue
            who, where = ("its program", "here") if is_there else ("the program here", "there")
            trial.add(found, f"{who} gives {sum(found.agreed)} of {len(cases)} answers {where} ({found.how})")
        left.append(trial)
    return left


def _side(pair: _Pair, *, is_there: bool) -> tuple[str, tuple[ValueCase, ...]]:
    """Return the program of one side and the cases of the other."""
    return (pair.other.program, pair.own.cases) if is_there else (pair.own.program, pair.other.cases)


def _try_varied(trials: Sequence[_Trial], runner: ProgramRunner, settings: BehaviourSettings) -> list[_Trial]:
    """Run both programs on varied inputs; where one gives nothing, the input says nothing."""
    asked: list[ProgramRun] = []
    reaches: list[list[int]] = []
    for trial in trials:
        pair = trial.pair
        known = [case.values for case in pair.own.cases] + [pair.back(case.values) for case in pair.other.cases]
        has_both = bool(pair.own.program and pair.other.program)
        num = settings.num_varied * (_LABELS_TIMES if trial.has_labels else 1)
        inputs = vary(known, num=num if has_both else 0, seed=f"{pair.own.id} {pair.other.id}")
        asked.append(_ask_own(pair, [tuple(values[place] for place in pair.order) for values in inputs]))
        asked.append(_ask_other(pair, inputs))
        reaches.append([_reach(values) for values in inputs])
    given = runner.run(asked)
    left = []
    for trial, ours, theirs, lengths in zip(trials, given[::2], given[1::2], reaches, strict=True):
        both = [one for one in zip(ours, theirs, lengths, strict=True) if one[0] is not None and one[1] is not None]
        if both:
            own, other, reach = map(list, zip(*both, strict=True))
            found = compare(own, other, reaches=reach, how=trial.how)
            if found.share < max(settings.min_varied_share, _LABELS_SHARE if trial.has_labels else 0.0):
                continue
            trial.add(found, f"both give the same on {sum(found.agreed)} of {len(both)} varied inputs")
        left.append(trial)
    return left

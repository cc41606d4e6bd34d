"""Finds benchmark problems by behaviour: the program of one problem is run on the inputs of the other.

    Candidate -> forms -> benchmark's forms of the same kinds -> a few inputs -> all inputs, both ways -> Hit

Another story, language or input format changes the words, but not what a program computes.

A `Form` is a problem as a function of values: its cases, whatever their text format, and its program.
"""

from __future__ import annotations

import ast
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice, permutations
from typing import Any, NamedTuple

from microcoder.data.behaviour.outputs import (
    Agreement,
    Outputs,
    ProgramRun,
    Tokens,
    are_labels,
    compare,
    kind_of,
    run_programs,
    tokens_of_json,
    tokens_of_text,
)
from microcoder.data.clean.sections import split
from microcoder.data.filter.contamination import Hit
from microcoder.data.filter.keys import LONGEST_EXAMPLE
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.values import read_literal
from microcoder.data.inputs.layouts import (
    Layout,
    Read,
    Values,
    read_calls,
    read_texts,
    split_repeated,
)
from microcoder.data.inputs.mutating import vary
from microcoder.judge import Judge
from microcoder.judge.core.digits import dump_json, parse_json
from microcoder.judge.core.syntax import evaluate_literal, parse_source

_MOST_CASES = 24
_NAMED = re.compile(r"(?:^|[,;\s])\s*[A-Za-z_]\w*\s*=(?!=)\s*")
_DOCTEST = re.compile(r"^[ \t]*>>> ?([^\n]{1,300})\n[ \t]*([^\n>]{1,300})$", re.MULTILINE)
_METHOD = re.compile(r"def\s+(\w+)\s*\(")


class ValueCase(NamedTuple):
    """Input values, and the expected output as tokens."""

    values: Values
    expected: Tokens


@dataclass(frozen=True, slots=True)
class Form:
    """One reading of a problem's inputs as values: their kinds, its cases in that form, and a right program."""

    id: str
    kinds: tuple[str, ...]
    """Kind of each input value, in order (see `kind_of`)."""
    cases: tuple[ValueCase, ...]
    layout: Layout
    """How values are written as an input of the program."""
    program: str = ""
    """A Python program known to be right; empty where there is none."""
    entry: str = ""
    """The function to call; empty for a program that reads stdin."""


def find_forms(candidate: Candidate) -> list[Form]:
    """Return the possible readings of a problem's inputs, the likeliest first; empty if no small case can be read."""
    if candidate.call is not None and candidate.call.style == "design":
        return []
    entry = _entry_of(candidate)
    pairs = _examples_of(candidate, is_call=bool(entry))
    if not pairs:
        return []
    programs = (
        one.code
        for one in candidate.solutions
        if one.known == "accepted" and one.language == "python"
    )
    program = next(programs, "")
    inputs, outputs = [given for given, _ in pairs], [output for _, output in pairs]
    if (
        entry
        and candidate.call is not None
        and any(kind != "json" for kind in candidate.call.parameters)
    ):
        return []
    found: list[tuple[Read, Sequence[str]]] = []
    if entry:
        found += [(read, outputs) for read in read_calls(inputs)]
    else:
        cases, said = split_repeated(inputs, outputs) or ([], [])
        of_cases = [
            replace(read, layout=Layout(read.layout.items, is_repeated=True))
            for read in read_texts(cases)[:2]
        ]
        found += [
            *((read, said) for read in of_cases),
            *((read, outputs) for read in read_texts(inputs)),
        ]
    tokens = tokens_of_json if entry else tokens_of_text
    forms = [
        _form(candidate, read, list(map(tokens, said)), program, entry) for read, said in found
    ]
    # None that takes a number for the length of a list whose items have no known kind.
    return [
        form
        for form in forms
        if "x" not in form.kinds or all(i.form != "count" for i in form.layout.items)
    ]


def _form(
    candidate: Candidate, read: Read, expected: Sequence[Tokens], program: str, entry: str
) -> Form:
    cases: dict[str, ValueCase] = {}
    for values, said in zip(read.values, expected, strict=True):
        cases.setdefault(json.dumps(values), ValueCase(values, said))
    kinds = tuple(kind_of(column) for column in zip(*read.values, strict=True))
    return Form(
        candidate.id, kinds, tuple(cases.values())[:_MOST_CASES], read.layout, program, entry
    )


def _entry_of(candidate: Candidate) -> str:
    if candidate.fn_name:
        return candidate.fn_name.rpartition(".")[2]
    # LiveCodeBench's published results name the function in the starter code alone.
    names = [
        name for name in _METHOD.findall(candidate.starter_code or "") if not name.startswith("__")
    ]
    return names[0] if names else ""


def _examples_of(candidate: Candidate, *, is_call: bool) -> list[tuple[Any, str]]:
    """Return (input, output) of small tests and of the statement's examples; a function's input is an argument list."""
    shown = split(candidate.statement).examples
    pairs: list[tuple[Any, str]] = []
    for given, output in [(one.input, one.output) for one in (*candidate.tests, *shown)]:
        if not output.strip() or len(given) > LONGEST_EXAMPLE or len(output) > LONGEST_EXAMPLE:
            continue
        if not is_call:
            pairs.append((given, output))
        elif (arguments := _read_arguments(given)) is not None:
            pairs.append((arguments, output))
    if is_call:
        pairs += _doctests(candidate)
    widths = [len(arguments) for arguments, _ in pairs] if is_call else []
    usual = max(set(widths), key=widths.count, default=0)
    return [pair for pair in pairs if not is_call or len(pair[0]) == usual]


def _doctests(candidate: Candidate) -> list[tuple[list[Any], str]]:
    """Return (arguments, value as JSON) of a statement's doctests: `>>> f(1, 2)` and, below it, the value."""
    found = []
    for call, shown in _DOCTEST.findall(candidate.statement):
        try:
            node = parse_source(call.strip(), mode="eval").body
            if isinstance(node, ast.Call) and not node.keywords:
                arguments = json.loads(
                    json.dumps([ast.literal_eval(argument) for argument in node.args])
                )
                found.append((arguments, json.dumps(evaluate_literal(shown.strip()))))
        except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
            continue
    return found


def _read_arguments(text: str) -> list[Any] | None:
    """Return arguments written as one JSON value a line, or as `nums = [1, 2], k = 3`; None if they are neither."""
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        return [parse_json(line) for line in lines]
    except (ValueError, RecursionError):
        pass
    parts = [part.strip().rstrip(",") for part in _NAMED.split(text)[1:]]
    try:
        return parse_json(dump_json([read_literal(part) for part in parts])) or None
    except (ValueError, TypeError, RecursionError):
        return None


_FEW = 3
"""Number of inputs on which a pair of forms is tried first."""
_MOST_ORDERS = 6
_MOST_CLOSE = 24
"""At most so many pairs per form of the problem are then tried on all inputs."""
_MOST_FORMS = 4
_LABELS_SHARE, _LABELS_TIMES = 0.9, 3
"""If outputs are labels: share of varied inputs on which programs must agree, and how many times more of
these inputs are run."""
_ENOUGH_PROGRAMS = 10
"""Fewest benchmark programs from which the share that agrees by chance is estimated."""

# When two problems do the same (our choices, measured in docs/contamination.md): on how many different inputs at least
# they agree, with how many bits of evidence, minus the binary logarithm of how likely an unrelated program agrees as
# far; and on which shares of the problem's own inputs, the benchmark's, and the varied ones.
_LEAST_INPUTS, _LEAST_BITS = 4, 14.0
_OWN_SHARE, _OTHER_SHARE, _VARIED_SHARE = 0.9, 0.75, 0.75
_NUM_VARIED = 16


@dataclass(frozen=True, slots=True)
class BehaviourIndex:
    """Forms of benchmark problems, and the indices of these forms by the kinds of their values (see `_keys`)."""

    forms: tuple[Form, ...]
    by_kinds: dict[str, tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class _Pair:
    """A form of the problem, a form of a benchmark problem, and how their values correspond."""

    own: Form
    other: Form
    order: tuple[int, ...]
    """For each value of the benchmark's form, the index of the problem's own value."""

    @property
    def turned(self) -> _Pair:
        """The pair with the problem and the benchmark's problem swapped."""
        return _Pair(self.other, self.own, tuple(map(self.order.index, range(len(self.order)))))

    def arrange(self, values: Values) -> Values:
        """Return the problem's values in the benchmark's order."""
        return tuple(values[place] for place in self.order)

    def there(self, values: Values) -> object:
        """Return the problem's values as an input of the benchmark's program: arguments, or a text for stdin."""
        return self.other.layout.render(self.arrange(values))


def index_behaviour(benchmark: Iterable[Candidate]) -> BehaviourIndex:
    """Index the forms of benchmark problems for `find_behaviour`; nothing is run."""
    forms = tuple(form for problem in benchmark for form in find_forms(problem)[:_MOST_FORMS])
    by_kinds: dict[str, list[int]] = defaultdict(list)
    for number, form in enumerate(forms):
        for key in _keys(form.kinds):
            by_kinds[key].append(number)
    return BehaviourIndex(forms, {key: tuple(numbers) for key, numbers in by_kinds.items()})


def _keys(kinds: Sequence[str]) -> set[str]:
    """Return index keys that do not depend on the order of kinds; `E`, only empty lists, may be any kind of list."""
    if "E" not in kinds:
        return {"".join(sorted(kinds))}
    return {"".join(sorted(any_of if kind == "E" else kind for kind in kinds)) for any_of in "NSTR"}


def find_behaviour(candidate: Candidate, index: BehaviourIndex, judge: Judge) -> list[Hit]:
    """Return a hit for each benchmark problem that behaves as a candidate does, the strongest evidence first."""
    pairs = _pairs(candidate, index)
    if not pairs:
        return []
    trials = [_Trial(pair, chance) for pair, chance in _close(pairs, judge)]
    for phase in (
        partial(_try_cases, is_there=True),
        partial(_try_cases, is_there=False),
        _try_varied,
    ):
        trials = phase(trials, judge)
    best: dict[str, Hit] = {}
    hits = filter(None, (trial.hit() for trial in trials))
    for hit in sorted(hits, key=lambda hit: (-hit.score, hit.problem_id)):
        best.setdefault(hit.problem_id, hit)
    return list(best.values())


@dataclass
class _Trial:
    """A pair of forms that agreed on a few inputs, with the evidence for it so far."""

    pair: _Pair
    chance: float
    bits: float = 0.0
    num: int = 0
    said: tuple[str, ...] = ()
    how: str = ""
    """`Agreement.how` of the phases so far; empty before the first."""

    @property
    def has_labels(self) -> bool:
        """Whether the outputs are a few labels, on which unrelated programs often agree."""
        return are_labels([case.expected for case in self.pair.own.cases])

    def add(self, agreement: Agreement, said: str) -> None:
        """Add the agreement of one phase to the evidence; `said` describes it, for the detail of a hit."""
        self.bits += agreement.bits
        self.num += sum(agreement.agreed)
        self.said += (said,)
        self.how = agreement.how if self.how in ("", "same") else self.how

    def hit(self) -> Hit | None:
        """Return the hit, or None if there is too little evidence."""
        if self.bits < _LEAST_BITS or self.num < _LEAST_INPUTS:
            return None
        return Hit(self.pair.other.id, "behaviour", round(self.bits, 1), "; ".join(self.said))


def _pairs(candidate: Candidate, index: BehaviourIndex) -> list[_Pair]:
    pairs = []
    for own in find_forms(candidate)[:_MOST_FORMS]:
        numbers = dict.fromkeys(
            number for key in sorted(_keys(own.kinds)) for number in index.by_kinds.get(key, ())
        )
        for other in (index.forms[number] for number in numbers):
            if other.program or own.program:
                orders = (
                    o
                    for o in permutations(range(len(own.kinds)))
                    if _fits(own.kinds, other.kinds, o)
                )
                pairs += [_Pair(own, other, order) for order in islice(orders, _MOST_ORDERS)]
    return pairs


def _fits(own: Sequence[str], other: Sequence[str], order: Sequence[int]) -> bool:
    return all(
        own[place] == kind or ("E" in (own[place], kind) and {own[place], kind} <= set("ENSTR"))
        for place, kind in zip(order, other, strict=True)
    )


def _close(pairs: Sequence[_Pair], judge: Judge) -> list[tuple[_Pair, float]]:
    """Return the pairs that agree on a few inputs, the best of each form, with the estimated share of chance."""
    found: list[tuple[float, _Pair]] = []
    agreeing: set[tuple[str, str]] = set()
    for is_there in (True, False):
        some = [pair for pair in pairs if bool(pair.other.program) is is_there]
        for pair, (cases, outputs) in zip(
            some, _run(some, judge, is_there=is_there, most=_FEW), strict=True
        ):
            agreement = _agree(cases, outputs, is_there=is_there)
            if agreement.share == 1:
                found.append((agreement.bits, pair))
                if is_there and agreement.how == "same":
                    agreeing.add((repr(pair.own.layout), pair.other.id))
    num_programs = len({pair.other.id for pair in pairs if pair.other.program})
    chance = (
        max(0, len({name for _, name in agreeing}) - 2) / num_programs
        if num_programs >= _ENOUGH_PROGRAMS
        else 0.0
    )
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


def _run(
    pairs: Sequence[_Pair], judge: Judge, *, is_there: bool, most: int | None = None
) -> Iterable[tuple[Sequence[ValueCase], list[Tokens | None]]]:
    """Run one side's program (`is_there`: the benchmark's) on the other's cases; return cases and outputs by pair."""
    seen = pairs if is_there else [pair.turned for pair in pairs]
    cases_of = [pair.own.cases[:most] for pair in seen]
    asked = [
        ProgramRun(
            form.program,
            form.entry,
            tuple(pair.there(case.values) for case in cases) if form.program else (),
        )
        for pair, cases, form in zip(seen, cases_of, (pair.other for pair in seen), strict=True)
    ]
    return zip(cases_of, run_programs(asked, judge), strict=True)


def _agree(
    cases: Sequence[ValueCase],
    outputs: Outputs,
    *,
    is_there: bool,
    chance: float = 0.0,
    how: str = "",
) -> Agreement:
    """Compare the expected outputs of cases with a program's; None, no output, agrees with nothing."""
    expected = [case.expected for case in cases]
    # The problem's own side first, so that a freedom is the same one in both directions.
    return compare(
        *((expected, outputs) if is_there else (outputs, expected)), chance=chance, how=how
    )


def _try_cases(trials: Sequence[_Trial], judge: Judge, *, is_there: bool) -> list[_Trial]:
    """Run the programs of one side on all cases of the other; return the trials that still agree."""
    least = _OWN_SHARE if is_there else _OTHER_SHARE
    left = []
    ran = _run([trial.pair for trial in trials], judge, is_there=is_there)
    for trial, (cases, outputs) in zip(trials, ran, strict=True):
        if outputs:
            chance = trial.chance if is_there else 0.0
            found = _agree(cases, outputs, is_there=is_there, chance=chance, how=trial.how)
            if found.share < least:
                continue
            who, where = ("its program", "here") if is_there else ("the program here", "there")
            trial.add(
                found,
                f"{who} gives {sum(found.agreed)} of {len(cases)} answers {where} ({found.how})",
            )
        left.append(trial)
    return left


def _try_varied(trials: Sequence[_Trial], judge: Judge) -> list[_Trial]:
    """Run both programs on varied inputs; return the trials that still agree where both have an output."""
    asked: list[ProgramRun] = []
    for trial in trials:
        pair = trial.pair
        back = pair.turned.arrange
        known = [case.values for case in pair.own.cases] + [
            back(case.values) for case in pair.other.cases
        ]
        has_both = bool(pair.own.program and pair.other.program)
        num = _NUM_VARIED * (_LABELS_TIMES if trial.has_labels else 1)
        inputs = vary(known, num=num if has_both else 0, seed=f"{pair.own.id} {pair.other.id}")
        asked.append(
            ProgramRun(pair.own.program, pair.own.entry, tuple(map(pair.own.layout.render, inputs)))
        )
        asked.append(
            ProgramRun(pair.other.program, pair.other.entry, tuple(map(pair.there, inputs)))
        )
    given = run_programs(asked, judge)
    left = []
    for trial, ours, theirs in zip(trials, given[::2], given[1::2], strict=True):
        both = [
            (one, other)
            for one, other in zip(ours, theirs, strict=True)
            if one is not None and other is not None
        ]
        if both:
            found = compare(*map(list, zip(*both, strict=True)), how=trial.how)
            if found.share < max(_VARIED_SHARE, _LABELS_SHARE if trial.has_labels else 0.0):
                continue
            trial.add(
                found, f"both give the same on {sum(found.agreed)} of {len(both)} varied inputs"
            )
        left.append(trial)
    return left

"""Runs many programs on many small inputs in few sandboxed processes, and says how far their outputs agree.

Outputs are tokens, whatever their text format; inputs have kinds.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from microcoder.judge import Judge
from microcoder.judge.core.digits import parse_json
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Program
from microcoder.judge.run.executions import Invocation

_INSIDE = (Path(__file__).parent / "inside.py").read_text(encoding="utf-8")
_SECONDS_AN_INPUT = 0.05
_SECONDS_A_PROCESS = 30.0
_WALL_SECONDS_A_PROCESS = 300.0
_MEMORY_MIB, _SPARE_MEMORY_MIB = 256, 128
"""Memory of a process, and its spare memory: compared inputs are small, and all processes count as the build's.
A program that takes a number for the length of a list uses up both."""
_MOST_RUNS = 4000
_MOST_DEATHS = 20
"""How many processes programs may kill in one call before the remaining ones are skipped."""


class ProgramRun(NamedTuple):
    """A program, the function to call (empty: none), and its inputs: lists of arguments, or texts for stdin."""

    code: str
    entry: str
    inputs: tuple[Any, ...]


def run_programs(runs: Sequence[ProgramRun], judge: Judge) -> list[list[Tokens | None]]:
    """Return, by run, the output tokens of each input, None without output; EvaluatorFault if a sandbox fails."""
    # Forms of one problem often ask the same of a program.
    keys = [json.dumps(one) for one in runs]
    found = dict(_ask(dict(zip(keys, runs, strict=True)), judge))
    return [[_tokens(said) for said in found[key]] for key in keys]


def _ask(left: dict[str, ProgramRun], judge: Judge) -> Iterable[tuple[str, list[Any]]]:
    """Yield key and raw outputs of each run; a program that kills its process loses only its own outputs."""
    waiting = [(key, run) for key, run in left.items() if run.inputs]
    yield from ((key, []) for key, run in left.items() if not run.inputs)
    deaths = 0
    while waiting:
        sizes = accumulate(len(run.inputs) for _, run in waiting)
        batch = waiting[: max(1, sum(1 for _ in takewhile(lambda size: size <= _MOST_RUNS, sizes)))]
        said = _process([run for _, run in batch], judge)
        whole = [
            len(of_run) == len(run.inputs) for of_run, (_, run) in zip(said, batch, strict=True)
        ]
        num_whole = whole.index(False) if False in whole else len(whole)
        yield from ((key, said[number]) for number, (key, _) in enumerate(batch[:num_whole]))
        waiting = waiting[num_whole:]
        if num_whole < len(batch):
            key, run = waiting.pop(0)
            missing = len(run.inputs) - len(said[num_whole])
            yield key, [*said[num_whole], *[["none", "ended"]] * missing]
            deaths += 1
            if deaths > _MOST_DEATHS:
                yield from ((key, [["none", "not run"]] * len(run.inputs)) for key, run in waiting)
                return


def _process(runs: Sequence[ProgramRun], judge: Judge) -> list[list[Any]]:
    sources = list(dict.fromkeys((run.code, run.entry) for run in runs))
    number = {source: place for place, source in enumerate(sources)}
    asked = {
        "programs": [{"code": code, "entry": entry} for code, entry in sources],
        "runs": [[number[run.code, run.entry], run.inputs] for run in runs],
        "seconds": _SECONDS_AN_INPUT,
    }
    invocation = Invocation(
        Program(_INSIDE),
        stdin=json.dumps(asked).encode(),
        cpu_seconds=_SECONDS_A_PROCESS,
        # A busy machine must not decide what is kept.
        wall_seconds=_WALL_SECONDS_A_PROCESS,
        memory_limit_mib=_MEMORY_MIB,
        spare_memory_mib=_SPARE_MEMORY_MIB,
    )
    execution = judge.run(invocation)
    if not execution.is_conclusive:
        execution = judge.run(invocation)
    if not execution.is_conclusive:
        raise EvaluatorFault(
            f"the sandbox failed twice ({execution.detail}); type the same command again, or microcoder doctor"
        )
    said: list[list[Any]] = [[] for _ in runs]
    for line in execution.stdout.split(b"\n"):
        try:
            place, _, *found = json.loads(line)
        except ValueError:
            continue  # the last line of a process that was ended
        said[place].append(found)
    return said


def _tokens(said: Sequence[Any]) -> Tokens | None:
    kind, content = said
    if kind == "none":
        return None
    return tokens_of_text(content) if kind == "text" else tokens_of_value(content)


Tokens = tuple[str, ...]
"""An output as its numbers and words: no brackets, no quotes, `5` for `5.0`, `true` for `True`."""
Outputs = Sequence[Tokens | None]
"""A program's outputs, one per input; None, no output, agrees with nothing and is no label."""

_TOKEN = re.compile(r"[^\s,\[\](){}\"'`]+")
_NOTHING: frozenset[Tokens] = frozenset({(), ("-1",), ("none",), ("0",), ("1",)})
_SMALL = 10
_FEW_LABELS = 3
_FLAG_CHANCE, _SMALL_CHANCE, _OTHER_CHANCE = 0.5, 0.25, 0.06
"""How often an unrelated program gives the same: one of two labels, a number of one digit, anything else."""
_RELABEL_COST = 3.0
"""Bits subtracted from the evidence where outputs agree only with their labels renamed."""


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind that all values of one input are of, as a letter: `n` a number, `N` a list of them, `T` a list of
    lists, `s` a text, `S` texts, `R` lists of texts, `b` a flag, `E` only empty lists, `x` anything else."""
    kinds = {_kind(value) for value in values}
    kinds = kinds - {"E"} or kinds
    return kinds.pop() if len(kinds) == 1 else "x"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "b"
    if isinstance(value, int | float):
        return "n"
    if isinstance(value, str):
        return "s"
    if not isinstance(value, list):
        return "x"
    return (
        {"n": "N", "s": "S", "N": "T", "S": "R", "E": "T"}.get(kind_of(value), "x")
        if value
        else "E"
    )


def tokens_of_value(value: Any) -> Tokens:
    """Return the tokens of a value that a function returned; lists, tuples and dicts are flattened."""
    found: list[str] = []
    _flatten(value, found)
    return tuple(found)


def tokens_of_text(text: str) -> Tokens:
    """Return the tokens of what a program printed."""
    return tuple(_normal(token) for token in _TOKEN.findall(text))


def tokens_of_json(text: str) -> Tokens:
    """Return the tokens of an expected value in JSON; of the text itself if it is not JSON."""
    try:
        return tokens_of_value(parse_json(text))
    except (ValueError, RecursionError):
        return tokens_of_text(text)


def _flatten(value: Any, found: list[str]) -> None:
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(key, found)
            _flatten(item, found)
    elif isinstance(value, list | tuple):
        for item in value:
            _flatten(item, found)
    elif isinstance(value, str):
        found.extend(tokens_of_text(value))
    else:
        found.append(_normal(str(value)))


def _normal(token: str) -> str:
    try:
        number = float(token)
    except ValueError:
        return token.lower()
    if not math.isfinite(number) or "_" in token:
        return token.lower()
    if number == int(number) and abs(number) < 1e15:
        # A leading zero is a digit of a text.
        return token if re.fullmatch(r"-?0\d+", token) else str(int(number))
    return token if re.fullmatch(r"-?\d+", token) else f"{number:.5g}"


class Agreement(NamedTuple):
    """How far two programs' outputs agree."""

    agreed: tuple[bool, ...]
    """Whether the outputs are equal, for each input in order."""
    bits: float
    """Evidence: minus the binary logarithm of the chance that an unrelated program agrees as far."""
    how: str
    """How outputs were compared: `same`, as they are, or `with other words`, after renaming labels one to one."""

    @property
    def share(self) -> float:
        """Share of inputs on which the outputs agree, 0 to 1; 0 without inputs."""
        return sum(self.agreed) / len(self.agreed) if self.agreed else 0.0


def compare(one: Outputs, other: Outputs, *, chance: float = 0.0, how: str = "") -> Agreement:
    """Return how far two programs' outputs on the same inputs agree, in the way in which they agree most.

    Args:
        one: a program's outputs, one per input.
        other: the other program's.
        chance: the share of unrelated programs that agree on an input, where it was measured.
        how: `how` of the agreement on other inputs, if any: the same renaming costs no further bits.
    """
    counts = Counter(one)
    # Of two or three labels every program gives one, whatever words they are.
    least = max(chance, _FLAG_CHANCE if are_labels([o for o in one if o is not None]) else 0.0)
    odds = [max(_chance(output or ()), (counts[output] - 1) / len(one), least) for output in one]
    same = [a == b is not None for a, b in zip(one, other, strict=True)]
    # Each way to compare: its name, where it agrees, and where that says something.
    ways = [("same", same, [True] * len(one))]
    ways += [] if all(same) else [("with other words", *_relabel(one, other))]
    found = []
    for name, agreed, tells in ways:
        counted = [
            odd for odd, is_same, says in zip(odds, agreed, tells, strict=True) if is_same and says
        ]
        bits = sum(-math.log2(min(odd, 0.99)) for odd in counted)
        cost = 0.0 if name in ("same", how) else _RELABEL_COST
        found.append(Agreement(tuple(agreed), bits - cost, name))
    return max(found, key=lambda way: (sum(way.agreed), way.bits))


def _chance(output: Tokens) -> float:
    if len(output) > 1:
        return _OTHER_CHANCE
    word = output[0] if output else ""
    if word in ("true", "false", "yes", "no", "none", "", "0", "1", "-1"):
        return _FLAG_CHANCE
    try:
        return _SMALL_CHANCE if abs(float(word)) <= _SMALL else _OTHER_CHANCE
    except ValueError:
        return _SMALL_CHANCE if len(word) <= 2 else _OTHER_CHANCE


def _relabel(one: Outputs, other: Outputs) -> tuple[list[bool], list[bool]]:
    """Match labels one to one; return where outputs agree, and where that is evidence: not where a match is new."""
    there: dict[Tokens | None, Tokens | None] = {}
    back: dict[Tokens | None, Tokens | None] = {}
    agreed, tells = [], []
    for a, b in zip(one, other, strict=True):
        is_label = a is not None and b is not None and _is_label(a) and _is_label(b)
        is_new = is_label and a not in there and b not in back
        if is_new:
            there[a], back[b] = b, a
        agreed.append(
            there[a] == b if is_label and a in there else a == b is not None and not is_label
        )
        tells.append(not is_new)
    return agreed, tells


def are_labels(outputs: Sequence[Tokens]) -> bool:
    """Whether these outputs look like a classification: at most three labels, and more outputs."""
    return len(set(outputs)) <= _FEW_LABELS < len(outputs) and all(map(_is_label, outputs))


def _is_label(output: Tokens) -> bool:
    return output in _NOTHING or (
        len(output) <= 3 and not any(any(map(str.isdigit, token)) for token in output)
    )

"""Runs many programs on many small inputs in few sandboxed processes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import accumulate, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from microcoder.data.behaviour.values import Tokens, tokens_of_text, tokens_of_value
from microcoder.judge import Judge
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
_MOST_FAULTS = 3
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
        whole = [len(of_run) == len(run.inputs) for of_run, (_, run) in zip(said, batch, strict=True)]
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
    for _ in range(_MOST_FAULTS):
        if execution.is_conclusive:
            break
        execution = judge.run(invocation)
    else:
        raise EvaluatorFault(
            f"the sandbox failed {_MOST_FAULTS + 1} times ({execution.detail}); type the same command again, "
            "or microcoder doctor"
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

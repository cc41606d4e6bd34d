"""Runs many programs on many small inputs in few sandboxed processes."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from microcoder.data.behaviour.outputs import LATE, Tokens, tokens_of_text, tokens_of_value
from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Program
from microcoder.judge.run.executions import Invocation

_SANDBOXED = (Path(__file__).parent / "sandboxed.py").read_text(encoding="utf-8")
"""The program that runs the others, in the sandbox."""
SECONDS_AN_INPUT = 0.05
"""CPU seconds that a program may take for an input: compared inputs are small."""
SECONDS_A_PROCESS = 30.0
"""CPU seconds of a process, which the programs in it share."""
_WALL_SECONDS_A_PROCESS = 300.0
"""A busy machine must not decide what is kept."""
_MEMORY_MIB = 256
"""Memory of a process: compared inputs are small, and all processes count as the build's."""
_SPARE_MEMORY_MIB = 128
"""Spare memory of a process.

A program that takes a number for the length of a list uses up both.
"""
_MOST_RUNS = 1000
"""Inputs that one process runs programs on."""
_MOST_DEATHS = 20
"""How many processes the programs of one problem may end before its remaining ones are skipped."""

RawOutput = list[Any]
"""What a process says of one input: `value`, `text` or `none`, and the output or a reason."""
_ENDED: RawOutput = ["none", "ended"]
_NOT_RUN: RawOutput = ["none", "not run"]


class ProgramRun(NamedTuple):
    """A program and its inputs."""

    code: str
    entry: str
    """The function to call; empty where there is none."""
    inputs: tuple[Any, ...]
    """Lists of arguments, or texts for stdin."""
    row: int = 0
    """Index of the problem that asks; what another asks does not end its runs."""


class _Waiting(NamedTuple):
    """A run that is still to be done, and the key under which its outputs are stored."""

    key: str
    run: ProgramRun


class _Limits(NamedTuple):
    """CPU seconds that programs may take."""

    an_input: float
    a_process: float


def run_programs(
    runs: Sequence[ProgramRun],
    judge: Judge,
    *,
    seconds: float = SECONDS_AN_INPUT,
    process_seconds: float = SECONDS_A_PROCESS,
) -> list[list[Tokens | None]]:
    """Return for each run the output tokens of each input.

    None where there was no output, `LATE` where it took too long.

    Args:
        runs: programs and inputs.
        judge: runs them.
        seconds: CPU seconds that a program may take for an input.
        process_seconds: CPU seconds of a process. Programs whose process uses them up run again.

    Raises:
        EvaluatorFault: a sandbox failed.
    """
    # Forms of one problem often ask the same of a program.
    keys = [json.dumps(run) for run in runs]
    outputs: dict[str, list[RawOutput]] = {}
    waiting = []
    for key, run in dict(zip(keys, runs, strict=True)).items():
        if run.inputs:
            waiting.append(_Waiting(key, run))
        else:
            outputs[key] = []
    # By program, since a process loads each once.
    waiting.sort(key=lambda item: (item.run.code, item.run.entry))
    batches = list(_cut_batches(waiting))
    limits = _Limits(seconds, process_seconds)
    run_one = partial(_run_batch, judge=judge, limits=limits)
    # Each thread waits for a process, of which as many run at once as there are workers.
    with ThreadPoolExecutor(judge.workers) as threads:
        for of_batch in threads.map(run_one, batches):
            outputs |= of_batch
    return [list(map(_tokens_of, outputs[key])) for key in keys]


def _run_batch(
    batch: Sequence[_Waiting],
    judge: Judge,
    limits: _Limits,
) -> dict[str, list[RawOutput]]:
    """Return the outputs of each run.

    A program that kills its process loses only its own outputs. It is blamed where it was the first
    one in the process: another one may have met limits that those before it had used up.
    """
    outputs: dict[str, list[RawOutput]] = {}
    num_deaths: Counter[int] = Counter()
    waiting = list(batch)
    while waiting:
        by_run = _run_in_process([item.run for item in waiting], judge, limits)
        num_whole = _count_whole(waiting, by_run)
        # Not strict, since `by_run` also has the runs that the process did not finish.
        for item, run_outputs in zip(
            waiting[:num_whole],
            by_run,
            strict=False,
        ):
            outputs[item.key] = run_outputs
        if num_whole == len(waiting):
            break
        # The first run that is not whole was there at the end; those after it have not begun.
        if num_whole:
            waiting = waiting[num_whole:]
            continue
        killer = waiting[0]
        num_missing = len(killer.run.inputs) - len(by_run[0])
        outputs[killer.key] = by_run[0] + [_ENDED] * num_missing
        waiting = waiting[1:]
        row = killer.run.row
        num_deaths[row] += 1
        if num_deaths[row] > _MOST_DEATHS:
            for item in waiting:
                if item.run.row == row:
                    outputs[item.key] = [_NOT_RUN] * len(item.run.inputs)
            waiting = [item for item in waiting if item.run.row != row]
    return outputs


def _cut_batches(waiting: Sequence[_Waiting]) -> Iterator[Sequence[_Waiting]]:
    """Yield the runs in batches: as many as one process takes, and at least one."""
    batch: list[_Waiting] = []
    num_inputs = 0
    for item in waiting:
        num_inputs += len(item.run.inputs)
        if batch and num_inputs > _MOST_RUNS:
            yield batch
            batch = []
            num_inputs = len(item.run.inputs)
        batch.append(item)
    if batch:
        yield batch


def _count_whole(
    batch: Sequence[_Waiting],
    by_run: Sequence[list[RawOutput]],
) -> int:
    """Return the number of runs before the first that lacks an output."""
    for number, (item, outputs) in enumerate(
        zip(
            batch,
            by_run,
            strict=True,
        )
    ):
        if len(outputs) != len(item.run.inputs):
            return number
    return len(batch)


def _run_in_process(
    runs: Sequence[ProgramRun],
    judge: Judge,
    limits: _Limits,
) -> list[list[RawOutput]]:
    """Return the outputs of each run, as far as the process came."""
    invocation = Invocation(
        Program(_SANDBOXED),
        stdin=json.dumps(_describe_runs(runs, limits.an_input)).encode(),
        cpu_seconds=limits.a_process,
        wall_seconds=_WALL_SECONDS_A_PROCESS,
        memory_limit_mib=_MEMORY_MIB,
        spare_memory_mib=_SPARE_MEMORY_MIB,
    )
    execution = judge.run(invocation)
    # Once more: the machine may have been busy.
    if not execution.is_conclusive:
        execution = judge.run(invocation)
    if not execution.is_conclusive:
        raise EvaluatorFault(
            f"the sandbox failed twice ({execution.detail}); "
            "type the same command again, or microcoder doctor"
        )
    # A line an input, as far as the process came.
    outputs: list[list[RawOutput]] = [[] for _ in runs]
    for line in execution.stdout.split(b"\n"):
        try:
            # The outputs of a run come in order, so their places are not needed.
            number, _, *output = json.loads(line)
        except ValueError:
            # The last line of a process that was ended.
            continue
        outputs[number].append(output)
    return outputs


def _describe_runs(runs: Sequence[ProgramRun], seconds: float) -> dict[str, Any]:
    """Return the input of `sandboxed.py` for some runs, with each program once."""
    numbers: dict[tuple[str, str], int] = {}
    programs = []
    described = []
    for run in runs:
        source = (run.code, run.entry)
        if source not in numbers:
            numbers[source] = len(numbers)
            programs.append({"code": run.code, "entry": run.entry})
        described.append([numbers[source], run.inputs])
    return {"programs": programs, "runs": described, "seconds": seconds}


def _tokens_of(output: RawOutput) -> Tokens | None:
    kind, content = output
    if kind == "none":
        return LATE if content == "Late" else None
    if kind == "text":
        return tokens_of_text(content)
    return tokens_of_value(content)

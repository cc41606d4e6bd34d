"""How fast recorded rollouts are replayed, and in how much memory.

    python benchmarks/replay.py RUN [--rollouts 100000]

The rows of a real run are repeated over steps of 512 until there are so many, and replayed by
another mask, then judged again with all programs known.
"""

import argparse
import json
import resource
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import partial
from itertools import chain
from pathlib import Path

from microcoder.judge import Judge
from microcoder.judge.core.files import append_row
from microcoder.replay import Alternative, Rejudging, open_recording, replay
from microcoder.replay.recordings import read_own_problems
from microcoder.train.metrics import summarise_step
from microcoder.train.runs import RunDirectory, read_scored, rollout_row, steps_in, write_rollouts

ROWS_A_STEP = 512
"""Rollouts of a step: the published 64 problems, 8 samples each."""
TEMPERATURE = 1.0
"""Temperature that the repeated steps are given."""


def repeat_run(source: Path, target: Path, num_rollouts: int) -> None:
    """Write a run of so many rollouts, made of the rows of another."""
    read = RunDirectory(source)
    run = RunDirectory(target)
    target.mkdir(parents=True)
    shutil.copy(read.manifest, run.manifest)
    groups = []
    for step in steps_in(read.rollouts):
        groups += read_scored(read.rollout_file(step))
    wanted = ROWS_A_STEP // len(groups[0])
    of_step = [groups[index % len(groups)] for index in range(wanted)]
    for step in range(1, num_rollouts // ROWS_A_STEP + 1):
        metrics = summarise_step(
            of_step,
            step=step,
            temperature=TEMPERATURE,
            max_response_tokens=28,
            optimizer={},
            seconds={},
        )
        rows = []
        for sample in chain.from_iterable(of_step):
            rows.append(rollout_row(sample, step=step, temperature=TEMPERATURE))
        write_rollouts(run.rollout_file(step), rows)
        append_row(run.metrics, asdict(replace(metrics, alarms=[])))


def measure(what: str, do: Callable[[], object]) -> object:
    """Do something, and print its time on the clock and of this process, and the peak of memory."""
    begin = time.perf_counter()
    begin_cpu = time.process_time()
    result = do()
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {
        "what": what,
        "seconds": round(time.perf_counter() - begin, 1),
        "cpu_seconds": round(time.process_time() - begin_cpu, 1),
        "peak_mib": round(peak_mib),
    }
    print(json.dumps(figures), flush=True)
    return result


def main() -> None:
    """Measure what the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--rollouts", type=int, default=100_000)
    options = parser.parse_args()
    problems = read_own_problems(open_recording([options.run]))
    mask_all = Alternative("mask all", {"algorithm.masking.kind": "all"})
    with tempfile.TemporaryDirectory() as folder, Judge(stop="first_failure") as judge:
        for number in (options.rollouts // 10, options.rollouts):
            run = Path(folder) / str(number)
            repeat_run(options.run, run, number)
            measure(f"{number} by another mask", partial(replay, open_recording([run]), [mask_all]))
        again = Rejudging(judge, problems)
        # The programs of the real run are all that there are.
        replay(open_recording([options.run]), rejudging=again)
        known = again.num_judged
        measure("judged again", partial(replay, open_recording([run]), rejudging=again))
        assert again.num_judged == known


if __name__ == "__main__":
    main()

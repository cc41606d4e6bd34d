"""How fast programs are judged, beside the peers that are importable:
`python benchmarks/evaluator.py`.

    PYTHONPATH=path/to/LiveCodeBench python benchmarks/evaluator.py \\
        [--only tiny mixed] [--rounds 3] [--quick]

Every judge has a process of its own that holds numpy, pandas and what the judge imports, as a
trainer does, and is warm before anything is timed (`evaluator_judges.py`). They take turns: each
set goes to one judge after the other, as often as `--rounds` says. Wall and CPU seconds (of the
judge, its sandboxes and its programs) stand side by side, and so do the verdicts. One JSON object a
line; the last has medians by set and judge, and how many times as fast ours is.

    tiny          200 right programs x 10 tests
    half_calls    the same, every other one a function that is called
    mixed         120 right, 50 wrong, 20 crashing, 10 endless, shuffled
    calls50, calls400, threads50
                  so many tests of functions that are called; of programs whose work is
                  done in a thread that they start last
    step          64 problems x 8 answers, 15 to 209 tests a problem,
                  a quarter right (`evaluator_step.py`)
    real          512 answers of models and contestants, as they were drawn (`evaluator_real.py`);
                  both are left out where the data folder does not hold what they are made of
    cpp           new C++ programs; no peer judges them
    costs         CPU of one test and of a start: ours alone

With `--runs 20000` as many programs are judged one after the other by one judge, and what it holds
(memory, descriptors, processes, temporary files) is looked at on the way; the last line says how
much more it came to hold.
"""

import argparse
import contextlib
import dataclasses
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import evaluator_real
import evaluator_step
from evaluator_costs import measure_leaks, measure_starts, measure_tests
from evaluator_judges import JUDGES, OURS, JudgeProcess, find_judges
from evaluator_workloads import SETS, Workload, build_workload
from figures import DATA

Row = dict[str, Any]
COSTS = "costs"
ARCHIVES = {"step": evaluator_step.ARCHIVES, "real": evaluator_real.ARCHIVES}
USUAL = [*SETS, *ARCHIVES, COSTS]
TIME_LIMIT_SECONDS = 6.0
"""LiveCodeBench's."""
_MEASURED = ("wall_seconds", "cpu_seconds", "ending_landed_seconds", "cpu_ms_per_program")


def measure_set(
    workload: Workload,
    options: dict[str, Row],
    processes: dict[str, JudgeProcess],
    rounds: int,
) -> Iterator[Row]:
    """Let the judges, each with its options, take turns on one set,
    with new sources in every round.
    """
    with tempfile.TemporaryDirectory() as folder:
        if workload.name == "cpp":
            # What a compiler's first program costs once a machine (precompiled headers) is no
            # program's cost.
            first = dataclasses.replace(workload, tasks=workload.tasks[:1])
            processes[OURS].run(first.renew(f"{time.time_ns()}").save(Path(folder)), options[OURS])
        for number in range(rounds):
            path = workload.renew(f"{time.time_ns()}").save(Path(folder))
            reference: list[str] | None = None
            for judge, chosen in options.items():
                answer = processes[judge].run(path, chosen)
                outcomes = answer["outcomes"]
                reference = reference or outcomes
                pairs = zip(outcomes, reference, strict=True)
                agree = sum((one == "accepted") == (other == "accepted") for one, other in pairs)
                told = {
                    "set": workload.name,
                    "judge": judge,
                    "round": number,
                    "agree_with_ours": agree,
                }
                yield {**told, **chosen, **describe(workload, answer)}


def describe(workload: Workload, answer: Row) -> Row:
    """Return what one judge did with one set."""
    outcomes = answer["outcomes"]
    landed = answer["landed"]
    ending = []
    for task, at in zip(workload.tasks, landed, strict=True):
        if task.kind != "endless":
            ending.append(at)
    as_known = []
    for task, outcome in zip(workload.tasks, outcomes, strict=True):
        as_known.append((outcome == "accepted") == (task.kind == "right"))
    return {
        "wall_seconds": round(answer["wall"], 3),
        "cpu_seconds": round(answer["cpu"], 2),
        "ending_landed_seconds": round(max(ending, default=0.0), 3),
        "cpu_ms_per_program": round(1000 * answer["cpu"] / len(outcomes), 2),
        "as_known": sum(as_known),
        "programs": len(outcomes),
        "outcomes": {"accepted": 0, "time_limit": 0, **Counter(outcomes)},
        "missing": answer["missing"],
    }


def build(name: str, arguments: argparse.Namespace) -> Workload | None:
    """Return a set; None, said on stderr, where the data for it is absent."""
    if name not in ARCHIVES:
        limit = 1.0 if arguments.quick else TIME_LIMIT_SECONDS
        return build_workload(name, limit_seconds=limit, is_quick=arguments.quick)
    absent = []
    for each in ARCHIVES[name]:
        if not (DATA / f"{each}.tar.xz").is_file():
            absent.append(each)
    if absent:
        print(
            f"{name}: left out, {DATA} does not hold {', '.join(absent)}; set MICROCODER_DATA",
            file=sys.stderr,
        )
        return None
    how: Row = {"seed": 0, "limit_seconds": TIME_LIMIT_SECONDS}
    if name == "step":
        return evaluator_step.build_step(DATA, num_problems=4 if arguments.quick else 64, **how)
    return evaluator_real.build_real(DATA, num_answers=32 if arguments.quick else 512, **how)


def run_sets(arguments: argparse.Namespace) -> Iterator[Row]:
    """Measure all chosen sets; the judges' processes live as long as the run."""
    judges = [OURS] if arguments.no_peers else find_judges()
    with contextlib.ExitStack() as stack:
        processes = {name: stack.enter_context(JudgeProcess(name)) for name in judges}
        for name in arguments.only:
            if name == COSTS:
                continue
            workload = build(name, arguments)
            if workload is not None:
                options: dict[str, Row] = {
                    OURS: {"workers": arguments.workers, "stop": arguments.stop}
                }
                if name != "cpp":
                    options |= {
                        judge: {"workers": arguments.workers} for judge in judges if judge != OURS
                    }
                yield from measure_set(workload, options, processes, arguments.rounds)
    if COSTS in arguments.only:
        yield from measure_tests(is_quick=arguments.quick)
        yield from measure_starts(1 if arguments.quick else arguments.rounds)


def sum_up(rows: Sequence[Row]) -> Row:
    """Return the medians of each set by judge, with how many times as fast ours is,
    and the costs by name.
    """
    found: Row = {}
    for name, judge in dict.fromkeys((row["set"], row["judge"]) for row in rows if "set" in row):
        turns = []
        for row in rows:
            if row.get("set") == name and row["judge"] == judge:
                turns.append(row)
        this = turns[-1] | {key: median(turn[key] for turn in turns) for key in _MEASURED}
        ours = found.setdefault(name, {}).setdefault(OURS, this)
        times = {f"times_{key}": round(this[key] / max(0.01, ours[key]), 2) for key in _MEASURED}
        found[name][judge] = this | times
    return found | {row["cost"]: row for row in rows if "cost" in row}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--only", nargs="+", choices=USUAL, default=USUAL, metavar="SET")
    parser.add_argument(
        "--rounds",
        type=int,
        default=3,
        help="turns that every judge has with every set",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="small sets, to see that it runs; no figure means much",
    )
    parser.add_argument("--no-peers", action="store_true", help="measure our judge alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--stop",
        choices=["first_failure", "first_limit", "never"],
        default="first_failure",
    )
    parser.add_argument(
        "--runs",
        type=int,
        default=0,
        help="look for leaks over so many programs instead",
    )
    arguments = parser.parse_args()
    rows = []
    for row in (
        measure_leaks(workers=arguments.workers, runs=arguments.runs)
        if arguments.runs
        else run_sets(arguments)
    ):
        rows.append(row)
        print(json.dumps(row), flush=True)
    if arguments.runs:
        return
    print(json.dumps(sum_up(rows)))
    absent = [] if arguments.no_peers else [name for name in JUDGES if name not in find_judges()]
    if absent:
        print(f"not importable, so not measured: {', '.join(absent)}", file=sys.stderr)


if __name__ == "__main__":
    main()

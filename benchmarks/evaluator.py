"""How fast programs are judged, beside the peers that are importable: `python benchmarks/evaluator.py`.

    PYTHONPATH=path/to/LiveCodeBench python benchmarks/evaluator.py [--only tiny mixed] [--rounds 3] [--quick]

Every judge has a process of its own that holds numpy, pandas and what the judge imports, as a trainer does, and is
warm before anything is timed (`evaluator_judges.py`). They take turns: each set goes to one judge after the other, as
often as `--rounds` says. Wall and CPU seconds (of the judge, its sandboxes and its programs) stand side by side, and
so do the verdicts. One JSON object a line on stdout; at the end, on stderr, a table of medians.

    tiny          200 right programs x 10 tests
    half_calls    the same, every other one a function that is called
    mixed         120 right, 50 wrong, 20 crashing, 10 endless, shuffled
    calls50, calls400, threads50   so many tests of functions that are called; of programs whose work is done in a
                  thread that they start last
    step          64 problems x 8 answers, 15 to 209 tests a problem, a quarter right (`evaluator_step.py`)
    real          512 answers of models and contestants, as they were drawn (`evaluator_real.py`); both are left out
                  where --data does not hold what they are made of
    cpp           new C++ programs; no peer judges them
    costs         CPU of one test and of a start: ours alone

With `--runs 20000` as many programs are judged one after the other by one judge, and what it holds (memory,
descriptors, processes, temporary files) is looked at on the way.
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
from evaluator_workloads import SETS, Workload, build_workload, count_traits
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
COSTS = "costs"
ARCHIVES = {"step": evaluator_step.ARCHIVES, "real": evaluator_real.ARCHIVES}
USUAL = [*SETS, *ARCHIVES, COSTS]
_COST_COLUMNS = ("wall_ms", "cpu_ms", "cpu_ms_judge", "cpu_ms_fork_server", "cpu_ms_tests")
DATA = Path(__file__).parents[2] / "shared" / "data"


def measure_set(
    workload: Workload, options: dict[str, Row], processes: dict[str, JudgeProcess], rounds: int
) -> Iterator[Row]:
    """Let the judges, each with its options, take turns on one set, with new sources in every round."""
    with tempfile.TemporaryDirectory() as folder:
        if workload.name == "cpp":
            # What a compiler's first program costs once a machine (precompiled headers) is no program's cost.
            first = dataclasses.replace(workload, tasks=workload.tasks[:1])
            processes[OURS].run(first.renew(f"{time.time_ns()}").save(Path(folder)), options[OURS])
        for number in range(rounds):
            path = workload.renew(f"{time.time_ns()}").save(Path(folder))
            reference: list[str] | None = None
            for judge, chosen in options.items():
                answer = processes[judge].run(path, chosen)
                outcomes = answer["outcomes"]
                reference = reference or outcomes
                yield {"set": workload.name, "judge": judge, "round": number, **chosen} | (
                    describe(workload, answer) | {"agree_with_ours": count_agreements(outcomes, reference)}
                )


def describe(workload: Workload, answer: Row) -> Row:
    """Return what one judge did with one set."""
    outcomes, landed = answer["outcomes"], answer["landed"]
    ending = [at for task, at in zip(workload.tasks, landed, strict=True) if task.kind != "endless"]
    as_known = [
        (outcome == "accepted") == (task.kind == "right")
        for task, outcome in zip(workload.tasks, outcomes, strict=True)
    ]
    return {
        "wall_seconds": round(answer["wall"], 3),
        "cpu_seconds": round(answer["cpu"], 2),
        "ending_landed_seconds": round(max(ending, default=0.0), 3),
        "cpu_ms_per_program": round(1000 * answer["cpu"] / len(outcomes), 2),
        "as_known": sum(as_known),
        "programs": len(outcomes),
        "outcomes": dict(Counter(outcomes)),
        "missing": answer["missing"],
    }


def count_agreements(outcomes: Sequence[str], reference: Sequence[str]) -> int:
    """Return how many programs both accept or both do not."""
    pairs = zip(outcomes, reference, strict=True)
    return sum((one == "accepted") == (other == "accepted") for one, other in pairs)


def build(name: str, arguments: argparse.Namespace) -> Workload | None:
    """Return a set; None, said on stderr, where the data for it is absent."""
    if name not in ARCHIVES:
        limit = 1.0 if arguments.quick else arguments.time_limit
        return build_workload(name, limit_seconds=limit, is_quick=arguments.quick)
    if absent := [each for each in ARCHIVES[name] if not (arguments.data / f"{each}.tar.xz").is_file()]:
        print(f"{name}: left out, {arguments.data} does not hold {', '.join(absent)}; pass --data", file=sys.stderr)
        return None
    how: Row = {"seed": arguments.seed, "limit_seconds": arguments.time_limit}
    if name == "step":
        workload = evaluator_step.build_step(arguments.data, num_problems=4 if arguments.quick else 64, **how)
    else:
        workload = evaluator_real.build_real(arguments.data, num_answers=32 if arguments.quick else 512, **how)
    print(f"{name}: {json.dumps(count_traits(workload.tasks))}", file=sys.stderr)
    return workload


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
                options: dict[str, Row] = {OURS: {"workers": arguments.workers, "stop": arguments.stop}}
                if name != "cpp":
                    options |= {judge: {"workers": arguments.workers} for judge in judges if judge != OURS}
                yield from measure_set(workload, options, processes, arguments.rounds)
    if COSTS in arguments.only:
        yield from measure_tests(is_quick=arguments.quick)
        yield from measure_starts(1 if arguments.quick else arguments.rounds)


def write_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """Yield medians: a line a set and judge, with how many times as fast ours is; and the costs."""
    measured = [row for row in rows if "set" in row]
    heading = ("set", "judge", "wall s", "CPU s", "ours is, wall", "CPU", "ending by s", "CPU ms/program", "as known")
    table = Table(*heading, box=None)
    for name, label in dict.fromkeys((row["set"], row["judge"]) for row in measured):
        ours, this = _medians(measured, name, OURS), _medians(measured, name, label)
        times = ("wall_seconds", "cpu_seconds")
        ratios = ["" if label == OURS else f"{this[key] / max(0.01, ours[key]):.2f} x" for key in times]
        figures = [f"{this[key]:.2f}" for key in times]
        others = [f"{this['ending_landed_seconds']:.2f}", f"{this['cpu_ms_per_program']:.1f}"]
        last = [row for row in measured if row["set"] == name and row["judge"] == label][-1]
        table.add_row(name, label, *figures, *ratios, *others, f"{last['as_known']}/{last['programs']}")
    yield table
    table = Table("cost, ms (starts: the least)", *(key.replace("_ms", "") for key in _COST_COLUMNS), box=None)
    for row in rows:
        if "cost" in row:
            table.add_row(row["cost"], *(f"{row[key]:.2f}" if key in row else "" for key in _COST_COLUMNS))
    yield table


def _medians(rows: Sequence[Row], name: str, label: str) -> dict[str, float]:
    found = [row for row in rows if row["set"] == name and row["judge"] == label]
    keys = ("wall_seconds", "cpu_seconds", "ending_landed_seconds", "cpu_ms_per_program")
    return {key: median(row[key] for row in found) for key in keys} if found else {}


def parse_arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=USUAL, default=USUAL, metavar="SET")
    parser.add_argument("--rounds", type=int, default=3, help="turns that every judge has with every set")
    parser.add_argument("--quick", action="store_true", help="small sets, to see that it runs; no figure means much")
    parser.add_argument("--no-peers", action="store_true", help="measure our judge alone")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=6.0, help="seconds a test; LiveCodeBench's are 6")
    parser.add_argument("--stop", choices=["first_failure", "first_limit", "never"], default="first_failure")
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the sets' archives")
    parser.add_argument("--seed", type=int, default=0, help="decides which answers are drawn")
    parser.add_argument("--runs", type=int, default=0, help="look for leaks over so many programs instead")
    return parser.parse_args(words)


def main() -> None:
    arguments = parse_arguments()
    if arguments.runs:
        for row in measure_leaks(workers=arguments.workers, runs=arguments.runs):
            print(json.dumps(row), flush=True)
        return
    rows = []
    for row in run_sets(arguments):
        rows.append(row)
        print(json.dumps(row), flush=True)
    absent = [] if arguments.no_peers else [name for name in JUDGES if name not in find_judges()]
    print(f"\nMedians of {arguments.rounds} rounds, {arguments.workers} workers", file=sys.stderr)
    Console(stderr=True, width=160).print(*(table for table in write_tables(rows) if table.row_count))
    if absent:
        print(f"not importable, so not measured: {', '.join(absent)}", file=sys.stderr)


if __name__ == "__main__":
    main()

"""How fast programs are judged: `python benchmarks/evaluator.py [--workers 2]`. One JSON object a line.

Two batches of 200 programs with 10 tests each, as the peers were measured: all right; and mixed (120 right, 50
wrong, 20 crashing, 10 endless). Beside them the floor (bare fork, exit and wait of an interpreter that holds the
same modules), the scaling over workers, and, where a peer is importable, the peer on the same work:

    PYTHONPATH=path/to/LiveCodeBench python benchmarks/evaluator.py

CPU seconds include the sandboxes'. A peer's own time limit is the problem's, so that endless programs cost the same.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from microcoder.evaluator import Judge
from microcoder.evaluator.interpreter import STANDARD_PRELOAD
from microcoder.types import Problem, Program, TestCase

RIGHT = "n = int(input())\nprint(sum(i * i for i in range(n)))  # {}\n"
WRONG = "n = int(input())\nprint(sum(i * i for i in range(n)) + (n > 5))  # {}\n"
CRASHING = "n = int(input())\nprint([1][n])  # {}\n"
ENDLESS = "while True:\n    pass  # {}\n"
BATCHES: dict[str, Sequence[tuple[str, int]]] = {
    "right": [(RIGHT, 200)],
    "mixed": [(RIGHT, 120), (WRONG, 50), (CRASHING, 20), (ENDLESS, 10)],
}
FLOOR = """
import gc, importlib, os, sys, time
for name in sys.argv[2].split(): importlib.import_module(name)
os.register_at_fork = lambda **hooks: None
gc.collect(); gc.freeze()
start = time.perf_counter()
for _ in range(int(sys.argv[1])):
    pid = os.fork()
    if pid == 0: os._exit(0)
    os.wait4(pid, 0)
print(time.perf_counter() - start)
"""
FORKS = 2000


def build_batch(name: str) -> list[str]:
    """Return the sources; the number makes each program its own, since identical ones are judged once."""
    return [source.format(number) for source, count in BATCHES[name] for number in range(count)]


def build_problem(time_limit_seconds: float) -> Problem:
    tests = [TestCase(input=f"{n}\n", output=f"{sum(i * i for i in range(n))}\n") for n in range(1, 101, 10)]
    return Problem(id="squares", tests=tuple(tests), time_limit_seconds=time_limit_seconds)


def measure_ours(name: str, problem: Problem, *, workers: int, stop: str) -> dict[str, object]:
    """Judge one batch; starting the sandboxes is part of it."""
    programs = [Program(source) for source in build_batch(name)]
    cpu_before, start = cpu_seconds(), time.perf_counter()
    with Judge(workers=workers, stop=stop) as judge:  # type: ignore[arg-type]
        verdicts = judge.judge(programs, [problem] * len(programs))
        isolation = judge.isolation.level
    wall, cpu = time.perf_counter() - start, cpu_seconds() - cpu_before
    tests = sum(len(verdict.tests) for verdict in verdicts)
    return {
        "judge": "microcoder",
        "batch": name,
        "workers": workers,
        "stop": stop,
        "isolation": isolation,
        "wall_seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "tests_run": tests,
        "cpu_ms_per_test": round(1000 * cpu / tests, 3),
        "verdicts": dict(Counter(str(verdict.outcome) for verdict in verdicts)),
    }


def measure_floor() -> dict[str, object]:
    """Fork, exit and wait: what no judge with a process for every test can be faster than."""
    cpu_before = cpu_seconds()
    command = [sys.executable, "-I", "-S", "-c", FLOOR, str(FORKS), " ".join(STANDARD_PRELOAD)]
    wall = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    cpu = cpu_seconds() - cpu_before
    return {
        "judge": "floor: fork, exit, wait",
        "wall_ms_per_test": round(1000 * wall / FORKS, 3),
        "cpu_ms_per_test": round(1000 * cpu / FORKS, 3),
    }


def measure_livecodebench(name: str, problem: Problem, *, workers: int) -> dict[str, object]:
    """Run LiveCodeBench's checker on the same work, a problem a program, as its runner does."""
    from lcb_runner.evaluation.compute_code_generation_metrics import (  # type: ignore[import-not-found]
        evaluate_generations,
    )

    tests = {
        "inputs": [test.input for test in problem.tests],
        "outputs": [test.output for test in problem.tests],
    }
    sources = build_batch(name)
    samples = [{"input_output": json.dumps(tests)} for _ in sources]
    cpu_before, start = cpu_seconds(), time.perf_counter()
    results, _ = evaluate_generations(
        samples,
        [[source] for source in sources],
        num_process_evaluate=workers,
        timeout=int(problem.time_limit_seconds),
    )
    wall, cpu = time.perf_counter() - start, cpu_seconds() - cpu_before
    accepted = sum(all(result is True for result in results[index][0]) for index in range(len(sources)))
    return {
        "judge": "livecodebench",
        "batch": name,
        "workers": workers,
        "wall_seconds": round(wall, 2),
        "cpu_seconds": round(cpu, 2),
        "accepted": accepted,
    }


def cpu_seconds() -> float:
    """CPU time of this process and of all its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def run_all(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    problem = build_problem(arguments.time_limit)
    yield measure_floor()
    for name in BATCHES:
        yield measure_ours(name, problem, workers=arguments.workers, stop=arguments.stop)
        if importlib.util.find_spec("lcb_runner"):
            yield measure_livecodebench(name, problem, workers=arguments.workers)
    for workers in range(1, len(os.sched_getaffinity(0)) + 1):
        yield measure_ours("right", problem, workers=workers, stop=arguments.stop)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=6.0, help="CPU seconds per test; LiveCodeBench's is 6")
    parser.add_argument("--stop", choices=["first_failure", "first_limit", "never"], default="first_failure")
    for line in run_all(parser.parse_args()):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

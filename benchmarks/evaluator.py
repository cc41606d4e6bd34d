"""How fast programs are judged: `python benchmarks/evaluator.py [--workers 2]`. One JSON object a line.

Two batches of 200 programs with 10 tests each, as the peers were measured: all right; and mixed (120 right, 50
wrong, 20 crashing, 10 endless). Beside them the floor (bare fork, exit and wait of an interpreter that holds the
same modules), the scaling over workers, and, where a peer is importable, the peer on the same work:

    PYTHONPATH=path/to/LiveCodeBench python benchmarks/evaluator.py

A peer's own time limit is the problem's, so that endless programs cost the same. With `--runs 20000` as many programs
are judged one after the other by one judge, and what it holds (memory, descriptors, processes, temporary files) is
looked at on the way.
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
    own_before, start = time.process_time(), time.perf_counter()
    with Judge(workers=workers, stop=stop) as judge:  # type: ignore[arg-type]
        verdicts = judge.judge(programs, [problem] * len(programs))
        isolation = judge.isolation.level
    wall, own = time.perf_counter() - start, time.process_time() - own_before
    tests = sum(len(verdict.tests) for verdict in verdicts)
    cpu = sum(test.cpu_seconds for verdict in verdicts for test in verdict.tests)
    return {
        "judge": "microcoder",
        "batch": name,
        "workers": workers,
        "stop": stop,
        "isolation": isolation,
        "wall_seconds": round(wall, 2),
        "judge_cpu_seconds": round(own, 2),
        "programs_cpu_seconds": round(cpu, 2),
        "tests_run": tests,
        "wall_ms_per_test_and_worker": round(1000 * wall * workers / tests, 3),
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


def measure_leaks(problem: Problem, *, workers: int, runs: int, looks: int = 20) -> Iterator[dict[str, object]]:
    """Judge many programs with one judge; what it holds is to stay flat after the first look."""
    kinds = (RIGHT, WRONG, CRASHING)
    quick = problem.model_copy(update={"tests": problem.tests[:1]})
    with Judge(workers=workers) as judge:
        for look in range(looks):
            numbers = range(look * runs // looks, (look + 1) * runs // looks)
            programs = [Program(kinds[number % 3].format(number)) for number in numbers]
            judge.judge(programs, [quick] * len(programs))
            yield {"runs": numbers.stop, **look_around()}
    yield {"runs": runs, "closed": True, **look_around()}


def look_around() -> dict[str, int]:
    """Return what this process and its descendants hold."""
    family = descendants(os.getpid())
    return {
        "own_memory_kib": resident_kib(os.getpid()),
        "sandbox_memory_kib": sum(map(resident_kib, family)),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "processes": len(family),
        "temporary_files": len(os.listdir("/tmp")) + len(os.listdir("/dev/shm")),
    }


def descendants(pid: int) -> list[int]:
    """Return the process ids of all children and their children."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            children = [int(child) for child in file.read().split()]
        found += [one for child in children for one in (child, *descendants(child))]
    return found


def resident_kib(pid: int) -> int:
    """Return a process's resident memory."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def cpu_seconds() -> float:
    """CPU time of this process and of all its ended children."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def run_all(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    problem = build_problem(arguments.time_limit)
    if arguments.runs:
        yield from measure_leaks(problem, workers=arguments.workers, runs=arguments.runs)
        return
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
    parser.add_argument("--runs", type=int, default=0, help="look for leaks over so many programs instead")
    for line in run_all(parser.parse_args()):
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()

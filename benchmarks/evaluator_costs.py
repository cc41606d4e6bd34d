"""What judging costs beside the programs: a test, a start, and what a judge holds in the end."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaluator_judges import OURS, JudgeProcess, look_around
from evaluator_workloads import SOURCES, Workload, build_called, build_small, build_squares
from figures import read_cpu_seconds

from microcoder.judge import Judge
from microcoder.judge.core.types import Program


def measure_tests(*, is_quick: bool) -> Iterator[dict[str, Any]]:
    """CPU of a test that shares a process with others of 10 or 100, and of one alone: one worker,
    all right.
    """
    counts = {10: 4 if is_quick else 100, 100: 1 if is_quick else 20}
    for num_tests, num_programs in counts.items():
        printed = build_small("cost", {"right": num_programs}, num_tests=num_tests)
        called = Workload("cost", (build_called(num_tests, 6.0),) * num_programs, 6.0)
        for kind, workload in (("stdin", printed), ("calls", called)):
            for is_batched in (True, False):
                yield _measure_tests(workload, f"{kind} {num_tests}", is_batched=is_batched)


def _measure_tests(workload: Workload, name: str, *, is_batched: bool) -> dict[str, Any]:
    options = {"workers": 1, "batch_tests": is_batched}
    with JudgeProcess(OURS) as process, tempfile.TemporaryDirectory() as folder:
        answer = process.run(workload.renew("cost").save(Path(folder)), options)
    num_tests = sum(len(task.problem.tests) for task in workload.tasks)
    return {
        "cost": f"{name} {'shared' if is_batched else 'alone'}",
        "wall_ms": 1000 * answer["wall"] / num_tests,
        "cpu_ms": 1000 * answer["cpu"] / num_tests,
        "accepted": answer["outcomes"].count("accepted"),
        "programs": len(workload.tasks),
    }


def measure_starts(rounds: int) -> Iterator[dict[str, Any]]:
    """CPU of `microcoder --help` and of `microcoder judge` with one program."""
    with tempfile.TemporaryDirectory() as folder:
        given = Path(folder, "in.jsonl")
        answered = Path(folder, "out.jsonl")
        test = {"input": "3\n", "output": "5\n"}
        given.write_text(
            json.dumps({"id": "one", "tests": [test], "code": SOURCES["right"]}) + "\n"
        )
        commands = {
            "help": ["--help"],
            "judge": ["judge", str(given), "-o", str(answered), "--workers", "1"],
        }
        for name, arguments in commands.items():
            walls = []
            cpus = []
            for _ in range(rounds):
                answered.unlink(missing_ok=True)
                before = read_cpu_seconds()
                start = time.perf_counter()
                command = [sys.executable, "-m", "microcoder", *arguments]
                subprocess.run(command, check=True, capture_output=True)
                walls.append(time.perf_counter() - start)
                cpus.append(read_cpu_seconds() - before)
            yield {"cost": name, "wall_ms": 1000 * min(walls), "cpu_ms": 1000 * min(cpus)}


def measure_leaks(*, workers: int, runs: int, looks: int = 20) -> Iterator[dict[str, Any]]:
    """Judge many programs with one judge; what it holds is to stay flat after the first look;
    none is left.
    """
    kinds = (SOURCES["right"], SOURCES["wrong"], SOURCES["crashing"])
    problem = build_squares(10, 6.0)
    quick = problem.model_copy(update={"tests": problem.tests[:1]})
    seen = []
    with Judge(workers=workers) as judge:
        for look in range(looks):
            numbers = range(look * runs // looks, (look + 1) * runs // looks)
            programs = [Program(f"{kinds[number % 3]}# {number}\n") for number in numbers]
            judge.judge(programs, [quick] * len(programs))
            seen.append(look_around())
            yield {"runs": numbers.stop, **seen[-1]}
    grown = {key: seen[-1][key] - first for key, first in seen[0].items()}
    yield {"runs": runs, "closed": True, "grown": grown, **look_around()}

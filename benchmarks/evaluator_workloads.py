"""The programs that `evaluator.py` has judged: small ones, built from nothing."""

from __future__ import annotations

import dataclasses
import json
import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from microcoder.judge.core.types import Problem, TestCase

Kind = Literal["right", "wrong", "crashing", "endless"]

SOURCES: dict[Kind, str] = {
    "right": "n = int(input())\nprint(sum(i * i for i in range(n)))\n",
    "wrong": "n = int(input())\nprint(sum(i * i for i in range(n)) + (n > 5))\n",
    "crashing": "n = int(input())\nprint([1][n])\n",
    "endless": "while True:\n    pass\n",
}
CALLED = "class Solution:\n    def squares(self, n):\n        return sum(i * i for i in range(n))\n"
THREADED = (
    "import sys, threading\nsys.setrecursionlimit(1 << 20)\nthreading.stack_size(1 << 26)\n"
    "def main():\n    n = int(input())\n    print(sum(i * i for i in range(n)))\n"
    "threading.Thread(target=main).start()\n"
)
CPP = """#include <bits/stdc++.h>
using namespace std;
int main() {
    long long n, total = 0;
    cin >> n;
    vector<long long> squares;
    for (long long i = 0; i < n; i++) squares.push_back(i * i);
    for (auto square : squares) total += square;
    cout << total << endl;
}
"""


@dataclass(frozen=True)
class Task:
    """One program, the problem it answers, and what it is."""

    source: str
    problem: Problem
    kind: Kind


@dataclass(frozen=True)
class Workload:
    """Programs that are handed to a judge at once."""

    name: str
    tasks: tuple[Task, ...]
    limit_seconds: float

    def renew(self, mark: str) -> Workload:
        """Return it with each source made new by a comment: identical programs are judged,
        and built, once.
        """
        tasks = (
            dataclasses.replace(
                task, source=f"{task.source}\n{_comment(task.problem)} {mark} {number}\n"
            )
            for number, task in enumerate(self.tasks)
        )
        return dataclasses.replace(self, tasks=tuple(tasks))

    def shuffle(self) -> Workload:
        """Return it in another order, always the same one:
        a judge is not told which programs are endless.
        """
        tasks = list(self.tasks)
        random.Random(0).shuffle(tasks)
        return dataclasses.replace(self, tasks=tuple(tasks))

    def save(self, folder: Path) -> Path:
        """Write it for a judge's process to read; return the file."""
        path = folder / f"{self.name}.pickle"
        path.write_bytes(pickle.dumps(self))
        return path


def _comment(problem: Problem) -> str:
    return "#" if problem.language == "python" else "//"


def write_peer_tests(problem: Problem) -> dict[str, object]:
    """Return a problem's tests as LiveCodeBench, PRIME and those built on them read them."""
    tests: dict[str, object] = {
        "inputs": [test.input for test in problem.tests],
        "outputs": [test.output for test in problem.tests],
    }
    return {**tests, "fn_name": problem.fn_name} if problem.fn_name else tests


def can_be_told_to_peers(problem: Problem) -> bool:
    """Whether arguments and results are JSON, one a line, and nothing but equality,
    or that of tokens, decides.
    """
    if problem.fn_name is None:
        return problem.checker.type in ("default", "tokens")
    if problem.checker.type != "default" or problem.call is not None:
        return False
    try:
        for test in problem.tests:
            json.loads(test.output)
            for line in test.input.split("\n"):
                json.loads(line)
    except ValueError:
        return False
    return True


def build_squares(num_tests: int, limit_seconds: float, *, language: str = "python") -> Problem:
    """Return the problem that all of the small programs answer."""
    numbers = range(1, 100, 10) if num_tests == 10 else range(1, num_tests + 1)
    squares = []
    for n in numbers:
        squares.append(TestCase(input=f"{n}\n", output=f"{sum(i * i for i in range(n))}\n"))
    tests = tuple(squares)
    return Problem(id="squares", tests=tests, time_limit_seconds=limit_seconds, language=language)


def build_small(
    name: str,
    counts: dict[Kind, int],
    *,
    num_tests: int = 10,
    limit_seconds: float = 6.0,
) -> Workload:
    """Return a set of small programs, so many of each kind, in that order."""
    problem = build_squares(num_tests, limit_seconds)
    tasks = []
    for kind, count in counts.items():
        for _ in range(count):
            tasks.append(Task(SOURCES[kind], problem, kind))
    return Workload(name, tuple(tasks), limit_seconds)


def build_called(num_tests: int, limit_seconds: float) -> Task:
    """Return a right function that is called."""
    printed = build_squares(num_tests, limit_seconds)
    stripped = []
    for test in printed.tests:
        stripped.append(TestCase(input=test.input.strip(), output=test.output.strip()))
    tests = tuple(stripped)
    return Task(
        CALLED,
        Problem(id="called", fn_name="squares", tests=tests, time_limit_seconds=limit_seconds),
        "right",
    )


def build_workload(name: str, *, limit_seconds: float, is_quick: bool) -> Workload:
    """Return one of the sets by name; a quick one is a tenth of it and says nothing about speed."""
    match name:
        case "tiny":
            return build_small(name, {"right": 8 if is_quick else 200}, limit_seconds=limit_seconds)
        case "mixed":
            counts: dict[Kind, int] = {"right": 120, "wrong": 50, "crashing": 20, "endless": 10}
            quick: dict[Kind, int] = {"right": 3, "wrong": 2, "crashing": 1, "endless": 1}
            return build_small(
                name,
                quick if is_quick else counts,
                limit_seconds=limit_seconds,
            ).shuffle()
        case "half_calls":
            printed = Task(SOURCES["right"], build_squares(10, limit_seconds), "right")
            return Workload(
                name,
                (printed, build_called(10, limit_seconds)) * (4 if is_quick else 100),
                limit_seconds,
            )
        case "calls50" | "calls400":
            task = build_called(int(name.removeprefix("calls")), limit_seconds)
            return Workload(name, (task,) * (1 if is_quick else 16), limit_seconds)
        case "threads50":
            task = Task(THREADED, build_squares(50, limit_seconds), "right")
            return Workload(name, (task,) * (1 if is_quick else 12), limit_seconds)
        case "cpp":
            task = Task(CPP, build_squares(10, limit_seconds, language=name), "right")
            return Workload(name, (task,) * (1 if is_quick else 8), limit_seconds)
    raise ValueError(f"set {name!r}; use one of {', '.join(SETS)}")


SETS: Sequence[str] = ("tiny", "half_calls", "mixed", "calls50", "calls400", "threads50", "cpp")

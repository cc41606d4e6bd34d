"""How fast programs are judged: `python benchmarks/judge_throughput.py [--workers 2]`. One JSON object a batch.

Two batches of 200 programs with 10 tests each, as the peers were measured: all right; and mixed (120 right, 50
wrong, 20 crashing, 10 endless). CPU seconds include the sandboxes'.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import Counter
from collections.abc import Sequence

from microcoder.evaluator import Judge
from microcoder.types import Problem, Program, TestCase

RIGHT = "n = int(input())\nprint(sum(i * i for i in range(n)))  # {}\n"
WRONG = "n = int(input())\nprint(sum(i * i for i in range(n)) + (n > 5))  # {}\n"
CRASHING = "n = int(input())\nprint([1][n])  # {}\n"
ENDLESS = "while True:\n    pass  # {}\n"
PROBLEM = Problem(
    id="squares",
    tests=tuple(TestCase(input=f"{n}\n", output=f"{sum(i * i for i in range(n))}\n") for n in range(1, 101, 10)),
    time_limit_seconds=2,
)
BATCHES: dict[str, Sequence[tuple[str, int]]] = {
    "right": [(RIGHT, 200)],
    "mixed": [(RIGHT, 120), (WRONG, 50), (CRASHING, 20), (ENDLESS, 10)],
}


def measure(name: str, *, workers: int, stop: str) -> dict[str, object]:
    """Judge one batch and return its figures."""
    # The number makes each program its own: identical ones would be judged once.
    programs = [Program(source.format(number)) for source, count in BATCHES[name] for number in range(count)]
    cpu_before, start = cpu_seconds(), time.perf_counter()
    with Judge(workers=workers, stop=stop) as judge:  # type: ignore[arg-type]
        verdicts = judge.judge(programs, [PROBLEM] * len(programs))
    wall = time.perf_counter() - start
    return {
        "batch": name,
        "stop": stop,
        "workers": workers,
        "wall_seconds": round(wall, 2),
        "cpu_seconds": round(cpu_seconds() - cpu_before, 2),
        "verdicts": dict(Counter(str(verdict.outcome) for verdict in verdicts)),
    }


def cpu_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--stop", choices=["first_failure", "first_limit", "never"], default="first_failure")
    arguments = parser.parse_args()
    for name in BATCHES:
        print(json.dumps(measure(name, workers=arguments.workers, stop=arguments.stop)), flush=True)


if __name__ == "__main__":
    main()

"""Are interactive problems judged as their packages say? Packages are read from folders.

    python benchmarks/interactive.py FOLDER [FOLDER ...]

A package's own submissions must have the verdicts that it names. Programs that are the same for
every problem must fail: one says nothing, one floods, one does not flush, one ends, one spins. A
line a problem, what differs below it, and the counts as JSON.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from microcoder import Program
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.sources import collect_source, open_source
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome

SECONDS = 5.0
"""Time limit where a package names none."""
MEMORY_MIB = 1024
"""Memory limit of all."""
WRONG = {
    "silent": "import sys\nsys.stdin.read()",
    "floods": "while True: print('9' * 1000)",
    "no line": "import sys\nwhile True: sys.stdout.write('9' * 100_000)",
    "unflushed": "import sys\nsys.stdout.write('1\\n')\nwhile sys.stdin.readline(): pass",
    "ends": "",
    "spins": "while True: pass",
    "crashes": "print('1', flush=True)\n1 / 0",
}
"""Programs that are right for no problem."""
FAILED = (
    Outcome.WRONG_ANSWER,
    Outcome.TIME_LIMIT,
    Outcome.RUNTIME_ERROR,
    Outcome.OUTPUT_LIMIT,
    Outcome.MEMORY_LIMIT,
)
"""Outcomes of a program that was judged, and is not right."""


def read_packages(folders: list[Path]) -> Iterator[Candidate]:
    """Yield the interactive problems of packages below folders, once each."""
    seen = set()
    for folder in folders:
        for form in ("kattis", "polygon"):
            try:
                source = open_source(folder, form)
            except DataError:
                continue
            for candidate in collect_source(source):
                if isinstance(candidate, Rejection) or not candidate.tests:
                    continue
                if candidate.interactor is None:
                    continue
                # Archives hold examples of others many times.
                key = (candidate.interactor, candidate.tests)
                if key not in seen:
                    seen.add(key)
                    yield candidate


def check_package(judge: Judge, candidate: Candidate) -> Iterator[tuple[str, str, str]]:
    """Yield name, expected and found verdict of each program of a problem that differs."""
    programs = []
    for solution in candidate.solutions:
        if solution.language in ("python", "cpp"):
            programs.append((solution.name, solution.known, solution.language, solution.code))
    programs += [(name, "wrong", "python", code) for name, code in WRONG.items()]
    for name, known, language, code in programs:
        problem = candidate.to_trial(
            language, seconds=candidate.time_limit_seconds or SECONDS, memory_mib=MEMORY_MIB
        )
        (verdict,) = judge.judge([Program(code, language)], [problem])
        is_right = verdict.is_accepted
        if known != "accepted":
            is_right = verdict.outcome in FAILED
        # A submission may have points for some groups of tests.
        if known == "partial":
            is_right = verdict.is_scorable
        if not is_right:
            yield name, known, f"{verdict.outcome.value}: {verdict.detail}"


def main() -> None:
    """Judge all programs of all packages, and say which differ."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    arguments = parser.parse_args()
    counts: Counter[str] = Counter(differ=0)
    with Judge(stop="first_failure") as judge:
        for candidate in read_packages(arguments.folders):
            counts["problems"] += 1
            differing = list(check_package(judge, candidate))
            counts["programs"] += len(WRONG) + len(candidate.solutions)
            counts["differ"] += len(differing)
            print(f"{candidate.id}: {len(differing)} differ", flush=True)
            for name, known, found in differing:
                print(f"    {name}: {known} is {found[:150]}", flush=True)
    print(json.dumps(counts))


if __name__ == "__main__":
    main()

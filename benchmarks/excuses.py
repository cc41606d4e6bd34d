"""Which excuses real programs need: runs that do not count, beside hogs and without.

    python benchmarks/excuses.py [--data FOLDER] [--programs N] [--hogs 2]

Honest programs are judged twice, without hogs and beside them: references of LeetCodeDataset,
accepted submissions of Kodsport, and answers that LiveCodeBench graded right. A run that does not
count has an excuse (docs/sandbox.md). Where the program is accepted all the same, it would have
another verdict without that excuse. The last line is a JSON object: how many programs were
accepted, shared a process, and took more than half of their limit; by reason how many had the
excuse, and how many of these were accepted; then how many were accepted without hogs only.
"""

import argparse
import json
import os
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from evaluator_real import read_models
from evaluator_step import find_reference, read_candidates
from time_excuses import start_hogs

from microcoder.judge import Judge
from microcoder.judge.core.types import Problem, Program, Repeat, Verdict

Case = tuple[str, Program, Problem]
LIMIT_SECONDS = 2.0
MEMORY_MIB = 1024
CLOSE = 0.5
"""Share of its limit beyond which a program is close to it."""
BATCH = 64
"""Programs that are judged together."""


def read_honest(data: Path, number: int, seed: int) -> list[Case]:
    """Return right programs: a third of each kind, where there are so many."""
    dice = random.Random(seed)
    cases: list[Case] = []
    for name, row_format in (("leetcodedataset", "leetcodedataset"), ("kodsport", "kattis")):
        cases += islice(_read_references(data, name, row_format, dice), number // 3)
    answers: list[Case] = []
    for index, task in enumerate(read_models(data, LIMIT_SECONDS)):
        if task.kind == "right":
            answers.append((f"livecodebench {index}", Program(task.source), task.problem))
    cases += dice.sample(answers, min(len(answers), number // 3))
    dice.shuffle(cases)
    return cases


def _read_references(data: Path, name: str, row_format: str, dice: random.Random) -> Iterator[Case]:
    for candidate in read_candidates(data, name, row_format, dice):
        code = find_reference(candidate)
        if code:
            problem = candidate.to_trial("python", seconds=LIMIT_SECONDS, memory_mib=MEMORY_MIB)
            yield f"{name} {candidate.id}", Program(code), problem


def judge_all(cases: list[Case], hogs: int) -> list[Verdict]:
    """Return the verdicts of programs by a new judge, beside hogs."""
    verdicts: list[Verdict] = []
    with Judge(workers=2, time_scale=1, cache_size=0) as judge, start_hogs(hogs):
        for start in range(0, len(cases), BATCH):
            part = cases[start : start + BATCH]
            programs = [program for _, program, _ in part]
            verdicts += judge.judge(programs, [problem for _, _, problem in part])
            print(f"{len(verdicts)} of {len(cases)}", file=sys.stderr, flush=True)
    return verdicts


def count_excuses(cases: list[Case], verdicts: list[Verdict]) -> dict[str, Any]:
    """Return by reason how many programs had an excuse, and were accepted with it."""
    had: Counter[str] = Counter()
    hung: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    shared = 0
    close = 0
    for (name, _, problem), verdict in zip(cases, verdicts, strict=True):
        outcomes[verdict.outcome.value] += 1
        shared += bool(verdict.order)
        longest = max((test.cpu_seconds for test in verdict.tests), default=0.0)
        close += verdict.is_accepted and longest > CLOSE * problem.time_limit_seconds
        reasons = {uncounted.reason for uncounted in verdict.uncounted}
        had.update(reason.value for reason in reasons)
        if verdict.is_accepted:
            hung.update(reason.value for reason in reasons)
        if reasons:
            words = sorted(reason.value for reason in reasons)
            print(json.dumps({"name": name, "outcome": verdict.outcome.value, "excuses": words}))
    return {
        "outcomes": dict(outcomes),
        "shared": shared,
        "close": close,
        "excuses": {reason.value: [had[reason.value], hung[reason.value]] for reason in Repeat},
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    default = os.environ.get("MICROCODER_DATA") or "../shared/data"
    parser.add_argument("--data", type=Path, default=Path(default), help="holds the archives")
    parser.add_argument("--programs", type=int, default=1500)
    parser.add_argument("--hogs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    cases = read_honest(arguments.data, arguments.programs, arguments.seed)
    quiet = judge_all(cases, 0)
    busy = judge_all(cases, arguments.hogs)
    lost = 0
    for (name, _, _), before, beside in zip(cases, quiet, busy, strict=True):
        if before.outcome is not beside.outcome:
            row = {"name": name, "quiet": before.outcome.value, "busy": beside.outcome.value}
            print(json.dumps(row))
            lost += before.is_accepted
    answer = {
        "programs": len(cases),
        "kinds": dict(Counter(name.split()[0] for name, _, _ in cases)),
        "quiet": count_excuses(cases, quiet),
        "busy": count_excuses(cases, busy),
        "lost": lost,
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main()

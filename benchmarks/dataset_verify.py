"""Verify over real contest archives: which problems it keeps, and which wrong programs it catches.

    tar xf kodsport.tar.xz && python benchmarks/dataset_verify.py kodsport [--every 8] [--store verdicts.sqlite]

Of the packages that are complete (tests beyond the samples that do not talk back, a known comparison, a statement, an
accepted program in Python or C++), each counted once where the archives repeat it, it prints every one that is lost,
with its reason; then the share that is kept, the share of the known-wrong submissions that the tests of the kept ones
refuse, and the verifier's own rates. With a store, a second run executes nothing; interrupted, it reports what it
has. `--out` writes the records: two runs with a fresh store each must write the same bytes.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import contests

from microcoder.data import Candidate, Rejection
from microcoder.data.verify import (
    Evidence,
    VerdictStore,
    VerifySettings,
    combine_counts,
    conclude,
    count_right,
    gather,
)
from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome


def read_candidates(folder: Path, first: int, every: int) -> Iterator[Candidate | Rejection | str]:
    """Yield every n-th of the packages that are not copies of an earlier one, or why one is not complete."""
    seen: set[bytes] = set()
    distinct = []
    for package in contests.read_packages(folder):
        digest = digest_of(package)
        if digest not in seen:
            distinct.append(package)
        seen.add(digest)
    for package in distinct[first::every]:
        yield find_lack(package) or package


def find_lack(package: Candidate | Rejection) -> str:
    """Return what a package lacks; empty where it is complete."""
    if isinstance(package, Rejection) or contests.find_obstacle(package):
        return contests.find_obstacle(package).partition(":")[0]
    if "only_samples" in package.flags:
        return "samples only"
    is_usable = any(one.known == "accepted" and one.language in contests.LANGUAGES for one in package.solutions)
    return "" if is_usable else "no accepted program in Python or C++"


def digest_of(package: Candidate | Rejection) -> bytes:
    """Return what a package is told from others by: its tests and how they are compared."""
    if isinstance(package, Rejection):
        return hashlib.sha256(package.id.encode()).digest()
    told_by = [[test.input, test.output] for test in package.tests], package.checker.model_dump(mode="json")
    return hashlib.sha256(json.dumps(told_by).encode()).digest()


def show(**record: object) -> None:
    print(json.dumps(record), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every n-th problem only")
    parser.add_argument("--first", type=int, default=0, help="leave out so many problems before that")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--runs", type=int, default=VerifySettings().runs, help="runs of every accepted program")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--out", type=Path, help="where the kept and the rejected records go, one a line")
    arguments = parser.parse_args()
    settings = VerifySettings(runs=arguments.runs)
    read = list(read_candidates(arguments.folder, arguments.first, arguments.every))
    candidates = [item for item in read if isinstance(item, Candidate)]
    started = time.monotonic()
    found: list[Evidence | Rejection] = []
    store = VerdictStore(arguments.store) if arguments.store else None
    with Judge(workers=arguments.workers, cache_size=0) as judge, contextlib.suppress(KeyboardInterrupt):
        for start in range(0, len(candidates), 4):
            found += gather(candidates[start : start + 4], judge, settings, store=store)
            passed = round(time.monotonic() - started)
            print(f"{len(found)} of {len(candidates)} problems, {passed} s", file=sys.stderr, flush=True)
    judged = judge.statistics.judged
    report(found, settings)
    if arguments.out:
        results = [conclude(item, settings) if isinstance(item, Evidence) else item for item in found]
        arguments.out.write_text("".join(result.model_dump_json() + "\n" for result in results), "utf-8")
    show(
        incomplete=dict(Counter(item for item in read if isinstance(item, str))),
        programs_run=judged,
        seconds=round(time.monotonic() - started),
    )


def report(found: list[Evidence | Rejection], settings: VerifySettings) -> None:
    """Print every lost problem and every wrong program that passes, then the shares."""
    kept: list[Evidence] = []
    reasons: Counter[str] = Counter()
    for item in found:
        result = conclude(item, settings) if isinstance(item, Evidence) else item
        if isinstance(result, Rejection):
            reasons[result.reason] += 1
            show(problem=result.id, lost=result.reason, detail=result.detail)
        elif isinstance(item, Evidence):
            kept.append(item)
    for item in kept:
        for trial in item.tried_as("wrong", "slow", "partial"):
            if trial.outcome is Outcome.ACCEPTED:
                name = item.candidate.solutions[int(trial.name)].name
                show(problem=item.candidate.id, passes=name, language=trial.language)
    show(problems=len(found), kept=len(kept), share=round(len(kept) / len(found), 4), lost=dict(reasons))
    for role in ("wrong", "slow", "partial"):
        trials = [trial for item in kept for trial in item.tried_as(role)]
        refused = sum(trial.outcome is not Outcome.ACCEPTED for trial in trials)
        show(known=role, of_kept_problems=len(trials), refused=refused, share=round(refused / max(len(trials), 1), 4))
    counts = [count_right(item, settings) for item in found if isinstance(item, Evidence)]
    for name, rate in combine_counts(counts).items():
        if rate is not None:
            show(rate=name, value=round(rate.value, 4), **rate.model_dump())


if __name__ == "__main__":
    main()

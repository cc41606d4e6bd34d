"""Known verdicts: the jury's submissions of problem packages, judged again,
and every disagreement explained.

    python benchmarks/contests.py FOLDER [--every 8] [--languages python cpp] [--plain]

FOLDER holds packages in the layout of Kattis, problemtools or ICPC at any depth. Accepted
submissions must be accepted; those of the folders for wrong answers, crashes, time and memory must
be refused, for any reason. A time limit is the package's own, or the slowest accepted submission
times its multiplier.

With --plain the submissions of each disagreement also run by `python main.py` or as g++ builds
them, OUTSIDE the sandbox: only for archives you trust. The package's own validator decides about
their output, also outside, or the default one of the format, written here a second time. A label
that plain execution does not confirm (a wrong submission whose breaking test the archive lacks, an
accepted one in Python 2) says nothing about the judge; of the others, which the last line calls
`confirmed`, it counts the verdicts that agree. One JSON object a line.
"""

import argparse
import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import plain_execution

from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.data.sources import collect_row, list_shards, open_source, read_shard
from microcoder.judge import Judge
from microcoder.judge.core.types import Problem, Program, Verdict

LANGUAGES = ("python", "cpp")
DEFAULT_MULTIPLIER = 5.0
GENEROUS_SECONDS = 20.0
MOST_SECONDS = 60.0
_MULTIPLIER = re.compile(r"^([\d.e+]+) times the slowest")
_UNUSABLE = ("interactive", "needs_files", "needs_checker", "gives_points")


@dataclass(frozen=True)
class Judged:
    """One submission and what became of it."""

    candidate: Candidate
    solution: Solution
    verdict: Verdict
    seconds: float

    @property
    def should_pass(self) -> bool:
        return self.solution.known == "accepted"

    @property
    def agrees(self) -> bool:
        return self.verdict.is_scorable and self.verdict.is_accepted == self.should_pass


def read_packages(folder: Path, *, every: int = 1) -> Iterator[Candidate | Rejection]:
    """Yield every n-th package below a folder, or why it is none."""
    source = open_source(folder, "kattis", name="contests")
    for shard in list_shards(source, 1)[::every]:
        for row in read_shard(source, shard):
            yield collect_row(source, row)


def find_obstacle(package: Candidate | Rejection) -> str:
    """Return why a package's submissions cannot be judged; empty where they can."""
    if isinstance(package, Rejection):
        return f"{package.reason}: {package.detail}"
    standing = []
    for flag in package.flags:
        if flag in _UNUSABLE:
            standing.append(flag)
    if standing or package.tests:
        return ", ".join(standing)
    return "no tests"


def problem_of(package: Candidate, language: str, seconds: float) -> Problem:
    return package.to_trial(language, seconds=seconds, memory_mib=package.memory_limit_mib or 2048)


def judge_package(judge: Judge, package: Candidate, languages: list[str]) -> list[Judged]:
    """Judge a package's submissions: the accepted ones first,
    as the time limit follows from them.
    """
    known = []
    for s in package.solutions:
        if s.language in languages and s.known not in ("partial", "compile_error"):
            known.append(s)
    accepted = []
    for s in known:
        if s.known == "accepted":
            accepted.append(s)
    refused = []
    for s in known:
        if s.known != "accepted":
            refused.append(s)
    seconds = max(GENEROUS_SECONDS, package.time_limit_seconds or 0.0)
    judged = _judge(judge, package, accepted, seconds)
    slowest = max((t.cpu_seconds for j in judged if j.agrees for t in j.verdict.tests), default=1.0)
    limit = package.time_limit_seconds or max(1, math.ceil(multiplier_of(package) * slowest))
    return judged + _judge(judge, package, refused, min(float(limit), MOST_SECONDS))


def _judge(
    judge: Judge,
    package: Candidate,
    solutions: list[Solution],
    seconds: float,
) -> list[Judged]:
    verdicts = judge.judge(
        [Program(solution.code, solution.language) for solution in solutions],
        [problem_of(package, solution.language, seconds) for solution in solutions],
    )
    judged = []
    for s, verdict in zip(solutions, verdicts, strict=True):
        judged.append(Judged(package, s, verdict, seconds))
    return judged


def multiplier_of(package: Candidate) -> float:
    """Return how many times the slowest accepted submission others may take."""
    found = (_MULTIPLIER.match(line.detail) for line in package.lineage)
    return next((float(match[1]) for match in found if match), DEFAULT_MULTIPLIER)


def explain(judged: Judged, *, plain: bool) -> dict[str, Any]:
    """Return what a disagreement is about, by plain execution where that is allowed."""
    if not plain:
        return {
            "plain": None,
            "label_confirmed": None,
            "explanation": "pass --plain to run it outside the sandbox",
        }
    found = plain_execution.run_submission(
        judged.candidate,
        judged.solution,
        seconds=judged.seconds,
    )
    is_confirmed = found.is_accepted == judged.should_pass
    if found.is_undecided:
        why = f"plain execution decides nothing: {found.detail}"
    elif not is_confirmed:
        why = f"the label does not hold by plain execution: {found.verdict}"
    elif not judged.verdict.is_scorable:
        why = "unscored here"
    else:
        why = f"ours: {judged.verdict.outcome} here, {found.verdict} by plain execution"
    is_known = None if found.is_undecided else is_confirmed
    said = f"{found.verdict}: {found.detail}".rstrip(": ")
    return {"plain": said, "label_confirmed": is_known, "explanation": why}


def describe(judged: Judged) -> dict[str, Any]:
    verdict = judged.verdict
    return {
        "problem": judged.candidate.source_row,
        "submission": judged.solution.name,
        "language": judged.solution.language,
        "known": judged.solution.known,
        "verdict": verdict.outcome.value,
        "agrees": judged.agrees,
        "tests_passed": verdict.tests_passed,
        "tests_total": verdict.tests_total,
        "checker": judged.candidate.checker.type,
        "time_limit_seconds": judged.seconds,
        "detail": verdict.detail,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every n-th problem only")
    parser.add_argument("--languages", nargs="+", choices=LANGUAGES, default=list(LANGUAGES))
    parser.add_argument("--workers", type=int)
    parser.add_argument(
        "--plain",
        action="store_true",
        help="run disagreements outside the sandbox, too; unsafe",
    )
    arguments = parser.parse_args()
    seen: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    skipped: Counter[str] = Counter()
    labels: Counter[bool | None] = Counter()
    with Judge(workers=arguments.workers, stop="first_failure") as judge:
        for package in read_packages(arguments.folder, every=arguments.every):
            obstacle = find_obstacle(package)
            if obstacle or isinstance(package, Rejection):
                skipped[obstacle.partition(":")[0]] += 1
                continue
            for judged in judge_package(judge, package, arguments.languages):
                key = (judged.solution.language, judged.solution.known)
                seen[key] += 1
                right[key] += judged.agrees
                if not judged.agrees:
                    reasons = explain(judged, plain=arguments.plain)
                    labels[reasons["label_confirmed"]] += 1
                    print(json.dumps({**describe(judged), **reasons}), flush=True)
        num_crashes = judge.statistics.checker_crashes
    for language, known in sorted(seen):
        key = (language, known)
        print(
            json.dumps({"language": language, "known": known, "agree": right[key], "of": seen[key]})
        )
    sums = {
        "agree": right.total(),
        "of": seen.total(),
        "confirmed": right.total() + labels[True] if arguments.plain else None,
        "labels_not_confirmed": labels[False],
        "labels_unknown": labels[None],
        "checker_crashes": num_crashes,
        "packages_skipped": skipped,
    }
    print(json.dumps(sums))


if __name__ == "__main__":
    main()

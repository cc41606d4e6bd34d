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

import kodsport

from microcoder.dataset import Candidate, Rejection, Solution
from microcoder.dataset.candidates import Known
from microcoder.dataset.verify import (
    ChoiceSettings,
    Evidence,
    VerdictStore,
    VerifySettings,
    conclude,
    gather,
    measure_rates,
)
from microcoder.evaluator import Judge
from microcoder.types import Outcome

KINDS: dict[str, Known] = {
    "accepted": "accepted",
    "wrong_answer": "wrong_answer",
    "run_time_error": "runtime_error",
    "runtime_error": "runtime_error",
    "time_limit_exceeded": "time_limit",
    "partially_accepted": "partial",
}


def read_candidate(folder: Path) -> Candidate | str:
    """Return a package as a candidate, or why it is not complete."""
    package = kodsport.read_package(folder)
    if package is None:
        return "interactive, or without tests"
    try:
        checker = kodsport.read_checker(package)
    except ValueError as error:
        return str(error)
    statements = sorted((folder / "problem_statement").glob("problem*.tex")) or sorted(folder.glob("*statement*/*"))
    if not statements:
        return "no statement"
    languages = list(dict.fromkeys(kodsport.LANGUAGES.values()))
    solutions = [
        Solution(
            code=file.read_text(errors="replace"),
            language=kodsport.LANGUAGES[file.suffix],
            known=KINDS[kind],
            name=f"{kind}/{file.name}",
        )
        for kind, file in kodsport.submissions(package, tuple(KINDS), languages)
    ]
    if not any(solution.known == "accepted" for solution in solutions):
        return "no accepted program in Python or C++"
    megabytes = (package.settings.get("limits") or {}).get("memory")
    text = statements[0].read_text(errors="replace")
    inputs = [file for file in sorted(folder.glob("data/**/*.in")) if file.with_suffix(".ans").exists()]
    if all("sample" in file.relative_to(folder).parts for file in inputs):
        return "samples only"
    return Candidate(
        id=package.name,
        dataset="kodsport",
        statement_found=text,
        statement=text,
        tests=package.tests,
        groups=tuple(file.parent.relative_to(folder / "data").as_posix() for file in inputs),
        checker=checker,
        memory_limit_mib=int(megabytes) if megabytes else None,
        solutions=tuple(solutions),
    )


def read_candidates(folder: Path, first: int, every: int) -> Iterator[Candidate | str]:
    """Yield every n-th of the packages that are not copies of an earlier one."""
    seen: set[bytes] = set()
    distinct = []
    for settings in sorted(folder.rglob("problem.yaml")):
        digest = digest_of(settings.parent)
        if digest not in seen:
            distinct.append(settings.parent)
        seen.add(digest)
    for package in distinct[first::every]:
        yield read_candidate(package)


def digest_of(folder: Path) -> bytes:
    """Return what a package is told from others by: its settings and its tests."""
    files = [folder / "problem.yaml", *sorted(folder.glob("data/**/*.in")), *sorted(folder.glob("data/**/*.ans"))]
    content = hashlib.sha256()
    for file in files:
        content.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return content.digest()


def show(**record: object) -> None:
    print(json.dumps(record), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--every", type=int, default=1, help="take every n-th problem only")
    parser.add_argument("--first", type=int, default=0, help="leave out so many problems before that")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--runs", type=int, default=VerifySettings().runs, help="runs of every accepted program")
    parser.add_argument("--mode", choices=["cover", "paper"], default="cover", help="how tests are chosen")
    parser.add_argument("--store", type=Path)
    parser.add_argument("--out", type=Path, help="where the kept and the rejected records go, one a line")
    arguments = parser.parse_args()
    settings = VerifySettings(runs=arguments.runs, choice=ChoiceSettings(mode=arguments.mode))
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
    for name, rate in measure_rates([item for item in found if isinstance(item, Evidence)], settings):
        if rate is not None:
            show(rate=name, value=round(rate.value, 4), **rate.model_dump())


if __name__ == "__main__":
    main()

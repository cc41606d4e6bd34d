"""Which disguised benchmark problems are found, and which near misses are flagged:
`python benchmarks/disguises.py`, or with `--without-code` by their tests alone. With `--real` it
tries rows of deepseek_leetcode, by their tests alone, of which LiveCodeBench has the same problem.

The problems are in tests/data/behaviour/planted.jsonl: stories, paraphrases and translations of
problems of HumanEval, MBPP and LiveCodeBench, with tests of their own, and near misses; most of
either held out from the choice of thresholds. The benchmarks are read from the archives of real
data (`MICROCODER_DATA`, or `../shared/data` beside the project).
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from figures import DATA, ROOT

from microcoder.data.behaviour.comparison import find_behaviour
from microcoder.data.behaviour.pairs import index_behaviour
from microcoder.data.corpus.inputs import read_benchmark_problems, unpack_sources
from microcoder.data.corpus.settings import SourceSettings
from microcoder.data.filter.contamination import Hit, build_index, find_hits
from microcoder.data.formats.candidates import Candidate
from microcoder.judge import Judge

BENCHMARKS = {"humaneval": "humaneval", "mbpp": "mbpp", "lcb_eval": "livecodebench"}


def read_benchmarks(folder: Path) -> list[Candidate]:
    """Return the problems of the three benchmarks."""
    sources = []
    for name, kind in BENCHMARKS.items():
        sources.append(SourceSettings(path=str(DATA / f"{name}.tar.xz"), format=kind))
    return read_benchmark_problems(unpack_sources(sources, into=folder))


def try_real_rows() -> None:
    """Print which of every other row of deepseek_leetcode are found by what they compute alone."""
    with tempfile.TemporaryDirectory() as folder, Judge(workers=1) as judge:
        benchmark = read_benchmarks(Path(folder))
        source = SourceSettings(
            path=str(DATA / "deepseek_leetcode.tar.xz"),
            format="deepseek_leetcode",
        )
        rows = read_benchmark_problems(unpack_sources([source], into=Path(folder)))
        names = {problem.id: name_of(problem) for problem in benchmark}
        known = [row for row in rows if name_of(row) in names.values()][::4]
        counts: Counter[str] = Counter(known=len(known))
        for row, compared in zip(
            known,
            find_behaviour(known, index_behaviour(benchmark), judge),
            strict=True,
        ):
            found = {names[hit.problem_id] for hit in compared.hits}
            counts["found"] += name_of(row) in found
            others = sorted(found - {name_of(row)})
            counts["with others"] += bool(others)
            print(f"{name_of(row) in found} {row.title}: {', '.join(others)}")
        print(json.dumps(counts))


def name_of(problem: Candidate) -> str:
    """Return the name of a problem as it stands in its address on LeetCode."""
    return "-".join(re.findall("[a-z0-9]+", problem.title.lower()))


def main() -> None:
    if "--real" in sys.argv:
        try_real_rows()
        return
    sys.path.insert(0, str(ROOT))
    from tests.data.behaviour import planted

    with tempfile.TemporaryDirectory() as folder, Judge(workers=1) as judge:
        benchmark = read_benchmarks(Path(folder))
        titles = {problem.id: problem.title for problem in benchmark}
        words = build_index(benchmark)
        behaviour = index_behaviour(benchmark)
        start = time.process_time()
        items = (*planted.DISGUISED, *planted.NEAR_MISSES)
        if "--without-code" in sys.argv:
            items = tuple(replace(item, has_code=False) for item in items)
        candidates = [item.candidate(number) for number, item in enumerate(items)]
        hits_by_item = []
        for candidate, compared in zip(
            candidates,
            find_behaviour(candidates, behaviour, judge),
            strict=True,
        ):
            hits_by_item.append(find_hits(candidate, words) + compared.hits)
        report: dict[str, object] = {**by_part(count_found(items, hits_by_item, titles))}
        report["benchmark"] = len(benchmark)
        report["forms"] = len(behaviour.forms)
        report["own CPU seconds"] = round(time.process_time() - start, 1)
        print(json.dumps(report))


def count_found(
    items: Sequence[Any],
    hits_by_item: Sequence[Sequence[Hit]],
    titles: Mapping[str, str],
) -> Counter[tuple[str, str]]:
    """Print what was found of each planted problem, and return the counts by part."""
    counts: Counter[tuple[str, str]] = Counter()
    for number, (item, hits) in enumerate(zip(items, hits_by_item, strict=True)):
        is_right = any(titles[hit.problem_id] in item.titles for hit in hits)
        kind, part = name_parts(item)
        for name in (kind, part):
            counts[name, "all"] += 1
            counts[name, "found"] += is_right if item.is_copy else bool(hits)
            counts[name, "by words"] += any(hit.by != "behaviour" for hit in hits)
        evidence = "; ".join(describe(hit, titles) for hit in hits[:2])
        verdict = say_what_was_found(hits, is_right)
        print(f"{verdict} {number} {part}: {item.of}, {item.how}: {evidence}")
    return counts


def name_parts(item: Any) -> tuple[str, str]:
    """Return the kind of a planted problem, and the part of that kind which it belongs to."""
    kind = "copies" if item.is_copy else "near misses"
    return kind, f"{kind} {item.part}"


def say_what_was_found(hits: Sequence[Hit], is_right: bool) -> str:
    """Return whether the right problem was found, another one, or none."""
    if is_right:
        return "right"
    return "other" if hits else "none"


def describe(hit: Hit, titles: Mapping[str, str]) -> str:
    """Return which problem was found, and by what."""
    return f"{titles[hit.problem_id]} by {hit.by} {hit.score} ({hit.detail})"


def by_part(counts: Counter[tuple[str, str]]) -> dict[str, dict[str, int]]:
    """Return the counts by part, in the order in which parts were met."""
    parts = {}
    for part, _ in counts:
        parts[part] = {name: counts[part, name] for name in ("all", "found", "by words")}
    return parts


if __name__ == "__main__":
    main()

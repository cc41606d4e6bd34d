"""Which disguised benchmark problems are found, and which near misses are flagged: `python benchmarks/disguises.py`.

The problems are in tests/data/behaviour/planted.jsonl: stories, paraphrases and translations of problems of HumanEval,
MBPP and LiveCodeBench, with tests of their own, and near misses; most of either held out from the choice of thresholds.
The benchmarks are read from the archives of real data (`MICROCODER_DATA`, or `../shared/data` beside the project).
"""

import json
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from figures import DATA, ROOT

from microcoder.data.behaviour.comparison import find_behaviour, index_behaviour
from microcoder.data.corpus.inputs import read_benchmark_problems, unpack_sources
from microcoder.data.corpus.settings import SourceSettings
from microcoder.data.filter.contamination import build_index, find_hits
from microcoder.data.formats.candidates import Candidate
from microcoder.judge import Judge

BENCHMARKS = {"humaneval": "humaneval", "mbpp": "mbpp", "lcb_eval": "livecodebench"}


def read_benchmarks(folder: Path) -> list[Candidate]:
    """Return the problems of the three benchmarks."""
    sources = [
        SourceSettings(path=str(DATA / f"{name}.tar.xz"), format=kind)
        for name, kind in BENCHMARKS.items()
    ]
    return read_benchmark_problems(unpack_sources(sources, into=folder))


def main() -> None:
    sys.path.insert(0, str(ROOT / "tests" / "data" / "behaviour"))
    import planted

    with tempfile.TemporaryDirectory() as folder, Judge(workers=1) as judge:
        benchmark = read_benchmarks(Path(folder))
        titles = {one.id: one.title for one in benchmark}
        words, behaviour = build_index(benchmark), index_behaviour(benchmark)
        counts: Counter[tuple[str, str]] = Counter()
        start = time.process_time()
        for number, item in enumerate((*planted.DISGUISED, *planted.NEAR_MISSES)):
            candidate = item.candidate(number)
            by_words = find_hits(candidate, words)
            hits = by_words + find_behaviour(candidate, behaviour, judge)
            is_right = any(titles[hit.problem_id] in item.titles for hit in hits)
            kind = "copies" if item.is_copy else "near misses"
            part = kind + (" held out" if item.is_held_out else " chosen on")
            for each in (kind, part):
                counts[each, "all"] += 1
                counts[each, "found"] += is_right if item.is_copy else bool(hits)
                counts[each, "by words"] += bool(by_words)
            said = "; ".join(
                f"{titles[hit.problem_id]} by {hit.by} {hit.score} ({hit.detail})"
                for hit in hits[:2]
            )
            how = "right" if is_right else "other" if hits else "none"
            print(f"{how} {number} {part}: {item.of}, {item.how}: {said}")
        parts = {
            part: {what: counts[part, what] for what in ("all", "found", "by words")}
            for part, _ in counts
        }
        size = {"benchmark": len(benchmark), "forms": len(behaviour.forms)}
        print(
            json.dumps({**parts, **size, "own CPU seconds": round(time.process_time() - start, 1)})
        )


if __name__ == "__main__":
    main()

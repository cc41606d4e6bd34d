"""Which copies of a benchmark's problems are found: `python benchmarks/decontamination.py`.

JSON, the sums last.

The benchmark is LiveCodeBench (880 problems). Of the 180 contest problems of deepseek_leetcode,
each in English and in Chinese, 128 are among them by their LeetCode name. Kodsport's statements
(Swedish and English) are none of them: what is found there is a false hit. Each set is measured
`as_found`, with titles and addresses, and `text_only`, without: the second is what a renamed copy
leaves to be found. Other sets follow for comparison; doocs holds real copies.

It reads the archives of real data (`MICROCODER_DATA`, or `../shared/data` beside the project),
with the `data` extra.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from microcoder.data.clean.sections import normalise
from microcoder.data.filter.contamination import ContaminationIndex, build_index, find_hits
from microcoder.data.filter.keys import source_keys
from microcoder.data.formats.candidates import Candidate

ROOT = Path(__file__).resolve().parents[1]


def known_copies(rows: Sequence[Candidate], benchmark: Sequence[Candidate]) -> dict[str, str]:
    """Return the benchmark's problem for each row that has the name of one on its platform."""
    names = {}
    for one in benchmark:
        for key in source_keys(one):
            names[key] = one.id
    copies = {}
    for row in rows:
        for key in source_keys(row):
            if key in names:
                copies[row.id] = names[key]
    return copies


def without_source(row: Candidate, number: int) -> Candidate:
    """Return the row with nothing but its texts, examples and starter code."""
    return row.model_copy(
        update={"id": f"unknown/{number}", "url": "", "title": "", "platform": ""}
    )


def arranged(row: Candidate) -> Candidate:
    """Return the row in the layout that the filter stage sees."""
    return row.model_copy(update={"statement": normalise(row.statement)})


def measure(
    rows: Sequence[Candidate],
    index: ContaminationIndex,
    copies: Mapping[str, str],
    *,
    text_only: bool = False,
) -> dict[str, Any]:
    """Return how many of the known copies are found, by the right problem's strongest evidence,
    and what else is.
    """
    found_by: Counter[str] = Counter()
    missed = []
    other_hits = []
    start = time.perf_counter()
    for number, row in enumerate(rows):
        hits = find_hits(without_source(row, number) if text_only else row, index)
        right = []
        for hit in hits:
            if hit.problem_id == copies.get(row.id):
                right.append(hit)
        if right:
            found_by[right[0].by] += 1
        elif row.id in copies:
            missed.append(f"{row.id}: is {copies[row.id]}")
        elif hits:
            other_hits.append(f"{row.id}: {hits[0].problem_id} by {hits[0].by} ({hits[0].detail})")
    return {
        "num_rows": len(rows),
        "num_copies": sum(row.id in copies for row in rows),
        "num_found": found_by.total(),
        "num_other_hits": len(other_hits),
        "found_by": dict(found_by.most_common()),
        "missed": missed,
        "other_hits": other_hits,
        "seconds": round(time.perf_counter() - start, 2),
    }


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from tests.data.clean import real_texts

    benchmark = real_texts.livecodebench()
    start = time.perf_counter()
    index = build_index(benchmark)
    print(json.dumps({"index": len(benchmark), "seconds": round(time.perf_counter() - start, 2)}))
    sets = {
        "deepseek, English": real_texts.deepseek("en"),
        "deepseek, Chinese": real_texts.deepseek("zh"),
        "kodsport": real_texts.kodsport(1),
        "codecontests": real_texts.codecontests(),
        "mbpp": real_texts.mbpp(),
        "doocs, English": real_texts.doocs("en", 1),
        "doocs, Chinese": real_texts.doocs("zh", 1),
    }
    sums: dict[str, dict[str, Any]] = {}
    for name, found in sets.items():
        rows = [arranged(row) for row in found]
        copies = known_copies(rows, benchmark)
        for text_only in (False, True):
            figures = measure(rows, index, copies, text_only=text_only)
            seen = "text_only" if text_only else "as_found"
            print(json.dumps({"set": name, "seen": seen, **figures}))
            sums.setdefault(name, {})[seen] = {
                key: figures[key] for key in figures if key.startswith("num_")
            }
    print(json.dumps(sums))


if __name__ == "__main__":
    main()

"""Which copies of a benchmark's problems are found: `python benchmarks/decontamination.py`. One JSON object a line.

The benchmark is LiveCodeBench (880 problems). Of the 180 contest problems of deepseek_leetcode, each in English and in
Chinese, 128 are among them by their LeetCode name. Kodsport's statements (Swedish and English) are none of them: what
is found there is a false hit. Each set is measured `as_found`, with titles and addresses, and `text_only`, without: the
second is what a renamed copy leaves to be found. Other sets follow for comparison; doocs holds real copies.

It reads the archives of real data (`MICROCODER_DATA`, or `../shared/data` beside the project), with the `data` extra.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from microcoder.data.clean.sections import normalise
from microcoder.data.filter import ContaminationIndex, build_index, find_hits
from microcoder.data.filter.contamination import source_keys
from microcoder.data.formats.candidates import Candidate

READERS = Path(__file__).resolve().parents[1] / "tests" / "data" / "clean"


@dataclass(frozen=True)
class Figures:
    """What was found among the rows of one set."""

    num_rows: int
    num_copies: int
    """Rows that are known to be copies."""
    num_found: int
    """Copies of which the right problem was named."""
    found_by: dict[str, int]
    """The right problem's strongest evidence."""
    missed: list[str]
    other_hits: list[str]
    """Rows that are not known to be copies, with the problem that they were taken for, and why."""
    seconds: float


def known_copies(rows: Sequence[Candidate], benchmark: Sequence[Candidate]) -> dict[str, str]:
    """Return the benchmark's problem for each row that has the name of one on its platform."""
    names = {key: one.id for one in benchmark for key in source_keys(one)}
    return {row.id: names[key] for row in rows for key in source_keys(row) if key in names}


def without_source(row: Candidate, number: int) -> Candidate:
    """Return the row with nothing but its texts, examples and starter code."""
    return row.model_copy(update={"id": f"unknown/{number}", "url": "", "title": "", "platform": ""})


def arranged(row: Candidate) -> Candidate:
    """Return the row in the layout that the filter stage sees."""
    return row.model_copy(update={"statement": normalise(row.statement)})


def measure(
    rows: Sequence[Candidate], index: ContaminationIndex, copies: Mapping[str, str], *, text_only: bool = False
) -> Figures:
    """Return how many of the known copies are found, and what else is."""
    found_by: Counter[str] = Counter()
    missed, other_hits = [], []
    start = time.perf_counter()
    for number, row in enumerate(rows):
        hits = find_hits(without_source(row, number) if text_only else row, index)
        right = [hit for hit in hits if hit.problem_id == copies.get(row.id)]
        if right:
            found_by[right[0].by] += 1
        elif row.id in copies:
            missed.append(f"{row.id}: is {copies[row.id]}")
        elif hits:
            other_hits.append(f"{row.id}: {hits[0].problem_id} by {hits[0].by} ({hits[0].detail})")
    return Figures(
        num_rows=len(rows),
        num_copies=sum(row.id in copies for row in rows),
        num_found=found_by.total(),
        found_by=dict(found_by.most_common()),
        missed=missed,
        other_hits=other_hits,
        seconds=round(time.perf_counter() - start, 2),
    )


def main() -> None:
    sys.path[:0] = [str(READERS), str(READERS.parent)]
    import real_texts

    benchmark = real_texts.livecodebench()
    start = time.perf_counter()
    index = build_index(benchmark)
    print(json.dumps({"index": len(benchmark), "seconds": round(time.perf_counter() - start, 2)}))
    sets = {
        "deepseek_leetcode, English": real_texts.deepseek("en"),
        "deepseek_leetcode, Chinese": real_texts.deepseek("zh"),
        "kodsport": real_texts.kodsport(1),
        "codecontests": real_texts.codecontests(),
        "mbpp": real_texts.mbpp(),
        "doocs, English": real_texts.doocs("en"),
        "doocs, Chinese": real_texts.doocs("zh"),
    }
    bars: dict[bool, list[Figures]] = {False: [], True: []}
    for name, found in sets.items():
        rows = [arranged(row) for row in found]
        copies = known_copies(rows, benchmark)
        for text_only in (False, True):
            figures = measure(rows, index, copies, text_only=text_only)
            print(json.dumps({"set": name, "seen": "text_only" if text_only else "as_found", **asdict(figures)}))
            bars[text_only].append(figures)
    for text_only, (english, chinese, kodsport, *_) in bars.items():
        print("Without titles and addresses:" if text_only else "With titles and addresses:")
        print(f"  English copies found    {english.num_found} of {english.num_copies}   (bar: 126 of 128)")
        print(f"  Chinese copies found    {chinese.num_found} of {chinese.num_copies}   (bar: 126 of 128)")
        share = len(kodsport.other_hits) / kodsport.num_rows
        print(f"  False hits on kodsport  {len(kodsport.other_hits)} of {kodsport.num_rows}, {share:.1%}   (bar: 1 %)")
        for missed in (*english.missed, *chinese.missed, *kodsport.other_hits):
            print(f"    {missed}")


if __name__ == "__main__":
    main()

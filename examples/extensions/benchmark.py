"""A format of your own, here a benchmark's.

Evaluation and decontamination both read rows by its one function.

evaluation:  benchmark = {kind = "problems", format = "benchmark.py:read_cup", path = "cup.jsonl"}
corpus:      [[benchmarks]] with format = "benchmark.py:read_cup" and path = "cup.jsonl"
anywhere:    read_problem(row, format="benchmark.py:read_cup")
"""

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.row import Malformed, Row
from microcoder.judge.core.types import TestCase


def read_cup(row: Row) -> Candidate:
    """Read a row like {"name": ..., "task": ..., "cases": [["1 2", "3"]]}."""
    cases = row.values.get("cases")
    if not isinstance(cases, list) or not all(len(case) == 2 for case in cases):
        raise Malformed("bad_tests", "cases is no list of pairs")
    tests = tuple(TestCase(input=given, output=expected) for given, expected in cases)
    return row.candidate(row.statement("task"), title=row.name("name"), tests=tests)


# Never trained on; leave it out where the format is of training data.
read_cup.is_benchmark = True  # type: ignore[attr-defined]

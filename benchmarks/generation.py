"""What tests made from shown examples alone catch: `python benchmarks/generation.py [PROBLEMS [AFTER]]`. JSON lines.

LeetCodeDataset v0.3.1 keeps about 100 hidden tests a problem. Each problem is given to the generate stage with nothing
but the tests that its statement shows. Truth is the data set's: mutants of the reference (none of those that chose the
tests) that fail its tests are wrong; those that pass them all are taken for right. Counted is what the shown tests and
the made ones say of both.

The problems are shuffled once; PROBLEMS of them are taken AFTER so many, so that two samples need not overlap.

It reads the archives of real data (`MICROCODER_DATA`, or `../shared/data` beside the project), with the `data` extra.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from microcoder.dataset.generation import GenerateSettings, Judges, count_hidden, find_shown, generate
from microcoder.dataset.generation.making import seed_of
from microcoder.dataset.generation.mutants import make_mutants
from microcoder.dataset.generation.stage import find_references, find_wrong_programs
from microcoder.dataset.process import process
from microcoder.errors import MicroCoderError
from microcoder.evaluator import Judge
from microcoder.formats.candidates import Candidate
from microcoder.formats.catalogue import FORMATS
from microcoder.formats.row import Malformed
from microcoder.types import Problem, Program, TestCase

_MEMBER = "leetcodedataset/LeetCodeDataset-v0.3.1-test.jsonl.gz"
_SETTINGS = GenerateSettings()
_MOST_MUTANTS = 16


def read_problems() -> Iterator[Candidate]:
    """Yield the processed problems whose answers can be compared."""
    data = Path(os.environ.get("MICROCODER_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    with tarfile.open(data / "leetcodedataset.tar.xz") as archive:
        member = archive.extractfile(_MEMBER)
        assert member is not None
        lines = gzip.decompress(member.read()).decode("utf-8").splitlines()
    for number, line in enumerate(lines):
        try:
            row = process(FORMATS["leetcodedataset"].read_row(json.loads(line), str(number)))
        except Malformed:
            continue
        if isinstance(row, Candidate) and "many_answers" not in row.flags:
            yield row


def measure(row: Candidate, judges: Judges) -> dict[str, object]:
    """Return what shown and made tests say of mutants of one problem."""
    started = time.process_time()
    shown = [test for test, is_shown in zip(row.tests, find_shown(row), strict=True) if is_shown]
    if not shown:
        return {"id": row.id, "no_shown": 1}
    made = generate(row.model_copy(update={"tests": tuple(shown)}), lambda: judges, _SETTINGS)
    if not isinstance(made, Candidate):
        return {"id": row.id, "rejected": 1}
    reference = find_references(row)[0]
    seed = seed_of(_SETTINGS.seed, row.id, "mutants")
    choosing, _ = find_wrong_programs(row, [reference], _SETTINGS, seed=seed)
    known = {one.program.code for one in choosing}
    fresh = [one for one in make_mutants(reference.code or "", limit=60, seed=999) if one.code not in known]
    programs = [Program(one.code) for one in fresh[:_MOST_MUTANTS]]

    def passes(tests: Sequence[TestCase]) -> list[bool]:
        problem = Problem(
            id=row.id, fn_name=row.fn_name, call=row.call, starter_code=row.starter_code, tests=tuple(tests),
            time_limit_seconds=2.0, memory_limit_mib=1024, checker=row.checker,
        )  # fmt: skip
        return [verdict.is_accepted for verdict in judges.brief.judge(programs, [problem] * len(programs))]

    truth, by_shown, by_made = passes(row.tests), passes(shown), passes(made.tests)
    wrong = [number for number, is_right in enumerate(truth) if not is_right]
    right = [number for number, is_right in enumerate(truth) if is_right]
    return {
        "id": row.id,
        "tests": len(made.tests),
        "has_10_hidden": int(count_hidden(made) >= 10),
        "all_shown": int(count_hidden(made) == 0),
        "wrong": len(wrong),
        "caught_by_shown": sum(not by_shown[number] for number in wrong),
        "caught_by_made": sum(not by_made[number] for number in wrong),
        "right": len(right),
        "right_pass": sum(by_made[number] for number in right),
        "missed": [fresh[number].name for number in wrong if by_made[number]],
        "refused": [fresh[number].name for number in right if not by_made[number]],
        "judge_and_own_seconds": round(time.process_time() - started, 2),
    }


def main() -> None:
    """Measure a sample of the problems, and print the sums last."""
    given = [int(word) for word in sys.argv[1:3]]
    most, after = [*given, *(60, 0)[len(given) :]]
    problems = sorted(read_problems(), key=lambda row: seed_of("benchmark", row.id))
    sums: Counter[str] = Counter()
    with (
        Judge(workers=1, stop="first_limit", cache_size=0) as thorough,
        Judge(workers=1, stop="first_failure", cache_size=0) as brief,
    ):
        for row in problems[after : after + most]:
            try:
                found = measure(row, Judges(thorough, brief))
            except MicroCoderError as error:
                found = {"id": row.id, "error": str(error)}
            print(json.dumps(found), flush=True)
            sums.update({name: value for name, value in found.items() if isinstance(value, int)})
            sums["problems"] += 1
    print(json.dumps(dict(sums)))


if __name__ == "__main__":
    main()

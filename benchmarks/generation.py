"""What tests made from shown examples alone catch: `python benchmarks/generation.py [PROBLEMS [AFTER]]`. JSON lines.

LeetCodeDataset v0.3.1 keeps about 100 hidden tests a problem. Each problem is given to the generate stage with nothing
but the tests that its statement shows. Two kinds of programs are then judged by the shown and by the made tests:

- mutants of the reference (none of those that chose the tests) that fail the data set's own tests: wrong ones;
- the program that a model wrote, which the data set keeps with most problems: right, wrong or slow by its own tests; a
  right one that only meets a limit on large inputs is counted apart (`right_but_slow`).

Mutants that pass the data set's tests are counted too; they are no measure of right programs, since many are wrong on
larger inputs than it has (another modulus, for one).

The problems are shuffled once; PROBLEMS of them are taken AFTER so many, so that two samples need not overlap.

It reads the archives of real data (`MICROCODER_DATA`, or `../shared/data` beside the project), with the `data` extra.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from microcoder.data.clean import process
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.row import Malformed
from microcoder.data.formats.rows import FORMATS
from microcoder.data.tests import GenerateSettings, Judges, count_hidden, find_shown, generate
from microcoder.data.tests.killing import make_mutants
from microcoder.data.tests.makers import seed_of
from microcoder.data.tests.stage import find_references, find_wrong_programs
from microcoder.data.verify.execution import LIMIT_STEPS_SECONDS, MULTIPLIER
from microcoder.judge import Judge
from microcoder.judge.core.errors import MicroCoderError
from microcoder.judge.core.extract import extract_program
from microcoder.judge.core.types import Outcome, Program, TestCase

_MEMBER = "leetcodedataset/LeetCodeDataset-v0.3.1-test.jsonl.gz"
_SETTINGS = GenerateSettings(keep_unchecked=True)
"""Nothing validates inputs of these rows."""
_MOST_MUTANTS = 16
_SLOW = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT)


def read_problems() -> Iterator[tuple[Candidate, str | None]]:
    """Yield the processed problems whose answers can be compared, each with the program that a model wrote."""
    data = Path(os.environ.get("MICROCODER_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
    with tarfile.open(data / "leetcodedataset.tar.xz") as archive:
        member = archive.extractfile(_MEMBER)
        assert member is not None
        lines = gzip.decompress(member.read()).decode("utf-8").splitlines()
    for number, line in enumerate(lines):
        content = json.loads(line)
        try:
            row = process(FORMATS["leetcodedataset"].read_row(content, str(number)))
        except Malformed:
            continue
        if isinstance(row, Candidate) and "many_answers" not in row.flags:
            yield row, extract_program(content["response"]).code


def measure(row: Candidate, by_model: str | None, judges: Judges) -> dict[str, object]:
    """Return what shown and made tests say of the programs of one problem."""
    started = time.process_time()
    shown = [test for test, is_shown in zip(row.tests, find_shown(row), strict=True) if is_shown]
    if not shown:
        return {"id": row.id, "no_shown": 1}
    # Unchecked tests need two references, and the set has one a problem.
    twice = [
        one.model_copy(update={"code": f"{one.code}{end}"}) for one in row.solutions for end in ("", "\n# again\n")
    ]
    given = row.model_copy(update={"tests": tuple(shown), "solutions": tuple(twice)})
    made = generate(given, lambda: judges, _SETTINGS)
    if not isinstance(made, Candidate):
        return {"id": row.id, "rejected": 1}
    own = time.process_time() - started
    reference = find_references(row)[0]
    choosing, _ = find_wrong_programs(row, [reference], seed=seed_of(_SETTINGS.seed, row.id, "mutants"))
    known = {one.program.code for one in choosing}
    fresh = [one for one in make_mutants(reference.code or "", limit=60, seed=999) if one.code not in known]
    fresh = fresh[:_MOST_MUTANTS]
    (timed,) = judges.thorough.judge(
        [reference], [row.to_trial("python", seconds=20, memory_mib=1024, tests=made.tests)]
    )
    slowest = max((test.cpu_seconds for test in timed.tests), default=0.0) / judges.thorough.time_scale
    # As verify derives a limit.
    limit = LIMIT_STEPS_SECONDS[0] if MULTIPLIER * slowest <= LIMIT_STEPS_SECONDS[0] else LIMIT_STEPS_SECONDS[-1]

    def judge(codes: Sequence[str], tests: Sequence[TestCase]) -> list[Outcome]:
        problem = row.to_trial("python", seconds=limit, memory_mib=1024, tests=tests)
        return [one.outcome for one in judges.brief.judge([Program(code) for code in codes], [problem] * len(codes))]

    codes = [one.code for one in fresh] + ([by_model] if by_model else [])
    truth, by_shown, by_made = judge(codes, row.tests), judge(codes, shown), judge(codes, made.tests)
    is_right = [outcome is Outcome.ACCEPTED for outcome in truth]
    passes = [outcome is Outcome.ACCEPTED for outcome in by_made]
    mutants = range(len(fresh))
    found: dict[str, object] = {
        "id": row.id,
        "tests": len(made.tests),
        "has_10_hidden": int(count_hidden(made) >= 10),
        "all_shown": int(count_hidden(made) == 0),
        "wrong": sum(not is_right[n] for n in mutants),
        "caught_by_shown": sum(not is_right[n] and by_shown[n] is not Outcome.ACCEPTED for n in mutants),
        "caught_by_made": sum(not is_right[n] and not passes[n] for n in mutants),
        "pass_data_set": sum(is_right[n] for n in mutants),
        "pass_both": sum(is_right[n] and passes[n] for n in mutants),
        "missed": [fresh[n].name for n in mutants if not is_right[n] and passes[n]],
        "refused": [f"{fresh[n].name} {by_made[n].value}" for n in mutants if is_right[n] and not passes[n]],
        "own_seconds": round(own, 2),
    }
    if by_model:
        kind = "right" if is_right[-1] else "slow" if truth[-1] in _SLOW else "wrong"
        if is_right[-1] and by_made[-1] in _SLOW:
            # The data set's inputs are short; a quadratic program is right there and too slow for what is allowed.
            kind = "right_but_slow"
        found |= {f"model_{kind}": 1, f"model_{kind}_pass": int(passes[-1])}
        found |= {f"model_{kind}_pass_shown": int(by_shown[-1] is Outcome.ACCEPTED), "model": by_made[-1].value}
    return found


def main() -> None:
    """Measure a sample of the problems, and print the sums last."""
    given = [int(word) for word in sys.argv[1:3]]
    most, after = [*given, *(60, 0)[len(given) :]]
    problems = sorted(read_problems(), key=lambda found: seed_of("benchmark", found[0].id))
    sums: Counter[str] = Counter()
    started = time.monotonic()
    with (
        Judge(workers=1, stop="first_limit", cache_size=0) as thorough,
        Judge(workers=1, stop="first_failure", cache_size=0) as brief,
    ):
        for row, by_model in problems[after : after + most]:
            try:
                found = measure(row, by_model, Judges(thorough, brief))
            except MicroCoderError as error:
                found = {"id": row.id, "error": str(error)}
            print(json.dumps(found), flush=True)
            sums.update({name: value for name, value in found.items() if isinstance(value, int)})
            sums["problems"] += 1
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    cpu = sum(one.ru_utime + one.ru_stime for one in used)
    seconds = {"cpu_seconds": round(cpu), "wall_seconds": round(time.monotonic() - started)}
    print(json.dumps({**sums, **seconds}))


if __name__ == "__main__":
    main()

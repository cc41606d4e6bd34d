"""Validators under garbage: every checker program of a folder of packages must give a verdict on
any output.

    python benchmarks/garbage_outputs.py FOLDER [--tests 3]

For each package with a validator of its own, in Python or C++, fifteen kinds of garbage on its
first tests: no verdict may be unscored, unless the validator fails on the package's own answer as
well. One JSON object a line: what is unscored, the validators that refuse or fail on their own
answers, and in the last line the totals.
"""

import argparse
import base64
import json
from collections import Counter
from pathlib import Path

from contests import find_obstacle, problem_of, read_packages

from microcoder.data.formats.candidates import Rejection
from microcoder.judge import Judge, judge_answers
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase

WRITE = "import sys\nwrite = sys.stdout.buffer.write\n"
KINDS = {
    "empty": "",
    "white space": "write(b' \\n\\t\\r\\n' * 100)",
    "huge integer": "write(b'9' * 4000)",
    "10^5 digits": "write(b'7' * 100_000)",
    "raw bytes": "write(bytes(range(128, 256)) * 100)",
    "NULs": "write(b'\\0' * 1000)",
    "negative numbers": "write(b'-1\\n' * 1000)",
    "nan and inf": "write(b'nan inf -inf ' * 300)",
    "unicode digits": "write('٣ ² ½ Ⅷ 一\\n'.encode() * 100)",
    "very long line": "write(b'a ' * (2 << 20))",
    "many lines": "write(b'1\\n' * (2 << 20))",
    "deep brackets": "write(b'[' * 200_000)",
    "input echoed": "write(sys.stdin.buffer.read())",
    "answer and junk": "write(ANSWER + b'\\n0 junk -1 [\\n')",
    "answer cut off": "write(ANSWER[:len(ANSWER) * 2 // 3])",
}


def program_for(kind: str, test: TestCase) -> Program:
    """Return a program that writes a kind of garbage for one test."""
    code = KINDS[kind]
    if "ANSWER" in code:
        packed = base64.b85encode(test.output.encode()).decode()
        code = f"import base64\nANSWER = base64.b85decode({packed!r})\n{code}"
    return Program(WRITE + code)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tests", type=int, default=3, help="tests of each package")
    parser.add_argument("--workers", type=int)
    arguments = parser.parse_args()
    outcomes: Counter[str] = Counter()
    answers: Counter[str] = Counter()
    by_language: Counter[str] = Counter()
    with Judge(workers=arguments.workers) as judge:
        for package in read_packages(arguments.folder):
            if (
                isinstance(package, Rejection)
                or find_obstacle(package)
                or package.checker.type != "program"
            ):
                continue
            by_language[package.checker.language] += 1
            smallest = sorted(package.tests, key=lambda test: len(test.input) + len(test.output))[
                : arguments.tests
            ]
            problems = []
            for test in smallest:
                problems.append(
                    problem_of(package, "python", 20.0).model_copy(update={"tests": (test,)})
                )
            for problem in problems:
                own = judge_answers(judge.judge, problem)
                answers[own.outcome] += 1
                if not own.is_accepted:
                    print(
                        json.dumps({"package": package.source_row, "own_answer": own.detail}),
                        flush=True,
                    )
                for row in judge_garbage(judge, problem):
                    outcomes[row["verdict"]] += 1
                    if row["verdict"] == Outcome.SANDBOX_FAULT:
                        print(json.dumps({"package": package.source_row, **row}), flush=True)
        crashes = judge.statistics.checker_crashes
    unscored = outcomes[Outcome.SANDBOX_FAULT]
    sums = {"validators": by_language.total(), "verdicts": outcomes.total(), "unscored": unscored}
    print(json.dumps({**sums, "outcomes": outcomes, "own_answers": answers, "crashes": crashes}))


def judge_garbage(judge: Judge, problem: Problem) -> list[dict[str, str]]:
    """Return a record for each kind."""
    verdicts = judge.judge(
        [program_for(kind, problem.tests[0]) for kind in KINDS], [problem] * len(KINDS)
    )
    rows = []
    for kind, verdict in zip(KINDS, verdicts, strict=True):
        rows.append({"kind": kind, "verdict": verdict.outcome.value, "detail": verdict.detail})
    return rows


if __name__ == "__main__":
    main()

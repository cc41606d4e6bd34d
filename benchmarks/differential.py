"""The fast judge against the specification (`judge/run/reference.py`): every test of every program,
the same outcome.

    python benchmarks/differential.py OUT.jsonl --contests FOLDER \\
        --leetcode FILE.jsonl.gz ... --livecodebench lcb_eval

Programs: Python and C++ submissions of contest packages, right and wrong (as for
benchmarks/contests.py), references of LeetCodeDataset, and mutants of both, what two models
answered to LiveCodeBench (with the tests that benchmarks/livecodebench.py finds), and the hostile,
forging and stateful programs of the tests. Where the two differ, both judge again, and the
difference is explained:

`time`    one of them met a limit of time, and the other came close to it: a busy machine
`random`  the reference itself says one thing, then another: the program draws lots,
          or reads a clock
`gone`    judged again, both say the same
`real`    each repeats what it said: a fault of the fast judge or of the specification

OUT.jsonl has a line a program; started again, what it holds is not judged again. The last line has
the sums. Ends with status 1 where a difference is real.
"""

import argparse
import contextlib
import json
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import zip_longest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import contests
import livecodebench
from evaluator_step import mutate_program
from tests.judge import safety_suites, stateful_programs

from microcoder.data.formats.candidates import Rejection
from microcoder.data.sources import collect_row, list_shards, open_source, read_shard
from microcoder.judge import Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.run.reference import judge_by_reference

Case = tuple[str, Program, Problem]
LIMIT_SECONDS = 2.0
MOST_TESTS = 12
REPEATED = 4
AGAIN = 2
"""How often both judge again where they differ."""
CLOSE = 0.4
"""Share of a limit beyond which a test came close to it: this machine has neighbours."""


def read_contests(folder: Path, language: str) -> Iterator[Case]:
    """Yield the submissions of problem packages in a language, and of the Python ones a mutant."""
    for package in contests.read_packages(folder):
        if isinstance(package, Rejection) or contests.find_obstacle(package):
            continue
        for number, solution in enumerate(package.solutions):
            if solution.language != language:
                continue
            problem = contests.problem_of(package, solution.language, LIMIT_SECONDS)
            problem = problem.model_copy(update={"tests": problem.tests[:MOST_TESTS]})
            name = f"{package.id} {number} {solution.name}"
            yield name, Program(solution.code, solution.language), problem
            if solution.language == "python":
                yield f"{name} mutant", Program(mutate(solution.code)), problem


def read_leetcode(paths: Iterable[Path]) -> Iterator[Case]:
    """Yield references, and each once more with something in it changed."""
    for path in paths:
        source = open_source(path, "leetcodedataset", name="leetcode")
        for row in (row for shard in list_shards(source, 1) for row in read_shard(source, shard)):
            found = collect_row(source, row)
            if isinstance(found, Rejection) or not (found.solutions and found.tests):
                continue
            problem = found.to_trial(
                "python",
                seconds=LIMIT_SECONDS,
                memory_mib=512,
                tests=found.tests[:MOST_TESTS],
            )
            code = found.solutions[0].code
            yield f"{path.name} {found.id}", Program(code), problem
            yield f"{path.name} {found.id} mutant", Program(mutate(code)), problem


def read_answers(folder: Path) -> Iterator[Case]:
    """Yield the answers of two models to LiveCodeBench."""
    with livecodebench.open_submissions(folder) as (models, questions):
        for question in questions:
            problem = question.load().model_copy(update={"time_limit_seconds": LIMIT_SECONDS})
            problem = problem.model_copy(update={"tests": problem.tests[:MOST_TESTS]})
            for model, answers in models.items():
                for number, code in enumerate(answers[question.id]["code_list"]):
                    yield f"{model} {question.id} {number}", Program(code), problem


def read_suites() -> Iterator[Case]:
    """Yield the programs of the tests, each with several tests."""
    for make_case, names in (
        (safety_suites.hostile_case, safety_suites.HOSTILE),
        (safety_suites.forging_case, safety_suites.FORGERIES),
    ):
        for name in names:
            case = make_case(name)
            seconds = min(case.problem.time_limit_seconds, LIMIT_SECONDS)
            changes = {"tests": case.problem.tests * REPEATED, "time_limit_seconds": seconds}
            if safety_suites.can_be_judged(case):
                yield name, case.attempt, case.problem.model_copy(update=changes)
    for name, code in {**stateful_programs.SCREENED, **stateful_programs.RESET}.items():
        for outputs in (["new"] * 5, ["new", "new", "left", "left", "left"]):
            tests = [{"input": "1 2\r\n3\nzzz\n", "output": output} for output in outputs]
            problem = Problem(id="stateful", tests=tests, time_limit_seconds=LIMIT_SECONDS)
            yield f"{name}, {outputs[-1]}", Program(code), problem


def mutate(code: str) -> str:
    """Return a program with one fault in it: always the same one."""
    return mutate_program(code, random.Random(code))


def outcomes_of(verdict: Verdict) -> list[str]:
    """Return the outcome of the program, and of each test."""
    return [verdict.outcome.value, *(test.verdict.value for test in verdict.tests)]


def explain(judge: Judge, program: Program, problem: Problem, fast: Verdict, slow: Verdict) -> str:
    """Return why two verdicts of one program differ; empty where they do not."""
    if outcomes_of(fast) == outcomes_of(slow):
        return ""
    tests = [*fast.tests, *slow.tests]
    longest = max((test.cpu_seconds for test in tests), default=0.0)
    is_late = any(test.verdict == Outcome.TIME_LIMIT for test in tests)
    again = [judge.judge([program], [problem])[0] for _ in range(AGAIN)]
    repeated = [by_reference(judge, program, problem) for _ in range(AGAIN)]
    if any(
        outcomes_of(one) == outcomes_of(other) for one, other in zip(again, repeated, strict=True)
    ):
        is_steady = all(outcomes_of(one) == outcomes_of(slow) for one in repeated)
        if is_late:
            return "time"
        return "gone" if is_steady else "random"
    if is_late and longest > CLOSE * problem.time_limit_seconds * judge.time_scale:
        return "time"
    return "real" if all(outcomes_of(one) == outcomes_of(slow) for one in repeated) else "random"


def by_reference(judge: Judge, program: Program, problem: Problem) -> Verdict:
    return judge_by_reference(program, problem, stop=judge.stop, time_scale=judge.time_scale)


def mix(kinds: Mapping[str, Iterable[Case]]) -> Iterator[tuple[str, Case]]:
    """Yield the cases of all kinds by turns,
    so that whatever was judged so far is a sample of everything.
    """
    for turn in zip_longest(*kinds.values()):
        yield from (
            (kind, case) for kind, case in zip(kinds, turn, strict=True) if case is not None
        )


def compare(judge: Judge, cases: Iterable[tuple[str, Case]], done: set[str], out: Path) -> None:
    """Judge each program by both, and add a line about it."""
    for kind, (name, program, problem) in cases:
        key = f"{kind}: {name}"
        if key in done:
            continue
        try:
            (fast,) = judge.judge([program], [problem])
        except DataError as error:
            row = {"name": key, "refused": str(error)[:200]}
        else:
            slow = by_reference(judge, program, problem)
            row = {"name": key, "outcome": slow.outcome.value, "tests": len(slow.tests)}
            if why := explain(judge, program, problem, fast, slow):
                row |= {"why": why, "fast": outcomes_of(fast), "slow": outcomes_of(slow)}
                row |= {"fast detail": fast.detail, "slow detail": slow.detail}
        with out.open("a") as file:
            file.write(json.dumps(row) + "\n")


def report(path: Path) -> int:
    """Print the sums and every difference of a file; return how many differences are real."""
    counts = Counter(dict.fromkeys(("differ", "differ, real"), 0))
    for row in map(json.loads, path.read_text().splitlines()):
        counts["programs"] += 1
        counts[f"of {row['name'].partition(':')[0]}"] += 1
        counts["tests"] += row.get("tests", 0)
        counts[f"reference: {row.get('outcome', 'refused')}"] += 1
        if "why" in row:
            counts["differ"] += 1
            counts[f"differ, {row['why']}"] += 1
            print(json.dumps(row))
    print(json.dumps(counts))
    return counts["differ, real"]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--contests", type=Path)
    parser.add_argument("--leetcode", type=Path, nargs="+", default=[])
    parser.add_argument("--livecodebench", type=Path, help="the folder of lcb_eval")
    parser.add_argument(
        "--stop",
        default="first_limit",
        choices=("first_failure", "first_limit", "never"),
    )
    arguments = parser.parse_args()
    sys.set_int_max_str_digits(50_000)
    out: Path = arguments.out
    if out.exists():
        done = {json.loads(line)["name"] for line in out.read_text().splitlines()}
    else:
        done = set()
    kinds: dict[str, Iterator[Case]] = {"suites": read_suites()}
    builds: dict[str, Iterator[Case]] = {}
    if arguments.livecodebench:
        kinds["livecodebench"] = read_answers(arguments.livecodebench)
    kinds["leetcode"] = read_leetcode(arguments.leetcode)
    if arguments.contests:
        kinds["contests"] = read_contests(arguments.contests, "python")
        builds["built"] = read_contests(arguments.contests, "cpp")
    with (
        Judge(stop=arguments.stop, workers=1, cache_size=0) as judge,
        contextlib.suppress(KeyboardInterrupt),
    ):
        # Programs that are built take most of the time, so they come last.
        for some in (kinds, builds):
            compare(judge, mix(some), done, out)
    sys.exit(1 if report(out) else 0)


if __name__ == "__main__":
    main()

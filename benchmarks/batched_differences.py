"""Tests that share a process against a process a test: the verdict of every test of every program must be the same.

    python benchmarks/batched_differences.py [--contests FOLDER] [--leetcode FILE.jsonl.gz] [--most 2000] [--screen off]

Programs: contest submissions, right and wrong (packages as for benchmarks/contests.py), the references of
LeetCodeDataset and mutants of them, and the hostile, forging and stateful programs of the tests, each by the stop rules
`never` and `first_failure` (with endless programs among them `--stops first_limit first_failure` is far quicker). Those
that the screen keeps apart are counted and not run: both sides judge them by the same code. A limit that is reached on
one side only is not counted where the other side's time is close to it. With
--screen off every program shares, so that what is found is what the reset alone does not hold.
Prints counts and every difference, one JSON object a line; ends with status 1 where there is one.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import contests

from evaluator import safety_suites, stateful_programs  # pyrefly: ignore[missing-module-attribute]
from microcoder.dataset.collect import collect_row
from microcoder.dataset.sources import list_shards, open_source, read_shard
from microcoder.evaluator import Judge, sharing
from microcoder.evaluator.batching import find_obstacle
from microcoder.evaluator.session import STOP_RULES
from microcoder.formats.candidates import Rejection
from microcoder.types import Outcome, Problem, Program, Verdict

Case = tuple[str, Program, Problem]
LIMIT_SECONDS = 1.0
MOST_TESTS, REPEATED = 16, 4
CLOSE = 0.5
_LIMITS = (Outcome.TIME_LIMIT, Outcome.SANDBOX_FAULT)
_OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}


def read_contests(folder: Path) -> Iterator[Case]:
    """Yield the Python submissions of problem packages."""
    for package in contests.read_packages(folder):
        if isinstance(package, Rejection) or contests.find_obstacle(package):
            continue
        problem = contests.problem_of(package, "python", LIMIT_SECONDS)
        problem = problem.model_copy(update={"tests": problem.tests[:MOST_TESTS]})
        for solution in package.solutions:
            if solution.language == "python":
                yield f"{package.id} {solution.name}", Program(solution.code), problem


def read_leetcode(path: Path) -> Iterator[Case]:
    """Yield references, and each once more with something in it changed."""
    source = open_source(path, "leetcodedataset", name="leetcode")
    for shard in list_shards(source, 1):
        for row in read_shard(source, shard):
            found = collect_row(source, row)
            if isinstance(found, Rejection) or not (found.solutions and found.tests):
                continue
            problem = Problem(
                id=found.id,
                tests=found.tests[:MOST_TESTS],
                fn_name=found.fn_name,
                call=found.call,
                checker=found.checker,
                time_limit_seconds=LIMIT_SECONDS,
                memory_limit_mib=512,
            )
            code = found.solutions[0].code
            yield found.id, Program(code), problem
            yield f"{found.id} mutant", Program(mutate(code)), problem


def mutate(code: str) -> str:
    """Return a program with one operator, or one number, changed: always the same one."""
    tree = ast.parse(code)
    places = [node for node in ast.walk(tree) if _is_changeable(node)]
    if not places:
        return code + "\nraise ValueError"
    node = random.Random(code).choice(places)
    if isinstance(node, ast.Constant):
        node.value += 1  # pyrefly: ignore[unsupported-operation]
    elif isinstance(node, ast.BinOp):
        node.op = _OPERATORS[type(node.op)]()  # pyrefly: ignore[bad-assignment, bad-index]
    elif isinstance(node, ast.Compare):
        node.ops[0] = _OPERATORS[type(node.ops[0])]()  # pyrefly: ignore[unsupported-operation, bad-index]
    return ast.unparse(tree)


def _is_changeable(node: ast.AST) -> bool:
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.BinOp):
        return type(node.op) in _OPERATORS
    return isinstance(node, ast.Compare) and type(node.ops[0]) in _OPERATORS


def read_suites() -> Iterator[Case]:
    """Yield the programs of the tests, each with several tests."""
    for make_case, names in (
        (safety_suites.hostile_case, safety_suites.HOSTILE),
        (safety_suites.forging_case, safety_suites.FORGERIES),
    ):
        for name in names:
            case = make_case(name)
            if case.problem.language == "python":
                seconds = min(case.problem.time_limit_seconds, LIMIT_SECONDS)
                changes = {"tests": case.problem.tests * REPEATED, "time_limit_seconds": seconds}
                problem = case.problem.model_copy(update=changes)
                yield name, case.attempt, problem
    for name, code in {**stateful_programs.SCREENED, **stateful_programs.RESET}.items():
        for outputs in (["new"] * 5, ["new", "new", "left", "left", "left"]):
            tests = [{"input": "1 2\r\n3\nzzz\n", "output": output} for output in outputs]
            yield name, Program(code), Problem(id="stateful", tests=tests, time_limit_seconds=LIMIT_SECONDS)


def find_difference(one: Verdict, other: Verdict) -> str:
    """Return where two verdicts of one program differ; empty where they do not."""
    if len(one.tests) != len(other.tests):
        pairs = min(len(one.tests), len(other.tests))
        last = (one.tests or other.tests)[pairs - 1]
        if last.verdict not in _LIMITS:
            return f"{len(one.tests)} and {len(other.tests)} tests"
    for number, (first, second) in enumerate(zip(one.tests, other.tests, strict=False), 1):
        if first.verdict is second.verdict:
            continue
        if {first.verdict, second.verdict} & set(_LIMITS):
            longest = max(first.cpu_seconds, second.cpu_seconds)
            if longest > CLOSE * LIMIT_SECONDS or Outcome.SANDBOX_FAULT in (first.verdict, second.verdict):
                return ""
        return f"test {number}: {first.verdict} together ({first.detail}), {second.verdict} alone ({second.detail})"
    return ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--contests", type=Path)
    parser.add_argument("--leetcode", type=Path)
    parser.add_argument("--most", type=int, default=2000, help="programs of each kind at most")
    parser.add_argument("--skip-suites", action="store_true")
    parser.add_argument("--screen", choices=("on", "off"), default="on")
    parser.add_argument("--stops", nargs="+", choices=STOP_RULES, default=["never", "first_failure"])
    parser.add_argument("--workers", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.screen == "off":
        sharing.find_obstacle = lambda code, *, is_function: ""  # pyrefly: ignore[bad-assignment]
    kinds = {
        "suites": iter(()) if arguments.skip_suites else read_suites(),
        "contests": read_contests(arguments.contests) if arguments.contests else iter(()),
        "leetcode": read_leetcode(arguments.leetcode) if arguments.leetcode else iter(()),
    }
    counts: Counter[str] = Counter()
    options = {"workers": arguments.workers, "cache_size": 0}
    for stop in arguments.stops:
        with (
            Judge(stop=stop, batch_tests=True, **options) as together,
            Judge(stop=stop, batch_tests=False, **options) as alone,
        ):
            for kind, cases in kinds.items() if stop == arguments.stops[0] else ():
                kinds[kind] = list(islice(cases, arguments.most))  # pyrefly: ignore
            for kind, cases in kinds.items():
                for name, program, problem in cases:
                    counts[f"programs {kind}"] += 1
                    is_function = problem.fn_name is not None
                    if arguments.screen == "on" and find_obstacle(str(program.code), is_function=is_function):
                        # Judged by the same code on both sides.
                        counts[f"a process a test {kind}"] += 1
                        continue
                    (one,), (other,) = (judge.judge([program], [problem]) for judge in (together, alone))
                    counts["accepted"] += one.is_accepted
                    counts["tests"] += len(one.tests)
                    if difference := find_difference(one, other):
                        counts["differences"] += 1
                        print(json.dumps({"kind": kind, "name": name, "stop": stop, "is": difference}), flush=True)
                    if counts["programs " + kind] % 50 == 0:
                        print(stop, dict(counts), file=sys.stderr, flush=True)
            done = together.statistics
            for name in ("shared", "fallbacks", "differences", "anew", "unrepeated"):
                counts[f"{name} by the judge"] += getattr(done, name)
    print(json.dumps(dict(counts)))
    sys.exit(1 if counts["differences"] or counts["differences by the judge"] else 0)


if __name__ == "__main__":
    main()

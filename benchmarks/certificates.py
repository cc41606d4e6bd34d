"""Whether made tests are allowed, and what they catch,
by packages that have validators and submissions of their own.

    tar xf kodsport.tar.xz && python benchmarks/certificates.py kodsport [EVERY [FIRST]] \\
        [--packages NAME ...] [--whole | --bare]

The folder may hold packages of any contest, at any depth.

Each package is given to the generate stage with nothing but the tests that its statement shows, and
every second of its wrong, slow and partial submissions. Twice: without validators and generators,
all made tests being unchecked, and the package's validators are asked about them afterwards; and
with them. The accepted submissions that answered no input and the other wrong and slow ones are
then judged by the shown tests, by the shown and made ones, and by the package's own. `escaped` has
those that the package's own tests catch and the made ones do not. `hard` counts those that the
package's own tests catch and the shown ones do not. With --whole nothing is made without
validators. With --bare the stage sees no generators and no failing submission either, and all of
these are held out. JSON lines, the sums last; `cpu_seconds` are those of making certified tests.
"""

import argparse
import hashlib
import json
from collections import Counter
from pathlib import Path

import contests
from evaluator_judges import read_tree_cpu_seconds

from microcoder.data.clean.shown import find_shown
from microcoder.data.clean.stage import process
from microcoder.data.formats.candidates import Candidate, InputKit, Solution
from microcoder.data.testgen.answers import Judges
from microcoder.data.testgen.programs import find_references
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.data.testgen.stage import generate
from microcoder.data.testgen.validators import Validators, read_validators
from microcoder.judge import Judge
from microcoder.judge.core.errors import MicroCoderError
from microcoder.judge.core.types import Outcome, Program, TestCase

_WRONG = ("wrong_answer", "runtime_error")
_SLOW = ("time_limit", "memory_limit", "partial")
_MOST_SECONDS = 20.0


Counts = dict[str, int | float | str | list[str]]


def measure(
    package: Candidate,
    judges: Judges,
    *,
    is_whole: bool = False,
    is_bare: bool = False,
) -> Counts:
    """Return counts of one package's made tests, and of its submissions by them.

    Args:
        package: with all that its setters made.
        judges: run everything.
        is_whole: leave out what is made without validators.
        is_bare: the stage gets the shown tests, validators and accepted submissions only.
    """
    known = [test.input for test in package.tests]
    validators = read_validators(judges.thorough, package.kit, known, Counter())
    shown = _shown_tests(package)
    if validators is None or not shown or not find_references(package):
        return {"id": package.id, "not_measured": 1}
    held_out = _failing(package)
    kit = package.kit.model_copy(update={"recipes": ()})
    if not is_bare:
        held_out = held_out[1::2]
        kit = package.kit
    given = package.model_copy(
        update={
            "tests": shown,
            "kit": kit,
            "groups": (),
            "solutions": tuple(one for one in package.solutions if one not in held_out),
        }
    )
    started = read_tree_cpu_seconds()
    certified = _made(generate(given, lambda: judges, GenerateSettings()), len(shown))
    counts: Counts = {
        "id": package.id,
        "measured": 1,
        "cpu_seconds": round(read_tree_cpu_seconds() - started, 1),
        "certified": len(certified),
        "has_certified": int(bool(certified)),
        "certified_10": int(len(certified) >= 10),
    }
    if not is_whole and not is_bare:
        counts |= _count_unchecked(given, judges, validators)
    return counts | _count_caught(package, held_out, shown, certified, judges)


def _count_unchecked(given: Candidate, judges: Judges, validators: Validators) -> Counts:
    """Return how many tests are made without validators, and how many of them are valid."""
    bare = given.model_copy(update={"kit": InputKit()})
    made = generate(bare, lambda: judges, GenerateSettings(keep_unchecked=True))
    unchecked = [test.input for test in _made(made, len(given.tests))]
    num_valid = max(len(validators.ask(unchecked, flags)) for flags in validators.ways)
    return {
        "unchecked": len(unchecked),
        "unchecked_valid": num_valid,
        "has_unchecked": int(bool(unchecked)),
    }


def _shown_tests(package: Candidate) -> tuple[TestCase, ...]:
    """Return the tests that the statement shows."""
    shown = []
    for test, is_shown in zip(package.tests, find_shown(package), strict=True):
        if is_shown:
            shown.append(test)
    return tuple(shown)


def _failing(package: Candidate) -> list[Solution]:
    """Return the submissions that are not known to be accepted."""
    return [solution for solution in package.solutions if solution.known != "accepted"]


def _count_caught(
    package: Candidate,
    held_out: list[Solution],
    shown: tuple[TestCase, ...],
    certified: tuple[TestCase, ...],
    judges: Judges,
) -> Counts:
    """Return how many right submissions pass, and how many wrong and slow ones are caught."""
    failing = _failing(package)
    programs = []
    for solution in package.solutions:
        if solution.language in contests.LANGUAGES and solution not in failing:
            programs.append(solution)
    seconds = _limit(package, programs, judges)

    def passing(solutions: list[Solution], tests: tuple[TestCase, ...]) -> set[str]:
        return _passing(package, solutions, tests, seconds=seconds, judge=judges.brief)

    right = passing(programs, package.tests)
    # The first three may have answered inputs.
    fresh = [solution for solution in programs if solution.code in right][3:]
    made = (*shown, *certified)
    counts: Counts = {
        "right": len(fresh),
        "right_pass": len(passing(fresh, made)),
    }
    escaped = []
    for kind, labels in (("wrong", _WRONG), ("slow", _SLOW)):
        bad = []
        for solution in held_out:
            if solution.known in labels and solution.language in contests.LANGUAGES:
                bad.append(solution)
        counts[kind] = len(bad)
        passed = {}
        for by, tests in (("shown", shown), ("made", made), ("own", package.tests)):
            passed[by] = passing(bad, tests)
            counts[f"{kind}_caught_by_{by}"] = len(bad) - len(passed[by])
        hard = passed["shown"] - passed["own"]
        counts[f"{kind}_hard"] = len(hard)
        counts[f"{kind}_hard_caught_by_made"] = len(hard - passed["made"])
        for solution in bad:
            if solution.code in passed["made"] - passed["own"]:
                escaped.append(solution.name)
    return {**counts, "escaped": escaped}


def _passing(
    package: Candidate,
    solutions: list[Solution],
    tests: tuple[TestCase, ...],
    *,
    seconds: float,
    judge: Judge,
) -> set[str]:
    """Return the code of the solutions that pass some tests."""
    programs = []
    problems = []
    for solution in solutions:
        programs.append(Program(solution.code, solution.language))
        problems.append(
            package.to_trial(solution.language, seconds=seconds, memory_mib=2048, tests=tests)
        )
    passed = set()
    for solution, verdict in zip(solutions, judge.judge(programs, problems), strict=True):
        if verdict.outcome is Outcome.ACCEPTED:
            passed.add(solution.code)
    return passed


def _made(made: object, num_shown: int) -> tuple[TestCase, ...]:
    return made.tests[num_shown:] if isinstance(made, Candidate) else ()


def _limit(package: Candidate, accepted: list[Solution], judges: Judges) -> float:
    """Return the package's limit, or the slowest accepted submission times what the
    package says.
    """
    problems = []
    for one in accepted:
        problems.append(package.to_trial(one.language, seconds=_MOST_SECONDS, memory_mib=2048))
    verdicts = judges.thorough.judge(
        [Program(one.code, one.language) for one in accepted], problems
    )
    seconds = []
    for verdict in verdicts:
        if verdict.is_accepted:
            seconds.extend(test.cpu_seconds for test in verdict.tests)
    if package.time_limit_seconds:
        return package.time_limit_seconds
    slowest = max(seconds, default=1.0)
    return min(_MOST_SECONDS, max(1.0, contests.multiplier_of(package) * slowest))


def read_distinct(folder: Path) -> list[Candidate]:
    """Return the packages that have validators, those with the same inputs once."""
    seen: set[str] = set()
    packages = []
    for package in contests.read_packages(folder):
        if not isinstance(package, Candidate):
            continue
        inputs = repr([test.input for test in package.tests])
        key = hashlib.sha256(inputs.encode()).hexdigest()
        has_validator = any(program.role == "validator" for program in package.kit.programs)
        if has_validator and key not in seen:
            seen.add(key)
            packages.append(package)
    return packages


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("every", type=int, nargs="?", default=1, help="every n-th package only")
    parser.add_argument("first", type=int, nargs="?", default=0)
    parser.add_argument("--packages", nargs="+", help="those with these names only")
    parser.add_argument("--whole", action="store_true", help="nothing without validators")
    parser.add_argument(
        "--bare",
        action="store_true",
        help="like --whole, without generators and known failing submissions",
    )
    arguments = parser.parse_args()
    packages = read_distinct(arguments.folder)[arguments.first :: arguments.every]
    if arguments.packages:
        wanted = set(arguments.packages)
        packages = [one for one in packages if one.id.rpartition("/")[2] in wanted]
    if not packages:
        parser.error(f"no package to measure in {arguments.folder}; see EVERY, FIRST, --packages")
    sums: dict[str, float] = {}
    with (
        Judge(workers=1, stop="first_limit", cache_size=0) as thorough,
        Judge(workers=1, stop="first_failure", cache_size=0) as brief,
    ):
        for package in packages:
            processed = process(package)
            if not isinstance(processed, Candidate) or contests.find_obstacle(processed):
                continue
            try:
                found = measure(
                    processed,
                    Judges(thorough, brief),
                    is_whole=arguments.whole,
                    is_bare=arguments.bare,
                )
            except MicroCoderError as error:
                found = {"id": package.id, "error": str(error)}
            print(json.dumps(found), flush=True)
            for name, value in found.items():
                if isinstance(value, int | float):
                    sums[name] = sums.get(name, 0) + value
    print(json.dumps(sums))


if __name__ == "__main__":
    main()

"""Whether made tests are allowed, and what they catch,
by packages that have validators and submissions of their own.

    tar xf kodsport.tar.xz && python benchmarks/certificates.py kodsport [EVERY [FIRST]]

Each package is given to the generate stage with nothing but the tests that its statement shows, and
every second of its wrong, slow and partial submissions. Twice: without validators and generators,
all made tests being unchecked, and the package's validators are asked about them afterwards; and
with them. The accepted submissions that answered no input and the other wrong and slow ones are
then judged by the shown tests, by the shown and made ones, and by the package's own. JSON lines,
the sums last.
"""

import hashlib
import json
import sys
from collections import Counter
from pathlib import Path

import contests

from microcoder.data.clean.samples import find_shown
from microcoder.data.clean.stage import process
from microcoder.data.formats.candidates import Candidate, InputKit, Solution
from microcoder.data.testgen.answers import Judges
from microcoder.data.testgen.programs import find_references
from microcoder.data.testgen.settings import GenerateSettings
from microcoder.data.testgen.stage import generate
from microcoder.data.testgen.validators import read_validators
from microcoder.judge import Judge
from microcoder.judge.core.errors import MicroCoderError
from microcoder.judge.core.types import Outcome, Program, TestCase

_WRONG = ("wrong_answer", "runtime_error")
_SLOW = ("time_limit", "memory_limit", "partial")
_MOST_SECONDS = 20.0


def measure(package: Candidate, judges: Judges) -> dict[str, int | str]:
    """Return counts of one package's made tests, and of its submissions by them."""
    known = [test.input for test in package.tests]
    validators = read_validators(judges.thorough, package.kit, known, Counter())
    shown = _shown_tests(package)
    if validators is None or not shown or not find_references(package):
        return {"id": package.id, "not_measured": 1}
    held_out = _failing(package)[1::2]
    given = package.model_copy(
        update={
            "tests": shown,
            "groups": (),
            "solutions": tuple(one for one in package.solutions if one not in held_out),
        }
    )
    bare = given.model_copy(update={"kit": InputKit()})
    without_kit = generate(bare, lambda: judges, GenerateSettings(keep_unchecked=True))
    unchecked = _made(without_kit, len(shown))
    certified = _made(generate(given, lambda: judges, GenerateSettings()), len(shown))
    num_valid = len(validators.ask([test.input for test in unchecked]))
    for flags in validators.ways[1:]:
        num_valid = max(num_valid, len(validators.ask([test.input for test in unchecked], flags)))
    counts: dict[str, int | str] = {
        "id": package.id,
        "measured": 1,
        "unchecked": len(unchecked),
        "unchecked_valid": num_valid,
        "has_unchecked": int(bool(unchecked)),
        "certified": len(certified),
        "has_certified": int(bool(certified)),
        "certified_10": int(len(certified) >= 10),
    }
    return counts | _count_caught(package, held_out, shown, certified, judges)


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
) -> dict[str, int | str]:
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
    counts: dict[str, int | str] = {
        "right": len(fresh),
        "right_pass": len(passing(fresh, made)),
    }
    for kind, labels in (("wrong", _WRONG), ("slow", _SLOW)):
        bad = []
        for solution in held_out:
            if solution.known in labels and solution.language in contests.LANGUAGES:
                bad.append(solution)
        counts[kind] = len(bad)
        for by, tests in (("shown", shown), ("made", made), ("own", package.tests)):
            counts[f"{kind}_caught_by_{by}"] = len(bad) - len(passing(bad, tests))
    return counts


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
    every, first = (int(word) for word in [*sys.argv[2:], "1", "0"][:2])
    packages = read_distinct(Path(sys.argv[1]))
    sums: Counter[str] = Counter()
    with (
        Judge(workers=1, stop="first_limit", cache_size=0) as thorough,
        Judge(workers=1, stop="first_failure", cache_size=0) as brief,
    ):
        for package in packages[first::every]:
            processed = process(package)
            if not isinstance(processed, Candidate) or contests.find_obstacle(processed):
                continue
            try:
                found = measure(processed, Judges(thorough, brief))
            except MicroCoderError as error:
                found = {"id": package.id, "error": str(error)}
            print(json.dumps(found), flush=True)
            counts = {}
            for name, value in found.items():
                if isinstance(value, int):
                    counts[name] = value
            sums.update(counts)
    print(json.dumps(sums))


if __name__ == "__main__":
    main()

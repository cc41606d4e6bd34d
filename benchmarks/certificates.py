"""Whether made tests are allowed, and what they catch, by packages that have validators and submissions of their own.

    tar xf kodsport.tar.xz && python benchmarks/certificates.py kodsport [EVERY [FIRST]]

Each package is given to the generate stage with nothing but the tests that its statement shows, and every second of its
wrong, slow and partial submissions. Twice: without validators and generators, all made tests being unchecked, and the
package's validators are asked about them afterwards; and with them. The accepted submissions that answered no input and
the other wrong and slow ones are then judged by the shown tests, by the shown and made ones, and by the package's own.
JSON lines, the sums last.
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

_WRONG, _SLOW = ("wrong_answer", "runtime_error"), ("time_limit", "memory_limit", "partial")
_MOST_SECONDS = 20.0


def measure(package: Candidate, judges: Judges) -> dict[str, int | str]:
    """Return counts of one package's made tests, and of its submissions by them."""
    known = [test.input for test in package.tests]
    validators = read_validators(judges.thorough, package.kit, known, Counter())
    shown = tuple(
        test for test, is_shown in zip(package.tests, find_shown(package), strict=True) if is_shown
    )
    if validators is None or not shown or not find_references(package):
        return {"id": package.id, "not_measured": 1}
    failing = [one for one in package.solutions if one.known != "accepted"]
    held_out = failing[1::2]
    given = package.model_copy(
        update={
            "tests": shown,
            "groups": (),
            "solutions": tuple(one for one in package.solutions if one not in held_out),
        }
    )
    bare = given.model_copy(update={"kit": InputKit()})
    unchecked = _made(
        generate(bare, lambda: judges, GenerateSettings(keep_unchecked=True)), len(shown)
    )
    certified = _made(generate(given, lambda: judges, GenerateSettings()), len(shown))
    num_valid = len(validators.ask([test.input for test in unchecked]))
    for flags in validators.ways[1:]:
        num_valid = max(num_valid, len(validators.ask([test.input for test in unchecked], flags)))
    found: dict[str, int | str] = {
        "id": package.id, "measured": 1, "unchecked": len(unchecked), "unchecked_valid": num_valid,
        "has_unchecked": int(bool(unchecked)), "certified": len(certified), "has_certified": int(bool(certified)),
        "certified_10": int(len(certified) >= 10),
    }  # fmt: skip
    programs = [
        one
        for one in package.solutions
        if one.language in contests.LANGUAGES and one not in failing
    ]
    seconds = _limit(package, programs, judges)

    def passing(solutions: list[Solution], tests: tuple[TestCase, ...]) -> set[str]:
        problems = [
            package.to_trial(one.language, seconds=seconds, memory_mib=2048, tests=tests)
            for one in solutions
        ]
        verdicts = judges.brief.judge(
            [Program(one.code, one.language) for one in solutions], problems
        )
        return {
            one.code
            for one, verdict in zip(solutions, verdicts, strict=True)
            if verdict.outcome is Outcome.ACCEPTED
        }

    right = passing(programs, package.tests)
    fresh = [one for one in programs if one.code in right][3:]
    found |= {"right": len(fresh), "right_pass": len(passing(fresh, (*shown, *certified)))}
    for kind, labels in (("wrong", _WRONG), ("slow", _SLOW)):
        bad = [
            one for one in held_out if one.known in labels and one.language in contests.LANGUAGES
        ]
        found[kind] = len(bad)
        for by, tests in (("shown", shown), ("made", (*shown, *certified)), ("own", package.tests)):
            found[f"{kind}_caught_by_{by}"] = len(bad) - len(passing(bad, tests))
    return found


def _made(made: object, num_shown: int) -> tuple[TestCase, ...]:
    return made.tests[num_shown:] if isinstance(made, Candidate) else ()


def _limit(package: Candidate, accepted: list[Solution], judges: Judges) -> float:
    """Return the package's limit, or the slowest accepted submission times what the package says."""
    problems = [
        package.to_trial(one.language, seconds=_MOST_SECONDS, memory_mib=2048) for one in accepted
    ]
    verdicts = judges.thorough.judge(
        [Program(one.code, one.language) for one in accepted], problems
    )
    slowest = max(
        (test.cpu_seconds for one in verdicts if one.is_accepted for test in one.tests), default=1.0
    )
    return package.time_limit_seconds or min(
        _MOST_SECONDS, max(1.0, contests.multiplier_of(package) * slowest)
    )


def main() -> None:
    folder, every, first = Path(sys.argv[1]), *(int(word) for word in [*sys.argv[2:], "1", "0"][:2])
    sums: Counter[str] = Counter()
    seen: set[str] = set()
    packages = []
    for package in contests.read_packages(folder):
        has_validator = isinstance(package, Candidate) and any(
            one.role == "validator" for one in package.kit.programs
        )
        told_by = hashlib.sha256(
            repr([test.input for test in getattr(package, "tests", ())]).encode()
        ).hexdigest()
        if isinstance(package, Candidate) and has_validator and told_by not in seen:
            seen.add(told_by)
            packages.append(package)
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
            sums.update({name: value for name, value in found.items() if isinstance(value, int)})
    print(json.dumps(sums))


if __name__ == "__main__":
    main()

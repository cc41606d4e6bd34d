"""Which programs of a candidate are run, decided before anything is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.data.formats.text import is_python2
from microcoder.data.verify.evidence import Role
from microcoder.judge import check_problem
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Problem, Program, Verdict
from microcoder.judge.languages import find_language

_ROLES: dict[str, Role] = {
    "accepted": "accepted",
    "wrong_answer": "wrong",
    "runtime_error": "wrong",
    "memory_limit": "slow",
    "time_limit": "slow",
    "partial": "partial",
}
TRIAL_SECONDS, _TRIAL_MEMORY_MIB = 20.0, 2048
"""CPU seconds a test and memory that accepted programs get while no limit is derived, or the source's if larger (our
choices)."""
_MOST_ACCEPTED, _MOST_OTHERS = 6, 24
"""Accepted programs that are run, those in the language of the answers first; known-wrong, slow and partial ones."""
_CANNOT_BE_JUDGED = ("interactive", "file_io")
_CONSTANTS = ("yes", "no", "0", "1", "-1")
_MAX_CONSTANT_BYTES = 1 << 16
_VALUES = ("None", "0", "1", "-1", "''", "[]", "True", "False")


@dataclass
class Attempt:
    """One program to run, and what came of it."""

    name: str
    role: Role
    program: Program
    order: tuple[int, ...] = ()
    """Numbers of the tests in the order of its first run; as the candidate has them where none is given."""
    verdicts: list[Verdict] = field(default_factory=list)
    fastest_seconds: list[float] = field(default_factory=list)
    """Accepted programs that passed: CPU seconds per test, of the fastest run."""

    def note_seconds(self, verdict: Verdict, numbers: Sequence[int]) -> None:
        """Take the times of a run into account; `numbers` are those of its tests, in its order."""
        for number, test in zip(numbers, verdict.tests, strict=False):
            self.fastest_seconds[number] = min(self.fastest_seconds[number], test.cpu_seconds)


@dataclass
class VerificationPlan:
    """A candidate and the programs to run."""

    candidate: Candidate
    accepted: list[Attempt]
    others: list[Attempt]
    trivial: list[Attempt]
    limit_seconds: float
    """Seconds per test: for accepted ones while no limit is derived, then the derived one."""
    memory_mib: int
    answer_seconds: float = 0.0
    """The limit that the problem is published with."""
    seconds_by_language: dict[str, float] = field(default_factory=dict)
    """Seconds per test of programs known to be too slow, by language, where no limit is stated: one may be slow for C++
    and still end within what accepted Python programs need. In the language of answers it is their limit."""

    def passing(self) -> list[Attempt]:
        """Return the accepted programs that passed every run so far."""
        return [attempt for attempt in self.accepted if all(verdict.is_accepted for verdict in attempt.verdicts)]

    def problem(self, language: str, *, seconds: float | None = None, order: Sequence[int] = ()) -> Problem:
        """Return what a program of this language is judged by; `order`: numbers of tests, all where none is given."""
        return self.candidate.to_trial(
            language,
            seconds=seconds or self.limit_seconds,
            memory_mib=self.memory_mib,
            tests=[self.candidate.tests[number] for number in order] or None,
        )


def plan(candidate: Candidate) -> VerificationPlan | Rejection:
    """Return what to run, or why nothing can be."""
    if not candidate.tests:
        return candidate.reject("verify", "no_tests")
    standing = [flag for flag in candidate.flags if flag in _CANNOT_BE_JUDGED]
    if standing:
        return candidate.reject("verify", "not_judgeable", ", ".join(standing))
    attempts = sorted(_attempts(candidate), key=lambda one: one.program.language != candidate.programming_language)
    accepted = [attempt for attempt in attempts if attempt.role == "accepted"][:_MOST_ACCEPTED]
    others = [attempt for attempt in attempts if attempt.role != "accepted"]
    if not accepted:
        known = sorted({solution.language for solution in candidate.solutions if solution.known == "accepted"})
        return candidate.reject("verify", "no_reference", f"accepted programs: {', '.join(known) or 'none'}")
    trivial = [Attempt(name, "trivial", Program(code)) for name, code in trivial_programs(candidate).items()]
    # Wrong ones first, slow ones last: what is cut off is what says least.
    order: dict[Role, int] = {"wrong": 0, "partial": 1, "slow": 2}
    made = VerificationPlan(
        candidate=candidate,
        accepted=accepted,
        others=sorted(others, key=lambda attempt: order[attempt.role])[:_MOST_OTHERS],
        trivial=trivial,
        limit_seconds=max(TRIAL_SECONDS, candidate.time_limit_seconds or 0.0),
        memory_mib=max(_TRIAL_MEMORY_MIB, candidate.memory_limit_mib or 0),
    )
    try:
        candidate.to_problem()
        for language in sorted({attempt.program.language for attempt in made.accepted} | {"python"}):
            check_problem(made.problem(language))
    except (DataError, ValidationError) as error:
        return candidate.reject("verify", "not_judgeable", str(error).replace("\n", " ")[:300])
    return made


def turned_numbers(num_tests: int, repeat: int) -> tuple[int, ...]:
    """Return the numbers of the tests beginning with another one; a single test more often than once.

    Another order is another problem to the judge, so that no verdict is taken from its memory.
    """
    if num_tests == 1:
        return (0,) * (repeat + 1)
    start = repeat * max(1, num_tests // (repeat + 1)) % num_tests
    return (*range(start, num_tests), *range(start))


def _attempts(candidate: Candidate) -> list[Attempt]:
    """Return the programs that can be run here."""
    attempts: list[Attempt] = []
    seen: set[str] = {solution.code for solution in candidate.solutions if solution.known == "accepted"}
    for place, solution in enumerate(candidate.solutions):
        role = _ROLES.get(solution.known)
        if role is None or (role != "accepted" and solution.code in seen):
            continue
        seen.add(solution.code)
        if language := language_of(solution, candidate):
            attempts.append(Attempt(f"{place}", role, Program(solution.code, language)))
    return attempts


def language_of(solution: Solution, candidate: Candidate) -> str:
    """Return the evaluator's name of a solution's language; empty where it cannot run it."""
    try:
        language = find_language(solution.language)
    except DataError:
        return ""
    is_callable = candidate.fn_name is None or not language.is_built
    is_old = language.name == "python" and is_python2(solution.code)
    return language.name if is_callable and not is_old and not language.find_problem() else ""


def trivial_programs(candidate: Candidate) -> dict[str, str]:
    """Return the programs, in Python and by name, that must fail on a problem: they look at nothing."""
    commonest = Counter(test.output for test in candidate.tests).most_common(1)
    constant = commonest[0][0] if commonest and len(commonest[0][0]) <= _MAX_CONSTANT_BYTES else None
    if candidate.fn_name is not None:
        bodies = {f"constant {value}": value for value in _VALUES}
        bodies["echo"] = "arguments[0] if arguments else None"
        if constant is not None:
            bodies["constant commonest answer"] = f"__import__('json').loads({constant!a})"
        return {name: f"def {candidate.fn_name}(*arguments):\n    return {value}\n" for name, value in bodies.items()}
    found = {"empty": "pass\n", "echo": "import sys\nsys.stdout.write(sys.stdin.read())\n"}
    found |= {f"constant {value}": f"print({value!r})\n" for value in _CONSTANTS}
    if constant is not None:
        text = ascii(constant.encode("utf-8", "surrogateescape"))
        found["constant commonest answer"] = f"import sys\nsys.stdout.buffer.write({text})\n"
    return found

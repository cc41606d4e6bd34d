"""Which programs of a candidate are run, and by which problem they are judged."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pydantic import ValidationError

from microcoder.data.formats.candidates import Candidate, Rejection, Solution
from microcoder.data.formats.values import is_python2
from microcoder.data.verify.evidence import Role
from microcoder.data.verify.timing import Limits
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
"""Role of a solution, by the verdict that its source gives it; others are not run."""
TRIAL_SECONDS = 20.0
"""CPU seconds per test in the runs from which limits are derived (our choice).

The source's limit if larger.
"""
_TRIAL_MEMORY_MIB = 2048
"""Memory in these runs (our choice); the source's limit if larger."""
_MOST_ACCEPTED = 6
"""Most accepted programs that are run per problem, the answers' language first."""
_MOST_OTHERS = 24
"""Most known-wrong and slow programs that are run per problem."""
_CANNOT_BE_JUDGED = ("interactive", "file_io")
"""Flags of candidates that no judge here can run."""
_MOST_DETAIL = 300
"""Characters of an error that a rejection shows."""
_CONSTANTS = ("yes", "no", "0", "1", "-1")
"""Texts that trivial programs print."""
_VALUES = ("None", "0", "1", "-1", "''", "[]", "True", "False")
"""Expressions that trivial functions return."""
_MOST_CONSTANT_CHARACTERS = 1 << 16
"""Length of an answer beyond which no trivial program gives it."""


@dataclass
class PlannedProgram:
    """One program of a problem to be run, and its verdicts so far, one per run."""

    name: str
    role: Role
    program: Program
    order: tuple[int, ...] = ()
    """Indices of the tests in the order of its first run; empty: as the candidate has them."""
    verdicts: list[Verdict] = field(default_factory=list)
    fastest_seconds: list[float] = field(default_factory=list)
    """Accepted programs that passed: least CPU seconds per test over all runs."""

    @property
    def language(self) -> str:
        """Language of the program."""
        return self.program.language

    @property
    def has_passed(self) -> bool:
        """Whether it passed every run so far."""
        return all(verdict.is_accepted for verdict in self.verdicts)


@dataclass
class VerificationPlan:
    """A candidate, its programs that are to be run, and their limits."""

    candidate: Candidate
    accepted: list[PlannedProgram]
    others: list[PlannedProgram]
    trivial: list[PlannedProgram]
    limit_seconds: float
    """CPU seconds per test.

    Generous until limits are derived from accepted programs, then the derived limit.
    """
    memory_mib: int
    answer_seconds: float = 0.0
    """CPU seconds per test that the problem is published with; 0 until limits are derived."""
    limits: Limits | None = None
    """Limits that the problem is published with; None until they are derived."""
    contradicted: str = ""
    """An example of the statement that its accepted programs contradict, in a line."""
    seconds_by_language: dict[str, float] = field(default_factory=dict)
    """Seconds per test of programs known to be too slow, by language, where no limit is stated.

    A program may be slow for C++ and still end within what accepted Python programs need. In the
    language of answers it is their limit.
    """

    def passing(self) -> list[PlannedProgram]:
        """Return the accepted programs that passed every run so far."""
        return [program for program in self.accepted if program.has_passed]

    def problem(
        self,
        language: str,
        *,
        seconds: float | None = None,
        order: Sequence[int] = (),
    ) -> Problem:
        """Return the problem that a program of this language is judged by.

        Args:
            language: the program's language.
            seconds: CPU seconds per test; the plan's limit if it is None.
            order: indices of tests, empty for all.
        """
        tests = [self.candidate.tests[number] for number in order]
        return self.candidate.to_trial(
            language,
            seconds=seconds or self.limit_seconds,
            memory_mib=self.memory_mib,
            tests=tests or None,
        )


class PlannedRun(NamedTuple):
    """A program to run, with the plan of its candidate's verification."""

    plan: VerificationPlan
    program: PlannedProgram


def plan(candidate: Candidate) -> VerificationPlan | Rejection:
    """Return the programs to run, or a rejection if the problem cannot be verified."""
    if not candidate.tests:
        return candidate.reject("verify", "no_tests")
    unjudgeable = [flag for flag in candidate.flags if flag in _CANNOT_BE_JUDGED]
    if unjudgeable:
        return candidate.reject("verify", "not_judgeable", ", ".join(unjudgeable))
    # Only what can be run here counts, whatever else came with the problem.
    programs = _programs_of(candidate)
    accepted = [program for program in programs if program.role == "accepted"]
    if not accepted:
        return _reject_without_reference(candidate)
    trivial = []
    for name, code in trivial_programs(candidate).items():
        trivial.append(PlannedProgram(name, "trivial", Program(code)))
    made = VerificationPlan(
        candidate=candidate,
        accepted=accepted[:_MOST_ACCEPTED],
        others=_others_of(programs),
        trivial=trivial,
        # Generous: limits are derived from what programs take when nothing stops them.
        limit_seconds=max(TRIAL_SECONDS, candidate.time_limit_seconds or 0.0),
        memory_mib=max(_TRIAL_MEMORY_MIB, candidate.memory_limit_mib or 0),
    )
    try:
        _check_problems(made)
    except (DataError, ValidationError) as error:
        detail = str(error).replace("\n", " ")
        return candidate.reject("verify", "not_judgeable", detail[:_MOST_DETAIL])
    return made


def _reject_without_reference(candidate: Candidate) -> Rejection:
    """Return the rejection of a candidate that has no accepted program which can be run."""
    languages = set()
    for solution in candidate.solutions:
        if solution.known == "accepted":
            languages.add(solution.language)
    names = ", ".join(sorted(languages)) or "none"
    return candidate.reject("verify", "no_reference", f"accepted programs: {names}")


def _others_of(programs: Sequence[PlannedProgram]) -> list[PlannedProgram]:
    """Return the programs that are known to fail."""
    others: list[PlannedProgram] = []
    # Wrong ones first, slow ones last: what is cut off is what says least.
    for role in ("wrong", "partial", "slow"):
        others += [program for program in programs if program.role == role]
    return others[:_MOST_OTHERS]


def _check_problems(made: VerificationPlan) -> None:
    """Raise DataError or ValidationError if the judge cannot take the problem."""
    # Before anything runs: a problem that no judge takes costs nothing then.
    made.candidate.to_problem()
    # The trivial programs are in Python.
    languages = {"python"}
    languages.update(program.language for program in made.accepted)
    for language in sorted(languages):
        check_problem(made.problem(language))


def rotated_numbers(
    num_tests: int,
    repeat: int,
) -> tuple[int, ...]:
    """Return the tests' indices, rotated for each `repeat`.

    A single test's index comes `repeat + 1` times. The judge takes another order for another
    problem, so no verdict comes from its cache.
    """
    if num_tests == 1:
        return (0,) * (repeat + 1)
    # Another start for each repeat, as far from the others as there are tests.
    step = max(1, num_tests // (repeat + 1))
    start = repeat * step % num_tests
    return (*range(start, num_tests), *range(start))


def _programs_of(candidate: Candidate) -> list[PlannedProgram]:
    """Return the solutions that can be run, first those in the language of answers."""
    programs: list[PlannedProgram] = []
    seen: set[str] = set()
    # An accepted program that is also given as a wrong one counts as accepted.
    for solution in candidate.solutions:
        if solution.known == "accepted":
            seen.add(solution.code)
    for number, solution in enumerate(candidate.solutions):
        role = _ROLES.get(solution.known)
        if role is None:
            continue
        if role != "accepted" and solution.code in seen:
            continue
        seen.add(solution.code)
        language = language_of(solution, candidate)
        if language:
            program = Program(solution.code, language)
            programs.append(PlannedProgram(f"{number}", role, program))
    answers_language = candidate.programming_language
    # In one language the source's order stays, so that a rebuild runs the same ones.
    programs.sort(key=lambda program: program.language != answers_language)
    return programs


def language_of(solution: Solution, candidate: Candidate) -> str:
    """Return the evaluator's name of a solution's language; empty if it cannot be run here."""
    try:
        language = find_language(solution.language)
    except DataError:
        return ""
    if candidate.fn_name is not None and language.is_built:
        # Functions are called only in languages whose programs are not built.
        return ""
    if language.name == "python" and is_python2(solution.code):
        return ""
    # A language may be known and not installed.
    if language.find_problem():
        return ""
    return language.name


def trivial_programs(candidate: Candidate) -> dict[str, str]:
    """Return trivial Python programs by name, which must fail on a problem.

    They give constants, or echo the input.
    """
    constant = _commonest_answer(candidate)
    if candidate.fn_name is not None:
        return _trivial_functions(candidate.fn_name, constant)
    programs = {
        "empty": "pass\n",
        "echo": "import sys\nsys.stdout.write(sys.stdin.read())\n",
    }
    for value in _CONSTANTS:
        programs[f"constant {value}"] = f"print({value!r})\n"
    if constant is not None:
        # As bytes: an answer need not be valid text.
        text = ascii(constant.encode("utf-8", "surrogateescape"))
        programs["constant commonest answer"] = f"import sys\nsys.stdout.buffer.write({text})\n"
    return programs


def _trivial_functions(
    name: str,
    constant: str | None,
) -> dict[str, str]:
    """Return trivial programs for a problem whose answers are a function with this name."""
    bodies = {f"constant {value}": value for value in _VALUES}
    bodies["echo"] = "arguments[0] if arguments else None"
    if constant is not None:
        # In one expression, as all bodies here are.
        bodies["constant commonest answer"] = f"__import__('json').loads({constant!a})"
    programs = {}
    for title, value in bodies.items():
        programs[title] = f"def {name}(*arguments):\n    return {value}\n"
    return programs


def _commonest_answer(candidate: Candidate) -> str | None:
    """Return the output of most tests; None if it is too long for a program."""
    outputs = Counter(test.output for test in candidate.tests)
    if not outputs:
        return None
    (commonest, _) = outputs.most_common(1)[0]
    return commonest if len(commonest) <= _MOST_CONSTANT_CHARACTERS else None

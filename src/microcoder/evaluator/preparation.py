"""A problem in the form it is judged in, checked once for all programs of a batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace

from microcoder.errors import DataError
from microcoder.evaluator import calls, values, verdicts
from microcoder.evaluator.checkers import CPU_SECONDS, MEMORY_MIB, AnswerMemory
from microcoder.evaluator.languages import find_language, language_of
from microcoder.evaluator.siblings import Siblings
from microcoder.evaluator.supervisor import Limits, Run
from microcoder.signatures import find_call
from microcoder.types import Outcome, Problem, TestResult

OUTPUT_MIB = 16
_MAX_NAME_LENGTH = 1000
_MAX_ARGUMENTS_BYTES = 1 << 15
"""Encoded size; one message to the sandbox carries everything about a test."""
_WALL_FACTOR, _WALL_EXTRA_SECONDS = 3.0, 1.0
_WALL_FACTOR_OF_TESTS = 2.0
"""As Kattis judges: time in which a test waits for its turn or for a processor does not count."""
SPARE_MEMORY_MIB = 640
"""Address space beyond the limit on resident memory: room for maps that are never touched, such as the
512 MiB thread stack that deep recursion is usually run in."""


@dataclass(frozen=True, slots=True)
class PreparedTest:
    """A test in the form it is run in."""

    stdin: bytes
    expected: object
    """Text, or for a function-call problem the decoded JSON value."""
    expected_bytes: int
    """How long that is as text."""


def limits_for(
    cpu_seconds: float, memory_mib: int, output_mib: int, *, spare_memory_mib: int = SPARE_MEMORY_MIB
) -> Limits:
    """Return what a test may use: wall time is only a backstop, CPU time decides."""
    return Limits(
        cpu_seconds=cpu_seconds,
        wall_seconds=_WALL_FACTOR * cpu_seconds + _WALL_EXTRA_SECONDS,
        memory_bytes=(memory_mib + spare_memory_mib) << 20,
        output_bytes=output_mib << 20,
    )


class PreparedProblem:
    """A problem whose tests were checked once."""

    def __init__(self, problem: Problem, *, time_scale: float = 1.0, checker_seconds: float = CPU_SECONDS) -> None:
        """Check and prepare it.

        Args:
            problem: what to judge by.
            time_scale: how much longer than on the reference machine a program may take here.
            checker_seconds: CPU time that its checker program may take for a test on the reference machine.

        Raises:
            DataError: its tests or its checker cannot be used.
        """
        check_problem(problem)
        # A harness makes the calls itself: to the sandbox it is a program that reads stdin.
        self.problem = problem if problem.harness is None else problem.model_copy(update={"fn_name": None})
        self._call = find_call(problem)
        call = self._call
        self.call_message = None if call is None else call.model_dump(mode="json", exclude_defaults=True)
        """The call as sent to the sandbox; None if all is plain JSON."""
        self.tests = [self._prepare(number) for number in range(1, len(problem.tests) + 1)]
        longest = max(test.expected_bytes for test in self.tests)
        output_mib = max(OUTPUT_MIB, 2 * (longest >> 20))
        language = language_of(problem)
        self._out_of_memory = language.out_of_memory
        cpu_seconds = (problem.time_limit_seconds + language.startup_seconds) * time_scale
        self._memory_limit_mib = problem.memory_limit_mib + language.startup_memory_mib
        limits = limits_for(cpu_seconds, self._memory_limit_mib, output_mib)
        self.limits = replace(limits, wall_seconds=_WALL_FACTOR_OF_TESTS * cpu_seconds + _WALL_EXTRA_SECONDS)
        self.checker_limits = limits_for(checker_seconds * time_scale, MEMORY_MIB, OUTPUT_MIB)
        self.siblings = Siblings(time_scale)
        """How long accepted programs took."""
        self.answers = AnswerMemory()
        """Whether a checker program decides about this problem's own answers."""

    def submit(self, code: str) -> str:
        """Return the program that is run for an answer's code."""
        harness = self.problem.harness
        return code if harness is None else f"{harness}\n\nmain({code!r})\n"

    def _prepare(self, number: int) -> PreparedTest:
        test = self.problem.tests[number - 1]
        stdin = test.input.encode("utf-8", "surrogatepass")
        expected_bytes = len(test.output.encode("utf-8", "surrogatepass"))
        if self.problem.fn_name is None:
            return PreparedTest(stdin, test.output, expected_bytes)
        # check_problem has read the value; a checker program gets its text.
        is_compared = self.problem.checker.type != "program"
        expected = calls.read_test(self.problem, number, self._call) if is_compared else test.output
        return PreparedTest(stdin, expected, expected_bytes)

    def is_close(self, run: Run) -> bool:
        """Whether a test ended by itself a little beyond its CPU limit, maybe because of a busy machine."""
        return not run.result.expired and run.cpu_seconds > self.limits.cpu_seconds

    def find_failure(self, run: Run) -> tuple[Outcome, str] | None:
        """Return why a test failed before its output is looked at, or None."""
        return verdicts.find_failure(run, self.limits, self._memory_limit_mib, self._out_of_memory)

    def judge(self, run: Run, test: PreparedTest) -> TestResult:
        """Judge what one test left behind."""
        failure = self.find_failure(run)
        if failure is not None:
            return verdicts.failed(run, failure)
        if self.problem.fn_name is None:
            return verdicts.judge_output(run, str(test.expected), self.problem.checker)
        checker = self.problem.checker
        return verdicts.judge_value(run, test.expected, checker, expected_bytes=test.expected_bytes)

    def output_of(self, run: Run, test: PreparedTest) -> bytes | TestResult:
        """Return what a checker program reads: stdout, or the returned value as JSON; or why there is none."""
        if self.problem.fn_name is None:
            return run.stdout
        value = verdicts.read_value(run, expected_bytes=test.expected_bytes)
        return value if isinstance(value, TestResult) else values.write_json(value).encode()


def check_problem(problem: Problem) -> None:
    """Refuse a problem that cannot judge any program.

    Raises:
        DataError: an unknown language, a call that is not JSON, or a checker that does not fit; which and why.
    """
    language = language_of(problem)
    checker = problem.checker
    if checker.type == "program":
        find_language(checker.language)
    check_arguments(checker.arguments, f"problem {problem.id}: checker.arguments")
    if problem.fn_name is not None and len(problem.fn_name) > _MAX_NAME_LENGTH:
        raise DataError(
            f"problem {problem.id[:100]}: fn_name has {len(problem.fn_name)} characters; use at most {_MAX_NAME_LENGTH}"
        )
    if problem.fn_name is not None and problem.harness is None:
        calls.check_call(problem)
        for number in range(1, len(problem.tests) + 1):
            calls.read_test(problem, number, find_call(problem))
    if problem.fn_name is not None and language.is_built:
        raise DataError(f"problem {problem.id} calls a function in {language.name}; only Python programs can be called")
    if problem.dialect != "plain" and language.is_built:
        raise DataError(
            f'problem {problem.id} is in {language.name}, dialect "{problem.dialect}" is a way to run Python programs; '
            'leave it out, or use "plain"'
        )


def check_arguments(arguments: Sequence[str], what: str) -> None:
    """Refuse arguments that cannot be passed to a program.

    Raises:
        DataError: they are too long, or hold a NUL.
    """
    num_bytes = len(json.dumps(arguments))
    if num_bytes > _MAX_ARGUMENTS_BYTES:
        raise DataError(f"{what}: {num_bytes} bytes; use at most {_MAX_ARGUMENTS_BYTES}, and a file for more")
    if any("\0" in argument for argument in arguments):
        raise DataError(f"{what}: a NUL character in one of them; leave it out")

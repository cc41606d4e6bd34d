"""Problems prepared for judging: in the form in which they are judged, checked once for all their programs."""

import hashlib
import json
from dataclasses import dataclass

from microcoder.judge.compare.compare import compare_output, compare_value
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase, TestResult
from microcoder.judge.languages import language_of
from microcoder.judge.run import verdicts
from microcoder.judge.run.checks import check_problem
from microcoder.judge.run.timing import CHECKER_MIB, CHECKER_SECONDS, WALL_FACTOR_OF_TESTS, limits_for
from microcoder.judge.run.verdicts import Run

OUTPUT_MIB = 16
_TEST_BYTES, _VALUE_BYTES_PER_CHARACTER = 1000, 20
"""Memory of a test besides its text, and of a value read from JSON such as `[[],[]]` for each character."""


@dataclass(frozen=True, slots=True)
class PreparedTest:
    """A test in the form it is run in."""

    stdin: bytes
    expected: object
    """Text, or for a function-call problem the decoded JSON value."""
    expected_bytes: int
    """Bytes of the expected output as text."""
    exact: bytes | None = None
    """An output equal to this, up to a newline at the end, is right without comparison: the expected text, or the
    value as the sandbox encodes it; None if it is long, or if the same text need not be right."""


class PreparedProblem:
    """A problem whose tests were checked once."""

    def __init__(self, problem: Problem, *, time_scale: float = 1.0, checker_seconds: float = CHECKER_SECONDS) -> None:
        """Check and prepare the tests; raises DataError as `check_problem` does."""
        values = check_problem(problem)
        # A harness makes the calls itself: to the sandbox it is a program that reads stdin.
        self.problem = problem if problem.harness is None else problem.model_copy(update={"fn_name": None})
        call = find_call(problem)
        self.call_message = None if call is None else call.model_dump(mode="json", exclude_defaults=True)
        """The call as sent to the sandbox; None if all is plain JSON."""
        self.tests = [self._prepare(test, value) for test, value in zip(problem.tests, values, strict=True)]
        longest = max(test.expected_bytes for test in self.tests)
        output_mib = max(OUTPUT_MIB, 2 * (longest >> 20))
        language = language_of(problem)
        self._out_of_memory = language.out_of_memory
        cpu_seconds = (problem.time_limit_seconds + language.startup_seconds) * time_scale
        self._memory_limit_mib = problem.memory_limit_mib + language.startup_memory_mib
        self.limits = limits_for(cpu_seconds, self._memory_limit_mib, output_mib, wall_factor=WALL_FACTOR_OF_TESTS)
        self.checker_limits = limits_for(checker_seconds * time_scale, CHECKER_MIB, OUTPUT_MIB)
        self.checker_works: dict[int, bool] = {}
        """By the test's id: whether the checker program can judge the problem's own answer; filled on demand."""
        self.number = 0
        """Unique among the problems of a judge."""
        self._seen_seconds: float | None = None

    @property
    def expected_seconds(self) -> float:
        """Expected wall seconds of the next program; those of the time limit before the first."""
        return self.limits.cpu_seconds if self._seen_seconds is None else self._seen_seconds

    def note_seconds(self, seconds: float) -> None:
        """Update the moving average of the programs' wall seconds."""
        self._seen_seconds = seconds if self._seen_seconds is None else (self._seen_seconds + seconds) / 2

    @property
    def num_bytes(self) -> int:
        """Bytes of its tests, which are held twice: as text, and as input or values."""
        per_character = 2 if self.problem.fn_name is None else 2 + _VALUE_BYTES_PER_CHARACTER
        tests = self.problem.tests
        return sum(2 * len(test.input) + per_character * len(test.output) + _TEST_BYTES for test in tests)

    def key_of(self, program: Program) -> tuple[int, bytes]:
        """Return the cache key of this program's verdict, which keeps neither of them alive."""
        # A client's reason may be any text, also that of somebody's program.
        text = f"-{program.reason}" if program.code is None else f"={program.code}"
        return self.number, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def submit(self, code: str) -> str:
        """Return the source that is run for an answer's code: the code itself, or the harness called with it."""
        harness = self.problem.harness
        return code if harness is None else f"{harness}\n\nmain({code!r})\n"

    def _prepare(self, test: TestCase, value: object) -> PreparedTest:
        stdin = test.input.encode("utf-8", "surrogatepass")
        expected_bytes = len(test.output.encode("utf-8", "surrogatepass"))
        checker = self.problem.checker.type
        may_be_exact = checker in ("default", "exact") and expected_bytes <= _LONGEST_EXACT_BYTES
        if self.problem.fn_name is None:
            text = test.output.removesuffix("\n")
            exact = text.encode() if may_be_exact and text.isascii() else None
            return PreparedTest(stdin, test.output, expected_bytes, exact)
        # A checker program gets its text.
        expected = value if checker != "program" else test.output
        is_plain = may_be_exact and _is_plain(expected)
        exact = json.dumps(expected, separators=(",", ":")).encode() if is_plain else None
        return PreparedTest(stdin, expected, expected_bytes, exact)

    def find_failure(self, run: Run) -> tuple[Outcome, str] | None:
        """Return the outcome and reason of a test that failed whatever its output is, or None."""
        return verdicts.find_failure(run, self.limits, self._memory_limit_mib, self._out_of_memory)

    def judge(self, run: Run, test: PreparedTest) -> TestResult:
        """Return the result of a finished test: its failure, or the comparison of its output."""
        value = self.value_of(run, test)
        if isinstance(value, TestResult):
            return value
        checker = self.problem.checker
        if self.problem.fn_name is None:
            output = run.stdout.decode("utf-8", "surrogateescape")
            return verdicts.compared(run, compare_output(output, str(test.expected), checker))
        return verdicts.compared(run, compare_value(value, test.expected, checker))

    def value_of(self, run: Run, test: PreparedTest) -> object | TestResult:
        """Return the value that a function returned, None for a program, or the TestResult of a failed test."""
        failure = self.find_failure(run)
        if failure is not None:
            return verdicts.result_of(run, *failure)
        return None if self.problem.fn_name is None else verdicts.read_value(run, expected_bytes=test.expected_bytes)


_LONGEST_EXACT_BYTES = 1 << 16
_EXACT_IN_JSON = 1 << 53


def _is_plain(value: object) -> bool:
    """Whether the sandbox encodes a value as plain JSON."""
    if type(value) is list:
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, str) or (type(value) is int and abs(value) < _EXACT_IN_JSON)

"""Problems in the form in which they are judged, checked once for all their programs; a test's run -> its verdict.

| seen                                                             | outcome         |
|------------------------------------------------------------------|-----------------|
| the compiler refused the source                                  | `COMPILE_ERROR` |
| stdout or stderr beyond the cap, or the signal for that          | `OUTPUT_LIMIT`  |
| resident memory beyond the limit, or an uncaught MemoryError     | `MEMORY_LIMIT`  |
| CPU time spent, or wall time at the backstop                     | `TIME_LIMIT`    |
| an uncaught refusal of a new process or thread                   | `PROCESS_LIMIT` |
| a signal, a non-zero exit code, nothing or nonsense returned     | `RUNTIME_ERROR` |
| the comparison refuses                                           | `WRONG_ANSWER`  |

The first row that applies decides; right output does not excuse a failed exit.
"""

import json
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from microcoder.judge.compare.compare import Comparison, compare_output, compare_value
from microcoder.judge.compare.values import MalformedWire, decode_value
from microcoder.judge.core.signatures import find_call
from microcoder.judge.core.types import (
    Outcome,
    Problem,
    TestCase,
    TestResult,
    UncountedRun,
    Verdict,
)
from microcoder.judge.languages import language_of
from microcoder.judge.run import timing
from microcoder.judge.run.checks import check_settings, read_tests
from microcoder.judge.run.explanations import explain_error, explain_memory, explain_signal
from microcoder.judge.run.timing import (
    CHECKER_MIB,
    CHECKER_SECONDS,
    WALL_FACTOR_OF_TESTS,
    Limits,
    limits_for,
)
from microcoder.judge.sandbox.protocol import FOLDER_EXPIRED, Result

_MEMORY_ERROR = re.compile(r"^[\w.]*MemoryError\b")
_NO_MORE_PROCESSES = re.compile(
    r"^RuntimeError: can't start new thread|^BlockingIOError: \[Errno 11\]"
)
_ABORTED = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
"""Signals by which runtimes end if they cannot go on."""
_NEARLY_ALL = 0.9
_MAX_DETAIL = 300
"""Characters of a detail: a program's own words, and behind them which limit or refusal did it."""
_MAX_OUTPUT = 2000
_LONGEST_VALUE_KEPT_BYTES = 1 << 15
_ALWAYS_READ_BYTES, _MOST_TIMES_LONGER = 1 << 16, 32
"""A returned value of more bytes than the first, plus the second times the expected ones, is wrong: rebuilding 16 MiB
of empty lists takes a second. It is JSON, of at most 32 bytes for a number, 12 more for a container or a character."""

OUTPUT_MIB = 16
_TEST_BYTES, _VALUE_BYTES_PER_CHARACTER = 1000, 20
"""Memory of a test besides its text, and of a value read from JSON such as `[[],[]]` for each character."""


@dataclass(frozen=True, slots=True)
class Run:
    """The unjudged result of one test."""

    result: Result
    stdout: bytes
    stdout_bytes: int
    stderr: str
    """End of its stderr."""
    stderr_bytes: int
    wire: bytes | None
    """Encoded result of a function-call program, or a built binary; None for any other program."""

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all its threads."""
        return self.result.cpu_us / 1e6


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
    """A problem that was checked, with its tests in the form they are run in."""

    def __init__(
        self, problem: Problem, *, time_scale: float = 1.0, checker_seconds: float = CHECKER_SECONDS
    ) -> None:
        """Check the problem and prepare its tests; raises DataError as `check_problem` does."""
        check_settings(problem)
        # A harness makes the calls itself: to the sandbox it is a program that reads stdin.
        self.problem = (
            problem if problem.harness is None else problem.model_copy(update={"fn_name": None})
        )
        call = find_call(problem)
        self.call_message = (
            None if call is None else call.model_dump(mode="json", exclude_defaults=True)
        )
        """The call as sent to the sandbox; None if all is plain JSON."""
        is_function = self.problem.fn_name is not None
        expected = (
            read_tests(problem, call) if is_function else [test.output for test in problem.tests]
        )
        self.tests = [
            self._prepare(test, value) for test, value in zip(problem.tests, expected, strict=True)
        ]
        longest = max(test.expected_bytes for test in self.tests)
        output_mib = max(OUTPUT_MIB, 2 * (longest >> 20))
        language = language_of(problem)
        self._out_of_memory = language.out_of_memory
        cpu_seconds = (problem.time_limit_seconds + language.startup_seconds) * time_scale
        self._memory_limit_mib = problem.memory_limit_mib + language.startup_memory_mib
        self.limits = limits_for(
            cpu_seconds, self._memory_limit_mib, output_mib, wall_factor=WALL_FACTOR_OF_TESTS
        )
        self.checker_limits = limits_for(checker_seconds * time_scale, CHECKER_MIB, OUTPUT_MIB)
        self.checker_works: dict[int, bool] = {}
        """Test's `id()` -> whether the checker program can judge the problem's own answer; filled on demand."""
        self.number = 0
        """Number of the problem, unique in its judge."""
        self._seen_seconds: float | None = None

    @property
    def expected_seconds(self) -> float:
        """Expected wall seconds of the next program; those of the time limit before the first."""
        return self.limits.cpu_seconds if self._seen_seconds is None else self._seen_seconds

    def note_seconds(self, seconds: float) -> None:
        """Update the moving average of the programs' wall seconds."""
        self._seen_seconds = (
            seconds if self._seen_seconds is None else (self._seen_seconds + seconds) / 2
        )

    @property
    def num_bytes(self) -> int:
        """Bytes of its tests, which are held twice: as text, and as input or values."""
        per_character = 2 if self.problem.fn_name is None else 2 + _VALUE_BYTES_PER_CHARACTER
        tests = self.problem.tests
        return sum(
            2 * len(test.input) + per_character * len(test.output) + _TEST_BYTES for test in tests
        )

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
            return PreparedTest(stdin, value, expected_bytes, exact)
        # A checker program gets its text.
        expected = value if checker != "program" else test.output
        is_plain = may_be_exact and _is_plain(expected)
        exact = json.dumps(expected, separators=(",", ":")).encode() if is_plain else None
        return PreparedTest(stdin, expected, expected_bytes, exact)

    def find_failure(self, run: Run) -> tuple[Outcome, str] | None:
        """Return the outcome and reason of a test that failed whatever its output is, or None."""
        return find_failure(run, self.limits, self._memory_limit_mib, self._out_of_memory)

    def judge(self, run: Run, test: PreparedTest) -> TestResult:
        """Return the result of a finished test: its failure, or the comparison of its output."""
        value = self.value_of(run, test)
        if isinstance(value, TestResult):
            return value
        checker = self.problem.checker
        if self.problem.fn_name is None:
            output = run.stdout.decode("utf-8", "surrogateescape")
            return compared(run, compare_output(output, str(test.expected), checker))
        return compared(run, compare_value(value, test.expected, checker))

    def value_of(self, run: Run, test: PreparedTest) -> object | TestResult:
        """Return the value that a function returned, None for a program, or the TestResult of a failed test."""
        failure = self.find_failure(run)
        if failure is not None:
            return result_of(run, *failure)
        if self.problem.fn_name is None:
            return None
        if not run.wire:
            return result_of(
                run, Outcome.RUNTIME_ERROR, "the program ended before its function returned"
            )
        if len(run.wire) > _ALWAYS_READ_BYTES + _MOST_TIMES_LONGER * test.expected_bytes:
            detail = f"the returned value takes {len(run.wire)} bytes, the expected one {test.expected_bytes}"
            return result_of(run, Outcome.WRONG_ANSWER, detail)
        try:
            return decode_value(run.wire)
        except MalformedWire as error:
            return result_of(run, Outcome.RUNTIME_ERROR, str(error))


_LONGEST_EXACT_BYTES = 1 << 16
_EXACT_IN_JSON = 1 << 53


def _is_plain(value: object) -> bool:
    """Whether the sandbox encodes a value as plain JSON."""
    if type(value) is list:
        return all(map(_is_plain, value))
    return (
        value is None
        or type(value) in (bool, str)
        or (type(value) is int and abs(value) < _EXACT_IN_JSON)
    )


def find_failure(
    run: Run, limits: Limits, memory_limit_mib: int, out_of_memory: str = ""
) -> tuple[Outcome, str] | None:
    """Return outcome and reason of a test that failed whatever its output, or None; `out_of_memory`: sign on stderr."""
    result = run.result
    wire_bytes = len(run.wire or b"")
    for name, size in (
        ("stdout", run.stdout_bytes),
        ("stderr", run.stderr_bytes),
        ("returned value", wire_bytes),
    ):
        if size > limits.output_bytes:
            return Outcome.OUTPUT_LIMIT, f"{name} exceeds {limits.output_bytes >> 20} MiB"
    if result.signal == signal.SIGXFSZ:
        return Outcome.OUTPUT_LIMIT, f"a file exceeds {limits.output_bytes >> 20} MiB"
    if result.expired == FOLDER_EXPIRED:
        return Outcome.OUTPUT_LIMIT, "its files exceed what a test may write"
    lines = run.stderr.strip().splitlines() if result.exit_code else []
    last_line = lines[-1].strip() if lines else ""
    memory_mib = result.memory_kib / 1024
    is_out_of_memory = (result.exit_code > 0 and _MEMORY_ERROR.match(last_line)) or (
        (result.signal in _ABORTED or result.exit_code > 0)
        and out_of_memory
        and out_of_memory in run.stderr
    )
    is_killed_when_full = (
        result.signal == signal.SIGKILL
        and not result.expired
        and memory_mib >= _NEARLY_ALL * memory_limit_mib
    )
    if memory_mib > memory_limit_mib or is_out_of_memory or is_killed_when_full:
        return Outcome.MEMORY_LIMIT, explain_memory(memory_mib, memory_limit_mib, run.stderr)
    if overrun := timing.find_overrun(result, limits, is_signalled=result.signal == signal.SIGXCPU):
        return Outcome.TIME_LIMIT, overrun
    if result.signal:
        name = signal_name(result.signal)
        return Outcome.RUNTIME_ERROR, explain_signal(name, run.stderr)
    if not result.exit_code:
        return None
    is_function = run.wire is not None
    detail = explain_error(run.stderr, result.exit_code, is_function=is_function)
    if _NO_MORE_PROCESSES.search(last_line):
        return Outcome.PROCESS_LIMIT, detail
    return Outcome.RUNTIME_ERROR, detail


def without_run(outcome: Outcome, detail: str) -> TestResult:
    """Return the result of a program that could not be built, or of a test that our machine could not run."""
    return TestResult(outcome, 0.0, 0.0, 0.0, "", shorten(detail))


def conclude(
    results: Sequence[TestResult],
    num_tests: int,
    *,
    isolation: str = "",
    uncounted: Sequence[UncountedRun] = (),
) -> Verdict:
    """Return the verdict on a program by the results of its tests: the first one that failed decides."""
    outcome, detail = Outcome.ACCEPTED, ""
    for number, result in enumerate(results, 1):
        if result.verdict is not Outcome.ACCEPTED:
            outcome, detail = result.verdict, f"test {number}: {result.detail}".rstrip(": ")
            break
    return Verdict(outcome, tuple(results), num_tests, detail, isolation, tuple(uncounted))


def compared(run: Run, comparison: Comparison) -> TestResult:
    """Return the result of a test whose output was compared."""
    outcome = Outcome.ACCEPTED if comparison.accepted else Outcome.WRONG_ANSWER
    return result_of(run, outcome, comparison.detail, comparison.method)


def result_of(run: Run, outcome: Outcome, detail: str, method: str = "") -> TestResult:
    """Return the result of a test: its outcome, with what its run took."""
    return TestResult(
        verdict=outcome,
        cpu_seconds=run.cpu_seconds,
        wall_seconds=run.result.wall_us / 1e6,
        memory_mib=round(run.result.memory_kib / 1024, 3),
        method=method,
        detail=detail and shorten(detail),
        output=None if outcome in (Outcome.ACCEPTED, Outcome.COMPILE_ERROR) else _beginning(run),
    )


def _beginning(run: Run) -> str | None:
    """Return the beginning of an output, or a returned value as JSON if possible; None for no or a long value."""
    if run.wire is None:
        text, num_more = (
            run.stdout[: 4 * _MAX_OUTPUT].decode("utf-8", "backslashreplace"),
            run.stdout_bytes,
        )
        return (
            text if len(text) <= _MAX_OUTPUT else f"{text[:_MAX_OUTPUT]}\n[... of {num_more} bytes]"
        )
    if not run.wire or len(run.wire) > _LONGEST_VALUE_KEPT_BYTES:
        return None
    try:
        value = decode_value(run.wire)
        try:
            text = json.dumps(value, ensure_ascii=False)
        except TypeError:
            text = repr(value)
    except ValueError:  # No value, or a number of more digits than Python writes.
        return None
    text = text.encode("utf-8", "backslashreplace").decode()
    return (
        text
        if len(text) <= _MAX_OUTPUT
        else f"{text[:_MAX_OUTPUT]}\n[... of {len(text)} characters]"
    )


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def shorten(text: str) -> str:
    """Return a text as one line that is short enough to be shown."""
    line = " ".join(text.split())
    return line if len(line) <= _MAX_DETAIL else line[: _MAX_DETAIL - 3] + "..."

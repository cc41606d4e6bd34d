"""Problems in the form in which they are judged, and what a test's run says about its program.

A problem is checked once for all its programs. Of a run:

| seen                                                             | outcome         |
|------------------------------------------------------------------|-----------------|
| the compiler refused the source                                  | `COMPILE_ERROR` |
| stdout or stderr beyond the cap, or the signal for that          | `OUTPUT_LIMIT`  |
| resident memory beyond the limit, or an uncaught MemoryError     | `MEMORY_LIMIT`  |
| CPU time spent, wall time at the backstop, or a deadlock         | `TIME_LIMIT`    |
| an uncaught refusal of a new process or thread                   | `PROCESS_LIMIT` |
| a signal, a non-zero exit code, nothing or nonsense returned     | `RUNTIME_ERROR` |
| the comparison refuses                                           | `WRONG_ANSWER`  |

The first row that applies decides; right output does not excuse a failed exit.
"""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
from microcoder.judge.run.checks import check_settings, read_tests
from microcoder.judge.run.executor import Run
from microcoder.judge.run.explanations import explain_error, explain_memory, explain_signal
from microcoder.judge.run.timing import (
    CHECKER_MIB,
    CHECKER_SECONDS,
    WALL_FACTOR_OF_TESTS,
    Limits,
    limits_for,
)
from microcoder.judge.sandbox.protocol import Expiry, Result

_MEMORY_ERROR = re.compile(r"^[\w.]*MemoryError\b")
"""Last line of a Python program that ran out of memory."""
_NO_MORE_PROCESSES = re.compile(
    r"^RuntimeError: can't start new thread|^BlockingIOError: \[Errno 11\]"
)
"""Last line of one that could start no thread or process."""
_ABORTED = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
"""Signals by which runtimes end if they cannot go on."""
DEADLOCKED = (
    "deadlock: the program and the interactor waited for each other "
    "(is every line flushed, and every answer read?)"
)
"""What is said of a program that was ended as it waited."""
_NEARLY_ALL = 0.9
"""Share of the memory limit: what is killed beyond it was killed because memory ran out."""
_MAX_DETAIL = 300
"""Characters of a detail: a program's own words, and behind them which limit or refusal did it."""
_MAX_OUTPUT = 2000
"""Characters of an output that are kept with a result."""
_LONGEST_VALUE_KEPT_BYTES = 1 << 15
"""Bytes of the longest returned value that is kept with a result."""
_ALWAYS_READ_BYTES = 1 << 16
"""A returned value of up to so many bytes is read, however short the expected one is."""
_MOST_TIMES_LONGER = 32
"""A value of more bytes than that, and than so many times the expected ones, is wrong unread.

Rebuilding 16 MiB of empty lists takes a second. A value is JSON, of at most 32 bytes for a number,
and 12 more for a container or a character.
"""

OUTPUT_MIB = 16
"""What a test may write to a stream, if its problem expects no more."""
_TEST_BYTES = 1000
"""Memory of a test besides its text."""
_VALUE_BYTES_PER_CHARACTER = 20
"""Memory of a value read from JSON such as `[[],[]]`, for each character."""
_LONGEST_EXACT_BYTES = 1 << 16
"""Bytes of the longest expected output that is compared as it is before anything else."""
_EXACT_IN_JSON = 1 << 53
"""From here on the sandbox writes whole numbers in another way than JSON does."""
_LIKELY = 0.6
"""Share of the latest programs accepted in company beyond which the next one begins there."""
_SMALL_BYTES = 1 << 11
"""Input and expected output of a test that is taken for as quick as the first, in bytes."""
_MOST_TIMES_LARGER = 4
"""A test of more bytes is taken for as quick if they are at most so many times the first test's."""
_EXACT_TEXT = TestResult(Outcome.ACCEPTED, 0.0, 0.0, 0.0, "exact", "")
"""Result of a test whose output is the expected text, byte for byte."""
_EXACT_VALUE = TestResult(Outcome.ACCEPTED, 0.0, 0.0, 0.0, "value", "")
"""Result of a test whose returned value is encoded as the expected one is."""


@dataclass(frozen=True, slots=True)
class PreparedTest:
    """A test in the form it is run in."""

    stdin: bytes
    expected: object
    """Text, or for a function-call problem the decoded JSON value."""
    expected_bytes: int
    """Bytes of the expected output as text."""
    exact: bytes | None = None
    """An output equal to this, up to a newline at the end, is right without comparison.

    It is the expected text, or the value as the sandbox encodes it; None if it is long, or if the
    same text need not be right.
    """

    @property
    def num_bytes(self) -> int:
        """Bytes of its input and expected output."""
        return len(self.stdin) + self.expected_bytes


class PreparedProblem:
    """A problem that was checked, with its tests in the form they are run in."""

    def __init__(
        self, problem: Problem, *, time_scale: float = 1.0, checker_seconds: float = CHECKER_SECONDS
    ) -> None:
        """Check the problem and prepare its tests; raises DataError as `check_problem` does."""
        check_settings(problem)
        # Tests that are programs make the calls themselves, and expect no value.
        self.problem = problem
        self.settings = b""
        """What a test that is a program is told of its problem; empty for any other problem."""
        if problem.assertions is not None:
            settings = {"fn_name": problem.fn_name, **problem.assertions.model_dump(mode="json")}
            self.settings = json.dumps(settings).encode()
            self.problem = problem.model_copy(update={"fn_name": None})
        call = find_call(problem)
        self.call_message: dict[str, Any] | None = None
        """The call as sent to the sandbox; None if all is plain JSON."""
        if call is not None:
            self.call_message = call.model_dump(mode="json", exclude_defaults=True)
        if self.problem.fn_name is None:
            expected: Sequence[object] = [test.output for test in problem.tests]
        else:
            expected = read_tests(problem, call)
        pairs = zip(problem.tests, expected, strict=True)
        self.tests = [self._prepare(test, value) for test, value in pairs]
        self.small_tests = _list_small(self.tests)
        """Numbers of the tests that are no larger than a quick first one suggests."""
        longest = max(test.expected_bytes for test in self.tests)
        # A program may write twice what is expected, so that its output can still be called wrong.
        output_mib = max(OUTPUT_MIB, 2 * (longest >> 20))
        self.language = language = language_of(problem)
        """Of its programs."""
        self._out_of_memory = language.out_of_memory
        cpu_seconds = (problem.time_limit_seconds + language.startup_seconds) * time_scale
        self._memory_limit_mib = problem.memory_limit_mib + language.startup_memory_mib
        self.limits = limits_for(
            cpu_seconds, self._memory_limit_mib, output_mib, wall_factor=WALL_FACTOR_OF_TESTS
        )
        self.checker_limits = limits_for(checker_seconds * time_scale, CHECKER_MIB, OUTPUT_MIB)
        self.checker_works: dict[int, bool] = {}
        """Test's `id()` -> whether the checker program can judge the problem's own answer.

        It is filled on demand.
        """
        self.interactor_works: dict[int, bool] = {}
        """Test's `id()` -> whether the interactor can talk with a silent program; as above."""
        self.number = 0
        """Number of the problem, unique in its judge."""
        self._seen_seconds: float | None = None
        self._company_share = 0.0
        """Moving average: how many of the latest programs were accepted in company."""

    @property
    def expected_seconds(self) -> float:
        """Expected wall seconds of the next program; those of the time limit before the first."""
        if self._seen_seconds is None:
            return self.limits.cpu_seconds
        return self._seen_seconds

    def note_seconds(self, seconds: float) -> None:
        """Update the moving average of the programs' wall seconds."""
        # A moving average: the programs of a policy change as it learns.
        if self._seen_seconds is None:
            self._seen_seconds = seconds
        else:
            self._seen_seconds = (self._seen_seconds + seconds) / 2

    @property
    def begins_in_company(self) -> bool:
        """Whether the next program is likely to be accepted in a process that its tests share."""
        return self._company_share > _LIKELY

    def note_company(self, *, was_accepted: bool) -> None:
        """Note whether a program was accepted in a process that its tests shared."""
        self._company_share = (self._company_share + was_accepted) / 2

    @property
    def num_bytes(self) -> int:
        """Bytes of its tests, which are held twice: as text, and as input or values."""
        # As text in the problem, and once more as what is sent or compared.
        per_character = 2
        if self.problem.fn_name is not None:
            per_character += _VALUE_BYTES_PER_CHARACTER
        num_bytes = 0
        for test in self.problem.tests:
            num_bytes += 2 * len(test.input) + per_character * len(test.output) + _TEST_BYTES
        return num_bytes

    def _prepare(self, test: TestCase, value: object) -> PreparedTest:
        stdin = test.input.encode("utf-8", "surrogatepass")
        expected_bytes = len(test.output.encode("utf-8", "surrogatepass"))
        checker = self.problem.checker.type
        # Another checker may refuse even the expected text.
        may_be_exact = checker in ("default", "exact") and expected_bytes <= _LONGEST_EXACT_BYTES
        if self.problem.fn_name is None:
            text = test.output.removesuffix("\n")
            exact = text.encode() if may_be_exact and text.isascii() else None
            return PreparedTest(stdin, value, expected_bytes, exact)
        # A checker program gets its text.
        expected = test.output if checker == "program" else value
        exact = None
        if may_be_exact and _is_plain(expected):
            exact = json.dumps(expected, separators=(",", ":")).encode()
        return PreparedTest(stdin, expected, expected_bytes, exact)

    def find_failure(self, run: Run) -> tuple[Outcome, str] | None:
        """Return the outcome and reason of a test that failed whatever its output is, or None."""
        return find_failure(run, self.limits, self._memory_limit_mib, self._out_of_memory)

    def judge(self, run: Run, test: PreparedTest) -> TestResult:
        """Return the result of a finished test: its failure, or the comparison of its output."""
        value = self.value_of(run, test)
        if isinstance(value, TestResult):
            return value
        if _is_exact(run, test):
            method = _EXACT_TEXT.method if run.wire is None else _EXACT_VALUE.method
            return result_of(run, Outcome.ACCEPTED, "", method)
        checker = self.problem.checker
        if self.problem.fn_name is None:
            output = run.stdout.decode("utf-8", "surrogateescape")
            return compared(run, compare_output(output, str(test.expected), checker))
        return compared(run, compare_value(value, test.expected, checker))

    def judge_shared(self, run: Run, test: PreparedTest) -> TestResult:
        """Return the result of a test in a shared process; its own times are not known."""
        # Most are right to the byte: then nothing needs to be decoded.
        if not run.result.exit_code and _is_exact(run, test):
            return _EXACT_TEXT if run.wire is None else _EXACT_VALUE
        return self.judge(run, test)

    def is_over_memory(self, memory_mib: float) -> bool:
        """Whether a process held more memory than a test may."""
        return memory_mib > self._memory_limit_mib

    def value_of(
        self,
        run: Run,
        test: PreparedTest,
    ) -> object | TestResult:
        """Return the value that a function returned, or the TestResult of a failed test.

        None for a program that prints.
        """
        failure = self.find_failure(run)
        if failure is not None:
            return result_of(run, *failure)
        if self.problem.fn_name is None:
            return None
        if not run.wire:
            detail = "the program ended before its function returned"
            return result_of(run, Outcome.RUNTIME_ERROR, detail)
        # Not read: to rebuild a huge value takes longer than most tests.
        if len(run.wire) > _ALWAYS_READ_BYTES + _MOST_TIMES_LONGER * test.expected_bytes:
            detail = (
                f"the returned value takes {len(run.wire)} bytes, "
                f"the expected one {test.expected_bytes}"
            )
            return result_of(run, Outcome.WRONG_ANSWER, detail)
        try:
            return decode_value(run.wire)
        except MalformedWire as error:
            return result_of(run, Outcome.RUNTIME_ERROR, str(error))


def _is_exact(run: Run, test: PreparedTest) -> bool:
    """Whether a run's output is the expected one, byte for byte."""
    output = run.stdout if run.wire is None else run.wire
    return output.removesuffix(b"\n") == test.exact


def _list_small(tests: Sequence[PreparedTest]) -> tuple[int, ...]:
    """Return the numbers of the tests that are small, or not much larger than the first."""
    most_bytes = max(_SMALL_BYTES, _MOST_TIMES_LARGER * tests[0].num_bytes)
    return tuple(number for number, test in enumerate(tests, 1) if test.num_bytes <= most_bytes)


def _is_plain(value: object) -> bool:
    """Whether the sandbox encodes a value as plain JSON."""
    if type(value) is list:
        return all(map(_is_plain, value))
    if value is None or type(value) in (bool, str):
        return True
    return type(value) is int and abs(value) < _EXACT_IN_JSON


def find_failure(
    run: Run, limits: Limits, memory_limit_mib: int, out_of_memory: str = ""
) -> tuple[Outcome, str] | None:
    """Return outcome and reason of a test that failed whatever its output is, or None.

    Args:
        run: of the test.
        limits: at which it was judged.
        memory_limit_mib: its limit on resident memory.
        out_of_memory: text on stderr by which the language's programs report that they ran out of
            memory; empty if they do not.
    """
    result = run.result
    # In the order of the table above: the first that applies decides.
    if excess := _find_excess(run, limits):
        return Outcome.OUTPUT_LIMIT, excess
    if _is_out_of_memory(run, memory_limit_mib, out_of_memory):
        memory_mib = result.memory_kib / 1024
        return Outcome.MEMORY_LIMIT, explain_memory(memory_mib, memory_limit_mib, run.stderr)
    if overrun := _find_overrun(result, limits):
        return Outcome.TIME_LIMIT, overrun
    if result.signal:
        name = signal_name(result.signal)
        return Outcome.RUNTIME_ERROR, explain_signal(name, run.stderr)
    if not result.exit_code:
        return None
    is_function = run.wire is not None
    detail = explain_error(run.stderr, result.exit_code, is_function=is_function)
    if _NO_MORE_PROCESSES.search(_last_line(run)):
        return Outcome.PROCESS_LIMIT, detail
    return Outcome.RUNTIME_ERROR, detail


def _find_overrun(result: Result, limits: Limits) -> str:
    """Return a message with the time that exceeded a test's limit; empty if none did."""
    cpu_seconds = result.cpu_us / 1e6
    is_signalled = result.signal == signal.SIGXCPU
    if cpu_seconds > limits.cpu_seconds or result.expired == Expiry.CPU or is_signalled:
        return f"cpu {cpu_seconds:.2f} s of {limits.cpu_seconds:g} s"
    if result.expired == Expiry.DEADLOCK:
        return DEADLOCKED
    if result.expired != Expiry.WALL:
        return ""
    wall_seconds = result.wall_us / 1e6
    return f"wall {wall_seconds:.2f} s of {limits.wall_seconds:g} s, cpu {cpu_seconds:.2f} s"


def _find_excess(run: Run, limits: Limits) -> str:
    """Return which stream or file of a run is too long; empty if none is."""
    limit_mib = limits.output_bytes >> 20
    # By their sizes: of a longer stream only a byte more than the limit was kept.
    for name, size in (
        ("stdout", run.stdout_bytes),
        ("stderr", run.stderr_bytes),
        ("returned value", len(run.wire or b"")),
    ):
        if size > limits.output_bytes:
            return f"{name} exceeds {limit_mib} MiB"
    if run.result.signal == signal.SIGXFSZ:
        return f"a file exceeds {limit_mib} MiB"
    if run.result.expired == Expiry.FOLDER:
        return "its files exceed what a test may write"
    return ""


def _is_out_of_memory(
    run: Run,
    memory_limit_mib: int,
    out_of_memory: str,
) -> bool:
    """Whether a run held more memory than it may, or ended because it could get no more."""
    result = run.result
    memory_mib = result.memory_kib / 1024
    if memory_mib > memory_limit_mib:
        return True
    has_failed = result.exit_code > 0
    if has_failed and _MEMORY_ERROR.match(_last_line(run)):
        return True
    has_given_up = has_failed or result.signal in _ABORTED
    if has_given_up and out_of_memory and out_of_memory in run.stderr:
        return True
    # The kernel kills what fills the machine.
    is_killed = result.signal == signal.SIGKILL and not result.expired
    return is_killed and memory_mib >= _NEARLY_ALL * memory_limit_mib


def _last_line(run: Run) -> str:
    """Return the last line on stderr of a run that ended with an exit code; empty for any other."""
    lines = run.stderr.strip().splitlines() if run.result.exit_code else []
    return lines[-1].strip() if lines else ""


def without_run(outcome: Outcome, detail: str) -> TestResult:
    """Return the result of a program that was not built, or of a test that could not run."""
    return TestResult(outcome, 0.0, 0.0, 0.0, "", shorten(detail))


def conclude(
    results: Sequence[TestResult],
    num_tests: int,
    *,
    isolation: str = "",
    uncounted: Sequence[UncountedRun] = (),
    order: tuple[int, ...] = (),
) -> Verdict:
    """Return the verdict on a program: the first of its results that failed decides."""
    outcome = Outcome.ACCEPTED
    detail = ""
    for number, result in enumerate(results, 1):
        if result.verdict is not Outcome.ACCEPTED:
            outcome = result.verdict
            detail = f"test {number}: {result.detail}".rstrip(": ")
            break
    return Verdict(
        outcome,
        tuple(results),
        num_tests,
        detail,
        isolation,
        tuple(uncounted),
        order,
    )


def compared(run: Run, comparison: Comparison) -> TestResult:
    """Return the result of a test whose output was compared."""
    outcome = Outcome.ACCEPTED if comparison.accepted else Outcome.WRONG_ANSWER
    return result_of(run, outcome, comparison.detail, comparison.method)


def result_of(
    run: Run,
    outcome: Outcome,
    detail: str,
    method: str = "",
) -> TestResult:
    """Return the result of a test: its outcome, with what its run took."""
    # A right output is not kept: the test has it.
    output = None
    if outcome not in (Outcome.ACCEPTED, Outcome.COMPILE_ERROR):
        output = _beginning(run)
    return TestResult(
        verdict=outcome,
        cpu_seconds=run.result.cpu_us / 1e6,
        wall_seconds=run.result.wall_us / 1e6,
        memory_mib=round(run.result.memory_kib / 1024, 3),
        method=method,
        detail=detail and shorten(detail),
        output=output,
    )


def _beginning(run: Run) -> str | None:
    """Return the beginning of an output, or of a returned value, as JSON if possible.

    None for no value or a long one.
    """
    if run.wire is None:
        # Enough bytes for the characters that are kept: a character has four at most.
        text = run.stdout[: 4 * _MAX_OUTPUT].decode("utf-8", "backslashreplace")
        return _abbreviate(text, f"{run.stdout_bytes} bytes")
    if not run.wire or len(run.wire) > _LONGEST_VALUE_KEPT_BYTES:
        return None
    try:
        text = _show(decode_value(run.wire))
    except ValueError:  # No value, or a number of more digits than Python writes.
        return None
    # A lone surrogate could not be written into a file.
    text = text.encode("utf-8", "backslashreplace").decode()
    return _abbreviate(text, f"{len(text)} characters")


def _show(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except TypeError:
        return repr(value)


def _abbreviate(text: str, size: str) -> str:
    """Return the beginning of a text, and if there is more, its size."""
    if len(text) <= _MAX_OUTPUT:
        return text
    return f"{text[:_MAX_OUTPUT]}\n[... of {size}]"


def signal_name(number: int) -> str:
    """Return the name of a signal; real-time signals have numbers only."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def shorten(text: str) -> str:
    """Return a text as one line that is short enough to be shown."""
    line = " ".join(text.split())
    if len(line) <= _MAX_DETAIL:
        return line
    return line[: _MAX_DETAIL - 3] + "..."

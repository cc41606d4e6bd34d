"""The result of a test's run -> its verdict.

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

from microcoder.judge.compare.compare import Comparison
from microcoder.judge.compare.values import MalformedWire, decode_value
from microcoder.judge.core.types import Outcome, TestResult, UncountedRun, Verdict
from microcoder.judge.run import timing
from microcoder.judge.run.timing import Limits
from microcoder.judge.sandbox.protocol import FOLDER_EXPIRED, Result

_MEMORY_ERROR = re.compile(r"^[\w.]*MemoryError\b")
_NO_MORE_PROCESSES = re.compile(r"^RuntimeError: can't start new thread|^BlockingIOError: \[Errno 11\]")
_ABORTED = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL)
"""Signals by which runtimes end if they cannot go on."""
_NEARLY_ALL = 0.9
_MAX_DETAIL = 200
_MAX_OUTPUT = 2000
_LONGEST_VALUE_KEPT_BYTES = 1 << 15
_ALWAYS_READ_BYTES, _MOST_TIMES_LONGER = 1 << 16, 32
"""A returned value of more bytes than the first, plus the second times the expected ones, is wrong: rebuilding 16 MiB
of empty lists takes a second. It is JSON, of at most 32 bytes for a number, 12 more for a container or a character."""


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


def read_value(run: Run, *, expected_bytes: int) -> object | TestResult:
    """Return the value that a function-call program returned, or the result of a test that returned none."""
    if not run.wire:
        return result_of(run, Outcome.RUNTIME_ERROR, "the program ended before its function returned")
    if len(run.wire) > _ALWAYS_READ_BYTES + _MOST_TIMES_LONGER * expected_bytes:
        detail = f"the returned value takes {len(run.wire)} bytes, the expected one {expected_bytes}"
        return result_of(run, Outcome.WRONG_ANSWER, detail)
    try:
        return decode_value(run.wire)
    except MalformedWire as error:
        return result_of(run, Outcome.RUNTIME_ERROR, str(error))


def find_failure(
    run: Run, limits: Limits, memory_limit_mib: int, out_of_memory: str = ""
) -> tuple[Outcome, str] | None:
    """Return outcome and reason of a test that failed whatever its output is, or None; `out_of_memory` is on stderr."""
    result = run.result
    wire_bytes = len(run.wire or b"")
    for name, size in (("stdout", run.stdout_bytes), ("stderr", run.stderr_bytes), ("returned value", wire_bytes)):
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
        (result.signal in _ABORTED or result.exit_code > 0) and out_of_memory and out_of_memory in run.stderr
    )
    is_killed_when_full = (
        result.signal == signal.SIGKILL and not result.expired and memory_mib >= _NEARLY_ALL * memory_limit_mib
    )
    if memory_mib > memory_limit_mib or is_out_of_memory or is_killed_when_full:
        return Outcome.MEMORY_LIMIT, f"{memory_mib:.0f} MiB of {memory_limit_mib} MiB"
    if overrun := timing.find_overrun(result, limits, is_signalled=result.signal == signal.SIGXCPU):
        return Outcome.TIME_LIMIT, overrun
    if result.signal:
        return Outcome.RUNTIME_ERROR, f"killed by {signal_name(result.signal)}"
    if result.exit_code and _NO_MORE_PROCESSES.search(last_line):
        return Outcome.PROCESS_LIMIT, last_line
    if result.exit_code:
        return Outcome.RUNTIME_ERROR, last_line or f"exit code {result.exit_code}"
    return None


def without_run(outcome: Outcome, detail: str) -> TestResult:
    """Return the result of a program that could not be built, or of a test that our machine could not run."""
    return TestResult(outcome, 0.0, 0.0, 0.0, "", shorten(detail))


def conclude(
    results: Sequence[TestResult], num_tests: int, *, isolation: str = "", uncounted: Sequence[UncountedRun] = ()
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
    """Return the result of a test by its run."""
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
        text, num_more = run.stdout[: 4 * _MAX_OUTPUT].decode("utf-8", "backslashreplace"), run.stdout_bytes
        return text if len(text) <= _MAX_OUTPUT else f"{text[:_MAX_OUTPUT]}\n[... of {num_more} bytes]"
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
    return text if len(text) <= _MAX_OUTPUT else f"{text[:_MAX_OUTPUT]}\n[... of {len(text)} characters]"


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

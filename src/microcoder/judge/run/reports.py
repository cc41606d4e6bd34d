"""What the end of a test that is a Python program says of the program that it called.

The verdict is the test's (see `conversations.py`):

| seen                                                              | outcome         |
|-------------------------------------------------------------------|-----------------|
| the program broke a limit, crashed, or ended before its time      | as of any run   |
| its process wrote something that is no reply                      | `RUNTIME_ERROR` |
| a message beyond what may be sent                                 | `OUTPUT_LIMIT`  |
| an exception of the program that the test did not expect          | `RUNTIME_ERROR` |
| an assertion failed, or the test raised an error after a call     | `WRONG_ANSWER`  |
| the test broke a limit after it had begun to call                 | that limit's    |
| the test broke before it called the program, or never called it   | `SANDBOX_FAULT` |
| the test ended well                                               | `ACCEPTED`      |

What is wrong with a test shows before its first call: nothing of the program has run in it, unless
it gave the test a value. After that a program must not escape its verdict by breaking the test.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from microcoder.judge.core.types import CHECKER_FAULT, Outcome, TestResult
from microcoder.judge.run import verdicts
from microcoder.judge.run.executor import Run
from microcoder.judge.run.timing import CHECKER_MIB
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.sandbox.protocol import Ending, Expiry

_BY_LIMIT = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT, Outcome.PROCESS_LIMIT)
"""Outcomes of a test that ends beyond a limit."""
_OWN_ENDS = (Ending.PASSED, Ending.FAILED, Ending.RAISED, Ending.BROKEN)
"""Ends that a test comes to by itself."""
_METHOD = "assertions"
"""`TestResult.method` of a test that is a program."""


@dataclass(frozen=True, slots=True)
class Report:
    """What a test's process says of its end."""

    ending: Ending
    detail: str
    num_calls: int


def read_report(run: Run) -> Report | None:
    """Return the report that a test has written; None if it ended before it had called."""
    if not run.wire:
        return None
    said: dict[str, Any] = json.loads(run.wire)
    # A lone surrogate, which an answer may have raised, could not be written into a file.
    detail = said["detail"].encode("utf-8", "backslashreplace").decode()
    return Report(Ending(said["ending"]), detail, said["num_calls"])


def judge_conversation(
    prepared: PreparedProblem, run: Run, test_rejection: str | None
) -> TestResult:
    """Return the result of a test that is a program, by the table above.

    Args:
        prepared: the problem.
        run: what `converse` returned.
        test_rejection: the compiler's message, if the test does not compile.
    """
    assert run.test is not None
    report = read_report(run.test)
    failure = prepared.find_failure(run)
    if failure is not None and not _took_the_time(prepared, run, report):
        return verdicts.result_of(run, *failure)
    if report is None:
        return _refuse_test(test_rejection or _explain_end(prepared, run.test))
    return _judge_report(prepared, run, report)


def _judge_report(prepared: PreparedProblem, run: Run, report: Report) -> TestResult:
    """Return the result of a test by its report; the program broke no limit."""
    match report.ending:
        case Ending.PASSED if report.num_calls:
            return verdicts.result_of(run, Outcome.ACCEPTED, "", _METHOD)
        case Ending.PASSED:
            return _refuse_test("it ended without a call of the program")
        case Ending.BROKEN:
            return _refuse_test(report.detail)
        case Ending.FAILED:
            return verdicts.result_of(run, Outcome.WRONG_ANSWER, report.detail, _METHOD)
        case Ending.RAISED:
            return _raised(prepared, run, report.detail)
        case Ending.TOO_LONG:
            detail = "a returned value, or what was printed in a call, exceeds 16 MiB"
            return verdicts.result_of(run, Outcome.OUTPUT_LIMIT, detail)
        case Ending.LEFT:
            detail = "the program ended before its function returned"
            return verdicts.result_of(run, Outcome.RUNTIME_ERROR, report.detail + detail)
        case Ending.MALFORMED:
            detail = f"the program wrote something that is no reply to a call: {report.detail}"
            return verdicts.result_of(run, Outcome.RUNTIME_ERROR, detail)
    return _over_limit(prepared, run)


def _took_the_time(prepared: PreparedProblem, run: Run, report: Report | None) -> bool:
    """Whether a test took the time in which its program was ended, which only waited for it.

    A test that waits for the program sees its end, and reports that. One that does not comes to an
    end of its own, or reports nothing.
    """
    assert run.test is not None
    if report is None and run.test.result.expired == Expiry.CPU:
        return True
    # A program that broke another limit broke it, whatever its test did meanwhile.
    failure = prepared.find_failure(run)
    if failure is None or failure[0] is not Outcome.TIME_LIMIT:
        return False
    if run.result.expired != Expiry.WALL or run.cpu_seconds > prepared.limits.cpu_seconds:
        return False
    return report is None or report.ending in _OWN_ENDS


def _raised(prepared: PreparedProblem, run: Run, detail: str) -> TestResult:
    """Return the result of a program whose exception the test did not expect."""
    # As if it had ended the program, which reported it on stderr.
    ended = replace(run, stderr=detail, result=run.result._replace(exit_code=1))
    outcome, words = prepared.find_failure(ended) or (Outcome.RUNTIME_ERROR, detail)
    return verdicts.result_of(run, outcome, words)


def _over_limit(prepared: PreparedProblem, run: Run) -> TestResult:
    """Return the result of a program whose test was ended while it used what it had returned."""
    assert run.test is not None
    failure = verdicts.find_failure(run.test, prepared.checker_limits, CHECKER_MIB)
    outcome, words = failure or (Outcome.RUNTIME_ERROR, "it ended")
    if outcome not in _BY_LIMIT:
        outcome = Outcome.WRONG_ANSWER
    return verdicts.result_of(run, outcome, f"the test itself: {words}")


def _refuse_test(words: str) -> TestResult:
    return verdicts.without_run(Outcome.SANDBOX_FAULT, f"{CHECKER_FAULT}failed: the test: {words}")


def _explain_end(prepared: PreparedProblem, test_run: Run) -> str:
    """Return why a test ended that has reported nothing."""
    if test_run.result.expired == Expiry.CPU:
        seconds = prepared.checker_limits.cpu_seconds
        return f"it took more than {seconds:g} s of CPU time"
    lines = test_run.stderr.strip().splitlines()
    if lines:
        return lines[-1]
    failure = verdicts.find_failure(test_run, prepared.checker_limits, CHECKER_MIB)
    return failure[1] if failure else f"exit code {test_run.result.exit_code}"

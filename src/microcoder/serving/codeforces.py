"""Requests of open-r1's Piston package for Codeforces problems: they bring a test and want "1" or "0" on stdout.

The files, besides the program: `input.txt`, `correct_output.txt`, `grader_config` (`TIME_LIMIT` in seconds,
`MEMORY_LIMIT` in MiB, `INPUT_MODE`), and `checker.py` for problems with many right answers, which is called with
input, right output and output, and prints 1 (or 100) or 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from microcoder.evaluator import Execution, Invocation, compare_output
from microcoder.serving.refusals import Refused
from microcoder.serving.service import Service
from microcoder.types import Checker, Outcome, Program

_INPUT, _ANSWER, _CONFIG, _CHECKER = "input.txt", "correct_output.txt", "grader_config", "checker.py"
_OUTPUT = "output.txt"
_DEFAULT_MIB = 512
_CHECKER_SECONDS, _CHECKER_MIB = 10.0, 1024
_SAYS_YES_OR_NO = re.compile(r"\b(yes|no)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Grade:
    """What the package's script would say."""

    stdout: str
    stderr: str
    is_refused: bool = False
    """The compiler refused the program."""


def is_graded(files: Mapping[str, bytes]) -> bool:
    """Whether a request wants its program graded, not just run."""
    return _CONFIG in files and _ANSWER in files


async def grade(service: Service, program: Program, files: Mapping[str, bytes], *, run_seconds: float) -> Grade:
    """Grade a program on the test that came with it.

    Raises:
        Refused: a file is missing or wrong, or there is no room.
    """
    default_mib = service.default_memory_mib(_DEFAULT_MIB)
    seconds, memory_mib = _read_config(files[_CONFIG].decode("utf-8", "replace"), run_seconds, default_mib)
    given = files.get(_INPUT, b"").replace(b"\r\n", b"\n")
    expected = files[_ANSWER].replace(b"\r\n", b"\n")
    execution = await service.run(Invocation(program, given, cpu_seconds=seconds, memory_limit_mib=memory_mib))
    _require_conclusive(execution)
    if execution.failure is Outcome.COMPILE_ERROR:
        return Grade("", f"Compilation error: {execution.detail}", is_refused=True)
    if execution.failure:
        return Grade("0\n", f"{_FAILURES.get(execution.failure, 'Runtime error')} ({execution.detail})\n")
    if _CHECKER in files:
        is_right = await _ask_checker(service, files[_CHECKER], given, expected, execution.stdout)
    else:
        is_right = _is_equal(execution.stdout.decode("utf-8", "replace"), expected.decode("utf-8", "replace"))
    return Grade("1\n", "Output is correct\n") if is_right else Grade("0\n", "Output isn't correct\n")


_FAILURES = {Outcome.TIME_LIMIT: "Time limit exceeded", Outcome.MEMORY_LIMIT: "Memory limit exceeded"}


async def _ask_checker(service: Service, checker: bytes, given: bytes, expected: bytes, output: bytes) -> bool:
    checked = await service.run(
        Invocation(
            Program(checker.decode("utf-8", "replace")),
            arguments=(_INPUT, _ANSWER, _OUTPUT),
            files={_INPUT: given, _ANSWER: expected, _OUTPUT: output},
            cpu_seconds=min(_CHECKER_SECONDS, service.settings.max_cpu_seconds),
            memory_limit_mib=min(_CHECKER_MIB, service.settings.max_memory_mib),
        ),
    )
    _require_conclusive(checked)
    said = checked.stdout.decode("utf-8", "replace").split()
    if said not in (["0"], ["1"], ["100"]) and checked.failure:
        # Nothing is known about the program: an error that clients send again, not a 0.
        raise Refused(500, f"the checker failed: {checked.detail}")
    return said in (["1"], ["100"])


def _is_equal(output: str, expected: str) -> bool:
    if compare_output(output, expected, Checker()).accepted:
        return True
    if not _SAYS_YES_OR_NO.search(expected):
        return False
    return compare_output(output, expected, Checker(type="tokens", case_sensitive=False)).accepted


def _read_config(text: str, run_seconds: float, default_mib: int) -> tuple[float, int]:
    config = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    if config.get("INPUT_MODE", "stdio").strip("\"' ") == "file":
        raise Refused(400, "grader_config: INPUT_MODE=file is not served; programs read stdin and write stdout here")
    try:
        seconds = float(config.get("TIME_LIMIT", run_seconds))
        memory_mib = float(config.get("MEMORY_LIMIT", default_mib))
    except ValueError:
        raise Refused(400, "grader_config: TIME_LIMIT and MEMORY_LIMIT must be numbers") from None
    if not (math.isfinite(seconds) and math.isfinite(memory_mib)):
        raise Refused(400, "grader_config: TIME_LIMIT and MEMORY_LIMIT must be finite")
    return seconds, round(memory_mib)


def _require_conclusive(execution: Execution) -> None:
    if not execution.is_conclusive:
        raise Refused(500, f"the sandbox failed: {execution.detail}")

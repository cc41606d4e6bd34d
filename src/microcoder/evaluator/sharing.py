"""How many tests of a program share a process, and what their shared process proves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from microcoder.evaluator.batching import find_obstacle
from microcoder.evaluator.preparation import PreparedProblem, PreparedTest
from microcoder.evaluator.sandbox.batch import DIRTY, pack_inputs, unpack_frames
from microcoder.evaluator.supervisor import Limits, Run, Sandbox, Task
from microcoder.types import Outcome, Program, TestResult

_MOST_TESTS, _MOST_BYTES = 512, 4 << 20
_EXPECTED_CPU_SECONDS = 0.1
"""Of all tests that share a process: what is lost where an early one of them is wrong."""
_MOST_CPU_SECONDS = 0.5
"""A process that takes longer than tests like the one before it is stopped: an endless test costs so much more."""
_LEAST_CPU_SECONDS = 1e-4
"""Below this the clock does not tell."""
MIN_TESTS = 2


def can_share(program: Program, problem: PreparedProblem) -> bool:
    """Whether tests of this program may share a process."""
    return problem.problem.checker.type != "program" and not find_obstacle(
        str(program.code), is_function=problem.problem.fn_name is not None
    )


def choose_tests(tests: Sequence[PreparedTest], seen: TestResult) -> Sequence[PreparedTest]:
    """Return the next tests that share a process, judged by the one before them; none where one does not pay."""
    room = int(_EXPECTED_CPU_SECONDS / max(seen.cpu_seconds, _LEAST_CPU_SECONDS))
    chosen, num_bytes = 0, 0
    for test in tests[: min(room, _MOST_TESTS)]:
        num_bytes += len(test.stdin) + test.expected_bytes
        if num_bytes > _MOST_BYTES:
            break
        chosen += 1
    return tests[:chosen] if chosen >= MIN_TESTS else ()


def limits_of_batch(limits: Limits) -> Limits:
    """Return what all tests of a process may use together: no more than one alone."""
    cpu_seconds = min(limits.cpu_seconds, _MOST_CPU_SECONDS)
    wall_seconds = limits.wall_seconds * cpu_seconds / limits.cpu_seconds
    return replace(limits, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)


def judge_together(
    sandbox: Sandbox, task: Task, problem: PreparedProblem, tests: Sequence[PreparedTest]
) -> list[TestResult]:
    """Run tests in one process; return the results of those that are accepted, up to the first that is not.

    Whatever the process did, an accepted test is one whose output is right, and whose process stayed within the
    limits of one test, as the kernel accounts for it. Any other is for a process of its own to judge.

    Raises:
        SandboxDied: the fork server broke.
    """
    limits = limits_of_batch(problem.limits)
    inputs = pack_inputs([test.stdin for test in tests])
    result, frames, stderr_bytes = sandbox.run_batch(task, inputs, limits)
    if result.memory_kib > problem.problem.memory_limit_mib << 10 or stderr_bytes > limits.output_bytes:
        return []
    count = len(tests)
    share = result._replace(
        exit_code=0, signal=0, expired=0, cpu_us=result.cpu_us // count, wall_us=result.wall_us // count
    )
    accepted = []
    for test, (status, output) in zip(tests, unpack_frames(frames), strict=False):
        if status not in (0, DIRTY) or len(output) > limits.output_bytes:
            break
        is_function = bool(task.fn_name)
        run = Run(
            result=share,
            stdout=b"" if is_function else output,
            stdout_bytes=0 if is_function else len(output),
            stderr="",
            stderr_bytes=0,
            wire=output if is_function else None,
        )
        judged = problem.judge(run, test)
        if judged.verdict is not Outcome.ACCEPTED:
            break
        accepted.append(judged)
    return accepted

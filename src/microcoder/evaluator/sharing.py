"""How many tests of a program share a process, and what their shared process proves."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from microcoder.evaluator.batching import find_obstacle
from microcoder.evaluator.preparation import PreparedProblem, PreparedTest
from microcoder.evaluator.sandbox.batch import DIRTY, pack_inputs, unpack_frames
from microcoder.evaluator.sandbox.dialects import PLAIN
from microcoder.evaluator.supervisor import Limits, Run, Sandbox, Task
from microcoder.types import NOT_ALONE, Outcome, TestResult

_LEAST_TESTS, _MOST_TESTS, _MOST_BYTES = 2, 512, 4 << 20
_EXPECTED_CPU_SECONDS = 0.1
"""Of all tests that share a process: what is lost where an early one of them is wrong."""
_MOST_CPU_SECONDS = 0.5
"""A process that takes longer than tests like the one before it is stopped: an endless test costs so much more."""
_LEAST_CPU_SECONDS = 1e-4
"""Below this the clock does not tell."""
_SAMPLED_SHARE = 0.01
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Sharing:
    """Which tests of a worker share processes, and what became of them."""

    is_on: bool = True
    shared: int = 0
    """Tests that were accepted in a process that they shared."""
    fallbacks: int = 0
    """Shared processes that did not get through all their tests; the rest had processes of their own."""
    rechecked: int = 0
    """Tests that were accepted in a shared process and run again alone, a sample of one in a hundred processes."""
    differences: int = 0
    """Of these, the ones that were not accepted alone: there should be none."""

    def choose(self, code: str, problem: PreparedProblem, num_done: int, seen: TestResult) -> Sequence[PreparedTest]:
        """Return the next tests that are to share a process; none where they may not, or where that does not pay.

        Args:
            code: of the program.
            problem: that it is judged by.
            num_done: how many tests are judged already.
            seen: the result of the last of these, which tells what the next ones may take.
        """
        room = int(_EXPECTED_CPU_SECONDS / max(seen.cpu_seconds, _LEAST_CPU_SECONDS))
        chosen = num_bytes = 0
        for test in problem.tests[num_done : num_done + min(room, _MOST_TESTS)]:
            num_bytes += len(test.stdin) + test.expected_bytes
            if num_bytes > _MOST_BYTES:
                break
            chosen += 1
        if chosen < _LEAST_TESTS or not self.is_on or not _may_share(code, problem):
            return ()
        return problem.tests[num_done : num_done + chosen]

    def note(self, num_accepted: int, num_tests: int) -> None:
        """Count what became of a shared process."""
        self.shared += num_accepted
        self.fallbacks += num_accepted < num_tests

    def is_sampled(self, code: str, tests: Sequence[PreparedTest]) -> bool:
        """Whether what was accepted in a shared process is to be run again alone; by chance, but always the same."""
        digest = hashlib.sha256(code.encode("utf-8", "surrogatepass") + tests[0].stdin).digest()
        return int.from_bytes(digest[:4]) < _SAMPLED_SHARE * (1 << 32)

    def compare(self, alone: list[TestResult], code: str) -> list[TestResult]:
        """Return the results of tests that were accepted together and then run alone, which are the ones that count.

        They end with the first that is not accepted, marked as such, or before one that the sandbox failed.
        """
        self.rechecked += len(alone)
        known = [result for result in alone if result.verdict is not Outcome.SANDBOX_FAULT]
        different = [result for result in known if result.verdict is not Outcome.ACCEPTED]
        if different:
            self.differences += len(different)
            _LOG.warning(
                "microcoder: a program was accepted in a process that tests share and not alone (%s); please report "
                "it, and judge with batch_tests = false: %r",
                different[0].detail,
                code[:2000],
            )
        first = next((n for n, result in enumerate(alone) if result.verdict is not Outcome.ACCEPTED), None)
        if first is None or alone[first] not in different:
            return alone[:first]
        return [*alone[:first], replace(alone[first], method=NOT_ALONE)]


def _may_share(code: str, problem: PreparedProblem) -> bool:
    """Whether tests of this program may share a process."""
    of = problem.problem
    if of.checker.type == "program" or of.dialect != PLAIN:
        return False
    return not find_obstacle(code, is_function=of.fn_name is not None)


def judge_together(
    sandbox: Sandbox, task: Task, problem: PreparedProblem, tests: Sequence[PreparedTest]
) -> list[TestResult]:
    """Run tests in one process; return the results of those that are accepted, up to the first that is not.

    Whatever the process did, an accepted test is one whose output is right, and whose process stayed within the
    limits of one test, as the kernel accounts for it. Any other is for a process of its own to judge.

    Raises:
        SandboxDied: the fork server broke.
    """
    limits = _limits_of_batch(problem.limits)
    inputs = pack_inputs([test.stdin for test in tests])
    result, frames, stderr_bytes = sandbox.run_batch(task, inputs, limits)
    if result.memory_kib > problem.problem.memory_limit_mib << 10 or stderr_bytes > limits.output_bytes:
        return []
    share = result._replace(
        exit_code=0, signal=0, expired=0, cpu_us=result.cpu_us // len(tests), wall_us=result.wall_us // len(tests)
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


def _limits_of_batch(limits: Limits) -> Limits:
    """Return what all tests of a process may use together: no more than one alone."""
    cpu_seconds = min(limits.cpu_seconds, _MOST_CPU_SECONDS)
    wall_seconds = limits.wall_seconds * cpu_seconds / limits.cpu_seconds
    return replace(limits, cpu_seconds=cpu_seconds, wall_seconds=wall_seconds)

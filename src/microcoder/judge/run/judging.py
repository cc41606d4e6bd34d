"""What one worker of a judge does: it judges and runs one program at a time."""

from __future__ import annotations

from collections.abc import Callable

from microcoder.judge.core.types import Program, Repeat, Verdict
from microcoder.judge.run.builds import Builds
from microcoder.judge.run.counts import Statistics
from microcoder.judge.run.isolation import Isolation
from microcoder.judge.run.local import LocalExecutor
from microcoder.judge.run.policy import Rules, is_always_wanted, judge_program
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.verdicts import PreparedProblem

_SHARED = (Repeat.SHARED_WRONG, Repeat.SHARED_LOST, Repeat.SHARED_OVER, Repeat.SANDBOX_DIED)
"""Why a program's tests that shared a process were judged with a process a test."""


class Session:
    """Judges one program at a time in sandboxes of its own; for one thread."""

    def __init__(self, sandboxes: Sandboxes | None = None, builds: Builds | None = None) -> None:
        """Open nothing yet; by default with the options of a judge."""
        self.sandboxes = sandboxes or Sandboxes()
        """The sandboxes of its thread."""
        options = self.sandboxes.options.with_order_key()
        self.executor = LocalExecutor(self.sandboxes, builds or Builds(options))
        """Runs programs in them."""
        self._rules = Rules(options.stop, options.batch_tests, options.order_key)
        self.explained: tuple[tuple[int, str], ...] = ()
        """Decisions about the time of the latest program's tests, each with the test's number."""

    def open(self) -> Isolation:
        """Start the plain sandbox; return its isolation."""
        return self.sandboxes.use(SandboxKind(), lambda sandbox: sandbox.isolation)

    def judge(
        self,
        program: Program,
        prepared: PreparedProblem,
        is_wanted: Callable[[], bool] = is_always_wanted,
    ) -> Verdict:
        """Judge one program (see `judge_program`)."""
        judged = judge_program(program, prepared, self.executor, self._rules, is_wanted)
        self.explained = judged.notes
        _count(judged.verdict, self.sandboxes.record)
        return judged.verdict

    def close(self) -> None:
        """End the sandboxes; only from the thread that opened them."""
        self.sandboxes.close()
        self.sandboxes.slot.close()


def _count(verdict: Verdict, counts: Statistics) -> None:
    """Add to a worker's counts what a verdict says of the runs behind it."""
    reasons = {run.reason for run in verdict.uncounted}
    if verdict.order:
        if reasons.isdisjoint(_SHARED):
            counts.shared += len(verdict.order)
        else:
            counts.unshared += 1
    if Repeat.JUDGED_ANEW in reasons:
        counts.anew += 1
    if Repeat.DIFFERS in reasons:
        counts.unrepeated += 1

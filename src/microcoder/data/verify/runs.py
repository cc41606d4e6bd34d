"""Runs programs on problems; verdicts are the reference machine's, and are stored at once."""

from collections.abc import Callable, Sequence
from statistics import median

from microcoder.data.verify.plans import PlannedRun, rotated_numbers
from microcoder.data.verify.store import VerdictStore, verdict_key
from microcoder.data.verify.timing import at_reference_speed
from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.run.executions import Invocation
from microcoder.judge.run.timing import PROGRAM, REFERENCE_CPU_SECONDS

Pair = tuple[Program, Problem]
"""A program, and the problem that it is judged by."""
Run = Callable[[Sequence[Pair]], list[Verdict]]
"""Returns one verdict per pair."""
_WORKED_SHARE = 0.05
"""Least CPU share of the wall time of a slow program.

One that sleeps, or waits for input, works less.
"""
_MOST_ATTEMPTS = 4
"""How often a pair is judged at most while the machine may have caused its verdict."""
_SPEED_RUNS = 2
"""How often the fixed program is run before a timed one, and after it."""


def run_pairs(
    pairs: Sequence[Pair],
    judge: Judge,
    store: VerdictStore | None,
) -> list[Verdict]:
    """Return one verdict per pair, with times of the reference machine.

    Verdicts in the store are not computed again.
    """
    runner = _PairRunner(pairs, judge, store)
    unknown = runner.find_unknown()
    runner.judge(unknown)
    for attempt in range(2, _MOST_ATTEMPTS + 1):
        for number in unknown:
            # Alone: what disturbed it may have been its neighbours.
            if was_disturbed(runner.verdicts[number]):
                runner.judge([number], is_last=attempt == _MOST_ATTEMPTS)
    return [runner.verdicts[number] for number in range(len(pairs))]


def time_pairs(
    pairs: Sequence[Pair],
    judge: Judge,
    store: VerdictStore | None,
) -> list[Verdict]:
    """Return one verdict per pair, with times that other load on the machine hardly changes.

    Each pair is judged alone. Its seconds are divided by how many times longer than on the
    reference machine a fixed program takes before and after it.
    """
    runner = _PairRunner(pairs, judge, store)
    for number in runner.find_unknown():
        runner.time(number)
    return [runner.verdicts[number] for number in range(len(pairs))]


def _measure_speed(judge: Judge) -> list[float]:
    """Return how many times longer than on the reference machine a fixed program takes now."""
    factors = []
    for _ in range(_SPEED_RUNS):
        execution = judge.run(Invocation(Program(PROGRAM)))
        if execution.failure is not None:
            raise EvaluatorFault(
                f"the program that measures this machine failed ({execution.detail}); "
                "type the same command again, or microcoder doctor"
            )
        factors.append(execution.cpu_seconds / REFERENCE_CPU_SECONDS)
    return factors


class _PairRunner:
    """Judges pairs, and keeps their verdicts."""

    def __init__(
        self,
        pairs: Sequence[Pair],
        judge: Judge,
        store: VerdictStore | None,
    ) -> None:
        self.verdicts: dict[int, Verdict] = {}
        """Verdicts so far, by the number of the pair."""
        self._pairs = pairs
        self._judge = judge
        self._store = store
        self._keys: list[bytes] = []
        environment = judge.environment.identity
        for program, problem in pairs:
            key = verdict_key(
                program,
                problem,
                stop=judge.stop,
                environment=environment,
            )
            self._keys.append(key)

    def find_unknown(self) -> list[int]:
        """Copy the verdicts that the store has, and return the numbers of the pairs that it
        lacks."""
        unknown = []
        for number, key in enumerate(self._keys):
            verdict = self._store.find(key) if self._store is not None else None
            if verdict is None:
                unknown.append(number)
            else:
                self.verdicts[number] = verdict
        return unknown

    def judge(
        self,
        numbers: Sequence[int],
        *,
        is_last: bool = False,
    ) -> None:
        """Judge some pairs.

        Each verdict is kept as soon as it is known, unless it will be judged again.
        """

        def keep(place: int, verdict: Verdict) -> None:
            number = numbers[place]
            scaled = at_reference_speed(verdict, self._judge.time_scale)
            self.verdicts[number] = scaled
            if self._store is None:
                return
            # One that will be judged again would be believed by a build that is resumed.
            if is_last or not was_disturbed(verdict):
                self._store.keep(self._keys[number], scaled)

        programs = [self._pairs[number][0] for number in numbers]
        problems = [self._pairs[number][1] for number in numbers]
        self._judge.judge(programs, problems, on_verdict=keep)

    def time(self, number: int) -> None:
        """Judge a pair alone, and scale its seconds by the machine's speed just then."""
        factors = _measure_speed(self._judge)
        program, problem = self._pairs[number]
        (verdict,) = self._judge.judge([program], [problem])
        factors += _measure_speed(self._judge)
        scaled = at_reference_speed(verdict, median(factors))
        self.verdicts[number] = scaled
        if self._store is not None and not was_disturbed(verdict):
            self._store.keep(self._keys[number], scaled)


def was_disturbed(verdict: Verdict) -> bool:
    """Whether the machine may have caused a verdict.

    Then the sandbox failed, or a working program ran out of wall time.
    """
    if verdict.outcome is Outcome.SANDBOX_FAULT:
        # A checker that fails does so again, on any machine.
        return not verdict.is_checker_fault
    for test in verdict.tests:
        ran_out = test.verdict is Outcome.TIME_LIMIT and test.detail.startswith("wall")
        has_worked = test.cpu_seconds > _WORKED_SHARE * test.wall_seconds
        if ran_out and has_worked:
            return True
    return False


def run_once(
    run: Run,
    planned: Sequence[PlannedRun],
    seconds: Sequence[float | None] = (),
) -> None:
    """Run each program once, and add its verdict.

    Args:
        run: runs the programs.
        planned: the programs, each with its plan.
        seconds: CPU seconds per test of each; without, or where it is None, its plan's limit.
    """
    limits = seconds or [None] * len(planned)
    pairs = []
    for (plan, program), limit in zip(
        planned,
        limits,
        strict=True,
    ):
        language = program.language
        problem = plan.problem(
            language,
            seconds=limit,
            order=program.order,
        )
        pairs.append((program.program, problem))
    for (_, program), verdict in zip(
        planned,
        run(pairs),
        strict=True,
    ):
        program.verdicts.append(verdict)


def run_rotated(
    run: Run,
    planned: Sequence[PlannedRun],
    repeat: int,
) -> list[Verdict]:
    """Run each program with the tests in another order, and return the verdicts.

    The fastest times are noted.
    """
    orders = []
    pairs = []
    for plan, program in planned:
        order = rotated_numbers(len(plan.candidate.tests), repeat)
        problem = plan.problem(program.language, order=order)
        orders.append(order)
        pairs.append((program.program, problem))
    verdicts = run(pairs)
    for (_, program), verdict, order in zip(
        planned,
        verdicts,
        orders,
        strict=True,
    ):
        # Fewer results than tests where a run was stopped.
        for number, test in zip(
            order,
            verdict.tests,
            strict=False,
        ):
            fastest = min(program.fastest_seconds[number], test.cpu_seconds)
            program.fastest_seconds[number] = fastest
    return verdicts

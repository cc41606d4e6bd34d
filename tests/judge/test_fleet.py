"""One fleet, whatever its transport: each program gets one verdict,
whatever becomes of the backends that judge.
"""

import random
from collections.abc import Sequence
from concurrent.futures import Future

import pytest

from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program, Repeat, TestCase, Verdict
from microcoder.judge.fleet.fleet import Backend
from microcoder.judge.fleet.remote import RemoteJudge
from microcoder.judge.run.slots import most_workers
from microcoder.judge.run.workers import Work

RIGHT = Verdict(Outcome.ACCEPTED, (), 1)
PROBLEMS = [Problem(id=f"p{n}", tests=(TestCase(input=str(n), output=str(n)),)) for n in range(3)]


class Desk(Backend):
    """A backend whose answers the test gives."""

    def send(self, batch: Sequence[Work]) -> None:
        pass

    @property
    def codes(self) -> list[str]:
        return [str(item.program.code) for item in self.held.values()]


class Desks(RemoteJudge[Desk]):
    """A fleet of them, which gives a program up after three losses."""

    def __init__(self, num_backends: int, workers: int) -> None:
        super().__init__()
        self.desks = [Desk() for _ in range(num_backends)]
        self._backends = {str(n): desk for n, desk in enumerate(self.desks)}
        for desk in self.desks:
            self._open(desk, workers)

    def put(
        self,
        number: int,
        problem: Problem = PROBLEMS[0],
        first: int = 0,
    ) -> list[Future[Verdict]]:
        return [self.submit(Program(f"# {n}"), problem) for n in range(first, first + number)]

    def land(self, desk: Desk, number: int | None = None) -> None:
        """Answer the oldest program of a backend, or that of this number."""
        self._land(desk, next(iter(desk.held)) if number is None else number, RIGHT)

    def lose(self, desk: Desk, *, is_back: bool = True) -> None:
        desk.workers, workers = 0, desk.workers
        self._lose(desk, "it burnt down")
        if is_back:
            self._open(desk, workers)

    def _wake(self) -> None:
        self._hand_out()

    def _find_end(self, backend: Desk, item: Work, why: str) -> str:
        return f"lost {item.num_losses} times: {why}" if item.num_losses > 2 else ""


def test_all_workers_are_busy_before_any_place_has_spares_of_one_problem() -> None:
    with Desks(2, 4) as judge:
        # Few wait: they are not dealt out in advance, whoever is free first takes them.
        judge.put(11)
        judge.land(judge.desks[0])
        assert [len(desk.held) for desk in judge.desks] == [4, 4]
        judge.put(600)
        assert [len(desk.held) for desk in judge.desks] == [most_workers(4)] * 2
    with Desks(2, 1) as judge:
        for n in range(4):
            judge.put(1, PROBLEMS[n % 2], first=n)
        assert [desk.codes for desk in judge.desks] == [["# 0"], ["# 1"]]
        for desk in judge.desks:
            judge.land(desk)
        assert [desk.codes for desk in judge.desks] == [["# 2"], ["# 3"]]


def test_what_was_lost_twice_goes_out_one_by_one_and_is_given_up_in_the_end() -> None:
    with Desks(1, 3) as judge:
        (desk,) = judge.desks
        futures = judge.put(3)
        judge.lose(desk)
        assert desk.codes == ["# 0", "# 1", "# 2"]
        judge.lose(desk)
        assert desk.codes == ["# 2"]
        futures += judge.put(4, first=3)
        assert desk.codes == ["# 2", "# 3", "# 4", "# 5", "# 6"]
        judge.lose(desk)
        (given_up,) = [future for future in futures if future.done()]
        assert given_up.result().outcome is Outcome.SANDBOX_FAULT
        assert given_up.result().detail == "lost 3 times: it burnt down"
        while desk.held:
            assert sum(item.num_losses > 1 for item in desk.held.values()) <= 1
            judge.land(desk)
        futures += judge.put(1, first=9)
        judge.land(desk)
        right = []
        for future in futures:
            if future.result(0).is_accepted:
                right.append(future.result(0))
        # A backend that was lost may have run all its tests as well.
        assert [len(verdict.uncounted) for verdict in right] == [1] * 6 + [0]
        reasons = set()
        for verdict in right:
            for run in verdict.uncounted:
                reasons.add(run.reason)
        assert reasons == {Repeat.COPIED}


def test_who_is_cancelled_is_not_begun_and_who_is_closed_answers() -> None:
    with Desks(2, 1) as judge:
        futures = judge.put(5)
        assert futures[2].cancel()
        judge.land(judge.desks[0])
        assert judge.desks[0].codes == ["# 3"]
        assert futures[3].cancel(), "also what is begun: its answer is waited for no more"
        judge.land(judge.desks[0])
        assert judge.desks[0].codes == ["# 4"]
        # What no judge takes is refused before anything is given.
        assert judge.judge([], []) == []
        for programs, problems, message in (
            ([Program("")], [], "1 programs but 0 problems"),
            (
                [Program(""), Program("", "cpp")],
                PROBLEMS[:1] * 2,
                "program 1 is in 'cpp', problem p0 wants 'python 3",
            ),
        ):
            with pytest.raises(DataError, match=message):
                judge.judge(programs, problems)
        assert [len(desk.held) for desk in judge.desks] == [1, 1]
    assert [future.result(0).outcome for future in (futures[1], futures[4])] == [
        Outcome.SANDBOX_FAULT
    ] * 2
    with pytest.raises(EvaluatorFault, match="closed"):
        judge.put(1)


@pytest.mark.parametrize("seed", range(10))
def test_each_program_gets_one_verdict_whatever_happens(seed: int) -> None:
    draw = random.Random(seed)
    with Desks(draw.randint(1, 5), draw.randint(1, 3)) as judge:
        futures: list[Future[Verdict]] = []
        answers: list[Future[Verdict]] = []
        while len(futures) < 60 or any(desk.held for desk in judge.desks):
            desk = draw.choice(judge.desks)
            match draw.choice(("put", "land", "land", "lose")):
                case "put" if len(futures) < 60:
                    futures += judge.put(
                        draw.randint(1, 9),
                        draw.choice(PROBLEMS),
                        first=len(futures),
                    )
                    futures[-1].add_done_callback(answers.append)
                case "land" if desk.held:
                    judge.land(desk, draw.choice(list(desk.held)))
                case "lose":
                    judge.lose(desk)
        assert not judge._queue
        verdicts = [future.result(0) for future in futures]
    assert len(set(answers)) == len(answers)
    for verdict in verdicts:
        assert verdict.is_accepted or "it burnt down" in verdict.detail

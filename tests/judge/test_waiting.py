"""Who waits for whom: short programs never for long ones."""

import threading
import time
from queue import SimpleQueue

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.run import slots
from microcoder.judge.run.slots import Slots, most_workers
from tests.judge.conftest import ADD, make_problem, workers_of

ENDLESS = "while True: pass"
ONE_TEST = ("1 2", "3\n")


def copies(code: str, number: int) -> list[Program]:
    """Programs that differ, so that each is judged."""
    return [Program(f"{code}\n# {n}") for n in range(number)]


def landing(judging: Judge, programs: list[Program], time_limit_seconds: float) -> list[Outcome]:
    """Judge programs of one problem; return their outcomes in the order in which they
    were ready.
    """
    landed: list[Outcome] = []
    problem = make_problem(ONE_TEST, time_limit_seconds=time_limit_seconds)
    judging.judge(
        programs,
        [problem] * len(programs),
        on_verdict=lambda _, verdict: landed.append(verdict.outcome),
    )
    return landed


def test_where_no_more_threads_start_those_that_did_do_all() -> None:
    posts: list[SimpleQueue[slots.Job | None]] = []

    def start(post: SimpleQueue[slots.Job | None]) -> None:
        if posts:
            raise RuntimeError("can't start new thread")
        posts.append(post)

    few = Slots(2, start)
    jobs: list[slots.Job] = [lambda session: None, lambda session: None]
    for job in jobs:
        few.put(job)
    assert [posts[0].get(), few.next(posts[0])] == jobs


def test_on_one_worker_programs_that_end_are_judged_before_those_that_do_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # On a very busy machine eight short programs take longer than a long one waits for them.
    monkeypatch.setattr(slots, "_PATIENCE_SECONDS", 600.0)
    with Judge(workers=1, time_scale=1) as judging:
        landed = landing(judging, copies(ENDLESS, 3) + copies(ADD, 8), time_limit_seconds=0.4)
        assert judging.statistics.faults == 0
    assert landed == [Outcome.ACCEPTED] * 8 + [Outcome.TIME_LIMIT] * 3


def test_more_endless_programs_than_may_stand_aside_are_all_judged() -> None:
    with Judge(workers=1, time_scale=1) as judging:
        number = most_workers(1) + 3
        landed = landing(judging, copies(ENDLESS, number) + copies(ADD, 5), time_limit_seconds=0.1)
    assert sorted(landed) == [Outcome.ACCEPTED] * 5 + [Outcome.TIME_LIMIT] * number


def test_closing_ends_programs_that_stand_aside() -> None:
    before = set(threading.enumerate())
    with Judge(workers=1, time_scale=1) as judging:
        problem = make_problem(ONE_TEST, time_limit_seconds=60.0)
        futures = [judging.submit(program, problem) for program in copies(ENDLESS, 6)]
        while len(workers_of(judging)._slots._paused) < 3:
            time.sleep(0.01)
    assert {future.result().outcome for future in futures} == {Outcome.SANDBOX_FAULT}
    assert set(threading.enumerate()) <= before
    with pytest.raises(EvaluatorFault, match="closed"):
        judging.submit(Program(ADD), problem)

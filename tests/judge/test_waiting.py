"""Who waits for whom: idle programs for nobody, short ones never for long ones."""

import threading
import time
from queue import SimpleQueue

import pytest

from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.run import turns
from microcoder.judge.run.turns import Places, most_workers

from .conftest import ADD, make_problem  # pyrefly: ignore[missing-import]

SLEEPER, ENDLESS = "import time\ntime.sleep(99)", "while True: pass"
WAKES_AND_WORKS = """
import time
time.sleep(0.4)
while time.process_time() < 0.15: pass
time.sleep(0.2)
a, b = map(int, input().split())
print(a + b)
"""
ONE_TEST = ("1 2", "3\n")


def copies(code: str, number: int) -> list[Program]:
    """Programs that differ, so that each is judged."""
    return [Program(f"{code}\n# {n}") for n in range(number)]


def landing(judging: Judge, programs: list[Program], **options: object) -> list[tuple[int, Outcome]]:
    """Judge programs of one problem; return their numbers and outcomes in the order in which they were ready."""
    landed: list[tuple[int, Outcome]] = []
    problem = make_problem(ONE_TEST, **options)
    judging.judge(
        programs, [problem] * len(programs), on_verdict=lambda number, verdict: landed.append((number, verdict.outcome))
    )
    return landed


def test_where_no_more_threads_start_those_that_did_do_all() -> None:
    posts: list[SimpleQueue[turns.Job | None]] = []

    def start(post: SimpleQueue[turns.Job | None]) -> None:
        if posts:
            raise RuntimeError("can't start new thread")
        posts.append(post)

    places = Places(2, start)
    jobs: list[turns.Job] = [lambda session: None, lambda session: None]
    for job in jobs:
        places.put(job)
    assert [posts[0].get(), places.next(posts[0], has_place=True)] == jobs


# On a busy machine the short ones take seconds: a sleeper ends by a clock that goes on, an endless one waits its turn.
@pytest.mark.parametrize(("slow", "seconds"), [(SLEEPER, 2.0), (ENDLESS, 0.4)])
def test_on_one_worker_programs_that_end_are_judged_before_those_that_do_not(
    slow: str, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a very busy machine eight short programs take longer than a long one waits for them.
    monkeypatch.setattr(turns, "_PATIENCE_SECONDS", 600.0)
    with Judge(workers=1, time_scale=1) as judging:
        landed = landing(judging, copies(slow, 3) + copies(ADD, 8), time_limit_seconds=seconds)
        statistics = judging.statistics
    assert [outcome for _, outcome in landed] == [Outcome.ACCEPTED] * 8 + [Outcome.TIME_LIMIT] * 3
    assert statistics.aside >= 3
    assert statistics.faults == 0


def test_more_endless_programs_than_may_stand_aside_are_all_judged() -> None:
    with Judge(workers=1, time_scale=1) as judging:
        number = most_workers(1) + 3
        landed = landing(judging, copies(ENDLESS, number) + copies(ADD, 5), time_limit_seconds=0.1)
    assert sorted(outcome for _, outcome in landed) == [Outcome.ACCEPTED] * 5 + [Outcome.TIME_LIMIT] * number


def test_standing_aside_changes_no_verdict() -> None:
    slept = f"import time\ntime.sleep(0.3)\n{ENDLESS}"
    with Judge(workers=2, time_scale=1) as judging:
        programs = copies(WAKES_AND_WORKS, 3) + copies(ENDLESS, 2) + copies(slept, 2) + copies(ADD, 8)
        landed = dict(landing(judging, programs, time_limit_seconds=0.4))
    assert [landed[n] for n in range(7)] == [Outcome.ACCEPTED] * 3 + [Outcome.TIME_LIMIT] * 4


def test_closing_ends_programs_that_stand_aside() -> None:
    before = set(threading.enumerate())
    with Judge(workers=1, time_scale=1) as judging:
        problem = make_problem(ONE_TEST, time_limit_seconds=60.0)
        futures = [judging.submit(program, problem) for program in copies(SLEEPER, 3) + copies(ENDLESS, 3)]
        while judging.statistics.aside < 3:
            time.sleep(0.01)
    assert {future.result().outcome for future in futures} == {Outcome.SANDBOX_FAULT}
    assert set(threading.enumerate()) <= before
    with pytest.raises(EvaluatorFault, match="closed"):
        judging.submit(Program(ADD), problem)

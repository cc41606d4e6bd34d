"""The judge on a Ray cluster: one node is enough to see that verdicts are told once, also when actors die."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from microcoder.errors import DataError
from microcoder.types import Outcome, Problem, Program, TestCase

ray: Any = pytest.importorskip("ray")
pytestmark = pytest.mark.timeout(120)

ADD = "a, b = map(int, input().split())\nprint(a + b)"
PROBLEM = Problem(id="sum", tests=(TestCase(input="1 2", output="3"), TestCase(input="4 5", output="9")))


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


def test_verdicts_come_once_and_right_although_the_node_process_is_killed(cluster: None) -> None:
    from microcoder.serving.ray_judge import RayJudge

    programs = [Program(f"{ADD}{' + 1' * (n % 3 == 0)}  # {n}") for n in range(60)]
    told: list[int] = []
    with RayJudge(workers_per_node=2, time_scale=1.0) as judge:
        (handle,) = [actor.handle for actor in judge._actors.values()]
        pid = ray.get(handle.__ray_call__.remote(lambda self: os.getpid()))
        killer = threading.Timer(0.2, os.kill, (pid, signal.SIGKILL))
        killer.start()
        verdicts = judge.judge(programs, [PROBLEM] * 60, on_verdict=lambda index, verdict: told.append(index))
        killer.join()
        # The kill may have come after the last verdict; a program after it is judged by a new actor at any rate.
        os_gone = judge.submit(Program(f"{ADD} # after"), PROBLEM).result(60)
        one = judge.judge([Program(None)], [PROBLEM])[0]
        with pytest.raises(DataError, match="1 programs but 0 problems"):
            judge.judge([Program(ADD)], [])
        assert judge.num_losses == 1
    assert [verdict.is_accepted for verdict in verdicts] == [n % 3 != 0 for n in range(60)]
    assert sorted(told) == list(range(60))
    assert os_gone.is_accepted
    assert one.outcome is Outcome.NO_CODE

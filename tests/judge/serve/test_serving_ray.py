"""The judge on a Ray cluster of two nodes: verdicts are told once,
also when actors and nodes die.
"""

import asyncio
import os
import signal
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from microcoder.judge.core.errors import ConfigError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program, TestCase
from tests.judge.serve.conftest import ADD, PROBLEM, judge_alternating

pytest.importorskip("ray")

import ray

from microcoder.judge.fleet.ray import RayJudge

pytestmark = pytest.mark.timeout(900)


class Unreadable:
    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("x",)


def test_a_judge_without_a_cluster_is_refused() -> None:
    if not ray.is_initialized():
        with pytest.raises(ConfigError, match=r"call ray\.init"):
            RayJudge()


def test_verdicts_come_once_although_an_actor_and_then_a_node_are_killed(two_nodes: Any) -> None:
    def kill_an_actor() -> None:
        handle = next(iter(judge._backends.values())).handle
        os.kill(ray.get(handle.__ray_call__.remote(lambda self: os.getpid())), signal.SIGKILL)

    def kill_a_node() -> None:
        two_nodes.remove_node(next(iter(two_nodes.worker_nodes)), allow_graceful=False)

    killed: list[Future[None]] = []
    with RayJudge(time_scale=1.0) as judge, ThreadPoolExecutor(1) as pool:
        while len(judge.nodes) < 2:
            time.sleep(0.05)
        for kill in (kill_an_actor, kill_a_node):
            judge_alternating(
                judge,
                kill.__name__,
                40,
                lambda kill=kill: killed.append(pool.submit(kill)),
            )
        assert [one.result(30) for one in killed] == [None, None]
        assert judge.submit(Program(f"{ADD} # after"), PROBLEM).result(60).is_accepted
        assert judge._num_again >= 1


def test_it_answers_as_a_judge_in_process_does_and_sends_a_problem_to_a_node_once(
    two_nodes: Any,
) -> None:
    tests = [(TestCase(input=f"{n} 1\n" + "x" * (1 << 20), output=f"{n + 1}"),) for n in range(5)]
    first_line = ADD.replace("input()", "input()[:9]")
    with RayJudge(time_scale=1.0, processors_per_worker=0) as judge:
        assert judge.judge([Program(None, reason="cut")], [PROBLEM])[0].outcome is Outcome.NO_CODE
        assert judge.judge([], []) == []
        assert (
            asyncio.run(judge.judge_async(Program("print(3)"), PROBLEM)).outcome
            is Outcome.WRONG_ANSWER
        )
        # One that reserves nothing counts real processors.
        handle = next(node.handle for node in judge._backends.values() if node.workers)
        num_workers = ray.get(handle.__ray_call__.remote(lambda self: self._judge.workers))
        assert num_workers == len(os.sched_getaffinity(0))
        for round_number in range(2):
            # Each time other objects of the same content,
            # and programs of a problem far from each other.
            problems = [Problem(id=f"p{n}", tests=tests[n % 5]) for n in range(20)]
            programs = [Program(f"{first_line}  # {round_number} {n}") for n in range(20)]
            for verdict in judge.judge(programs, problems):
                assert verdict.is_accepted
        kept = handle.__ray_call__.remote(lambda self: len(self._problems._entries))
        assert 5 <= ray.get(kept) <= 6
        assert judge._num_again == 0
        other = PROBLEM.model_copy(update={"time_limit_seconds": 9.0})
        judge._problem_cache.find(other).reference = ray.put(Unreadable())
        assert judge.submit(Program(ADD), other).result(60).is_accepted
        assert judge._num_again == 1
        waiting = [judge.submit(Program(f"while True: pass  # {n}"), PROBLEM) for n in range(20)]
    assert {future.result(10).outcome for future in waiting} == {Outcome.SANDBOX_FAULT}
    with pytest.raises(EvaluatorFault, match="closed"):
        judge.submit(Program(ADD), PROBLEM)


def test_a_cluster_whose_sandboxes_do_not_start_is_an_error_and_not_a_wait(two_nodes: Any) -> None:
    with pytest.raises(EvaluatorFault, match=r"no judge starts on the Ray cluster: .*seccomp"):
        RayJudge(time_scale=1.0, layers=("limits",))

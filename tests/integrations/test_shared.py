"""One judge a process: shared, never in an event loop's way, and a forked child's own."""

import asyncio
import subprocess
import sys

import pytest

from microcoder import ConfigError, Program
from microcoder.integrations import shared
from microcoder.integrations.shared import shared_judge
from microcoder.judge.core.types import Problem
from tests.integrations.pairs import ALL, SAMPLE

SUM = Problem.model_validate({"id": "sum", "tests": [{"input": "1 2", "output": "3"}]})
RIGHT = Program("print(sum(map(int, input().split())))")
WRONG = Program("print(4)")


def test_there_are_at_least_300_pairs_and_no_two_of_one_name() -> None:
    assert len({pair.name for pair in ALL}) == len(ALL) >= 300
    assert len([pair for pair in ALL if pair.is_plain]) >= 300
    assert len(SAMPLE) >= 60


def test_everybody_asks_the_same_judge() -> None:
    shared_judge().judge([RIGHT], [SUM])
    first = shared._state.judge
    assert asyncio.run(shared_judge(stop="never").judge_async(WRONG, SUM)).outcome == "wrong_answer"
    assert shared._state.judge is first is not None


def test_another_value_of_an_option_is_named() -> None:
    shared_judge().judge([RIGHT], [SUM])
    with pytest.raises(
        ConfigError, match=r"stop = 'first_failure', but this process's judge has stop = 'never'"
    ):
        shared_judge(stop="first_failure")
    with pytest.raises(ConfigError, match=r"nice = 3, but this process's judge has nice = 0"):
        shared_judge(nice=3)
    with pytest.raises(ConfigError, match=r"no option 'worker'; use one of workers, "):
        shared_judge(worker=3)  # pyrefly: ignore[unexpected-keyword]


def test_an_event_loop_goes_on_while_the_judge_starts_and_judges() -> None:
    program = """
import asyncio
from microcoder import Problem, Program
from microcoder.integrations.shared import shared_judge
problem = Problem(id="sum", tests=[{"input": "", "output": "3"}])

async def main():
    turns = 0
    judging = asyncio.create_task(shared_judge(workers=1).judge_async(Program("print(3)"), problem))
    while not judging.done():
        turns += 1
        await asyncio.sleep(0.001)
    print(judging.result().outcome, turns > 5)

asyncio.run(main())
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.stdout == "accepted True\n"
    assert result.stderr == ""


FORKING = """
import multiprocessing
import warnings
from microcoder import Problem, Program
from microcoder.integrations.shared import shared_judge

SUM = Problem(id="sum", tests=[{"input": "1 2", "output": "3"}])
RIGHT, WRONG = Program("print(sum(map(int, input().split())))"), Program("print(4)")

def judge_in_child(answers):
    verdicts = shared_judge(stop="never").judge([RIGHT, WRONG], [SUM, SUM])
    answers.put([str(verdict.outcome) for verdict in verdicts])

# Python 3.12 and newer warn of a process with threads that forks.
warnings.simplefilter("ignore", DeprecationWarning)
shared_judge().judge([RIGHT], [SUM])
context = multiprocessing.get_context("fork")
answers = context.SimpleQueue()
child = context.Process(target=judge_in_child, args=(answers,))
child.start()
child.join()
again = SUM.model_copy(update={"time_limit_seconds": 3})
verdicts = shared_judge().judge([RIGHT, WRONG], [again, again])
print(child.exitcode, answers.get(), [verdict.is_accepted for verdict in verdicts])
"""


def test_a_forked_child_has_a_judge_of_its_own_and_the_parents_goes_on() -> None:
    # In a process of its own: a child of this one would have the locks of whatever other tests have
    # imported.
    result = subprocess.run(
        [sys.executable, "-c", FORKING],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert result.stdout == "0 ['accepted', 'wrong_answer'] [True, False]\n"
    assert result.stderr == ""


def test_a_door_imports_none_of_the_packages_it_leads_to() -> None:
    names = []
    for door in ("trl", "verl", "livecodebench", "lm_eval"):
        names.append(f"microcoder.integrations.{door}")
    doors = ", ".join(names)
    program = f"import sys, {doors}; print(*(name.split('.')[0] for name in sys.modules))"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    packages = {
        "torch",
        "transformers",
        "trl",
        "verl",
        "ray",
        "lm_eval",
        "inspect_ai",
        "datasets",
        "numpy",
        "httpx",
    }
    assert packages & set(result.stdout.split()) == set()

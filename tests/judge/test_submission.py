"""One program at a time: futures, coroutines, the cache of verdicts, the order of a batch; runs."""

import asyncio
from typing import Any

import pytest

from microcoder.judge import Invocation, Judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Outcome, Program, Verdict
from microcoder.judge.run.timing import MAX_SCALE, REFERENCE_CPU_SECONDS, measure_scale
from tests.judge.conftest import ADD, make_problem, run

PROBLEM = make_problem(("1 2", "3"))
SLOW = "import time\ntime.sleep(0.4)\n" + ADD
FAILING = {"type": "program", "code": "1 / 0"}


def test_coroutines_get_their_verdicts_and_cancelled_ones_are_not_begun() -> None:
    landed: list[str] = []

    async def judge_one(code: str) -> Verdict:
        verdict = await judging.judge_async(Program(code), PROBLEM)
        landed.append(code)
        return verdict

    async def cancel_and_go_on() -> list[Verdict]:
        slow = asyncio.create_task(judge_one(SLOW))
        await asyncio.sleep(0.1)
        unwanted = [asyncio.create_task(judge_one(f"while True: pass  # {n}")) for n in range(3)]
        await asyncio.sleep(0)
        for task in unwanted:
            task.cancel()
        return await asyncio.gather(slow, *(judge_one(f"{ADD}# {n}") for n in range(3)))

    with Judge(workers=1) as judging:
        verdicts = asyncio.run(asyncio.wait_for(cancel_and_go_on(), 60))
        future = judging.submit(Program(f"{SLOW}# again"), PROBLEM)
        assert judging.submit(Program("while True: pass"), PROBLEM).cancel()
        assert future.result().is_accepted
        assert judging.statistics.judged == 5
    assert all(verdict.is_accepted for verdict in verdicts)
    assert len(landed) == 4


def test_verdicts_but_no_faults_are_kept_and_the_longest_unused_is_forgotten() -> None:
    equal, checked = (
        make_problem(("1 2", "3"), **more)
        for more in ({"id": "another name"}, {"checker": FAILING})
    )
    with Judge(workers=1, cache_size=2) as judging:
        first = judging.submit(Program(ADD), PROBLEM).result()
        assert judging.submit(Program(ADD), equal).result() is first
        assert (
            judging.submit(Program(None, reason=f"={ADD}"), PROBLEM).result().outcome
            is Outcome.NO_CODE
        )
        assert run(judging, ADD, make_problem(("1 2", "3"), time_limit_seconds=6)).is_accepted
        assert judging.statistics.judged == 3
        assert judging.statistics.from_cache == 1
        for code in (f"{ADD}# 1", ADD, f"{ADD}# 2", ADD, f"{ADD}# 1"):
            run(judging, code, PROBLEM)
        assert judging.statistics.judged == 7
        assert judging.statistics.from_cache == 2
        assert [run(judging, ADD, checked).outcome for _ in range(2)] == [Outcome.SANDBOX_FAULT] * 2
        assert judging.statistics.judged == 9
        assert judging.statistics.faults == 2


def test_problems_that_took_long_start_first_the_next_time() -> None:
    other = make_problem(("1 2", "3"), time_limit_seconds=4.0)
    order: list[int] = []
    with Judge(workers=1) as judging:
        judging.judge([Program(ADD), Program(SLOW)], [PROBLEM, other])
        programs = [Program(f"{ADD}# {n}") for n in range(3)]
        judging.judge(
            programs,
            [PROBLEM, other, PROBLEM],
            on_verdict=lambda index, _: order.append(index),
        )
    assert order == [1, 0, 2]


def test_limits_are_stretched_on_a_slow_machine_and_never_shortened() -> None:
    slow_machine = iter([9.0, 2.0 * REFERENCE_CPU_SECONDS, 9.0, 9.0, 9.0])
    assert measure_scale(lambda: next(slow_machine)) == 2.0
    assert measure_scale(lambda: 0.1 * REFERENCE_CPU_SECONDS) == 1.0
    assert measure_scale(lambda: 1.1 * REFERENCE_CPU_SECONDS) == 1.0
    assert measure_scale(lambda: 50 * REFERENCE_CPU_SECONDS) == MAX_SCALE


def test_the_scale_decides_the_limit(judge_one: Judge) -> None:
    burn = "import time\nwhile time.process_time() < 0.4: pass\n" + ADD
    problem = make_problem(("1 2", "3"), time_limit_seconds=0.2)
    assert run(judge_one, burn, problem).outcome is Outcome.TIME_LIMIT
    with Judge(workers=1, time_scale=8) as judging:
        assert judging.time_scale == 8
        verdict = run(judging, burn, problem)
    assert verdict.is_accepted, verdict.detail
    assert verdict.isolation == judging.isolation.level


def test_a_large_input_is_read_from_its_start_by_each(judge_one: Judge) -> None:
    numbers = " ".join(map(str, range(200_000)))
    problem = make_problem(
        (numbers, str(sum(range(200_000)))), (numbers + " 1", str(sum(range(200_000)) + 1))
    )
    codes = [f"print(sum(map(int, input().split())))  # {n}" for n in range(3)] + [
        "import os\nos.ftruncate(0, 0)"
    ]
    verdicts = judge_one.judge([Program(code) for code in codes], [problem] * 4)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.ACCEPTED] * 3 + [
        Outcome.RUNTIME_ERROR
    ]


def test_what_cannot_be_run_or_told_is_refused_and_no_fault(judge_one: Judge) -> None:
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        ({"cpu_seconds": 1e14}, "a time limit of 1e\\+14 s"),
        ({"wall_seconds": 1e14}, "a wall time limit of 1e\\+14 s"),
        ({"wall_seconds": float("inf")}, "a wall time limit of inf s"),
        ({"wall_seconds": float("nan")}, "a wall time limit of nan s"),
        ({"memory_limit_mib": 1 << 40}, "a memory limit of"),
        ({"arguments": ("x" * 100_000,)}, "arguments: 100004 bytes"),
        ({"arguments": ("a\0b",)}, "NUL"),
        ({"files": {"a": b"", "a/b": b""}}, "'a': duplicate name"),
        *(
            ({"files": {name: b""}}, "plain relative path")
            for name in ("a/", "../x", "/etc/x", "a\0b")
        ),
        ({"files": {"a/b/c/d/e/f/g/h/i/j/k": b""}}, "11 files and folders; use at most 10"),
        ({"files": {"a": None}}, "a file needs content"),
        ({"files": {"\u00e9" * 200: b""}}, "plain relative path in UTF-8 of at most 200 bytes"),
        ({"files": {"\ud800": b""}}, "plain relative path"),
    )
    for options, words in refused:
        with pytest.raises(DataError, match=words):
            judge_one.run(Invocation(Program("print('A')"), **options))
    checker = {"type": "program", "code": "1", "arguments": ["x" * 100_000]}
    for options, words in (
        ({"fn_name": "f" * 100_000}, "fn_name has 100000 characters"),
        ({"checker": checker}, "checker.arguments: 100004 bytes"),
    ):
        with pytest.raises(DataError, match=words):
            judge_one.judge([Program("print('A')")], [make_problem(("1", "1"), **options)])
    assert judge_one.run(Invocation(Program("print('B')"))).stdout == b"B\n"


def test_modules_that_lie_beside_a_program_can_be_imported(judge_one: Judge) -> None:
    code = "import util, pack.inner as inner\nprint(util.x + inner.y, util.__name__)"
    files = {"util.py": b"x = 1", "pack/inner.py": b"y = 2"}
    assert judge_one.run(Invocation(Program(code), files=files)).stdout == b"3 util\n"
    for other in ({"other.py": b""}, {"util": b"x = 1"}):
        assert (
            "No module named 'util'"
            in judge_one.run(Invocation(Program("import util"), files=other)).detail
        )
    # A folder that is named like the file of the input breaks no sandbox.
    reads = Invocation(Program("open('/dev/stdin').read()"), files={"stdin/a": b""})
    assert judge_one.run(reads).is_conclusive

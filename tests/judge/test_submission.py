"""One program at a time: futures, coroutines, the cache of verdicts, the order of a batch; runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from microcoder.judge import Invocation, Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.run.timing import MAX_SCALE, REFERENCE_CPU_SECONDS, measure_scale

from .conftest import ADD, make_problem, run  # pyrefly: ignore[missing-import]

PROBLEM = make_problem(("1 2", "3"))


def test_coroutines_get_their_verdicts_as_they_land() -> None:
    async def judge_all() -> tuple[list[Verdict], list[int]]:
        landed: list[int] = []

        async def judge_one(number: int) -> Verdict:
            wait = "import time\ntime.sleep(3)\n" if number == 0 else ""
            verdict = await judging.judge_async(Program(f"{wait}{ADD}# {number}"), PROBLEM)
            landed.append(number)
            return verdict

        return await asyncio.gather(*map(judge_one, range(8))), landed

    with Judge(workers=2) as judging:
        verdicts, landed = asyncio.run(judge_all())
    assert all(verdict.is_accepted for verdict in verdicts)
    assert sorted(landed) == list(range(8))
    assert landed[0] != 0


def test_a_verdict_is_kept_for_the_next_identical_pair() -> None:
    equal = make_problem(("1 2", "3"), id="another name")
    with Judge(workers=1) as judging:
        first = judging.submit(Program(ADD), PROBLEM).result()
        again = judging.submit(Program(ADD), equal).result()
        other_limit = judging.submit(Program(ADD), make_problem(("1 2", "3"), time_limit_seconds=6)).result()
        statistics = judging.statistics
    assert again is first
    assert other_limit.is_accepted
    assert (statistics.judged, statistics.from_cache, statistics.faults) == (2, 1, 0)


def test_the_cache_forgets_what_was_used_longest_ago() -> None:
    with Judge(workers=1, cache_size=2) as judging:
        for code in (ADD, f"{ADD}# 1", ADD, f"{ADD}# 2", ADD, f"{ADD}# 1"):
            run(judging, code, PROBLEM)
        assert (judging.statistics.judged, judging.statistics.from_cache) == (4, 2)


def test_a_fault_is_never_kept() -> None:
    checked = make_problem(("1 2", "3"), checker={"type": "program", "code": "1 / 0"})
    with Judge(workers=1) as judging:
        outcomes = [run(judging, ADD, checked).outcome for _ in range(2)]
        assert (judging.statistics.judged, judging.statistics.faults) == (2, 2)
    assert outcomes == [Outcome.SANDBOX_FAULT] * 2


def test_a_cancelled_program_is_not_begun() -> None:
    with Judge(workers=1) as judging:
        slow = judging.submit(Program("import time\ntime.sleep(0.5)\n" + ADD), PROBLEM)
        unwanted = judging.submit(Program(f"{ADD}# unwanted"), PROBLEM)
        assert unwanted.cancel()
        wanted = judging.submit(Program(f"{ADD}# wanted"), PROBLEM)
        assert slow.result().is_accepted
        assert wanted.result().is_accepted
        assert judging.statistics.judged == 2


def test_cancelled_coroutines_are_not_begun() -> None:
    async def cancel_and_go_on() -> Verdict:
        slow = asyncio.create_task(judging.judge_async(Program("import time\ntime.sleep(0.5)\n" + ADD), PROBLEM))
        await asyncio.sleep(0.1)
        waiting = [
            asyncio.create_task(judging.judge_async(Program(f"while True: pass  # {n}"), PROBLEM)) for n in range(3)
        ]
        await asyncio.sleep(0)
        for task in waiting:
            task.cancel()
        assert (await slow).is_accepted
        return await judging.judge_async(Program(f"{ADD}# last"), PROBLEM)

    with Judge(workers=1) as judging:
        assert asyncio.run(asyncio.wait_for(cancel_and_go_on(), 30)).is_accepted
        assert judging.statistics.judged == 2


def test_closing_ends_what_was_submitted() -> None:
    judging = Judge(workers=1)
    endless = make_problem(("", ""), time_limit_seconds=60)
    futures = [judging.submit(Program(f"while True: pass  # {n}"), endless) for n in range(3)]
    threading.Timer(0.3, judging.close).start()
    assert [future.result(timeout=20).outcome for future in futures] == [Outcome.SANDBOX_FAULT] * 3
    with pytest.raises(EvaluatorFault, match="closed"):
        judging.submit(Program(ADD), PROBLEM)
    with pytest.raises(EvaluatorFault, match="closed"):
        judging.judge([], [])


def test_problems_that_took_long_start_first_the_next_time() -> None:
    quick, slow = make_problem(("1 2", "3")), make_problem(("1 2", "3"), time_limit_seconds=4.0)
    order: list[int] = []
    with Judge(workers=1) as judging:
        judging.judge([Program(ADD), Program("import time\ntime.sleep(0.4)\n" + ADD)], [quick, slow])
        judging.judge(
            [Program(f"{ADD}# 1"), Program(f"{ADD}# 2"), Program(f"{ADD}# 3")],
            [quick, slow, quick],
            on_verdict=lambda index, _: order.append(index),
        )
    assert order == [1, 0, 2]


def test_limits_are_stretched_on_a_slow_machine_and_never_shortened() -> None:
    slow_machine = iter([9.0, 2.0 * REFERENCE_CPU_SECONDS, 9.0, 9.0, 9.0])
    assert measure_scale(lambda: next(slow_machine)) == 2.0
    assert measure_scale(lambda: 0.1 * REFERENCE_CPU_SECONDS) == 1.0
    assert measure_scale(lambda: 1.1 * REFERENCE_CPU_SECONDS) == 1.0
    assert measure_scale(lambda: 50 * REFERENCE_CPU_SECONDS) == MAX_SCALE


def test_the_scale_decides_the_limit() -> None:
    burn = "import time\nwhile time.process_time() < 0.6: pass\n" + ADD
    problem = make_problem(("1 2", "3"), time_limit_seconds=0.3)
    with Judge(workers=1, time_scale=1) as judging:
        assert run(judging, burn, problem).outcome is Outcome.TIME_LIMIT
    with Judge(workers=1, time_scale=8) as judging:
        assert judging.time_scale == 8
        verdict = run(judging, burn, problem)
    assert verdict.is_accepted, verdict.detail
    assert verdict.isolation == judging.isolation.level


def test_a_large_input_is_read_from_its_start_by_each() -> None:
    numbers = " ".join(map(str, range(200_000)))
    problem = make_problem((numbers, str(sum(range(200_000)))), (numbers + " 1", str(sum(range(200_000)) + 1)))
    with Judge(workers=2) as judging:
        codes = [f"print(sum(map(int, input().split())))  # {n}" for n in range(6)] + ["import os\nos.ftruncate(0, 0)"]
        verdicts = judging.judge([Program(code) for code in codes], [problem] * 7)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.ACCEPTED] * 6 + [Outcome.RUNTIME_ERROR]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cpu_seconds": 1e14}, "a time limit of 1e\\+14 s"),
        ({"wall_seconds": 1e14}, "a wall time limit of 1e\\+14 s"),
        ({"wall_seconds": float("inf")}, "a wall time limit of inf s"),
        ({"wall_seconds": float("nan")}, "a wall time limit of nan s"),
        ({"memory_limit_mib": 1 << 40}, "a memory limit of"),
        ({"arguments": ("x" * 100_000,)}, "arguments: 100004 bytes"),
        ({"arguments": ("a\0b",)}, "NUL"),
        ({"files": {"a": b"", "a/": None, "a/b": b""}}, "'a/': duplicate name"),
        ({"files": {"a": b"", "a/b": b""}}, "'a' is not a folder"),
        ({"files": {"a/": b""}}, "has no content"),
        ({"files": {"a": None}}, "has no content"),
        ({"files": {"\u00e9" * 200: b""}}, "400 bytes; use at most 200"),
        ({"files": {"\ud800": b""}}, "not UTF-8"),
    ],
)
def test_what_cannot_be_run_is_refused_and_no_fault(judge_one: Judge, options: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        judge_one.run(Invocation(Program("print('A')"), **options))
    assert judge_one.run(Invocation(Program("print('B')"))).stdout == b"B\n"


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        (make_problem(("1", "1"), fn_name="f" * 100_000), "fn_name has 100000 characters"),
        (
            make_problem(("1", "1"), checker={"type": "program", "code": "1", "arguments": ["x" * 100_000]}),
            "checker.arguments: 100004 bytes",
        ),
    ],
)
def test_what_no_sandbox_could_be_told_is_refused(judge_one: Judge, problem: Problem, words: str) -> None:
    with pytest.raises(DataError, match=words):
        judge_one.judge([Program("print('A')")], [problem])


def test_a_folder_that_is_named_like_stdin_breaks_no_sandbox(judge_one: Judge) -> None:
    code = "open('/dev/stdin').read()"
    files = {"stdin/": None, "stdin/a": b""}
    execution = judge_one.run(Invocation(Program(code), files=files))
    assert execution.is_conclusive, execution.detail


def test_modules_that_lie_beside_a_program_can_be_imported(judge_one: Judge) -> None:
    code = "import util, pack.inner as inner\nprint(util.x + inner.y, util.__name__)"
    files = {"util.py": b"x = 1", "pack/": None, "pack/inner.py": b"y = 2"}
    assert judge_one.run(Invocation(Program(code), files=files)).stdout == b"3 util\n"
    again = judge_one.run(Invocation(Program("import util"), files={"other.py": b""}))
    assert "No module named 'util'" in again.detail
    without = judge_one.run(Invocation(Program("import util"), files={"util": b"x = 1"}))
    assert "No module named 'util'" in without.detail

"""The batch API: order, stop rules, sharing, faults, and living inside another process."""

import gc
import os
import signal
import threading
import time
import weakref
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any

import pytest

from microcoder.judge import Invocation, Judge, JudgeOptions, judge
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Outcome, Program
from microcoder.judge.run.executions import run_invocation
from microcoder.judge.run.judging import Session
from microcoder.judge.run.options import JudgeKeys
from microcoder.judge.run.supervisor import Limits, LoadedProgram, Sandbox, SandboxDied
from tests.judge.conftest import ADD, make_problem, run, workers_of
from tests.judge.processes import children_of, descendants_of


def test_options_are_taken_whole_and_changed_by_name() -> None:
    assert judge([], [], workers=1) == []
    with Judge(
        JudgeOptions(workers=1, stop="never", time_scale=2), stop="first_failure"
    ) as judging:
        assert judging.options == JudgeOptions(workers=1, stop="first_failure", time_scale=2)
        assert judging.time_scale == 2
        assert len(run(judging, "print(3)", make_problem(("", "4"), ("", "5"))).tests) == 1
        one = make_problem(("", ""))
        program = Program("x")
        wrong = [([program], [], "1 programs but 0 problems"), ("x", one, "lists, also of one")]
        wrong += [
            (["x"], [one], "0 is a str; pass Program"),
            ([program], [{}], "0 has a dict for a problem; pass read_problem"),
        ]
        for programs, problems, message in wrong:
            with pytest.raises(DataError, match=message):
                judging.judge(programs, problems)  # pyrefly: ignore[bad-argument-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 0}, "workers = 0"),
        ({"build_seconds": float("nan")}, "build_seconds = nan: must be 3600 or less"),
        ({"stop": "first"}, "use 'first_failure', 'first_limit' or 'never'"),
        (
            {"nice": 20, "cache_size": "all"},
            "nice = 20: must be 19 or less; cache_size = 'all': must be a whole number",
        ),
        ({"worker": 2}, "unknown key worker; did you mean workers"),
    ],
)
def test_wrong_options_are_named(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Judge(JudgeOptions(workers=1), **options)


def test_the_keyword_arguments_are_the_options() -> None:
    assert JudgeKeys.__annotations__.keys() == JudgeOptions.model_fields.keys()


@pytest.mark.parametrize("place", [-1, 0])
def test_a_sandbox_that_is_killed_costs_no_verdict(place: int) -> None:
    """The innermost process, a program that runs, or the outermost, a fork server."""
    numbers = range(12)
    programs = []
    for n in numbers:
        programs.append(
            Program(f"sum(range(2_000_000))  # {n}\n" + ADD.replace("a + b", f"a + b + {n % 2}"))
        )
    before = {*children_of(os.getpid())}
    told = []
    killed = []

    def note(index: int, verdict: object) -> None:
        told.append(index)
        if len(told) > 4 and not killed:
            server = min({*children_of(os.getpid())} - before)
            with suppress(ProcessLookupError):
                found = [server, *descendants_of(server)][place]
                os.kill(found, signal.SIGKILL)
                killed.append(found)

    with Judge(workers=1) as judging:
        verdicts = judging.judge(programs, [make_problem(("1 2", "3"))] * 12, on_verdict=note)
    assert killed
    assert sorted(told) == [*numbers]
    expected = []
    for n in numbers:
        expected.append(Outcome.WRONG_ANSWER if n % 2 else Outcome.ACCEPTED)
    assert [verdict.outcome for verdict in verdicts] == expected


def test_a_run_that_was_cut_off_by_any_error_answers_nobody_else() -> None:
    with closing(Session()) as session:
        session.open()
        with pytest.raises(OverflowError):
            run_invocation(session, Invocation(Program("print('A')"), wall_seconds=1e14), 1.0)
        for word in "BC":
            assert (
                run_invocation(session, Invocation(Program(f"print('{word}')")), 1.0).stdout
                == f"{word}\n".encode()
            )
    with closing(Sandbox()) as sandbox, closing(LoadedProgram("print('first')")) as program:
        limits = Limits(5.0, 1e14, 1 << 30, 1 << 20)
        with pytest.raises(OverflowError):
            sandbox.run(program.task(b""), limits)
        time.sleep(0.1)
        with pytest.raises(SandboxDied):
            sandbox.run(program.task(b""), replace(limits, wall_seconds=5.0))


def test_a_second_death_is_a_fault_of_that_program_alone(caplog: pytest.LogCaptureFixture) -> None:
    def kill_whatever_runs() -> None:
        while not stop.wait(0.15):
            for sandbox in list(workers_of(judging).sessions[0].sandboxes._started.values()):
                sandbox.interrupt()

    stop = threading.Event()
    with Judge(workers=1) as judging:
        killer = threading.Thread(target=kill_whatever_runs)
        killer.start()
        verdict = run(judging, "import time\ntime.sleep(1)", make_problem(("1 2", ""), ("3 4", "")))
        stop.set()
        killer.join()
        assert not verdict.is_scorable
        assert (
            [test.verdict for test in verdict.tests] == [verdict.outcome] == [Outcome.SANDBOX_FAULT]
        )
        assert caplog.messages == [f"microcoder: a program stays unscored: {verdict.detail}"]
        assert run(judging, ADD, make_problem(("1 2", "3"))).is_accepted


def test_a_problem_is_let_go_of_with_its_verdict_where_few_tests_are_kept() -> None:
    held = []
    gc.disable()
    try:
        with Judge(workers=1, tests_mib=1, cache_size=0) as judging:
            for number in range(4):
                problem = make_problem((f"{number} {'1' * (1 << 20)}", f"{number}"))
                held.append(weakref.ref(problem))
                assert judging.judge([Program("print(input()[0])")], [problem])[0].is_accepted
                del problem
            # The latest is kept for the next program.
            assert [one() is not None for one in held[:3]] == [False] * 3
    finally:
        gc.enable()

"""A busy machine: waiting is not idleness, neighbours are measured,
a stalled compiler is no verdict.
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from microcoder.judge import Judge, JudgeOptions
from microcoder.judge.core import machine
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Program, Repeat
from microcoder.judge.languages import Language, find_language
from microcoder.judge.run import timing
from microcoder.judge.run.builds import build_program
from microcoder.judge.run.executor import Excuse, Source, Task
from microcoder.judge.run.judging import Session
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.supervisor import Sandbox, SandboxDied
from microcoder.judge.run.timing import MAX_SLOWDOWN, PROGRAM, Calibration, limits_for
from microcoder.judge.run.verdicts import PreparedProblem
from microcoder.judge.run.watchdog import Owner, Watchdog
from tests.judge.conftest import NEEDS, make_problem, run, workers_of
from tests.judge.processes import descendants_of, wait_until

ONE_TEST = ("", "3")


def burn(cpu_seconds: float) -> str:
    return f"import time\nwhile time.process_time() < {cpu_seconds}: pass\nprint(3)"


@contextmanager
def contended_judge(nice: int) -> Iterator[Judge]:
    """A judge on one processor; once it has started, beside a busy loop in a session of its own."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        with Judge(workers=1, time_scale=1, nice=nice) as judging:
            run(judging, "print(3)", make_problem(ONE_TEST))
            with subprocess.Popen(
                [sys.executable, "-c", "while True: pass"], start_new_session=True
            ) as hog:
                try:
                    yield judging
                finally:
                    hog.kill()
    finally:
        os.sched_setaffinity(0, before)


def test_a_nice_program_that_waits_its_turn_is_given_the_time() -> None:
    # A tenth of a processor: 0.2 s of CPU time take about 2 s, beyond the wall limit of 1.75 s.
    with contended_judge(nice=10) as judging:
        verdict = run(judging, burn(0.2), make_problem(ONE_TEST, time_limit_seconds=0.25))
        statistics = judging.statistics
    assert verdict.is_accepted, verdict.detail
    assert statistics.extended
    assert not statistics.blind


IDLERS = (
    "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)",
    "import time\nwhile True: time.sleep(0.001)",
    (
        "import threading, time\n"
        "for _ in range(100): threading.Thread(target=time.sleep, args=(99,)).start()"
    ),
    "import threading, time\ndef wake():\n    while True: time.sleep(0.01)\n"
    "for _ in range(100): threading.Thread(target=wake).start()",
)


def test_no_program_stays_by_being_idle(judge_one: Judge) -> None:
    problem = make_problem(ONE_TEST, time_limit_seconds=0.2)
    verdicts = judge_one.judge([Program(code) for code in IDLERS], [problem] * len(IDLERS))
    assert [verdict.outcome for verdict in verdicts] == [Outcome.TIME_LIMIT] * len(IDLERS)


def test_a_process_that_waited_for_nothing_is_ended_and_a_stuck_machine_is_a_fault() -> None:
    with subprocess.Popen(["sleep", "99"]) as sleeper:
        try:
            while machine._read_states(sleeper.pid) != ["S"]:
                time.sleep(0.01)  # It still starts.
            reading = machine.read_process(sleeper.pid)
        finally:
            sleeper.kill()
    assert reading is not None
    assert timing.extend(reading, limit_seconds=1.0, counted_seconds=1.1, real_seconds=1.1)[0] == 0
    with pytest.raises(EvaluatorFault, match="the machine is stuck"):
        timing.extend(reading, limit_seconds=1.0, counted_seconds=1.1, real_seconds=101)


SLEEPERS = (
    "import time\ntime.sleep(30)",
    "import time\nfor _ in range(300): time.sleep(0.1)",
    "import time\nsum(range(10 ** 6))\ntime.sleep(30)",
    "import threading\nthreading.Event().wait(30)",
    "import select\nselect.select([], [], [], 30)",
    "import threading\nt = threading.Timer(30, print)\nt.start()\nt.join()",
)


@contextmanager
def _hogs(number: int) -> Iterator[None]:
    with contextlib.ExitStack() as running:
        for _ in range(number):
            hog = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            running.enter_context(hog)
            running.callback(hog.kill)
        yield


@pytest.mark.long
def test_a_program_that_sleeps_past_its_limit_is_too_slow_beside_hogs_too() -> None:
    problem = make_problem(ONE_TEST, time_limit_seconds=0.25)
    with contended_judge(nice=19) as judging, _hogs(3):
        programs = [Program(code) for code in SLEEPERS]
        verdicts = judging.judge(programs, [problem] * len(SLEEPERS))
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes == [Outcome.TIME_LIMIT] * len(SLEEPERS)


def _read(*, waited: float, is_in_the_queue: bool = False) -> machine.Reading:
    """What the kernel says of a program that ran for 0.01 s in three long turns:
    1 s of its wait is credited.
    """
    return machine.Reading(0.01, 0.01, waited, 3, is_in_the_queue)


@pytest.mark.parametrize(
    ("reading", "counted", "more"),
    [
        # It slept for 2 s and 2.5 s of a limit of 2 s.
        (_read(waited=2.5), 4.5, 0.0),
        (_read(waited=2.5), 5.0, 0.0),
        # It has slept for 1.5 s, and may sleep for half a second more.
        (_read(waited=2.5), 4.0, 0.5),
        # It slept for most of its limit, so that it is given the processor that it waits for.
        (_read(waited=2.5, is_in_the_queue=True), 4.0, 0.25),
        (_read(waited=2.5, is_in_the_queue=True), 4.5, 0.25),
        # All of its wait is credited.
        (_read(waited=0.5), 2.25, 0.25),
        (_read(waited=0.5), 2.5, 0.0),
    ],
)
def test_a_sleeper_goes_on_for_as_long_as_it_waited(
    reading: machine.Reading,
    counted: float,
    more: float,
) -> None:
    found, _ = timing.extend(
        reading,
        limit_seconds=2.0,
        counted_seconds=counted,
        real_seconds=counted,
    )
    assert found == more


def test_a_program_that_hardly_slept_and_waits_is_on_a_stuck_machine() -> None:
    with pytest.raises(EvaluatorFault, match=r"got 0\.01 s of CPU time in 3 s"):
        timing.extend(
            _read(waited=2.5, is_in_the_queue=True),
            limit_seconds=2.0,
            counted_seconds=3.0,
            real_seconds=3.0,
        )


def test_without_the_kernels_word_a_test_gets_three_times_its_wall_limit_and_that_is_counted() -> (
    None
):
    owner = Owner()
    watchdog = Watchdog(limits_for(0.1, 64, 16), owner)
    limit = 3 * 0.1 + 1
    for seconds, more in ((1.1 * limit, 1.9 * limit), (3 * limit, 0.0)):
        assert watchdog._extend(0, seconds, seconds) == pytest.approx(more)
    assert owner.record.blind == 1
    assert owner.record.extended == 0
    assert len(watchdog.notes) == 1


def test_neighbours_count_as_the_fixed_program_shows() -> None:
    calibration = Calibration()
    calibration.learn(PROGRAM, 1.0)
    # One run without much delay is enough.
    assert calibration.measure(PROGRAM, iter([1.05]).__next__) == 1.05
    assert timing.choose_factor(calibration.slowdown) == timing.DEAD_BAND
    assert calibration.measure(PROGRAM, iter([1.3, 3.0, 1.2]).__next__) == 1.2
    assert calibration.measure(PROGRAM, lambda: 9.0) == MAX_SLOWDOWN
    assert calibration.measure(PROGRAM, lambda: 0.5) == 1.0
    assert calibration.best == {PROGRAM: 0.5}
    assert calibration.slowdown == MAX_SLOWDOWN
    assert timing.choose_factor(calibration.slowdown) > MAX_SLOWDOWN


def slowed_session() -> Session:
    """A session on a machine that was much faster once."""
    calibration = Calibration()
    calibration.learn(PROGRAM, 0.001)
    return Session(Sandboxes(JudgeOptions(stop="never"), calibration=calibration))


def test_a_slowed_program_is_judged_by_the_time_of_a_quiet_machine() -> None:
    problem = PreparedProblem(make_problem(ONE_TEST, time_limit_seconds=0.3))
    with closing(slowed_session()) as session:
        verdict = session.judge(Program(burn(0.4)), problem)
        assert verdict.is_accepted, verdict.detail
        assert verdict.tests[0].cpu_seconds < 0.3
        # Once with more room, once alone.
        assert session.sandboxes.record.reruns == 2
        assert session.judge(Program(burn(0.7)), problem).outcome is Outcome.TIME_LIMIT
    # An endless one is run again once at most.
    with closing(slowed_session()) as session:
        endless = PreparedProblem(make_problem(*[ONE_TEST] * 3, time_limit_seconds=0.1))
        assert session.judge(Program("while True: pass"), endless).outcome is Outcome.TIME_LIMIT
        assert session.sandboxes.record.reruns == 1
    # A final run is not cut off for its neighbours, and timed once.
    source = Source(find_language("python"), burn(0.4), 512)
    with closing(slowed_session()) as session, ExitStack() as opened:
        program = session.executor.load(opened, source)
        assert not isinstance(program, str)
        observed = program.run(Task(), problem.limits, is_final=True)
        assert observed.run is not None
        assert observed.run.stdout == b"3\n"
        assert observed.run.cpu_seconds < 0.3
        assert observed.excuses == (Excuse(Repeat.NEAR_LIMIT, may_help=False),)


@NEEDS["cpp"]  # whose files sh is among
def test_a_compiler_that_stands_still_is_a_fault_and_one_that_works_on_an_error() -> None:
    def build(script: str) -> None:
        cpp = find_language("cpp")
        language = Language(
            name="slow",
            source_file="main",
            compilers=("sh",),
            build=("{compiler}", "-c", script),
            build_seconds=0.2,
        )
        with closing(Sandbox(toolchain=cpp.readable)) as sandbox:
            made = build_program(sandbox, language, "")
        assert made.message == "the compiler took more than 0.2 s of CPU time"

    # As compilers are: the command itself waits for the process that does the work.
    build("sh -c 'while :; do :; done'; true")
    with pytest.raises(SandboxDied, match="the compiler stood still"):
        build("sleep 99; true")


@NEEDS["cpp"]  # whose files sh is among
def test_a_compiler_that_is_killed_is_started_once_more() -> None:
    command = ("{compiler}", "-c", "sleep 0.5; echo built > main")
    language = Language(
        name="slow",
        source_file="main",
        compilers=("sh",),
        build=command,
        build_seconds=5,
    )

    def kill() -> bool:
        found = (
            one
            for one in descendants_of(sandbox.pid)
            if b"sleep" in Path(f"/proc/{one}/cmdline").read_bytes()
        )
        return any(os.kill(one, signal.SIGKILL) is None for one in found)

    with (
        closing(Sandbox(toolchain=find_language("cpp").readable)) as sandbox,
        ThreadPoolExecutor(1) as pool,
    ):
        building = pool.submit(build_program, sandbox, language, "")
        assert wait_until(kill)
        assert building.result(60).binary == b"built\n"


def test_programs_and_their_scheduler_group_are_as_nice_as_asked() -> None:
    with Judge(workers=1, time_scale=1, nice=7) as judging:
        future = judging.submit(
            Program("import time\ntime.sleep(99)"), make_problem(ONE_TEST, time_limit_seconds=0.3)
        )
        sandbox = workers_of(judging).sessions[0].sandboxes._started[SandboxKind()]
        while len(
            family := list(machine._family(sandbox.pid))
        ) < 2 + judging.isolation.enforced.count("pid_namespace"):
            time.sleep(0.01)
        assert os.getpriority(os.PRIO_PROCESS, family[-1]) >= 7
        try:
            with open(f"/proc/{family[-1]}/autogroup") as file:
                assert file.read().split("nice ")[1].strip() == str(
                    os.getpriority(os.PRIO_PROCESS, family[-1])
                )
        except FileNotFoundError:
            pass  # This kernel groups no sessions.
        assert not future.result().is_accepted

"""Workers spread over several processes: the same verdicts, whatever happens to a process."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from microcoder.judge import Invocation, Judge
from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.types import Outcome, Problem, Program, Verdict
from microcoder.judge.fleet.pipe import Processes
from microcoder.judge.run.slots import Slot, Slots, make_lock_files
from microcoder.judge.run.workers import count_processes
from tests.judge.conftest import ADD, make_problem, run
from tests.judge.processes import children_of, descendants_of, wait_until_gone

SUM = make_problem(("1 2", "3"), ("4 5", "9"), ("-1 1", "0"))
FUNCTION = make_problem(("[3, 1]", "[1, 3]"), ("[]", "[]"), fn_name="order")
CHECKED = make_problem(
    ("5", "5"),
    checker={"type": "program", "code": "import sys\nsys.exit(int(open(sys.argv[2]).read()) < 5)"},
)
CPP = SUM.model_copy(update={"language": "cpp"})
MIXED: list[tuple[str | None, Problem]] = [
    (ADD, SUM),
    ("print(3)", SUM),
    ("x =", SUM),
    (None, SUM),
    ("print('\\ud800'.encode('utf-8', 'surrogatepass'))  # \ud800", SUM),
    ("def order(items): return sorted(items)", FUNCTION),
    ("print(7)", CHECKED),
    ("while True: pass", make_problem(("", ""), time_limit_seconds=0.3)),
    ("print('a' * (20 << 20))", SUM),
    *([("int main() {", CPP)] if shutil.which("g++") else []),
]


@pytest.fixture(scope="module")
def judge_two() -> Iterator[Judge]:
    with Judge(workers=2, processes=2, time_scale=1) as judging:
        yield judging


def pool_of(judging: Judge) -> Processes:
    assert isinstance(judging._pool, Processes)
    return judging._pool


def processes_of(judging: Judge) -> list[int]:
    pids = []
    for member in list(pool_of(judging)._backends.values()):
        if member.process is not None:
            pids.append(member.process.pid)
    return pids


def essence(verdict: Verdict) -> tuple[object, ...]:
    """All of a verdict but its figures, and what is said about these."""
    tests = [(test.verdict, test.method, test.output) for test in verdict.tests]
    return verdict.outcome, verdict.tests_total, verdict.isolation, tests


def test_the_verdicts_are_those_of_threads(judge_one: Judge, judge_two: Judge) -> None:
    problems = [problem for _, problem in MIXED]
    programs = []
    for code, problem in MIXED:
        programs.append(Program(code, problem.language, reason="" if code else "none"))
    seen: dict[int, Verdict] = {}
    callers: set[threading.Thread] = set()

    def note(index: int, verdict: Verdict) -> None:
        seen[index] = verdict
        callers.add(threading.current_thread())

    verdicts = judge_two.judge(programs, problems, on_verdict=note)
    assert callers == {threading.current_thread()}
    assert list(map(essence, verdicts)) == list(map(essence, judge_one.judge(programs, problems)))
    assert [seen[index] for index in range(len(programs))] == verdicts
    # By what ran of it, not by what its worker ran before.
    level = judge_two.isolation.level
    assert [verdicts[index].isolation for index in (0, 2, 3, 4)] == [level, level, "", level]
    assert len(processes_of(judge_two)) == 2
    assert judge_two.run(Invocation(Program("print(input())"), stdin=b"hello")).stdout == b"hello\n"
    with pytest.raises(DataError, match="no code"):
        judge_two.run(Invocation(Program(None)))


def test_what_was_judged_is_counted_over_all_processes(judge_two: Judge) -> None:
    before = judge_two.statistics
    problem = make_problem(*((f"{n} 1", str(n + 1)) for n in range(9)))
    for v in judge_two.judge([Program(f"{ADD}# {n}") for n in range(8)] * 2, [problem] * 16):
        assert v.is_accepted
    after = judge_two.statistics
    assert after.judged - before.judged == 8
    assert after.from_cache - before.from_cache == 8
    assert after.shared - before.shared == 8 * 9
    assert after.retries == before.retries


def test_nobody_waits_for_a_cancelled_program(judge_two: Judge) -> None:
    endless = make_problem(("", ""), ("1", ""), time_limit_seconds=0.5)
    judged = judge_two.statistics.judged
    futures = [judge_two.submit(Program(f"while True: pass  # {n}"), endless) for n in range(40)]
    time.sleep(0.1)
    for future in futures:
        assert future.cancel()
    assert run(judge_two, f"{ADD}# after", SUM).is_accepted
    assert judge_two.statistics.judged - judged < 20


def test_a_process_that_is_ended_costs_no_verdict() -> None:
    slow = "import time\ntime.sleep(0.3)\n" + ADD
    with Judge(workers=2, processes=2, time_scale=1) as judging:
        run(judging, ADD, SUM)
        (first,) = processes_of(judging)
        sandboxes = descendants_of(first)
        killer = threading.Timer(0.5, os.kill, (first, signal.SIGKILL))
        killer.start()
        verdicts = judging.judge([Program(f"{slow}# {n}") for n in range(4)], [SUM] * 4)
        killer.join()
        assert [verdict.outcome for verdict in verdicts] == [Outcome.ACCEPTED] * 4
        assert judging.statistics.retries > 0
        assert sandboxes
        assert wait_until_gone([first, *sandboxes])


def test_a_program_whose_process_ends_twice_is_a_fault() -> None:
    stop = threading.Event()

    def kill_whatever_works() -> None:
        while not stop.wait(0.2):
            for member in list(pool_of(judging)._backends.values()):
                if member.held and member.process is not None:
                    member.process.kill()

    with Judge(workers=1, processes=1, time_scale=1) as judging:
        run(judging, ADD, SUM)
        killer = threading.Thread(target=kill_whatever_works)
        killer.start()
        verdict = run(judging, "import time\ntime.sleep(3)", SUM)
        stop.set()
        killer.join()
        assert verdict.outcome is Outcome.SANDBOX_FAULT
        assert "ended twice" in verdict.detail
        assert run(judging, f"{ADD}# again", SUM).is_accepted


def test_close_ends_everything_at_once() -> None:
    judging = Judge(workers=2, processes=2)
    endless = make_problem(("", ""), time_limit_seconds=60)
    futures = [judging.submit(Program(f"while True: pass  # {n}"), endless) for n in range(2)]
    while len(pids := processes_of(judging)) < 2 or not all(map(children_of, pids)):
        time.sleep(0.05)
    pids += [child for pid in pids for child in descendants_of(pid)]
    judging.close()
    assert [future.result(5).outcome for future in futures] == [Outcome.SANDBOX_FAULT] * 2
    assert wait_until_gone(pids)
    with pytest.raises(EvaluatorFault, match="closed"):
        judging.judge([], [])


@pytest.mark.parametrize("processes", [0, 1])
def test_a_judge_that_is_closed_twice_leaves_what_others_have_opened_since(processes: int) -> None:
    judging = Judge(workers=1, processes=processes, time_scale=1)
    judging.close()
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(20)]
    judging.close()
    for descriptor in opened:
        os.close(descriptor)


BATCH_WITHOUT_END = """
import os, sys
from microcoder import Problem, Program
from microcoder.judge import Judge
problem = Problem(id="p", tests=[{"input": "", "output": ""}], time_limit_seconds=60)
with Judge(workers=2, processes=int(sys.argv[1]), time_scale=1) as judging:
    judging.judge([Program(""), Program("#")], [problem] * 2)
    pool = judging._pool
    if sys.argv[1] == "0":
        pids = [one.pid for session in pool.sessions for one in session.sandboxes._started.values()]
    elif os.fork() == 0:  # it has the sockets, too, until the test closes its stdin
        sys.stdin.read()
        os._exit(0)
    else:
        pids = [member.process.pid for member in list(pool._backends.values()) if member.process]
    print(*pids, flush=True)
    judging.judge([Program("while True: pass"), Program("while 1: pass")], [problem] * 2)
"""


@pytest.mark.parametrize(
    ("processes", "number"), [(0, signal.SIGINT), (0, signal.SIGTERM), (2, signal.SIGKILL)]
)
def test_nothing_outlives_the_calling_process(processes: int, number: signal.Signals) -> None:
    command = [sys.executable, "-c", BATCH_WITHOUT_END, str(processes)]
    pipe = subprocess.PIPE
    caller = subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    assert caller.stdin is not None
    assert caller.stdout is not None
    pids = [int(pid) for pid in caller.stdout.readline().split()]
    assert pids
    time.sleep(0.3)
    pids += [child for pid in pids for child in descendants_of(pid)]
    caller.send_signal(number)
    caller.wait(20)
    assert wait_until_gone(pids)
    caller.stdin.close()
    caller.stdout.close()


def test_a_judge_that_cannot_start_says_why() -> None:
    with pytest.raises(ConfigError, match="no-such-file"):
        Judge(workers=2, processes=2, packages="no-such-file.txt")
    with pytest.raises(EvaluatorFault, match="lacks isolation here: seccomp"):
        Judge(workers=2, processes=2, layers=("resource_limits",))
    with pytest.raises(ConfigError, match="processes = 3; use 0 to 2"):
        Judge(workers=2, processes=3)
    assert [count_processes(workers) for workers in (1, 8, 9, 16, 64)] == [0, 0, 2, 2, 8]


@pytest.fixture
def lock_files() -> Iterator[list[int]]:
    files = make_lock_files()
    yield files
    for file in files:
        os.close(file)


def test_alone_is_alone_among_all_processes(lock_files: list[int]) -> None:
    # Three processes, each with three threads and a slot for each.
    processes = [Slots(3) for _ in range(3)]
    running = [0, 0]
    lock = threading.Lock()
    trouble = []

    def work(slots: Slots, number: int) -> bool:
        slot = Slot(slots, lock_files)
        for time_number in range(20):
            is_alone = (time_number + number) % 4 == 0
            with slot.alone() if is_alone else slot.shared():
                # Who has given way does not run beside one that is alone either.
                if not is_alone:
                    slot.give_way(memory_mib=1)
                with lock:
                    running[is_alone] += 1
                    if running[1] > 1 or (running[1] and running[0]):
                        trouble.append(tuple(running))
                time.sleep(0.0005)
                with lock:
                    running[is_alone] -= 1
        slot.close()
        return True

    with ThreadPoolExecutor(9) as pool:
        assert all(pool.map(work, processes * 3, [0, 0, 0, 1, 1, 1, 2, 2, 2]))
    assert not trouble


def test_long_programs_let_one_of_another_process_run_alone(lock_files: list[int]) -> None:
    here = Slot(lock_files=lock_files)
    there = Slot(lock_files=lock_files)
    order: list[str] = []

    def run_alone() -> None:
        with there.alone():
            order.append("alone")

    with ThreadPoolExecutor(1) as pool:
        with here.shared():
            waiting = pool.submit(run_alone)
            while not here.is_wanted():
                time.sleep(0.001)
            assert not order
            here.give_way(memory_mib=1)
            order.append("long")
        waiting.result(30)
    assert order == ["alone", "long"]
    here.close()
    there.close()

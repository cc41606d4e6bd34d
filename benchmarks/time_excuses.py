"""Which rule of time keeps right programs from timing out beside neighbours, and what it costs.

    python benchmarks/time_excuses.py [--rounds N] [--hogs 2] [--times FILE.jsonl]

Programs of known CPU time are run beside hogs: processes in sessions of their own that compute, or
walk through memory. Some are small, some have tables of a few MiB, some hold more than 64 MiB. Each
is run three times: by a judge of two workers with time slices, by one without, and alone; then the
judge's two fixed programs are timed. Every rule is applied to the same times, with limits of which
the programs take 0.5 to 0.95 on a quiet machine (a time-out is wrong), and 1.1 to 1.5 (an
acceptance is wrong). Then the judge itself judges programs with such limits, and endless ones.

A quiet machine's times are the best of all, as neighbours only make a run slower. FILE keeps the
times; with `--rounds 0` the rules are applied to what it holds.

The last line is a JSON object: of each rule the share of wrong time-outs by what a program takes of
its limit, the share of programs over their limit that it accepts, and the CPU time of an endless
program in limits.
"""

import argparse
import contextlib
import json
import random
import subprocess
import sys
import textwrap
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from statistics import fmean, median
from typing import Any

import psutil
from evaluator_judges import read_tree_cpu_seconds

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.judge.conftest import workers_of

from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Problem, Program
from microcoder.judge.run import timing
from microcoder.judge.run.executor import Run
from microcoder.judge.run.sandboxes import Sandboxes, SandboxKind
from microcoder.judge.run.slots import Slot
from microcoder.judge.run.supervisor import LoadedProgram

LARGE = """
import array
size = 1 << 23
cells = array.array("q", range(size))
place = 0
for number in range(1 << 18):
    place = cells[(place * 5 + number * 7919) % size]
    cells[place] += number & 1
"""
"""Holds more than 64 MiB, and walks through them."""
REPEATS = {
    "small": (timing.PROGRAM, 30),
    "tables": (timing.MEMORY_PROGRAM, 16),
    "large": (LARGE, 1),
}
"""Programs by kind: what they do, and how often."""
UNDER = (0.5, 0.7, 0.8, 0.9, 0.95)
"""What right programs take of their limit."""
OVER = (1.1, 1.2, 1.3, 1.5)
"""What programs take of their limit that are too slow."""
ENOUGH_SECONDS = 20.0
CALIBRATIONS = 10
ENDLESS_SECONDS = 0.5
HOGS = (
    "place = 0\nwhile True: place = (place * 31 + 7) % 1_000_003",
    (
        "import array\ncells, place = array.array('q', range(1 << 23)), 0\n"
        "while True: place = cells[(place * 5 + 7919) % len(cells)]"
    ),
)
NUMBERS = count()


@dataclass(frozen=True)
class Times:
    """CPU seconds of one program."""

    hogs: int
    """How many ran beside it."""
    kind: str
    sliced: float
    unsliced: float
    alone: float
    """No other program of the judge ran."""
    small: list[float]
    """Three runs of the judge's small fixed program, after that."""
    memory: list[float]
    """The same of the one that walks through memory."""


@dataclass(frozen=True)
class Best:
    """The best CPU seconds of all, which stand for a quiet machine."""

    programs: dict[str, float]
    """By kind."""
    small: float
    memory: float


@dataclass(frozen=True)
class Rule:
    """When a test is stopped, and what counts of one that took more than its limit."""

    factor: float = timing.DEAD_BAND
    """It is stopped at so many times its limit."""
    factor_in_memory: float = timing.DEAD_BAND
    """The same for one that holds much memory."""
    room: float | None = timing.MAX_SLOWDOWN
    """The same for its second run; None: what was measured."""
    statistic: str = "fastest"
    """Which of the fixed programs' three runs counts."""
    is_banded: bool = False
    """A slowdown under the dead band is none."""
    follows: bool = False
    """Slowdowns that were measured before make it stop later."""
    reruns: bool = True
    """One that was stopped is run again, if the slowdown explains that."""
    divides: bool = True
    """What it takes alone is divided by the slowdown."""
    tolerates: bool = False
    """What ended before it was stopped is in time."""
    slices: bool = True

    def slowdown(self, times: Times, best: Best) -> float:
        """Return what neighbours cost, as this rule measures it."""
        slowdowns = [self._of_program(times.small, best.small)]
        if times.kind != "small":
            slowdowns.append(self._of_program(times.memory, best.memory))
        return min(max(slowdowns), timing.MAX_SLOWDOWN)

    def _of_program(self, runs: list[float], best: float) -> float:
        seconds = median(runs) if self.statistic == "median" else min(runs)
        if self.is_banded and seconds < timing.DEAD_BAND * best:
            return 1.0
        return seconds / best

    def judge(
        self, times: Times, best: Best, limit: float, recent: float, *, is_endless: bool = False
    ) -> tuple[bool, float]:
        """Return whether a program is in time, and the CPU seconds that it took to know that."""
        first, again = times.sliced, times.unsliced
        if not self.slices:
            first, again = again, first
        if is_endless:
            first = again = float("inf")
        least = self.factor_in_memory if times.kind == "large" else self.factor
        factor = max(least, 1.05 * recent) if self.follows and recent > 1 else least
        spent = min(first, factor * limit)
        slowdown = self.slowdown(times, best)
        is_stopped = first > factor * limit
        if is_stopped and not (self.reruns and slowdown > factor):
            return False, spent
        if not is_stopped and (first <= limit or self.tolerates):
            return True, spent
        factor = max(factor, self.room or 1.05 * slowdown)
        if is_stopped:
            spent += min(again, factor * limit)
            if again > factor * limit:
                return False, spent
            if again <= limit:
                return True, spent
        spent += min(times.alone, factor * limit)
        divisor = slowdown if self.divides else 1.0
        return times.alone <= min(factor, divisor) * limit, spent


RULES = {
    "limit": Rule(1.0, 1.0, tolerates=True, reruns=False),
    "alone": Rule(reruns=False, divides=False),
    "divided": Rule(reruns=False),
    "judge": Rule(follows=True),
    "judge_unsliced": Rule(follows=True, slices=False),
    "judge_undivided": Rule(follows=True, divides=False),
    "judge_at_once": Rule(),
    "judge_memory": Rule(follows=True, factor_in_memory=1.3),
    "judge_median": Rule(follows=True, statistic="median"),
    "before": Rule(factor_in_memory=1.3, room=None, is_banded=True, follows=True),
    "limit_130": Rule(1.3, 1.3, tolerates=True, reruns=False),
    "limit_160": Rule(1.6, 1.6, tolerates=True, reruns=False),
    "limit_200": Rule(2.0, 2.0, tolerates=True, reruns=False),
}
"""Rules by name: the bare limit; stopped at 1.15 and timed again alone; the same, divided by the
slowdown; the judge's, by which what was stopped is run again, too; variants of that; the judge's
until 2026-11-30; the limit times 1.3, 1.6 and 2."""


def write_program(kind: str) -> str:
    """Return a program of a kind; no two are equal."""
    code, times = REPEATS[kind]
    return f"# {next(NUMBERS)}\ndef work():\n{textwrap.indent(code, '    ')}\n" + "work()\n" * times


def run_alone(sandboxes: Sandboxes, kind: str) -> Run:
    limits = timing.limits_for(ENOUGH_SECONDS, 1024, 16)
    with contextlib.closing(LoadedProgram(write_program(kind))) as program:
        task = program.task(b"")
        return sandboxes.use(SandboxKind(), lambda sandbox: sandbox.run(task, limits))


def make_problem(seconds: float) -> Problem:
    test = {"input": "", "output": ""}
    return Problem(id="timed", tests=[test], time_limit_seconds=seconds, memory_limit_mib=1024)


@contextlib.contextmanager
def start_hogs(number: int) -> Iterator[list[int]]:
    """Run hogs beside the block, by turns of each kind; give their process ids."""
    with contextlib.ExitStack() as running:
        hogs = []
        for index in range(number):
            command = [sys.executable, "-c", HOGS[index % len(HOGS)]]
            hog = subprocess.Popen(command, start_new_session=True)
            running.callback(hog.wait)
            running.callback(hog.kill)
            hogs.append(hog.pid)
        yield hogs


def read_own_cpu_seconds(hogs: list[int]) -> float:
    """Return what this process and those below it have used, but for hogs."""
    seconds = read_tree_cpu_seconds()
    for hog in hogs:
        used = psutil.Process(hog).cpu_times()
        seconds -= used.user + used.system
    return seconds


@contextlib.contextmanager
def without_slices() -> Iterator[None]:
    """Let no program of this process pause for another."""
    give_way = Slot.give_way
    Slot.give_way = lambda self, memory_mib: None
    try:
        yield
    finally:
        Slot.give_way = give_way


def time_beside(judge: Judge, kinds: list[str]) -> list[float]:
    """Return the CPU seconds of programs that a judge runs beside each other."""
    programs = [Program(write_program(kind)) for kind in kinds]
    verdicts = judge.judge(programs, [make_problem(ENOUGH_SECONDS)] * len(kinds))
    return [verdict.tests[0].cpu_seconds for verdict in verdicts]


def take_times(rounds: int, hogs: int) -> Iterator[Times]:
    """Run every kind of program in three ways, a few of each kind a round.

    The first ones are run without hogs.
    """
    sandboxes = Sandboxes()
    with contextlib.closing(sandboxes), Judge(workers=2, time_scale=1, cache_size=0) as judge:
        for _ in range(CALIBRATIONS):
            for kind in REPEATS:
                seconds = run_alone(sandboxes, kind).cpu_seconds
                yield Times(0, kind, seconds, seconds, seconds, *time_fixed(sandboxes))
        with start_hogs(hogs):
            for number in range(rounds):
                kinds = list(REPEATS) * 4
                random.shuffle(kinds)
                sliced = time_beside(judge, kinds)
                with without_slices():
                    unsliced = time_beside(judge, kinds)
                for kind, first, second in zip(kinds, sliced, unsliced, strict=True):
                    alone = run_alone(sandboxes, kind).cpu_seconds
                    yield Times(hogs, kind, first, second, alone, *time_fixed(sandboxes))
                print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


def time_fixed(sandboxes: Sandboxes) -> tuple[list[float], list[float]]:
    """Return the CPU seconds of three runs of each of the judge's fixed programs."""
    small = []
    memory = []
    for _ in range(3):
        small.append(sandboxes._time(timing.PROGRAM))
        memory.append(sandboxes._time(timing.MEMORY_PROGRAM))
    return small, memory


def find_best(times: list[Times]) -> Best:
    programs: dict[str, float] = {}
    for time in times:
        known = programs.get(time.kind, ENOUGH_SECONDS)
        programs[time.kind] = min(known, time.sliced, time.unsliced, time.alone)
    small = min(min(time.small) for time in times)
    memory = min(min(time.memory) for time in times)
    return Best(programs, small, memory)


def describe(times: list[Times], best: Best) -> Iterator[dict[str, Any]]:
    """Yield how much slower each kind of program was than on a quiet machine."""
    for kind, quiet in best.programs.items():
        chosen = [time for time in times if time.kind == kind]
        row: dict[str, Any] = {"kind": kind, "programs": len(chosen), "quiet": round(quiet, 3)}
        for name in ("sliced", "unsliced", "alone"):
            row[name] = rank([getattr(time, name) / quiet for time in chosen])
        row["slowdown"] = rank([Rule().slowdown(time, best) for time in chosen])
        yield row


def rank(values: list[float]) -> list[float]:
    """Return the median, the value that nine tenths do not exceed, and the largest."""
    values = sorted(values)
    return [round(values[int(share * (len(values) - 1))], 2) for share in (0.5, 0.9, 1)]


def apply_rules(times: list[Times], best: Best) -> Iterator[dict[str, Any]]:
    """Yield what each rule says of programs under and over their limit, and its cost."""
    for name, rule in RULES.items():
        late: dict[float, list[bool]] = defaultdict(list)
        costs = []
        seen = deque([1.0], maxlen=4)
        for time in times:
            recent = max(seen)
            for share in (*UNDER, *OVER):
                limit = best.programs[time.kind] / share
                late[share].append(not rule.judge(time, best, limit, recent)[0])
            # Endless programs are small ones, mostly.
            if time.kind == "small":
                costs.append(rule.judge(time, best, 1.0, recent, is_endless=True)[1])
            seen.append(max(1.0, rule._of_program(time.small, best.small)))
        by_kind = {}
        for kind in best.programs:
            chosen = []
            for share in UNDER:
                pairs = zip(times, late[share], strict=True)
                chosen += [is_late for time, is_late in pairs if time.kind == kind]
            by_kind[kind] = percent(chosen)
        yield {"rule": name, **tell(late), "kinds": by_kind, "endless": round(fmean(costs), 2)}


def tell(late: dict[float, list[bool]]) -> dict[str, Any]:
    """Return shares in percent: wrong time-outs by share of the limit, wrong acceptances."""
    wrong = {f"{share:.0%}": percent(late[share]) for share in UNDER}
    accepted = {f"{share:.0%}": round(100 - percent(late[share]), 2) for share in OVER}
    return {"all": round(fmean(wrong.values()), 2), "wrong": wrong, "accepted": accepted}


def percent(claims: list[bool]) -> float:
    return round(100 * sum(claims) / len(claims), 2)


def ask_judge(best: Best, each: int, hogs: int, *, knows_best: bool) -> dict[str, Any]:
    """Return what the judge itself says of programs of known time, and what endless ones cost.

    It knows the best times of the fixed programs, or has those of its start, beside others.
    """
    shares = [*UNDER, *OVER]
    cases = [(kind, share) for kind in REPEATS for share in shares] * each
    random.shuffle(cases)
    late: dict[float, list[bool]] = defaultdict(list)
    with Judge(workers=2, time_scale=1, cache_size=0) as judge, start_hogs(hogs) as pids:
        if knows_best:
            calibration = workers_of(judge).calibration
            calibration.learn(timing.PROGRAM, best.small)
            calibration.learn(timing.MEMORY_PROGRAM, best.memory)
        programs = [Program(write_program(kind)) for kind, _ in cases]
        problems = [make_problem(best.programs[kind] / share) for kind, share in cases]
        for (_, share), verdict in zip(cases, judge.judge(programs, problems), strict=True):
            late[share].append(verdict.outcome is Outcome.TIME_LIMIT)
        number = 4 * each
        before = read_own_cpu_seconds(pids)
        endless = [Program(f"while True: pass  # {index}") for index in range(number)]
        judge.judge(endless, [make_problem(ENDLESS_SECONDS)] * number)
        spent = read_own_cpu_seconds(pids) - before
    cost = round(spent / (number * ENDLESS_SECONDS), 2)
    name = "measured" if knows_best else "measured_anew"
    return {
        "rule": name,
        "programs": len(UNDER) * len(REPEATS) * each,
        **tell(late),
        "endless": cost,
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rounds", type=int, default=16, help="twelve programs each")
    parser.add_argument("--hogs", type=int, default=2)
    parser.add_argument("--each", type=int, default=4, help="programs of a kind and a limit")
    parser.add_argument("--times", type=Path, help="keeps the times, and adds those that it holds")
    arguments = parser.parse_args()
    times = []
    if arguments.times and arguments.times.exists():
        lines = arguments.times.read_text().splitlines()
        times = [Times(**json.loads(line)) for line in lines]
    if arguments.rounds:
        for time in take_times(arguments.rounds, arguments.hogs):
            times.append(time)
            if arguments.times:
                with arguments.times.open("a") as file:
                    file.write(json.dumps(asdict(time)) + "\n")
    best = find_best(times)
    beside = [time for time in times if time.hogs]
    rows = [*describe(beside, best), *apply_rules(beside, best)]
    for row in rows:
        print(json.dumps(row), flush=True)
    if arguments.each:
        for knows_best in (True, False):
            row = ask_judge(best, arguments.each, arguments.hogs, knows_best=knows_best)
            print(json.dumps(row), flush=True)
            rows.append(row)
    print(json.dumps({row.get("kind") or row["rule"]: row for row in rows}))


if __name__ == "__main__":
    main()

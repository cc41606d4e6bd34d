"""An audit, top to bottom: choose cases, start each judge, ask, count."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from microcoder.errors import EvaluatorFault
from microcoder.yardstick.cases import STORED, Case, choose_cases, load_suite
from microcoder.yardstick.catalogue import TestedJudge
from microcoder.yardstick.fresh import build_fresh
from microcoder.yardstick.lane import Lane
from microcoder.yardstick.questions import CaseResult, build_speed_cases, put_case
from microcoder.yardstick.scoring import Speed, measure_speed

_SPEED_PROGRAMS, _SPEED_TESTS = 20, 10

Note = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Audit:
    """The results of one judge."""

    judged: TestedJudge
    about: str
    containment: str
    """Empty if it was contained; else why not."""
    results: tuple[CaseResult, ...] = ()
    num_not_asked: int = 0
    """Cases that need what this judge does not offer."""
    speed: Speed | None = None
    num_starts: int = 0
    """How often its process had to be started: once, and after each time it was killed or ended."""
    seconds: float = 0.0
    problem: str = ""
    """Why it could not be asked at all."""


@dataclass(frozen=True, slots=True)
class YardstickPlan:
    """What is asked of every judge."""

    cases: tuple[Case, ...]
    seed: int
    most: int | None
    machine: str = field(
        default_factory=lambda: f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    )


def make_plan(
    *, seed: int, most: int | None, suites: Sequence[str] = (), contests: Sequence[Case] = ()
) -> YardstickPlan:
    """Return the cases: at most so many of each stored suite, all that the seed makes, and the contests'."""
    chosen = [case for suite in STORED for case in choose_cases(load_suite(suite), most, seed=seed)]
    chosen += build_fresh(seed)
    chosen += choose_cases(contests, most, seed=seed)
    return YardstickPlan(tuple(case for case in chosen if not suites or case.suite in suites), seed, most)


def audit_judges(
    judges: Sequence[TestedJudge], plan: YardstickPlan, *, lanes: int, contain: bool, note: Note
) -> Iterator[Audit]:
    """Ask one judge after another, each in so many processes at a time."""
    for judged in judges:
        yield _audit_judge(judged, plan, lanes=lanes, contain=contain, note=note)


def _audit_judge(judged: TestedJudge, plan: YardstickPlan, *, lanes: int, contain: bool, note: Note) -> Audit:
    started = time.monotonic()
    try:
        first = Lane(judged, contain=contain)
    except EvaluatorFault as fault:
        note(f"{judged.label}: left out: {fault}")
        return Audit(judged, "", "", problem=str(fault))
    asked = [case for case in plan.cases if can_be_asked(judged, case)]
    opened = [first]
    try:
        speed = _time(first, asked)
        opened += [Lane(judged, contain=contain) for _ in range(lanes - 1)]
        with ThreadPoolExecutor(lanes) as pool:
            shares = pool.map(
                lambda share: _ask_all(*share), [(lane, asked[n::lanes]) for n, lane in enumerate(opened)]
            )
            found = {result.case.id: result for share in shares for result in share}
    finally:
        for lane in opened:
            lane.close()
    results = tuple(found[case.id] for case in asked if case.id in found)
    seconds = time.monotonic() - started
    note(f"{judged.label}: {sum(one.is_miss for one in results)} misses in {len(results)} cases, {seconds:.0f} s")
    return Audit(
        judged, first.about, first.containment, results, len(plan.cases) - len(asked), speed,
        sum(lane.num_started for lane in opened), seconds,
    )  # fmt: skip


def can_be_asked(judged: TestedJudge, case: Case) -> bool:
    """Whether a judge offers what a case needs."""
    abilities = judged.known.abilities
    if "only-function" in abilities and case.fn_name is None:
        return False
    return set(case.needs) <= abilities


def _ask_all(lane: Lane, cases: Sequence[Case]) -> list[CaseResult]:
    return [put_case(lane, case) for case in cases]


def _time(lane: Lane, asked: Sequence[Case]) -> Speed | None:
    """Return how fast it is, while nothing else of ours runs; None if it takes no programs that read stdin."""
    cases = build_speed_cases(_SPEED_PROGRAMS, _SPEED_TESTS)
    if not can_be_asked(lane.judged, cases[0]):
        return None
    put_case(lane, cases[0])
    rights = [put_case(lane, case) for case in cases[1:]]
    endless = [put_case(lane, case) for case in asked if case.suite == "timeouts"][:1]
    return measure_speed(rights, endless)

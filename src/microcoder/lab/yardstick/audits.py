"""An audit of a judge: the cases that it is asked, and its answers from disposable processes."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.lab.yardstick.cases import STORED, Case, build_fresh, choose_cases, load_suite
from microcoder.lab.yardstick.lanes import CaseResult, Lane, put_case
from microcoder.lab.yardstick.named_judges import TestedJudge


@dataclass(frozen=True, slots=True)
class Audit:
    """The results of auditing one judge on the yardstick's cases."""

    judged: TestedJudge
    about: str = ""
    containment: str = ""
    """Why the judge's process was not isolated; empty if it was."""
    results: tuple[CaseResult, ...] = ()
    num_not_asked: int = 0
    """Number of cases not asked, since they need an ability that this judge lacks."""
    problem: str = ""
    """Why a process of the judge did not start, or not again: there are then no results. Empty
    otherwise."""


@dataclass(frozen=True, slots=True)
class YardstickPlan:
    """The cases of an audit, the same for every judge, and how they were chosen."""

    cases: tuple[Case, ...]
    seed: int
    most: int | None
    machine: str = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"


def make_plan(
    *,
    seed: int,
    most: int | None,
    suites: Sequence[str] = (),
) -> YardstickPlan:
    """Return a plan: cases of each stored suite, and all that are generated from the seed.

    Args:
        seed: of the generated cases, and of the choice of stored ones.
        most: largest number of cases of each stored suite; None: all.
        suites: names of suites; cases of others are left out, unless this is empty.
    """
    cases = []
    for suite in STORED:
        cases += choose_cases(load_suite(suite), most, seed=seed)
    cases += build_fresh(seed)
    if suites:
        cases = [case for case in cases if case.suite in suites]
    return YardstickPlan(tuple(cases), seed, most)


def ask_judge(
    judged: TestedJudge,
    plan: YardstickPlan,
    *,
    lanes: int,
    contain: bool,
    note: Callable[[str], None],
    on_progress: Callable[[str, int, int], None] = lambda label, done, total: None,
) -> Audit:
    """Run all cases that a judge supports.

    Args:
        judged: the judge.
        plan: with the cases.
        lanes: number of processes.
        contain: whether they are isolated from this machine.
        note: called with a line on the outcome.
        on_progress: called with the judge's label, its cases that are done, and all of them.

    Returns:
        The results; only the `problem` if a process does not start, or not again.
    """
    started = time.monotonic()
    cases = [case for case in plan.cases if _is_able(judged, case)]
    # Appended to by all lanes at once, which a list allows.
    done: list[str] = []

    def put(lane: Lane, case: Case) -> CaseResult:
        result = put_case(lane, case)
        done.append(case.id)
        on_progress(judged.label, len(done), len(cases))
        return result

    def put_share(index: int) -> tuple[Lane, list[CaseResult]]:
        with contextlib.closing(Lane(judged, contain=contain)) as lane:
            # In turn: slow suites stand together, and each process gets a part of them.
            results = []
            for case in cases[index::lanes]:
                if _lacks(lane, case):
                    done.append(case.id)
                else:
                    results.append(put(lane, case))
            return lane, results

    on_progress(judged.label, 0, len(cases))
    try:
        with ThreadPoolExecutor(lanes) as pool:
            shares = list(pool.map(put_share, range(lanes)))
    except EvaluatorFault as fault:
        note(f"{judged.label}: left out: {fault}")
        return Audit(judged, problem=str(fault))
    by_case = {}
    for _, share in shares:
        by_case.update({result.case.id: result for result in share})
    # In the plan's order again, whichever process was faster.
    results = tuple(by_case[case.id] for case in cases if case.id in by_case)
    seconds = time.monotonic() - started
    num_misses = sum(result.is_miss for result in results)
    note(f"{judged.label}: {num_misses} misses in {len(results)} cases, {seconds:.0f} s")
    first_lane, _ = shares[0]
    return Audit(
        judged,
        about=first_lane.about,
        containment=first_lane.containment,
        results=results,
        num_not_asked=len(plan.cases) - len(results),
    )


def _lacks(lane: Lane, case: Case) -> bool:
    """Whether a process of the judge said, once it had started, that it lacks what a case needs."""
    needed = set(case.needs)
    if case.fn_name is None:
        needed.add("stdin")
    return bool(lane.cannot & needed)


def _is_able(judged: TestedJudge, case: Case) -> bool:
    """Whether a judge has the abilities that a case needs."""
    if case.fn_name is None and "only-function" in judged.abilities:
        return False
    return judged.abilities.issuperset(case.needs)

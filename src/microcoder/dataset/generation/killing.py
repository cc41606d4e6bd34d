"""Which tests catch which wrong programs, found by running each program until its first failure, in several orders."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from microcoder.dataset.generation.answers import Answering, MadeTest
from microcoder.evaluator import Judge
from microcoder.pieces import take_in_turn
from microcoder.types import Outcome, Program, TestCase

_SMALL_BYTES = 4096
"""On a longer input a program may be slow by being slow; on a shorter one it does not end."""
_LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT)
_CANNOT_RUN = (Outcome.COMPILE_ERROR, Outcome.NO_CODE, Outcome.SANDBOX_FAULT)


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A program to be caught."""

    name: str
    program: Program


def find_killers(
    judge: Judge,
    answering: Answering,
    wrong: Sequence[WrongProgram],
    tests: Sequence[TestCase],
    *,
    seconds: float,
    num_orders: int = 1,
    seed: int = 0,
) -> list[set[int] | None]:
    """Return for each program numbers of tests that it fails, one an order; None for one that cannot be run.

    A program that runs over a limit on a long input is not counted as caught by it: where it ends differs from
    machine to machine, and what is chosen must not.

    Args:
        judge: of the stop rule `first_failure`.
        answering: makes the problem.
        wrong: the programs.
        tests: in the order of the first run.
        seconds: CPU limit of a test.
        num_orders: further orders are tried for what was caught.
        seed: of the further orders.
    """
    killers: list[set[int] | None] = [set() for _ in wrong]
    again = list(range(len(wrong)))
    for number in range(num_orders if wrong and tests else 0):
        order = list(range(len(tests)))
        if number:
            random.Random(seed + number).shuffle(order)
        problems = {
            language: answering.problem([tests[n] for n in order], seconds=seconds, language=language)
            for language in {wrong[place].program.language for place in again}
        }
        verdicts = judge.judge(
            [wrong[place].program for place in again], [problems[wrong[place].program.language] for place in again]
        )
        still = []
        for place, verdict in zip(again, verdicts, strict=True):
            failed = len(verdict.tests) - 1
            if verdict.outcome in _CANNOT_RUN:
                killers[place] = None
            elif not verdict.is_accepted:
                test = order[failed]
                known = killers[place]
                if verdict.outcome in _LIMITS:
                    if len(tests[test].input) <= _SMALL_BYTES and known is not None:
                        known.add(test)
                elif known is not None:
                    known.add(test)
                    still.append(place)
        again = still
        if not again:
            break
    return killers


def choose_tests(tests: Sequence[MadeTest], killers: Sequence[set[int]], *, most: int, num_large: int) -> list[int]:
    """Return the numbers of the tests to keep: those that kill most per second of judging, some large, then a spread.

    Args:
        tests: to choose from.
        killers: for each wrong program the tests that it is known to fail.
        most: how many to keep.
        num_large: of those, large ones that are kept whatever they kill.
    """
    chosen = _spread_large(tests)[: min(num_large, most)]
    left = [set(failed) for failed in killers if failed and not failed & set(chosen)]
    while left and len(chosen) < most:
        catches: dict[int, int] = {}
        for failed in left:
            for number in failed:
                catches[number] = catches.get(number, 0) + 1
        best = max(catches, key=lambda n: (catches[n] / tests[n].seconds, -len(tests[n].test.input), -n))
        chosen.append(best)
        left = [failed for failed in left if best not in failed]
    by_kind: dict[str, list[int]] = {}
    for number, one in enumerate(tests):
        if number not in chosen and not (one.is_large and one.origin.kind.startswith(("drawn/", "grown/"))):
            by_kind.setdefault(one.origin.kind, []).append(number)
    # What the mutants did not ask for may still catch the mistakes of a model: some of every kind, longest first, the
    # kinds that are drawn and those that are mutated by turns.
    by_way: dict[str, list[list[int]]] = {}
    for kind, numbers in by_kind.items():
        numbers.sort(key=lambda n: (-len(tests[n].test.input), n))
        by_way.setdefault(kind.partition("/")[0], []).append(numbers)
    chosen += take_in_turn(take_in_turn(by_way.values()))[: most - len(chosen)]
    return sorted(chosen)


def _spread_large(tests: Sequence[MadeTest]) -> list[int]:
    """Return the numbers of the large tests: of each kind in turn the longest that is left."""
    large = [number for number, one in enumerate(tests) if one.is_large]
    # Of one length, those first that are like a known input: chance alone seldom finds what takes long.
    large.sort(key=lambda n: tests[n].origin.kind, reverse=True)
    by_kind: dict[str, list[int]] = {}
    for number in sorted(large, key=lambda n: -len(tests[n].test.input)):
        by_kind.setdefault(tests[number].origin.kind, []).append(number)
    return take_in_turn(by_kind.values())

"""Which tests catch which wrong programs, found by running each program until its first failure, in several orders."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from microcoder.data.tests.answers import Answering, MadeTest
from microcoder.judge import Judge
from microcoder.judge.core.files import take_in_turn
from microcoder.judge.core.types import Outcome, Program, TestCase

_SMALL_BYTES = 4096
"""On a longer input a program may be slow by being slow; on a shorter one it does not end."""
_LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT)
_CANNOT_RUN = (Outcome.COMPILE_ERROR, Outcome.NO_CODE, Outcome.SANDBOX_FAULT)


_ORDERS = 3
"""In which tests are tried: each shows the first one that a program fails."""


def find_killers(
    judge: Judge,
    answering: Answering,
    wrong: Sequence[Program],
    tests: Sequence[TestCase],
    *,
    seconds: float,
    seed: int,
) -> list[set[int] | None]:
    """Return for each program numbers of tests that it fails, one an order; None for one that cannot be run.

    A program that runs over a limit on a long input is not counted as caught by it: where it ends differs from
    machine to machine, and what is chosen must not.

    Args:
        judge: of the stop rule `first_failure`.
        tests: in the order of the first run.
        seconds: CPU limit of a test.
    """
    killers: list[set[int] | None] = [set() for _ in wrong]
    again = list(range(len(wrong)))
    for number in range(_ORDERS):
        if not again:
            break
        order = list(range(len(tests)))
        if number:
            random.Random(seed + number).shuffle(order)
        problems = {
            language: answering.problem([tests[n] for n in order], seconds=seconds, language=language)
            for language in {wrong[place].language for place in again}
        }
        verdicts = judge.judge([wrong[place] for place in again], [problems[wrong[place].language] for place in again])
        tried, again = again, []
        for place, verdict in zip(tried, verdicts, strict=True):
            known = killers[place]
            if verdict.outcome in _CANNOT_RUN or known is None:
                killers[place] = None
            elif not verdict.is_accepted:
                test = order[len(verdict.tests) - 1]
                if verdict.outcome not in _LIMITS:
                    known.add(test)
                    again.append(place)
                elif len(tests[test].input) <= _SMALL_BYTES:
                    known.add(test)
    return killers


def choose_tests(tests: Sequence[MadeTest], hacked: Sequence[set[int]], *, most: int, num_large: int) -> list[int]:
    """Return the numbers of the tests to keep: some large, hacks, then a spread.

    Of equal standing are those first that catch most per second of judging.

    Args:
        hacked: for each submission that is known to be wrong the tests that it is known to fail.
        num_large: of those, large ones that are kept whatever they kill.
    """
    chosen = _spread_large(tests)[: min(num_large, most)]
    left = [failed for failed in hacked if failed and not failed & set(chosen)]
    while left and len(chosen) < most:
        catches = Counter(number for failed in left for number in failed)
        best = max(catches, key=lambda n: (catches[n] / tests[n].seconds, -len(tests[n].test.input), -n))
        chosen.append(best)
        left = [failed for failed in left if best not in failed]
    by_kind: dict[str, list[int]] = {}
    for number, one in enumerate(tests):
        if number not in chosen:
            by_kind.setdefault(one.origin.kind, []).append(number)
    # What no known mistake asked for may still catch the mistakes of a model: some of every kind, longest first, each
    # way of making inputs in its turn.
    by_way: dict[str, list[list[int]]] = {}
    for kind, numbers in by_kind.items():
        numbers.sort(key=lambda n: (-len(tests[n].test.input), n))
        by_way.setdefault(kind.partition("/")[0], []).append(numbers)
    chosen += take_in_turn(take_in_turn(by_way.values()))[: most - len(chosen)]
    return sorted(chosen)


def _spread_large(tests: Sequence[MadeTest]) -> list[int]:
    """Return the numbers of the large tests: of each kind in turn the longest that is left."""
    large = [number for number, one in enumerate(tests) if one.is_large]
    by_kind: dict[str, list[int]] = {}
    for number in sorted(large, key=lambda n: -len(tests[n].test.input)):
        by_kind.setdefault(tests[number].origin.kind, []).append(number)
    return take_in_turn(by_kind.values())

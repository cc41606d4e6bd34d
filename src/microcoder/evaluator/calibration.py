"""How much slower than the reference machine this one runs Python: CPU limits are stretched by that.

A limit is never shortened: a stated limit is what a program may take at least. A machine up to 15 % slower counts as
the reference, so that noise changes no limit; one more than four times slower is measured as four, and that is shown.
"""

from __future__ import annotations

from collections.abc import Callable

PROGRAM = """
words, total = {}, 0
for number in range(40_000):
    key = str(number * 7919 % 1009)
    words[key] = words.get(key, 0) + 1
    total = (total * 31 + number) % 1_000_000_007
values = sorted((value * number % 257, key) for number, (key, value) in enumerate(words.items()))
print(total, len(values), values[0])
"""
"""Dicts, strings, integers, sorting: what contest programs do."""

REFERENCE_CPU_SECONDS = 0.0205
"""What the program takes on a core of the reference machine (a cloud AMD EPYC, CPython 3.11), fork and all."""

MAX_SCALE = 4.0
_DEAD_BAND = 1.15
_MAX_RUNS = 5


def measure_scale(measure: Callable[[], float]) -> float:
    """Return by how much CPU limits are to be stretched: 1 to `MAX_SCALE`.

    Args:
        measure: runs the program once and returns its CPU seconds. Of up to five runs the fastest counts; the first
            one that is as fast as the reference ends the matter.
    """
    fastest = float("inf")
    for _ in range(_MAX_RUNS):
        fastest = min(fastest, measure())
        if fastest <= _DEAD_BAND * REFERENCE_CPU_SECONDS:
            return 1.0
    return min(round(fastest / REFERENCE_CPU_SECONDS, 2), MAX_SCALE)

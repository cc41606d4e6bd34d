"""Dynamic group filtering: problems that all samples solve, or none, are replaced by others before the update.

    0 < |{ o_i : o_i is correct }| < G          (DAPO, arXiv 2503.14476, equation 11)

Such a group's advantages are all zero, so a step full of them learns nothing. Filtering asks other problems in their
place until every group differs within, or a limit of rounds is reached; what is left over then stays, with zero
advantages, and is counted in `zero_variance_share`.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence

from microcoder.metrics import ScoredRollout


def is_mixed(scored_G: Sequence[ScoredRollout]) -> bool:
    """Return whether some, but not all, of a group's scored members are correct; a length penalty does not count."""
    return len({sample.verdict.is_accepted for sample in scored_G if sample.reward is not None}) > 1


def order_spares(problem_ids: Sequence[str], *, asked: Collection[str], seed: int, step: int) -> list[str]:
    """Return the problems that may be asked in the place of others, in order: those the step has not asked.

    A pure function of its arguments, so that a resumed run asks the same.
    """
    spares = [problem_id for problem_id in problem_ids if problem_id not in asked]
    random.Random(f"spares-{seed}-{step}").shuffle(spares)
    return spares


def share_spares(spares: Sequence[str], *, taken: int, number: int, process: int, num_processes: int) -> list[str]:
    """Return the `number` spares that one process asks in a round, all processes asking equally many.

    Empty when there are too few left for all of them: then filtering ends.

    Args:
        spares: the step's spares, see `order_spares`.
        taken: spares that earlier rounds of the step have taken, on all processes.
        number: spares that each process asks.
        process: index of this process.
        num_processes: how many there are.
    """
    if taken + number * num_processes > len(spares):
        return []
    start = taken + process * number
    return list(spares[start : start + number])

"""When a share begins to rise: a change point with a known rate of false alarms.

Asked of each step: of the rollouts that were paid, how many were wrong. A run that is clean has one
such share throughout, whatever its accuracy does. So under the null hypothesis the groups of the
run (the samples of one problem in one step) could have come in any order. Whole groups are
reordered, not single rollouts: samples of one problem tend to win in the same way.

    statistic  the largest gain in binomial log-likelihood of two shares, before and from a step
               on, over one, the second being the larger
    p-value    share of 999 random orders of the groups with as large a gain, for any step
    alarm      p-value of at most 1 %: so often does a clean run raise one

A share that grows slowly fits two levels best in the middle of its rise. So the steps before a
change point are asked again, by the same test, until they hold no change: the earliest change
point counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Counts = NDArray[np.float64]

NUM_ORDERS = 999
"""Random orders of the groups with which the recorded one is compared."""
_ORDERS_AT_ONCE = 37
"""Orders that are in memory together; divides `NUM_ORDERS`."""
FALSE_ALARM_RATE = 0.01
"""Share of clean runs in which an alarm is raised."""


@dataclass(frozen=True, slots=True)
class GroupCount:
    """The paid samples of one problem in one step."""

    step: int
    paid: int
    wrong: int
    """Those of the paid that are wrong."""


@dataclass(frozen=True, slots=True)
class Onset:
    """The first step from which on a share is larger than before."""

    step: int
    share_before: float
    """Share of the paid rollouts that were wrong, over all steps before."""
    share_after: float
    """The same from the step on."""
    p_value: float
    """Chance of such a change anywhere in a clean run."""


def find_onset(groups: Sequence[GroupCount], *, seed: int = 0) -> Onset | None:
    """Return the earliest change to a larger share of wrong groups; None if there is no change.

    Args:
        groups: of the whole run, ascending by step.
        seed: of the random orders.
    """
    onset = None
    rest = [group for group in groups if group.paid]
    while True:
        earlier = _find_change(rest, seed)
        if earlier is None:
            return onset
        onset = earlier
        rest = [group for group in rest if group.step < earlier.step]


def _find_change(groups: Sequence[GroupCount], seed: int) -> Onset | None:
    """Return the most likely change of some groups if it is significant."""
    import numpy as np

    if sum(group.wrong for group in groups) == 0:
        return None
    steps = sorted({group.step for group in groups})
    paid = np.array([group.paid for group in groups], dtype=float)
    wrong = np.array([group.wrong for group in groups], dtype=float)
    places = np.searchsorted(steps, [group.step for group in groups])
    # Where the groups of each step but the first begin: a change lies between two steps.
    begins = np.flatnonzero(np.diff(places)) + 1
    if not len(begins):
        return None
    gains = _gains(paid, wrong, begins)
    best = int(np.argmax(gains))
    if gains[best] <= 0:
        return None
    orders = np.random.default_rng(seed)
    as_large = 0
    for _ in range(NUM_ORDERS // _ORDERS_AT_ONCE):
        order = orders.permuted(np.tile(np.arange(len(paid)), (_ORDERS_AT_ONCE, 1)), axis=1)
        largest = _gains(paid[order], wrong[order], begins).max(axis=1)
        # Rounding must not make an equal gain a smaller one.
        as_large += int((largest >= gains[best] - 1e-9).sum())
    p_value = (1 + as_large) / (1 + NUM_ORDERS)
    if p_value > FALSE_ALARM_RATE:
        return None
    cut = begins[best]
    return Onset(
        step=steps[best + 1],
        share_before=float(wrong[:cut].sum() / paid[:cut].sum()),
        share_after=float(wrong[cut:].sum() / paid[cut:].sum()),
        p_value=float(p_value),
    )


def _gains(paid: "Counts", wrong: "Counts", begins: "NDArray[np.int64]") -> "Counts":
    """Return the gain in log-likelihood of a change at each place; 0 where the share falls.

    The last axis of `paid` and `wrong` are the groups; there may be one before it, of orders.
    """
    import numpy as np

    paid_so_far = np.cumsum(paid, axis=-1)
    wrong_so_far = np.cumsum(wrong, axis=-1)
    paid_before = paid_so_far[..., begins - 1]
    wrong_before = wrong_so_far[..., begins - 1]
    # Of all orders the sums are the same.
    num_paid = paid_so_far[..., -1:]
    num_wrong = wrong_so_far[..., -1:]
    paid_after = num_paid - paid_before
    wrong_after = num_wrong - wrong_before
    gain = (
        _log_likelihood(paid_before, wrong_before)
        + _log_likelihood(paid_after, wrong_after)
        - _log_likelihood(num_paid, num_wrong)
    )
    rises = wrong_after * paid_before > wrong_before * paid_after
    return np.where(rises, gain, 0.0)


def _log_likelihood(paid: "Counts", wrong: "Counts") -> "Counts":
    """Return the binomial log-likelihood of counts at their own share, without its constant."""
    import numpy as np

    right = paid - wrong
    with np.errstate(divide="ignore", invalid="ignore"):
        of_wrong = np.where(wrong > 0, wrong * np.log(wrong / paid), 0.0)
        of_right = np.where(right > 0, right * np.log(right / paid), 0.0)
    return of_wrong + of_right

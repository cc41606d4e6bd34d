"""Which truncated responses go on, and what is counted of them."""

from dataclasses import replace

import pytest
from small_runs import scored

from microcoder.judge.core.types import Outcome, Rollout, Verdict
from microcoder.train.algorithm.continuation import Continued, Fate, choose_truncated, continuation_row, count_continued
from microcoder.train.rollouts import ScoredRollout


def sampled(place: int, advantage: float, lost: float | None = None, *, is_cut: bool = True) -> ScoredRollout:
    """Return a response; with something that was `lost`, be it 0, a masked one."""
    rollout = Rollout(f"problem {place % 5}", "", "text", (1, 2, 3), is_cut)
    masked = {} if lost is None else {"masked_why": "truncated_incomplete", "lost": {"mask": lost}}
    return scored(Outcome.WRONG_ANSWER, rollout=rollout, advantage=advantage, sample_index=place, **masked)


# Masked, masked to no effect, punished, kept.
KINDS = ((0.0, -0.5), (0.0, 0.0), (-0.5, None), (0.5, None))
SAMPLES = [sampled(place, *kind) for place in range(10) for kind in KINDS]
WHOLE = [sampled(place, -1.0, is_cut=False) for place in range(10)]


@pytest.mark.parametrize("most", [0, 1, 3, 10, 11])
def test_so_many_of_each_fate_go_on_and_none_that_ended(most: int) -> None:
    chosen = choose_truncated([*SAMPLES, *WHOLE], most=most, seed=1, step=2)
    row = continuation_row([*SAMPLES, *WHOLE], chosen, chosen, step=2)
    assert row["truncated"] == dict.fromkeys(map(str, Fate), 10)
    assert [one["fate"] for one in row["responses"]] == [str(fate) for fate in Fate for _ in range(min(most, 10))]
    assert all(one.rollout.is_truncated for one in chosen)
    # The draw is one of seed and step, and of no order.
    assert choose_truncated([*WHOLE, *SAMPLES[::-1]], most=most, seed=1, step=2) == chosen
    others = [choose_truncated(SAMPLES, most=most, seed=seed, step=step) for seed, step in ((2, 2), (1, 3))]
    assert most != 3 or all(other != chosen for other in others)


def test_what_could_not_be_judged_is_in_no_share() -> None:
    begun = choose_truncated(SAMPLES, most=2, seed=1, step=1)
    outcomes = [Outcome.ACCEPTED, Outcome.SANDBOX_FAULT] * 4
    ends = [
        replace(one, verdict=Verdict(outcome, (), 1), rollout=replace(one.rollout, is_truncated=False))
        for one, outcome in zip(begun, outcomes, strict=True)
    ]
    rows = [continuation_row(SAMPLES, begun, ends, step=step) for step in (1, 2)]
    assert count_continued(rows) == dict.fromkeys(Fate, Continued(truncated=20, scored=2, ended=2, right=2))

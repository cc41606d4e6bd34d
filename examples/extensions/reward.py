"""A reward of your own, by this line in a recipe:

rewards = ["all_tests", {name = "reward.py:brevity", weight = 0.1}]
"""

from microcoder.judge.core.types import Problem, Program, Rollout, Verdict


def brevity(
    problem: Problem,
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
    *,
    limit: int = 4096,
) -> float:
    """Return 1 for an empty response, 0 for one of `limit` tokens or more."""
    return max(0.0, 1 - len(rollout.token_ids) / limit)

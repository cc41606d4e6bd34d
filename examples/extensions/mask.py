"""A mask of your own, by this line in a recipe:

algorithm.masking = {kind = "own", name = "mask.py:mask_short"}
"""

from microcoder.judge.core.types import Program, Rollout, Verdict


def mask_short(
    rollout: Rollout,
    program: Program,
    verdict: Verdict,
    draw: float,
    *,
    tokens: int = 8,
) -> str | None:
    """Leave out responses of a few tokens.

    `draw` is uniform in [0, 1) and the same after a resume.
    """
    return "too_short" if len(rollout.token_ids) < tokens else None

"""The micro lab world: generated graded problems and demonstrations, for experiments on a laptop.

All of it is in `chains`: problems of a chain of steps on one digit, and responses that think them
through in ways that differ in cost.
"""

from microcoder.data.micro.chains import (
    STYLES,
    TIERS,
    ChainDemonstration,
    ThinkingShares,
    generate_chain_demonstrations,
    generate_problems,
)

__all__ = [
    "STYLES",
    "TIERS",
    "ChainDemonstration",
    "ThinkingShares",
    "generate_chain_demonstrations",
    "generate_problems",
]

"""The micro lab world: generated graded problems and demonstrations, for experiments on a laptop."""

from microcoder.data.micro.chains import (
    STYLES,
    TIERS,
    ChainDemonstration,
    ThinkingShares,
    generate_chain_demonstrations,
    generate_problems,
)

__all__ = [
    "STYLES", "TIERS", "ChainDemonstration", "ThinkingShares", "generate_chain_demonstrations", "generate_problems",
]  # fmt: skip

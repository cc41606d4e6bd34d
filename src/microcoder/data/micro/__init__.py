"""The micro lab world: generated graded problems and demonstrations, for experiments on a laptop."""

from microcoder.data.micro.chains import ThinkingShares, generate_chain_demonstrations
from microcoder.data.micro.demonstrations import Demonstration, DemonstrationNoise, generate_demonstrations
from microcoder.data.micro.operations import STYLES, TEMPLATES, TIERS, Template
from microcoder.data.micro.problems import WORLDS, World, generate_problems

__all__ = [
    "STYLES", "TEMPLATES", "TIERS", "WORLDS", "Demonstration", "DemonstrationNoise", "Template", "ThinkingShares",
    "World", "generate_chain_demonstrations", "generate_demonstrations", "generate_problems",
]  # fmt: skip

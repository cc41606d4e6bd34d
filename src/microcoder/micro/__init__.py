"""The micro lab world: generated graded problems and demonstrations, for experiments on a laptop."""

from microcoder.micro.demonstrations import Demonstration, DemonstrationNoise, generate_demonstrations
from microcoder.micro.problems import generate_problems
from microcoder.micro.templates import STYLES, TEMPLATES, TIERS, Template

__all__ = [
    "STYLES",
    "TEMPLATES",
    "TIERS",
    "Demonstration",
    "DemonstrationNoise",
    "Template",
    "generate_demonstrations",
    "generate_problems",
]

"""Training: the algorithm as pure functions, and the engines that run it. Torch is imported by an engine only."""

from microcoder.training.config import TrainConfig
from microcoder.training.session import run_training

__all__ = ["TrainConfig", "run_training"]

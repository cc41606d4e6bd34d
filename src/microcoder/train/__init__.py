"""Training: the algorithm as pure functions, and the engines that run it. Torch is imported by an engine only."""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.train.recipe.recipe import TrainConfig
    from microcoder.train.run.training import run_training

__all__ = ["TrainConfig", "run_training"]

__getattr__, __dir__ = lazy_names(__name__, {
    "recipe.recipe": ("TrainConfig",),
    "run.training": ("run_training",),
})  # fmt: skip

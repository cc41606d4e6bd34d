"""Training: the algorithm as pure functions, and the engines that run it. Torch is imported by an engine only."""

from typing import TYPE_CHECKING

from microcoder.facade import lend

if TYPE_CHECKING:
    from microcoder.train.recipe.recipe import TrainConfig
    from microcoder.train.run.session import run_training

__all__ = ["TrainConfig", "run_training"]

__getattr__, __dir__ = lend(__name__, {
    "recipe.recipe": ("TrainConfig",),
    "run.session": ("run_training",),
})  # fmt: skip

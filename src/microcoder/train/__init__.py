"""Training: the algorithm as pure functions, and the engines that run it.

`run_training` trains by a `TrainConfig`, the recipe. A run's way through this package:

    recipe/      what can be set, with the published values as defaults
    run/         a run from the recipe's check to its files, whatever the engine
    trl/, verl/  the engines: TRL on one machine, verl on a Ray cluster
    algorithm/   rewards, masks and advantages, the same for every engine
    metrics.py   the rows that a run writes, runs.py the files that they are in

Begin with `algorithm/scoring.py`, which decides about a step's rollouts, and `run/training.py`.
Torch is imported by an engine only.
"""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.train.recipe.recipe import TrainConfig
    from microcoder.train.run.training import run_training

__all__ = ["TrainConfig", "run_training"]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "recipe.recipe": ("TrainConfig",),
        "run.training": ("run_training",),
    },
)

"""`microcoder probe`: choose the sampling temperature from the untrained model."""

from __future__ import annotations

import json as json_module
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from microcoder.cli.options import Json, Overrides, Recipes
from microcoder.cli.train import default_run_directory, load_recipe, require_training
from microcoder.judge.core.errors import ConfigError
from microcoder.train.runs import RunDirectory

if TYPE_CHECKING:
    from microcoder.train.run.probe import Probe


def probe(
    *overrides: Overrides,
    config: Recipes = (),
    run_dir: Path | None = None,
    json: Json = False,
) -> None:
    """Sample the untrained model over a grid of temperatures and choose the one to train at.

    Needs a recipe with `rollout.temperature.kind = "diversity"`. `microcoder train` with the same recipe and folder
    uses the result. Without `-c`, shows the probe stored in the folder.

    Parameters
    ----------
    run_dir
        Folder of the probe; by default that of `microcoder train`.
    """
    if not config and run_dir is None:
        raise ConfigError("nothing to probe; type `microcoder probe -c RECIPE`, or `microcoder probe --run-dir RUN`")
    if config:
        resolved = load_recipe(config, overrides)
        target = run_dir or default_run_directory(config)
        require_training()
        # All three pull in torch or numpy, which the rest of the command line does without.
        from microcoder.cli.progress import Progress
        from microcoder.train.run.session import run_probe

        with Progress() as progress:
            result = run_probe(resolved, run_directory=target, observer=progress)
    else:
        assert run_dir is not None
        target = run_dir
        require_training()
        from microcoder.train.run.probe import read_probe

        result = read_probe(RunDirectory(target))
    print(json_module.dumps(asdict(result)) if json else "\n".join(describe_probe(result)))


def describe_probe(probe: Probe) -> list[str]:
    """Return the probe as lines: the figures of each temperature, what was chosen, and why."""
    lines = ["temperature  accuracy  diversity  length  truncated"]
    for point in probe.points:
        accuracy = "-" if point.accuracy is None else f"{point.accuracy:.3f}"
        diversity = "-" if point.diversity is None else f"{point.diversity:.3f}"
        mark = " <- chosen" if point.temperature == probe.choice.temperature else ""
        lines.append(
            f"{point.temperature:11g}  {accuracy:>8}  {diversity:>9}  {point.length_mean:6.0f}  "
            f"{point.truncated_share:9.1%}{mark}"
        )
    return [*lines, *probe.choice.reasons]

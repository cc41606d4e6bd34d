"""Models sampled over a grid of temperatures, by the probe that chooses a training temperature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from microcoder.config import load_config
from microcoder.insights.features import holding_temperature
from microcoder.insights.jobs import Job, MeasuredValue
from microcoder.training.config import TrainConfig

if TYPE_CHECKING:
    from microcoder.training.probe import Probe


def sweep_temperatures(
    job: Job, *, grid: tuple[float, ...], num_problems: int = 64, converged_diversity: float = 0.7
) -> Iterator[MeasuredValue]:
    """Sample training problems with the untrained model, and with a trained one, at each temperature.

    Metrics, a value a seed: `diversity` of the untrained model, a level a temperature (`T 0.6`); `chosen`, level
    `rule`, the temperature that the rule on diversity takes; `holding_temperature`, levels `untrained` and `trained`,
    the highest at which accuracy keeps 80 % of its best.

    Args:
        job: uses one level, whose final model is the trained one.
        grid: temperatures, ascending.
        num_problems: sampled at each temperature.
        converged_diversity: what the rule compares with, see `DiversityTemperature`.
    """
    untrained, trained = (
        _probe(job, label, keys, grid, num_problems, converged_diversity)
        for label, keys in (("untrained", {}), ("trained", _as_model(next(iter(job.runs.values())) / "model")))
    )
    unit = f"seed{job.seed}"
    yield MeasuredValue("chosen", "rule", unit, untrained.choice.temperature)
    for point in untrained.points:
        if point.diversity is not None:
            yield MeasuredValue("diversity", f"T {point.temperature:g}", unit, point.diversity)
    for label, probe in (("untrained", untrained), ("trained", trained)):
        if (held := holding_temperature([asdict(point) for point in probe.points])) is not None:
            yield MeasuredValue("holding_temperature", label, unit, held)


def _as_model(folder: Path) -> dict[str, Any]:
    return {
        "model": {
            "kind": "hugging_face",
            "path": str(folder.absolute()),
            "compute_dtype": "float32",
            "gradient_checkpointing": False,
        }
    }


def _probe(
    job: Job, label: str, keys: dict[str, Any], grid: Sequence[float], num_problems: int, converged_diversity: float
) -> Probe:
    from microcoder.training.observer import Observer
    from microcoder.training.session import run_probe

    temperature = {
        "kind": "diversity",
        "grid": list(grid),
        "num_problems": num_problems,
        "converged_diversity": converged_diversity,
    }
    # The probe samples under the seed of evaluation, which is one for all runs: here each seed is to sample its own.
    seed = job.config.evaluation.seed + 1000 * job.seed
    layers = [
        job.config.model_dump(mode="json"),
        {**keys, "rollout.temperature": temperature, "evaluation.seed": seed},
    ]
    return run_probe(
        load_config(TrainConfig, layers=layers), run_directory=job.folder / f"probe-{label}", observer=Observer()
    )

"""A study at full scale: one overlay per level, the commands that start its runs, and their cost."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.config import SHIPPED
from microcoder.errors import ConfigError
from microcoder.files import write_text
from microcoder.insights.study import StudyFile, level_keys, resolve_config
from microcoder.training.config import TrainConfig
from microcoder.training.estimate import RunEstimate, estimate_run
from microcoder.training.manifest import digest_config
from microcoder.training.problems_config import ProblemFiles

_UNSAFE = " ,./%"


@dataclass(frozen=True, slots=True)
class RunToStart:
    """A run to start, with all studies that share it."""

    names: list[str]
    overlay: Path
    recipe: Path
    seed: int
    config: TrainConfig
    estimate: RunEstimate

    @property
    def gpu_hours(self) -> float | None:
        """Sampling and updating on one H100, every response as long as allowed."""
        if self.estimate.generate_hours is None or self.estimate.update_hours is None:
            return None
        return self.estimate.generate_hours + self.estimate.update_hours


def write_plan(studies: Sequence[StudyFile], *, scale: str, output: Path, dollars_per_hour: float) -> Path:
    """Write overlays, `launch.sh` and the plan with its costs; return the plan.

    Raises:
        ConfigError: no study has that scale.
    """
    launches: dict[str, RunToStart] = {}
    for file in studies:
        for seed in file.scale(scale).seeds:
            for level in file.study.levels:
                config = resolve_config(file, scale=scale, level=level, seed=seed)
                name, digest = f"{file.name}, {level}", digest_config(config)
                if digest in launches:
                    launches[digest].names.append(name)
                    continue
                overlay = _write_overlay(file, scale=scale, level=level, output=output)
                recipe = Path(os.path.relpath(file.path.parent / file.scale(scale).baseline))
                estimate = estimate_run(config, device="gpu")
                launches[digest] = RunToStart([name], overlay, recipe, seed, config, estimate)
    if not launches:
        raise ConfigError(f"nothing to plan at {scale}")
    write_text(output / "launch.sh", "\n".join(["#!/bin/sh", "set -e", *map(_command, launches.values()), ""]))
    path = output / "plan.md"
    write_text(path, "\n".join(_plan(list(launches.values()), scale, dollars_per_hour)))
    return path


def _write_overlay(file: StudyFile, *, scale: str, level: str, output: Path) -> Path:
    keys = {**file.study.set, **file.scale(scale).set, **level_keys(file.study, scale=scale, level=level)}
    stem = "".join("-" if c in _UNSAFE else c for c in level).strip("-")
    path = output / file.name / f"{stem}.toml"
    lines = [f"# {file.study.question} Level: {level}."]
    write_text(path, "\n".join([*lines, *(f"{key} = {to_toml(value)}" for key, value in keys.items()), ""]))
    return path


def to_toml(value: object) -> str:
    """Return a value of a recipe as TOML."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {to_toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    return json.dumps(value)


def _command(launch: RunToStart) -> str:
    folder = Path("runs") / launch.overlay.parent.name / f"{launch.overlay.stem}-seed{launch.seed}"
    sharding = os.path.relpath(SHIPPED / "recipes" / "accelerate" / "fsdp.yaml")
    words = [
        "accelerate", "launch", "--config_file", sharding, "-m", "microcoder", "train",
        "-c", str(launch.recipe), "-c", str(launch.overlay), "--seed", str(launch.seed), "--run-dir", str(folder),
    ]  # fmt: skip
    return shlex.join(words)


def _plan(launches: Sequence[RunToStart], scale: str, dollars_per_hour: float) -> list[str]:
    known = [hours for launch in launches if (hours := launch.gpu_hours) is not None]
    judging = sum(launch.estimate.judge_core_hours for launch in launches)
    rows = [
        "| run | seed | steps | rollouts | tokens, at most | H100-hours, at most | dollars |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for launch in launches:
        hours, estimate = launch.gpu_hours, launch.estimate
        cost = ["-", "-"] if hours is None else [f"{hours:,.0f}", f"{hours * dollars_per_hour:,.0f}"]
        cells: list[Any] = [
            "; ".join(launch.names), launch.seed, estimate.num_steps, f"{estimate.rollouts:,}",
            f"{estimate.max_tokens:,}", *cost,
        ]  # fmt: skip
        rows.append(f"| {' | '.join(map(str, cells))} |")
    problems = [launch.config.problems for launch in launches]
    files = sorted({str(path) for p in problems if isinstance(p, ProblemFiles) for path in (p.train, p.heldout)})
    return [
        f"# Launch plan at {scale}",
        "",
        f"{len(launches)} distinct runs, at most {sum(known):,.0f} H100-hours "
        f"({sum(known) * dollars_per_hour:,.0f} dollars at {dollars_per_hour:g} an hour) and {judging:,.0f} "
        "core-hours of judging. Every response is counted at its limit, and speeds are assumptions "
        "(docs/resources.md): a bound for planning, no measurement.",
        "",
        f"Needed first: {', '.join(files) or 'nothing'}. Then `sh launch.sh`, or its lines one by one on as many nodes "
        "as there are; a line that is run again resumes its run.",
        "",
        *rows,
        "",
    ]

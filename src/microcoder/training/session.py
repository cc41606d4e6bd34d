"""A run, whole: start or resume, train by an engine, finish. One function, `run_training`, read top to bottom."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from microcoder.dataset import read_problems
from microcoder.errors import ConfigError, TrainingError
from microcoder.evaluator import Judge
from microcoder.micro import generate_problems
from microcoder.runs import RunDirectory, write_json
from microcoder.training.checkpoints import STAGING, export_model, read_clock
from microcoder.training.clocks import RunClock
from microcoder.training.config import MicroProblems, TrainConfig
from microcoder.training.manifest import build_manifest, changed_keys
from microcoder.training.observer import Observer
from microcoder.training.prompts import build_prompt
from microcoder.types import Problem, Prompt

ENGINES = {"trl": "microcoder.training.engines.trl.engine"}


@dataclass(frozen=True, slots=True)
class Task:
    """A problem and the prompt that asks it."""

    problem: Problem
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class Tasks:
    """What is trained on, and what accuracy is measured on."""

    train: Sequence[Task]
    heldout: Sequence[Task]


class Engine(Protocol):
    """What an engine module offers; it translates, and decides nothing."""

    def describe_machine(self) -> dict[str, Any]:
        """Return what the results may depend on: devices, threads."""

    def prepare_model(self, config: TrainConfig, *, observer: Observer) -> str:
        """Return the folder or hub id of the starting weights, built or checked."""

    def train(
        self,
        config: TrainConfig,
        *,
        model: str,
        tasks: Tasks,
        judge: Judge,
        run: RunDirectory,
        run_clock: RunClock,
        resume_step: int | None,
        observer: Observer,
    ) -> None:
        """Run the steps that are missing."""


def run_training(
    config: TrainConfig, *, run_directory: Path, observer: Observer, command: Sequence[str] = ()
) -> dict[str, Any]:
    """Train, or go on with a run that was cut off; return its summary.

    Nothing is written before the config, the problems and the model have been checked.

    Raises:
        ConfigError: the config contradicts the machine or the problems.
        DataError: the problem files or the model folder are wrong.
        TrainingError: the folder holds a run under another config, or training diverged.
        KeyboardInterrupt: stopped by the user; the run can be resumed.
    """
    run = RunDirectory(run_directory)
    check_run_directory(run, config)
    if (summary := run.read_summary()) is not None:
        observer.note(f"{run.root} is finished already; its summary and report are there")
        return summary
    tasks = load_tasks(config)
    engine: Engine = import_module(ENGINES[config.engine])  # type: ignore[assignment]
    model = engine.prepare_model(config, observer=observer)
    with Judge(
        workers=config.evaluator.workers,
        stop=config.evaluator.stop,
        allow_degraded=config.evaluator.allow_degraded_sandbox,
    ) as judge:
        resume_step = _open_run(run, config, command=command, engine=engine, judge=judge, observer=observer)
        run_clock = RunClock(**(read_clock(run, resume_step) if resume_step else {}))
        if resume_step != config.num_steps:
            engine.train(
                config,
                model=model,
                tasks=tasks,
                judge=judge,
                run=run,
                run_clock=run_clock,
                resume_step=resume_step,
                observer=observer,
            )
    export_model(run.checkpoint(config.num_steps), run.model)
    summary = summarise(run, run_clock)
    write_json(run.summary, summary)
    return summary


def load_tasks(config: TrainConfig) -> Tasks:
    """Return the problems of a config with their prompts."""
    problems = config.problems
    if isinstance(problems, MicroProblems):
        train, heldout = (
            generate_problems(
                split=split, num_problems=number, seed=problems.seed, tiers=problems.tiers, styles=problems.styles
            )
            for split, number in (("train", problems.num_train), ("heldout", problems.num_heldout))
        )
    else:
        train, heldout = read_problems(problems.train), read_problems(problems.heldout)
    if config.batch.train_batch_size > len(train):
        raise ConfigError(
            f"batch.train_batch_size={config.batch.train_batch_size} is more than the {len(train)} training problems; "
            "lower it or add problems"
        )
    return Tasks(*([Task(p, build_prompt(p, style=config.prompt_style)) for p in split] for split in (train, heldout)))


def check_run_directory(run: RunDirectory, config: TrainConfig) -> None:
    """Refuse a folder that holds something else than this run.

    Raises:
        TrainingError: which keys differ, and what to type.
    """
    if run.manifest.exists():
        if changes := changed_keys(run.read_manifest()["config"], config):
            raise TrainingError(
                f"{run.root} holds a run under another config ({'; '.join(changes)}); "
                f"use the same config to go on with it, or another --run-dir"
            )
    elif run.root.exists() and any(run.root.iterdir()):
        raise TrainingError(f"{run.root} is not empty and holds no run (no manifest.json); use another --run-dir")


def summarise(run: RunDirectory, clock: RunClock) -> dict[str, Any]:
    """Return the summary of a run whose last step is done."""
    evaluations = run.read_evaluations()
    before, after = evaluations[0], evaluations[-1]
    return {
        "accuracy_before": before["accuracy"],
        "accuracy_after": after["accuracy"],
        "accuracy_before_by_tier": before["accuracy_by_tier"],
        "accuracy_after_by_tier": after["accuracy_by_tier"],
        "num_problems": after["num_problems"],
        "samples_per_problem": after["samples_per_problem"],
        "num_unscored": before["num_unscored"] + after["num_unscored"],
        "num_steps": after["step"],
        **clock.read(),
    }


def _open_run(
    run: RunDirectory,
    config: TrainConfig,
    *,
    command: Sequence[str],
    engine: Engine,
    judge: Judge,
    observer: Observer,
) -> int | None:
    """Write the manifest of a new run, or cut an interrupted one back to its last checkpoint; return that step."""
    if not run.manifest.exists():
        manifest = build_manifest(
            config,
            name=run.root.name,
            command=command,
            machine=engine.describe_machine(),
            isolation=judge.isolation.as_record(),
        )
        write_json(run.manifest, manifest)
        return None
    shutil.rmtree(run.checkpoints / STAGING, ignore_errors=True)
    steps = run.checkpoint_steps()
    run.rewind(steps[-1] if steps else -1)
    observer.note(f"going on with {run.root} after step {steps[-1]}" if steps else f"starting {run.root} again")
    return steps[-1] if steps else None

"""`microcoder train`: train a model by a recipe. `microcoder init`: write a recipe."""

from __future__ import annotations

import importlib.util
import json as json_module
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.types import PositiveFloat

from microcoder.cli.display import (
    Flag,
    Json,
    LineDisplay,
    Overrides,
    Recipes,
    describe_seconds,
    parse_overrides,
    print_resolved,
)
from microcoder.judge.core.config import find_recipe, load_config, name_recipe
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.machine import how_to_install
from microcoder.train.metrics import EvaluationMetrics, StepMetrics, describe_row
from microcoder.train.recipe.recipe import (
    HuggingFaceModel,
    TrainConfig,
    count_verl_devices,
    describe_batches,
)
from microcoder.train.run import estimate
from microcoder.train.run.checkpoints import Observer, model_folder
from microcoder.train.run.manifest import check_run_directory, find_extensions
from microcoder.train.run.preflight import describe_machine_faults, find_faults
from microcoder.train.run.starter import Wishes, write_recipe
from microcoder.train.runs import RunDirectory

if TYPE_CHECKING:
    from microcoder.train.run.probe import Probe


def train(
    *overrides: Overrides,
    config: Recipes = (),
    run_dir: Path | None = None,
    dry_run: Flag = False,
    gpu_memory_gib: PositiveFloat | None = None,
    look: Flag = False,
    json: Json = False,
) -> None:
    """Train a model by a recipe; the same command resumes an interrupted run.

    Any key of the recipe can be given as a flag: `--algorithm.masking.rho 0.2`.

    Parameters
    ----------
    run_dir
        Output folder; by default runs/ and the recipes' names: runs/micro-dapo for -c micro -c
        dapo.
    dry_run
        Print the resolved config with its cost in tokens, memory and disk, and stop. Exit code 2 if
        the model or the problems are missing, or the folder is another's; a run that may not fit
        the GPU is warned of.
    gpu_memory_gib
        With --dry-run: memory of one GPU, such as 79.6 for an H100; by default that of this
        machine's first GPU.
    look
        With --dry-run: sample 32 training problems by the untrained model, as often as a step does,
        judge them, and say whether it can learn from them. Takes as long as half a step.
    """
    if not config:
        # Who types `train micro` meant a recipe.
        recipe = overrides[0] if overrides and not overrides[0].startswith("-") else "RECIPE"
        raise ConfigError(f"no recipe; type: microcoder train -c {recipe}")
    resolved = load_config(TrainConfig, config, parse_overrides(overrides))
    target = run_dir or default_run_directory(config)
    if dry_run and json:
        raise ConfigError("--json is of a run that ended; leave out --dry-run, or --json")
    if dry_run:
        _print_dry_run(resolved, target, gpu_memory_gib=gpu_memory_gib)
        if look:
            _print_look(resolved)
        return
    if look:
        raise ConfigError("--look belongs to a dry run; add --dry-run, or leave it out")
    if gpu_memory_gib is not None:
        raise ConfigError(
            "--gpu-memory-gib applies to a dry run only; add --dry-run, or leave it out"
        )
    require_training()
    # Under `accelerate launch` one process speaks for all.
    is_first = int(os.environ.get("RANK", "0")) == 0
    if is_first:
        # On a cold disk the imports take half a minute.
        print("microcoder: loading torch and the trainer", file=sys.stderr, flush=True)
    # Both pull in torch, which the rest of the command line does without.
    from microcoder.train.run.training import run_training
    from microcoder.view import write_report

    command = ["microcoder", *sys.argv[1:]]
    observer = RunDisplay() if is_first else Observer()
    summary = run_training(resolved, run_directory=target, observer=observer, command=command)
    if is_first and json:
        record = {"output": str(target), "report": str(write_report(target)), **summary}
        print(json_module.dumps(record))
    elif is_first:
        print(
            f"held-out accuracy {summary['accuracy_before']:.1%} -> "
            f"{summary['accuracy_after']:.1%} ({summary['num_problems']} problems x "
            f"{summary['samples_per_problem']} samples), {summary['num_steps']} steps in "
            f"{summary['wall_seconds']:.0f} s; report: {write_report(target)}"
        )


def default_run_directory(config: Sequence[Path]) -> Path:
    """Return runs/ and the recipes' names, joined: runs/micro-dapo of `-c micro -c dapo`."""
    return Path("runs") / "-".join(name_recipe(find_recipe(path)) for path in config)


def require_training() -> None:
    """Raise ConfigError unless TRL is installed."""
    if importlib.util.find_spec("trl") is None:
        raise ConfigError(
            "training needs torch and TRL, which are not installed; type: "
            f"{how_to_install('train')}"
        )


# ----- A dry run.


def _print_dry_run(config: TrainConfig, target: Path, *, gpu_memory_gib: float | None) -> None:
    """Print the resolved config, what it costs, and what keeps it from starting."""
    # Before the costs, which are of no use for a folder that is another run's.
    check_run_directory(RunDirectory(target), config)
    find_extensions(config)
    # Weights and optimizer are sharded by verl, or as `accelerate launch` was told.
    num_processes = int(os.environ.get("WORLD_SIZE", "1"))
    num_shards = num_processes if _is_sharded() else 1
    command = None
    if config.engine == "verl":
        from microcoder.train.verl.translate import describe_command, translate

        num_processes = count_verl_devices(config)
        num_shards = num_processes
        command = describe_command(translate(config, RunDirectory(target)))
    device_gib = None
    if config.model.kind == "hugging_face":
        device_gib = gpu_memory_gib
        if device_gib is None:
            device_gib = estimate.detect_device_gib()
    table = estimate.count_memory(config, device_memory_gib=device_gib, num_shards=num_shards)
    # Looked for first, and raised last: the costs are of use all the same.
    faults = find_faults(config)
    print_resolved(config.model_dump(mode="json"))
    lines = ["", *describe_batches(config, num_processes=num_processes)]
    lines += estimate.describe_run(config)
    print("\n".join(lines))
    _print_memory(config, table, is_counted_for="each GPU" if num_shards > 1 else "one device")
    if isinstance(config.model, HuggingFaceModel) and model_folder(config.model.path) is None:
        print(
            f"model {config.model.path} is not a local folder: taken as a Hugging Face Hub id, "
            "not checked"
        )
    for lack in describe_machine_faults(config):
        print(f"this machine cannot start it: {lack}")
    print(f"disk: {estimate.describe_disk(config, target)}")
    if command:
        print(f"\nthe verl command (its data files are written when the run starts):\n{command}\n")
    print(f"the run would be written to {target}")
    if faults:
        raise ConfigError(f"this cannot start: {'; '.join(faults)}")
    if table is not None and table.fits is False:
        _warn_of_memory(config, table)


def _is_sharded() -> bool:
    """Whether `accelerate launch` was told to shard the weights."""
    names = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED")
    return any(os.environ.get(name) == "true" for name in names)


def _print_memory(
    config: TrainConfig, table: estimate.MemoryTable | None, *, is_counted_for: str
) -> None:
    if table is None:
        print("memory: not estimated, the model's shape is unknown (no config.json, no known name)")
        return
    print("\n".join(estimate.describe_memory(table, config, is_counted_for=is_counted_for)))
    if table.device_gib is None and config.model.kind == "hugging_face":
        print("no GPU on this machine: add --gpu-memory-gib 79.6 (an H100) to check that it fits")


def _warn_of_memory(config: TrainConfig, table: estimate.MemoryTable) -> None:
    """Print what does not fit into memory, and what would make it smaller."""
    assert table.device_gib is not None
    if table.total <= table.device_gib:
        lacks = "vLLM's share of the memory is too small for one full response"
    else:
        lacks = f"it needs {table.total:.1f} GiB, the GPU has {table.device_gib:.1f}"
    advice = estimate.how_to_shrink(config)
    print(
        f"microcoder: this may not fit: {lacks} (by formula, docs/resources.md); {advice}",
        file=sys.stderr,
    )


def _print_look(config: TrainConfig) -> None:
    require_training()
    # Pulls in torch, which a dry run does without.
    from microcoder.train.run.training import look_before_training

    print("\n".join(["", *look_before_training(config, observer=RunDisplay())]))


class RunDisplay(LineDisplay, Observer):
    """Prints a line for each step, evaluation and message of a training run to stderr."""

    def phase(self, name: str, *, done: int = 0, total: int = 0) -> None:
        """Note what the next batches are sampled for, to name it in their lines."""
        self._sampled_for = {"evaluate": "held-out", "probe": "probe"}.get(name, "sampling")

    def step(self, metrics: StepMetrics, *, num_steps: int) -> None:
        """Show a finished training step."""
        seconds = metrics.seconds
        total = seconds.get("total", sum(seconds.values()))
        phases = [f"{name} {value:.1f}" for name, value in seconds.items() if name != "total"]
        duration = f"{total:.1f} s"
        if phases:
            duration += f" ({', '.join(phases)})"
        left = f"left {describe_seconds(total * max(0, num_steps - metrics.step))}"
        parts = [f"step {metrics.step}/{num_steps}", *describe_row(metrics), duration, left]
        self.note("  ".join(parts))

    def evaluation(self, metrics: EvaluationMetrics) -> None:
        """Show a finished evaluation on held-out problems."""
        self.note("  ".join([f"held-out after step {metrics.step}", *describe_row(metrics)]))

    def probe(self, probe: Probe) -> None:
        """Show which temperature was chosen for the run, and why."""
        for reason in probe.choice.reasons:
            self.note(reason)
        self.note(f"training at temperature {probe.choice.temperature:g}")


def init(
    *,
    wishes: Annotated[Wishes, Parameter(name="*")],
    out: Path = Path("recipe.toml"),
    json: Json = False,
) -> None:
    """Write a recipe for your own model and problems, with the default settings and what fits your
    GPU.

    Parameters
    ----------
    out
        The recipe file; an existing file is not overwritten.
    """
    # It may have been edited.
    if out.exists():
        raise ConfigError(f"{out} already exists; choose another --out, or remove it first")
    # On one line: it stands in a comment of the recipe.
    command = shlex.join(["microcoder", *sys.argv[1:]]).replace("\n", " ")
    text = write_recipe(wishes, command=command)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text, encoding="utf-8")
    train_it = f"microcoder train -c {shlex.quote(str(out))}"
    verl_command = None
    if wishes.engine == "verl":
        from microcoder.train.verl.translate import describe_command, translate

        run = RunDirectory(default_run_directory((out,)))
        options = translate(load_config(TrainConfig, (out,)), run)
        verl_command = describe_command(options)
    if json:
        record = {"output": str(out), "train": train_it, "verl_command": verl_command}
        print(json_module.dumps(record))
        return
    if verl_command is not None:
        print(f"`{train_it}` writes the problems for verl, and runs:")
        print(verl_command)
    print(f"wrote {out}; to see what the run costs: {train_it} --dry-run")

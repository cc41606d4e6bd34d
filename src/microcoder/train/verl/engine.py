"""The verl engine: checks a recipe, writes its data for verl, launches stock verl with our plug-in and watches it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from huggingface_hub import snapshot_download
from transformers import GenerationConfig, PreTrainedTokenizerBase

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.files import write_parquet
from microcoder.judge.core.installation import how_to_install
from microcoder.train.algorithm.schedules import order_problems
from microcoder.train.recipe.batching import cut_batches
from microcoder.train.recipe.recipe import TrainConfig, require_optimizer
from microcoder.train.run.chat import check_options, encode_prompts, end_token_ids
from microcoder.train.run.checkpoints import RunClock, copy_model
from microcoder.train.run.engines import EngineInputs
from microcoder.train.run.observer import Observer
from microcoder.train.run.probe import probe_digest
from microcoder.train.run.tasks import Task, Tasks
from microcoder.train.run.warm import find_model
from microcoder.train.run.weights import load_tokenizer, silence_transformers
from microcoder.train.runs import RunDirectory
from microcoder.train.verl.devices import CPU, Devices, await_devices, find_devices
from microcoder.train.verl.launch import build_environment, run_verl
from microcoder.train.verl.settings import RunSettings
from microcoder.train.verl.translate import Launch, Place, check, translate

SOURCE = "microcoder"
_TEXT = pa.string()
_SCHEMA = pa.schema(
    {
        "data_source": _TEXT,
        "prompt": pa.list_(pa.struct({"role": _TEXT, "content": _TEXT})),
        "ability": _TEXT,
        "reward_model": pa.struct({"style": _TEXT, "ground_truth": _TEXT}),
        "extra_info": pa.struct({"index": pa.int64(), "problem_id": _TEXT, "language": _TEXT, "split": _TEXT}),
    }
)


def write_data(config: TrainConfig, tasks: Tasks, folder: Path) -> None:
    """Write `train.parquet`, `heldout.parquet` and `problems.jsonl`.

    Rows name their problem: its tests would otherwise travel with every sample. What each step asks is in the order of
    the training rows, the same on every engine.
    """
    order = order_problems(
        len(tasks.train),
        num_steps=config.num_steps,
        train_batch_size=config.batch.train_batch_size,
        seed=config.seed,
    )
    folder.mkdir(parents=True, exist_ok=True)
    write_parquet(folder / "train.parquet", _rows(tasks.train, order, split="train"), _SCHEMA)
    write_parquet(folder / "heldout.parquet", _rows(tasks.heldout, range(len(tasks.heldout)), split="heldout"), _SCHEMA)
    with (folder / "problems.jsonl").open("w", encoding="utf-8") as file:
        for problem in tasks.problems:
            file.write(problem.model_dump_json() + "\n")


def _rows(tasks: Sequence[Task], order: Sequence[int], *, split: str) -> list[dict[str, Any]]:
    return [
        {
            "data_source": SOURCE,
            "prompt": tasks[index].prompt.as_chat(),
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {
                "index": index,
                "problem_id": tasks[index].problem.id,
                "language": tasks[index].problem.language,
                "split": split,
            },
        }
        for index in order
    ]


@dataclass(frozen=True, slots=True)
class StartingWeights:
    """The starting weights' folder, and their tokenizer."""

    folder: str
    tokenizer: PreTrainedTokenizerBase
    end_ids: tuple[int, ...]
    """Tokens that end a response."""


def is_main_process() -> bool:
    """Return whether this process writes the run's files: the others are verl's."""
    return True


def wait_for_everyone() -> None:
    """Wait for nobody."""


def describe_machine(config: TrainConfig) -> dict[str, Any]:
    """Return what the results may depend on: devices, processes and threads."""
    devices = find_devices(config.ray)
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"gpus": gpus, "num_processes": devices.number, "num_threads": torch.get_num_threads()}


def load_policy(config: TrainConfig, *, observer: Observer) -> StartingWeights:
    """Find the starting weights, and check that verl takes the recipe; the micro lab's are built when not cached."""
    if config.cpu_threads is not None:
        torch.set_num_threads(config.cpu_threads)
    silence_transformers()
    if find_spec("verl") is None or find_spec("transfer_queue") is None:
        raise ConfigError(f"engine = 'verl' needs verl, which is not installed; type: {how_to_install('train,verl')}")
    devices = find_devices(config.ray)
    cut_batches(config, num_processes=devices.number)
    require_optimizer(config.optimizer)
    _require_packages(config, devices)
    source = find_model(config, observer)
    local = Path(source).is_dir()
    folder = str(Path(source).absolute()) if local else snapshot_download(source, revision=config.weights.revision)
    tokenizer = load_tokenizer(folder)
    check_options(tokenizer, config.prompt.chat_template_options)
    try:
        generation: GenerationConfig | None = GenerationConfig.from_pretrained(folder)
    except OSError:
        generation = None
    check(translate(config, devices=devices, place=Place(RunDirectory(Path("runs/new")), folder, 1)))
    return StartingWeights(folder, tokenizer, tuple(end_token_ids(tokenizer, generation)))


def _require_packages(config: TrainConfig, devices: Devices) -> None:
    backend = config.rollout.backend
    if devices.kind == CPU:
        if "VERL_USE_EXTERNAL_MODULES" not in os.environ:
            raise ConfigError(
                'ray.device = "cpu", which verl 0.9.1 does not know; leave it out, or name the module that teaches it '
                "in VERL_USE_EXTERNAL_MODULES (docs/cluster.md has that of our tests)"
            )
        return
    if backend != "transformers" and find_spec(backend) is None:
        raise ConfigError(
            f"rollout.backend = '{backend}', but it is not installed; make an environment of its own on GPU machines, "
            f"as verl pins another torch for {backend} than the extra `train`: "
            f"{how_to_install('insights', f'verl[{backend}]==0.9.1')}"
        )
    if config.weights.attn_implementation is None and find_spec("flash_attn") is None:
        raise ConfigError(
            "verl computes without padding by flash_attn, which is not installed; type: pip install flash-attn "
            "--no-build-isolation, or pass --model.attn-implementation sdpa (padded: slower, and more memory)"
        )


def plan_launch(
    config: TrainConfig,
    *,
    policy: StartingWeights,
    tasks: Tasks,
    run: RunDirectory,
    resume_step: int | None = None,
    settings: RunSettings | None = None,
) -> Launch:
    """Return what `train` launches, checked by hydra and verl."""
    prompts = [task.prompt for task in (*tasks.train, *tasks.heldout)]
    encoded = encode_prompts(policy.tokenizer, prompts, config.prompt.chat_template_options)
    step, every = resume_step or 0, config.evaluation.every_steps
    evaluated = {row["step"] for row in run.read_evaluations()} if run.evaluations.exists() else set()
    place = Place(
        run,
        policy.folder,
        max(map(len, encoded)),
        resume_step=resume_step,
        validates_first=step % every == 0 and step not in evaluated and not (settings and settings.probe_only),
        settings=settings or RunSettings(),
    )
    launch = translate(config, devices=find_devices(config.ray), place=place)
    check(launch)
    return launch


def train(inputs: EngineInputs, *, run_clock: RunClock, resume_step: int | None, callbacks: Sequence[Any] = ()) -> None:
    """Run the steps that are missing.

    Raises:
        ConfigError: there are callbacks; verl has none.
        KeyboardInterrupt: the user asked to stop; the last whole step was saved.
    """
    if callbacks:
        raise ConfigError("engine verl takes no callbacks; leave them out, or use --engine trl")
    settings = RunSettings(probe_digest=probe_digest(inputs.config), **run_clock.read())
    _launch(inputs, resume_step=resume_step, settings=settings)
    if inputs.run.latest_checkpoint_step() != inputs.config.num_steps:
        raise KeyboardInterrupt


def probe(inputs: EngineInputs) -> None:
    """Probe the untrained model and record the temperature that was chosen; train nothing."""
    settings = RunSettings(probe_digest=probe_digest(inputs.config), probe_only=True)
    _launch(inputs, resume_step=None, settings=settings)


def _launch(inputs: EngineInputs, *, resume_step: int | None, settings: RunSettings) -> None:
    config, tasks, run, observer = inputs.config, inputs.tasks, inputs.run, inputs.observer
    launch = plan_launch(config, policy=inputs.policy, tasks=tasks, run=run, resume_step=resume_step, settings=settings)
    write_data(config, tasks, run.root / "verl")
    devices = find_devices(config.ray)
    await_devices(config.ray, devices, observer=observer)
    # The last bits of a matrix product depend on the number of threads: those of the first start hold.
    machine = run.read_manifest()["machine"] if run.manifest.exists() else describe_machine(config)
    num_threads = machine["num_threads"] if devices.kind == CPU else config.cpu_threads
    run_verl(
        launch,
        run=run,
        config=config,
        environment=build_environment(num_threads=num_threads),
        observer=observer,
    )


def export_model(config: TrainConfig, *, policy: StartingWeights, checkpoint: Path, target: Path) -> None:
    """Write a checkpoint as an ordinary Hugging Face folder."""
    copy_model(checkpoint, target)

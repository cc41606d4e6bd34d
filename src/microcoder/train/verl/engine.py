"""The verl engine: what a run calls to train by verl.

It writes a recipe's data for verl, runs verl's command, and shows the rows that our plug-in writes.
"""

import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoTokenizer

from microcoder.data.release.problems import write_problems
from microcoder.judge.core.errors import ConfigError, TrainingError
from microcoder.judge.core.files import write_json, write_parquet
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.fleet.ray import allow_slow_start
from microcoder.train.metrics import EvaluationMetrics
from microcoder.train.recipe.recipe import (
    LoraAdapter,
    TrainConfig,
    choose_dtype,
    count_verl_devices,
    require_optimizer,
)
from microcoder.train.rollouts import Chat
from microcoder.train.run.checkpoints import Observer, RunClock, copy_model
from microcoder.train.run.probe import read_probe
from microcoder.train.run.recorder import Recorder
from microcoder.train.run.tasks import EngineInputs, Task, Tasks, order_problems
from microcoder.train.run.warm import find_model
from microcoder.train.run.weights import encode_chats, silence_transformers
from microcoder.train.runs import RunDirectory, read_steps
from microcoder.train.verl.translate import as_words, translate

POLL_SECONDS = 0.5
"""Time between two looks at what verl has written."""
PATIENCE_SECONDS = 20.0
"""Time that verl's processes have to end by themselves before they are killed."""
SOURCE = "microcoder"
"""Name of the data set in our rows."""
_OWN_ERRORS = ("ConfigError", "DataError", "EvaluatorFault", "TrainingError")
"""Names of MicroCoder's errors, whose text says what to do."""
_DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG: option of prctl for the signal that a process gets as its parent dies."""


def write_data(config: TrainConfig, tasks: Tasks, folder: Path) -> None:
    """Write the data that verl reads: `train.parquet`, `heldout.parquet` and `problems.jsonl`.

    Rows hold only the problem's id: its tests would otherwise travel with every sample. The
    training rows are in the order in which the steps sample them, the same on every engine.
    """
    order = order_problems(
        len(tasks.train),
        num_steps=config.num_steps,
        train_batch_size=config.batch.train_batch_size,
        seed=config.seed,
    )
    if config.algorithm.problem_choice == "active":
        # All can be chosen.
        order += sorted(set(range(len(tasks.train))) - set(order))
    folder.mkdir(parents=True, exist_ok=True)
    write_parquet(folder / "train.parquet", _rows(tasks.train, order, split="train"))
    write_parquet(
        folder / "heldout.parquet", _rows(tasks.heldout, range(len(tasks.heldout)), split="heldout")
    )
    write_problems(folder / "problems.jsonl", tasks.problems)


def _rows(tasks: Sequence[Task], order: Sequence[int], *, split: str) -> list[dict[str, Any]]:
    """Return verl's rows of some tasks, by their indices."""
    rows = []
    for index in order:
        problem = tasks[index].problem
        row = {
            "data_source": SOURCE,
            "prompt": tasks[index].prompt.as_chat(),
            "ability": "code",
            "reward_model": {"style": "rule", "ground_truth": ""},
            "extra_info": {
                "index": index,
                "problem_id": problem.id,
                "language": problem.language,
                "split": split,
            },
        }
        rows.append(row)
    return rows


def is_main_process() -> bool:
    """Return True: this process writes the run's files. All other processes are verl's."""
    return True


def wait_for_everyone() -> None:
    """Return at once: there is only this process of ours. All others are verl's."""


def describe_machine(config: TrainConfig) -> dict[str, Any]:
    """Return the machine's properties that results may depend on: devices, processes, threads."""
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "gpus": gpus,
        "num_processes": count_verl_devices(config),
        "num_threads": torch.get_num_threads(),
        "compute_dtype": choose_dtype(config.weights.compute_dtype, on_gpu=True),
    }


def load_policy(config: TrainConfig, *, observer: Observer) -> str:
    """Return the folder or Hub id of the starting weights.

    The micro lab's are built first if they are not cached. Raises ConfigError if verl is not
    installed, or lacks a setting of the recipe.
    """
    silence_transformers()
    if find_spec("verl") is None or find_spec("transfer_queue") is None:
        raise ConfigError(
            "engine = 'verl' needs verl, which is not installed; type: "
            f"{how_to_install('train,verl')}"
        )
    # Its package must be here, where verl's processes start.
    require_optimizer(config.optimizer)
    source = find_model(config, observer)
    model = str(Path(source).absolute()) if Path(source).is_dir() else source
    # Only to find out, before anything is written, what verl lacks.
    translate(config, RunDirectory(Path("runs/new")), model=model)
    return model


def encode_prompts(config: TrainConfig, policy: str, chats: Sequence[Chat]) -> list[list[int]]:
    """Return the token ids of prompts, as the model is given them."""
    tokenizer: Any = AutoTokenizer.from_pretrained(policy)
    return encode_chats(tokenizer, chats, config.prompt.chat_template_options)


def train(
    inputs: EngineInputs,
    *,
    run_clock: RunClock,
    resume_step: int | None,
    callbacks: Sequence[Any] = (),
) -> None:
    """Run verl's command, which resumes from its own latest checkpoint.

    Ctrl-C ends it; TrainingError if it fails.
    """
    config = inputs.config
    run = inputs.run
    if callbacks:
        raise ConfigError("engine verl takes no callbacks; leave them out, or use --engine trl")
    write_data(config, inputs.tasks, run.root / "verl")
    words = as_words(translate(config, run, model=inputs.policy))
    # Workers fork, and tokenizers warn of it; hydra's errors should be whole.
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false", "HYDRA_FULL_ERROR": "1"}
    if config.cpu_threads is not None:
        environment["OMP_NUM_THREADS"] = str(config.cpu_threads)
    allow_slow_start(environment)
    run.logs.mkdir(parents=True, exist_ok=True)
    log_file = run.logs / "verl.log"
    inputs.observer.phase("start verl")
    display = _Display(inputs)
    with log_file.open("ab") as log:
        begins = log.tell()
        # As one would type it: verl wants to be the main module of its process.
        process = subprocess.Popen(
            [sys.executable, "-m", "verl.trainer.main_ppo", *words],
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=_die_with_parent,
        )
        try:
            while process.poll() is None:
                display.update()
                time.sleep(POLL_SECONDS)
        finally:
            _end(process)
    display.update()
    if process.returncode:
        cause = find_cause(log_file, begins) or f"it ended with code {process.returncode}"
        raise TrainingError(
            f"verl failed: {cause}; its log is {log_file}; the same command resumes from the last "
            "checkpoint"
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process that has not ended by itself: ask first, then kill."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def export_model(config: TrainConfig, *, policy: str, checkpoint: Path, target: Path) -> None:
    """Write a checkpoint as an ordinary Hugging Face folder.

    An adapter is added to the weights that it adapts.
    """
    copy_model(checkpoint, target)
    files = sorted(target.glob("*.safetensors"))
    tensors: dict[str, torch.Tensor] = {}
    for file in files:
        tensors |= load_file(str(file))
    # verl builds the model it saves with in bfloat16 and says so in the config, whatever type the
    # weights have.
    described = json.loads((target / "config.json").read_text(encoding="utf-8"))
    described["dtype"] = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    write_json(target / "config.json", described)
    if config.weights.lora is None:
        return
    merged = _merge_adapters(tensors, config.weights.lora)
    for file in (*files, target / "model.safetensors.index.json"):
        file.unlink(missing_ok=True)
    save_file(merged, str(target / "model.safetensors"), metadata={"format": "pt"})


def _merge_adapters(
    tensors: Mapping[str, torch.Tensor], lora: LoraAdapter
) -> dict[str, torch.Tensor]:
    """Return a model's own weights under its own names, with the adapters' changes added."""
    merged = {}
    for name, tensor in tensors.items():
        # They are added to the weights that they adapt.
        if ".lora_" in name:
            continue
        if ".base_layer." in name:
            down = tensors.get(name.replace(".base_layer.", ".lora_A.default."))
            up = tensors.get(name.replace(".base_layer.", ".lora_B.default."))
            if down is not None and up is not None:
                change = lora.alpha / lora.rank * (up.float() @ down.float())
                tensor = (tensor.float() + change).to(tensor.dtype)
        own_name = name.removeprefix("base_model.model.").replace(".base_layer.", ".")
        merged[own_name] = tensor.contiguous()
    return merged


def find_cause(log_file: Path, begins: int) -> str | None:
    """Return the last error in a log from byte `begins` on; None without any.

    An error of MicroCoder's own comes first, wherever it is.
    """
    with log_file.open("rb") as file:
        # Earlier attempts have written to the same log.
        file.seek(begins)
        # Without the colours that Ray gives its lines.
        text = re.sub(r"\x1b\[\d+m", "", file.read().decode("utf-8", "replace"))
    # Behind the process that Ray names, and the module of the error.
    errors = re.findall(
        r"(?m)^(?:\(.*?\) ?)?(?:[\w.]+\.)?(\w*(?:Error|Fault|Exception)): (.+)", text
    )
    if not errors:
        return None
    own_errors = [error for error in errors if error[0] in _OWN_ERRORS]
    name, message = (own_errors or errors)[-1]
    return f"{message.strip()} ({name})"


class _Display:
    """Shows an observer what is written to a run directory from now on.

    That is the probe, steps and evaluations.
    """

    def __init__(self, inputs: EngineInputs) -> None:
        self._run = inputs.run
        self._observer = inputs.observer
        self._recorder = Recorder.of_recipe(inputs.run, inputs.config, inputs.observer)
        self._has_probe = self._run.probe.exists()
        self._num_steps = len(self._run.read_metrics())
        self._num_evaluations = len(self._run.read_evaluations())

    def update(self) -> None:
        """Show the observer what was written since the last call."""
        if not self._has_probe and self._run.probe.exists():
            self._has_probe = True
            self._observer.probe(read_probe(self._run))
        evaluations = self._run.read_evaluations()
        for row in evaluations[self._num_evaluations :]:
            self._observer.evaluation(EvaluationMetrics(**row))
        self._num_evaluations = len(evaluations)
        steps = read_steps(self._run)
        for number in range(self._num_steps, len(steps)):
            before = steps[:number]
            alarms = self._recorder.find_alarms(steps[number], before)
            self._recorder.show_step(steps[number], alarms, before)
        self._num_steps = len(steps)


def _die_with_parent() -> None:
    """Have the kernel kill this process when its parent dies, so that no verl outlives its run."""
    ctypes.CDLL(None).prctl(_DEATH_SIGNAL, signal.SIGKILL)

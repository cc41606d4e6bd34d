"""The TRL engine: loads the model, builds the trainer, runs the steps that are missing."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from accelerate import PartialState
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from microcoder.errors import DataError
from microcoder.evaluator import Judge
from microcoder.runs import RunDirectory
from microcoder.training.checkpoints import STAGING, check_model_folder
from microcoder.training.clocks import RunClock
from microcoder.training.config import HuggingFaceModel, MicroModel, TrainConfig
from microcoder.training.engines.trl.arguments import build_arguments, cut_batches
from microcoder.training.engines.trl.trainer import MicroCoderTrainer
from microcoder.training.observer import Observer
from microcoder.training.session import Tasks
from microcoder.training.warmstart import build_micro_checkpoint


def describe_machine() -> dict[str, Any]:
    """Return what the results may depend on: devices, processes and threads."""
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {"gpus": gpus, "num_processes": PartialState().num_processes, "num_threads": torch.get_num_threads()}


def prepare_model(config: TrainConfig, *, observer: Observer) -> str:
    """Return the folder or hub id of the starting weights; the micro lab's are built here when not cached."""
    if config.cpu_threads is not None:
        torch.set_num_threads(config.cpu_threads)
    model = config.model
    transformers_logging.set_verbosity_error()
    transformers_logging.disable_progress_bar()
    if isinstance(model, MicroModel):
        observer.phase("warm start")

        def tell(step: int, num_steps: int, loss: float) -> None:
            if step % max(1, num_steps // 6) == 0:
                observer.note(f"warm start of the micro model: step {step}/{num_steps}, loss {loss:.2f}")

        return str(build_micro_checkpoint(model.warm_start, cache=model.cache, on_progress=tell))
    if Path(model.path).exists() or model.path.startswith((".", "/", "~")) or model.path.count("/") > 1:
        folder = Path(model.path).expanduser()
        check_model_folder(folder)
        return str(folder)
    return model.path


def train(
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
    """Run the steps that are missing.

    Raises:
        KeyboardInterrupt: the user asked to stop; the last whole step was saved.
    """
    if resume_step is not None:
        # The last bits of a matrix product depend on the number of threads.
        torch.set_num_threads(run.read_manifest()["machine"]["num_threads"])
    batches = cut_batches(config, num_processes=PartialState().num_processes)
    trainer = MicroCoderTrainer(
        config=config,
        batches=batches,
        arguments=build_arguments(config, batches, output_dir=run.checkpoints / STAGING),
        model=load_model(config, model),
        tokenizer=load_tokenizer(config, model),
        peft_config=build_adapter(config),
        tasks=tasks,
        judge=judge,
        run=run,
        run_clock=run_clock,
        observer=observer,
    )
    with _stop_between_steps(trainer, observer):
        trainer.train(resume_from_checkpoint=str(run.checkpoint(resume_step)) if resume_step else None)
    if trainer.steps_done < config.num_steps:
        raise KeyboardInterrupt


def load_model(config: TrainConfig, model: str) -> PreTrainedModel:
    """Load a causal language model from a folder or the hub.

    Raises:
        DataError: the hub or the folder has no such model.
    """
    dtype = config.model.dtype if isinstance(config.model, HuggingFaceModel) else "float32"
    try:
        return AutoModelForCausalLM.from_pretrained(model, revision=_revision(config), dtype=getattr(torch, dtype))
    except (OSError, ValueError) as error:
        reason = str(error).strip().split("\n")[0]
        raise DataError(
            f"cannot load model {model!r}: {reason}; check the name, or download it and pass --model.path FOLDER"
        ) from None


def load_tokenizer(config: TrainConfig, model: str) -> PreTrainedTokenizerBase:
    """Load the tokenizer that belongs to a model.

    Raises:
        DataError: there is none.
    """
    tokenizer = AutoTokenizer.from_pretrained(model, revision=_revision(config), padding_side="left")
    if not isinstance(tokenizer, PreTrainedTokenizerBase):
        raise DataError(f"model {model!r} has no tokenizer; save one into its folder with save_pretrained()")
    return tokenizer


def _revision(config: TrainConfig) -> str | None:
    return config.model.revision if isinstance(config.model, HuggingFaceModel) else None


def build_adapter(config: TrainConfig) -> LoraConfig | None:
    """Return the LoRA adapter of a recipe; None trains all weights."""
    if not isinstance(config.model, HuggingFaceModel) or config.model.lora is None:
        return None
    lora = config.model.lora
    modules = lora.target_modules if isinstance(lora.target_modules, str) else list(lora.target_modules)
    return LoraConfig(
        r=lora.rank, lora_alpha=lora.alpha, lora_dropout=lora.dropout, target_modules=modules, task_type="CAUSAL_LM"
    )


@contextmanager
def _stop_between_steps(trainer: MicroCoderTrainer, observer: Observer) -> Iterator[None]:
    """The first Ctrl-C ends the run after the step at hand, saved; the second ends it at once."""

    def request(signum: int, frame: FrameType | None) -> None:
        if trainer.stop_requested:
            raise KeyboardInterrupt
        trainer.stop_requested = True
        observer.note("stopping after this step; press Ctrl-C again to stop at once")

    before = signal.signal(signal.SIGINT, request)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

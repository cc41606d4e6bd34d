"""The TRL engine: what a run calls to train by TRL.

It translates a recipe into TRL's arguments, loads the model, builds the trainer and runs the steps.
"""

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from accelerate import PartialState
from peft import LoraConfig, PeftModel
from transformers import (
    AutoModelForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    TrainerCallback,
)
from trl import GRPOConfig

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.files import new_folder
from microcoder.train.algorithm.config import (
    AlgorithmConfig,
    CispoLoss,
    ClippedLoss,
    GspoLoss,
    LuspoLoss,
    SapoLoss,
)
from microcoder.train.recipe.recipe import (
    Batches,
    NumberFormat,
    TrainConfig,
    choose_dtype,
    cut_batches,
    require_optimizer,
)
from microcoder.train.rollouts import Chat, ScoredRollout
from microcoder.train.run.checkpoints import Observer, RunClock, copy_model, stop_between_steps
from microcoder.train.run.look import choose_looked_at
from microcoder.train.run.tasks import EngineInputs
from microcoder.train.run.warm import find_model
from microcoder.train.run.weights import (
    Checkpoint,
    as_published,
    check_options,
    check_positions,
    encode_chats,
    load_checkpoint,
    set_generation,
    silence_transformers,
)
from microcoder.train.trl.trainer import MicroCoderTrainer
from microcoder.train.trl.vllm import require_vllm, vllm_arguments


def _processes() -> PartialState:
    """Return the processes of the run, as Accelerate knows them."""
    # The first call decides for the process; without a GPU it must choose gloo.
    return PartialState(cpu=not torch.cuda.is_available())


def is_main_process() -> bool:
    """Return whether this process writes the run's files."""
    return _processes().is_main_process


def wait_for_everyone() -> None:
    """Wait until all processes of the run have reached this call."""
    _processes().wait_for_everyone()


def describe_machine(config: TrainConfig) -> dict[str, Any]:
    """Return the machine's properties that results may depend on: devices, processes, threads."""
    gpus = [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]
    return {
        "gpus": gpus,
        "num_processes": _processes().num_processes,
        "num_threads": torch.get_num_threads(),
        "compute_dtype": find_compute_dtype(config),
    }


def find_compute_dtype(config: TrainConfig) -> NumberFormat:
    """Return the number format of matrix products on this machine."""
    return choose_dtype(config.weights.compute_dtype, on_gpu=torch.cuda.is_available())


@dataclass(frozen=True, slots=True)
class Policy:
    """The starting weights with their tokenizer."""

    checkpoint: Checkpoint
    source: str
    """The folder or hub id they came from."""

    @property
    def model(self) -> PreTrainedModel:
        """The model, which is trained in place."""
        return self.checkpoint.model

    @property
    def tokenizer(self) -> PreTrainedTokenizerBase:
        """The model's tokenizer."""
        return self.checkpoint.tokenizer


def load_policy(config: TrainConfig, *, observer: Observer) -> Policy:
    """Load the starting weights; the micro lab's are built first when they are not cached."""
    if config.cpu_threads is not None:
        torch.set_num_threads(config.cpu_threads)
    if config.rollout.backend == "transformers" and "PYTORCH_ALLOC_CONF" not in os.environ:
        # Read at CUDA's first allocation. A cache that grows by a token at a time leaves holes. Not
        # set with vLLM, some versions of which refuse it.
        os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True")
    silence_transformers()
    cut_batches(config, num_processes=_processes().num_processes)
    require_optimizer(config.optimizer)
    # Before any weights are loaded.
    require_vllm(config)
    source = find_model(config, observer)
    model = config.weights
    checkpoint = load_checkpoint(
        source,
        revision=model.revision,
        dtype=model.dtype,
        attn_implementation=model.attn_implementation,
    )
    check_options(checkpoint.tokenizer, config.prompt.chat_template_options)
    # It reads a few tokens, before anything is trained on wrong log-probs.
    check_positions(checkpoint, source)
    for remark in checkpoint.remarks:
        observer.note(remark)
    return Policy(checkpoint, source)


def encode_prompts(config: TrainConfig, policy: Policy, chats: Sequence[Chat]) -> list[list[int]]:
    """Return the token ids of prompts, as the model is given them."""
    return encode_chats(policy.tokenizer, chats, config.prompt.chat_template_options)


def train(
    inputs: EngineInputs,
    *,
    run_clock: RunClock,
    resume_step: int | None,
    callbacks: Sequence[TrainerCallback] = (),
) -> None:
    """Run the steps that are not done yet; raises KeyboardInterrupt if stopped before the last."""
    config = inputs.config
    run = inputs.run
    # The last bits of a matrix product depend on the number of threads: those of the first start
    # hold.
    machine = run.read_manifest()["machine"]
    torch.set_num_threads(machine["num_threads"])
    trainer = build_trainer(inputs, run_clock, compute_dtype=machine.get("compute_dtype"))
    for callback in callbacks:
        trainer.add_callback(callback)
    checkpoint = str(run.checkpoint(resume_step)) if resume_step else None
    with stop_between_steps(trainer.request_stop, inputs.observer):
        trainer.train(resume_from_checkpoint=checkpoint)
    # TRL returns as if it were done.
    if trainer.steps_done < config.num_steps:
        raise KeyboardInterrupt


def look(inputs: EngineInputs) -> list[list[ScoredRollout]]:
    """Sample and judge some training problems by the untrained model.

    Nothing is trained, and no run is written.
    """
    chosen = choose_looked_at(inputs.tasks.train, seed=inputs.config.seed)
    return build_trainer(inputs, RunClock()).look_at(chosen)


def build_trainer(
    inputs: EngineInputs, run_clock: RunClock, *, compute_dtype: NumberFormat | None = None
) -> MicroCoderTrainer:
    """Return the trainer of a run, its sampler loaded and checked.

    `compute_dtype` is as in `build_arguments`.
    """
    config = inputs.config
    batches = cut_batches(config, num_processes=_processes().num_processes)
    sampler: dict[str, Any] = {}
    # transformers takes memory as it goes.
    if config.rollout.backend == "vllm":
        sampler = _prepare_vllm(inputs)
    arguments = build_arguments(
        config, batches, output_dir=inputs.run.trl, sampler=sampler, compute_dtype=compute_dtype
    )
    adapter = None
    lora = config.weights.lora
    if lora is not None:
        adapter = LoraConfig(
            r=lora.rank, lora_alpha=lora.alpha, target_modules="all-linear", task_type="CAUSAL_LM"
        )
    try:
        return MicroCoderTrainer(
            inputs, batches=batches, arguments=arguments, peft_config=adapter, run_clock=run_clock
        )
    # TRL's own checks of arguments that contradict each other.
    except ValueError as error:
        reason = str(error).strip().split("\n")[0]
        raise ConfigError(f"TRL refuses this recipe: {reason}") from None


def _prepare_vllm(inputs: EngineInputs) -> dict[str, Any]:
    """Return TRL's arguments for vLLM, and choose the port over which its processes connect."""
    tasks = (*inputs.tasks.train, *inputs.tasks.heldout)
    chats = [task.prompt.as_chat() for task in tasks]
    prompts = encode_prompts(inputs.config, inputs.policy, chats)
    arguments = vllm_arguments(inputs.config, longest_prompt_tokens=max(map(len, prompts)))
    # TRL's first choice is the same in each run of a machine.
    with socket.create_server(("localhost", 0)) as server:
        os.environ.setdefault("MASTER_PORT", str(server.getsockname()[1]))
    return arguments


def export_model(config: TrainConfig, *, policy: Policy, checkpoint: Path, target: Path) -> None:
    """Write a checkpoint as an ordinary Hugging Face folder.

    Adapters are merged into the weights that they adapt.
    """
    if config.weights.lora is None:
        copy_model(checkpoint, target)
        return
    # Loaded again: TRL has put the adapter's layers into `policy.model` itself.
    base = AutoModelForCausalLM.from_pretrained(
        policy.source, revision=config.weights.revision, dtype=getattr(torch, config.weights.dtype)
    )
    set_generation(base, policy.tokenizer, policy.checkpoint.end_ids)
    adapted = PeftModel.from_pretrained(base, str(checkpoint))
    with new_folder(target) as partial, as_published(policy.checkpoint, partial):
        adapted.merge_and_unload().save_pretrained(partial)
        policy.tokenizer.save_pretrained(partial)


def build_arguments(
    config: TrainConfig,
    batches: Batches,
    *,
    output_dir: Path,
    sampler: Mapping[str, Any] = MappingProxyType({}),
    compute_dtype: NumberFormat | None = None,
) -> GRPOConfig:
    """Translate a recipe into TRL's arguments.

    Args:
        config: the recipe.
        batches: the split of a step.
        output_dir: where TRL writes.
        sampler: those of `vllm_arguments`, if vLLM samples.
        compute_dtype: of the run's first start; None: by the recipe and this machine.
    """
    on_gpu = torch.cuda.is_available()
    algorithm = config.algorithm
    optimizer = config.optimizer
    run_name = output_dir.absolute().parent.name
    decided: dict[str, Any] = {
        "output_dir": str(output_dir),
        "use_cpu": not on_gpu,
        "bf16": (compute_dtype or find_compute_dtype(config)) == "bfloat16",
        "seed": config.seed,
        # The order of the problems is ours (`tasks.order_problems`), so that it survives a resume.
        "shuffle_dataset": False,
        "max_steps": config.num_steps * batches.updates_per_step,
        "per_device_train_batch_size": config.batch.micro_batch_rollouts,
        "gradient_accumulation_steps": batches.gradient_accumulation_steps,
        "generation_batch_size": batches.rollouts_per_step,
        "num_generations": config.rollout.num_samples,
        "num_generations_eval": config.evaluation.samples_per_problem,
        # Several updates a step are cut from it, and not passes over it.
        "num_iterations": 1,
        "max_completion_length": config.rollout.max_response_tokens,
        "chat_template_kwargs": dict(config.prompt.chat_template_options),
        **sampler,
        "beta": algorithm.kl_coefficient,
        # TRL would weigh the KL term by the ratio (DeepSeek-V3.2); GRPO's equation and the paper's
        # do not.
        "use_bias_correction_kl": False,
        **translate_loss(algorithm),
        "learning_rate": optimizer.learning_rate,
        "optim": optimizer.name,
        "lr_scheduler_type": optimizer.schedule,
        "warmup_steps": optimizer.warmup_steps * batches.updates_per_step,
        "weight_decay": optimizer.weight_decay,
        "adam_beta2": optimizer.beta2,
        "max_grad_norm": optimizer.max_grad_norm,
        "gradient_checkpointing": config.weights.gradient_checkpointing,
        # Our rows are made of each update's figures.
        "logging_steps": 1,
        # Checkpoints are asked for at step boundaries by the trainer, and evaluation is ours.
        "save_strategy": "no",
        "eval_strategy": "no",
        "disable_tqdm": True,
        "dataloader_pin_memory": on_gpu,
    }
    options: dict[str, Any] = {"report_to": "none", "run_name": run_name, **config.trl}
    try:
        return GRPOConfig(**decided, **options)
    except (ValueError, TypeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ConfigError(f"TRL refuses this recipe: {reason}") from None


def translate_loss(algorithm: AlgorithmConfig) -> dict[str, Any]:
    """Return the arguments of `GRPOConfig` that select a recipe's loss."""
    loss = algorithm.loss
    arguments: dict[str, Any] = {"loss_type": loss.kind, "importance_sampling_level": "token"}
    if isinstance(loss, GspoLoss):
        # GSPO is GRPO's loss with the ratio of the whole response.
        arguments["loss_type"] = "grpo"
    if isinstance(loss, GspoLoss | LuspoLoss):
        arguments["importance_sampling_level"] = "sequence"
    if isinstance(loss, ClippedLoss):
        arguments |= {"epsilon": loss.clip_low, "epsilon_high": loss.clip_high}
    if isinstance(loss, CispoLoss):
        arguments |= {"epsilon_high": loss.max_ratio}
    if isinstance(loss, SapoLoss):
        arguments |= {
            "sapo_temperature_pos": loss.temperature_positive,
            "sapo_temperature_neg": loss.temperature_negative,
        }
    return arguments

"""Supervised fine-tuning of a model on answers, by TRL's SFTTrainer.

The loss is that of the answers' tokens; the prompts' have the label that TRL leaves out. An answer
that ended by itself ends with the model's end token, one that was cut off without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import (
    PreTrainedTokenizerBase,
    PrinterCallback,
    TrainerCallback,
    TrainerControl,
    TrainerState,
    TrainingArguments,
)
from trl import SFTConfig, SFTTrainer

from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.files import new_folder
from microcoder.train.recipe.fine_tuning import FineTuningConfig
from microcoder.train.recipe.recipe import choose_dtype
from microcoder.train.rollouts import find_closing_token, render_chat
from microcoder.train.run.checkpoints import Observer
from microcoder.train.run.context import find_context
from microcoder.train.run.kept_answers import Answer
from microcoder.train.run.weights import (
    Checkpoint,
    as_published,
    check_positions,
    load_checkpoint,
    model_source,
)

_NO_LOSS = -100
"""Label of a token that is in no loss."""
_OPEN_THINKING = "<think>"
_NUM_NOTES = 20
"""Most lines on the progress of a fine-tuning."""


@dataclass(frozen=True, slots=True)
class FineTuned:
    """What a fine-tuning did."""

    num_answers: int
    num_tokens: int
    """Tokens of the answers, which have a loss."""
    num_too_long: int
    num_updates: int
    losses: Sequence[float]
    """Mean loss a token of some updates, in their order."""


def fine_tune(
    config: FineTuningConfig,
    answers: Sequence[Answer],
    *,
    model: str,
    revision: str | None,
    template_options: Mapping[str, Any],
    target: Path,
    observer: Observer,
) -> FineTuned:
    """Fine-tune a model on answers and write it as a checkpoint folder, whole or not at all.

    Args:
        config: how it is trained.
        answers: what it is trained on.
        model: a checkpoint folder, a GGUF file, or an id of the Hub.
        revision: of the Hub's.
        template_options: of the model's chat template, for prompts that are chats.
        target: the folder to write.
        observer: gets messages for the user.

    Raises:
        ConfigError: a pass does not divide an update, or memory runs out.
        DataError: the model cannot be loaded, the prompts are of another chat template, or no
            answer fits into the model's context.
    """
    if config.batch_size % config.micro_batch_size:
        raise ConfigError(
            f"micro_batch_size={config.micro_batch_size} does not divide "
            f"batch_size={config.batch_size}; pass --micro-batch-size 1, or another divisor"
        )
    source = model_source(model, note=observer.note)
    checkpoint = load_checkpoint(source, revision=revision, dtype=config.dtype)
    check_positions(checkpoint, source)
    for remark in checkpoint.remarks:
        observer.note(remark)
    _check_template(answers, checkpoint.tokenizer, model)
    most_tokens = config.max_tokens
    if most_tokens is None:
        context = find_context(source, revision)
        most_tokens = context.tokens if context is not None else None
    end_id = _find_end(checkpoint)
    rows = []
    for answer in answers:
        rows.append(_encode(answer, checkpoint.tokenizer, end_id, template_options))
    fitting = [row for row in rows if most_tokens is None or len(row["input_ids"]) <= most_tokens]
    if not fitting:
        shortest = min(len(row["input_ids"]) for row in rows)
        raise DataError(
            f"no answer fits: the shortest has {shortest:,} tokens with its prompt, allowed are "
            f"{most_tokens:,}; pass --max-tokens {shortest}, or use a model with a longer context"
        )
    trainer = _build_trainer(config, checkpoint, fitting, target, observer)
    try:
        trainer.train()
    except torch.OutOfMemoryError as error:
        reason = str(error).splitlines()[0][:200]
        raise ConfigError(
            f"out of memory ({reason}); pass --micro-batch-size 1 (now "
            f"{config.micro_batch_size}), or --max-tokens to leave out long answers"
        ) from None
    with new_folder(target) as partial, as_published(checkpoint, partial):
        checkpoint.model.save_pretrained(partial)
        checkpoint.tokenizer.save_pretrained(partial)
    history = trainer.state.log_history
    num_tokens = 0
    for row in fitting:
        num_tokens += sum(label != _NO_LOSS for label in row["labels"])
    return FineTuned(
        num_answers=len(fitting),
        num_tokens=num_tokens,
        num_too_long=len(rows) - len(fitting),
        num_updates=trainer.state.global_step,
        losses=[entry["loss"] for entry in history if "loss" in entry],
    )


def _check_template(
    answers: Sequence[Answer], tokenizer: PreTrainedTokenizerBase, model: str
) -> None:
    """Raise DataError if recorded prompts do not open an answer as the model's template does."""
    if tokenizer.chat_template is None:
        return
    chat = [{"role": "user", "content": "?"}]
    whole = render_chat(tokenizer, chat, {})
    without = str(tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=False))
    opening = whole.removeprefix(without).strip()
    # Options of a template may add to its end, such as an empty thought.
    opening = opening.split("\n")[0]
    for answer in answers:
        if isinstance(answer.prompt, str) and opening not in answer.prompt:
            raise DataError(
                f"the answers are of another chat template than that of {model}: the prompt of "
                f"{answer.problem_id!r} ends with {answer.prompt[-40:]!r}, that of this model has "
                f"{opening!r} there; pass --model with the model that answered, or ask this one "
                "anew (microcoder eval)"
            )


def _encode(
    answer: Answer,
    tokenizer: PreTrainedTokenizerBase,
    end_id: int,
    template_options: Mapping[str, Any],
) -> dict[str, list[int]]:
    """Return the tokens of a prompt and its answer, and their labels."""
    prompt = answer.prompt
    if not isinstance(prompt, str):
        prompt = render_chat(tokenizer, prompt, template_options)
    completion = answer.completion
    # Recorded with the answer, where the template writes it at the end of the prompt.
    if prompt.rstrip().endswith(_OPEN_THINKING):
        completion = completion.removeprefix(_OPEN_THINKING)
    # A template writes the start token itself.
    is_plain = tokenizer.chat_template is None
    prompt_ids = list(tokenizer(text=prompt, add_special_tokens=is_plain)["input_ids"])
    answer_ids = list(tokenizer(text=completion, add_special_tokens=False)["input_ids"])
    if not answer.is_truncated:
        answer_ids.append(end_id)
    return {
        "input_ids": prompt_ids + answer_ids,
        "labels": [_NO_LOSS] * len(prompt_ids) + answer_ids,
    }


def _find_end(checkpoint: Checkpoint) -> int:
    """Return the token that ends an answer: the chat template's own where it ends a response."""
    tokenizer = checkpoint.tokenizer
    closing = find_closing_token(tokenizer, tokenizer.all_special_ids)
    return closing if closing in checkpoint.end_ids else checkpoint.end_ids[0]


def _build_trainer(
    config: FineTuningConfig,
    checkpoint: Checkpoint,
    rows: Sequence[Mapping[str, list[int]]],
    target: Path,
    observer: Observer,
) -> SFTTrainer:
    """Return TRL's trainer, which writes no checkpoints."""
    on_gpu = torch.cuda.is_available()
    updates_per_epoch = -(-len(rows) // config.batch_size)
    num_updates = updates_per_epoch * config.num_epochs
    arguments = SFTConfig(
        output_dir=str(target.parent),
        use_cpu=not on_gpu,
        bf16=choose_dtype(config.compute_dtype, on_gpu=on_gpu) == "bfloat16",
        seed=config.seed,
        num_train_epochs=config.num_epochs,
        per_device_train_batch_size=config.micro_batch_size,
        gradient_accumulation_steps=config.batch_size // config.micro_batch_size,
        learning_rate=config.learning_rate,
        lr_scheduler_type=config.schedule,
        warmup_steps=config.warmup_updates,
        weight_decay=config.weight_decay,
        max_grad_norm=config.max_grad_norm,
        gradient_checkpointing=config.gradient_checkpointing,
        # What does not fit is left out before, and counted.
        max_length=None,
        packing=False,
        logging_steps=max(1, num_updates // _NUM_NOTES),
        # The folder is written once, when all is done.
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=on_gpu,
    )
    trainer = SFTTrainer(
        model=checkpoint.model,
        args=arguments,
        train_dataset=Dataset.from_list([dict(row) for row in rows]),
        processing_class=checkpoint.tokenizer,
        callbacks=[_LossNotes(observer)],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


class _LossNotes(TrainerCallback):
    """Tells the user of the loss, now and then."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: Mapping[str, float] | None = None,
        **_: object,
    ) -> None:
        if logs is not None and "loss" in logs:
            self._observer.note(
                f"update {state.global_step}/{state.max_steps}  loss {logs['loss']:.4f}"
            )

"""The keys of a supervised fine-tuning on answers."""

from typing import Literal

from pydantic import Field

from microcoder.judge.core.config import Config


class FineTuningConfig(Config):
    """Supervised fine-tuning: cross-entropy of the answers' tokens, not of the prompts'.

    Rate, schedule and batch are those of Simple Self-Distillation (arXiv 2604.01193).
    """

    learning_rate: float = Field(default=5e-6, gt=0)
    schedule: Literal["cosine", "constant_with_warmup"] = "cosine"
    """Learning-rate schedule, by transformers' names."""
    warmup_updates: int = Field(default=0, ge=0)
    """Updates over which the learning rate rises from 0."""
    num_epochs: int = Field(default=1, ge=1)
    """Passes over the answers; the default is ours."""
    batch_size: int = Field(default=32, ge=1)
    """Answers per update."""
    micro_batch_size: int = Field(default=4, ge=1)
    """Answers per forward and backward pass; bounds memory, and divides batch_size."""
    weight_decay: float = Field(default=0.0, ge=0)
    max_grad_norm: float = Field(default=1.0, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    """Length of prompt and answer from which on an answer is left out, and counted; None: the
    model's context."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Precision of weights and optimizer state."""
    compute_dtype: Literal["auto", "float32", "bfloat16"] = "auto"
    """Precision of matrix products; `auto`: bfloat16, on a CPU that has no bfloat16 float32."""
    gradient_checkpointing: bool = True
    seed: int = Field(default=0, ge=0)
    """Seed of the order of the answers."""

"""The model's part of a recipe: weights, precision, full training or adapters."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pydantic import Field

from microcoder.config import Config
from microcoder.micro import DemonstrationNoise, ThinkingShares, World

WEIGHT_BYTES = {"float32": 4, "bfloat16": 2}
"""Bytes a weight, by `dtype`."""


class WarmStartConfig(Config):
    """Settings of a micro checkpoint."""

    world: World = "operations"
    """World of the demonstrations; the same as `problems.world`."""
    hidden_size: int = Field(default=128, ge=8)
    num_layers: int = Field(default=2, ge=1)
    num_heads: int = Field(default=4, ge=1)
    num_kv_heads: int = Field(default=4, ge=1)
    intermediate_size: int = Field(default=256, ge=8)
    vocab_size: int = Field(default=1024, ge=300)
    num_demonstrations: int = Field(default=40_000, ge=1)
    """Distinct answers to learn from; passes over them follow from the steps and the batch."""
    num_steps: int = Field(default=600, ge=1)
    batch_size: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=1e-2, gt=0)
    """Peak, of Muon steps; linear warm-up over 6 % of the steps, then cosine to 5 %."""
    prompt_weight: float = Field(default=0.1, ge=0, le=1)
    """Loss weight of statement tokens; response tokens have 1. A little speeds up learning the vocabulary."""
    max_tokens: int = Field(default=192, ge=16, le=1024)
    """Statement and response are truncated here; only rambling answers are longer."""
    seed: int = 0
    noise: DemonstrationNoise = DemonstrationNoise()
    """How wrong the demonstrations of `operations` are: with it the untrained accuracy goes up and down."""
    thinking: ThinkingShares = ThinkingShares()
    """How the demonstrations of `chains` think."""
    thorough_share: float = Field(default=0.7, ge=0, le=1)
    """With `chains`: share of the steps, at the start, on complete demonstrations only."""

    def _contradictions(self) -> Iterator[str]:
        if self.hidden_size % self.num_heads or (self.hidden_size // self.num_heads) % 2:
            yield (
                f"hidden_size={self.hidden_size} must be num_heads={self.num_heads} times an even number; "
                f"try hidden_size={self.num_heads * 32}"
            )
        if self.num_heads % self.num_kv_heads:
            yield f"num_kv_heads={self.num_kv_heads} must divide num_heads={self.num_heads}; try 1"


class MicroModel(Config):
    """The tiny Qwen3 of the micro lab: built on first use, cached, deterministic from its seed."""

    kind: Literal["micro"]
    warm_start: WarmStartConfig = WarmStartConfig()
    cache: Path = Path(".cache/microcoder")
    """Folder of built checkpoints."""


class LoraAdapter(Config):
    """Train low-rank adapters instead of all weights; options by PEFT's names."""

    rank: int = Field(default=16, ge=1)
    alpha: int = Field(default=32, ge=1)
    """Scales an adapter by alpha / rank, with `use_rslora` by alpha / sqrt(rank)."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    target_modules: tuple[str, ...] | Literal["all-linear"] = "all-linear"
    """Names, or suffixes of names, of the adapted layers; `all-linear`: all but the output layer."""
    exclude_modules: tuple[str, ...] = ()
    """Names, or suffixes of names, of layers to exclude."""
    modules_to_save: tuple[str, ...] = ()
    """Layers to train fully and save with the adapter, such as `lm_head`."""
    use_rslora: bool = False
    """Rank-stabilised LoRA: the scale does not shrink as the rank grows."""
    use_dora: bool = False
    """DoRA: train magnitude and direction separately; slower."""

    @property
    def peft_modules(self) -> str | list[str]:
        """The adapted layers as PEFT takes them."""
        return self.target_modules if isinstance(self.target_modules, str) else list(self.target_modules)


class HuggingFaceModel(Config):
    """A causal language model in Hugging Face format."""

    kind: Literal["hugging_face"]
    path: str = Field(min_length=1)
    """A checkpoint folder or a hub id."""
    revision: str | None = None
    """Commit, tag or branch of a hub id."""
    dtype: Literal["float32", "bfloat16"] = "float32"
    """Weights and optimizer state. Keep float32 for full training: with `compute_dtype = "bfloat16"` these are the
    master weights of mixed precision; in bfloat16 an update below 1/256 of a weight is lost, as most are at rate 1e-6.
    With LoRA, bfloat16 halves the memory of the frozen weights; adapters and their optimizer stay in float32."""
    compute_dtype: Literal["float32", "bfloat16"] = "bfloat16"
    """Precision of matrix products."""
    attn_implementation: str | None = Field(default=None, min_length=1)
    """By transformers' names: `sdpa`, `eager`, `flash_attention_2` (needs flash_attn, on a GPU), or a kernel of the
    hub; None: the engine's own choice."""
    gradient_checkpointing: bool = True
    lora: LoraAdapter | None = None


MICRO_WEIGHTS = HuggingFaceModel(
    kind="hugging_face", path="micro", compute_dtype="float32", gradient_checkpointing=False
)
"""How the micro lab's model is trained."""

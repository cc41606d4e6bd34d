"""The optimizer's part of a recipe."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, Literal

from pydantic import Field

from microcoder.config import Config
from microcoder.errors import ConfigError

OptimizerName = Literal[
    "adamw_torch_fused",
    "adamw_torch",
    "adamw_8bit",
    "paged_adamw_8bit",
    "paged_adamw_32bit",
    "adamw_torch_8bit",
    "adamw_torch_4bit",
    "adafactor",
]
PACKAGE_OF: dict[str, str] = {
    "adamw_8bit": "bitsandbytes",
    "paged_adamw_8bit": "bitsandbytes",
    "paged_adamw_32bit": "bitsandbytes",
    "adamw_torch_8bit": "torchao",
    "adamw_torch_4bit": "torchao",
}
"""Package that an optimizer needs besides torch."""

_MOMENT_BYTES = {
    "adamw_8bit": 2.1,
    "paged_adamw_8bit": 2.1,
    "paged_adamw_32bit": 8.0,
    "adamw_torch_8bit": 2.1,
    "adamw_torch_4bit": 1.2,
    "adafactor": 0.1,
}
"""Bytes per parameter of both moments with their scales; paged ones move to the CPU only when the GPU is full."""

_MIN_LR = ("num_cycles", "min_lr", "min_lr_rate")
SCHEDULE_OPTIONS: dict[str, tuple[str, ...]] = {
    "constant": (),
    "constant_with_warmup": (),
    "linear": (),
    "cosine": ("num_cycles",),
    "cosine_with_restarts": ("num_cycles",),
    "cosine_with_min_lr": _MIN_LR,
    "cosine_warmup_with_min_lr": (*_MIN_LR, "warmup_lr_rate"),
    "polynomial": ("lr_end", "power"),
    "inverse_sqrt": ("timescale",),
    "warmup_stable_decay": (
        "num_decay_steps",
        "num_stable_steps",
        "warmup_type",
        "decay_type",
        "min_lr_ratio",
        "num_cycles",
    ),
}
"""Options of each schedule, by transformers' names."""
IN_STEPS = ("num_decay_steps", "num_stable_steps", "timescale")
"""Options in training steps here, in updates there."""


class OptimizerConfig(Config):
    """AdamW, unless `name` says otherwise."""

    name: OptimizerName = "adamw_torch_fused"
    """By transformers' names. `adamw_8bit`, `paged_adamw_8bit`, `paged_adamw_32bit` (state in the CPU's memory when the
    GPU's is full) need bitsandbytes, `adamw_torch_8bit` and `adamw_torch_4bit` torchao."""
    learning_rate: float = Field(default=1e-6, gt=0)
    schedule: Literal[
        "constant",
        "constant_with_warmup",
        "linear",
        "cosine",
        "cosine_with_restarts",
        "cosine_with_min_lr",
        "cosine_warmup_with_min_lr",
        "polynomial",
        "inverse_sqrt",
        "warmup_stable_decay",
    ] = "constant_with_warmup"
    """Learning-rate schedule, by transformers' names."""
    schedule_options: dict[str, Any] = Field(default={})
    """Options of the schedule by transformers' names, such as min_lr_rate = 0.1 for `cosine_with_min_lr`; counts are in
    training steps."""
    warmup_steps: int = Field(default=0, ge=0)
    """Training steps over which the learning rate rises from 0."""
    weight_decay: float = Field(default=0.0, ge=0)
    beta1: float = Field(default=0.9, gt=0, lt=1)
    beta2: float = Field(default=0.999, gt=0, lt=1)
    max_grad_norm: float = Field(default=1.0, gt=0)

    def moment_bytes(self, weight_bytes: int) -> float:
        """Return the bytes of optimizer state per parameter.

        Args:
            weight_bytes: of a trained parameter; torch keeps moments in the weights' type.
        """
        return _MOMENT_BYTES.get(self.name, 2 * weight_bytes)

    def _contradictions(self) -> Iterator[str]:
        known = SCHEDULE_OPTIONS[self.schedule]
        for name in self.schedule_options:
            if name not in known:
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
                hint = f"did you mean {close[0]}?" if close else f"it has {', '.join(known) or 'none'}"
                yield f'schedule = "{self.schedule}" has no option {name}; {hint}'
        needed = {
            "cosine_with_min_lr": ("min_lr", "min_lr_rate"),
            "cosine_warmup_with_min_lr": ("min_lr", "min_lr_rate"),
            "warmup_stable_decay": ("num_decay_steps",),
        }.get(self.schedule, ())
        if needed and sum(name in self.schedule_options for name in needed) != 1:
            yield (
                f'schedule = "{self.schedule}" needs {"one of " if len(needed) > 1 else ""}'
                f"{', '.join(f'schedule_options.{name}' for name in needed)}"
            )
        if self.schedule == "constant" and self.warmup_steps:
            yield (
                f'schedule = "constant" would leave out warmup_steps={self.warmup_steps}; use "constant_with_warmup"'
            )
        if self.schedule == "inverse_sqrt" and not (self.warmup_steps or self.schedule_options):
            yield (
                'schedule = "inverse_sqrt" falls from the end of the warm-up; give warmup_steps, or '
                "schedule_options.timescale"
            )
        if self.name == "adafactor" and (self.beta1, self.beta2) != (0.9, 0.999):
            yield 'name = "adafactor" takes no beta1 and beta2; leave them out'


def require_optimizer(optimizer: OptimizerConfig) -> None:
    """Refuse an optimizer whose package is not installed.

    Raises:
        ConfigError: which package, and what to type.
    """
    package = PACKAGE_OF.get(optimizer.name)
    if package is not None and find_spec(package) is None:
        raise ConfigError(
            f'optimizer.name = "{optimizer.name}" needs {package}, which is not installed; type: '
            f"pip install {package}, or leave optimizer.name out"
        )

"""Dynamic group filtering inside TRL: hands it the groups that `training.algorithm.filtering` has had sampled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.metrics import ScoredRollout


@dataclass(frozen=True, slots=True)
class SampledGroup:
    """One problem's samples: TRL's rows, what TRL generated for them, and our decisions."""

    inputs: Sequence[dict[str, Any]]
    generated: Sequence[tuple[Any, ...]]
    """A row each: prompt ids, completion ids, completion, log-probs of the sampler or None."""
    scored: list[ScoredRollout]


def split_generated(generated: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    """Cut what `GRPOTrainer._generate` returns into rows."""
    prompt_ids, completion_ids, _, completions, logprobs, *_ = generated
    return list(zip(prompt_ids, completion_ids, completions, logprobs or [None] * len(completion_ids), strict=True))


def join_generated(groups: Sequence[SampledGroup]) -> tuple[Any, ...]:
    """Return the rows of groups as `GRPOTrainer._generate` would (no tools, no images: we use neither)."""
    rows = [row for group in groups for row in group.generated]
    prompt_ids, completion_ids, completions, logprobs = (list(column) for column in zip(*rows, strict=True))
    return prompt_ids, completion_ids, None, completions, None if logprobs[0] is None else logprobs, {}, None, []

"""Dynamic group filtering inside TRL: samples until a step's groups are mixed, then hands TRL what was sampled.

What a flat group is, and which problems are asked in its place, is decided in `microcoder.training.filtering`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from accelerate.utils import gather_object

from microcoder.metrics import ScoredRollout
from microcoder.training.filtering import is_mixed, order_spares, share_spares


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


def sample_mixed_groups(
    sample: Callable[[Sequence[str]], list[SampledGroup]],
    problem_ids: Sequence[str],
    *,
    all_ids: Sequence[str],
    max_rounds: int,
    seed: int,
    step: int,
    process: int,
    num_processes: int,
) -> tuple[list[SampledGroup], list[SampledGroup]]:
    """Sample problems, and others in the place of the flat ones; return the step's groups and those left out.

    Every process calls `sample` equally often and with equally many problems: sampling is a collective operation.

    Args:
        sample: samples and scores the groups of some problems.
        problem_ids: what this process asks in this step.
        all_ids: every training problem.
        max_rounds: calls of `sample`, at most.
        seed: the run's seed.
        step: the training step, from 1.
        process: index of this process.
        num_processes: how many there are.
    """
    groups, left_out = sample(problem_ids), []
    spares = order_spares(all_ids, asked=set(gather_object(list(problem_ids))), seed=seed, step=step)
    taken = 0
    for _ in range(max_rounds - 1):
        flat = [index for index, group in enumerate(groups) if not is_mixed(group.scored)]
        number = max(gather_object([len(flat)]))
        chosen = share_spares(spares, taken=taken, number=number, process=process, num_processes=num_processes)
        if not chosen:
            break
        taken += number * num_processes
        fresh = sample(chosen)
        mixed = [group for group in fresh if is_mixed(group.scored)]
        left_out += [group for group in fresh if not is_mixed(group.scored)] + mixed[len(flat) :]
        for index, group in zip(flat, mixed, strict=False):
            left_out.append(groups[index])
            groups[index] = group
    return groups, left_out

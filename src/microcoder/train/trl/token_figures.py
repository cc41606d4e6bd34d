"""Figures of the tokens of a few rollouts of a step: before its updates, and what these did to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from microcoder.train.metrics import ScoredRollout, TokenFigures


@dataclass(frozen=True, slots=True)
class Watched:
    """Rows of a step as tensors, and what the policy said of them before its updates."""

    rows: Sequence[int]
    """Places among the step's rollouts of this process."""
    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    completion_mask: torch.Tensor
    logps: torch.Tensor
    entropies: torch.Tensor
    sampler_logps: torch.Tensor | None


def choose_rows(num_rows: int, count: int, *, step: int) -> list[int]:
    """Return rows spread over a step; another step begins elsewhere, so that every sample has its turn."""
    count = min(count, num_rows)
    return sorted({(step + place * num_rows // count) % num_rows for place in range(count)})


def watch_tokens(trainer: Any, output: dict[str, Any], *, count: int, step: int) -> Watched:
    """Keep rows of a step before its updates.

    Args:
        trainer: of TRL; its temperature is the step's.
        output: what its `_generate_and_score_completions` returned.
        count: how many rows.
        step: the training step, from 1.
    """
    rows = choose_rows(len(output["completion_ids"]), count, step=step)
    ids = torch.cat([output["prompt_ids"][rows], output["completion_ids"][rows]], dim=1)
    mask = torch.cat([output["prompt_mask"][rows], output["completion_mask"][rows]], dim=1)
    logps, entropies = _look(trainer, ids, mask, output["completion_ids"].shape[1])
    theirs = output.get("sampling_per_token_logps")
    return Watched(
        rows, ids, mask, output["completion_mask"][rows], logps, entropies, None if theirs is None else theirs[rows]
    )


def add_tokens(
    trainer: Any, watched: Watched, scored_P_G: Sequence[Sequence[ScoredRollout]]
) -> list[list[ScoredRollout]]:
    """Return the rollouts, the watched ones with their tokens' figures, after the step's updates."""
    after, _ = _look(trainer, watched.input_ids, watched.attention_mask, watched.completion_mask.shape[1])
    ratios = (after - watched.logps).exp()
    figures = {row: _row_figures(trainer, watched, ratios, number) for number, row in enumerate(watched.rows)}
    places = iter(range(sum(map(len, scored_P_G))))
    return [
        [replace(sample, tokens=figures[row]) if (row := next(places)) in figures else sample for sample in group]
        for group in scored_P_G
    ]


@torch.no_grad()
def _look(trainer: Any, ids: torch.Tensor, mask: torch.Tensor, num_last: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log-probs and entropies of the last tokens (rows, num_last); dropout neither acts nor draws."""
    was_training = trainer.model.training
    trainer.model.eval()
    batch = trainer.args.per_device_train_batch_size
    logps, entropies, *_ = trainer._get_per_token_logps_and_entropies(
        trainer.model, ids, mask, num_last, batch, compute_entropy=True
    )
    trainer.model.train(was_training)
    return logps.float(), entropies.float()


def _row_figures(trainer: Any, watched: Watched, ratios: torch.Tensor, number: int) -> tuple[TokenFigures, ...]:
    length = int(watched.completion_mask[number].sum())
    begin = watched.input_ids.shape[1] - watched.completion_mask.shape[1]
    ids = watched.input_ids[number, begin : begin + length].tolist()
    theirs = [None] * length if watched.sampler_logps is None else watched.sampler_logps[number, :length].tolist()
    known = (watched.logps, watched.entropies, ratios)
    columns = [column[number, :length].tolist() for column in known]
    texts = trainer.tokenizer.batch_decode([[token] for token in ids])
    return tuple(TokenFigures(*row) for row in zip(texts, *columns, theirs, strict=True))

"""The change of held-out responses' log-probability by training, response by response.

The responses are those that the untrained model wrote to held-out problems, so two runs from one model are compared
on the same ones, and a difference between them is due to nothing else. A run of one step shows what a rule (a mask, a
clip, a KL term) does to which responses, long before it shows in what is sampled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from microcoder.judge.core.errors import DataError
from microcoder.train.algorithm.masking import repeats
from microcoder.train.run.chat import render_chat
from microcoder.train.run.weights import load_tokenizer

_ROWS_AT_ONCE = 64
_LEAST_READ_SHARE = 0.5
"""Least share of responses whose text encodes to as many tokens as were sampled; the rest are left out."""


@dataclass(frozen=True, slots=True)
class TokenizedResponse:
    """A response as token ids, with its prompt's."""

    prompt_ids: tuple[int, ...]
    token_ids: tuple[int, ...]
    is_truncated: bool
    is_accepted: bool


@dataclass(frozen=True, slots=True)
class Shift:
    """The change of one response."""

    response: TokenizedResponse
    change: float
    """Change of its log-probability at temperature 1, summed over its tokens."""


def measure_shifts(before: Path, after: Path, rows: Sequence[dict[str, Any]]) -> list[Shift]:
    """Return how the log-probability of responses differs between two checkpoints of one model.

    Args:
        before: folder of the model that wrote the responses.
        after: folder of the same model, trained.
        rows: rollout rows with `prompt`, `completion`, `num_tokens`, `is_truncated` and `verdict`.
    """
    tokenizer = load_tokenizer(str(before))
    responses = read_responses(tokenizer, rows)
    if len(responses) < _LEAST_READ_SHARE * len(rows):
        raise DataError(
            f"{len(rows) - len(responses)} of {len(rows)} responses read otherwise than they were sampled: the "
            f"tokenizer in {before} writes one text in several ways, so their log-probability cannot be computed"
        )
    old, new = (_log_probabilities(AutoModelForCausalLM.from_pretrained(m), responses) for m in (before, after))
    return [Shift(*row) for row in zip(responses, (new - old).tolist(), strict=True)]


def read_responses(tokenizer: PreTrainedTokenizerBase, rows: Sequence[dict[str, Any]]) -> list[TokenizedResponse]:
    """Return the responses whose text is read back as equally many tokens; whole ones end with the tokenizer's end."""
    responses = []
    for row in rows:
        ids = tokenizer(row["completion"], add_special_tokens=False)["input_ids"]
        ids = ids if row["is_truncated"] else [*ids, tokenizer.eos_token_id]
        if len(ids) == row["num_tokens"]:
            asked = render_chat(tokenizer, [{"role": "user", "content": row["prompt"]}], {})
            prompt = tokenizer(asked, add_special_tokens=False)["input_ids"]
            accepted = row["verdict"] == "accepted"
            responses.append(TokenizedResponse(tuple(prompt), tuple(ids), row["is_truncated"], accepted))
    return responses


def contrast_length(shifts: Sequence[Shift]) -> float | None:
    """Return the mean change of truncated responses less that of whole ones; None if there are none of either."""
    cut = [shift.change for shift in shifts if shift.response.is_truncated]
    whole = [shift.change for shift in shifts if not shift.response.is_truncated]
    return fmean(cut) - fmean(whole) if cut and whole else None


def contrast_repeats(shifts: Sequence[Shift], *, window_tokens: int) -> float | None:
    """Return the mean change of truncated responses that repeat themselves less that of the other truncated ones."""
    cut = [shift for shift in shifts if shift.response.is_truncated]
    loops = [repeats(s.response.token_ids, window_tokens=window_tokens, any_period=True) for s in cut]
    looping = [shift.change for shift, is_loop in zip(cut, loops, strict=True) if is_loop]
    others = [shift.change for shift, is_loop in zip(cut, loops, strict=True) if not is_loop]
    return fmean(looping) - fmean(others) if looping and others else None


@torch.no_grad()
def _log_probabilities(model: PreTrainedModel, responses: Sequence[TokenizedResponse]) -> torch.Tensor:
    """Return the log-probability of each response (rows,)."""
    model.eval()
    found = torch.zeros(len(responses), dtype=torch.float64)
    order = sorted(range(len(responses)), key=lambda row: len(responses[row].prompt_ids + responses[row].token_ids))
    for start in range(0, len(order), _ROWS_AT_ONCE):
        rows = order[start : start + _ROWS_AT_ONCE]
        texts = [torch.tensor(responses[row].prompt_ids + responses[row].token_ids) for row in rows]
        ids = torch.nn.utils.rnn.pad_sequence(texts, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(text) for text in texts], batch_first=True)
        logps = model(input_ids=ids, attention_mask=mask).logits[:, :-1].float().log_softmax(-1)
        each = logps.gather(-1, ids[:, 1:, None])[..., 0]
        for place, row in enumerate(rows):
            first = len(responses[row].prompt_ids) - 1
            found[row] = each[place, first : first + len(responses[row].token_ids)].double().sum()
    return found

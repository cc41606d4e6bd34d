"""Sampling with transformers in which every response has its own temperature,
limit and random numbers.

`generate` draws a batch from one stream, so a response depends on its neighbours. Here each row
draws from its own seed, by inverting the cumulative distribution: the same row comes out alike in
any batch, up to the rounding of sums. Rows that have ended leave the batch.
"""

import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import torch
from transformers import DynamicCache, PreTrainedModel

COMPACT_SHARE = 0.75
"""Ended rows are dropped from the cache when this share or less is left."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """A response and the log-probs of its tokens, at the temperature of its request."""

    token_ids: list[int]
    logprobs: list[float]


@dataclass(frozen=True, slots=True)
class SampleRequest:
    """One response to sample."""

    prompt_ids: Sequence[int]
    temperature: float
    max_tokens: int
    seed: int


@torch.no_grad()
def sample(
    model: PreTrainedModel,
    requests: Sequence[SampleRequest],
    *,
    pad_id: int,
    end_ids: Collection[int],
    stop: threading.Event | None = None,
    pause_seconds: float = 0.0,
) -> list[Sampled]:
    """Return the response to each request, the end token included where one was sampled.

    Args:
        model: the weights.
        requests: what is asked.
        pad_id: a token that pads.
        end_ids: tokens that end a response.
        stop: once it is set, responses are returned as far as they have come.
        pause_seconds: how long half done responses wait for `stop`.
    """
    stop = stop or threading.Event()
    # A function of the requests alone: the last bits of a product may depend on the place in the
    # batch.
    order = sorted(range(len(requests)), key=lambda row: (len(requests[row].prompt_ids), row))
    requests = [requests[row] for row in order]
    device = model.device
    width = max(len(r.prompt_ids) for r in requests)
    longest = max(r.max_tokens for r in requests)
    padded = [[pad_id] * (width - len(r.prompt_ids)) + list(r.prompt_ids) for r in requests]
    used = [[0] * (width - len(r.prompt_ids)) + [1] * len(r.prompt_ids) for r in requests]
    tokens = torch.tensor(padded, device=device)
    mask = torch.tensor(used, device=device)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    draws = torch.stack(
        [
            torch.rand(
                longest,
                generator=torch.Generator().manual_seed(r.seed),
                dtype=torch.float64,
            )
            for r in requests
        ]
    ).to(device)
    temperatures = torch.tensor([[r.temperature] for r in requests], device=device)
    responses: list[list[int]] = [[] for _ in requests]
    logprobs: list[list[float]] = [[] for _ in requests]
    alive = list(range(len(requests)))  # which request a row of the batch answers
    cache = DynamicCache(config=model.config)
    for place in range(longest):
        if stop.wait(pause_seconds if place == longest // 2 else 0):
            break
        output = model(
            input_ids=tokens,
            attention_mask=mask,
            position_ids=positions,
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        scaled = torch.log_softmax(output.logits[:, -1].double() / temperatures[alive], -1)
        shares = scaled.exp().cumsum(-1)
        drawn = draws[alive, place, None] * shares[:, -1:]
        chosen = torch.searchsorted(shares, drawn, right=True)[:, 0].clamp(max=shares.size(1) - 1)
        goes_on = []
        of_chosen = scaled.gather(1, chosen[:, None])[:, 0].tolist()
        for row, token in enumerate(chosen.tolist()):
            answers = responses[alive[row]]
            if has_ended(answers, requests[alive[row]], end_ids):
                continue
            answers.append(token)
            logprobs[alive[row]].append(of_chosen[row])
            if not has_ended(answers, requests[alive[row]], end_ids):
                goes_on.append(row)
        if not goes_on:
            break
        if len(goes_on) <= COMPACT_SHARE * len(alive):
            kept = torch.tensor(goes_on, device=device)
            cache.batch_select_indices(kept)
            mask = mask[kept]
            positions = positions[kept]
            chosen = chosen[kept]
            alive = [alive[row] for row in goes_on]
        tokens = chosen[:, None]
        mask = torch.cat([mask, mask.new_ones(len(alive), 1)], 1)
        positions = positions[:, -1:] + 1
    places = sorted(range(len(order)), key=order.__getitem__)
    return [Sampled(responses[place], logprobs[place]) for place in places]


def has_ended(answer: Sequence[int], request: SampleRequest, end_ids: Collection[int]) -> bool:
    """Return whether a response has reached its end token or its limit."""
    return len(answer) >= request.max_tokens or bool(answer and answer[-1] in end_ids)

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


class _Batch:
    """The rows that are still sampled: what the next pass reads, and whom each row answers."""

    def __init__(
        self, model: PreTrainedModel, requests: Sequence[SampleRequest], pad_id: int
    ) -> None:
        width = max(len(request.prompt_ids) for request in requests)
        padded = []
        used = []
        for request in requests:
            num_padding = width - len(request.prompt_ids)
            padded.append([pad_id] * num_padding + list(request.prompt_ids))
            used.append([0] * num_padding + [1] * len(request.prompt_ids))
        self.model = model
        self.tokens = torch.tensor(padded, device=model.device)
        self.mask = torch.tensor(used, device=model.device)
        self.positions = (self.mask.cumsum(1) - 1).clamp(min=0)
        self.cache = DynamicCache(config=model.config)
        self.alive = list(range(len(requests)))
        """Which request a row of the batch answers."""

    def read_logits(self) -> torch.Tensor:
        """Return the logits of each row's next token."""
        output = self.model(
            input_ids=self.tokens,
            attention_mask=self.mask,
            position_ids=self.positions,
            past_key_values=self.cache,
            use_cache=True,
            logits_to_keep=1,
        )
        return output.logits[:, -1]

    def advance(self, chosen: torch.Tensor, goes_on: Sequence[int]) -> None:
        """Put each row's chosen token behind it; drop ended rows where they are many."""
        if len(goes_on) <= COMPACT_SHARE * len(self.alive):
            kept = torch.tensor(goes_on, device=chosen.device)
            self.cache.batch_select_indices(kept)
            self.mask = self.mask[kept]
            self.positions = self.positions[kept]
            chosen = chosen[kept]
            self.alive = [self.alive[row] for row in goes_on]
        self.tokens = chosen[:, None]
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(self.alive), 1)], 1)
        self.positions = self.positions[:, -1:] + 1


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
    longest = max(request.max_tokens for request in requests)
    draws = _draw_numbers(requests, longest).to(model.device)
    temperatures = torch.tensor(
        [[request.temperature] for request in requests], device=model.device
    )
    answers = [Sampled([], []) for _ in requests]
    batch = _Batch(model, requests, pad_id)
    for place in range(longest):
        if stop.wait(pause_seconds if place == longest // 2 else 0):
            break
        scaled = torch.log_softmax(batch.read_logits().double() / temperatures[batch.alive], -1)
        chosen = _choose(scaled, draws[batch.alive, place, None])
        of_chosen = scaled.gather(1, chosen[:, None])[:, 0].tolist()
        goes_on = []
        for row, token in enumerate(chosen.tolist()):
            request = requests[batch.alive[row]]
            answer = answers[batch.alive[row]]
            if has_ended(answer.token_ids, request, end_ids):
                continue
            answer.token_ids.append(token)
            answer.logprobs.append(of_chosen[row])
            if not has_ended(answer.token_ids, request, end_ids):
                goes_on.append(row)
        if not goes_on:
            break
        batch.advance(chosen, goes_on)
    places = sorted(range(len(order)), key=order.__getitem__)
    return [answers[place] for place in places]


def _draw_numbers(requests: Sequence[SampleRequest], longest: int) -> torch.Tensor:
    """Return a row of uniform numbers for each request, drawn from the request's own seed."""
    draws = []
    for request in requests:
        generator = torch.Generator().manual_seed(request.seed)
        draws.append(torch.rand(longest, generator=generator, dtype=torch.float64))
    return torch.stack(draws)


def _choose(scaled: torch.Tensor, draws: torch.Tensor) -> torch.Tensor:
    """Return each row's token, by inverting the cumulative distribution at its drawn number."""
    shares = scaled.exp().cumsum(-1)
    drawn = draws * shares[:, -1:]
    places = torch.searchsorted(shares, drawn, right=True)[:, 0]
    return places.clamp(max=shares.size(1) - 1)


def has_ended(answer: Sequence[int], request: SampleRequest, end_ids: Collection[int]) -> bool:
    """Return whether a response has reached its end token or its limit."""
    return len(answer) >= request.max_tokens or bool(answer and answer[-1] in end_ids)

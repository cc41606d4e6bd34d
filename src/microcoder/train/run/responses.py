"""Responses of a model in this process, sampled in slots or by transformers' `generate`.

In slots (`slots.py`) a prompt that waits takes the place of a response that has ended, and no row
waits for another. Models whose cache is of another kind are sampled by `generate`, in batches that
end with their longest response: `find_obstacle` tells which.

Whoever asks says how tokens are drawn. An evaluation gives each response a seed and random numbers
of its own, so that other responses beside it change nothing but rounding. A step of training draws
for all its responses from torch's generator, as `generate` does.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, cast

import torch
from transformers import (
    GenerationConfig,
    LogitsProcessor,
    LogitsProcessorList,
    PreTrainedModel,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from microcoder.train.run.progress import SECONDS_BETWEEN_REPORTS, SamplingProgress
from microcoder.train.run.slots import Slots, attending_in_slots

Report = Callable[[SamplingProgress], None]
"""Function that is told of the progress."""


class Sampling(NamedTuple):
    """How responses are sampled, and what ends them."""

    temperature: float
    """0: the likeliest token each time."""
    top_p: float
    max_tokens: int
    end_ids: Collection[int]
    pad_id: int
    top_k: int | None = None
    """Likeliest tokens that are drawn from; None: all."""


@dataclass(slots=True)
class Response:
    """A response that has not ended."""

    index: int
    """That of its prompt."""
    prompt_ids: list[int]
    token_ids: list[int] = field(default_factory=list)


class Draws(Protocol):
    """Draws the next token of each of some responses."""

    def choose(
        self,
        probabilities: torch.Tensor,
        responses: Sequence[Response],
    ) -> torch.Tensor:
        """Return a token for each response, by its probabilities (responses, words)."""
        ...


class OwnDraws:
    """Random numbers of a response's own seed, one for each of its tokens."""

    def __init__(self, seeds: Sequence[int], max_tokens: int) -> None:
        self._seeds = seeds
        self._max_tokens = max_tokens
        self._numbers: dict[int, torch.Tensor] = {}

    def choose(
        self,
        probabilities: torch.Tensor,
        responses: Sequence[Response],
    ) -> torch.Tensor:
        """Return the tokens at which the sum of probabilities exceeds the numbers."""
        numbers = []
        for response in responses:
            if not response.token_ids:
                self._numbers[response.index] = self._draw(response.index)
            numbers.append(self._numbers[response.index][len(response.token_ids)])
        # A sum over a large vocabulary needs the precision.
        cumulative = probabilities.double().cumsum(-1)
        draws = torch.stack(numbers).to(cumulative.device)[:, None]
        chosen = torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True)
        return chosen[:, 0].clamp(max=probabilities.shape[-1] - 1)

    def _draw(self, index: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(self._seeds[index])
        return torch.rand(self._max_tokens, generator=generator, dtype=torch.float64)


class CommonDraws:
    """torch's generator, used for all responses of a call together.

    All must begin at once. Each step draws numbers for every response, ended or not, as
    `torch.multinomial` does in `generate`. So the same tokens are drawn as there.
    """

    def __init__(self, number: int) -> None:
        self._number = number

    def choose(
        self,
        probabilities: torch.Tensor,
        responses: Sequence[Response],
    ) -> torch.Tensor:
        """Return the tokens that win a race of exponential waiting times."""
        waits = probabilities.new_empty(self._number, probabilities.shape[-1]).exponential_()
        rows = torch.tensor([response.index for response in responses], device=waits.device)
        return (probabilities / waits[rows]).argmax(-1)


def sample_responses(
    model: PreTrainedModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    *,
    draws: Draws,
    batch_size: int,
    in_slots: bool,
    report: Report = lambda progress: None,
) -> Iterator[tuple[int, list[int]]]:
    """Yield a prompt's index and its response's token ids, in the order in which responses end.

    Long prompts come first: if memory is too small, that shows at once. `model` is in evaluation
    mode.

    Args:
        model: one of transformers.
        prompts: token ids.
        sampling: how responses are sampled.
        draws: draws the tokens; not used at temperature 0.
        batch_size: responses at a time.
        in_slots: whether `find_obstacle` finds none.
        report: gets the progress.
    """
    choose = _Choice(sampling, draws)
    by_length = sorted(range(len(prompts)), key=lambda index: -len(prompts[index]))
    waiting = deque(Response(index, list(prompts[index])) for index in by_length)
    progress = ProgressCounter(
        len(prompts),
        batch_size,
        limit=sampling.max_tokens,
        report=report,
    )
    if in_slots:
        yield from _sample_in_slots(model, waiting, choose, batch_size, progress)
        return
    while waiting:
        batch = [waiting.popleft() for _ in range(min(batch_size, len(waiting)))]
        _sample_by_generate(model, batch, choose, progress)
        for response in batch:
            yield response.index, response.token_ids


def _sample_in_slots(
    model: PreTrainedModel,
    waiting: deque[Response],
    choose: "_Choice",
    batch_size: int,
    progress: "ProgressCounter",
) -> Iterator[tuple[int, list[int]]]:
    slots = Slots(model, min(batch_size, len(waiting)))
    active: list[Response] = []
    while active or waiting:
        ended = []
        with attending_in_slots(model):
            _fill_slots(slots, active, waiting)
            newest = [(response.prompt_ids + response.token_ids)[-1] for response in active]
            chosen = choose(slots.read_tokens(newest), active)
        for response, token in zip(active, chosen.tolist(), strict=True):
            response.token_ids.append(token)
        progress.count_step(active)
        # From behind: the last slot moves into one that becomes free.
        for slot in reversed(range(len(active))):
            if choose.has_ended(active[slot]):
                ended.append(active[slot])
                slots.free(slot)
                active[slot] = active[-1]
                active.pop()
        progress.count_ended(len(ended), active)
        for response in ended:
            yield response.index, response.token_ids


def _fill_slots(slots: Slots, active: list[Response], waiting: deque[Response]) -> None:
    """Give free slots to prompts that wait.

    The last token of a prompt is left to the next step, which samples behind it.
    """
    slot_of: dict[tuple[int, ...], int] = {}
    for slot, response in enumerate(active):
        slot_of[tuple(response.prompt_ids)] = slot
    added: list[list[int]] = []
    while waiting and len(active) < slots.number:
        response = waiting.popleft()
        known = slot_of.get(tuple(response.prompt_ids))
        active.append(response)
        if known is not None and not added:
            # Sampled already: its keys are there.
            slots.take_copy(known, len(response.prompt_ids) - 1)
            continue
        added.append(response.prompt_ids[:-1])
    if added:
        slots.read_prompts(added)


def _sample_by_generate(
    model: PreTrainedModel,
    batch: Sequence[Response],
    choose: "_Choice",
    progress: "ProgressCounter",
) -> None:
    """Add to each response of a batch its tokens, by transformers' `generate`."""
    width = max(len(response.prompt_ids) for response in batch)
    padded = []
    masks = []
    for response in batch:
        # Padded on the left: the last column is the newest token of every row.
        padding = width - len(response.prompt_ids)
        padded.append([choose.sampling.pad_id] * padding + response.prompt_ids)
        masks.append([0] * padding + [1] * len(response.prompt_ids))
    # Greedy, since the watch draws: it leaves one token to choose.
    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=choose.sampling.max_tokens,
        eos_token_id=list(choose.sampling.end_ids),
        pad_token_id=choose.sampling.pad_id,
    )
    watch = _GenerateWatch(batch, choose, progress)
    generate: Any = model.generate
    with torch.inference_mode():
        generate(
            input_ids=torch.tensor(padded, device=model.device),
            attention_mask=torch.tensor(masks, device=model.device),
            generation_config=settings,
            logits_processor=LogitsProcessorList([watch]),
        )


class _Choice:
    """Chooses the next tokens by temperature, `top_k` and `top_p`."""

    def __init__(self, sampling: Sampling, draws: Draws) -> None:
        self.sampling = sampling
        self._draws = draws
        self._warpers = LogitsProcessorList()
        if sampling.temperature not in (0, 1):
            self._warpers.append(TemperatureLogitsWarper(float(sampling.temperature)))
        # Before top_p, as vLLM and transformers do.
        if sampling.top_k is not None:
            self._warpers.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            self._warpers.append(TopPLogitsWarper(float(sampling.top_p)))

    def __call__(self, logits: torch.Tensor, responses: Sequence[Response]) -> torch.Tensor:
        """Return a token for each response, by its logits (responses, words)."""
        if self.sampling.temperature == 0:
            return logits.argmax(-1)
        scores: Any = logits.float()
        # None of them looks at the tokens before.
        warped = self._warpers(cast(torch.LongTensor, scores), scores)
        return self._draws.choose(warped.softmax(-1), responses)

    def has_ended(self, response: Response) -> bool:
        """Return whether a response has ended: by an end token, or at the length limit."""
        if len(response.token_ids) >= self.sampling.max_tokens:
            return True
        return response.token_ids[-1] in self.sampling.end_ids


class _GenerateWatch(LogitsProcessor):
    """Draws a batch's tokens within `generate`, and keeps those of unended responses."""

    def __init__(
        self,
        batch: Sequence[Response],
        choose: _Choice,
        progress: "ProgressCounter",
    ) -> None:
        self._choose = choose
        self._progress = progress
        self._batch = batch
        self._unended = list(range(len(batch)))

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return scores that leave exactly one possible token in each row."""
        rows = torch.tensor(self._unended, device=scores.device)
        active = [self._batch[row] for row in self._unended]
        chosen = self._choose(scores[rows], active)
        only_chosen = torch.full_like(scores, float("-inf"))
        # Rows that have ended are filled with padding whatever is chosen.
        only_chosen[:, self._choose.sampling.pad_id] = 0.0
        only_chosen[rows] = float("-inf")
        only_chosen[rows, chosen] = 0.0
        for response, token in zip(active, chosen.tolist(), strict=True):
            response.token_ids.append(token)
        self._progress.count_step(active)
        still_unended = []
        for row in self._unended:
            if not self._choose.has_ended(self._batch[row]):
                still_unended.append(row)
        num_ended = len(self._unended) - len(still_unended)
        self._unended = still_unended
        self._progress.count_ended(num_ended, [self._batch[row] for row in still_unended])
        return cast(torch.FloatTensor, only_chosen)


class ProgressCounter:
    """Counts the tokens and the ended responses of a call, and reports them now and then."""

    def __init__(
        self,
        total: int,
        batch_size: int,
        *,
        limit: int,
        report: Report,
    ) -> None:
        self._total = total
        self._batch_size = batch_size
        self._limit = limit
        self._report = report
        self._tokens = 0
        self._num_ended = 0
        self._steps = 0
        self._longest = 0
        self._began = self._reported = time.monotonic()

    def count_step(self, responses: Sequence[Response]) -> None:
        """Count a token of each of these responses."""
        self._tokens += len(responses)
        self._steps += 1
        for response in responses:
            self._longest = max(self._longest, len(response.token_ids))

    def count_ended(self, number: int, unended: Sequence[Response]) -> None:
        """Count responses that have ended; `unended` are those that go on."""
        self._num_ended += number
        now = time.monotonic()
        is_over = self._num_ended == self._total
        if now - self._reported < SECONDS_BETWEEN_REPORTS and not is_over:
            return
        self._reported = now
        shortest = min((len(response.token_ids) for response in unended), default=0)
        waiting = self._total - self._num_ended - len(unended)
        # As if all the others were to go on to the limit.
        rounds = math.ceil(waiting / self._batch_size)
        steps_left = (self._limit - shortest) + rounds * self._limit
        progress = SamplingProgress(
            ended=self._num_ended,
            total=self._total,
            tokens=self._tokens,
            longest=self._longest,
            limit=self._limit,
            seconds=now - self._began,
            steps=self._steps,
            steps_left=steps_left,
        )
        self._report(progress)


@contextmanager
def replacing_generate(
    model: torch.nn.Module,
    answer: Callable[[list[list[int]]], list[list[int]]],
    *,
    pad_id: int,
) -> Iterator[None]:
    """Within the body, calls of a model's `generate` are answered by a function of their prompts.

    TRL calls it between what a model in several parts needs before and after.
    """

    def generate(
        *,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        **_: object,
    ) -> torch.Tensor:
        prompts = []
        for row, mask in zip(input_ids, attention_mask, strict=True):
            prompts.append(row[mask.bool()].tolist())
        # The function may need the model's own.
        del model.__dict__["generate"]
        try:
            responses = answer(prompts)
        finally:
            model.__dict__["generate"] = generate
        width = max(map(len, responses))
        padded = [ids + [pad_id] * (width - len(ids)) for ids in responses]
        return torch.cat([input_ids, torch.tensor(padded, device=input_ids.device)], 1)

    # In front of the class's method, for as long as the body runs.
    model.__dict__["generate"] = generate
    try:
        yield
    finally:
        del model.__dict__["generate"]

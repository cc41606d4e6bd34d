"""Responses of a model in this process, sampled in batches by length.

transformers' `generate` ends a batch when its longest response has ended. Here a batch ends
earlier: as soon as the rows of ended responses have cost more than it takes to read the unended
ones again. These go on in the next batch, which is filled up with prompts that wait.

Each response has a seed and random numbers of its own, so that other responses in its batch change
nothing but rounding.
"""

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
    StoppingCriteria,
    StoppingCriteriaList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from microcoder.train.run.progress import SECONDS_BETWEEN_REPORTS, SamplingProgress

Report = Callable[[SamplingProgress], None]
"""Function that is told of a batch's progress."""
READ_TOKENS_PER_STEP = 8
"""Tokens that are read in the time of sampling one (our choice).

That is what ending a batch early costs: its other responses are read again.
"""


class GenerativeModel(Protocol):
    """What is needed of a model to sample from it; transformers' models have it."""

    @property
    def device(self) -> torch.device:
        """Where its inputs must be."""
        ...

    @property
    def generate(self) -> Callable[..., torch.Tensor]:
        """Returns prompts with their responses behind them, as `GenerationMixin.generate`."""
        ...


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
class _Response:
    """A response that has not ended."""

    index: int
    prompt_ids: list[int]
    draws: torch.Tensor | None
    """A uniform random number for each of its tokens; None without sampling."""
    token_ids: list[int] = field(default_factory=list)


def sample_responses(
    model: GenerativeModel,
    prompts: Sequence[Sequence[int]],
    sampling: Sampling,
    *,
    seeds: Sequence[int],
    batch_size: int,
    report: Report = lambda progress: None,
) -> Iterator[tuple[int, list[int]]]:
    """Yield a prompt's index and its response's token ids, in the order in which responses end.

    Long prompts come first: if memory is too small, that shows at once. `model` is in evaluation
    mode.
    """
    # Of equal length the first one first: a sort keeps their order.
    by_length = sorted(range(len(prompts)), key=lambda index: -len(prompts[index]))
    waiting = deque(by_length)
    unended: list[_Response] = []
    while waiting or unended:
        while waiting and len(unended) < batch_size:
            # Places of responses that have ended are given to prompts that wait.
            index = waiting.popleft()
            draws = _draw_numbers(seeds[index], sampling)
            unended.append(_Response(index, list(prompts[index]), draws))
        # Some of the batch end; the others go on in the next.
        _sample_batch(model, unended, sampling, report)
        still_unended = []
        for response in unended:
            if has_ended(response.token_ids, sampling):
                yield response.index, response.token_ids
            else:
                still_unended.append(response)
        unended = still_unended


def has_ended(token_ids: Sequence[int], sampling: Sampling) -> bool:
    """Return whether a response has ended: by an end token, or at the length limit."""
    if len(token_ids) >= sampling.max_tokens:
        return True
    return bool(token_ids) and token_ids[-1] in sampling.end_ids


def _draw_numbers(seed: int, sampling: Sampling) -> torch.Tensor | None:
    """Return a response's random numbers, one for each of its tokens; None without sampling."""
    if sampling.temperature == 0:
        return None
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(sampling.max_tokens, generator=generator, dtype=torch.float64)


def _sample_batch(
    model: GenerativeModel, batch: Sequence[_Response], sampling: Sampling, report: Report
) -> None:
    """Add tokens to each response of a batch, until a new batch is cheaper.

    That is when all have ended, or so many that it pays to read the others again without them.
    """
    device = model.device
    # A response that goes on is read again, behind its prompt.
    sequences = [response.prompt_ids + response.token_ids for response in batch]
    width = max(map(len, sequences))
    # Padded on the left: the last column is the newest token of every row.
    padded = [[sampling.pad_id] * (width - len(ids)) + ids for ids in sequences]
    masks = [[0] * (width - len(ids)) + [1] * len(ids) for ids in sequences]
    left = [sampling.max_tokens - len(response.token_ids) for response in batch]
    watch = _BatchWatch(batch, sampling, left, width=width, device=device, report=report)
    processors = LogitsProcessorList()
    if sampling.temperature > 0:
        processors.append(_OwnDraws(batch, sampling, width=width, device=device))
    # Greedy, since the random numbers are drawn by the processor: it leaves one token to choose.
    settings = GenerationConfig(
        do_sample=False,
        max_new_tokens=max(left),
        eos_token_id=list(sampling.end_ids),
        pad_token_id=sampling.pad_id,
    )
    with torch.inference_mode():
        out = model.generate(
            input_ids=torch.tensor(padded, device=device),
            attention_mask=torch.tensor(masks, device=device),
            generation_config=settings,
            logits_processor=processors,
            stopping_criteria=StoppingCriteriaList([watch]),
        )
    for response, row, most in zip(batch, out[:, width:].tolist(), left, strict=True):
        # What follows a row's end was sampled to fill the batch only.
        for token in row[:most]:
            response.token_ids.append(token)
            if token in sampling.end_ids:
                break


class _OwnDraws(LogitsProcessor):
    """Chooses each response's next token by the response's own random number."""

    def __init__(
        self, batch: Sequence[_Response], sampling: Sampling, *, width: int, device: torch.device
    ) -> None:
        self._width = width
        self._warpers = LogitsProcessorList([TemperatureLogitsWarper(float(sampling.temperature))])
        # Before top_p, as vLLM and transformers do.
        if sampling.top_k is not None:
            self._warpers.append(TopKLogitsWarper(sampling.top_k))
        if sampling.top_p < 1:
            self._warpers.append(TopPLogitsWarper(float(sampling.top_p)))
        # Of a response that goes on, the numbers behind those that were used; then zeros, for ended
        # rows.
        rows = []
        for response in batch:
            assert response.draws is not None
            rows.append(response.draws[len(response.token_ids) :])
        self._draws = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).to(device)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """Return scores that leave exactly one possible token in each row."""
        exact: Any = scores.float()
        warped: Any = self._warpers(input_ids, exact)
        # A sum over a large vocabulary needs the precision.
        cumulative = warped.softmax(-1).double().cumsum(-1)
        draws = self._draws[:, input_ids.shape[1] - self._width, None]
        chosen = torch.searchsorted(cumulative, draws * cumulative[:, -1:], right=True)
        chosen = chosen.clamp(max=scores.shape[-1] - 1)
        only_chosen = torch.full_like(scores, float("-inf")).scatter(-1, chosen, 0.0)
        return cast(torch.FloatTensor, only_chosen)


class _BatchWatch(StoppingCriteria):
    """Ends rows at their own limits, ends the batch when it pays, and reports its progress."""

    def __init__(
        self,
        batch: Sequence[_Response],
        sampling: Sampling,
        left: Sequence[int],
        *,
        width: int,
        device: torch.device,
        report: Report,
    ) -> None:
        self._sampling = sampling
        self._width = width
        self._left = torch.tensor(left, device=device)
        self._lengths = torch.tensor(
            [len(response.prompt_ids) + len(response.token_ids) for response in batch],
            device=device,
        )
        self._counter = ProgressCounter(
            len(batch),
            limit=sampling.max_tokens,
            longest_before=max(len(response.token_ids) for response in batch),
            report=report,
        )
        self._ended = torch.zeros(len(batch), dtype=torch.bool, device=device)
        self._ends = torch.tensor(list(sampling.end_ids), device=device)
        self._idle_rows = 0

    def __call__(
        self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **_: object
    ) -> torch.BoolTensor:
        """Return for each row whether it has ended.

        To end the batch early, all rows are said to have ended.
        """
        steps = input_ids.shape[1] - self._width
        self._ended |= torch.isin(input_ids[:, -1], self._ends) | (steps >= self._left)
        num_ended = int(self._ended.sum())
        self._counter.count(num_ended, steps)
        self._idle_rows += num_ended
        if 0 < num_ended < len(self._ended):
            # Each step a row that has ended takes the time of a token. To go on without such rows
            # costs reading the others again: cheaper once the former exceeds it.
            to_read = int(((self._lengths + steps) * ~self._ended).sum())
            if self._idle_rows * READ_TOKENS_PER_STEP > to_read:
                return cast(torch.BoolTensor, torch.ones_like(self._ended))
        return cast(torch.BoolTensor, self._ended)


class ProgressCounter:
    """Counts tokens and ended responses of a batch, and reports them now and then."""

    def __init__(self, total: int, *, limit: int, report: Report, longest_before: int = 0) -> None:
        self._total = total
        self._limit = limit
        self._report = report
        self._longest_before = longest_before
        self._tokens = 0
        self._num_ended_before = 0
        self._began = self._reported = time.monotonic()

    def count(self, num_ended: int, steps: int) -> None:
        """Count a step of the batch, after which `num_ended` responses have ended."""
        self._tokens += self._total - self._num_ended_before
        self._num_ended_before = num_ended
        now = time.monotonic()
        is_over = num_ended == self._total
        if now - self._reported < SECONDS_BETWEEN_REPORTS and not is_over:
            return
        self._reported = now
        # All rows have had as many steps as the longest.
        progress = SamplingProgress(
            ended=num_ended,
            total=self._total,
            tokens=self._tokens,
            longest=min(self._limit, self._longest_before + steps),
            limit=self._limit,
            seconds=now - self._began,
            steps=steps,
        )
        self._report(progress)


class ProgressWatch(StoppingCriteria):
    """Reports the progress of a call of `generate`, and ends nothing."""

    def __init__(
        self, rows: int, end_ids: Collection[int], *, width: int, limit: int, report: Report
    ) -> None:
        self._counter = ProgressCounter(rows, limit=limit, report=report)
        self._width = width
        self._end_ids = list(end_ids)
        self._ended: torch.Tensor | None = None

    def __call__(
        self, input_ids: torch.LongTensor, scores: torch.FloatTensor, **_: object
    ) -> torch.BoolTensor:
        """Return that no row has ended: this only watches."""
        # The device is known from the first call on.
        ends = torch.tensor(self._end_ids, device=input_ids.device)
        is_end = torch.isin(input_ids[:, -1], ends)
        if self._ended is None:
            self._ended = torch.zeros_like(is_end)
        self._ended |= is_end
        steps = input_ids.shape[1] - self._width
        self._counter.count(int(self._ended.sum()), steps)
        return cast(torch.BoolTensor, torch.zeros_like(is_end))


@contextmanager
def watch_generate(
    model: torch.nn.Module, build_watch: Callable[[torch.Tensor], StoppingCriteria]
) -> Iterator[None]:
    """Within the body, pass a watch (a stopping criterion) to each call of a model's `generate`.

    TRL passes none. `build_watch` builds it from the token ids of the call's prompts.
    """
    inherited: Any = model.generate

    def generate(*, input_ids: torch.Tensor, **options: object) -> object:
        watches = StoppingCriteriaList([build_watch(input_ids)])
        return inherited(input_ids=input_ids, stopping_criteria=watches, **options)

    # In front of the class's method, for as long as the body runs.
    model.__dict__["generate"] = generate
    try:
        yield
    finally:
        del model.__dict__["generate"]

"""Rollouts: prompts as text, responses read from tokens, and statistics of scored rollouts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Program, Rollout, Verdict

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Chat = Sequence[Mapping[str, str]]
"""Turns of a conversation, each with its `role` and `content`."""


def render_chat(tokenizer: PreTrainedTokenizerBase, chat: Chat, options: Mapping[str, Any]) -> str:
    """Return the prompt's text: by the chat template or, for a base model, the turns joined."""
    # A base model knows no turns.
    if tokenizer.chat_template is None:
        return "\n\n".join(turn["content"] for turn in chat)
    with explain_template():
        text = tokenizer.apply_chat_template(
            [dict(turn) for turn in chat], tokenize=False, add_generation_prompt=True, **options
        )
    return str(text)


@contextmanager
def explain_template() -> Iterator[None]:
    """Within the body, raise DataError if a chat template is broken, or refuses a chat as it is."""
    # Comes with whatever renders a template.
    from jinja2 import TemplateError

    try:
        yield
    except TemplateError as error:
        raise DataError(
            f"the model's chat template cannot make a prompt of a problem: {error}; if it takes no "
            "system turn, leave prompt.system out, otherwise copy its chat_template again"
        ) from None


def find_closing_token(
    tokenizer: PreTrainedTokenizerBase, special_ids: Collection[int]
) -> int | None:
    """Return the special token that a chat template puts after an answer; None if it puts none."""
    if tokenizer.chat_template is None:
        return None
    answer = "An answer."
    chat = [{"role": "user", "content": "?"}, {"role": "assistant", "content": answer}]
    try:
        text = str(tokenizer.apply_chat_template(chat, tokenize=False))
    except Exception:  # a template may refuse any chat that it was not written for
        return None
    behind = text.rpartition(answer)[2]
    ids = tokenizer(behind, add_special_tokens=False)["input_ids"]
    if ids and ids[0] in special_ids:
        return ids[0]
    return None


def opens_thinking(tokenizer: PreTrainedTokenizerBase, options: Mapping[str, Any]) -> bool:
    """Return whether the chat template starts the response inside `<think>`, as R1's does.

    The response then lacks the tag.
    """
    prompt = render_chat(tokenizer, [{"role": "user", "content": "?"}], options)
    return prompt.rstrip().endswith("<think>")


@dataclass(frozen=True, slots=True)
class RolloutReader:
    """Turns sampled token ids into rollouts.

    It decodes them, and finds out whether the length limit cut them off.
    """

    tokenizer: PreTrainedTokenizerBase
    end_ids: Collection[int]
    """Ids of the tokens that end a response."""
    opens_thinking: bool
    """Whether responses begin inside `<think>`, see the function `opens_thinking`."""
    template_options: Mapping[str, Any] = field(default_factory=dict)
    """Options of the chat template by which prompts are rendered."""

    def render(self, chat: Chat) -> str:
        """Return a prompt as the model is given it.

        It has the system turn and marks that the chat template adds.
        """
        return render_chat(self.tokenizer, chat, self.template_options)

    def read(
        self,
        problem_id: str,
        prompt: str,
        responses: Sequence[Sequence[int]],
        *,
        max_response_tokens: int,
    ) -> list[Rollout]:
        """Return the rollouts of one problem's responses, each a list of token ids."""
        texts = self.tokenizer.batch_decode(
            [list(ids) for ids in responses], skip_special_tokens=True
        )
        rollouts = []
        for text, token_ids in zip(texts, responses, strict=True):
            # A response of that length may have ended by itself with its last token.
            is_long = len(token_ids) >= max_response_tokens
            if self.opens_thinking:
                # The tag is the prompt's last one.
                text = f"<think>{text}"
            rollout = Rollout(
                problem_id=problem_id,
                prompt=prompt,
                completion=text,
                token_ids=tuple(token_ids),
                is_truncated=is_long and token_ids[-1] not in self.end_ids,
            )
            rollouts.append(rollout)
        return rollouts


@dataclass(frozen=True, slots=True)
class SamplerMismatch:
    """Difference of a response's log-probs between sampler and trainer, and its correction."""

    logp_difference: float
    """Mean over tokens of the absolute difference of the trainer's and the sampler's log-prob."""
    weight: float
    """Factor on the response's loss that corrects it, mean over tokens: the bounded ratio.

    0 if the whole response is dropped.
    """


@dataclass(frozen=True, slots=True)
class ScoredRollout:
    """A rollout with all decisions about it: the row of `rollouts/step_*.parquet`."""

    rollout: Rollout
    program: Program
    verdict: Verdict
    reward: float | None
    """Reward that the advantage is computed from: the weighted sum of the rewards (the paper's is 0
    or 1) plus `length_penalty`; None if the sandbox failed: unscored."""
    advantage: float
    """Advantage in the loss; 0 where masked or unscored."""
    masked_why: str
    """Why the advantage was set to zero: the truncation mask, or the sampler's mismatch; empty when
    it was not."""
    tier: str | None
    sample_index: int
    """Index among the samples of its problem, from 0."""
    length_penalty: float = 0.0
    """Length or truncation penalty on the reward; 0 or negative."""
    mismatch: SamplerMismatch | None = None
    """The observed mismatch; None if sampler and trainer are the same, or nothing is corrected."""
    rewards: Mapping[str, float | None] = field(default_factory=dict)
    """Each of several rewards, unweighted; empty for a single one."""
    counts: bool = True
    """Whether its tokens count in the loss's denominator; false if a mask excludes them."""
    lost: Mapping[str, float] = field(default_factory=dict)
    """Advantage that `mask`, `penalty` and `mismatch` removed; a missing key means none."""
    staleness: int = 0
    """Age of the oldest weights that sampled a part of the response, in steps behind the newest."""
    unscored_by: tuple[str, ...] = ()
    """Who left it unscored: labels of rewards that returned None; empty if it is scored, or the
    sandbox failed."""


LOOP_WINDOW_TOKENS = 512
"""How many tokens of a response's end are searched for a loop."""

LEAST_LOOP_TOKENS = 48
"""Fewest tokens of a loop: shorter repeats end many a right program."""

LEAST_LOOP_ROUNDS = 3
"""How often a loop's period must be there."""


def ends_in_loop(token_ids: Sequence[int]) -> bool:
    """Return whether a response ends in a loop: the same tokens at least three times.

    Any period counts: the mask's own check (`masking.repeats`) finds those that divide its window,
    this one all up to a third of the last 512 tokens. It decides nothing, and is counted for the
    metrics.
    """
    end = token_ids[-LOOP_WINDOW_TOKENS:]
    backwards = end[::-1]
    # By Knuth, Morris and Pratt: the longest border of each prefix of the reversed end. The prefix
    # without it is its period.
    borders = [0] * len(backwards)
    for index in range(1, len(backwards)):
        length = borders[index - 1]
        while length and backwards[index] != backwards[length]:
            length = borders[length - 1]
        if backwards[index] == backwards[length]:
            length += 1
        borders[index] = length
        size = index + 1
        period = size - length
        if size >= LEAST_LOOP_TOKENS and size >= LEAST_LOOP_ROUNDS * period:
            return True
    return False


def has_signal(rewards_G: Sequence[float | None]) -> bool:
    """Return whether the scored rewards of a group differ.

    Otherwise its advantages are all zero.
    """
    return len({reward for reward in rewards_G if reward is not None}) > 1


def share_removed_advantages(samples: Sequence[ScoredRollout]) -> dict[str, float]:
    """Return the share of a step's summed |advantage| that was removed, by mechanism and sign.

    A masked response of a group in which all rewards are equal loses nothing: its advantage is 0
    anyway. So the effect on an update is measured by the advantage that is removed, not by the
    number of responses.

    `mask_positive` is credit that right answers lost, `mask_negative` blame that wrong ones were
    spared. Mechanisms that removed nothing have no key.
    """
    return sum_removed_advantages(samples).shares


class RemovedAdvantages(NamedTuple):
    """What mechanisms removed of some rollouts' advantages."""

    removed: dict[str, float]
    """Summed |advantage| that each removed, by mechanism and sign, sorted by name."""
    total: float
    """Summed |advantage| before anything was removed."""

    @property
    def shares(self) -> dict[str, float]:
        """What was removed, as shares of the total; empty if there was no advantage."""
        if not self.total:
            return {}
        return {name: amount / self.total for name, amount in self.removed.items()}


def sum_removed_advantages(samples: Sequence[ScoredRollout]) -> RemovedAdvantages:
    """Return the summed |advantage| that each mechanism removed, and the sum of all."""
    removed: dict[str, float] = {}
    total = 0.0
    for sample in samples:
        lost = sample.lost
        # A masked response's own advantage is 0: what it had is in what was removed.
        had = sample.advantage or lost.get("mask", 0.0) or lost.get("mismatch", 0.0)
        total += abs(had + lost.get("penalty", 0.0))
        # Credit is advantage above 0, blame below.
        for mechanism, amount in lost.items():
            sign = "positive" if amount > 0 else "negative"
            name = f"{mechanism}_{sign}"
            removed[name] = removed.get(name, 0.0) + abs(amount)
    return RemovedAdvantages(dict(sorted(removed.items())), total)


def loses_advantage(masked_why: str, lost: Mapping[str, float]) -> bool:
    """Return whether a rollout was masked and had an advantage to lose."""
    return bool(masked_why) and bool(lost.get("mask") or lost.get("mismatch"))


def measure_group_diversity(responses_G: Sequence[Sequence[int]]) -> float | None:
    """Return the diversity of one problem's responses (paper, section 2.4); None if all are too
    short.

        D = | union over i of grams(o_i) | / sum over i of max(0, |o_i| - 3)

    The paper does not say whether its 4-grams are of tokens or words: here they are of token ids,
    within one response. A response shorter than four tokens has no 4-grams and changes nothing. A
    long response weighs more than a short one, since 4-grams are pooled and not averaged by
    response. Plain sets count a step of 64 x 8 responses of 8,192 tokens in about a second of one
    core.
    """
    grams: list[tuple[int, ...]] = []
    for tokens in responses_G:
        # Four copies of the response, each a token further on.
        grams.extend(zip(tokens, tokens[1:], tokens[2:], tokens[3:], strict=False))
    return len(set(grams)) / len(grams) if grams else None


def measure_diversity(groups_P: Sequence[Sequence[Sequence[int]]]) -> float | None:
    """Return the mean of the groups' diversities; None without any.

    Groups without a 4-gram are left out.
    """
    diversities = map(measure_group_diversity, groups_P)
    known = [diversity for diversity in diversities if diversity is not None]
    return sum(known) / len(known) if known else None

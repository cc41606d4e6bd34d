"""Token ids -> Rollout: the same on every engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from transformers import GenerationConfig, PreTrainedTokenizerBase

from microcoder.training.tasks import Task
from microcoder.types import Rollout


def end_token_ids(tokenizer: PreTrainedTokenizerBase, generation: GenerationConfig | None) -> list[int]:
    """Return the tokens that end a response: the tokenizer's, and those of the model's generation config."""
    given = None if generation is None else generation.eos_token_id
    ids = [given] if isinstance(given, int) else list(given or ())
    own = tokenizer.eos_token_id
    return ids if own in ids or not isinstance(own, int) else [own, *ids]


@dataclass(frozen=True, slots=True)
class RolloutReader:
    """Reads responses as a model's tokenizer writes them."""

    tokenizer: PreTrainedTokenizerBase
    end_ids: Collection[int]
    """Tokens that end a response."""
    opens_thinking: bool
    """See `chat.opens_thinking`."""

    def read(self, task: Task, responses: Sequence[Sequence[int]], *, max_response_tokens: int) -> list[Rollout]:
        """Return the rollouts of one problem's responses."""
        texts = self.tokenizer.batch_decode([list(ids) for ids in responses], skip_special_tokens=True)
        return [
            self.make_rollout(
                task.problem.id, task.prompt.text, ids, text=text, max_response_tokens=max_response_tokens
            )
            for text, ids in zip(texts, responses, strict=True)
        ]

    def read_one(self, problem_id: str, prompt: str, token_ids: Sequence[int], *, max_response_tokens: int) -> Rollout:
        """Return the rollout of one response."""
        (text,) = self.tokenizer.batch_decode([list(token_ids)], skip_special_tokens=True)
        return self.make_rollout(problem_id, prompt, token_ids, text=text, max_response_tokens=max_response_tokens)

    def make_rollout(
        self, problem_id: str, prompt: str, token_ids: Sequence[int], *, text: str, max_response_tokens: int
    ) -> Rollout:
        """Return the rollout of a response that was decoded."""
        return Rollout(
            problem_id=problem_id,
            prompt=prompt,
            completion=f"<think>{text}" if self.opens_thinking else text,
            token_ids=tuple(token_ids),
            is_truncated=len(token_ids) >= max_response_tokens and token_ids[-1] not in self.end_ids,
        )

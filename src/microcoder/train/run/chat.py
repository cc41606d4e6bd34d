"""Prompt -> text -> token ids, by the chat template or as plain text for a base model; and token ids -> rollout.

The same for both engines and for evaluations.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import GenerationConfig, PreTrainedTokenizerBase

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.types import Prompt, Rollout

Chat = Sequence[Mapping[str, str]]


def render_chat(tokenizer: PreTrainedTokenizerBase, chat: Chat, options: Mapping[str, Any]) -> str:
    """Return the prompt's text: by the chat template or, for a base model, the turns joined."""
    if tokenizer.chat_template is None:
        return "\n\n".join(turn["content"] for turn in chat)
    return str(
        tokenizer.apply_chat_template(
            [dict(turn) for turn in chat], tokenize=False, add_generation_prompt=True, **options
        )
    )


def encode_prompts(
    tokenizer: PreTrainedTokenizerBase, prompts: Sequence[Prompt], options: Mapping[str, Any]
) -> list[list[int]]:
    """Return the token ids of each prompt, as a chat where the tokenizer has a template."""
    return encode_chats(tokenizer, [prompt.as_chat() for prompt in prompts], options)


def encode_chats(
    tokenizer: PreTrainedTokenizerBase, chats: Sequence[Chat], options: Mapping[str, Any]
) -> list[list[int]]:
    """Return the token ids of each chat, see `encode_prompts`."""
    if tokenizer.chat_template is None:
        texts = [render_chat(tokenizer, chat, options) for chat in chats]
        return [list(ids) for ids in tokenizer(text=texts)["input_ids"]]
    encoded: Any = tokenizer.apply_chat_template(
        [[dict(turn) for turn in chat] for chat in chats],
        add_generation_prompt=True,
        tokenize=True,
        return_dict=True,
        **options,
    )
    return [list(ids) for ids in encoded["input_ids"]]


def opens_thinking(tokenizer: PreTrainedTokenizerBase, options: Mapping[str, Any]) -> bool:
    """Whether the chat template starts the response inside `<think>`, as R1's does: the response then lacks the tag."""
    if tokenizer.chat_template is None:
        return False
    return render_chat(tokenizer, [{"role": "user", "content": "?"}], options).rstrip().endswith("<think>")


def check_options(tokenizer: PreTrainedTokenizerBase, options: Mapping[str, Any]) -> None:
    """Refuse chat-template options that the model's template does not look at."""
    asked = [{"role": "user", "content": "?"}]
    for name, value in options.items():
        if tokenizer.chat_template is None:
            raise ConfigError(f"prompt.chat_template_options.{name}: this model has no chat template; leave it out")
        # A template may write the same with its default: it is asked with the opposite, and with none, too.
        tried = () if name == "add_generation_prompt" else ({}, {name: value}, {name: not value})
        if len({render_chat(tokenizer, asked, given) for given in tried}) < 2:
            raise ConfigError(
                f"prompt.chat_template_options.{name} would change nothing: the model's chat template does not look at "
                "it; check its name, or leave it out"
            )


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

    def read(
        self, problem_id: str, prompt: str, responses: Sequence[Sequence[int]], *, max_response_tokens: int
    ) -> list[Rollout]:
        """Return the rollouts of one problem's responses."""
        texts = self.tokenizer.batch_decode([list(ids) for ids in responses], skip_special_tokens=True)
        return [
            Rollout(
                problem_id=problem_id,
                prompt=prompt,
                completion=f"<think>{text}" if self.opens_thinking else text,
                token_ids=tuple(token_ids),
                is_truncated=len(token_ids) >= max_response_tokens and token_ids[-1] not in self.end_ids,
            )
            for text, token_ids in zip(texts, responses, strict=True)
        ]

"""Responses of a model in this process, with transformers or vLLM. Sampling only: no trainer, no rewards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from transformers import GenerationConfig

from microcoder.data.completions import Completion
from microcoder.judge.core.errors import ConfigError
from microcoder.train.run.chat import check_options, encode_chats, end_token_ids, render_chat
from microcoder.train.run.generation import sample_responses
from microcoder.train.run.weights import load_checkpoint, load_tokenizer, model_source

Chat = Sequence[dict[str, str]]


@dataclass(frozen=True, slots=True)
class Decoding:
    """Sampling parameters."""

    temperature: float
    """0: the likeliest."""
    top_p: float
    max_tokens: int


class LocalModel(Protocol):
    """A loaded model."""

    @property
    def is_chat(self) -> bool:
        """Whether the model has a chat template; a base model gets plain text, as in training."""
        ...

    def respond(self, chats: Sequence[Chat], seeds: Sequence[int], decoding: Decoding) -> list[Completion]:
        """Return one response per chat, each with its own seed."""
        ...


class TransformersModel:
    """A model run by transformers, on a GPU if there is one."""

    def __init__(
        self, name: str, *, revision: str | None, dtype: str, template_options: Mapping[str, Any] | None = None
    ) -> None:
        """Load it.

        Raises:
            DataError: the folder or the hub has no such model, or only a part of it.
        """
        model, self._tokenizer = load_checkpoint(model_source(name), revision=revision, dtype=dtype)
        self._template_options = template_options or {}
        check_options(self._tokenizer, self._template_options)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._ends = end_token_ids(self._tokenizer, model.generation_config)
        if not self._ends:
            raise ConfigError("the checkpoint names no end-of-sequence token; save one into its generation_config.json")
        self._model: Any = model.to(self._device).eval()  # pyrefly: ignore[bad-argument-type]

    @property
    def is_chat(self) -> bool:
        """Whether it has a chat template."""
        return self._tokenizer.chat_template is not None

    def respond(self, chats: Sequence[Chat], seeds: Sequence[int], decoding: Decoding) -> list[Completion]:
        """Return one response to each chat, all in one batch; the first seed stands for the batch."""
        prompts = encode_chats(self._tokenizer, chats, self._template_options)
        is_sampling, padding = decoding.temperature > 0, self._tokenizer.pad_token_id
        chosen = {"temperature": decoding.temperature, "top_p": decoding.top_p, "top_k": 0} if is_sampling else {}
        # All given, so that the checkpoint's own generation_config.json decides nothing.
        settings = GenerationConfig(
            do_sample=is_sampling,
            eos_token_id=self._ends,
            pad_token_id=self._ends[0] if padding is None else padding,
            **chosen,
        )
        torch.manual_seed(seeds[0])
        try:
            responses = sample_responses(
                self._model,
                prompts,
                settings=settings,
                max_response_tokens=decoding.max_tokens,
                end_ids=set(self._ends),
                rows_at_once=len(chats),
            )
        except torch.OutOfMemoryError as error:
            reason = str(error).splitlines()[0][:200]
            raise ConfigError(
                f"out of memory ({reason}); lower generation.batch_size (now {len(chats)}) or "
                f"generation.sampling.max_tokens (now {decoding.max_tokens}); type the same command again to resume"
            ) from None
        texts = self._tokenizer.batch_decode(responses, skip_special_tokens=True)
        return [
            Completion(text, ids[-1] not in self._ends, len(ids)) for text, ids in zip(texts, responses, strict=True)
        ]


def longest_prompt_tokens(
    name: str, chats: Iterable[Chat], *, revision: str | None, template_options: Mapping[str, Any] | None = None
) -> int:
    """Return the length of the longest prompt as the model's tokenizer writes it."""
    tokenizer = load_tokenizer(model_source(name), revision=revision)
    return max(map(len, encode_chats(tokenizer, list(chats), template_options or {})), default=0)


class VllmModel:
    """A model run by vLLM in this process."""

    def __init__(
        self,
        name: str,
        *,
        revision: str | None,
        dtype: str,
        num_gpus: int,
        max_context_tokens: int,
        gpu_memory_utilization: float,
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Load it.

        Raises:
            ConfigError: vLLM refuses the model.
        """
        from vllm import LLM  # pyrefly: ignore[missing-import]

        self._template_options = dict(template_options or {})
        try:
            self._engine = LLM(
                model=model_source(name),
                revision=revision,
                dtype=dtype,
                tensor_parallel_size=num_gpus,
                max_model_len=max_context_tokens,
                gpu_memory_utilization=gpu_memory_utilization,
            )
        except (ValueError, RuntimeError, OSError) as error:
            raise ConfigError(f"vLLM cannot load {name!r}: {str(error).strip().splitlines()[0]}") from None
        check_options(self._engine.get_tokenizer(), self._template_options)

    @property
    def is_chat(self) -> bool:
        """Whether it has a chat template."""
        return self._engine.get_tokenizer().chat_template is not None

    def respond(self, chats: Sequence[Chat], seeds: Sequence[int], decoding: Decoding) -> list[Completion]:
        """Return one response to each chat."""
        from vllm import SamplingParams  # pyrefly: ignore[missing-import]

        settings = [
            SamplingParams(
                temperature=decoding.temperature, top_p=decoding.top_p, max_tokens=decoding.max_tokens, seed=seed
            )
            for seed in seeds
        ]
        try:
            if self.is_chat:
                answers = self._engine.chat(
                    [list(chat) for chat in chats],
                    settings,
                    use_tqdm=False,
                    chat_template_kwargs=self._template_options or None,
                )
            else:
                texts = [render_chat(self._engine.get_tokenizer(), chat, {}) for chat in chats]
                answers = self._engine.generate(texts, settings, use_tqdm=False)
        except ValueError as error:
            raise ConfigError(
                f"vLLM refuses a prompt: {str(error).strip().splitlines()[0]}; "
                "raise generation.max_context_tokens, or select other problems"
            ) from None
        outputs = [answer.outputs[0] for answer in answers]
        return [Completion(out.text, out.finish_reason == "length", len(out.token_ids)) for out in outputs]

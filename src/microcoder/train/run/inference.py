"""Responses of a small model in this process, with transformers; a large one is better asked through a server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from transformers import GenerationConfig

from microcoder.data.completions import Completion
from microcoder.judge.core.errors import ConfigError
from microcoder.train.run.chat import Chat, check_options, encode_chats, end_token_ids
from microcoder.train.run.weights import load_checkpoint, model_source


def respond(
    name: str,
    chats: Sequence[Chat],
    *,
    seeds: Sequence[int],
    batch_size: int,
    temperature: float,
    top_p: float,
    max_tokens: int,
    revision: str | None = None,
    dtype: str = "float32",
    template_options: Mapping[str, Any] | None = None,
    note: Callable[[str], None] = lambda text: None,
) -> Iterator[Completion]:
    """Load a model and yield a response to each chat, on a GPU if there is one.

    Args:
        name: a checkpoint folder or a hub id.
        chats: the prompts.
        seeds: of each response; the first of a batch stands for the batch.
        batch_size: responses sampled at a time.
        temperature: 0 is the likeliest.
        top_p: share of probability that is sampled from.
        max_tokens: of a response.
        revision: of a hub model.
        dtype: precision of the weights.
        template_options: passed to the chat template.
        note: is told that the model has no chat template.

    Raises:
        ConfigError: the model has no end-of-sequence token, or memory does not suffice.
        DataError: the folder or the hub has no such model, or only a part of it.
    """
    loaded, tokenizer = load_checkpoint(model_source(name), revision=revision, dtype=dtype)
    options = template_options or {}
    check_options(tokenizer, options)
    if tokenizer.chat_template is None:
        note(
            f"{name} has no chat template: prompts are plain text, as in the training of a base model; "
            "prompt.style = instruct asks in training's words"
        )
    ends = end_token_ids(tokenizer, loaded.generation_config)
    if not ends:
        raise ConfigError("the checkpoint names no end-of-sequence token; save one into its generation_config.json")
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model: Any = loaded.to(device).eval()  # pyrefly: ignore[bad-argument-type]
    padding = ends[0] if tokenizer.pad_token_id is None else tokenizer.pad_token_id
    chosen = {"temperature": temperature, "top_p": top_p, "top_k": 0} if temperature > 0 else {}
    # All given, so that the checkpoint's own generation_config.json decides nothing.
    settings = GenerationConfig(
        do_sample=temperature > 0, max_new_tokens=max_tokens, eos_token_id=ends, pad_token_id=padding, **chosen
    )
    for start in range(0, len(chats), batch_size):
        prompts = encode_chats(tokenizer, chats[start : start + batch_size], options)
        longest = max(map(len, prompts))
        ids = torch.tensor([[padding] * (longest - len(one)) + one for one in prompts], device=device)
        seen = torch.tensor([[0] * (longest - len(one)) + [1] * len(one) for one in prompts], device=device)
        torch.manual_seed(seeds[start])
        try:
            with torch.inference_mode():
                out = model.generate(input_ids=ids, attention_mask=seen, generation_config=settings)
        except torch.OutOfMemoryError as error:
            reason = str(error).splitlines()[0][:200]
            raise ConfigError(
                f"out of memory ({reason}); lower generation.batch_size (now {batch_size}) or "
                f"generation.sampling.max_tokens (now {max_tokens}); type the same command again to resume"
            ) from None
        for row in out[:, longest:].tolist():
            end = next((place for place, token in enumerate(row) if token in ends), None)
            response = row if end is None else row[: end + 1]
            (text,) = tokenizer.batch_decode([response], skip_special_tokens=True)
            yield Completion(text, end is None, len(response))

"""Responses of a model in this process: hands requests to `training/inference.py` in batches. Needs torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from microcoder.completions import Completion
from microcoder.errors import ConfigError
from microcoder.evaluation.config import ResponseSampling, Transformers, Vllm
from microcoder.evaluation.samples import ResponseRequest


def generate_locally(
    config: Transformers | Vllm,
    requests: Sequence[ResponseRequest],
    *,
    chat_template_options: Mapping[str, Any],
    note: Callable[[str], None],
) -> Iterator[tuple[ResponseRequest, Completion]]:
    """Yield a response to each request, batch by batch; the model is loaded first.

    Raises:
        ConfigError: torch, transformers or vLLM is not installed, or memory or context length does not suffice.
        DataError: the model cannot be loaded.
    """
    if importlib.util.find_spec("torch") is None or importlib.util.find_spec("transformers") is None:
        raise ConfigError(
            "generating with a local model needs torch and transformers, which are not installed; "
            "type: pip install 'microcoder[train]', or use generation.kind endpoint or file"
        )
    if isinstance(config, Vllm) and importlib.util.find_spec("vllm") is None:
        raise ConfigError(
            "generation.kind = 'vllm', but vLLM is not installed; type: pip install 'microcoder[vllm]' (GPU "
            "machines only), or use generation.kind transformers, or endpoint with a server of your own"
        )
    from microcoder.training.inference import (
        Decoding,
        LocalModel,
        TransformersModel,
        VllmModel,
        longest_prompt_tokens,
    )

    options = dict(chat_template_options)
    note(f"loading {config.model}")
    sampling: ResponseSampling = config.sampling
    model: LocalModel
    if isinstance(config, Vllm):
        context = config.max_context_tokens or sampling.max_tokens + longest_prompt_tokens(
            config.model,
            (request.messages for request in requests),
            revision=config.revision,
            template_options=options,
        )
        model = VllmModel(
            config.model,
            revision=config.revision,
            dtype=config.dtype,
            num_gpus=config.num_gpus,
            max_context_tokens=context,
            gpu_memory_utilization=config.gpu_memory_utilization,
            template_options=options,
        )
        size = config.batch_problems * sampling.num_samples
    else:
        model = TransformersModel(
            config.model,
            revision=config.revision,
            dtype=config.dtype,
            template_options=options,
        )
        size = config.batch_size
    if not model.is_chat:
        note(
            f"{config.model} has no chat template: prompts are plain text, as in the training of a base model; "
            "prompt.style = instruct asks in training's words"
        )
    decoding = Decoding(sampling.temperature, sampling.top_p, sampling.max_tokens)
    for start in range(0, len(requests), size):
        batch = requests[start : start + size]
        answers = model.respond([request.messages for request in batch], [r.seed for r in batch], decoding)
        for request, answer in zip(batch, answers, strict=True):
            yield request, Completion(answer.text, answer.is_truncated, answer.num_tokens)

"""Responses of a model: from a server that speaks OpenAI's chat completions, or of a model in this process."""

from __future__ import annotations

import importlib.util
import queue
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.completions import Completion, Endpoint
from microcoder.errors import ConfigError
from microcoder.evaluation.config import EndpointGeneration, ResponseSampling, Transformers, Vllm
from microcoder.evaluation.questions import Messages
from microcoder.installation import how_to_install


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A sample to generate."""

    problem_id: str
    sample_index: int
    messages: Messages
    seed: int
    """Seed of this sample, independent of the order of generation."""


def ask_endpoint(
    config: EndpointGeneration,
    requests: Sequence[ResponseRequest],
    *,
    chat_template_options: Mapping[str, Any] | None = None,
) -> Iterator[tuple[ResponseRequest, Completion]]:
    """Yield a response to each request as it arrives.

    Raises:
        ConfigError: the server cannot be reached, refuses, or answers something else; earlier responses are kept.
    """
    todo: queue.SimpleQueue[ResponseRequest] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[ResponseRequest, Completion] | Exception] = queue.SimpleQueue()
    for request in requests:
        todo.put(request)
    client = Endpoint(config)
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            try:
                request = todo.get_nowait()
            except queue.Empty:
                return
            try:
                done.put((request, client.complete(_write_body(config, request, chat_template_options))))
            except Exception as error:  # handed to the caller's thread, which raises it
                done.put(error)
                return

    # Daemons: Ctrl-C must not wait for a model that is still thinking.
    for _ in range(min(config.concurrency, len(requests))):
        threading.Thread(target=work, name="endpoint", daemon=True).start()
    try:
        for _ in requests:
            answer = done.get()
            if isinstance(answer, Exception):
                raise answer
            yield answer
    finally:
        stopped.set()
        client.close()


def _write_body(
    config: EndpointGeneration, request: ResponseRequest, chat_template_options: Mapping[str, Any] | None
) -> dict[str, Any]:
    sampling = config.sampling
    # The name that the servers of vLLM, SGLang and llama.cpp know them by.
    options = {"chat_template_kwargs": dict(chat_template_options)} if chat_template_options else {}
    body: dict[str, Any] = {
        "model": config.model,
        "messages": request.messages,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        config.max_tokens_key: sampling.max_tokens,
        **options,
        **config.extra,
    }
    return {**body, "seed": request.seed} if config.send_seed else body


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
            f"type: {how_to_install('train')}, or use generation.kind endpoint or file"
        )
    if isinstance(config, Vllm) and importlib.util.find_spec("vllm") is None:
        raise ConfigError(
            f"generation.kind = 'vllm', but vLLM is not installed; type: {how_to_install('vllm')} (GPU "
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
        yield from zip(batch, answers, strict=True)

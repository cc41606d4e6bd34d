"""Responses from a server that speaks OpenAI's chat completions, several requests at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from microcoder.completions import Completion, CompletionsClient
from microcoder.errors import ConfigError
from microcoder.evaluation.config import EndpointConfig
from microcoder.evaluation.samples import ResponseRequest


def ask_endpoint(
    config: EndpointConfig,
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
    client = CompletionsClient(
        config.base_url,
        key_variable=config.api_key_env,
        timeout_seconds=config.timeout_seconds,
        retries=config.retries,
        error=ConfigError,
    )
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
    config: EndpointConfig, request: ResponseRequest, chat_template_options: Mapping[str, Any] | None
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

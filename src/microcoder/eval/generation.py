"""What an evaluation asks: its questions, their prompts, and the responses of a server."""

import queue
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.data.benchmarks import Question
from microcoder.data.completions import Completion, Endpoint
from microcoder.eval.config import EndpointGeneration, EvalConfig, GenerationFile, ResponseSampling
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.prompts import PromptBuilder
from microcoder.judge.core.types import Prompt, Turn
from microcoder.train.recipe import judge as shared

Messages = list[dict[str, str]]
"""A chat: roles and contents."""


def load_questions(config: EvalConfig) -> list[Question]:
    """Return the questions that a config selects."""
    benchmark = config.benchmark
    questions = benchmark.read()
    silent = [question.id for question in questions if not question.problem.statement.strip()]
    # A file of answers asks nothing, so its problems need no statements.
    if silent and not isinstance(config.generation, GenerationFile):
        raise DataError(
            f"{benchmark.noun} {benchmark.path}: {len(silent)} problems have no statement (first: "
            f"{silent[0]!r}); a model cannot be asked without one"
        )
    return questions


def question_record(question: Question) -> dict[str, Any]:
    """Return a question's row of questions.jsonl."""
    return {
        "problem_id": question.id,
        "title": question.title,
        "platform": question.platform,
        "difficulty": question.difficulty,
        "date": question.date.isoformat() if question.date else None,
        "statement_digest": question.statement_digest,
    }


def build_messages(question: Question, config: EvalConfig, ask: PromptBuilder) -> Messages:
    """Return the prompt of a question as a chat."""
    text = None
    if config.prompt.style == "published":
        text = config.benchmark.prompt(question)
    # A problem file has no published prompt.
    if text is None:
        return ask(question.problem).as_chat()
    # The user's own system turn takes the place of the benchmark's.
    system = ask.system or config.benchmark.system
    before = (Turn("system", system),) if system else ()
    return Prompt(question.id, text, before).as_chat()


def build_prompt_builder(config: EvalConfig) -> PromptBuilder:
    """Return the function that makes prompts of problems in an evaluation.

    It is built by the same code as in training.
    """
    if config.prompt.style != "published":
        return shared.make_prompt_builder(config.prompt)
    if config.prompt.options:
        raise ConfigError('prompt.options are of a prompt.style; "published" has none')
    return shared.make_prompt_builder(config.prompt, style="instruct")


@dataclass(frozen=True, slots=True)
class ResponseRequest:
    """A request for one sample: the chat, and the seed."""

    problem_id: str
    sample_index: int
    messages: Messages
    seed: int
    """Seed of this sample, independent of the order of generation."""


def ask_endpoint(
    config: EndpointGeneration,
    requests: Sequence[ResponseRequest],
    sampling: ResponseSampling,
    *,
    chat_template_options: Mapping[str, Any] | None = None,
) -> Iterator[tuple[ResponseRequest, Completion]]:
    """Send requests to a server, several at a time.

    Yields:
        Each request with its response, in the order of arrival.
    """
    shared_keys: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        config.max_tokens_key: sampling.max_tokens,
    }
    if sampling.top_k is not None:
        shared_keys["top_k"] = sampling.top_k
    if chat_template_options:
        # The name that the servers of vLLM, SGLang and llama.cpp know them by.
        shared_keys["chat_template_kwargs"] = dict(chat_template_options)
    # One iterator for all threads: each takes the next request when it is free.
    waiting = iter(tuple(requests))
    done: queue.SimpleQueue[tuple[ResponseRequest, Completion] | Exception] = queue.SimpleQueue()
    client = Endpoint(config)
    stopped = threading.Event()

    def work() -> None:
        try:
            for request in waiting:
                if stopped.is_set():
                    return
                body = {"model": config.model, "messages": request.messages}
                body |= shared_keys
                # The user's own keys come last, so that they can replace ours.
                body |= config.extra
                if config.send_seed:
                    body["seed"] = request.seed
                done.put((request, client.complete(body)))
        except Exception as error:
            # Handed to the caller's thread, which raises it.
            done.put(error)

    # Daemons: Ctrl-C must not wait for a model that is still thinking.
    for _ in range(min(config.concurrency, len(requests))):
        threading.Thread(target=work, name="endpoint", daemon=True).start()
    try:
        for _ in requests:
            response = done.get()
            if isinstance(response, Exception):
                raise response
            yield response
    finally:
        stopped.set()
        client.close()

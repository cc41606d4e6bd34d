"""Responses of a model: from a server that speaks OpenAI's chat completions, or of a model in this process.

The questions of a config: which problems, and the messages that ask them.

Readers of generated answers in three file formats.

| format          | file                                                     | what is judged                     |
|-----------------|----------------------------------------------------------|------------------------------------|
| `livecodebench` | JSON: [{"question_id", "code_list"}], or a list of lists | each code as it is                 |
| `evalplus`      | JSON lines: {"task_id", "solution" or "completion"}      | the solution, or prompt+completion |
| `rollouts`      | our Parquet or JSON lines: {"problem_id", "completion"}  | the program in the completion      |
"""

from __future__ import annotations

import importlib.util
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.data.benchmarks import LiveCodeBench, Question
from microcoder.data.completions import Completion, Endpoint
from microcoder.eval.config import (
    EndpointGeneration,
    EvalConfig,
    GenerationFile,
    ResponseSampling,
    Transformers,
    Vllm,
)
from microcoder.eval.report import Sample
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extract import USUAL, Extractor
from microcoder.judge.core.installation import how_to_install
from microcoder.judge.core.prompts import Asker
from microcoder.judge.core.records import read_values
from microcoder.judge.core.types import Prompt, Turn
from microcoder.train.recipe import prompts
from microcoder.train.runs import read_rollouts

Messages = list[dict[str, str]]
"""A chat: roles and contents."""


def load_questions(config: EvalConfig, *, note: Callable[[str], None]) -> list[Question]:
    """Return the questions that a config selects; broken ones are skipped and reported to `note`."""
    benchmark = config.benchmark
    skips_broken = isinstance(benchmark, LiveCodeBench) and benchmark.skip_broken
    return benchmark.read(on_broken=(lambda why: note(f"left out: {why}")) if skips_broken else None)


def question_record(question: Question) -> dict[str, Any]:
    """Return a question's row of questions.jsonl."""
    return {
        "problem_id": question.id,
        "title": question.title,
        "platform": question.platform,
        "difficulty": question.difficulty,
        "date": question.date.isoformat() if question.date else None,
    }


def build_messages(question: Question, config: EvalConfig, ask: Asker) -> Messages:
    """Return the prompt of a question as a chat.

    Args:
        question: the question.
        config: of the evaluation.
        ask: what `load_asker` made of it.
    """
    text = config.benchmark.prompt(question) if config.prompt.style == "published" else None
    if text is None:
        return ask(question.problem).as_chat()
    system = ask.system or config.benchmark.system
    before = (*((Turn("system", system),) if system else ()), *ask.examples)
    return Prompt(question.id, text, before).as_chat()


def build_asker(config: EvalConfig) -> Asker:
    """Return the prompt style of an evaluation, by the same code as training."""
    if config.prompt.style != "published":
        return prompts.build_asker(config.prompt)
    if config.prompt.options:
        raise ConfigError('prompt.options are of a prompt.style; "published" has none')
    return prompts.build_asker(config.prompt, style="instruct")


_GIVEN = "given_as_code"
_EMPTY = "empty_code"


@dataclass(frozen=True, slots=True)
class Generations:
    """The answers of a file."""

    samples: list[Sample]
    num_ignored: int
    """Number of answers to problems outside the selection."""


def read_samples(config: GenerationFile, questions: Sequence[Question], extract: Extractor = USUAL) -> Generations:
    """Read the answers to some questions; `extract` takes programs out of whole responses."""
    by_id = {question.id: question for question in questions}
    rows = _read_rows(config.path)
    kind = config.format if config.format != "auto" else _guess_format(rows, config.path)
    if kind == "rollouts":
        found = list(_from_rollouts(rows, by_id, config, extract))
    else:
        readers = {"livecodebench": _from_livecodebench, "evalplus": _from_evalplus}
        found = list(readers[kind](rows, by_id, config))
    samples = [sample for sample in found if sample is not None]
    if not samples:
        raise DataError(f"generation file {config.path} answers none of the {len(questions)} problems; check the ids")
    answered = {sample.problem_id for sample in samples}
    missing = [question.id for question in questions if question.id not in answered]
    if missing and not config.allow_missing:
        raise DataError(
            f"generation file {config.path} has no answer to {len(missing)} of {len(questions)} problems (first: "
            f"{missing[0]!r}); narrow the benchmark to what was asked, or pass --generation.allow-missing true"
        )
    return Generations(samples, len(found) - len(samples))


def _read_rows(path: Path) -> list[Any]:
    if path.suffix == ".parquet":
        if not path.exists():
            raise DataError(f"generation file {path} does not exist; check the path")
        try:
            return read_rollouts(path)
        except ImportError:
            raise ConfigError(f"Parquet needs pyarrow; type: {how_to_install('insights')}") from None
        except (OSError, ValueError) as error:
            raise DataError(f"generation file {path} is not a Parquet file ({error}); check the file") from None
    return [value for _, value in read_values(path, "generation file")]


def _guess_format(rows: Sequence[Any], path: Path) -> str:
    first = rows[0] if rows else None
    if isinstance(first, list) or (isinstance(first, Mapping) and "code_list" in first):
        return "livecodebench"
    if isinstance(first, Mapping) and "task_id" in first and ("solution" in first or "completion" in first):
        return "evalplus"
    if isinstance(first, Mapping) and "problem_id" in first:
        return "rollouts"
    raise DataError(
        f"generation file {path} is in no known format; use [{{question_id, code_list}}], lines of "
        "{task_id, solution} or {task_id, completion}, or our rollouts (problem_id, completion)"
    )


def _from_livecodebench(
    rows: Sequence[Any], by_id: Mapping[str, Question], config: GenerationFile
) -> Iterator[Sample | None]:
    if rows and all(isinstance(row, list) for row in rows):
        # LiveCodeBench's other form: lists alone, in the order of the sorted ids.
        if len(rows) != len(by_id):
            raise DataError(
                f"{config.path} holds {len(rows)} lists for {len(by_id)} problems; lists without question_id must "
                "answer exactly the selected problems, in the order of their ids"
            )
        rows = [{"question_id": name, "code_list": row} for name, row in zip(sorted(by_id), rows, strict=True)]
    seen: set[str] = set()
    for number, row in enumerate(rows, 1):
        where = f"generation file {config.path} item {number}"
        name, codes = _field(row, "question_id", where), row.get("code_list")
        if not isinstance(codes, list) or not all(isinstance(code, str) for code in codes):
            raise DataError(f"{where}: code_list is missing or no list of texts")
        if name in seen:
            raise DataError(f"{where}: question_id {name!r} was used before; put all its codes into one code_list")
        seen.add(name)
        yield from (_given(name, index, code) if name in by_id else None for index, code in enumerate(codes))


def _from_evalplus(
    rows: Sequence[Any], by_id: Mapping[str, Question], config: GenerationFile
) -> Iterator[Sample | None]:
    counts: Counter[str] = Counter()
    for number, row in enumerate(rows, 1):
        where = f"generation file {config.path} line {number}"
        name = _field(row, "task_id", where)
        if name not in by_id:
            yield None
            continue
        code = row["solution"] if "solution" in row else row.get("completion")
        if not isinstance(code, str):
            raise DataError(f"{where}: neither solution nor completion is a text")
        if "solution" not in row:
            code = by_id[name].problem.statement + code
        yield _given(name, counts[name], code)
        counts[name] += 1


def _from_rollouts(
    rows: Sequence[Any], by_id: Mapping[str, Question], config: GenerationFile, extract: Extractor
) -> Iterator[Sample | None]:
    counts: Counter[str] = Counter()
    steps = {row.get("step") for row in rows if isinstance(row, Mapping)}
    if config.step is None and len(steps) > 1:
        raise ConfigError(f"{config.path} holds rollouts of {len(steps)} steps; choose one by --generation.step")
    for number, row in enumerate(rows, 1):
        where = f"generation file {config.path} line {number}"
        name = _field(row, "problem_id", where)
        if name not in by_id or (config.step is not None and row.get("step") != config.step):
            yield None
            continue
        text = row.get("completion")
        if not isinstance(text, str):
            raise DataError(f"{where}: completion is missing or no text")
        response = Completion(text, bool(row.get("is_truncated", False)), row.get("num_tokens"))
        yield Sample.from_response(by_id[name], counts[name], response, extract)
        counts[name] += 1


def _field(row: Any, name: str, where: str) -> str:
    value = row.get(name) if isinstance(row, Mapping) else None
    if not isinstance(value, str | int):
        raise DataError(f"{where}: {name} is missing")
    return str(value)


def _given(problem_id: str, sample_index: int, code: str) -> Sample:
    if not code.strip():
        return Sample(problem_id, sample_index, None, None, _EMPTY)
    return Sample(problem_id, sample_index, None, code, _GIVEN)


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
    """Yield a response to each request as it arrives."""
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
    """Yield a response to each request, batch by batch; the model is loaded first."""
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
    from microcoder.train.run.inference import Decoding, LocalModel, TransformersModel, VllmModel, longest_prompt_tokens

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

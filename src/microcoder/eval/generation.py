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
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.rowfiles import placed
from microcoder.eval.config import (
    EndpointGeneration,
    EvalConfig,
    GenerationFile,
    Transformers,
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


_IDS = {"livecodebench": "question_id", "evalplus": "task_id", "rollouts": "problem_id"}


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
    found = list(_read_answers(rows, by_id, config, kind, extract))
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


def _read_answers(
    rows: Sequence[Any], by_id: Mapping[str, Question], config: GenerationFile, kind: str, extract: Extractor
) -> Iterator[Sample | None]:
    """Yield the samples in order; None for an answer to a problem outside the selection, or of another step."""
    if kind == "livecodebench" and rows and all(isinstance(row, list) for row in rows):
        # LiveCodeBench's other form: lists alone, in the order of the sorted ids.
        if len(rows) != len(by_id):
            raise DataError(
                f"{config.path} holds {len(rows)} lists for {len(by_id)} problems; lists without question_id must "
                "answer exactly the selected problems, in the order of their ids"
            )
        rows = [{"question_id": name, "code_list": row} for name, row in zip(sorted(by_id), rows, strict=True)]
    steps = {row.get("step") for row in rows if kind == "rollouts" and isinstance(row, Mapping)}
    if config.step is None and len(steps) > 1:
        raise ConfigError(f"{config.path} holds rollouts of {len(steps)} steps; choose one by --generation.step")
    counts: Counter[str] = Counter()
    for number, values in enumerate(rows, 1):
        where = f"generation file {config.path} {'item' if kind == 'livecodebench' else 'line'} {number}"
        answers: Sequence[str | Completion | None] = (None,)
        with placed(where, "see docs/evaluation.md"):
            if not isinstance(values, Mapping):
                raise Malformed("not_an_object", f"{type(values).__name__}, not an object")
            row = Row(values, id=where, dataset="")
            if not (name := row.name(_IDS[kind])):
                raise Malformed("missing_field", _IDS[kind])
            question = by_id.get(name)
            if kind == "livecodebench":
                if name in counts:
                    raise DataError(f"question_id {name!r} was used before; put all its codes into one code_list")
                if not row.has("code_list"):
                    raise Malformed("missing_field", "code_list")
                answers, counts[name] = row.texts("code_list"), 0
            elif kind == "evalplus" and question is not None:
                whole = row.has("solution")
                answers = (row.text("solution") if whole else question.problem.statement + row.text("completion"),)
            elif question is not None and (config.step is None or row.get("step") == config.step):
                text, is_truncated = row.text("completion"), bool(row.get("is_truncated"))
                answers = (Completion(text, is_truncated, row.get("num_tokens")),)
        for answer in answers:
            if question is None or answer is None:
                yield None
                continue
            if isinstance(answer, Completion):
                yield Sample.from_response(question, counts[name], answer, extract)
            elif answer.strip():
                yield Sample(name, counts[name], None, answer, "given_as_code")
            else:
                yield Sample(name, counts[name], None, None, "empty_code")
            counts[name] += 1


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
    config: Transformers,
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
    from microcoder.train.run.inference import respond

    note(f"loading {config.model}")
    answers = respond(
        config.model,
        [request.messages for request in requests],
        seeds=[request.seed for request in requests],
        batch_size=config.batch_size,
        revision=config.revision,
        dtype=config.dtype,
        template_options=chat_template_options,
        note=note,
        temperature=config.sampling.temperature,
        top_p=config.sampling.top_p,
        max_tokens=config.sampling.max_tokens,
    )
    yield from zip(requests, answers, strict=True)

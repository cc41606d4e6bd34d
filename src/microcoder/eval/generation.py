"""Questions and answers of an evaluation: prompts, responses of a server or of a model in this process, answer files.

An answer file has one row or several for a problem, in the fields that samplers write:

| fields                                                        | what is judged                                    |
|---------------------------------------------------------------|---------------------------------------------------|
| problem_id, question_id, task_id or id                        | names the problem                                 |
| response, completion (or a list), generation, output, messages| the program in it; of a chat, in its last turn    |
| code, program, solution or code_list (LiveCodeBench, EvalPlus)| the code as it is; of a whole response the program|

An answer without a fenced block is plain code, under every key: a whole program, or what goes on where the problem's
prompt or starter code ends.
"""

import queue
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.data.benchmarks import Question
from microcoder.data.completions import Completion, Endpoint
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import shorten, text_of
from microcoder.data.rowfiles import placed, read_file
from microcoder.eval.config import EndpointGeneration, EvalConfig, GenerationFile, ResponseSampling
from microcoder.eval.report import Sample
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.extract import (
    USUAL,
    Extractor,
    clean_code,
    find_bare_program,
    is_response,
)
from microcoder.judge.core.prompts import Asker
from microcoder.judge.core.records import read_values
from microcoder.judge.core.types import Program, Prompt, Turn
from microcoder.judge.languages import check_language, known_language
from microcoder.train.recipe import judge as shared

Messages = list[dict[str, str]]
"""A chat: roles and contents."""


def load_questions(config: EvalConfig) -> list[Question]:
    """Return the questions that a config selects."""
    benchmark = config.benchmark
    questions = benchmark.read()
    silent = [question.id for question in questions if not question.problem.statement.strip()]
    if silent and not isinstance(config.generation, GenerationFile):
        raise DataError(
            f"{benchmark.noun} {benchmark.path}: {len(silent)} problems have no statement (first: {silent[0]!r}); "
            "a model cannot be asked without one"
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


def build_messages(question: Question, config: EvalConfig, ask: Asker) -> Messages:
    """Return the prompt of a question as a chat."""
    text = config.benchmark.prompt(question) if config.prompt.style == "published" else None
    if text is None:
        return ask(question.problem).as_chat()
    system = ask.system or config.benchmark.system
    before = (Turn("system", system),) if system else ()
    return Prompt(question.id, text, before).as_chat()


def build_asker(config: EvalConfig) -> Asker:
    """Return the function that makes prompts of problems in an evaluation, built by the same code as in training."""
    if config.prompt.style != "published":
        return shared.build_asker(config.prompt)
    if config.prompt.options:
        raise ConfigError('prompt.options are of a prompt.style; "published" has none')
    return shared.build_asker(config.prompt, style="instruct")


_IDS = Question.id_columns
_RESPONSES = ("response", "responses", "completion", "completions")
_CODES = ("solution", "code_list", "code", "program")
_ANSWERS = (*_CODES[:2], *_RESPONSES, *_CODES[2:], "generation", "output", "messages")
"""Answer fields by precedence: of several in a row the first counts, as responses beside code are only a record."""
_FORMS = "lines of {problem_id, response} or {problem_id, code}, or another form of docs/evaluation.md#answers"


def read_samples(
    config: GenerationFile, questions: Sequence[Question], extract: Extractor = USUAL
) -> tuple[list[Sample], int]:
    """Return a file's answers to the questions, and how many it has to others; DataError if some are missing.

    `extract` takes programs out of responses.
    """
    path, what = config.path, "generation file"
    is_table = path.suffix == ".parquet"
    rows = (
        [row.values for row in read_file(path, what)]
        if is_table
        else [row for _, row in read_values(path, what)]
    )
    found = list(_read_answers(rows, questions, config, extract))
    samples = [sample for sample in found if sample is not None]
    if not found:
        raise DataError(f"{what} {path} holds no answer: the lists of its rows are empty")
    if not samples:
        named = next(
            (row[key] for row in rows if isinstance(row, Mapping) for key in _IDS if key in row),
            None,
        )
        raise DataError(
            f"{what} {path} answers none of the {len(questions)} problems; check the ids: "
            f"its first is {named!r}, that of the problems {questions[0].id!r}"
        )
    answered = {sample.problem_id for sample in samples}
    missing = [question.id for question in questions if question.id not in answered]
    if missing and not config.allow_missing:
        raise DataError(
            f"{what} {path} has no answer to {len(missing)} of {len(questions)} problems (first: "
            f"{missing[0]!r}); narrow the benchmark to what was asked, or pass --generation.allow-missing true"
        )
    return samples, len(found) - len(samples)


def _read_answers(
    rows: Sequence[Any], questions: Sequence[Question], config: GenerationFile, extract: Extractor
) -> Iterator[Sample | None]:
    """Yield the samples in order; None for an answer to a problem outside the selection.

    A problem that was read from another format's row is also known by the ids of that row: `p1` for `deepcoder/p1`.
    """
    by_id = {question.id: question for question in questions}
    in_rows = [(name, one) for one in questions for name in {one.id.partition("/")[2], *one.names}]
    in_their_rows = Counter(name for name, _ in in_rows)
    by_name = dict(in_rows) | by_id
    if not rows:
        raise DataError(f"generation file {config.path} is empty; it needs {_FORMS}")
    counts: Counter[str] = Counter()
    for number, values in enumerate(rows, 1):
        where = f"generation file {config.path} line {number}"
        with placed(where, f"write {_FORMS}"):
            if not isinstance(values, Mapping):
                raise Malformed("not_an_object", f"{type(values).__name__}, not an object")
            row = Row(values, id=where, dataset="")
            key = next((key for key in _IDS if row.has(key)), "problem_id")
            if not (name := row.name(key)):
                raise Malformed("missing_field", key)
            # A model that said nothing has null there.
            field = next((f for f in (*filter(row.has, _ANSWERS), *_ANSWERS) if f in values), None)
            if field is None:
                found = shorten(", ".join(key for key in values if row.has(key)))
                raise Malformed("missing_field", f"response (or code; it has {found})")
            given = row.get(field)
            if _is_chat(given):
                texts = [text_of(given)]
            elif isinstance(given, list):
                nulls_as_empty = {
                    field: [text_of(one) if one is None or _is_chat(one) else one for one in given]
                }
                texts = Row(nulls_as_empty, id=where, dataset="").texts(field)
            else:
                texts = [row.text(field) if given is not None else ""]
            # Half of a surrogate pair, which JSON can hold and no file can.
            texts = [text.encode("utf-8", "replace").decode("utf-8") for text in texts]
            question, language = by_name.get(name), row.get("language")
            if question is not None and known_language(
                language
            ):  # Another word may be a natural language.
                check_language(Program("", str(language)), question.problem, "its answer")
            is_truncated, num_tokens = row.get("is_truncated") or False, row.number("num_tokens")
            if not isinstance(is_truncated, int):
                raise Malformed(
                    "wrong_type",
                    f"is_truncated is {type(is_truncated).__name__}, not true or false",
                )
        if name not in by_id and in_their_rows[name] > 1:
            raise DataError(
                f"{where}: {in_their_rows[name]} problems have the id {name!r} in their rows; name one whole"
            )
        if question is None:
            yield from (None for _ in texts)
            continue
        for text in texts:
            index = counts[question.id]
            counts[question.id] += 1
            problem = question.problem
            if field in _CODES:
                is_whole_response = is_response(text, problem.language)
                code = None if is_whole_response else clean_code(text, problem.language)
            else:
                # What an answer is, its text and the problem say, not the key that it stands under.
                is_plain = extract.is_usual or (key == "task_id" and field == "completion")
                code = None
                if is_plain:
                    code = find_bare_program(text, problem, is_truncated=bool(is_truncated))
                is_whole_response = code is None
            if is_whole_response:
                response = Completion(
                    text, bool(is_truncated), None if num_tokens is None else int(num_tokens)
                )
                yield Sample.from_response(question, index, response, extract)
                continue
            program = code if code and code.strip() else None
            yield Sample(
                problem_id=question.id,
                sample_index=index,
                completion=None,
                program=program,
                extraction="given_as_code" if program else "empty_code",
            )


def _is_chat(value: object) -> bool:
    is_list = isinstance(value, list) and all(isinstance(turn, Mapping) for turn in value)
    return is_list and value != [] and value[-1].get("role") != "user"


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
    """Send requests to a server, several at a time; yield each with its response, in the order of arrival."""
    shared_keys: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        config.max_tokens_key: sampling.max_tokens,
    }
    if (
        chat_template_options
    ):  # under the name that the servers of vLLM, SGLang and llama.cpp know them by
        shared_keys["chat_template_kwargs"] = dict(chat_template_options)
    todo = iter(tuple(requests))
    done: queue.SimpleQueue[tuple[ResponseRequest, Completion] | Exception] = queue.SimpleQueue()
    client = Endpoint(config)
    stopped = threading.Event()

    def work() -> None:
        try:
            for request in todo:
                if stopped.is_set():
                    return
                body = {
                    "model": config.model,
                    "messages": request.messages,
                    **shared_keys,
                    **config.extra,
                }
                body |= {"seed": request.seed} if config.send_seed else {}
                done.put((request, client.complete(body)))
        except Exception as error:  # handed to the caller's thread, which raises it
            done.put(error)

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

"""Answers to an evaluation's problems from a file.

An answer file has one row or several for a problem, in the fields that samplers write:

| fields                                    | what is judged                                     |
|-------------------------------------------|----------------------------------------------------|
| problem_id, question_id, task_id or id    | names the problem                                  |
| response, completion (or a list of them), | the program in it; of a chat, in its last turn     |
| generation, output, messages              |                                                    |
| code, program, solution or code_list      | the code as it is; of a whole response the program |
| (LiveCodeBench, EvalPlus)                 |                                                    |

An answer without a fenced block is plain code, under every key: a whole program, or what goes on
where the problem's prompt or starter code ends.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.data.benchmarks import Question
from microcoder.data.completions import Completion
from microcoder.data.formats.row import Malformed, Row
from microcoder.data.formats.values import shorten, text_of
from microcoder.data.rowfiles import placed, read_file
from microcoder.eval.config import GenerationFile
from microcoder.eval.report import Sample
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.extract import (
    USUAL,
    Extractor,
    clean_code,
    find_bare_program,
    is_response,
)
from microcoder.judge.core.records import read_values
from microcoder.judge.core.types import Program
from microcoder.judge.languages import check_language, known_language

_NOUN = "generation file"
"""What messages call an answer file, after the config's word for it."""

_IDS = Question.id_columns
"""Fields that name a problem, by precedence."""

_CODES = ("solution", "code_list", "code", "program")
"""Answer fields that hold code."""

_ANSWERS = (
    "solution",
    "code_list",
    "response",
    "responses",
    "completion",
    "completions",
    "code",
    "program",
    "generation",
    "output",
    "messages",
)
"""Answer fields by precedence: of several in a row the first counts, as responses beside code are
only a record."""

_FORMS = (
    "lines of {problem_id, response} or {problem_id, code}, or another form of "
    "docs/evaluation.md#answers"
)
"""What to write instead of a row that is no answer."""


@dataclass(frozen=True, slots=True)
class _AnswerRow:
    """One row of an answer file."""

    name: str
    """The problem's id as the row has it."""
    question: Question | None
    """The question of that name; None for a problem outside the selection."""
    texts: Sequence[str]
    """The answers."""
    is_code: bool
    """Whether they stand under a key for code."""
    is_completion_of_task: bool
    """Whether their keys are HumanEval's, which go on where the prompt ends."""
    is_truncated: bool
    num_tokens: int | None


def read_samples(
    config: GenerationFile, questions: Sequence[Question], extract: Extractor = USUAL
) -> tuple[list[Sample], int]:
    """Return a file's answers to the questions, and the number of its answers to other problems.

    Args:
        config: with the file's path.
        questions: of the evaluation.
        extract: takes programs out of responses.

    Raises:
        DataError: the file is broken, or answers are missing.
    """
    path = config.path
    if path.suffix == ".parquet":
        rows = [row.values for row in read_file(path, _NOUN)]
    else:
        rows = [row for _, row in read_values(path, _NOUN)]
    answers = list(_read_answers(rows, questions, config, extract))
    samples = [sample for sample in answers if sample is not None]
    # Before the next check, whose advice on ids would mislead.
    if not answers:
        raise DataError(f"{_NOUN} {path} holds no answer: the lists of its rows are empty")
    if not samples:
        raise DataError(
            f"{_NOUN} {path} answers none of the {len(questions)} problems; check the ids: its "
            f"first is {_find_first_id(rows)!r}, that of the problems {questions[0].id!r}"
        )
    answered = {sample.problem_id for sample in samples}
    missing = [question.id for question in questions if question.id not in answered]
    # Left out in silence, hard problems would raise the accuracy of who does not answer them.
    if missing and not config.allow_missing:
        raise DataError(
            f"{_NOUN} {path} has no answer to {len(missing)} of {len(questions)} problems (first: "
            f"{missing[0]!r}); narrow the benchmark to what was asked, or pass "
            "--generation.allow-missing true"
        )
    return samples, len(answers) - len(samples)


def _find_first_id(rows: Sequence[Any]) -> object:
    """Return the first problem id of a file, whatever its type; None without one."""
    for row in rows:
        if isinstance(row, Mapping):
            for key in _IDS:
                if key in row:
                    return row[key]
    return None


def _read_answers(
    rows: Sequence[Any], questions: Sequence[Question], config: GenerationFile, extract: Extractor
) -> Iterator[Sample | None]:
    """Yield the samples in order; None for an answer to a problem outside the selection.

    A problem that was read from another format's row is also known by the ids of that row: `p1`
    for `deepcoder/p1`.
    """
    if not rows:
        raise DataError(f"{_NOUN} {config.path} is empty; it needs {_FORMS}")
    by_id = {question.id: question for question in questions}
    by_name: dict[str, Question] = {}
    num_of_name: Counter[str] = Counter()
    for question in questions:
        for name in {question.id.partition("/")[2], *question.names}:
            by_name[name] = question
            num_of_name[name] += 1
    # A whole id means its problem, also where another row has it as one of its names.
    by_name |= by_id
    num_samples: Counter[str] = Counter()
    for number, values in enumerate(rows, 1):
        where = f"{_NOUN} {config.path} line {number}"
        with placed(where, f"write {_FORMS}"):
            row = _read_row(values, where, by_name)
        # A guess would judge the answer by another problem's tests.
        if row.name not in by_id and num_of_name[row.name] > 1:
            raise DataError(
                f"{where}: {num_of_name[row.name]} problems have the id {row.name!r} in their "
                "rows; name one whole"
            )
        for text in row.texts:
            if row.question is None:
                yield None
                continue
            index = num_samples[row.question.id]
            num_samples[row.question.id] += 1
            yield _make_sample(text, row, row.question, index, extract)


def _read_row(values: object, where: str, by_name: Mapping[str, Question]) -> _AnswerRow:
    """Return a row of an answer file; Malformed or DataError if it is not one.

    Args:
        values: the row as it came.
        where: its place, for messages.
        by_name: id of a problem, whole or as in its row -> question.
    """
    if not isinstance(values, Mapping):
        raise Malformed("not_an_object", f"{type(values).__name__}, not an object")
    row = Row(values, id=where, dataset="")
    id_key = next(filter(row.has, _IDS), "problem_id")
    name = row.name(id_key)
    if not name:
        raise Malformed("missing_field", id_key)
    field = _find_answer_field(row)
    texts = _read_texts(row, field, where)
    question = by_name.get(name)
    language = row.get("language")
    # Another word may be a natural language.
    if question is not None and known_language(language):
        check_language(Program("", str(language)), question.problem, "its answer")
    is_truncated = row.get("is_truncated") or False
    num_tokens = row.number("num_tokens")
    if not isinstance(is_truncated, int):
        raise Malformed(
            "wrong_type", f"is_truncated is {type(is_truncated).__name__}, not true or false"
        )
    return _AnswerRow(
        name=name,
        question=question,
        texts=texts,
        is_code=field in _CODES,
        is_completion_of_task=id_key == "task_id" and field == "completion",
        is_truncated=bool(is_truncated),
        num_tokens=None if num_tokens is None else int(num_tokens),
    )


def _find_answer_field(row: Row) -> str:
    """Return the name of the field with the answers; Malformed if there is none."""
    for field in _ANSWERS:
        if row.has(field):
            return field
    # A model that said nothing has null there.
    for field in _ANSWERS:
        if field in row.values:
            return field
    others = shorten(", ".join(filter(row.has, row.values)))
    raise Malformed("missing_field", f"response (or code; it has {others})")


def _read_texts(row: Row, field: str, where: str) -> list[str]:
    """Return the answers in a field: one text, a list of them, a chat, or a list of chats."""
    answer = row.get(field)
    if answer is None:
        texts = [""]
    elif _is_chat(answer):
        texts = [text_of(answer)]
    elif isinstance(answer, list):
        plain = []
        for item in answer:
            # Of a missing answer the text is empty.
            is_readable = item is None or _is_chat(item)
            plain.append(text_of(item) if is_readable else item)
        # A row of its own, so that an item of another type is refused as in any other field.
        texts = Row({field: plain}, id=where, dataset="").texts(field)
    else:
        texts = [row.text(field)]
    # Half of a surrogate pair, which JSON can hold and no file can.
    return [text.encode("utf-8", "replace").decode("utf-8") for text in texts]


def _is_chat(value: object) -> bool:
    """Whether a value is a chat that a model had the last word in."""
    if not isinstance(value, list) or not value:
        return False
    if not all(isinstance(turn, Mapping) for turn in value):
        return False
    return value[-1].get("role") != "user"


def _make_sample(
    text: str, row: _AnswerRow, question: Question, index: int, extract: Extractor
) -> Sample:
    """Return one answer of a row as a sample of the problem."""
    problem = question.problem
    # What an answer is, its text and the problem say, not the key that it stands under.
    if row.is_code:
        is_whole_response = is_response(text, problem.language)
        code = None if is_whole_response else clean_code(text, problem.language)
    else:
        code = None
        # A user's own extractor gets responses as they are.
        if extract.is_usual or row.is_completion_of_task:
            code = find_bare_program(text, problem, is_truncated=row.is_truncated)
        is_whole_response = code is None
    if is_whole_response:
        response = Completion(text, row.is_truncated, row.num_tokens)
        return Sample.from_response(question, index, response, extract)
    program = code if code and code.strip() else None
    return Sample(
        problem_id=question.id,
        sample_index=index,
        completion=None,
        program=program,
        extraction="given_as_code" if program else "empty_code",
    )

"""Readers of generated answers in three file formats.

| format          | file                                                     | what is judged                     |
|-----------------|----------------------------------------------------------|------------------------------------|
| `livecodebench` | JSON: [{"question_id", "code_list"}], or a list of lists | each code as it is                 |
| `evalplus`      | JSON lines: {"task_id", "solution" or "completion"}      | the solution, or prompt+completion |
| `rollouts`      | our Parquet or JSON lines: {"problem_id", "completion"}  | the program in the completion      |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from microcoder.completions import Completion
from microcoder.dataset.benchmarks import Question
from microcoder.errors import ConfigError, DataError
from microcoder.evaluation.config import GenerationFile
from microcoder.evaluation.folder import Sample
from microcoder.extract import USUAL, Extractor
from microcoder.installation import how_to_install
from microcoder.records import read_values
from microcoder.runs import read_rollouts

_GIVEN = "given_as_code"
_EMPTY = "empty_code"


@dataclass(frozen=True, slots=True)
class Generations:
    """The answers of a file."""

    samples: list[Sample]
    num_ignored: int
    """Number of answers to problems outside the selection."""


def read_samples(config: GenerationFile, questions: Sequence[Question], extract: Extractor = USUAL) -> Generations:
    """Read the answers to some questions; `extract` takes programs out of whole responses.

    Raises:
        ConfigError: the format is not that of the file.
        DataError: the file is missing or broken, or has no answer to some of the questions.
    """
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
            code = by_id[name].statement + code
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

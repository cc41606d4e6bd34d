"""The questions of a config: which problems, and the messages that ask them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from datetime import date, datetime, time
from typing import Any

from microcoder.dataset import read_problems
from microcoder.dataset.benchmarks import Question, Selection, read_humaneval, read_livecodebench, read_mbpp
from microcoder.dataset.benchmarks.rows import read_published
from microcoder.errors import ConfigError
from microcoder.evaluation.config import EvalConfig, HumanEval, LiveCodeBench, Mbpp, ProblemFileConfig, Rows
from microcoder.prompts import Asker
from microcoder.training import prompt_config
from microcoder.types import Problem, Prompt, TestCase, Turn

Messages = list[dict[str, str]]
"""A chat: roles and contents."""

_EXPERT = (
    "You are an expert Python programmer. You will be given a question (problem specification) and will generate a "
    "correct Python program that matches the specification and passes all tests."
)
_WITH_STARTER = (
    "You will use the following starter code to write the solution to the problem and enclose your code within "
    "delimiters."
)
_WITHOUT_STARTER = (
    "Read the inputs from stdin solve the problem and write the answer to stdout (do not directly test on the sample "
    "inputs). Enclose your code within delimiters as follows. Ensure that when the python program runs, it reads the "
    "inputs, runs the algorithm and writes output to STDOUT."
)


def load_questions(config: EvalConfig, *, note: Callable[[str], None]) -> list[Question]:
    """Return the questions that a config selects; broken ones are skipped and reported to `note`.

    Raises:
        ConfigError: the selection contradicts itself.
        DataError: a file is missing or broken.
    """
    benchmark = config.benchmark
    match benchmark:
        case LiveCodeBench():
            selection = Selection(
                benchmark.platforms,
                benchmark.difficulties,
                _midnight(benchmark.start_date),
                _midnight(benchmark.end_date),
            )
            return read_livecodebench(
                benchmark.path,
                release=benchmark.release,
                selection=selection,
                time_limit_seconds=benchmark.time_limit_seconds,
                memory_limit_mib=benchmark.memory_limit_mib,
                dialect=benchmark.dialect,
                on_broken=(lambda why: note(f"left out: {why}")) if benchmark.skip_broken else None,
            )
        case HumanEval():
            return read_humaneval(benchmark.path, plus=benchmark.plus)
        case Mbpp():
            return read_mbpp(benchmark.path, split=benchmark.split, plus=benchmark.plus)
        case ProblemFileConfig():
            return [_own_question(problem) for problem in read_problems(benchmark.path)]
        case Rows():
            rows = read_published(benchmark.path, "benchmark file")
            return [_own_question(row.own_problem(benchmark.format)) for row in rows]


def digest_questions(questions: Sequence[Question]) -> str:
    """Return a digest of the questions, their prompts and tests."""
    return hashlib.sha256("\n".join(f"{q.id} {q.digest}" for q in questions).encode()).hexdigest()[:16]


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
    if not _is_published(config):
        own = isinstance(config.benchmark, ProblemFileConfig | Rows)
        return ask(question.load() if own else _as_problem(question)).as_chat()
    match config.benchmark:
        case LiveCodeBench():
            system, text = ask.system or _EXPERT, _livecodebench_text(question)
        case HumanEval():
            system, text = ask.system, _humaneval_text(question)
        case _:
            system, text = ask.system, _mbpp_text(question)
    before = (*((Turn("system", system),) if system else ()), *ask.examples)
    return Prompt(question.id, text, before).as_chat()


def build_asker(config: EvalConfig) -> Asker:
    """Return the prompt style of an evaluation, by the same code as training.

    Raises:
        ConfigError: the style cannot be loaded, or takes other options.
        DataError: the file of examples is missing or broken.
    """
    if config.prompt.style != "published":
        return prompt_config.build_asker(config.prompt)
    if config.prompt.options:
        raise ConfigError('prompt.options are of a prompt.style; "published" has none')
    return prompt_config.build_asker(config.prompt, style="instruct")


def _is_published(config: EvalConfig) -> bool:
    return config.prompt.style == "published" and not isinstance(config.benchmark, ProblemFileConfig | Rows)


def _livecodebench_text(question: Question) -> str:
    """LiveCodeBench's prompt for chat models, verbatim, so that results are comparable with published ones."""
    instruction, code = _WITHOUT_STARTER, "# YOUR CODE HERE"
    if question.starter_code:
        instruction, code = _WITH_STARTER, question.starter_code
    return (
        f"### Question:\n{question.statement}\n\n### Format: {instruction}\n```python\n{code}\n```\n\n"
        "### Answer: (use the provided format with backticks)\n\n"
    )


def _as_problem(question: Question) -> Problem:
    """Return a question as a problem that can be asked; its tests are not read for that."""
    return Problem(
        id=question.id,
        statement=question.statement,
        fn_name=question.fn_name,
        starter_code=question.starter_code or None,
        tests=(TestCase(input="", output=""),),
    )


def _humaneval_text(question: Question) -> str:
    return (
        "Complete this function. Answer with a self-contained Python program in one fenced code block "
        "(```python ... ```) that holds the whole function and all imports it needs.\n\n"
        f"```python\n{question.statement.strip()}\n```\n"
    )


def _mbpp_text(question: Question) -> str:
    tests = "\n".join(question.examples)
    return (
        f"{question.statement.strip()}\n\nYour code should pass these tests:\n\n```python\n{tests}\n```\n\n"
        "Answer with a self-contained Python program in one fenced code block (```python ... ```).\n"
    )


def _midnight(day: date | None) -> datetime | None:
    return datetime.combine(day, time()) if day is not None else None


def _own_question(problem: Problem) -> Question:
    return Question(
        id=problem.id,
        statement=problem.statement,
        difficulty=problem.tier or "",
        starter_code=problem.starter_code or "",
        fn_name=problem.fn_name,
        digest=hashlib.sha256(problem.model_dump_json().encode()).hexdigest()[:16],
        load=lambda: problem,
        language=problem.language,
    )

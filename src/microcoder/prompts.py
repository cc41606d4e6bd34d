"""Problem -> prompt: what a model is asked. Training, evaluation and the corpus's exports ask in the same words."""

from __future__ import annotations

from typing import Literal

from microcoder.types import Problem, Prompt

PromptStyle = Literal["instruct", "bare"]

_NAMES = {"cpp": "C++"}


def build_prompt(problem: Problem, *, style: PromptStyle) -> Prompt:
    """Return the user turn for a problem.

    `instruct` adds the format the extractor expects, as LiveCodeBench does; `bare` is the statement alone, for
    models that were trained on the format.
    """
    if style == "bare":
        return Prompt(problem.id, problem.statement)
    instruction = format_instruction(problem.language, fn_name=problem.fn_name, starter_code=problem.starter_code)
    return Prompt(problem.id, f"{problem.statement.strip()}\n\n{instruction}")


def format_instruction(language: str, *, fn_name: str | None, starter_code: str | None) -> str:
    """Return what to ask for: a program that reads stdin, or the function with its signature, in one code block."""
    starter = f"\n\n```{language}\n{starter_code.rstrip()}\n```" if starter_code else ""
    name, fence = _NAMES.get(language, language.capitalize()), f"one fenced code block (```{language} ... ```)"
    if fn_name:
        return (
            f"Implement `{fn_name}` in {name}. Put the complete solution, with the given signature, into "
            f"{fence}.{starter}"
        )
    return (
        f"Write a {name} program that reads the input from standard input and prints the answer to standard output. "
        f"Put the complete program into {fence}.{starter}"
    )

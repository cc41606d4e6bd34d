"""Problem -> prompt: what the model is asked."""

from __future__ import annotations

from typing import Literal

from microcoder.types import Problem, Prompt

PromptStyle = Literal["instruct", "bare"]


def build_prompt(problem: Problem, *, style: PromptStyle) -> Prompt:
    """Return the user turn for a problem.

    `instruct` adds the format the extractor expects, as LiveCodeBench does; `bare` is the statement alone, for
    models that were trained on the format.
    """
    if style == "bare":
        return Prompt(problem.id, problem.statement)
    return Prompt(problem.id, f"{problem.statement.strip()}\n\n{_format_instruction(problem)}")


def _format_instruction(problem: Problem) -> str:
    starter = f"\n\n```python\n{problem.starter_code.rstrip()}\n```" if problem.starter_code else ""
    if problem.fn_name:
        return (
            f"Implement `{problem.fn_name}` in Python. Put the complete solution, with the given signature, into one "
            f"fenced code block (```python ... ```).{starter}"
        )
    return (
        "Write a Python program that reads the input from standard input and prints the answer to standard output. "
        f"Put the complete program into one fenced code block (```python ... ```).{starter}"
    )

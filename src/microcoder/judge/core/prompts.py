"""Problem -> prompt, the same in training, evaluation and the corpus's exports.

A prompt style is a pure function of a problem that returns the user's turn, or a whole chat.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.judge.core.types import Problem, Prompt, Turn

_NAMES = {"cpp": "C++"}
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
ROLES = ("system", "user", "assistant")


def instruct(problem: Problem) -> str:
    """Return the statement and the format that the extractor expects, as LiveCodeBench does."""
    return f"{problem.statement.strip()}\n\n{_instruction(problem)}"


def bare(problem: Problem) -> str:
    """Return the statement without any instruction, for models that were trained on the format."""
    return problem.statement


def template(problem: Problem, *, text: str) -> str:
    """Return a text of the user's own with {statement}, {instruction}, {starter_code}, {fn_name}, {language} filled in.

    Other words in braces, such as LaTeX's, are kept.
    """
    values = {
        "statement": problem.statement.strip(),
        "instruction": _instruction(problem),
        "starter_code": problem.starter_code or "",
        "fn_name": problem.fn_name or "",
        "language": problem.language,
    }
    if "{statement}" not in text:
        raise ConfigError(
            "prompt.options.text does not hold {statement}, so the model would not see the problem"
        )
    return _PLACEHOLDER.sub(lambda found: values.get(found[1], found[0]), text)


BUILTINS: Mapping[str, Callable[..., Any]] = {
    "instruct": instruct,
    "bare": bare,
    "template": template,
}


@dataclass(frozen=True, slots=True)
class Asker:
    """Makes the prompt of a problem: by a prompt style, after a system turn."""

    style: Extension
    system: str | None = None
    """Content of the system turn, which comes first; None for none."""

    def __call__(self, problem: Problem) -> Prompt:
        """Return the prompt of a problem."""
        *before, last = self._turns(problem)
        system = (Turn("system", self.system),) if self.system is not None else ()
        return Prompt(problem.id, last.content, (*system, *before))

    def _turns(self, problem: Problem) -> list[Turn]:
        made = self.style(problem)
        if isinstance(made, str):
            return [Turn("user", made)]
        turns = _read_chat(made)
        if not turns or turns[-1].role != "user":
            raise self.style.fault(
                f"returned {made!r:.80}; return a text, or a chat that ends with the user's turn: "
                '[{"role": "user", "content": "..."}]'
            )
        if self.system is not None and any(turn.role == "system" for turn in turns):
            raise self.style.fault(
                "returned a system turn, and prompt.system is given too; leave one of them out"
            )
        return turns


def load_asker(
    style: str, options: Mapping[str, Any] | None = None, *, system: str | None = None
) -> Asker:
    """Return a prompt style with its system turn.

    Args:
        style: a built-in's name or a reference, see `extensions`.
        options: the style's keyword-only parameters.
        system: content of the system turn; None for none.

    Raises:
        ConfigError: the style cannot be loaded.
    """
    return Asker(load_extension("prompt", style, builtins=BUILTINS, options=options), system)


def _read_chat(made: object) -> list[Turn]:
    if not isinstance(made, Sequence):
        return []
    turns = [
        Turn(turn["role"], turn["content"])
        for turn in made
        if isinstance(turn, Mapping)
        and turn.get("role") in ROLES
        and isinstance(turn.get("content"), str)
    ]
    return turns if len(turns) == len(made) else []


def _instruction(problem: Problem) -> str:
    """Return the instruction: write a program that reads stdin, or the function as given, in one code block."""
    language = problem.language
    starter = (
        f"\n\n```{language}\n{problem.starter_code.rstrip()}\n```" if problem.starter_code else ""
    )
    name, fence = (
        _NAMES.get(language, language.capitalize()),
        f"one fenced code block (```{language} ... ```)",
    )
    if problem.fn_name:
        return (
            f"Implement `{problem.fn_name}` in {name}. Put the complete solution, with the given signature, into "
            f"{fence}.{starter}"
        )
    return (
        f"Write a {name} program that reads the input from standard input and prints the answer to standard output. "
        f"Put the complete program into {fence}.{starter}"
    )

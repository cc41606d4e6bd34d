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
"""Language -> its name in an instruction, where that is not the word capitalised."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
"""A word in braces, which may be filled in."""
ROLES = ("system", "user", "assistant")
"""Roles of a chat's turns."""


def instruct(problem: Problem) -> str:
    """Return the statement and the format that the extractor expects, as LiveCodeBench does."""
    return f"{problem.statement.strip()}\n\n{_instruction(problem)}"


def bare(problem: Problem) -> str:
    """Return the statement without any instruction, for models that were trained on the format."""
    return problem.statement


def template(problem: Problem, *, text: str) -> str:
    """Return a text of the user's own, with the words in braces filled in.

    They are {statement}, {instruction}, {starter_code}, {fn_name} and {language}. Other words in
    braces, such as LaTeX's, are kept.
    """
    values = {
        "statement": problem.statement.strip(),
        "instruction": _instruction(problem),
        "starter_code": problem.starter_code or "",
        "fn_name": problem.fn_name or "",
        "language": problem.language,
    }
    # It would train on nothing, and nobody would notice for hours.
    if "{statement}" not in text:
        raise ConfigError(
            "prompt.options.text does not hold {statement}, so the model would not see the problem"
        )
    # Not `str.format`, to which the braces of LaTeX are errors.
    return _PLACEHOLDER.sub(lambda word: values.get(word[1], word[0]), text)


BUILTINS: Mapping[str, Callable[..., Any]] = {
    "instruct": instruct,
    "bare": bare,
    "template": template,
}
"""Name -> prompt style of the package."""


@dataclass(frozen=True, slots=True)
class PromptBuilder:
    """Makes the prompt of a problem: by a prompt style, after a system turn."""

    style: Extension
    system: str | None = None
    """Content of the system turn, which comes first; None for none."""

    def __call__(self, problem: Problem) -> Prompt:
        """Return the prompt of a problem."""
        *before, last = self._turns(problem)
        if self.system is not None:
            before.insert(0, Turn("system", self.system))
        return Prompt(problem.id, last.content, tuple(before))

    def _turns(self, problem: Problem) -> list[Turn]:
        """Return the turns that the style makes, the user's last."""
        returned = self.style(problem)
        if isinstance(returned, str):
            return [Turn("user", returned)]
        turns = _read_chat(returned)
        if not turns or turns[-1].role != "user":
            raise self.style.fault(
                f"returned {returned!r:.80}; return a text, or a chat that ends with the user's "
                'turn: [{"role": "user", "content": "..."}]'
            )
        if self.system is not None and any(turn.role == "system" for turn in turns):
            raise self.style.fault(
                "returned a system turn, and prompt.system is given too; leave one of them out"
            )
        return turns


def load_prompt_builder(
    style: str,
    options: Mapping[str, Any] | None = None,
    *,
    system: str | None = None,
) -> PromptBuilder:
    """Return a prompt style with its system turn.

    Args:
        style: a built-in's name or a reference, see `extensions`.
        options: the style's keyword-only parameters.
        system: content of the system turn; None for none.

    Raises:
        ConfigError: the style cannot be loaded.
    """
    extension = load_extension("prompt", style, builtins=BUILTINS, options=options)
    return PromptBuilder(extension, system)


def _read_chat(chat: object) -> list[Turn]:
    """Return the turns of a chat; none if it is no chat, or if a message is malformed."""
    if not isinstance(chat, Sequence):
        return []
    turns = []
    for message in chat:
        if not isinstance(message, Mapping) or message.get("role") not in ROLES:
            return []
        if not isinstance(message.get("content"), str):
            return []
        turns.append(Turn(message["role"], message["content"]))
    return turns


def _instruction(problem: Problem) -> str:
    """Return the instruction: what to write, and to put it into one code block.

    That is a program that reads stdin, or the function as given.
    """
    language = problem.language
    name = _NAMES.get(language, language.capitalize())
    fence = f"one fenced code block (```{language} ... ```)"
    starter = ""
    if problem.starter_code:
        starter = f"\n\n```{language}\n{problem.starter_code.rstrip()}\n```"
    if problem.fn_name:
        return (
            f"Implement `{problem.fn_name}` in {name}. Put the complete solution, with the given "
            f"signature, into {fence}.{starter}"
        )
    if problem.interactor is not None:
        return (
            f"Write a {name} program that talks with the judge over standard input and standard "
            "output, and flushes its output after each line. Put the complete program into "
            f"{fence}.{starter}"
        )
    return (
        f"Write a {name} program that reads the input from standard input and prints the answer "
        f"to standard output. Put the complete program into {fence}.{starter}"
    )

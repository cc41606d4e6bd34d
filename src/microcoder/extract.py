"""Rollout -> program: which part of a response is the answer.

An extractor is a pure function of a response and of whether it was cut off; a recipe names one by `extractor`. The
built-in rule, in order (LiveCodeBench takes the last fenced block too):

1. Everything up to the last `</think>` is a draft and is not looked at; an opened, never closed `<think>`
   means the response ended while thinking: no program.
2. The last *closed* fenced block, of any language tag, is the program.
3. An opened, never closed fence is a program that was cut off: no program, `is_incomplete`. (In a response that
   ended by itself, a closed block before it still counts.)
4. A response without a fence has no program.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from microcoder.extensions import Extension, load_extension
from microcoder.types import Program

# Possessive quantifiers: a model that repeats one character after a fence must not cost quadratic time.
_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[ \t]*+([\w+#.-]*+)[^\n`]*+$", re.MULTILINE)


def extract_program(response: str, *, is_truncated: bool = False, language: str = "python") -> Program:
    """Return the program of a response.

    Args:
        response: the completion as text.
        is_truncated: the response reached the length limit; a missing program is then incomplete, not wrong.
        language: the problem's language; a fence's tag is ignored.
    """
    answer = response.rpartition("</think>")[2]
    if "<think>" in answer:
        return Program(None, language, reason="no_answer_after_thinking", is_incomplete=is_truncated)
    block: str | None = None
    opener: re.Match[str] | None = None
    for fence in _FENCE.finditer(answer):
        if opener is None:
            opener = fence
        elif fence[1][0] == opener[1][0] and len(fence[1]) >= len(opener[1]) and not fence[2]:
            block = answer[opener.end() + 1 : fence.start()]
            opener = None
    if opener is not None and (is_truncated or block is None):
        rest = answer[opener.end() + 1 :]
        draft = rest if is_truncated and rest.strip() else None
        return Program(None, language, reason="unclosed_code_block", is_incomplete=is_truncated, draft=draft)
    if block is None:
        return Program(None, language, reason="no_code_block", is_incomplete=is_truncated)
    if not block.strip():
        return Program(None, language, reason="empty_code_block", is_incomplete=is_truncated)
    return Program(block, language, reason="last_closed_code_block")


def last_code_block(response: str, is_truncated: bool) -> Program:
    """Return the last closed code block outside of thinking; see the module."""
    return extract_program(response, is_truncated=is_truncated)


BUILTINS: Mapping[str, Callable[..., Any]] = {"last_code_block": last_code_block}
DEFAULT = "last_code_block"


@dataclass(frozen=True, slots=True)
class Extractor:
    """An extractor of programs from responses, built-in or user-defined."""

    extension: Extension

    def __call__(self, response: str, *, is_truncated: bool = False, language: str = "python") -> Program:
        """Return the program of a response; a user's function returns its text, or None if there is none.

        Raises:
            ConfigError: a user's function failed, or returned something else; with its location.
        """
        found = self.extension(response, is_truncated)
        if isinstance(found, Program):
            return replace(found, language=language)
        if found is not None and not isinstance(found, str):
            raise self.extension.fault(f"returned {found!r:.80}; return the program as a text, or None")
        label = self.extension.label
        if not found or not found.strip():
            return Program(None, language, reason=f"nothing_by_{label}", is_incomplete=is_truncated)
        return Program(found, language, reason=label)


def load_extractor(name: str = DEFAULT, options: Mapping[str, Any] | None = None) -> Extractor:
    """Return an extractor.

    Args:
        name: a built-in's name or a reference, see `extensions`.
        options: its keyword-only parameters.

    Raises:
        ConfigError: it cannot be loaded, or an option is wrong.
    """
    return Extractor(load_extension("extractor", name, builtins=BUILTINS, options=options))


USUAL = load_extractor()

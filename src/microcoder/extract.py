"""Rollout -> program: which part of a response is the answer.

An extractor is a pure function of a response and of whether it was cut off; a recipe names one by `extractor`. The
built-in rule, in order:

1. What comes before the end of the thinking (`</think>`) is a draft; thinking that is never closed means that the
   response ended in it: no program. A mark inside the program, or a word about it, is none.
2. Of the closed blocks (`blocks.py` reads them), the last one of the best kind is the program: `choose_block`.
3. An opened, never closed fence at the end is a program that was cut off: no program, `is_incomplete`. (In a response
   that ended by itself, a closed block before it still counts.)
4. A response without a fence has no program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from microcoder.blocks import NO_PROGRAM, TAGS, Sketch, find_blocks, read_block, sketch, tag_means
from microcoder.extensions import Extension, load_extension
from microcoder.types import CodeBlock, Program


def extract_program(response: str, *, is_truncated: bool = False, language: str = "python") -> Program:
    """Return the program of a response.

    Args:
        response: the completion as text.
        is_truncated: the response reached the length limit; a missing program is then incomplete, not wrong.
        language: the problem's language: whose tag a block of its own has, and whether blocks are compiled.
    """
    blocks, is_thinking = find_blocks(response, language)
    nothing = Program(None, language, is_incomplete=is_truncated, blocks=blocks)
    if is_thinking:
        return replace(nothing, reason="no_answer_after_thinking")
    answer = [block for block in blocks if not block.is_draft]
    taken = choose_block(response, answer, language)
    if answer and not answer[-1].is_closed and (is_truncated or taken is None):
        rest = read_block(response, answer[-1])
        return replace(nothing, reason="unclosed_code_block", draft=rest if is_truncated and rest.strip() else None)
    if taken is None:
        return replace(nothing, reason="empty_code_block" if answer else "no_code_block")
    last = [block for block in answer if block.is_closed][-1]
    reason = "last_closed_code_block" if taken is last else "earlier_code_block"
    marked = tuple(replace(block, is_taken=block is taken) for block in blocks)
    return Program(read_block(response, taken), language, reason, blocks=marked)


def choose_block(response: str, blocks: Sequence[CodeBlock], language: str) -> CodeBlock | None:
    """Return the closed block that a human would take for the program; None if all are empty.

    The last one that is tagged with the language, or has no known tag, compiles, and defines something or reads input,
    unless it only uses what the one before defines; else one that compiles and does something; else one tagged with
    the language; else any but what is shown beside programs (outputs, shell lines). Where nothing is compiled, for
    languages other than Python, what holds `{` or `;` stands for what compiles.
    """
    best: tuple[int, CodeBlock] | None = None
    defined: frozenset[str] = frozenset()
    for block in blocks:
        code = read_block(response, block) if block.is_closed else ""
        if not code.strip():
            continue
        does = sketch(code, language) if block.compiles is not False else Sketch()
        stands = does.stands and does.uses.isdisjoint(defined)
        if tag_means(block.tag, language):
            rank = (8 if stands else 6) if does.acts else 4 - bool(block.compiles)
        elif block.tag in NO_PROGRAM:
            rank = 0
        elif block.tag in TAGS:
            rank = 2
        else:
            rank = (8 if stands else 5) if does.acts else 1
        if best is None or rank >= best[0]:
            best, defined = (rank, block), does.defines
    return best[1] if best else None


def last_code_block(response: str, is_truncated: bool, language: str = "python") -> Program:
    """Return the code block that a human would take for the program, outside of thinking; see the module."""
    return extract_program(response, is_truncated=is_truncated, language=language)


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
        if self.extension.function is last_code_block:
            return last_code_block(response, is_truncated, language)
        found = self.extension(response, is_truncated)
        if isinstance(found, Program):
            return replace(found, language=language)
        blocks = find_blocks(response, language)[0]
        if found is not None and not isinstance(found, str):
            raise self.extension.fault(f"returned {found!r:.80}; return the program as a text, or None")
        label = self.extension.label
        if not found or not found.strip():
            return Program(None, language, reason=f"nothing_by_{label}", is_incomplete=is_truncated, blocks=blocks)
        marked = (replace(block, is_taken=read_block(response, block).strip() == found.strip()) for block in blocks)
        return Program(found, language, reason=label, blocks=tuple(marked))


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

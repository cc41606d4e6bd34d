"""Rollout -> program: which part of a response is the answer.

An extractor is a pure function of a response and of whether it was cut off; a recipe names one by
`extractor`. The built-in rule, in order:

1. A response that goes on after its answer, into a made-up turn or document, is cut at the first
   mark of that (`endings`) outside the program's own fence.
2. What comes before the end of the thinking (`</think>`, and the other marks in `answers`) is a
   draft; thinking that is never closed means that the response ended in it: no program. A mark
   inside the program, or text about one, is ignored.
3. Where the prompt opened the fence, the response begins with the program, and the first fence
   closes it.
4. Of the closed blocks (`Scan` reads them), the last one of the best kind is the program:
   `_choose_block`.
5. An opened, never closed fence at the end is a program that was cut off: no program,
   `is_incomplete`. (In a response that ended by itself, a closed block before it still counts; one
   that ended by a special token ended its program.)
6. Without a fence, `[PYTHON]`, `<code>` and `<answer>` are one where a program stands between them.
   Else a response has no program; `find_bare_program` finds it in an answer that is to be plain
   code.

`Scan` reads fences as a human does: text may stand before an opening fence and behind a closing
one, the indentation of a list or a quotation is undone, and a fence inside a docstring does not end
a program that would not compile so.
"""

import ast
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from microcoder.judge.core.answers import (
    find_answer,
    find_ending,
    find_token_end,
    read_blocks,
)
from microcoder.judge.core.endings import find_turn_ends, strip_tokens
from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.judge.core.fences import (
    ALIASES,
    NO_PROGRAM,
    TAGS,
    Block,
    Scan,
    find_head,
    find_marked,
    has_fence,
)
from microcoder.judge.core.sketches import Sketch, cannot_be_program, reads_as_code, sketch
from microcoder.judge.core.syntax import try_parse
from microcoder.judge.core.types import Problem, Program

_GIVEN = frozenset(("ListNode", "TreeNode", "Node"))
"""Classes that a problem's starter code defines, and that answers often repeat."""
_UNINDENTED = re.compile(r"^(?=\S)", re.MULTILINE)
"""The start of a line without indentation, where a statement of a program may begin."""
_FIRST_FENCE = re.compile(r"```|~~~")
"""The fence that closes the one of the prompt."""
_INDENTED = re.compile(r"(?:[ \t]*\n)*[ \t]+\S")
"""The start of a function's body, where the prompt ends with its head."""
_BEGINS_WHOLE = re.compile(
    r"\s*^(?:import|from|class|def|async|@|#|\"\"\"|if __name__)", re.MULTILINE
)
"""The start of an answer that is a program by itself."""
_BEGINS_MARKED = re.compile(r"\s*\[PYTHON\]", re.IGNORECASE)
"""CodeLlama's mark, which is a list of one name to Python."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
"""Statements that define something."""
_BODIES = ("", "\n    pass\n", "\n        pass\n")
"""What may make a prompt's beginning of a program compile: the head of a function lacks a body."""
_MOST_PREFIXES = 64
"""Most beginnings of an unfenced answer that are tried as a program."""


def is_response(text: str, language: str) -> bool:
    """Whether a text given as a program is a whole response.

    It holds a fenced block and, if Python, does not parse.
    """
    if not has_fence(text) or not any(Scan(text, 0, "").blocks()):
        return False
    return language != "python" or try_parse(text) is None


def extract_program(
    response: str | None,
    *,
    is_truncated: bool = False,
    language: str = "python",
) -> Program:
    """Return the program of a response.

    Args:
        response: the completion as text; None, as of a chat whose message has no content, is an
            empty one.
        is_truncated: the response reached the length limit; a missing program is then incomplete,
            not wrong.
        language: the problem's language: blocks with its tags are preferred, and only Python blocks
            are compiled.
    """
    response = response or ""
    ending = find_ending(response, language)
    text = response[: ending.offset]
    # The model had ended its answer, and was cut off in what it made up.
    if ending.by_token or ending.by_turn:
        is_truncated = False
    nothing = Program(None, language, is_incomplete=is_truncated)
    start = find_answer(text, language)
    if start.is_thinking:
        return replace(nothing, reason="no_answer_after_thinking")
    blocks = read_blocks(text, start.offset, language)
    answer = [_without_tokens(block, language) for block in blocks]
    if answer and ending.by_token:
        # The token stands in place of the closing fence.
        answer[-1] = replace(answer[-1], is_closed=True)
    chosen = _choose_block(answer, language)
    ends_open = bool(answer) and not answer[-1].is_closed
    # A response that was cut off lost its program there, whatever stood in earlier blocks.
    if ends_open and (is_truncated or chosen is None):
        return replace(nothing, reason="unclosed_code_block")
    if chosen is None:
        return replace(nothing, reason="empty_code_block" if answer else "no_code_block")
    last = [block for block in answer if block.is_closed][-1]
    reason = "last_closed_code_block" if chosen is last else "earlier_code_block"
    return Program(chosen.code, language, reason)


def _without_tokens(block: Block, language: str) -> Block:
    """Return a block without the special tokens in its code, unless it compiles with them."""
    if block.compiles or block.tag in NO_PROGRAM:
        return block
    code = strip_tokens(block.code)
    if code == block.code:
        return block
    if language != "python":
        return replace(block, code=code)
    return replace(block, code=code, compiles=try_parse(code) is not None)


def clean_code(code: str, language: str) -> str:
    """Return code unchanged, unless it compiles only without a special token.

    Then everything from the first such token on is cut off.
    """
    if language != "python" or try_parse(code) is not None:
        return code
    end = find_token_end(code, language)
    if end is None or try_parse(code[:end]) is None:
        return code
    return code[:end]


def find_bare_program(
    text: str,
    problem: Problem,
    *,
    is_truncated: bool = False,
) -> str | None:
    """Return the program of an answer without a fenced block of its own, as of a base model.

    The answer is a whole program, or it goes on where the problem's prompt (as of HumanEval) or its
    starter code ends. What follows the program is cut off: a special token, the fence that closes
    the one of the prompt, a made-up turn, prose. None if the answer holds no program.
    """
    language = problem.language
    answer = _find_bare_answer(text, language)
    if answer is None:
        return None
    if language != "python":
        # Without a parser nothing tells where the program ends and prose begins.
        return answer if sketch(answer, language).stands else None
    turn = next(find_turn_ends(answer), None)
    answer = answer[:turn]
    is_whole = _BEGINS_WHOLE.match(answer) is not None
    prompt = problem.statement
    # The prompt first: an answer that goes on there may also compile by itself.
    for ahead in (prompt, "", problem.starter_code or ""):
        if ahead and not (try_parse(ahead) if is_whole else _opens_code(ahead)):
            continue
        for joined in _joins(ahead, is_whole=is_whole):
            code = _longest_program(joined, answer, problem.fn_name or "")
            if code is not None:
                return code
    # Prose must not be judged as a program, nor half a program as a whole one.
    if is_truncated or not reads_as_code(answer):
        return None
    # It does not compile, and is judged so.
    if not is_whole and _opens_code(prompt):
        return f"{prompt}{answer}"
    return answer


def _find_bare_answer(text: str, language: str) -> str | None:
    """Return the part of a text that may be a program without a fence.

    None if the text has a code block.
    """
    end = find_token_end(text, language)
    answer = text if end is None else text[:end]
    start = find_answer(answer, language)
    if start.is_thinking:
        return None
    # Some tokenisers put invisible marks before the first word.
    answer = strip_tokens(answer[start.offset :]).lstrip("\ufeff\u200b")
    if has_fence(answer):
        return _cut_at_fence(answer, language)
    is_marked = bool(find_marked(answer, language))
    if is_marked and (_BEGINS_MARKED.match(answer) or try_parse(answer) is None):
        return None
    return answer


def _cut_at_fence(answer: str, language: str) -> str | None:
    """Return the text before the fence that closes the prompt's code block; None without such a
    fence.
    """
    part = _FIRST_FENCE.split(answer, maxsplit=1)[0]
    # The body of a function has no parse of its own, so `find_head` does not see it.
    if _INDENTED.match(part):
        return part
    head = find_head(answer, language)
    return None if head is None else head.block.code


def _opens_code(text: str) -> bool:
    """Whether a prompt is the beginning of a program: it compiles, perhaps only with a body
    added."""
    for body in _BODIES:
        tree = try_parse(text.rstrip() + body)
        if tree is not None:
            return any(isinstance(node, _DEFINITIONS) for node in tree.body)
    return False


def _joins(ahead: str, *, is_whole: bool) -> list[str]:
    """Return the ways in which an answer may go on behind `ahead`.

    The answer's first line may have lost its indentation.
    """
    if not ahead:
        return [""]
    if is_whole:
        return [f"{ahead.rstrip()}\n\n"]
    bare = ahead.rstrip(" \t")
    lines = bare if bare.endswith("\n") else f"{bare}\n"
    spellings = (ahead, bare, f"{lines}    ", f"{lines}        ", lines)
    return list(dict.fromkeys(spellings))


def _longest_program(ahead: str, answer: str, fn_name: str) -> str | None:
    """Return `ahead` with the longest beginning of an answer that makes it a program.

    None if there is none.
    """
    for part in _beginnings(answer):
        code = ahead + part
        tree = try_parse(code)
        # A `return` outside of functions: the answer is the body of one, put beside it.
        if tree is None or any(isinstance(node, ast.Return) for node in tree.body):
            continue
        traits = sketch(code, "python")
        is_defined = not fn_name or fn_name in traits.defines or "Solution" in traits.defines
        does_something = traits.stands or traits.acts or bool(ahead)
        if is_defined and does_something:
            return code
    return None


def _beginnings(answer: str) -> Iterator[str]:
    """Yield beginnings of an answer, longest first: all of it, then up to each end of a
    statement."""
    ends = [line.start() for line in _UNINDENTED.finditer(answer) if line.start()]
    ends = [*ends[-_MOST_PREFIXES:], len(answer)]
    for end in reversed(ends):
        if answer[:end].strip():
            yield answer[:end]


class _Rank(IntEnum):
    """How well a block fits as the program: the last block of the highest rank is it."""

    SURELY_NONE = -1
    """Shell lines, a session, a diff, JSON, values, words."""
    SHOWN = 0
    """Its tag means what is shown beside programs: outputs, shell lines."""
    UNTAGGED = 1
    """Without a known tag; it does not compile, or does nothing."""
    OTHER_LANGUAGE = 2
    """Tagged with another language."""
    INERT = 3
    """Tagged with the language; it compiles, but does nothing."""
    BROKEN = 4
    """Tagged with the language; it does not compile, or is not compiled."""
    UNTAGGED_ACTS = 5
    """Without a known tag; running it has an effect."""
    ACTS = 6
    """Tagged with the language; running it has an effect."""
    STANDS = 7
    """It can be a program by itself."""
    WHOLE = 8
    """It is a full program of another language than Python."""


def _choose_block(blocks: Sequence[Block], language: str) -> Block | None:
    """Return the closed block that a person would take for the program; None if all are empty.

    The first choice is the last block that has the language's tag or no known tag, compiles, and
    defines something or reads and writes. A block that only uses or repeats the block before it is
    passed over.

    Next come blocks that compile and do something, then blocks with the language's tag, then all
    others but output and shell lines. Only Python is compiled. In other languages `{` or `;` marks
    code that does something, and whole programs come first.
    """
    for block in blocks:
        if block.is_head:
            # The prompt opened its fence, so that the response would begin with the program.
            if sketch(block.code, language).stands:
                return block
            break
    best: Block | None = None
    best_rank = _Rank.SURELY_NONE
    best_traits = Sketch()
    for block in blocks:
        if not block.is_closed or not block.code.strip():
            continue
        # What does not compile has no traits, and would be parsed in vain.
        traits = Sketch()
        if block.compiles is not False:
            traits = sketch(block.code, language)
        rank = _rank_block(block, traits, best_traits, language)
        # Of equally good blocks the last one counts, hence not `>`.
        if rank >= best_rank:
            best = block
            best_rank = rank
            best_traits = traits
    return best


def _rank_block(
    block: Block,
    traits: Sketch,
    before: Sketch,
    language: str,
) -> _Rank:
    """Return how well a block fits as the program, after the best block before it."""
    if cannot_be_program(block.code, language, is_compiled=block.compiles is True):
        return _Rank.SURELY_NONE
    is_tagged = block.tag == language or block.tag in ALIASES.get(language, ())
    if not is_tagged:
        if block.tag in NO_PROGRAM:
            return _Rank.SHOWN
        if block.tag in TAGS:
            return _Rank.OTHER_LANGUAGE
    if traits.stands and not _adds_nothing(traits, before):
        is_first_choice = traits.is_whole and language != "python"
        return _Rank.WHOLE if is_first_choice else _Rank.STANDS
    if traits.acts:
        return _Rank.ACTS if is_tagged else _Rank.UNTAGGED_ACTS
    if not is_tagged:
        return _Rank.UNTAGGED
    return _Rank.INERT if block.compiles else _Rank.BROKEN


def _adds_nothing(traits: Sketch, before: Sketch) -> bool:
    """Whether a block only shows how to use the program before it, or repeats a part of it."""
    # Given classes aside: a real answer uses the nodes that an earlier block may repeat.
    is_example = not traits.uses.isdisjoint(before.defines.keys() - _GIVEN)
    if is_example:
        return True
    # A whole answer is no part of the one before, even if it repeats all of it.
    if "Solution" in traits.defines or traits.is_whole:
        return False
    is_smaller = before.is_whole or (traits.defines != before.defines and not before.acts)
    return is_smaller and traits.defines.items() <= before.defines.items()


def last_code_block(
    response: str,
    is_truncated: bool,
    language: str = "python",
) -> Program:
    """Return the code block that a human would take for the program, outside of thinking.

    For the rules see the module.
    """
    return extract_program(response, is_truncated=is_truncated, language=language)


BUILTINS: Mapping[str, Callable[..., Any]] = {"last_code_block": last_code_block}
"""Name -> extractor of the package."""
DEFAULT = "last_code_block"
"""The extractor of recipes that name none."""


@dataclass(frozen=True, slots=True)
class Extractor:
    """An extractor of programs from responses, built-in or user-defined."""

    extension: Extension

    @property
    def is_usual(self) -> bool:
        """Whether this is the built-in extractor, which also accepts an answer of plain code."""
        return self.extension.function is last_code_block

    def __call__(
        self,
        response: str,
        *,
        is_truncated: bool = False,
        language: str = "python",
    ) -> Program:
        """Return the program of a response.

        A user's function may return its text, a `Program`, or None for none.
        """
        if self.is_usual:
            return last_code_block(response, is_truncated, language)
        returned = self.extension(response, is_truncated)
        if isinstance(returned, Program):
            # The problem decides the language, whatever the user's function filled in.
            return replace(returned, language=language)
        if returned is not None and not isinstance(returned, str):
            raise self.extension.fault(
                f"returned {returned!r:.80}; return the program as a text, or None"
            )
        label = self.extension.label
        if not returned or not returned.strip():
            return Program(None, language, reason=f"nothing_by_{label}", is_incomplete=is_truncated)
        return Program(returned, language, reason=label)


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
"""The built-in extractor."""

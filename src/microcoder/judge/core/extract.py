"""Rollout -> program: which part of a response is the answer.

An extractor is a pure function of a response and of whether it was cut off; a recipe names one by `extractor`. The
built-in rule, in order:

1. A response that goes on after its answer, into a made-up turn or document, is cut at the first mark of that
   (`endings`) outside the program's own fence.
2. What comes before the end of the thinking (`</think>`, and the other marks of `_THINKING`) is a draft; thinking that
   is never closed means that the response ended in it: no program. A mark inside the program, or text about one,
   is ignored.
3. Where the prompt opened the fence, the response begins with the program, and the first fence closes it.
4. Of the closed blocks (`Scan` reads them), the last one of the best kind is the program: `_choose_block`.
5. An opened, never closed fence at the end is a program that was cut off: no program, `is_incomplete`. (In a response
   that ended by itself, a closed block before it still counts; one that ended by a special token ended its program.)
6. Without a fence, `[PYTHON]`, `<code>` and `<answer>` are one where a program stands between them. Else a response
   has no program; `find_bare_program` finds it in an answer that is to be plain code.

`Scan` reads fences as a human does: text may stand before an opening fence and behind a closing one, the
indentation of a list or a quotation is undone, and a fence inside a docstring does not end a program that would not
compile so.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from microcoder.judge.core.endings import (
    find_token_ends,
    find_turn_ends,
    is_before_answer,
    strip_tokens,
)
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

_THINKING = re.compile(
    r"<(?P<end>/?)(?:seed:|mm:)?think(?:ing)?>|\[(?P<end_2>/?)THINK\]|◁(?P<end_3>/?)think▷"
    r"|<\|(?:begin|start|(?P<end_4>end))_(?:of_thought|thinking)\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|(?P<end_5>final)(?:\s?<\|constrain\|>\w+)?)<\|message\|>"
    r"|(?<=\S)(?P<end_6>(?-i:assistantfinal))",
    re.IGNORECASE,
)
"""Marks of reasoning models: tags, tokens, the channels of gpt-oss (`assistantfinal` without their tokens)."""
_GIVEN = frozenset(("ListNode", "TreeNode", "Node"))
"""Classes that a problem's starter code defines, and that answers often repeat."""
_MENTION_BEFORE, _MENTION_AFTER = (
    re.compile(r"(?<!``)`\Z|['\"(]\Z|[\w,]\s\Z"),
    re.compile(r"[`'\")]|\s[a-z]"),
)
_COMMENT = re.compile(r"#|//|/\*|['\"]")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"")
"""A whole string on one line, which leaves no quotation mark open."""
_UNINDENTED = re.compile(r"^(?=\S)", re.MULTILINE)
_FIRST_FENCE = re.compile(r"```|~~~")
_INDENTED = re.compile(r"(?:[ \t]*\n)*[ \t]+\S")
"""The start of a function's body, where the prompt ends with its head."""
_BEGINS_WHOLE = re.compile(
    r"\s*^(?:import|from|class|def|async|@|#|\"\"\"|if __name__)", re.MULTILINE
)
"""The start of an answer that is a program by itself."""
_BEGINS_MARKED = re.compile(r"\s*\[PYTHON\]", re.IGNORECASE)
"""CodeLlama's mark, which is a list of one name to Python."""
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_MOST_PREFIXES = 64
"""Most beginnings of an unfenced answer that are tried as a program."""
_MOST_MARKS = 32
"""Most marks of thinking, and most ends of turns, that are looked at in a response."""


def is_response(text: str, language: str) -> bool:
    """Whether a text given as a program is a whole response: it holds a fenced block and, if Python, does not parse."""
    if not has_fence(text) or not any(Scan(text, 0, "").blocks()):
        return False
    return language != "python" or try_parse(text) is None


def _find_answer(response: str, language: str) -> tuple[int, bool]:
    """Return the offset at which a response's answer begins, and whether it ended while still thinking.

    The mark that opened the thinking may be in the prompt. A mark inside the program, or text about one, is ignored.
    """
    cut, is_open = 0, False
    blocks: dict[int, list[Block]] = {}

    def is_in_program(place: int, before: str) -> bool:
        if cut not in blocks:
            blocks[cut] = list(Scan(response[cut:], cut, language).blocks())
        around = next(
            (
                block
                for block in blocks[cut]
                if block.start <= place < block.end and block.is_closed
            ),
            None,
        )
        if around is None:
            return False
        return bool(around.compiles or _COMMENT.search(before))

    for mark in list(_THINKING.finditer(response))[-_MOST_MARKS:]:
        line_end = response.find("\n", mark.end())
        before = response[response.rfind("\n", 0, mark.start()) + 1 : mark.start()]
        behind = response[mark.end() : line_end if line_end >= 0 else len(response)]
        if not any(mark.groups()):
            is_open = is_open or (not before.strip() and not is_in_program(mark.start(), before))
        elif is_open or not (
            (_MENTION_BEFORE.search(before[-3:]) and _MENTION_AFTER.match(behind))
            or is_in_program(mark.start(), before)
        ):
            cut, is_open = mark.end(), False
    return cut, is_open


@dataclass(frozen=True, slots=True)
class _Ending:
    """Where a response's own text ends, before what the model made up behind it."""

    offset: int
    by_token: bool = False
    """A special token ended it; the model's turn was over there, though a fence is open."""
    by_turn: bool = False
    """Words such as `User:` began a made-up turn."""


def _find_ending(response: str, language: str) -> _Ending:
    """Return the end of a response's own turn: the first mark of another outside its program."""
    token_end = _find_token_end(response, language)
    end = len(response) if token_end is None else token_end
    text = response[:end]
    turns = list(islice(find_turn_ends(text), _MOST_MARKS))
    if turns:
        cut, _ = _find_answer(text, language)
        blocks = _read_blocks(text, cut, language)
        for turn in turns:
            is_inside = any(block.start <= turn < block.end for block in blocks)
            if not is_inside and any(_is_standing(block, turn, language) for block in blocks):
                return _Ending(turn, by_turn=True)
    return _Ending(end, by_token=token_end is not None)


def _is_standing(block: Block, end: int, language: str) -> bool:
    """Whether a block is closed before an offset and can be the program."""
    if not block.is_closed or block.end > end or block.tag in NO_PROGRAM:
        return False
    return sketch(block.code, language).stands or block.tag in ALIASES.get(language, ())


def _find_token_end(response: str, language: str) -> int | None:
    """Return the offset of the first special token that ends the response; None if there is none."""
    for token in islice(find_token_ends(response), _MOST_MARKS):
        place = token.start()
        before = response[:place]
        cut, is_thinking = _find_answer(before, language)
        if is_thinking:
            mark = _THINKING.search(response, place)
            if mark is not None and any(mark.groups()):
                continue  # It is a thought about tokens: the thinking that was open goes on behind it.
            return place
        if is_before_answer(before[cut:]):
            continue
        blocks = _read_blocks(response, cut, language)
        inside = (block for block in blocks if block.start <= place < block.end)
        block = next(inside, None)
        if block is None or not _is_of_program(block, response, place, language):
            return place
    return None


def _is_of_program(block: Block, response: str, place: int, language: str) -> bool:
    """Whether a token inside a block is part of it: in a string, in a comment, or in front of all code."""
    if not strip_tokens(response[block.start : place]).strip():
        return True
    if block.is_closed and block.compiles:
        return True
    if language == "python" and try_parse(strip_tokens(block.code)) is not None:
        # Without its tokens it is a program, with them it is none.
        return False
    if (
        language != "python"
        and block.is_closed
        and strip_tokens(response[place : block.end]).strip()
    ):
        return True
    line = response[response.rfind("\n", 0, place) + 1 : place]
    line = _STRING.sub("", line)
    return bool(_COMMENT.search(line))


def _read_blocks(text: str, cut: int, language: str) -> list[Block]:
    """Return the blocks of an answer, which begins at `cut`: first the one that the prompt opened, if it did."""
    answer = text[cut:]
    if not has_fence(answer):
        marked = find_marked(answer, language)
        return [replace(block, start=block.start + cut, end=block.end + cut) for block in marked]
    head = find_head(answer, language)
    if head is None:
        return list(Scan(answer, cut, language).blocks())
    first = replace(head.block, start=head.block.start + cut, end=head.block.end + cut)
    behind = list(Scan(answer[head.behind :], cut + head.behind, language).blocks())
    if behind and not behind[-1].is_closed:
        # Perhaps the fence does not close the program, but opens what is shown behind it.
        shown = list(Scan(answer[head.block.end :], cut + head.block.end, language).blocks())
        if shown and shown[-1].is_closed:
            behind = shown
    return [first, *behind]


def extract_program(
    response: str | None, *, is_truncated: bool = False, language: str = "python"
) -> Program:
    """Return the program of a response.

    Args:
        response: the completion as text; None, as of a chat whose message has no content, is an empty one.
        is_truncated: the response reached the length limit; a missing program is then incomplete, not wrong.
        language: the problem's language: blocks with its tags are preferred, and only Python blocks are compiled.
    """
    response = response or ""
    ending = _find_ending(response, language)
    text = response[: ending.offset]
    is_truncated = is_truncated and not (ending.by_token or ending.by_turn)
    cut, is_thinking = _find_answer(text, language)
    nothing = Program(None, language, is_incomplete=is_truncated)
    if is_thinking:
        return replace(nothing, reason="no_answer_after_thinking")
    answer = [_without_tokens(block, language) for block in _read_blocks(text, cut, language)]
    if answer and ending.by_token:
        answer[-1] = replace(answer[-1], is_closed=True)
    taken = _choose_block(answer, language)
    if answer and not answer[-1].is_closed and (is_truncated or taken is None):
        return replace(nothing, reason="unclosed_code_block")
    if taken is None:
        return replace(nothing, reason="empty_code_block" if answer else "no_code_block")
    last = [block for block in answer if block.is_closed][-1]
    reason = "last_closed_code_block" if taken is last else "earlier_code_block"
    return Program(taken.code, language, reason)


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
    """Return code as it was given, without a special token and what follows it, if it compiles only so."""
    if language != "python" or try_parse(code) is not None:
        return code
    end = _find_token_end(code, language)
    if end is None or try_parse(code[:end]) is None:
        return code
    return code[:end]


def find_bare_program(text: str, problem: Problem, *, is_truncated: bool = False) -> str | None:
    """Return the program of an answer without a fenced block of its own, as of a base model; None if it holds none.

    The answer is a whole program, or it goes on where the problem's prompt (as of HumanEval) or its starter code ends.
    What follows the program is cut off: a special token, the fence that closes the one of the prompt, a made-up turn,
    prose.
    """
    language, fn_name = problem.language, problem.fn_name or ""
    prompt, starter = problem.statement, problem.starter_code or ""
    end = _find_token_end(text, language)
    answer = text if end is None else text[:end]
    cut, is_thinking = _find_answer(answer, language)
    if is_thinking:
        return None
    answer = strip_tokens(answer[cut:]).lstrip("\ufeff\u200b")
    marked = [] if has_fence(answer) else find_marked(answer, language)
    if marked and (_BEGINS_MARKED.match(answer) or try_parse(answer) is None):
        return None
    if has_fence(answer):
        head = find_head(answer, language)
        part = _FIRST_FENCE.split(answer, maxsplit=1)[0]
        if head is None and not _INDENTED.match(part):
            return None
        answer = part if head is None or _INDENTED.match(part) else head.block.code
    if language != "python":
        return answer if sketch(answer, language).stands else None
    turn = next(find_turn_ends(answer), None)
    answer = answer[:turn]
    is_whole = _BEGINS_WHOLE.match(answer) is not None
    for ahead in (prompt, "", starter):
        if ahead and not (try_parse(ahead) if is_whole else _opens_code(ahead)):
            continue
        for joined in _joins(ahead, is_whole=is_whole):
            code = _longest_program(joined, answer, fn_name)
            if code is not None:
                return code
    if is_truncated or not reads_as_code(answer):
        return None
    # It does not compile, and is judged so.
    return f"{prompt}{answer}" if not is_whole and _opens_code(prompt) else answer


def _opens_code(text: str) -> bool:
    """Whether a prompt is the beginning of a program: it compiles, if need be with a body."""
    bodies = ("", "\n    pass\n", "\n        pass\n")
    trees = (try_parse(text.rstrip() + body) for body in bodies)
    tree = next((tree for tree in trees if tree is not None), None)
    if tree is None:
        return False
    return any(isinstance(node, _DEFINITIONS) for node in tree.body)


def _joins(ahead: str, *, is_whole: bool) -> list[str]:
    """Return the ways in which an answer may go on behind `ahead`: its first line may have lost its indentation."""
    if not ahead:
        return [""]
    bare = ahead.rstrip(" \t")
    if is_whole:
        return [f"{ahead.rstrip()}\n\n"]
    lines = bare if bare.endswith("\n") else f"{bare}\n"
    return list(dict.fromkeys((ahead, bare, f"{lines}    ", f"{lines}        ", lines)))


def _longest_program(ahead: str, answer: str, fn_name: str) -> str | None:
    """Return `ahead` with the longest beginning of an answer that makes it a program; None if there is none."""
    ends = [found.start() for found in _UNINDENTED.finditer(answer) if found.start()]
    ends = [*ends[-_MOST_PREFIXES:], len(answer)]
    for end in reversed(ends):
        part = answer[:end]
        if not part.strip():
            continue
        code = ahead + part
        tree = try_parse(code)
        if tree is None or any(isinstance(node, ast.Return) for node in tree.body):
            continue
        does = sketch(code, "python")
        is_defined = not fn_name or fn_name in does.defines or "Solution" in does.defines
        if is_defined and (does.stands or does.acts or bool(ahead)):
            return code
    return None


def _choose_block(blocks: Sequence[Block], language: str) -> Block | None:
    """Return the closed block that a human would take for the program; None if all are empty.

    The last one that is tagged with the language, or has no known tag, compiles, and defines something or reads and
    writes, unless it only uses or repeats what the one before defines; else one that compiles and does something; else
    one tagged with the language; else any but what is shown beside programs (outputs, shell lines). Blocks of other
    languages than Python are not compiled: those with `{` or `;` count as code that does something, and whole programs
    come first.
    """
    best: tuple[int, Block] | None = None
    before = Sketch()
    opened_by_prompt = next((block for block in blocks if block.is_head), None)
    if opened_by_prompt is not None and sketch(opened_by_prompt.code, language).stands:
        return opened_by_prompt
    for block in blocks:
        code = block.code if block.is_closed else ""
        if not code.strip():
            continue
        does = sketch(code, language) if block.compiles is not False else Sketch()
        is_example = not does.uses.isdisjoint(before.defines.keys() - _GIVEN)
        is_smaller = before.is_whole or (does.defines != before.defines and not before.acts)
        is_part = (
            is_smaller and not does.is_whole and does.defines.items() <= before.defines.items()
        )
        stands = does.stands and not is_example and not (is_part and "Solution" not in does.defines)
        full = 8 + (does.is_whole and language != "python")
        if block.tag == language or block.tag in ALIASES.get(language, ()):
            rank = full if stands else 6 if does.acts else 4 - bool(block.compiles)
        elif block.tag in NO_PROGRAM:
            rank = 0
        elif block.tag in TAGS:
            rank = 2
        else:
            rank = full if stands else 5 if does.acts else 1
        if cannot_be_program(code, language, is_compiled=block.compiles is True):
            rank = -1
        if best is None or rank >= best[0]:
            best, before = (rank, block), does
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

    @property
    def is_usual(self) -> bool:
        """Whether it is the built-in one, which also reads answers that are plain code."""
        return self.extension.function is last_code_block

    def __call__(
        self, response: str, *, is_truncated: bool = False, language: str = "python"
    ) -> Program:
        """Return the program of a response; a user's function may return its text, a `Program`, or None for none."""
        if self.is_usual:
            return last_code_block(response, is_truncated, language)
        found = self.extension(response, is_truncated)
        if isinstance(found, Program):
            return replace(found, language=language)
        if found is not None and not isinstance(found, str):
            raise self.extension.fault(
                f"returned {found!r:.80}; return the program as a text, or None"
            )
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

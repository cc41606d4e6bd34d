"""Where a response's answer begins and ends, and which blocks of code it has.

An answer begins after the thinking. It ends before text that the model made up: the next turn of a
chat, or the next document. Such marks inside the program are part of the program. So these
functions read blocks to find where the answer begins and ends, and `read_blocks` returns them.
"""

import re
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from typing import NamedTuple

from microcoder.judge.core.endings import (
    find_token_ends,
    find_turn_ends,
    is_before_answer,
    strip_tokens,
)
from microcoder.judge.core.fences import (
    ALIASES,
    NO_PROGRAM,
    Block,
    Scan,
    find_head,
    find_marked,
    has_fence,
)
from microcoder.judge.core.sketches import sketch
from microcoder.judge.core.syntax import try_parse

_THINKING = re.compile(
    r"<(?P<end>/?)(?:seed:|mm:)?think(?:ing)?>|\[(?P<end_2>/?)THINK\]|◁(?P<end_3>/?)think▷"
    r"|<\|(?:begin|start|(?P<end_4>end))_(?:of_thought|thinking)\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>"
    r"(?:analysis|(?P<end_5>final)(?:\s?<\|constrain\|>\w+)?)<\|message\|>"
    r"|(?<=\S)(?P<end_6>(?-i:assistantfinal))",
    re.IGNORECASE,
)
"""Marks of reasoning models: tags, tokens, the channels of gpt-oss.

`assistantfinal` is one of those channels without its tokens. A group of a mark that ends the
thinking is not empty; all groups of one that begins it are.
"""
_MENTION_BEFORE = re.compile(r"(?<!``)`\Z|['\"(]\Z|[\w,]\s\Z")
"""What stands before a mark that a sentence is about."""
_MENTION_AFTER = re.compile(r"[`'\")]|\s[a-z]")
"""What stands behind a mark that a sentence is about."""
_COMMENT = re.compile(r"#|//|/\*|['\"]")
"""What a line holds before a mark in a comment or a string."""
_STRING = re.compile(r"'(?:[^'\\]|\\.)*+'|\"(?:[^\"\\]|\\.)*+\"")
"""A whole string on one line, which leaves no quotation mark open."""
_MOST_MARKS = 32
"""Most marks of thinking, and most ends of turns, that are looked at in a response."""


class AnswerStart(NamedTuple):
    """Where the answer of a response begins."""

    offset: int
    is_thinking: bool
    """The response ended while still thinking: there is no answer."""


def find_answer(response: str, language: str) -> AnswerStart:
    """Return the offset at which a response's answer begins: after the end of its thinking.

    The mark that opens the thinking may be in the prompt. Marks inside the program are ignored, and
    so are marks that the text only mentions.
    """
    cut = 0
    is_open = False

    # The mark that begins the answer rarely moves, and reading blocks is what takes long.
    @cache
    def read_blocks_behind(offset: int) -> list[Block]:
        return list(Scan(response[offset:], offset, language).blocks())

    def is_in_program(mark: re.Match[str], before: str) -> bool:
        for block in read_blocks_behind(cut):
            if block.is_closed and block.start <= mark.start() < block.end:
                return bool(block.compiles or _COMMENT.search(before))
        return False

    # The last ones decide; a response that repeats a mark for ever must not cost for ever.
    for mark in list(_THINKING.finditer(response))[-_MOST_MARKS:]:
        line_start = response.rfind("\n", 0, mark.start()) + 1
        before = response[line_start : mark.start()]
        if not any(mark.groups()):
            # The thinking begins at the start of a line.
            if not is_open and not before.strip():
                is_open = not is_in_program(mark, before)
        elif is_open or not (_is_mentioned(response, mark, before) or is_in_program(mark, before)):
            cut = mark.end()
            is_open = False
    return AnswerStart(cut, is_open)


def _is_mentioned(response: str, mark: re.Match[str], before: str) -> bool:
    """Whether the text only talks about a mark, judged by the words next to it on its line."""
    line_end = response.find("\n", mark.end())
    if line_end < 0:
        line_end = len(response)
    behind = response[mark.end() : line_end]
    # The expression needs three characters: a long line would be searched for nothing.
    if not _MENTION_BEFORE.search(before[-3:]):
        return False
    return _MENTION_AFTER.match(behind) is not None


@dataclass(frozen=True, slots=True)
class Ending:
    """Where a response's own text ends; the rest is made up by the model, such as another turn."""

    offset: int
    by_token: bool = False
    """A special token ended it; the model's turn was over there, though a fence is open."""
    by_turn: bool = False
    """Words such as `User:` began a made-up turn."""


def find_ending(response: str, language: str) -> Ending:
    """Return the end of a response's own turn: the first mark of another outside its program."""
    # Tokens come first: nobody writes them by accident, while words such as `User:` only may end
    # it.
    token_end = find_token_end(response, language)
    end = len(response) if token_end is None else token_end
    text = response[:end]
    turns = list(islice(find_turn_ends(text), _MOST_MARKS))
    if turns:
        start = find_answer(text, language)
        blocks = read_blocks(text, start.offset, language)
        for turn in turns:
            if _begins_turn(turn, blocks, language):
                return Ending(turn, by_turn=True)
    return Ending(end, by_token=token_end is not None)


def _begins_turn(offset: int, blocks: list[Block], language: str) -> bool:
    """Whether words that can begin a turn do so here: outside of code blocks and after a
    program."""
    if any(block.start <= offset < block.end for block in blocks):
        return False
    return any(_is_program_before(block, offset, language) for block in blocks)


def _is_program_before(block: Block, end: int, language: str) -> bool:
    """Whether a block is closed before an offset and can be the program."""
    if not block.is_closed or block.end > end or block.tag in NO_PROGRAM:
        return False
    # A tag is enough: the answer may be over behind a program that does not compile.
    if sketch(block.code, language).stands:
        return True
    return block.tag in ALIASES.get(language, ())


def find_token_end(response: str, language: str) -> int | None:
    """Return the offset of the first special token that ends the response; None if none does."""
    for token in islice(find_token_ends(response), _MOST_MARKS):
        offset = token.start()
        before = response[:offset]
        start = find_answer(before, language)
        if start.is_thinking:
            mark = _THINKING.search(response, offset)
            if mark is not None and any(mark.groups()):
                # It is a thought about tokens: the thinking that was open goes on behind it.
                continue
            return offset
        # A chat template may put tokens in front of the answer.
        if is_before_answer(before[start.offset :]):
            continue
        blocks = read_blocks(response, start.offset, language)
        # A program may hold a token as text, in a string or a comment.
        around = [block for block in blocks if block.start <= offset < block.end]
        if not around or not _is_of_program(around[0], response, offset, language):
            return offset
    return None


def _is_of_program(
    block: Block,
    response: str,
    offset: int,
    language: str,
) -> bool:
    """Whether a token in a block is part of it: in a string, a comment, or in front of all code."""
    if not strip_tokens(response[block.start : offset]).strip():
        return True
    if block.is_closed and block.compiles:
        return True
    if language == "python" and try_parse(strip_tokens(block.code)) is not None:
        # Without its tokens it is a program, with them it is none.
        return False
    # Nothing parses other languages here: code that goes on behind the token has to tell.
    if language != "python" and block.is_closed:
        goes_on = strip_tokens(response[offset : block.end]).strip()
        if goes_on:
            return True
    line = response[response.rfind("\n", 0, offset) + 1 : offset]
    # Whole strings go first: a `#` inside one begins no comment.
    return bool(_COMMENT.search(_STRING.sub("", line)))


def read_blocks(text: str, cut: int, language: str) -> list[Block]:
    """Return the blocks of code in a response's answer, which begins at offset `cut`.

    If the prompt opened a fence, its block comes first. Without any fence, they are the programs
    between other marks (`find_marked`).

    Args:
        text: the whole response; the blocks' offsets are in it.
        cut: where the answer begins.
        language: the one in which the program should be.
    """
    answer = text[cut:]
    # Other marks count only without any fence: prose may hold a `<code>` beside a program.
    if not has_fence(answer):
        return [_move(block, cut) for block in find_marked(answer, language)]
    head = find_head(answer, language)
    if head is None:
        return list(Scan(answer, cut, language).blocks())
    after_head = Scan(answer[head.behind :], cut + head.behind, language)
    behind = list(after_head.blocks())
    if behind and not behind[-1].is_closed:
        # Perhaps the fence does not close the program, but opens what is shown behind it.
        end = head.block.end
        after_block = Scan(answer[end:], cut + end, language)
        shown = list(after_block.blocks())
        if shown and shown[-1].is_closed:
            behind = shown
    return [_move(head.block, cut), *behind]


def _move(block: Block, offset: int) -> Block:
    """Return a block with its offsets moved, into a longer text that its own text is a part of."""
    return replace(block, start=block.start + offset, end=block.end + offset)

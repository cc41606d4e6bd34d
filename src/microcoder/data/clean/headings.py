"""Recognises lines that open a part of a statement, in English and Chinese."""

import re
import unicodedata
from typing import Literal, NamedTuple

Part = Literal[
    "statement", "input", "output", "constraints", "example", "explanation", "note", "other"
]
"""A part of a statement."""
Opened = Part | Literal["example_input", "example_output"]
"""What a heading opens: a part, or one of the two of an example."""

_WORDS: dict[Part, str] = {
    "statement": (
        "problem statement|statement|description|problem description|problem|task"
        "|题目描述|题目|问题描述|描述"
    ),
    "input": (
        "input|inputs|input format|input specification|input description|the input|input data"
        "|standard input|输入|输入格式|输入描述|输入说明"
    ),
    "output": (
        "output|outputs|output format|output specification|output description|the output"
        "|output data|standard output|输出|输出格式|输出描述|输出说明"
    ),
    "constraints": (
        "constraints|constraint|limits|limitations|bounds"
        "|提示|数据范围|数据规模|数据规模与约定|约束|约束条件|限制"
    ),
    "example": (
        "example|examples|sample|samples|sample test|sample tests|sample case|sample cases"
        "|sample test case|sample test cases|test case|test example|样例|示例|例|例子|样例说明"
    ),
    "explanation": (
        "explanation|explanations|sample explanation|explanation of sample"
        "|explanation of samples|explanation of examples|解释|说明"
    ),
    "note": "note|notes|remark|remarks|hint|hints|comment|comments|注|注意|备注|附注",
    "other": (
        "scoring|points|subtasks|grading|test cases|follow up|follow-up|background|story"
        "|interaction|interaction protocol|file input|file output|source|credits|partial score"
        "|test groups|image|testing|local testing|进阶|进阶问题|背景"
    ),
}
"""Headings by part, in English, and in Chinese: copies in Chinese are recognised by their
examples."""


def _index_words() -> dict[str, Part]:
    part_of_word: dict[str, Part] = {}
    for part, words in _WORDS.items():
        for word in words.split("|"):
            part_of_word[word] = part
    return part_of_word


_PART_OF = _index_words()
"""Part by heading."""
_EXAMPLE_INPUT = re.compile(
    r"(?:sample|example)s?(?: test)? ?inputs?|input (?:sample|example)|样例输入|输入样例|示例输入"
)
_EXAMPLE_OUTPUT = re.compile(
    r"(?:sample|example)s?(?: test)? ?outputs?|output (?:sample|example)"
    r"|output for (?:the )?sample input|样例输出|输出样例|示例输出"
)
_INLINE = re.compile(
    r"^[ \t>*_-]*"
    r"(?P<word>sample input|sample output|input|output|explanation|expected output"
    r"|输入|输出|解释)"
    r"\s*\d{0,2}[*_]*\s*[:：=][*_]*+[ \t]*(?P<rest>\S.*)$",
    re.IGNORECASE,
)
"""A label in an example, with text behind it on the line."""
_INLINE_PARTS: dict[str, Opened] = {
    "sample input": "example_input",
    "input": "example_input",
    "输入": "example_input",
    "sample output": "example_output",
    "output": "example_output",
    "expected output": "example_output",
    "输出": "example_output",
}
"""What a label opens; any other opens an explanation."""
_IN_EXAMPLE: dict[Part, Opened] = {"input": "example_input", "output": "example_output"}
"""What a heading of a part opens where an example was opened before."""
_LONGEST = 60
"""Characters of a heading; a longer line is text."""
_DECORATION = " \t#*_=>-.:：|~`【】[]<>()（）"
"""Characters around the words of a heading."""
_MARKS_BEFORE = "#*-=_【[<|"
"""A line that begins with one of these is marked as a heading."""
_MARKS_BEHIND = ":：*-"
"""A line that ends with one of these is marked as a heading."""
_NUMBER = re.compile(r"[ \t#]*(?:\d{1,2}|[一二三四五六七八九十])$|^\d{1,2}[.)、]?\s+")
_MARKDOWN = re.compile(r"\s*#{1,6}\s")
"""A heading in Markdown; `#1's answer` is the end of a sentence."""


class Heading(NamedTuple):
    """A line that opens a part of a statement."""

    part: Opened
    rest: str
    """Text behind the label on the same line; empty for a heading of its own."""
    title: str
    """The heading's text without decoration."""


def read_heading(line: str, *, in_example: bool) -> Heading | None:
    """Return the heading that a line is, or None if it is text.

    Args:
        in_example: an example was opened before, so that `Input` is its input and `Input: n = 3`
            its start.
    """
    if not line.strip():
        return None
    if in_example:
        label = _INLINE.match(line)
        if label:
            opened = _INLINE_PARTS.get(label["word"].lower(), "explanation")
            return Heading(opened, label["rest"].strip(), label["word"])
    if len(line) > _LONGEST:
        return None
    words = _undecorate(line)
    if not words:
        return None
    if _EXAMPLE_INPUT.fullmatch(words):
        return Heading("example_input", "", words)
    if _EXAMPLE_OUTPUT.fullmatch(words):
        return Heading("example_output", "", words)
    part = _PART_OF.get(words)
    if _MARKDOWN.match(line):
        # An example's explanation is written by `render` without `##`: with it, it is a part of its
        # own.
        is_second = line.lstrip().startswith("## ")
        if part is None or (part == "explanation" and is_second):
            return Heading("other", "", line.strip(" \t#*:："))
    if part is None or not _can_stand_alone(line, words):
        return None
    # Parts with `##` are the statement's own, as `render` writes them; those of an example have
    # none.
    if in_example and part in _IN_EXAMPLE and not line.lstrip().startswith("##"):
        return Heading(_IN_EXAMPLE[part], "", words)
    return Heading(part, "", line.strip(" \t#*:：-=_"))


def _undecorate(line: str) -> str:
    """Return the words of a heading in lower case, without decoration and number."""
    words = unicodedata.normalize("NFC", line).strip(_DECORATION).lower()
    words = _NUMBER.sub("", words)
    return re.sub(r"\s+", " ", words).strip(_DECORATION)


def _can_stand_alone(line: str, words: str) -> bool:
    """Whether a line that has only a heading's words is a heading.

    A bare word can be text: a line of an example, a name. Words that are marked, capitalised or in
    Chinese are never alone on a line of prose.
    """
    first = line.lstrip()[:1]
    if first in _MARKS_BEFORE or line.rstrip()[-1:] in _MARKS_BEHIND:
        return True
    return first.isupper() or not words.isascii()

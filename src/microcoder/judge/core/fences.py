"""The fenced blocks of a text, read as a human reads them.

Text may stand before an opening fence and behind a closing one. The indentation of a list or a
quotation is undone. A fence inside a docstring does not end a program that would not compile so.
`Scan` reads the blocks; `find_head` and `find_marked` find programs without an opening fence.
"""

import html
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

from microcoder.judge.core.sketches import reads_as_code, sketch
from microcoder.judge.core.syntax import try_parse

ALIASES = {
    "python": (
        "python",
        "py",
        "python3",
        "py3",
        "python2",
        "pypy",
        "pypy3",
        "sage",
    ),
    "cpp": (
        "cpp",
        "c++",
        "cc",
        "cxx",
        "c++11",
        "c++14",
        "c++17",
        "c++20",
        "c++23",
        "cpp17",
        "cpp20",
        "cpp23",
    ),
    "java": ("java",),
    "javascript": ("javascript", "js", "node", "nodejs", "mjs"),
}
"""Language -> the tags of a code fence that mean it."""
_SHELLS = (
    "bash",
    "sh",
    "shell",
    "zsh",
    "cmd",
    "console",
    "terminal",
    "powershell",
    "ps1",
)
"""Tags of lines for a shell."""
_SHOWN = (
    "text",
    "txt",
    "plaintext",
    "plain",
    "output",
    "stdout",
    "input",
    "stdin",
    "log",
    "diff",
    "patch",
    "mermaid",
)
"""Tags of what is shown beside programs."""
_NOTATIONS = (
    "json",
    "yaml",
    "toml",
    "ini",
    "csv",
    "xml",
    "html",
    "markdown",
    "md",
    "latex",
    "tex",
    "math",
)
"""Tags of data and documents."""
NO_PROGRAM = frozenset((*_SHELLS, *_SHOWN, *_NOTATIONS, "pseudocode", "pseudo", "algorithm"))
"""Tags of blocks that are no program: shell lines, outputs, data, pseudocode."""
_OTHER_LANGUAGES = (
    "c",
    "rust",
    "go",
    "ruby",
    "kotlin",
    "typescript",
    "ts",
)
"""Tags of further languages."""
TAGS = NO_PROGRAM.union(*ALIASES.values(), _OTHER_LANGUAGES)
"""All tags that are known: another word behind a fence may be prose."""

_ODD_SPACES = {
    "\u00a0": " ",
    "\u2007": " ",
    "\u202f": " ",
    "\u3000": " ",
    "\u200b": "",
    "\ufeff": "",
}
"""Spaces of typographers and web pages, and zero-width ones -> what they become in code."""
_SPACE = " \t\r\f\v" + "".join(_ODD_SPACES)
"""White space within a line."""
# Possessive quantifiers: a model that repeats one character after a fence must not cost quadratic
# time.
_AT_START = re.compile(rf"(?P<before>[{_SPACE}>]*+)(?P<run>`{{3,}}+|~{{3,}}+)(?P<rest>[^`\n]*+)")
"""A line with a fence, before which only white space and marks of a quotation stand."""
_BEHIND_TEXT = re.compile(
    rf"(?P<before>(?:[^`\n]|`{{1,2}}+(?!`))++)(?P<run>`{{3,}}+)(?P<rest>[\w+#.-]*+[{_SPACE}]*+)"
)
"""A line with a fence behind text or code."""
_TAG = re.compile(rf"[{_SPACE}{{.]*+([\w+#.-]*+)")
"""The first word behind a fence, also in braces as of R Markdown or Pandoc."""
_QUOTED = re.compile(r"^[ \t]*+>[ ]?", re.MULTILINE)
"""The mark of a quotation at the start of a line."""
_CODE_BEHIND_TAG = re.compile(
    r"import \w|from [\w.]+ import\b|(?:async )?(?:def|class) \w.*:|@\w+$|#include\b"
    r"|[\w.]+\(.*\)$"
    r"|(?!(?:file|file_?name|title|path|name|caption|label|id)\b)\w+(?:, ?\w+)* = \S"
)
"""A first line of code that shares the line of the fence.

Attributes such as `title="a.py"` have no spaces.
"""
_ESCAPED = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27|apos|nbsp);")
"""A character that is escaped as in HTML."""
_TAG_LINE = re.compile(r"[ \t]*([\w+#.-]+)[ \t]*\r?\n")
"""The first line of a response whose prompt ended with a bare fence."""
_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")
"""Blank lines at the start of a text."""
_HEADING = re.compile(r"[ \t]*#")
"""The start of a heading, or of a comment."""
_MARK = re.compile(r"`{3}|~{3}")
"""The least of which a fence is made."""
_LISTED = re.compile(
    r"^[ \t]*\[PYTHON\][ \t]*\r?$\n?|(?P<end>\[/PYTHON\])", re.MULTILINE | re.IGNORECASE
)
"""CodeLlama's mark of a program."""
_HOLDERS = re.compile(r"<(?P<end>/?)(?P<name>code|pre|answer)\b[^>\n]{0,200}>", re.IGNORECASE)
"""Elements that may hold a program."""
_ELEMENT = re.compile(r"</?(?:code|pre)\b[^>\n]*>", re.IGNORECASE)
"""The start or end of an element inside another that holds a program."""

# The limits below bound the time spent on a response, far beyond what answers need.
_MOST_ENDS = 12
"""Most fences that are tried as the end of a block."""
_MOST_PARSES = 100
"""Most pieces of code in a text that are parsed."""
_MOST_QUOTES = 8
"""Deepest quotation whose marks are removed."""
_MOST_PARSED_CHARACTERS = 1 << 17
"""Longest code that is parsed."""
_SHORTEST_RUN = 3
"""Marks of an ordinary fence."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A line with a code fence, which may open a block, end one, or both."""

    start: int
    """Offset of the start of its line."""
    code_end: int
    """Offset of the end of the code before the fence, if it ends a block."""
    end: int
    """Offset of the end of its line."""
    begin: int
    """Offset of the code behind the fence, if it opens a block.

    That is the next line, unless code shares this one.
    """
    run: str
    """Its marks: three or more of a kind."""
    tag: str
    """The first word behind it, in small letters."""
    is_tagged: bool
    """A language or a kind of text is named: such a fence opens a block and never ends one."""
    is_alone: bool
    """Nothing but white space, or the marks of a quotation, stands before it on its line."""
    num_quotes: int
    """How many marks of a quotation stand before it."""
    is_plain: bool
    """Only white space follows it on its line."""

    def ends(self, opener: Self) -> bool:
        """Whether the fence can close a block; it may stand behind code on its line."""
        is_alike = self.run[0] == opener.run[0] and len(self.run) >= len(opener.run)
        if not is_alike or self.is_tagged:
            return False
        return self.is_alone or self.is_plain

    def is_like(self, opener: Self) -> bool:
        """Whether the fence is alone on its line and of the opener's marks, perhaps of fewer."""
        is_by_itself = self.is_alone and self.is_plain
        return is_by_itself and self.run[0] == opener.run[0]


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a response, which may be its program."""

    start: int
    """Offset of its code in the response."""
    end: int
    tag: str
    """The first word behind the opening fence, in small letters."""
    code: str
    """The code, without what the layout adds: quotation marks, indentation, escapes."""
    is_closed: bool = True
    compiles: bool | None = None
    """Whether it compiles; None where not tried: in other languages, behind tags such as `text`."""
    is_head: bool = False
    """The prompt opened its fence: it begins with the response."""


@dataclass(frozen=True, slots=True)
class Head:
    """The program at the start of a response whose fence was opened by the prompt."""

    block: Block
    behind: int
    """Offset behind the fence that closes it."""


def has_fence(text: str) -> bool:
    """Whether three backticks or three tildes in a row stand anywhere in a text."""
    return _MARK.search(text) is not None


def find_head(text: str, language: str) -> Head | None:
    """Return the program at the start of a text whose fence was opened in the prompt.

    It ends at the closing fence; None if there is none.
    """
    fences = list(_find_fences(text))[:_MOST_ENDS]
    if not fences:
        return None
    first = fences[0]
    start = _find_head_start(text, language)
    code_with_fence = text[start : first.start] + text[first.start : first.code_end]
    is_empty = not code_with_fence.strip()
    # A fence that nothing comes before opens a block and closes none.
    if is_empty:
        return None
    head = _find_compiling_head(text, start, fences, language)
    if head is not None or language != "python":
        return head
    # With an odd number of fences the first one closes what the prompt opened.
    is_unpaired = len(fences) % 2 == 1 and not first.is_tagged and first.is_alone
    if is_unpaired and reads_as_code(text[start : first.code_end]):
        # A program that does not compile is one, too: what follows it is not to be taken in its
        # place.
        code = _dedent(text[start : first.code_end])
        block = Block(start, first.code_end, language, code, compiles=False, is_head=True)
        return Head(block, min(first.end + 1, len(text)))
    return None


def _find_head_start(text: str, language: str) -> int:
    """Return the offset at which code begins: after blank lines and a line with the language's
    name."""
    code_and_rest = _BLANK_LINES.sub("", text, count=1)
    start = len(text) - len(code_and_rest)
    tag_line = _TAG_LINE.match(text, start)
    if tag_line is not None and tag_line[1].lower() in ALIASES.get(language, ()):
        return tag_line.end()
    return start


def _find_compiling_head(
    text: str,
    start: int,
    fences: Sequence[Fence],
    language: str,
) -> Head | None:
    """Return the text up to the first fence before which it compiles; None if it never does."""
    begins_as_heading = _HEADING.match(text, fences[0].start) is not None
    # Only Python's parser tells a fence inside a string from the one that closes the program.
    ends = fences if language == "python" else fences[:1]
    for fence in ends:
        if begins_as_heading and fence is not fences[0]:
            break  # What reads as a comment is a heading: the fence behind it opens a block.
        if fence.is_tagged or not (fence.is_alone or fence.is_plain):
            continue
        plain = text[start : fence.code_end]
        for code in dict.fromkeys((plain, _dedent(plain))):
            if len(code) <= _MOST_PARSED_CHARACTERS and _can_be_head(code, language):
                compiles = True if language == "python" else None
                block = Block(
                    start,
                    fence.code_end,
                    language,
                    code,
                    compiles=compiles,
                    is_head=True,
                )
                return Head(block, min(fence.end + 1, len(text)))
    return None


def _can_be_head(code: str, language: str) -> bool:
    traits = sketch(code, language)
    if language != "python":
        return traits.is_whole
    return traits.stands or traits.acts or bool(traits.defines)


def find_marked(text: str, language: str) -> list[Block]:
    """Return the programs between marks other than fences.

    A word or a single line in `<code>` is not a program.
    """
    spans = list(_find_listed(text)) or list(_find_held(text))
    blocks = []
    for start, end in spans[:_MOST_PARSES]:
        code = _ELEMENT.sub("", text[start:end])
        code = code.lstrip("\r\n")
        if len(code) > _MOST_PARSED_CHARACTERS:
            continue
        dedented = _dedent(code)
        for form in (code, dedented, html.unescape(dedented)):
            if sketch(form, language).stands:
                compiles = True if language == "python" else None
                blocks.append(Block(start, end, language, form, compiles=compiles))
                break
    return blocks


def _find_listed(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the code between CodeLlama's marks begins and ends.

    The last may have lost its end.
    """
    start = None
    for mark in _LISTED.finditer(text):
        if not mark["end"]:
            if start is None:
                start = mark.end()
        elif start is not None:
            yield start, mark.start()
            start = None
    if start is not None:
        yield start, len(text)


def _find_held(text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets between which the contents of the outermost elements lie.

    An element that is not closed has no contents.
    """
    marks = list(_HOLDERS.finditer(text))
    # An element without an end behind it holds nothing.
    last_ends = {mark["name"].lower(): mark.start() for mark in marks if mark["end"]}
    outer: re.Match[str] | None = None
    for mark in marks:
        name = mark["name"].lower()
        if outer is None:
            if not mark["end"] and last_ends.get(name, -1) > mark.start():
                outer = mark
        elif mark["end"] and name == outer["name"].lower():
            yield outer.end(), mark.start()
            outer = None


class Scan:
    """Reads the blocks of one text from its first fence to its last."""

    def __init__(self, text: str, offset: int, language: str) -> None:
        self._text = text
        self._offset = offset
        self._language = language
        self._fences = list(_find_fences(text))
        self._num_parses = 0

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks.

        A block that is never closed ends with the text, or where a tag opens the next block.
        """
        index = 0
        while index < len(self._fences):
            block, index = self._close(index, self._find_ends(index))
            if block is not None:
                yield block

    def _find_ends(self, index: int) -> list[int]:
        """Return the indices of the fences that may close the block that a fence opens."""
        opener = self._fences[index]
        further = range(index + 1, len(self._fences))
        # Bounded on both sides: a response of fences alone must not take quadratic time.
        nearest = further[: 2 * _MOST_ENDS]
        ends = [end for end in nearest if self._fences[end].ends(opener)]
        if ends or len(opener.run) <= _SHORTEST_RUN:
            return ends[:_MOST_ENDS]
        # It was opened with more marks than any fence behind it has.
        last = further[-_MOST_ENDS:]
        alike = [end for end in last if self._fences[end].is_like(opener)]
        return alike[-1:]

    def _close(self, index: int, ends: list[int]) -> tuple[Block | None, int]:
        """Return the block that a fence opens, and the index of the next fence to read.

        The block is None if the fence opens none.
        """
        fences = self._fences
        opener = fences[index]
        # For Python, the first end by which the code compiles is the right one.
        is_compiled = self._language == "python" and opener.tag not in NO_PROGRAM
        if is_compiled and self._num_parses <= _MOST_PARSES:
            for end in ends:
                block = self._make(opener, fences[end].code_end)
                if block.compiles:
                    return block, end + 1
            if not (opener.is_alone or opener.is_tagged):
                return None, index + 1
        end = self._choose_end(ends)
        # Else a tag on a fence in between begins another block: this one was never closed.
        nested = self._find_nested(index, len(fences) if end is None else end)
        if nested is not None:
            block = self._make(opener, fences[nested].start)
            return replace(block, is_closed=False), nested
        if end is not None:
            return self._make(opener, fences[end].code_end), end + 1
        if not opener.is_alone and not self._text[opener.end + 1 :].strip():
            return None, len(fences)
        block = self._make(opener, len(self._text))
        return replace(block, is_closed=False), len(fences)

    def _choose_end(self, ends: list[int]) -> int | None:
        """Return which of several fences closes a block: the first alone on its line, if any is."""
        for end in ends:
            if self._fences[end].is_alone:
                return end
        return ends[0] if ends else None

    def _find_nested(self, index: int, end: int) -> int | None:
        """Return the first fence with a tag between two others; None if there is none."""
        for between in range(index + 1, end):
            if self._fences[between].is_tagged:
                return between
        return None

    def _make(self, opener: Fence, end: int) -> Block:
        """Return the block after a fence, in the first form of its code that compiles."""
        start = min(opener.begin, end)
        text = self._text[start:end]
        plain = text
        for _ in range(opener.num_quotes):
            plain = _QUOTED.sub("", plain)
        forms = list(dict.fromkeys((plain, _dedent(plain))))
        block = Block(start + self._offset, end + self._offset, opener.tag, forms[-1])
        if self._language != "python" or opener.tag in NO_PROGRAM:
            return block
        # After the forms as written: a program may hold `&lt;` as text of its own.
        if _ESCAPED.search(text):
            forms += [html.unescape(code) for code in forms]
        if any(space in text for space in _ODD_SPACES):
            spaces = str.maketrans(_ODD_SPACES)
            forms += [code.translate(spaces) for code in forms]
        for code in forms:
            if self._compiles(code):
                return replace(block, compiles=True, code=code)
        return replace(block, compiles=False)

    def _compiles(self, code: str) -> bool:
        self._num_parses += 1
        if self._num_parses > _MOST_PARSES or len(code) > _MOST_PARSED_CHARACTERS:
            return False
        return try_parse(code) is not None


def _find_fences(text: str) -> Iterator[Fence]:
    """Yield the fences of a text, one a line at most."""
    end = -1
    for mark in _MARK.finditer(text):
        # One fence a line: what follows it there is its tag, or text.
        if mark.start() < end:
            continue
        start = text.rfind("\n", 0, mark.start()) + 1
        end = text.find("\n", mark.end())
        if end < 0:
            end = len(text)
        line = text[start:end]
        match = _AT_START.fullmatch(line) or _BEHIND_TEXT.fullmatch(line)
        if match is not None:
            yield _read_fence(match, start, end)


def _read_fence(match: re.Match[str], start: int, end: int) -> Fence:
    """Return the fence of a line, which is matched whole, between two offsets of a text."""
    line = match.string
    before = match["before"]
    rest = match["rest"]
    is_alone = not before.strip(_SPACE + ">")
    tag = ""
    behind = ""
    word = _TAG.match(rest)
    if word is not None:
        tag = word[1].lower()
        behind = rest[word.end() :]
    code = behind.strip(_SPACE)
    is_language = tag in TAGS and tag not in NO_PROGRAM
    is_code = is_language and _CODE_BEHIND_TAG.match(code) is not None
    # Other words behind a fence are prose.
    is_attribute = "=" in behind or len(behind.split()) <= 1
    return Fence(
        start=start,
        code_end=start if is_alone else start + match.start("run"),
        end=end,
        begin=start + line.rindex(code) if is_code else end + 1,
        run=match["run"],
        tag=tag,
        is_tagged=tag in TAGS and (is_attribute or is_code),
        is_alone=is_alone,
        num_quotes=min(before.count(">"), _MOST_QUOTES) if is_alone else 0,
        is_plain=not rest.strip(_SPACE),
    )


def _dedent(text: str) -> str:
    """Remove the first line's indentation from every line.

    A line with less indentation loses all of it.
    """
    # Not `textwrap.dedent`: one line further left would leave what the layout added in all others.
    width = 0
    for line in text.splitlines():
        if line.strip():
            width = len(line) - len(line.lstrip(" \t"))
            break
    if not width:
        return text
    return re.sub(rf"^[ \t]{{1,{width}}}", "", text, flags=re.MULTILINE)

"""The fenced blocks of a text, read as a human reads them.

Text may stand before an opening fence and behind a closing one, the indentation of a list or a quotation is undone, and
a fence inside a docstring does not end a program that would not compile so.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

from microcoder.judge.core.sketches import reads_as_code, sketch
from microcoder.judge.core.syntax import try_parse

ALIASES = {
    "python": ("python", "py", "python3", "py3", "python2", "pypy", "pypy3", "sage"),
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
_SHELLS = ("bash", "sh", "shell", "zsh", "cmd", "console", "terminal", "powershell", "ps1")
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
NO_PROGRAM = frozenset((*_SHELLS, *_SHOWN, *_NOTATIONS, "pseudocode", "pseudo", "algorithm"))
"""Tags of blocks that are no program: shell lines, outputs, data, pseudocode."""
TAGS = NO_PROGRAM.union(
    *ALIASES.values(), ("c", "rust", "go", "ruby", "kotlin", "typescript", "ts")
)

_ODD_SPACES = {
    "\u00a0": " ",
    "\u2007": " ",
    "\u202f": " ",
    "\u3000": " ",
    "\u200b": "",
    "\ufeff": "",
}
_SPACE = " \t\r\f\v" + "".join(_ODD_SPACES)
# Possessive quantifiers: a model that repeats one character after a fence must not cost quadratic time.
_AT_START = re.compile(rf"(?P<before>[{_SPACE}>]*+)(?P<run>`{{3,}}+|~{{3,}}+)(?P<rest>[^`\n]*+)")
_BEHIND_TEXT = re.compile(
    rf"(?P<before>(?:[^`\n]|`{{1,2}}+(?!`))++)(?P<run>`{{3,}}+)(?P<rest>[\w+#.-]*+[{_SPACE}]*+)"
)
_TAG = re.compile(rf"[{_SPACE}{{.]*+([\w+#.-]*+)")
_QUOTED = re.compile(r"^[ \t]*+>[ ]?", re.MULTILINE)
_CODE_BEHIND_TAG = re.compile(
    r"import \w|from [\w.]+ import\b|(?:async )?(?:def|class) \w.*:|@\w+$|#include\b|[\w.]+\(.*\)$"
    r"|(?!(?:file|file_?name|title|path|name|caption|label|id)\b)\w+(?:, ?\w+)* = \S"
)
"""A first line of code that shares the line of the fence; attributes such as `title="a.py"` have no spaces."""
_ESCAPED = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27|apos|nbsp);")
_TAG_LINE = re.compile(r"[ \t]*([\w+#.-]+)[ \t]*\r?\n")
"""The first line of a response whose prompt ended with a bare fence."""
_BLANK_LINES = re.compile(r"\A(?:[ \t\r]*\n)+")
_HEADING = re.compile(r"[ \t]*#")
_MARK = re.compile(r"`{3}|~{3}")
_LISTED = re.compile(
    r"^[ \t]*\[PYTHON\][ \t]*\r?$\n?|(?P<end>\[/PYTHON\])", re.MULTILINE | re.IGNORECASE
)
"""CodeLlama's mark of a program."""
_HOLDERS = re.compile(r"<(?P<end>/?)(?P<name>code|pre|answer)\b[^>\n]{0,200}>", re.IGNORECASE)
"""Elements that may hold a program."""
_ELEMENT = re.compile(r"</?(?:code|pre)\b[^>\n]*>", re.IGNORECASE)
_MOST_ENDS, _MOST_PARSES = 12, 100
_MOST_QUOTES = 8
_SHORTEST_RUN = 3
_MOST_PARSED_CHARACTERS = 1 << 17
"""Limits that bound the time spent on a response, far beyond what answers need."""


@dataclass(frozen=True, slots=True)
class Fence:
    """A line with a code fence, which may open a block, end one, or both."""

    start: int
    """Offset of the start of its line."""
    code_end: int
    """Offset of the end of the code before the fence, if it ends a block."""
    end: int
    begin: int
    """Offset of the code behind the fence, if it opens a block: the next line, unless code shares this one."""
    run: str
    tag: str
    is_tagged: bool
    """Whether a language or a kind of text is named: such a fence opens a block and never ends one."""
    is_alone: bool
    """Nothing but white space, or the marks of a quotation, stands before it on its line."""
    num_quotes: int
    """How many marks of a quotation stand before it."""
    is_plain: bool
    """Only white space follows it on its line."""

    def ends(self, opener: Self) -> bool:
        """Whether the fence can close a block; it may stand behind code on its line."""
        is_alike = self.run[0] == opener.run[0] and len(self.run) >= len(opener.run)
        return is_alike and not self.is_tagged and (self.is_alone or self.is_plain)

    def is_like(self, opener: Self) -> bool:
        """Whether it stands by itself and is made of the same marks, of which it may have fewer."""
        return self.run[0] == opener.run[0] and self.is_alone and self.is_plain


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
    """Whether three marks of a fence stand anywhere in a text."""
    return _MARK.search(text) is not None


def find_head(text: str, language: str) -> Head | None:
    """Return the program that begins with a text and that a fence without an opener closes; None if there is none."""
    fences = list(_find_fences(text))[:_MOST_ENDS]
    start = len(text) - len(_BLANK_LINES.sub("", text, count=1))
    tag_line = _TAG_LINE.match(text, start)
    if tag_line is not None and tag_line[1].lower() in ALIASES.get(language, ()):
        start = tag_line.end()
    if (
        not fences
        or not text[start : fences[0].start].strip()
        + text[fences[0].start : fences[0].code_end].strip()
    ):
        return None
    # Only Python's parser tells a fence inside a string from the one that closes the program.
    ends = fences if language == "python" else fences[:1]
    for fence in ends:
        if _HEADING.match(text, fences[0].start) and fence is not fences[0]:
            break  # What reads as a comment is a heading: the fence behind it opens a block.
        if fence.is_tagged or not (fence.is_alone or fence.is_plain):
            continue
        plain = text[start : fence.code_end]
        for code in dict.fromkeys((plain, _dedent(plain))):
            if len(code) <= _MOST_PARSED_CHARACTERS and _can_be_head(code, language):
                block = Block(start, fence.code_end, language, code, compiles=True, is_head=True)
                if language != "python":
                    block = replace(block, compiles=None)
                return Head(block, min(fence.end + 1, len(text)))
    first = fences[0]
    is_unpaired = len(fences) % 2 == 1 and not first.is_tagged and first.is_alone
    if language == "python" and is_unpaired and reads_as_code(text[start : first.code_end]):
        # A program that does not compile is one, too: what follows it is not to be taken in its place.
        code = _dedent(text[start : first.code_end])
        block = Block(start, first.code_end, language, code, compiles=False, is_head=True)
        return Head(block, min(first.end + 1, len(text)))
    return None


def _can_be_head(code: str, language: str) -> bool:
    does = sketch(code, language)
    if language != "python":
        return does.is_whole
    return does.stands or does.acts or bool(does.defines)


def find_marked(text: str, language: str) -> list[Block]:
    """Return the programs between marks that are no fences; a word or a line in `<code>` is none."""
    places = list(_find_listed(text)) or list(_find_held(text))
    blocks = []
    for start, end in places[:_MOST_PARSES]:
        code = _ELEMENT.sub("", text[start:end]).lstrip("\r\n")
        if len(code) > _MOST_PARSED_CHARACTERS:
            continue
        tries = (code, _dedent(code), html.unescape(_dedent(code)))
        whole = next((one for one in tries if sketch(one, language).stands), None)
        if whole is not None:
            is_compiled = True if language == "python" else None
            blocks.append(Block(start, end, language, whole, compiles=is_compiled))
    return blocks


def _find_listed(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the code between CodeLlama's marks begins and ends; the last may have lost its end."""
    start = None
    for mark in _LISTED.finditer(text):
        if not mark["end"]:
            start = mark.end() if start is None else start
        elif start is not None:
            yield start, mark.start()
            start = None
    if start is not None:
        yield start, len(text)


def _find_held(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the contents of the outermost elements begin and end; those without an end hold nothing."""
    marks = list(_HOLDERS.finditer(text))
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
        self._text, self._offset, self._language = text, offset, language
        self._fences = list(_find_fences(text))
        self._num_parses = 0

    def blocks(self) -> Iterator[Block]:
        """Yield the blocks; one that is never closed ends with the text, or where the next one is opened by a tag."""
        place, fences = 0, self._fences
        while place < len(fences):
            opener = fences[place]
            further = range(place + 1, len(fences))
            ends = [index for index in further[: 2 * _MOST_ENDS] if fences[index].ends(opener)][
                :_MOST_ENDS
            ]
            if not ends and len(opener.run) > _SHORTEST_RUN:
                # It was opened with more marks than any fence behind it has.
                last = further[-_MOST_ENDS:]
                ends = [index for index in last if fences[index].is_like(opener)][-1:]
            block, place = self._close(opener, place, ends)
            if block is not None:
                yield block

    def _close(self, opener: Fence, place: int, ends: list[int]) -> tuple[Block | None, int]:
        """Return the block that a fence opens (None: it opens none), and the index of the next fence to read."""
        fences = self._fences
        is_compiled = self._language == "python" and opener.tag not in NO_PROGRAM
        if is_compiled and self._num_parses <= _MOST_PARSES:
            for index in ends:
                block = self._make(opener, fences[index].code_end)
                if block.compiles:
                    return block, index + 1
            if not (opener.is_alone or opener.is_tagged):
                return None, place + 1
        first = next((index for index in ends if fences[index].is_alone), ends[0] if ends else None)
        behind = range(place + 1, len(fences) if first is None else first)
        nested = next((index for index in behind if fences[index].is_tagged), None)
        if nested is not None:
            return replace(self._make(opener, fences[nested].start), is_closed=False), nested
        if first is None:
            if not opener.is_alone and not self._text[opener.end + 1 :].strip():
                return None, len(fences)
            return replace(self._make(opener, len(self._text)), is_closed=False), len(fences)
        return self._make(opener, fences[first].code_end), first + 1

    def _make(self, opener: Fence, end: int) -> Block:
        start = min(opener.begin, end)
        text = plain = self._text[start:end]
        for _ in range(opener.num_quotes):
            plain = _QUOTED.sub("", plain)
        tries = list(dict.fromkeys((plain, _dedent(plain))))
        block = Block(start + self._offset, end + self._offset, opener.tag, tries[-1])
        if self._language != "python" or opener.tag in NO_PROGRAM:
            return block
        if _ESCAPED.search(text):
            tries += [html.unescape(code) for code in tries]
        if any(space in text for space in _ODD_SPACES):
            tries += [code.translate(str.maketrans(_ODD_SPACES)) for code in tries]
        for code in tries:
            if self._compiles(code):
                return replace(block, compiles=True, code=code)
        return replace(block, compiles=False)

    def _compiles(self, code: str) -> bool:
        self._num_parses += 1
        if self._num_parses > _MOST_PARSES or len(code) > _MOST_PARSED_CHARACTERS:
            return False
        return try_parse(code) is not None


def _find_fences(text: str) -> Iterator[Fence]:
    end = -1
    for mark in _MARK.finditer(text):
        if mark.start() < end:
            continue
        start = text.rfind("\n", 0, mark.start()) + 1
        end = text.find("\n", mark.end())
        end = len(text) if end < 0 else end
        line = text[start:end]
        fence = _AT_START.fullmatch(line) or _BEHIND_TEXT.fullmatch(line)
        if fence is not None:
            found, is_alone = _TAG.match(fence["rest"]), not fence["before"].strip(_SPACE + ">")
            tag = found[1].lower() if found else ""
            behind = fence["rest"][found.end() :] if found else ""
            code = behind.strip(_SPACE)
            is_code = tag in TAGS - NO_PROGRAM and _CODE_BEHIND_TAG.match(code) is not None
            # Other words behind a fence are prose.
            is_attribute = "=" in behind or len(behind.split()) <= 1
            yield Fence(
                start=start,
                code_end=start if is_alone else start + fence.start("run"),
                end=end,
                begin=start + line.rindex(code) if is_code else end + 1,
                run=fence["run"],
                tag=tag,
                is_tagged=tag in TAGS and (is_attribute or is_code),
                is_alone=is_alone,
                num_quotes=min(fence["before"].count(">"), _MOST_QUOTES) if is_alone else 0,
                is_plain=not fence["rest"].strip(_SPACE),
            )


def _dedent(text: str) -> str:
    """Remove the first line's indentation from every line; a line with less loses all of its own."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    width = len(first) - len(first.lstrip(" \t"))
    return re.sub(rf"^[ \t]{{1,{width}}}", "", text, flags=re.MULTILINE) if width else text

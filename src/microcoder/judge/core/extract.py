"""Rollout -> program: which part of a response is the answer.

An extractor is a pure function of a response and of whether it was cut off; a recipe names one by `extractor`. The
built-in rule, in order:

1. What comes before the end of the thinking (`</think>`, and the other marks of `_THINKING`) is a draft; thinking that
   is never closed means that the response ended in it: no program. A mark inside the program, or text about one,
   is ignored.
2. Of the closed blocks (`_Scan` reads them), the last one of the best kind is the program: `_choose_block`.
3. An opened, never closed fence at the end is a program that was cut off: no program, `is_incomplete`. (In a response
   that ended by itself, a closed block before it still counts.)
4. A response without a fence has no program.

`_Scan` reads fences as a human does: text may stand before an opening fence and behind a closing one, the
indentation of a list or a quotation is undone, and a fence inside a docstring does not end a program that would not
compile so.
"""

import ast
import html
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from microcoder.judge.core.extensions import Extension, load_extension
from microcoder.judge.core.syntax import try_parse
from microcoder.judge.core.types import Program

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
_THINKING = re.compile(
    r"<(?P<end>/?)(?:seed:|mm:)?think(?:ing)?>|\[(?P<end_2>/?)THINK\]|◁(?P<end_3>/?)think▷"
    r"|<\|(?:begin|start|(?P<end_4>end))_(?:of_thought|thinking)\|>"
    r"|(?:<\|start\|>assistant)?<\|channel\|>(?:analysis|(?P<end_5>final)(?:\s?<\|constrain\|>\w+)?)<\|message\|>"
    r"|(?<=\S)(?P<end_6>(?-i:assistantfinal))",
    re.IGNORECASE,
)
"""Marks of reasoning models: tags, tokens, the channels of gpt-oss (`assistantfinal` without their tokens)."""
_HEAD = r"[^;{}]{0,200}\{"
_ENTRY = re.compile(rf"\bmain\s*\([^;{{}}]{{0,200}}\){_HEAD}|\bclass\s+\w{_HEAD}")
_READS, _WRITES = (
    re.compile(r"\brequire\s*\(|\bstdin\b|readFileSync|readline"),
    re.compile(r"console\.log|print|write|stdout"),
)
"""A JavaScript program has no entry point: it counts as whole if both patterns are found."""
_GIVEN = frozenset(("ListNode", "TreeNode", "Node"))
"""Classes that a problem's starter code defines, and that answers often repeat."""
_MENTION_BEFORE, _MENTION_AFTER = (
    re.compile(r"(?<!``)`$|['\"(]$|[\w,]\s$"),
    re.compile(r"[`'\")]|\s[a-z]"),
)
_COMMENT = re.compile(r"#|//|/\*|['\"]")
_ABRIDGED = re.compile(
    r"^[ \t]*+(?:(?:def|class) .*:)?[ \t]*+(?:#|//)?[ \t]*+(?:\.{3}|…)(?![^\s(a-z])", re.MULTILINE
)
"""A placeholder for omitted code: a line `...`, or a comment that begins so; not the row of a map, such as `...#`."""
_QUOTED = re.compile(r"^[ \t]*+>[ ]?", re.MULTILINE)
_ESCAPED = re.compile(r"&(?:lt|gt|amp|quot|#39|#x27|apos|nbsp);")
_MARK = re.compile(r"`{3}|~{3}")
_MOST_MARKS, _MOST_ENDS, _MOST_PARSES = 32, 12, 100
_MOST_PARSED_CHARACTERS = 1 << 17
"""Limits that bound the time spent on a response, far beyond what answers need."""


@dataclass(frozen=True, slots=True)
class _Fence:
    """A line with a code fence, which may open a block, end one, or both."""

    start: int
    """Offset of the start of its line."""
    code_end: int
    """Offset of the end of the code before the fence, if it ends a block."""
    end: int
    run: str
    tag: str
    is_tagged: bool
    """Whether a language or a kind of text is named: such a fence opens a block and never ends one."""
    is_alone: bool
    """Nothing but white space, or the marks of a quotation, stands before it on its line."""
    is_quoted: bool
    is_plain: bool
    """Only white space follows it on its line."""

    def ends(self, opener: Self) -> bool:
        """Whether the fence can close a block; it may stand behind code on its line."""
        is_alike = self.run[0] == opener.run[0] and len(self.run) >= len(opener.run)
        return is_alike and not self.is_tagged and (self.is_alone or self.is_plain)


@dataclass(frozen=True, slots=True)
class _Block:
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


def is_response(text: str, language: str) -> bool:
    """Whether a text given as a program is a whole response: it holds a fenced block and, if Python, does not parse."""
    if not _MARK.search(text) or not any(_Scan(text, 0, "").blocks()):
        return False
    return language != "python" or try_parse(text) is None


@dataclass(frozen=True, slots=True)
class Sketch:
    """Traits of a block's code, found in its source without running it."""

    acts: bool = False
    """Whether running the code has an effect: a sample output such as `[1, 2]` compiles, but has none."""
    stands: bool = False
    """Whether it can be a program: it defines something, or reads and writes. False for lines that only show how to
    use one, a method without its class, and code abridged by `...`."""
    is_whole: bool = False
    """Whether it is a full program: reads input; in JavaScript also prints; in others has a class or `main`."""
    defines: Mapping[str, list[str]] = field(default_factory=dict)
    """Names of the functions and classes it defines -> their source lines, without comments."""
    uses: frozenset[str] = frozenset()
    """Names used but not bound in an enclosing scope, or imported from a module outside the standard library."""


def sketch(code: str, language: str) -> Sketch:
    """Return the traits of a block's code; if not Python, `{` counts as a definition, `;` as a statement."""
    is_abridged = bool(_ABRIDGED.search(code))
    if language != "python":
        signs = (_READS, _WRITES) if language == "javascript" else (_ENTRY,)
        is_whole = not is_abridged and all(sign.search(code) for sign in signs)
        return Sketch(is_whole or "{" in code or ";" in code, is_whole or "{" in code, is_whole)
    tree = (
        None if code.lstrip()[:1] in ("+", "-") else try_parse(code)
    )  # Those begin the lines of a diff.
    if tree is None:
        return Sketch()
    acts, defines, lines = False, {}, [line.partition("#")[0].strip() for line in code.split("\n")]
    for node in tree.body:
        match node:
            case (
                ast.FunctionDef(args=ast.arguments(args=[ast.arg("self"), *_]))
                | ast.Import()
                | ast.ImportFrom()
            ):
                pass
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                defines[node.name] = [*filter(None, lines[node.lineno - 1 : node.end_lineno])]
            case ast.Expr(value=value) | ast.Assign(value=value) | ast.AnnAssign(value=value):
                acts = acts or any(
                    isinstance(inner, (ast.Call, ast.Lambda)) for inner in ast.walk(value or node)
                )
            case _:
                acts = True
    uses = _find_uses(tree)
    is_reading = not uses.isdisjoint(("input", "open", "fileinput", "stdin")) or any(
        map(_is_reading, ast.walk(tree))
    )
    stands = bool(defines) or (acts and is_reading and bool(_WRITES.search(code)))
    return Sketch(acts, stands and not is_abridged, acts and is_reading, defines, uses)


def _is_reading(node: ast.AST) -> bool:
    match node:
        case (
            ast.Attribute(attr="stdin")
            | ast.Attribute(ast.Name("os"), "read")
            | ast.alias("stdin" | "input")
        ):
            return True
    return False


def _find_uses(tree: ast.Module) -> frozenset[str]:
    """Return the names used but not bound in an enclosing scope, or imported from outside the standard library."""
    uses, scopes = set[str](), [(tree, frozenset[str]())]
    while scopes:
        scope, around = scopes.pop()
        loaded, bound, inside, nodes = set[str](), set[str](), [], [*ast.iter_child_nodes(scope)]
        while nodes:
            node = nodes.pop()
            match node:
                case ast.Name(id=name, ctx=ast.Load()):
                    loaded.add(name)
                case ast.Name(id=name) | ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                    bound.add(name)
                case ast.ImportFrom(module=module, names=names):
                    is_known = (module or "").partition(".")[0] in sys.stdlib_module_names
                    (bound if is_known else uses).update(alias.name for alias in names)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    bound.add(node.name)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                inside.append(node)
            else:
                nodes += ast.iter_child_nodes(node)
        known = around | bound
        uses |= loaded - known
        scopes += [(one, known) for one in inside]
    return frozenset(uses)


def _find_answer(response: str, language: str) -> tuple[int, bool]:
    """Return the offset at which a response's answer begins, and whether it ended while still thinking.

    The mark that opened the thinking may be in the prompt. A mark inside the program, or text about one, is ignored.
    """
    cut, is_open = 0, False
    blocks: dict[int, list[_Block]] = {}

    def is_in_program(place: int, before: str) -> bool:
        if cut not in blocks:
            blocks[cut] = list(_Scan(response[cut:], cut, language).blocks())
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


class _Scan:
    """Reads the blocks of one text from its first fence to its last."""

    def __init__(self, text: str, offset: int, language: str) -> None:
        self._text, self._offset, self._language = text, offset, language
        self._fences = list(_find_fences(text))
        self._num_parses = 0

    def blocks(self) -> Iterator[_Block]:
        """Yield the blocks; one that is never closed ends with the text, or where the next one is opened by a tag."""
        place, fences = 0, self._fences
        while place < len(fences):
            opener = fences[place]
            further = range(place + 1, len(fences))
            ends = [index for index in further[: 2 * _MOST_ENDS] if fences[index].ends(opener)][
                :_MOST_ENDS
            ]
            block, place = self._close(opener, place, ends)
            if block is not None:
                yield block

    def _close(self, opener: _Fence, place: int, ends: list[int]) -> tuple[_Block | None, int]:
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

    def _make(self, opener: _Fence, end: int) -> _Block:
        start = min(opener.end + 1, end)
        text = self._text[start:end]
        plain = _QUOTED.sub("", text) if opener.is_quoted else text
        tries = list(dict.fromkeys((plain, _dedent(plain))))
        block = _Block(start + self._offset, end + self._offset, opener.tag, tries[-1])
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


def _find_fences(text: str) -> Iterator[_Fence]:
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
            is_attribute = (
                "=" in behind or len(behind.split()) <= 1
            )  # Other words behind a fence are prose.
            yield _Fence(
                start,
                start if is_alone else start + fence.start("run"),
                end,
                fence["run"],
                tag,
                tag in TAGS and is_attribute,
                is_alone,
                is_alone and ">" in fence["before"],
                not fence["rest"].strip(_SPACE),
            )


def _dedent(text: str) -> str:
    """Remove the first line's indentation from every line; a line with less loses all of its own."""
    first = next((line for line in text.splitlines() if line.strip()), "")
    width = len(first) - len(first.lstrip(" \t"))
    return re.sub(rf"^[ \t]{{1,{width}}}", "", text, flags=re.MULTILINE) if width else text


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
    cut, is_thinking = _find_answer(response, language)
    nothing = Program(None, language, is_incomplete=is_truncated)
    if is_thinking:
        return replace(nothing, reason="no_answer_after_thinking")
    answer = list(_Scan(response[cut:], cut, language).blocks())
    taken = _choose_block(answer, language)
    if answer and not answer[-1].is_closed and (is_truncated or taken is None):
        return replace(nothing, reason="unclosed_code_block")
    if taken is None:
        return replace(nothing, reason="empty_code_block" if answer else "no_code_block")
    last = [block for block in answer if block.is_closed][-1]
    reason = "last_closed_code_block" if taken is last else "earlier_code_block"
    return Program(taken.code, language, reason)


def _choose_block(blocks: Sequence[_Block], language: str) -> _Block | None:
    """Return the closed block that a human would take for the program; None if all are empty.

    The last one that is tagged with the language, or has no known tag, compiles, and defines something or reads and
    writes, unless it only uses or repeats what the one before defines; else one that compiles and does something; else
    one tagged with the language; else any but what is shown beside programs (outputs, shell lines). Blocks of other
    languages than Python are not compiled: those with `{` or `;` count as code that does something, and whole programs
    come first.
    """
    best: tuple[int, _Block] | None = None
    before = Sketch()
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

    def __call__(
        self, response: str, *, is_truncated: bool = False, language: str = "python"
    ) -> Program:
        """Return the program of a response; a user's function may return its text, a `Program`, or None for none."""
        if self.extension.function is last_code_block:
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

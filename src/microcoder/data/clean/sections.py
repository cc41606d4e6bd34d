"""One layout for every statement: text, input, output, constraints, examples, notes.

`split` reads what it finds in any of the public layouts, `render` writes the one layout, and
splitting that again gives the same parts. Text that is under no heading stays where it was; nothing
is dropped.
"""

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from microcoder.data.clean.headings import Heading, read_heading
from microcoder.data.clean.markdown import write_fence
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.programs import head_of
from microcoder.data.formats.values import parse_python

_PROSE_PARAGRAPH = re.compile(r"(?:[^\W\d_]{2,}[ ,]+){3,}|[。，]|[一-鿿]{6,}")
_UNFINISHED = re.compile(r"[a-z,]\s*$")
"""A line whose sentence goes on in the next."""
_EXPLAINS = re.compile(r"(?:examples in words|explanation|解释|样例解释)", re.IGNORECASE)
"""The heading of a part that explains the examples."""
_PYTHON = re.compile(r"\s*(?:from|import|def|class|async|@|#)\b")
"""The beginning of a text that may be a program."""
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_FENCED = re.compile(r"(`{3,}|~{3,})[^\n]*\n(.*?)\n?[ \t]*\1[ \t]*(?:\n|$)(.*)", re.DOTALL)
"""A code block, its content and what follows."""
_GLUED = re.compile(r"(?<=[.!?)\"'])(?=Sample (?:In|Out)put \d)")
"""Where a heading of an example was glued to the sentence before it."""
_DEFINED = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)
"""A function, a method or a class that starter code defines."""
_OF_NO_TEST = frozenset(("__init__", "Solution", "ListNode", "TreeNode", "Node"))
"""Names in starter code that say nothing of what tests call."""
_IN_WORDS = "Examples in words"
"""Our heading for text of examples that have neither input nor output."""


@dataclass(frozen=True, slots=True)
class Example:
    """One example as the statement shows it."""

    input: str
    output: str
    explanation: str = ""
    intro: str = ""
    """Text between the example's heading and its input."""


@dataclass(frozen=True, slots=True)
class Sections:
    """The parts of a statement; empty where it has none."""

    statement: str = ""
    input: str = ""
    output: str = ""
    constraints: str = ""
    examples: tuple[Example, ...] = ()
    note: str = ""
    other: tuple[tuple[str, str], ...] = ()
    """Further parts, as heading and text, such as subtasks."""


@dataclass(slots=True)
class _ExampleDraft:
    """The lines of one example."""

    input: list[str] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    explanation: list[str] = field(default_factory=list)
    intro: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Draft:
    """Collects the parts of a statement while `split` reads its lines."""

    parts: dict[str, list[str]] = field(default_factory=dict)
    examples: list[_ExampleDraft] = field(default_factory=list)
    other: list[tuple[str, list[str]]] = field(default_factory=list)
    loose: list[list[str]] = field(default_factory=list)
    """Lines below headings of examples that no input has followed, one list per heading."""
    lines: list[str] = field(default_factory=list)
    """Lines of the part that is open."""

    @property
    def is_story(self) -> bool:
        """Whether only the statement's text has been read so far."""
        return len(self.parts) == 1 and not self.examples

    def open(self, heading: Heading) -> None:
        """Begin the part that a heading names: `lines` are its lines from now on."""
        part = heading.part
        if part == "example":
            self.lines = []
            self.loose.append(self.lines)
        elif part == "example_input":
            self._open_example()
            self.lines = self.examples[-1].input
        elif part == "example_output":
            # An output that has no input of its own, or is a second one, begins another example.
            if not self.examples or self.examples[-1].output:
                self._open_example()
            self.lines = self.examples[-1].output
        elif part == "explanation" and self.examples:
            self.lines = self.examples[-1].explanation
        elif part in ("other", "explanation"):
            self.lines = []
            self.other.append((heading.title, self.lines))
        else:
            self.lines = self.parts.setdefault(part, [])
            # A part that is opened again goes on in a new paragraph.
            if self.lines:
                self.lines.append("")
        if heading.rest:
            self.lines.append(heading.rest)

    def _open_example(self) -> None:
        """Begin an example; text between its heading and its input becomes its intro."""
        intro: list[str] = []
        if self.loose and self.lines is self.loose[-1]:
            intro = self.loose.pop()
        self.examples.append(_ExampleDraft(intro=intro))


def split(text: str) -> Sections:
    """Return the parts of a statement; with no heading in it, all of it is `statement`.

    So is a Python function whose docstring is the statement: what looks like a heading is a line of
    its code.
    """
    if _PYTHON.match(text) and _is_function(text):
        return Sections(statement=_join(text.split("\n")))
    unglued = _GLUED.sub("\n", text)
    lines = list(_mark_code(unglued.split("\n")))
    return _finish(_Splitter(lines).split())


def _is_function(text: str) -> bool:
    """Whether a text is Python that ends with a function; a docstring is body enough."""
    tree = parse_python(text)
    return tree is not None and isinstance(tree.body[-1], ast.FunctionDef)


class _Splitter:
    """Sorts the lines of a statement into its parts, one line after the other."""

    def __init__(self, lines: Sequence[tuple[str, bool]]) -> None:
        self._lines = lines
        """Each line with whether it is code."""
        self._draft = _Draft()
        self._draft.lines = self._draft.parts.setdefault("statement", [])
        self._in_example = False
        self._is_inline = False
        """Whether the line before was an output on the line of its label."""
        self._previous = ""
        """The line of text before."""

    def split(self) -> _Draft:
        """Return the parts of the statement."""
        for number, (line, is_code) in enumerate(self._lines):
            # Code may hold lines that look like headings.
            if is_code:
                self._draft.lines.append(line)
                continue
            heading = self._find_heading(number)
            self._previous = line
            if heading is None:
                self._add_text(line)
            else:
                self._open(heading)
        return self._draft

    def _find_heading(self, number: int) -> Heading | None:
        """Return the heading on a line; None if the line is text in this place."""
        line, _ = self._lines[number]
        heading = read_heading(line, in_example=self._in_example)
        if heading is None:
            return None
        if heading.part == "other" and self._draft.is_story:
            # A title, or a heading of the story: it belongs to the text that it stands in.
            return None
        if heading.part != "example":
            return heading
        if not _opens_example(self._lines[number + 1 :]):
            # Where no input follows, `Sample Case #3:` says which one is explained, and the story
            # tells an example.
            is_explained = self._in_example and not line.lstrip().startswith("#")
            if self._draft.is_story or is_explained:
                return None
        if _UNFINISHED.search(self._previous):
            # `... the fences for` / `Sample Case #3:` is a sentence that goes over two lines.
            return None
        return heading

    def _add_text(self, line: str) -> None:
        """Add a line to the part that is open."""
        if self._is_inline and not line.strip():
            # `Output: 5`, an empty line, then text: the text explains, it is not printed.
            self._is_inline = False
            self._draft.lines = self._draft.examples[-1].explanation
        self._draft.lines.append(line)

    def _open(self, heading: Heading) -> None:
        # An explanation is part of the example that it stands in.
        if heading.part != "explanation":
            self._in_example = heading.part in ("example", "example_input", "example_output")
        self._draft.open(heading)
        self._is_inline = heading.part == "example_output" and bool(heading.rest)


def _mark_code(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line with whether it is inside a fenced code block, fences included."""
    fence = ""
    for line in lines:
        if fence:
            yield line, True
            if line.strip() == fence:
                fence = ""
            continue
        opening = _FENCE.match(line)
        yield line, opening is not None
        if opening:
            fence = opening[1]


def _opens_example(lines: Sequence[tuple[str, bool]]) -> bool:
    """Whether the first part that the lines open is the input or output of an example."""
    for line, is_code in lines:
        if is_code:
            continue
        # As it will be read once the example is open.
        heading = read_heading(line, in_example=True)
        if heading is not None:
            return heading.part in ("example_input", "example_output")
    return False


def _finish(draft: _Draft) -> Sections:
    """Return the parts of a draft as texts."""
    examples: list[Example] = []
    in_words = [_join(lines) for lines in draft.loose]
    for example in map(_finish_example, draft.examples):
        if example.input or example.output:
            examples.append(example)
        else:
            in_words.append(example.explanation)
    other = [(title, _join(lines)) for title, lines in draft.other]
    extra = "\n\n".join(text for text in in_words if text)
    if extra:
        other.append((_IN_WORDS, _join([extra])))
    return Sections(
        statement=_join(draft.parts.get("statement", [])),
        input=_join(draft.parts.get("input", [])),
        output=_join(draft.parts.get("output", [])),
        constraints=_join(draft.parts.get("constraints", [])),
        note=_join(draft.parts.get("note", [])),
        examples=tuple(examples),
        # In the order that `render` writes, so that splitting its text gives the same parts.
        other=tuple(sorted(other, key=_is_explanation)),
    )


def _is_explanation(part: tuple[str, str]) -> bool:
    title, _ = part
    return _EXPLAINS.match(title) is not None


def _finish_example(draft: _ExampleDraft) -> Example:
    """Return an example as texts. Whatever follows its input or output becomes its explanation."""
    given, after_input = _unfence(_join(draft.input))
    printed = _join(draft.output)
    output, after_output = _unfence(printed)
    if not printed.startswith(("```", "~~~")):
        # AtCoder explains a sample right below its output.
        block, gap, text = output.partition("\n\n")
        if gap and _PROSE_PARAGRAPH.search(text) and not _PROSE_PARAGRAPH.search(block):
            output = block
            after_output = text
    pieces = (after_input, after_output, _join(draft.explanation))
    explanation = "\n\n".join(text for text in pieces if text)
    return Example(given, output, explanation, _join(draft.intro))


def _unfence(text: str) -> tuple[str, str]:
    """Return the content of a code block at the beginning and the text after it; else all text."""
    fenced = _FENCED.match(text)
    if fenced is None:
        return text, ""
    return fenced[2], fenced[3].strip("\n")


def _join(lines: list[str]) -> str:
    text = "\n".join(lines)
    text = re.sub(r"\n{3,}", "\n\n", text)
    return text.strip("\n").rstrip()


def render(sections: Sections) -> str:
    """Return the parts as one statement in Markdown.

    In this order: text, `## Input`, `## Output`, `## Constraints`, other parts, `## Example 1`,
    parts that explain the examples, `## Note`.
    """
    parts = [sections.statement]
    for title, text in (
        ("Input", sections.input),
        ("Output", sections.output),
        ("Constraints", sections.constraints),
    ):
        if text:
            parts.append(f"## {title}\n\n{text}")
    explaining = []
    for title, text in sections.other:
        # What explains the samples is read after them.
        if _is_explanation((title, text)):
            explaining.append(_headed(title, text))
        else:
            parts.append(_headed(title, text))
    for number, example in enumerate(sections.examples, 1):
        given = write_fence(example.input)
        printed = write_fence(example.output)
        intro = f"{example.intro}\n\n" if example.intro else ""
        parts.append(f"## Example {number}\n\n{intro}Input:\n\n{given}\n\nOutput:\n\n{printed}")
        if example.explanation:
            parts.append(f"Explanation:\n\n{example.explanation}")
    parts += explaining
    if sections.note:
        parts.append(f"## Note\n\n{sections.note}")
    filled = [part for part in parts if part.strip()]
    return "\n\n".join(filled).strip() + "\n"


def _headed(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else f"## {title}"


def normalise(text: str) -> str:
    """Return a statement in the layout of `render`; unchanged if it has no headings."""
    sections = split(text)
    if sections == Sections(statement=sections.statement):
        return text
    return render(sections)


def find_starter_code(candidate: Candidate) -> str | None:
    """Return the starter code, else the function's head in an accepted Python solution, else None.

    Some sources (APPS, TACO) name a function but not its parameters: without a head it cannot be
    answered. Nor can it where the starter code names another function: a solution's head goes
    first then.
    """
    if not candidate.fn_name:
        return candidate.starter_code
    if candidate.starter_code and not names_another_function(candidate):
        return candidate.starter_code
    for solution in candidate.solutions:
        if solution.language != "python" or solution.known != "accepted":
            continue
        head = head_of(solution.code, candidate.fn_name)
        if head:
            # The answer goes on where the body begins.
            indent = "        " if head.startswith("class ") else "    "
            return f"{head}\n{indent}"
    return candidate.starter_code


def names_another_function(candidate: Candidate) -> bool:
    """Whether the starter code defines functions, and none that the tests call."""
    if not candidate.fn_name or not candidate.starter_code:
        return False
    if candidate.programming_language != "python":
        return False
    names = set(_DEFINED.findall(candidate.starter_code))
    # Tests of a design call a class, which may have any name.
    return candidate.fn_name not in names and bool(names - _OF_NO_TEST)

"""One layout for every statement: text, input, output, constraints, examples, notes.

`split` reads what it finds in any of the public layouts, `render` writes the one layout, and splitting that again
gives the same parts. What no heading claims stays where it was; nothing is dropped.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from microcoder.dataset.process.headings import Heading, read_heading
from microcoder.dataset.process.spans import write_fence

_PROSE_PARAGRAPH = re.compile(r"(?:[^\W\d_]{2,}[ ,]+){3,}|[。，]|[一-鿿]{6,}")

_EXPLAINS = re.compile(r"(?:examples in words|explanation|förklaring|解释|样例解释|пояснени[ея])", re.IGNORECASE)
_UNFINISHED = re.compile(r"[a-z,]\s*$")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_SAMPLES = re.compile(r"\b(?:sample|example)s?\b", re.IGNORECASE)
_GLUED = re.compile(r"(?<=[.!?)\"'])(?=Sample (?:In|Out)put \d)")


@dataclass(frozen=True, slots=True)
class Example:
    """One example as the statement shows it."""

    input: str
    output: str
    explanation: str = ""
    intro: str = ""
    """What stands below the heading of the example, before its input."""


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
    """Further headings with their text, such as subtasks."""


@dataclass(slots=True)
class _Draft:
    """What was read so far."""

    parts: dict[str, list[str]] = field(default_factory=dict)
    examples: list[dict[str, list[str]]] = field(default_factory=list)
    other: list[tuple[str, list[str]]] = field(default_factory=list)
    loose: list[list[str]] = field(default_factory=list)
    """What stands below headings of examples, before an input or without one."""
    lines: list[str] = field(default_factory=list)

    def open(self, heading: Heading) -> None:
        part = heading.part
        if part == "example":
            self.lines = []
            self.loose.append(self.lines)
        elif part == "example_input":
            self._open_example()
            self.lines = self.examples[-1]["input"]
        elif part == "example_output":
            if not self.examples or self.examples[-1]["output"]:
                self._open_example()
            self.lines = self.examples[-1]["output"]
        elif part == "explanation" and self.examples:
            self.lines = self.examples[-1]["explanation"]
        elif part in ("other", "explanation"):
            self.other.append((heading.title, []))
            self.lines = self.other[-1][1]
        else:
            self.lines = self._part(part)
        if heading.rest:
            self.lines.append(heading.rest)

    def _open_example(self) -> None:
        """Open one; what was said below its heading, or below one such as `Additional sample`, belongs to it."""
        intro: list[str] = []
        if self.loose and self.lines is self.loose[-1]:
            intro = self.loose.pop()
        elif self.examples and self.other and self.lines is self.other[-1][1] and _SAMPLES.search(self.other[-1][0]):
            title, lines = self.other.pop()
            intro = [title, "", *lines]
        self.examples.append({"input": [], "output": [], "explanation": [], "intro": intro})

    def _part(self, name: str) -> list[str]:
        lines = self.parts.setdefault(name, [])
        if lines:
            lines.append("")
        return lines

    def text(self, name: str) -> str:
        return _join(self.parts.get(name, []))


def split(text: str) -> Sections:
    """Return the parts of a statement; with no heading in it, all of it is `statement`."""
    draft = _Draft()
    draft.lines = draft.parts.setdefault("statement", [])
    in_example = is_inline = False
    fence = before = ""
    lines = _GLUED.sub("\n", text).split("\n")
    for number, line in enumerate(lines):
        if fence:
            fence = "" if line.strip() == fence else fence
            draft.lines.append(line)
            continue
        if opening := _FENCE.match(line):
            fence = opening[1]
            draft.lines.append(line)
            continue
        heading = read_heading(line, in_example=in_example)
        if heading and heading.part == "other" and len(draft.parts) == 1 and not draft.examples:
            # A title, or a heading of the story: it belongs to the text that it stands in.
            heading = None
        if heading and heading.part == "example" and not _opens_example(lines[number + 1 :]):
            # Where no input follows, `Sample Case #3:` says which one is explained, and the story tells an example.
            is_told = len(draft.parts) == 1 and not draft.examples
            heading = None if is_told or (in_example and not line.lstrip().startswith("#")) else heading
        if heading and heading.part == "example" and _UNFINISHED.search(before):
            # `... the fences for` / `Sample Case #3:` is a sentence that goes over two lines.
            heading = None
        before = line
        if heading is None:
            if is_inline and not line.strip():
                # `Output: 5`, an empty line, then text: the text explains, it is not printed.
                is_inline = False
                draft.lines = draft.examples[-1]["explanation"]
            draft.lines.append(line)
            continue
        in_example = heading.part in ("example", "example_input", "example_output") or (
            heading.part == "explanation" and in_example
        )
        draft.open(heading)
        is_inline = heading.part == "example_output" and bool(heading.rest)
    return _finish(draft)


def _opens_example(lines: list[str]) -> bool:
    """Whether the first part that the lines open is an input or an output of an example."""
    fence = ""
    for line in lines:
        if fence:
            fence = "" if line.strip() == fence else fence
        elif opening := _FENCE.match(line):
            fence = opening[1]
        elif heading := read_heading(line, in_example=True):
            return heading.part in ("example_input", "example_output")
    return False


def _finish(draft: _Draft) -> Sections:
    examples = [_example(found) for found in draft.examples]
    loose = [example for example in examples if not example.input and not example.output]
    statement = draft.text("statement")
    extra = "\n\n".join(text for text in (*map(_join, draft.loose), *(one.explanation for one in loose)) if text)
    if extra:
        draft.other.append(("Examples in words", [extra]))
    return Sections(
        statement=statement,
        input=draft.text("input"),
        output=draft.text("output"),
        constraints=draft.text("constraints"),
        examples=tuple(example for example in examples if example not in loose),
        note=draft.text("note"),
        other=tuple(sorted(((title, _join(lines)) for title, lines in draft.other), key=_is_explanation)),
    )


def _is_explanation(part: tuple[str, str]) -> bool:
    return _EXPLAINS.match(part[0]) is not None


def _example(found: dict[str, list[str]]) -> Example:
    given, printed, explanation = (_join(found[name]) for name in ("input", "output", "explanation"))
    given, after_input = _unfence(given)
    output, after_output = _unfence(printed)
    if not printed.startswith(("```", "~~~")):
        # AtCoder explains a sample right below its output.
        block, gap, text = output.partition("\n\n")
        if gap and _PROSE_PARAGRAPH.search(text) and not _PROSE_PARAGRAPH.search(block):
            output, after_output = block, text
    behind = [text for text in (after_input, after_output, explanation) if text]
    return Example(_plain(given), _plain(output), "\n\n".join(behind), _join(found["intro"]))


def _plain(text: str) -> str:
    """One value in backticks is the value."""
    whole = re.fullmatch(r"`([^`\n]+)`", text.strip())
    return whole[1] if whole else text


def _unfence(text: str) -> tuple[str, str]:
    """Return the content of a leading code block and what follows it; without one, all of the text."""
    fenced = re.match(r"(`{3,}|~{3,})[^\n]*\n(.*?)\n?[ \t]*\1[ \t]*(?:\n|$)(.*)", text, re.DOTALL)
    return (fenced[2], fenced[3].strip("\n")) if fenced else (text, "")


def _join(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n").rstrip()


def render(sections: Sections) -> str:
    """Return a statement in the one layout, as Markdown."""
    parts = [sections.statement]
    for title in ("input", "output", "constraints"):
        if text := getattr(sections, title):
            parts.append(f"## {title.capitalize()}\n\n{text}")
    explained = [one for one in sections.other if _is_explanation(one)]
    parts += [_headed(*one) for one in sections.other if one not in explained]
    for number, example in enumerate(sections.examples, 1):
        given, printed = write_fence(example.input), write_fence(example.output)
        intro = f"{example.intro}\n\n" if example.intro else ""
        parts.append(f"## Example {number}\n\n{intro}Input:\n\n{given}\n\nOutput:\n\n{printed}")
        if example.explanation:
            parts.append(f"Explanation:\n\n{example.explanation}")
    # What explains the samples is read after them.
    parts += [_headed(*one) for one in explained]
    if sections.note:
        parts.append(f"## Note\n\n{sections.note}")
    return "\n\n".join(part for part in parts if part.strip()).strip() + "\n"


def _headed(title: str, text: str) -> str:
    return f"## {title}\n\n{text}" if text else f"## {title}"


def normalise(text: str) -> str:
    """Return the statement in the one layout; where it has no parts to arrange, as it is."""
    sections = split(text)
    if sections == Sections(statement=sections.statement):
        return text
    return render(sections)

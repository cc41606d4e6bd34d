"""One layout for every statement: text, input, output, constraints, examples, notes.

`split` reads what it finds in any of the public layouts, `render` writes the one layout, and splitting that again
gives the same parts. Text that is under no heading stays where it was; nothing is dropped.

`read_heading` recognises lines that open a part of a statement, in English and Chinese.

`parse_bounds` reads the ranges that a statement promises.
"""

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from microcoder.data.clean.cleaning import write_fence
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.programs import head_of

Part = Literal[
    "statement", "input", "output", "constraints", "example", "explanation", "note", "other"
]
Opened = Part | Literal["example_input", "example_output"]

_WORDS: dict[Part, str] = {
    "statement": "problem statement|statement|description|problem description|problem|task|题目描述|题目|问题描述|描述",
    "input": "input|inputs|input format|input specification|input description|the input|input data|standard input|输入|"
    "输入格式|输入描述|输入说明",
    "output": "output|outputs|output format|output specification|output description|the output|output data|"
    "standard output|输出|输出格式|输出描述|输出说明",
    "constraints": "constraints|constraint|limits|limitations|bounds|提示|数据范围|数据规模|数据规模与约定|约束|"
    "约束条件|限制",
    "example": "example|examples|sample|samples|sample test|sample tests|sample case|sample cases|sample test case|"
    "sample test cases|test case|test example|样例|示例|例|例子|样例说明",
    "explanation": "explanation|explanations|sample explanation|explanation of sample|explanation of samples|"
    "explanation of examples|解释|说明",
    "note": "note|notes|remark|remarks|hint|hints|comment|comments|注|注意|备注|附注",
    "other": "scoring|points|subtasks|grading|test cases|follow up|follow-up|background|story|interaction|"
    "interaction protocol|file input|file output|source|credits|partial score|test groups|image|testing|local testing|"
    "进阶|进阶问题|背景",
}
"""Headings by part, in English, and in Chinese, since copies in Chinese are recognised by their examples."""
_PART_OF: dict[str, Part] = {
    word: part for part, words in _WORDS.items() for word in words.split("|")
}
_EXAMPLE_INPUT = re.compile(
    r"(?:sample|example)s?(?: test)? ?inputs?|input (?:sample|example)|样例输入|输入样例|示例输入"
)
_EXAMPLE_OUTPUT = re.compile(
    r"(?:sample|example)s?(?: test)? ?outputs?|output (?:sample|example)|output for (?:the )?sample input|"
    r"样例输出|输出样例|示例输出"
)
_INLINE = re.compile(
    r"^[ \t>*_-]*(?P<word>sample input|sample output|input|output|explanation|expected output|输入|输出|解释)"
    r"\s*\d{0,2}[*_]*\s*[:：=][*_]*+[ \t]*(?P<rest>\S.*)$",
    re.IGNORECASE,
)
_INLINE_PARTS: dict[str, Opened] = {
    "sample input": "example_input", "input": "example_input", "输入": "example_input",
    "sample output": "example_output", "output": "example_output", "expected output": "example_output",
    "输出": "example_output",
}  # fmt: skip
_DECORATION = " \t#*_=>-.:：|~`【】[]<>()（）"
_NUMBER = re.compile(r"[ \t#]*(?:\d{1,2}|[一二三四五六七八九十])$|^\d{1,2}[.)、]?\s+")


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
        in_example: an example was opened before, so that `Input` is its input and `Input: n = 3` its start.
    """
    if not line.strip():
        return None
    if in_example and (inline := _INLINE.match(line)):
        opened = _INLINE_PARTS.get(inline["word"].lower(), "explanation")
        return Heading(opened, inline["rest"].strip(), inline["word"])
    if len(line) > 60:
        return None
    is_marked = line.lstrip()[:1] in "#*-=_【[<|" or line.rstrip()[-1:] in ":：*-"
    words = unicodedata.normalize("NFC", line).strip(_DECORATION).lower()
    words = re.sub(r"\s+", " ", _NUMBER.sub("", words)).strip(_DECORATION)
    if not words:
        return None
    if _EXAMPLE_INPUT.fullmatch(words):
        return Heading("example_input", "", words)
    if _EXAMPLE_OUTPUT.fullmatch(words):
        return Heading("example_output", "", words)
    part = _PART_OF.get(words)
    is_markdown = re.match(r"\s*#{1,6}\s", line) is not None  # `#1's answer` is a sentence's end
    if is_markdown and (
        part is None or (part == "explanation" and line.lstrip().startswith("## "))
    ):
        return Heading("other", "", line.strip(" \t#*:："))
    # A bare word can be text (a line of an example, a name); these are never alone on a line in prose.
    if part is None or (not is_marked and not line.lstrip()[:1].isupper() and words.isascii()):
        return None
    if in_example and part in ("input", "output") and not line.lstrip().startswith("##"):
        return Heading("example_input" if part == "input" else "example_output", "", words)
    return Heading(part, "", line.strip(" \t#*:：-=_"))


_PROSE_PARAGRAPH = re.compile(r"(?:[^\W\d_]{2,}[ ,]+){3,}|[。，]|[一-鿿]{6,}")

_UNFINISHED = re.compile(r"[a-z,]\s*$")
_EXPLAINS = re.compile(r"(?:examples in words|explanation|解释|样例解释)", re.IGNORECASE)
_FENCE = re.compile(r"\s*(`{3,}|~{3,})")
_GLUED = re.compile(r"(?<=[.!?)\"'])(?=Sample (?:In|Out)put \d)")


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
class _Draft:
    """Collects the parts of a statement while `split` reads its lines."""

    parts: dict[str, list[str]] = field(default_factory=dict)
    examples: list[dict[str, list[str]]] = field(default_factory=list)
    other: list[tuple[str, list[str]]] = field(default_factory=list)
    loose: list[list[str]] = field(default_factory=list)
    """Lines below headings of examples that no input has followed, one list per heading."""
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
            self.lines = self.parts.setdefault(part, [])
            if self.lines:
                self.lines.append("")
        if heading.rest:
            self.lines.append(heading.rest)

    def _open_example(self) -> None:
        """Begin an example; text between its heading and its input becomes its intro."""
        intro = self.loose.pop() if self.loose and self.lines is self.loose[-1] else []
        self.examples.append({"input": [], "output": [], "explanation": [], "intro": intro})


def split(text: str) -> Sections:
    """Return the parts of a statement; with no heading in it, all of it is `statement`."""
    draft = _Draft()
    draft.lines = draft.parts.setdefault("statement", [])
    in_example = is_inline = False
    before = ""
    lines = list(_mark_code(_GLUED.sub("\n", text).split("\n")))
    for number, (line, is_code) in enumerate(lines):
        if is_code:
            draft.lines.append(line)
            continue
        heading = read_heading(line, in_example=in_example)
        if heading and heading.part == "other" and len(draft.parts) == 1 and not draft.examples:
            # A title, or a heading of the story: it belongs to the text that it stands in.
            heading = None
        if heading and heading.part == "example" and not _opens_example(lines[number + 1 :]):
            # Where no input follows, `Sample Case #3:` says which one is explained, and the story tells an example.
            is_told = len(draft.parts) == 1 and not draft.examples
            heading = (
                None if is_told or (in_example and not line.lstrip().startswith("#")) else heading
            )
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


def _mark_code(lines: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each line with whether it is inside a fenced code block, fences included."""
    fence = ""
    for line in lines:
        opening = None if fence else _FENCE.match(line)
        yield line, bool(fence or opening)
        fence = opening[1] if opening else "" if line.strip() == fence else fence


def _opens_example(lines: Sequence[tuple[str, bool]]) -> bool:
    """Whether the first part that the lines open is an input or an output of an example."""
    headings = (read_heading(line, in_example=True) for line, is_code in lines if not is_code)
    first = next(filter(None, headings), None)
    return first is not None and first.part in ("example_input", "example_output")


def _finish(draft: _Draft) -> Sections:
    examples = [_example(found) for found in draft.examples]
    loose = [example for example in examples if not example.input and not example.output]
    extra = "\n\n".join(
        text for text in (*map(_join, draft.loose), *(one.explanation for one in loose)) if text
    )
    if extra:
        draft.other.append(("Examples in words", [extra]))
    texts = {
        name: _join(draft.parts.get(name, []))
        for name in ("statement", "input", "output", "constraints", "note")
    }
    return Sections(
        **texts,
        examples=tuple(example for example in examples if example not in loose),
        other=tuple(
            sorted(((title, _join(lines)) for title, lines in draft.other), key=_is_explanation)
        ),
    )


def _is_explanation(part: tuple[str, str]) -> bool:
    return _EXPLAINS.match(part[0]) is not None


def _example(found: dict[str, list[str]]) -> Example:
    given, printed, explanation = (
        _join(found[name]) for name in ("input", "output", "explanation")
    )
    given, after_input = _unfence(given)
    output, after_output = _unfence(printed)
    if not printed.startswith(("```", "~~~")):
        # AtCoder explains a sample right below its output.
        block, gap, text = output.partition("\n\n")
        if gap and _PROSE_PARAGRAPH.search(text) and not _PROSE_PARAGRAPH.search(block):
            output, after_output = block, text
    behind = [text for text in (after_input, after_output, explanation) if text]
    return Example(given, output, "\n\n".join(behind), _join(found["intro"]))


def _unfence(text: str) -> tuple[str, str]:
    """Return the content of a leading code block and what follows it; without one, all of the text."""
    fenced = re.match(r"(`{3,}|~{3,})[^\n]*\n(.*?)\n?[ \t]*\1[ \t]*(?:\n|$)(.*)", text, re.DOTALL)
    return (fenced[2], fenced[3].strip("\n")) if fenced else (text, "")


def _join(lines: list[str]) -> str:
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n").rstrip()


def render(sections: Sections) -> str:
    """Return the parts as one statement in Markdown: text, `## Input`, `## Output`, ..., `## Example 1`, `## Note`."""
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
    """Return a statement in the layout of `render`; unchanged if it has no headings."""
    sections = split(text)
    if sections == Sections(statement=sections.statement):
        return text
    return render(sections)


def find_starter_code(candidate: Candidate) -> str | None:
    """Return the starter code, or else the function's head in an accepted Python solution, or else None.

    Some sources (APPS, TACO) name a function but not its parameters: without a head it cannot be answered.
    """
    if candidate.starter_code or not candidate.fn_name:
        return candidate.starter_code
    for solution in candidate.solutions:
        if solution.language != "python" or solution.known != "accepted":
            continue
        if found := head_of(solution.code, candidate.fn_name):
            return f"{found}\n{'        ' if found.startswith('class ') else '    '}"
    return None


# A number begins where its digits begin, and has no more than nine groups: tried anywhere else, a long run of digits
# would cost its square.
_WRITTEN_BOUND = r"-?(?<!\d)(?:\d{1,3}(?:[ ,_]\d{3}){1,9}\b|\d++(?:\.\d++)?)(?:[ ]*[*x][ ]*\d++)?(?:\^[ ]*\(?\d++\)?)?"
_BOUND = re.compile(
    rf"(?P<low>{_WRITTEN_BOUND})\s*<=?\s*"
    r"(?P<names>\|?[^\W\d][^<>=\n]{0,60}?(?:\s*(?:<=?|==)\s*\|?[^\W\d][\w.|()\[\]]{0,40}){0,3})\s*<=?\s*"
    rf"(?P<high>{_WRITTEN_BOUND}|[^\W\d]\w*)"
)
# What "less" can be written with; most texts without a bound have none of these.
_SIGNS = ("<", "≤", "⩽", "&le;", "\\")


class Bound(NamedTuple):
    """A stated range of one name, by its two numbers as they are written: `< 1000` is kept as 1000."""

    name: str
    low: float
    high: float


def parse_bounds(text: str) -> tuple[Bound, ...]:
    """Return the ranges in a statement, such as `1 <= n <= 10^5`; those that end at another name are left out.

    In a chain such as `1 <= k <= n <= 100` each name has the chain's ends.
    """
    if not any(mark in text for mark in _SIGNS):
        return ()
    plain = plain_formulae(text)
    bounds: dict[str, Bound] = {}
    for found in _BOUND.finditer(plain):
        low, high = read_number(found["low"]), read_number(found["high"])
        if low is None or high is None or low > high:
            continue
        for name in re.split(r"\s*(?:[,;]|<=?|==)\s*|\s+and\s+", found["names"]):
            name = name.strip("` $|")
            if name and len(name) <= 40:
                bounds.setdefault(name, Bound(name, low, high))
    return tuple(bounds.values())


def plain_formulae(text: str) -> str:
    """Return a text with its formulae in ASCII: `<=`, `*`, `^`, no `$`."""
    text = re.sub(r"\\leq?(?:slant)?(?![a-zA-Z])|≤|⩽|&le;", "<=", text)
    text = re.sub(r"\\(?:cdot|times)(?![a-zA-Z])|⋅|×|·", "*", text)
    # A bold name is a name, `10**5` a power.
    text = re.sub(
        r"(?<![\w*)])\*\*(?=[^\s*])([^*\n]{1,60}?)(?<=[^\s*])\*\*(?![\w*])", r"\1", text
    ).replace("**", "^")
    text = re.sub(r"\\[,;!: ]|\{,\}|\\text\w*|\\mathrm", "", text)
    text = re.sub(r"(?<![ \t])[ \t]*\^[ \t]*", "^", text)
    text = re.sub(r"\^\{(-?\d+)\}", r"^\1", text).replace("{", "").replace("}", "")
    return text.replace("$", "").replace("`", "").replace("<=<=", "<=").replace("\\lt", "<")


def find_numbers(text: str) -> list[int]:
    """Return the whole numbers in a text that fit 64 bits, such as 200000 for `2 * 10^5`."""
    numbers = map(read_number, re.findall(_WRITTEN_BOUND, plain_formulae(text)))
    return [
        int(number)
        for number in numbers
        if number is not None and number % 1 == 0 and abs(number) < 1 << 63
    ]


def read_number(text: str) -> float | None:
    """Return the value of a number that is written as in a bound, such as `2 * 10^5`; None if it is not a number."""
    text = re.sub(r"[ ,_](?=\d{3}\b)", "", text.strip(" .,")).replace(" ", "")
    found = re.fullmatch(
        r"(-?\d{1,30}(?:\.\d{1,30})?)(?:[*x](\d{1,30}))?(?:\^\(?(\d{1,2})\)?)?", text
    )
    if not found:
        return None
    factor, power = found[2], found[3]
    if factor and not power and re.fullmatch(r"10[1-9]\d?", factor):
        # 2 * 10^5 that lost its superscript on the way: of two copies of a problem one may have lost it.
        factor, power = "10", factor[2:]
    base, exponent = float(found[1]), int(power or 1)
    if exponent > 30:
        return None
    try:
        # -10^9 is minus ten to the nine.
        number = (
            base * float(factor) ** exponent
            if factor
            else (-1 if base < 0 else 1) * abs(base) ** exponent
        )
    except OverflowError:
        return None
    return number if math.isfinite(number) else None

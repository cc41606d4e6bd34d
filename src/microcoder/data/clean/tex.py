"""Turns TeX documents into Markdown, by pandoc; formulae stay TeX.

Models read formulae in TeX, and a translation keeps them.
"""

import html
import re
import shutil
import subprocess
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from microcoder.data.clean.markdown import FENCE, replace_between
from microcoder.data.clean.pages import html_to_markdown
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.machine import how_to_install

_DOCUMENT = re.compile(
    r"\\(?:problemname\b"
    r"|begin\{(?:itemize|enumerate|center|figure|wrapfigure|tabular|verbatim|lstlisting|document|"
    r"problem|quote|description|Input|Output|Interaction|example|Note)\}"
    r"|(?:sub)*section\*?\{|includegraphics|InputFile|OutputFile|item\b|paragraph\{|newcommand\b"
    r"|illustration\{)"
)
"""A command that stands in documents and not in formulae."""
_FENCES = re.compile(FENCE, re.DOTALL | re.MULTILINE)
_OPTIONS = (
    "--from=latex",
    "--to=html",
    "--sandbox",
    "--mathjax",
    "--no-highlight",
    "--wrap=preserve",
    "--quiet",
)
"""Options of pandoc; with `--sandbox` it reads no file that the text includes."""
_MAX_SECONDS = 20
"""Time that pandoc may take for one statement."""
_MAX_MEMORY = "-M1g"
"""Option of pandoc's runtime: it may take 1 GiB."""
_PREAMBLE = r"""
\newcommand{\problemname}[1]{\chapter{#1}}
\newcommand{\illustration}[3]{\includegraphics{#2}}
\newcommand{\footnote}[2][]{ (#2)}
\newcommand{\caption}[2][]{\par\emph{#2}\par}
\newcommand{\texttrademark}{™}
\newenvironment{problem}[5]{\chapter{#1}}{}
\newenvironment{figure}[1][]{\par}{\par}
\newenvironment{table}[1][]{\par}{\par}
\newenvironment{wrapfigure}[3][]{\par}{\par}
\newenvironment{subfigure}[2][]{\par}{\par}
"""
"""Macros that pandoc does not know, or reads wrongly: of two captions in a figure it would show
only the last."""
_PARTS = {
    "InputFile": "Input",
    "OutputFile": "Output",
    "Input": "Input",
    "Output": "Output",
    "Interaction": "Interaction",
    "Note": "Note",
    "Notes": "Note",
    "Explanation": "Explanation",
    "Explanations": "Explanation",
    "Scoring": "Scoring",
    "Constraints": "Constraints",
    "Limits": "Constraints",
    "Specification": "Statement",
    "Sample": "Sample",
    "SampleInput": "Sample Input",
    "SampleOutput": "Sample Output",
}
"""Commands and environments that open a part of a statement: Kattis' and ICPC's classes, olymp.sty
and Polygon, CMS."""
_MATH = re.compile(
    r'<span\s+class="math (?:inline|display)">\\([(\[])(.*?)\\[)\]]</span>', re.DOTALL
)
"""A formula in pandoc's HTML: its opening bracket, and its TeX."""
_LABELS = re.compile(r"\\ensuremath\{((?:[^{}]|\{[^{}]*\})*)\}|\\xspace\b|\\label\{[^{}]*\}")
"""What says nothing in a formula that stands alone."""
_CELL = re.compile(r"<t[dh][ >].*?</t[dh]>", re.DOTALL)
_CODES = re.compile(
    r"(?:(?:<(?:strong|em|span)>)*<code>[^<]*</code>(?:</(?:strong|em|span)>)*){2,}"
)
"""Code that pandoc cut into several elements, side by side."""
_STRAIGHT = (
    ("‘‘", '"'),
    ("’’", '"'),
    ("‘", "'"),
    ("’", "'"),
    ("“", '"'),
    ("”", '"'),
    ("…", "..."),
)
"""Typographic signs that pandoc makes, and what the text had; those of two come first."""
_PLACEHOLDER = re.compile("\ue000(\\d+)\ue001")
"""Stands for a formula while HTML becomes Markdown; its characters are in no text."""


def looks_like_tex(text: str) -> bool:
    """Whether a text is a TeX document, not just one with formulae; code blocks are ignored."""
    # Most texts have no such command at all: cheaper than to cut out code.
    if _DOCUMENT.search(text) is None:
        return False
    return _DOCUMENT.search(_FENCES.sub("", text)) is not None


@cache
def find_pandoc() -> str:
    """Return the path of pandoc: that of the package pypandoc-binary, or the one on PATH.

    Raises:
        ConfigError: it is not installed.
    """
    package = find_spec("pypandoc")
    if package is not None and package.origin:
        own = Path(package.origin).with_name("files") / "pandoc"
        # A package of this name also comes without the program.
        if own.exists():
            return str(own)
    on_path = shutil.which("pandoc")
    if on_path is None:
        raise ConfigError(
            "statements in TeX are read by pandoc, which is not installed; "
            f"type: {how_to_install('data')}"
        )
    return on_path


def tex_to_markdown(text: str) -> str:
    """Return a TeX document as Markdown: headings, lists, tables, code, images; formulae are kept.

    What pandoc cannot read, such as a text whose groups are not closed, stays as it is.
    """
    command = [find_pandoc(), "+RTS", _MAX_MEMORY, "-RTS", *_OPTIONS]
    try:
        ran = subprocess.run(
            command,
            input=_prepare(text),
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=_MAX_SECONDS,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return text
    page = _tidy_page(ran.stdout)
    formulae: list[str] = []

    def set_aside(span: re.Match[str]) -> str:
        formulae.append(_write_formula(span))
        return f"\ue000{len(formulae) - 1}\ue001"

    def put_back(placeholder: re.Match[str]) -> str:
        number = int(placeholder[1])
        # A text may hold the placeholder's characters itself.
        return formulae[number] if number < len(formulae) else ""

    # Formulae are set aside meanwhile: nothing in them is HTML or Markdown.
    markdown = html_to_markdown(_MATH.sub(set_aside, page))
    markdown = _PLACEHOLDER.sub(put_back, markdown)
    markdown = re.sub(r"[ \t]+\n", "\n", markdown)
    return re.sub(r"\n{3,}", "\n\n", markdown).strip() + "\n"


def _tidy_page(page: str) -> str:
    """Return pandoc's HTML with straight quotes, whole code and plain images."""
    for curly, straight in _STRAIGHT:
        page = page.replace(curly, straight)
    page = _CODES.sub(_join_codes, page)
    # It is the title that `_prepare` adds; an empty one of the text gets the row's title.
    page = re.sub(r"<h1[^<>]*></h1>", "", page, count=1)
    page = re.sub(r'<(?:img|embed)\s+src="([^"]*)"[^<>]*>', r'<img src="\1" alt="image">', page)
    page = re.sub(r'<a\s[^<>]*class="uri"[^<>]*>(.*?)</a>', r"\1", page)
    return _CELL.sub(_spell_bars, page)


def _join_codes(codes: re.Match[str]) -> str:
    return f"<code>{''.join(re.findall('<code>([^<]*)', codes[0]))}</code>"


def _spell_bars(cell: re.Match[str]) -> str:
    """Return a cell of a table with the bars of its formulae spelled: a bar would end the cell."""

    def spell(formula: re.Match[str]) -> str:
        # The escaped bar first, since it has a plain one inside.
        return formula[0].replace("\\|", "\\Vert ").replace("|", "\\vert ")

    return _MATH.sub(spell, cell[0])


def _write_formula(span: re.Match[str]) -> str:
    """Return a formula in Markdown, from its element in pandoc's HTML."""
    formula = html.unescape(span[2])
    formula = _LABELS.sub(r"\1", formula).strip()
    if span[1] == "[":
        return f"\n\n$${formula}$$\n\n"
    return f"${' '.join(formula.split())}$"


def _prepare(text: str) -> str:
    """Return the text with our macros in front, rewritten where a macro is not enough."""
    # A condition that is never closed would take pandoc minutes.
    text = re.sub(r"\\iffalse\b", "", replace_between(text, "\\iffalse", "\\fi"))
    # Pandoc leaves out the label of an item.
    text = re.sub(r"\\item\s*\[([^\]\n]*)\]", r"\\item \1 ", text)
    text = re.sub(r"\\(begin|end)\{description\}", r"\\\1{itemize}", text)
    # Whose picture it is may be left out.
    text = re.sub(r"(\\illustration\{[^{}]*\}\s*\{[^{}]*\})(?!\s*\{)", r"\1{}", text)
    # Of what has a number only TeX knows which.
    text = re.sub(r"\\(?:eq)?ref\{[^{}\n]*\}", "", text)
    parts = []
    for name, title in _PARTS.items():
        # Some sets write a part as an environment, others as a command of the same name.
        if f"\\begin{{{name}}}" in text:
            parts.append(rf"\newenvironment{{{name}}}{{\section{{{title}}}}}{{}}")
        else:
            parts.append(rf"\newcommand{{\{name}}}{{\section{{{title}}}}}")
    head, _, body = text.rpartition("\\begin{document}")
    # Where there is a chapter, the level of the title, all sections are one level below it.
    return (
        f"{_PREAMBLE}{''.join(parts)}\n{head}\n\\begin{{document}}\n"
        f"\\chapter{{}}\n\n{body}\n\\end{{document}}\n"
    )

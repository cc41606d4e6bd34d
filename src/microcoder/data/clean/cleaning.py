"""Noise removal: encoding damage, HTML, TeX layout, watermarks.

TeX documents are read by pandoc; formulae stay TeX: models read them, and a translation keeps them.
"""

from __future__ import annotations

import html
import re
import shutil
import subprocess
import unicodedata
from collections import Counter
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from microcoder.data.clean.markup import (
    FENCE,
    decode_entities,
    drop_embedded,
    html_to_markdown,
    looks_like_html,
    outside,
    replace_between,
)
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.installation import how_to_install

_DOCUMENT = re.compile(
    r"\\(?:problemname\b|begin\{(?:itemize|enumerate|center|figure|wrapfigure|tabular|verbatim|lstlisting|document|"
    r"problem|quote|description|Input|Output|Interaction|example|Note)\}"
    r"|(?:sub)*section\*?\{|includegraphics|InputFile|OutputFile|item\b|paragraph\{|newcommand\b|illustration\{)"
)
_FENCES = re.compile(FENCE, re.DOTALL | re.MULTILINE)
_OPTIONS = ("--from=latex", "--to=html", "--sandbox", "--mathjax", "--no-highlight", "--wrap=preserve", "--quiet")
"""With `--sandbox` no file is read but what is on the command line, whatever the text includes."""
_MAX_SECONDS = 20
_MAX_MEMORY = "-M1g"
_PREAMBLE = r"""
\newcommand{\problemname}[1]{\chapter{#1}}
\newcommand{\illustration}[3]{\includegraphics{#2}}
\newcommand{\footnote}[2][]{ (#2)}
\newcommand{\caption}[2][]{\par\emph{#2}\par}
\newcommand{\captionof}[2]{\par\emph{#2}\par}
\newcommand{\subcaption}[1]{\par\emph{#1}\par}
\newcommand{\texttrademark}{™}
\newcommand{\exmp}[2]{\section{Example}Input:\begin{verbatim}#1\end{verbatim}Output:\begin{verbatim}#2\end{verbatim}}
\newenvironment{problem}[5]{\chapter{#1}}{}
\newenvironment{figure}[1][]{\par}{\par}
\newenvironment{table}[1][]{\par}{\par}
\newenvironment{wrapfigure}[3][]{\par}{\par}
\newenvironment{subfigure}[2][]{\par}{\par}
"""
"""Macros that pandoc does not know, or reads otherwise: of two captions in a figure it would show the last alone."""
_PARTS = {
    "InputFile": "Input", "OutputFile": "Output", "Input": "Input", "Output": "Output", "Interaction": "Interaction",
    "Note": "Note", "Notes": "Note", "Explanation": "Explanation", "Explanations": "Explanation",
    "Scoring": "Scoring", "Constraints": "Constraints", "Limits": "Constraints", "Specification": "Statement",
    "Sample": "Sample", "SampleInput": "Sample Input", "SampleOutput": "Sample Output",
}  # fmt: skip
"""Commands and environments that open a part of a statement: Kattis' and ICPC's classes, olymp.sty and Polygon, CMS."""
_DRAWINGS = ("tikzpicture", "picture", "pgfpicture", "asy", "pspicture", "circuitikz", "forest", "tikzcd")
_MATH = re.compile(r'<span\s+class="math (?:inline|display)">\\([(\[])(.*?)\\[)\]]</span>', re.DOTALL)
_CELL = re.compile(r"<t[dh][ >].*?</t[dh]>", re.DOTALL)
_CODES = re.compile(r"(?:(?:<(?:strong|em|span)>)*<code>[^<]*</code>(?:</(?:strong|em|span)>)*){2,}")
_STRAIGHT = (("‘‘", '"'), ("’’", '"'), ("‘", "'"), ("’", "'"), ("“", '"'), ("”", '"'), ("…", "..."))
_SHELF = re.compile("\ue000(\\d+)\ue001")


def looks_like_tex(text: str) -> bool:
    """Tell a TeX document from a text with formulae in it; what code shows does not count."""
    return _DOCUMENT.search(text) is not None and _DOCUMENT.search(_FENCES.sub("", text)) is not None


@cache
def find_pandoc() -> str:
    """Return the path of pandoc: that of the package pypandoc-binary, whose version is known, or the one on PATH."""
    package = find_spec("pypandoc")
    own = Path(package.origin).with_name("files") / "pandoc" if package and package.origin else None
    found = str(own) if own and own.exists() else shutil.which("pandoc")
    if found is None:
        raise ConfigError(
            f"statements in TeX are read by pandoc, which is not installed; type: {how_to_install('data')}"
        )
    return found


def tex_to_markdown(text: str) -> str:
    """Return a TeX document as Markdown: headings, lists, tables, code and images; formulae are kept.

    What pandoc cannot read, such as a text whose groups are not closed, stays as it is.
    """
    command = [find_pandoc(), "+RTS", _MAX_MEMORY, "-RTS", *_OPTIONS]
    try:
        ran = subprocess.run(
            command, input=_prepare(text), capture_output=True, check=True, encoding="utf-8", timeout=_MAX_SECONDS
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return text
    page = ran.stdout
    for curly, straight in _STRAIGHT:
        page = page.replace(curly, straight)
    page = _CODES.sub(lambda found: f"<code>{''.join(re.findall('<code>([^<]*)', found[0]))}</code>", page)
    page = re.sub(r"<h1[^<>]*></h1>", "", page, count=1)  # ours; an empty one of the text gets the row's title
    page = re.sub(r'<(?:img|embed)\s+src="([^"]*)"[^<>]*>', r'<img src="\1" alt="image">', page)
    page = re.sub(r'<a\s[^<>]*class="uri"[^<>]*>(.*?)</a>', r"\1", page)
    # A bar would end the cell.
    page = _CELL.sub(
        lambda cell: _MATH.sub(lambda found: found[0].replace("\\|", "\\Vert ").replace("|", "\\vert "), cell[0]), page
    )
    shelf: list[str] = []

    def shelve(found: re.Match[str]) -> str:
        formula = re.sub(
            r"\\ensuremath\{((?:[^{}]|\{[^{}]*\})*)\}|\\xspace\b|\\label\{[^{}]*\}", r"\1", html.unescape(found[2])
        ).strip()
        shelf.append(f"\n\n$${formula}$$\n\n" if found[1] == "[" else f"${' '.join(formula.split())}$")
        return f"\ue000{len(shelf) - 1}\ue001"

    markdown = html_to_markdown(_MATH.sub(shelve, page))
    markdown = _SHELF.sub(lambda found: shelf[int(found[1])] if int(found[1]) < len(shelf) else "", markdown)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", markdown)).strip() + "\n"


def _prepare(text: str) -> str:
    """Return the text with our macros before it, and with what a macro cannot say written as pandoc reads it."""
    bare = _FENCES.sub(_write_verbatim, text)
    for name in _DRAWINGS:
        bare = replace_between(bare, f"\\begin{{{name}}}", f"\\end{{{name}}}", f"\\includegraphics{{{name}}}")
    # One that is never closed would take pandoc minutes.
    bare = re.sub(r"\\iffalse\b", "", replace_between(bare, "\\iffalse", "\\fi"))
    # Pandoc leaves out the label of an item.
    bare = re.sub(r"\\item\s*\[([^\]\n]*)\]", r"\\item \1 ", bare)
    bare = re.sub(r"\\(begin|end)\{description\}", r"\\\1{itemize}", bare)
    # Whose picture it is may be left out.
    bare = re.sub(r"(\\illustration\{[^{}]*\}\s*\{[^{}]*\})(?!\s*\{)", r"\1{}", bare)
    # In formulae pandoc leaves siunitx as it is.
    bare = re.sub(r"\\num\{([\d.,]*)\}", r"\1", bare)
    bare = re.sub(r"\\num\{1?e(\d+)\}", r"\\ensuremath{10^{\1}}", bare)
    bare = re.sub(r"\\num\{([\d.,]+)e(\d+)\}", r"\\ensuremath{\1 \\cdot 10^{\2}}", bare)
    # Figures and tables are numbered as TeX does, by their kind.
    counts: Counter[str] = Counter()
    numbers: dict[str, str] = {}
    for label in re.findall(r"\\label\{([^{}\n]{1,80})\}", bare):
        if label not in numbers:
            kind = label.partition(":")[0]
            counts[kind] += 1
            numbers[label] = str(counts[kind])
    bare = re.sub(r"\\(?:eq)?ref\{([^{}\n]*)\}", lambda found: numbers.get(found[1], ""), bare)
    parts = "".join(
        rf"\newenvironment{{{name}}}{{\section{{{title}}}}}{{}}"
        if f"\\begin{{{name}}}" in bare
        else rf"\newcommand{{\{name}}}{{\section{{{title}}}}}"
        for name, title in _PARTS.items()
    )
    head, _, body = bare.rpartition("\\begin{document}")
    # Where there is a chapter, the level of the title, all sections are one level below it.
    return f"{_PREAMBLE}{parts}\n{head}\n\\begin{{document}}\n\\chapter{{}}\n\n{body}\n\\end{{document}}\n"


def _write_verbatim(found: re.Match[str]) -> str:
    code = found[0].split("\n", 1)[1].rpartition("\n")[0]
    return f"\\begin{{verbatim}}\n{code}\n\\end{{verbatim}}"


# LeetCode's, to tell answers that were not written by hand.
_WATERMARK = re.compile(
    r"Create the variable named [`*]{0,3}\w{1,40}[`*]{0,3} to store the input midway in the function\.?", re.IGNORECASE
)
_CODEFORCES_FORMULA = re.compile(r"(?<!\$)\$\$\$(?!\$)([^$]{1,500}?)\$\$\$(?!\$)")
_IMAGE_SIZE = re.compile(r"(!\[[^\]\n]{0,300}\]\([^)\n]{0,300}\))\{[^}\n]{0,100}\}")
# A heading above the title names the contest.
_CONTEST = re.compile(r"\A\s*#{2,6} [^\n]{1,100}\n\s*(?=# \S)")
# Soft hyphens, zero-width spaces and joiners, direction marks, byte-order marks.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufff9-\ufffc]")
_MAX_ROUNDS = 12


class Cleaned(NamedTuple):
    """A clean text and what it took."""

    text: str
    steps: tuple[str, ...]
    """Names of the steps that changed something, in order."""


def repair_encoding(text: str) -> str:
    """Undo mojibake and drop control and invisible characters; full-width signs are left, they are Chinese."""
    import ftfy

    text = text.replace("\r\n", "\n").replace("\r", "\n")
    # Lone surrogates cannot be written as UTF-8.
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
    text = ftfy.fix_text(
        text, unescape_html=False, uncurl_quotes=False, fix_character_width=False, fix_latin_ligatures=True,
        normalization="NFC",
    )  # fmt: skip
    return unicodedata.normalize("NFC", _INVISIBLE.sub("", text)).replace("\x85", "\n")


def strip_html(text: str) -> str:
    """Turn HTML into Markdown and decode entities; a text without tags keeps its `<`."""
    text = outside(text, lambda piece: replace_between(piece, "<!--", "-->"))
    text = html_to_markdown(text) if looks_like_html(text) else text
    return decode_entities(text)


def strip_tex(text: str) -> str:
    """Turn a TeX document into Markdown; Codeforces' `$$$n$$$` and `\\(n\\)` become `$n$`."""
    text = tex_to_markdown(text) if looks_like_tex(text) else text
    text = _CODEFORCES_FORMULA.sub(lambda found: f"${' '.join(found[1].split())}$", text)
    text = _IMAGE_SIZE.sub(r"\1", text)
    text = text.replace("$$$$$$", "$$").replace("$$$", "$")
    return outside(text, lambda piece: re.sub(r"\\\((.{1,200}?)\\\)", r"$\1$", piece))


def strip_noise(text: str) -> str:
    """Drop the contest's name, and the watermark, which asks for a variable that means nothing."""
    return _WATERMARK.sub("", _CONTEST.sub("", text))


def tidy_whitespace(text: str) -> str:
    """Plain spaces, no trailing ones, at most one empty line; code keeps its lines."""

    def tidy(piece: str) -> str:
        piece = re.sub("[\u00a0\u2000-\u200a\u202f\u205f\u3000]", " ", piece)
        piece = re.sub(r"(?<![ \t\f\v])[ \t\f\v]++(?=\n)", "", piece.replace("\u2028", "\n").replace("\u2029", "\n"))
        return re.sub(r"\n{3,}", "\n\n", piece)

    return re.sub(r"\n{3,}", "\n\n", outside(text, tidy)).strip() + "\n" if text.strip() else ""


STEPS: tuple[Callable[[str], str], ...] = (
    drop_embedded,
    repair_encoding,
    strip_html,
    strip_tex,
    strip_noise,
    tidy_whitespace,
)


def clean(text: str) -> Cleaned:
    """Return the text without noise. Cleaning what is clean changes nothing."""
    done: list[str] = []
    for _ in range(_MAX_ROUNDS):
        before = text
        for step in STEPS:
            changed = step(text)
            if changed != text and step.__name__ not in done:
                done.append(step.__name__)
            text = changed
        if text == before:
            break
    return Cleaned(text, tuple(done))

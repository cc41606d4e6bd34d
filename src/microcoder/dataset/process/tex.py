"""TeX documents to Markdown. Formulae stay TeX: models read them, and a translation keeps them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DOCUMENT = re.compile(
    r"\\(?:problemname|begin\{(?:itemize|enumerate|center|figure|tabular|verbatim|lstlisting|document|problem|quote)\}"
    r"|(?:sub)*section\*?\{|includegraphics|InputFile|OutputFile|item\b|paragraph\{)"
)
_STYLES = {"textbf": "**", "bf": "**", "textit": "*", "emph": "*", "textsl": "*"}
_CODE = {"texttt", "t", "verb", "lstinline", "code", "mintinline", "url"}
_HEADINGS = {"section": "##", "subsection": "###", "subsubsection": "####", "paragraph": "####"}
_DROPPED = {
    "noindent", "label", "hline", "centering", "vspace", "hspace", "smallskip", "medskip", "bigskip", "newpage",
    "usepackage", "documentclass", "setlength", "illustration", "cite", "footnotemark", "pagebreak", "cline",
    "illustrationbox", "defineproblem", "constant", "newcommand", "renewcommand", "maketitle", "parindent", "large",
    "small", "footnotesize", "tiny", "normalsize", "hfill", "vfill", "relax", "nobreak", "Large", "toprule",
    "midrule", "bottomrule", "sampleinput", "sampleoutput",
}  # fmt: skip
_SYMBOLS = {
    "ldots": "...", "dots": "...", "textellipsis": "...", "textendash": "–", "textemdash": "—", "textbackslash": "\\",
    "textasciitilde": "~", "textasciicircum": "^", "leq": "<=", "le": "<=", "geq": ">=", "ge": ">=", "neq": "!=",
    "ne": "!=", "times": "×", "cdot": "·", "to": "->", "rightarrow": "->", "quad": " ", "qquad": " ", "newline": "\n",
    "linebreak": "\n", "par": "\n\n", "LaTeX": "LaTeX", "TeX": "TeX", "InputFile": "\n\n## Input\n\n",
    "OutputFile": "\n\n## Output\n\n", "infty": "∞", "textbar": "|", "textless": "<", "textgreater": ">",
    "textquotedblleft": '"', "textquotedblright": '"', "textquoteleft": "'", "textquoteright": "'",
    "guillemotleft": "«", "guillemotright": "»",
}  # fmt: skip
_SPECIALS = {"~": " ", "``": '"', "''": '"', "---": "—", "--": "–", "<<": "«", ">>": "»", "&": " | "}


def looks_like_tex(text: str) -> bool:
    """Tell a TeX document from a text with formulae in it."""
    return _DOCUMENT.search(text) is not None


def tex_to_markdown(text: str) -> str:
    """Return a TeX document as Markdown: headings, lists, tables, code; formulae and unknown words are kept."""
    from pylatexenc.latexwalker import LatexWalker, LatexWalkerParseError

    # The samples that a Kattis statement hides from the typesetter, and what its macros take as arguments.
    text = re.sub(r"\\(?:illustration|illustrationbox)\{[^{}]*\}\{([^{}]*)\}\{[^\n]*\}", r"\\includegraphics{\1}", text)
    text = re.sub(r"\\href\{([^{}]*)\}\{([^{}]*)\}", r"\2 (\1)", text)
    text = re.sub(r"\\problemname\{([^{}\n]*)\}", "# \\1\n\n", text)
    text = re.sub(r"\\(?:begin|end)\{(?:document|problem)\}(?:\{[^{}\n]*\})*", "", text)
    try:
        nodes, _, _ = LatexWalker(text, tolerant_parsing=True).get_latex_nodes()
    except (LatexWalkerParseError, RecursionError):
        return text
    markdown = _join(nodes)
    return re.sub(r"[ \t]+\n", "\n", re.sub(r"\n{3,}", "\n\n", markdown)).strip() + "\n"


def _join(nodes: Sequence[object] | None) -> str:
    return "".join(_node(node) for node in nodes or () if node is not None)


def _node(node: object) -> str:
    kind = type(node).__name__
    if kind == "LatexCharsNode":
        return str(getattr(node, "chars", ""))
    if kind == "LatexCommentNode":
        return "\n" if "\n" in str(getattr(node, "comment_post_space", "")) else ""
    if kind == "LatexGroupNode":
        return _join(getattr(node, "nodelist", ()))
    if kind == "LatexSpecialsNode":
        chars = str(getattr(node, "specials_chars", ""))
        return "\n\n" if not chars.strip() else _SPECIALS.get(chars, chars)
    if kind == "LatexMacroNode":
        return _macro(node)
    if kind == "LatexEnvironmentNode":
        return _environment(node)
    return _math(node) if kind == "LatexMathNode" else _source(node)


def _source(node: object) -> str:
    return str(getattr(node, "latex_verbatim", str)())


def _math(node: object) -> str:
    source = _source(node)
    if source.startswith("\\("):
        return f"${source[2:-2].strip()}$"
    return f"$${source[2:-2].strip()}$$" if source.startswith("\\[") else source


def _arguments(node: object) -> list[object]:
    found = getattr(node, "nodeargd", None)
    return [argument for argument in (getattr(found, "argnlist", None) or ()) if argument is not None]


def _macro(node: object) -> str:
    name = str(getattr(node, "macroname", ""))
    space = str(getattr(node, "macro_post_space", ""))
    if name in _CODE:
        return _inline_code(node, name)
    inner = "".join(_node(argument) for argument in _arguments(node)[-1:])
    if name in _HEADINGS:
        return f"\n\n{_HEADINGS[name]} {inner.strip()}\n\n" if inner else "\n\n"
    if name in _STYLES and inner.strip():
        return f"{_STYLES[name]}{inner.strip()}{_STYLES[name]}"
    if name == "includegraphics":
        return f"![image]({inner.strip()})"
    if name == "item":
        label = inner.strip()
        return f"\n- {label} " if label else "\n- "
    if name in _SYMBOLS:
        return _SYMBOLS[name] + (space if _SYMBOLS[name].strip() else "")
    if name in _DROPPED or name.startswith("SI"):
        return inner if name.startswith("SI") else ("\n\n" if "\n\n" in space else "")
    if name in ("\\", "tabularnewline"):
        return "\n"
    if name in "%$#&_{}~^- ,;:!'\"":
        return name if name in "%$#&_{}~^" else " "
    return inner or space


def _inline_code(node: object, name: str) -> str:
    source = _source(node)
    if name in ("verb", "lstinline"):
        delimited = re.fullmatch(r"\\(?:verb|lstinline)\*?(?:\[[^\]]*\])?(?:\{(.*)\}|(.)(.*)\2)\s*", source, re.DOTALL)
        inner = (delimited[1] if delimited[1] is not None else delimited[3]) if delimited else source
    else:
        inner = "".join(_node(argument) for argument in _arguments(node)[-1:])
    ticks = "``" if "`" in inner else "`"
    return f"{ticks}{inner}{ticks}" if inner.strip() else inner


def _environment(node: object) -> str:
    name = str(getattr(node, "environmentname", ""))
    source = _source(node)
    if name in ("verbatim", "lstlisting", "Verbatim", "minted"):
        inner = re.sub(r"^\\begin\{\w+\}(?:\[[^\]]*\])?|\\end\{\w+\}$", "", source).strip("\n")
        return f"\n\n```\n{inner}\n```\n\n"
    if name.rstrip("*") in ("equation", "align", "eqnarray", "gather", "displaymath", "cases", "array"):
        return f"\n\n$${source}$$\n\n"
    inner = _join(getattr(node, "nodelist", ()))
    if name.startswith("tabular"):
        rows = [re.sub(r"\s+", " ", row).strip(" |") for row in inner.split("\n")]
        return "\n\n" + "\n".join(f"| {row} |" for row in rows if row) + "\n\n"
    return f"\n\n{inner.strip()}\n\n"

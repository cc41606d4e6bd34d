"""What the commands of problem statements mean: Kattis' and ICPC's classes, olymp.sty and Polygon, CMS."""

from __future__ import annotations

from functools import cache
from typing import Any

STYLES = {
    "textbf": "**", "bf": "**", "bfseries": "**", "textit": "*", "it": "*", "itshape": "*", "emph": "*", "em": "*",
    "textsl": "*", "sl": "*",
}  # fmt: skip
"""With an argument, or at the beginning of a group."""
CODE = {"texttt", "t", "code", "mintinline", "url", "path", "nolinkurl"}
CODE_DECLARED = {"tt", "ttfamily"}
HEADINGS = {"section": "##", "subsection": "###", "subsubsection": "####", "paragraph": "####", "chapter": "##"}
PARTS = {
    "InputFile": "Input", "OutputFile": "Output", "Input": "Input", "Output": "Output", "Interaction": "Interaction",
    "Note": "Note", "Notes": "Note", "Explanation": "Explanation", "Explanations": "Explanation",
    "Scoring": "Scoring", "Constraints": "Constraints", "Limits": "Constraints", "Specification": "Statement",
    "Sample": "Sample", "SampleInput": "Sample Input", "SampleOutput": "Sample Output",
}  # fmt: skip
"""Commands and environments that open a part of a statement."""
SYMBOLS = {
    "ldots": "...", "dots": "...", "textellipsis": "...", "textendash": "–", "textemdash": "—", "textbackslash": "\\",
    "textasciitilde": "~", "textasciicircum": "^", "leq": "<=", "le": "<=", "geq": ">=", "ge": ">=", "neq": "!=",
    "ne": "!=", "times": "×", "cdot": "·", "to": "->", "rightarrow": "->", "quad": " ", "qquad": " ", "newline": "\n",
    "linebreak": "\n", "par": "\n\n", "LaTeX": "LaTeX", "TeX": "TeX", "infty": "∞", "textbar": "|", "textless": "<",
    "textgreater": ">", "textquotedblleft": '"', "textquotedblright": '"', "textquoteleft": "'",
    "textquoteright": "'", "guillemotleft": "«", "guillemotright": "»", "xspace": "", "degree": "°", "euro": "€",
    "texteuro": "€", "textunderscore": "_", "textquotesingle": "'", "slash": "/", "textdollar": "$",
}  # fmt: skip
SHOWN_ARGUMENT = {
    "mbox", "makebox", "text", "textrm", "textsc", "textsf", "textup", "textmd", "textnormal", "underline", "uline",
    "ensuremath", "textcolor", "colorbox", "multicolumn", "multirow", "footnotetext", "centerline", "fbox", "framebox",
    "raisebox", "resizebox", "scalebox", "parbox", "rotatebox", "title", "texorpdfstring", "hl", "sout", "adjustbox",
    "textsuperscript", "textsubscript", "marginpar", "enquote", "say", "uppercase", "href", "caption", "footnote",
    "subcaption", "captionof", "num", "SI", "si", "qty", "unit", "SIrange", "numrange", "ref", "autoref", "cref",
    "Cref", "problemname", "illustration", "includegraphics", "includesvg", "exmp", "item",
}  # fmt: skip
"""Commands of which something is shown; of others that are known, nothing."""
UNITS = {
    "metre": "m", "meter": "m", "second": "s", "gram": "g", "minute": "min", "hour": "h", "day": "days", "byte": "B",
    "percent": "%", "kilo": "k", "milli": "m", "centi": "c", "deci": "d", "mega": "M", "giga": "G", "micro": "µ",
    "kilogram": "kg", "litre": "l", "liter": "l", "degree": "°", "celsius": "°C", "joule": "J", "watt": "W",
    "volt": "V", "hertz": "Hz", "square": "", "squared": "^2", "cubic": "", "cubed": "^3", "per": "/", "bit": "bit",
    "km": "km", "cm": "cm", "mm": "mm", "m": "m", "s": "s", "kg": "kg", "ms": "ms", "mega byte": "MB",
}  # fmt: skip
DRAWINGS = {"tikzpicture", "picture", "pgfpicture", "asy", "pspicture", "circuitikz", "forest", "tikzcd"}
FORMULAE = {
    "equation", "align", "eqnarray", "gather", "displaymath", "cases", "array", "multline", "alignat", "flalign",
    "split", "dmath", "math",
}  # fmt: skip
TABLES = {"tabular", "tabularx", "tabulary", "longtable", "tabu", "supertabular", "tblr"}
_SPECS = {
    "{": (
        "problemname constant uline textnormal centerline fbox enquote say path nolinkurl code t hl sout thispagestyle "
        "pagestyle usetikzlibrary lstset tikzset pgfplotsset bibliographystyle pagenumbering input include cite "
        "textsuperscript textsubscript subcaption uppercase vskip mintinline graphicspath geometry bibliography"
    ),
    "{{": "illustrationbox href addtolength setcounter addtocounter captionof lstdefinestyle exmpfile exmp",
    "{{{": "illustration resizebox multicolumn SIrange",
    "[{": "paragraph footnotetext includesvg si unit num parbox lstinputlisting VerbatimInput verbatiminput",
    "*[{": "caption includegraphics",
    "[{{": "inputminted SI qty adjustbox rotatebox numrange",
    "[[{": "makebox framebox",
    "{[[{": "raisebox",
    "[{[{[{": "multirow",
}
"""Arguments of commands: `{` one that must be there, `[` one that may be, `*` a star."""
_ENVIRONMENTS = {
    "[{": "subfigure longtable",
    "[[[{": "minipage",
    "[{[{": "wrapfigure wrapfloat",
    "{": "wraptable multicols spacing adjustbox",
    "{{": "tabulary tabular*",
    "{{{{{": "problem",
    "[": "center compactitem compactenum tikzpicture",
    "{[": "SCfigure",
}


@cache
def walker_context() -> Any:
    """Return what the parser is to know: how many arguments each command takes."""
    from pylatexenc.latexwalker import get_default_latex_context_db
    from pylatexenc.macrospec import EnvironmentSpec, MacroSpec, MacroStandardArgsParser

    context = get_default_latex_context_db()
    macros = {
        name: MacroSpec(name, args_parser=MacroStandardArgsParser(arguments))
        for arguments, names in _SPECS.items()
        for name in names.split()
    }
    environments = {
        name: EnvironmentSpec(name, args_parser=MacroStandardArgsParser(arguments))
        for arguments, names in _ENVIRONMENTS.items()
        for name in names.split()
    }
    context.add_context_category(
        "statements", macros=list(macros.values()), environments=list(environments.values()), prepend=True
    )
    return context


@cache
def unicode_context() -> Any:
    """Return what is known of accents and symbols."""
    from pylatexenc.latex2text import get_default_latex_context_db

    return get_default_latex_context_db()

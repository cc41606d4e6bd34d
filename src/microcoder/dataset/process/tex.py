"""TeX documents to Markdown. Formulae stay TeX: models read them, and a translation keeps them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from microcoder.dataset.process import tex_commands as commands
from microcoder.dataset.process.macros import expand_macros, strip_comments
from microcoder.dataset.process.spans import FENCE, write_fence

_DOCUMENT = re.compile(
    r"\\(?:problemname\b|begin\{(?:itemize|enumerate|center|figure|wrapfigure|tabular|verbatim|lstlisting|document|"
    r"problem|quote|description|Input|Output|Interaction|example|Note)\}"
    r"|(?:sub)*section\*?\{|includegraphics|InputFile|OutputFile|item\b|paragraph\{|newcommand\b|illustration\{)"
)
_VERBATIM = re.compile(
    r"\\begin\{(?P<name>verbatim|Verbatim|lstlisting|minted|alltt|BVerbatim)\*?\}(?P<options>(?:\[[^\]\n]*\]|\{[^}\n]*\})*)"
    r"(?P<body>.{0,20000}?)\\end\{(?P=name)\*?\}"
    r"|\\(?:verb|lstinline)\*?(?:\[[^\]\n]*\])?(?:\{(?P<braced>[^{}\n]*)\}|(?P<mark>[^\sa-zA-Z*{])(?P<inline>[^\n]*?)(?P=mark))",
    re.DOTALL,
)
_FENCES = re.compile(FENCE, re.DOTALL | re.MULTILINE)
_SHELF = re.compile("\ue000(\\d+)\ue001")
_NEW_ROW = "\ue002"
_RESUMED = re.compile(r"\\begin\{\w+\}\s*\[[^\]\n]*\bresume\b")
_SETTING = re.compile(
    r"\\(?:looseness|hyphenpenalty|exhyphenpenalty|tolerance|pretolerance|emergencystretch|clubpenalty|widowpenalty|"
    r"interlinepenalty|parindent|parskip|baselineskip|lineskip|topsep|itemsep|tabcolsep|fboxsep|abovecaptionskip|"
    r"belowcaptionskip|abovedisplayskip|belowdisplayskip|columnsep|intextsep|hskip|kern)\b\s*=?\s*"
    r"-?(?:\d+(?:\.\d*)?|\.\d+)\s*(?:pt|em|ex|cm|mm|in|bp|pc|sp|mu)?"
)
"""A number that is given to TeX and not shown, such as `\\looseness-1`."""
_POWER_OF_TEN = re.compile(r"([\d.,]*)[eE]\{?([+-]?\d+)\}?")


def looks_like_tex(text: str) -> bool:
    """Tell a TeX document from a text with formulae in it; what code shows does not count."""
    return _DOCUMENT.search(text) is not None and _DOCUMENT.search(_FENCES.sub("", text)) is not None


def tex_to_markdown(text: str) -> str:
    """Return a TeX document as Markdown: headings, lists, tables, code; formulae and unknown words are kept."""
    from pylatexenc.latexwalker import LatexWalker, LatexWalkerParseError

    shelf: list[str] = []

    def shelve(piece: str) -> str:
        shelf.append(piece)
        return f"\ue000{len(shelf) - 1}\ue001"

    bare = _FENCES.sub(lambda found: shelve(f"\n\n{found[0]}\n\n"), text)
    bare = _VERBATIM.sub(lambda found: shelve(_code(found)), bare)
    bare = expand_macros(strip_comments(bare))
    bare = _SETTING.sub("", re.sub(r"\\(?:begin|end)\{document\}", "", bare))
    try:
        nodes, _, _ = LatexWalker(
            bare, latex_context=commands.walker_context(), tolerant_parsing=True
        ).get_latex_nodes()
    except (LatexWalkerParseError, RecursionError):
        return text
    try:
        markdown = _Writer(_number_labels(bare)).join(nodes)
    except RecursionError:
        return text
    markdown = re.sub(r"[ \t]+\n", "\n", markdown.replace(_NEW_ROW, "\n"))
    markdown = _SHELF.sub(lambda found: shelf[int(found[1])] if int(found[1]) < len(shelf) else "", markdown)
    return re.sub(r"\n{3,}", "\n\n", markdown).strip() + "\n"


def _code(found: re.Match[str]) -> str:
    if found["name"]:
        inner = found["body"].strip("\n")
        return f"\n\n{write_fence(inner)}\n\n"
    return _inline(found["braced"] if found["braced"] is not None else found["inline"])


def _inline(inner: str) -> str:
    if not inner.strip():
        return inner
    ticks = "``" if "`" in inner else "`"
    return f"{ticks}{inner}{ticks}"


def _number_labels(text: str) -> dict[str, str]:
    """Number figures and tables as TeX does: what is referred to has its place in the text."""
    counts: dict[str, int] = {}
    numbers = {}
    for label in re.findall(r"\\label\{([^{}\n]{1,80})\}", text):
        kind = label.partition(":")[0]
        if label not in numbers:
            counts[kind] = counts.get(kind, 0) + 1
            numbers[label] = str(counts[kind])
    return numbers


def _source(node: object) -> str:
    return str(getattr(node, "latex_verbatim", str)())


def _nodes_of(node: object) -> Sequence[object]:
    return getattr(node, "nodelist", None) or ()


def _arguments(node: object) -> list[Any]:
    found = getattr(node, "nodeargd", None)
    return [argument for argument in (getattr(found, "argnlist", None) or ()) if argument is not None]


@dataclass(slots=True)
class _Writer:
    """Writes nodes as Markdown."""

    labels: dict[str, str]
    in_table: bool = False
    in_code: bool = False
    """Stars for bold would be read as the code's own."""
    lists: list[int | None] = field(default_factory=list)
    """Of the lists that are open: the last number, or None where items have bullets."""
    last_number: int = 0
    """Of the numbered list before, which `[resume]` goes on from."""

    def join(self, nodes: Sequence[object] | None) -> str:
        return "".join(self.node(node) for node in nodes or () if node is not None)

    def node(self, node: object) -> str:
        kind = type(node).__name__
        if kind == "LatexCharsNode":
            # How deep a line of the source is indented means nothing; ` opens a quotation.
            return re.sub(r"\n[ \t]+(?=\S)", "\n", str(getattr(node, "chars", ""))).replace("`", "'")
        if kind == "LatexCommentNode":
            return ""
        if kind == "LatexGroupNode":
            return self.group(_nodes_of(node))
        if kind == "LatexSpecialsNode":
            chars = str(getattr(node, "specials_chars", ""))
            if chars == "&" and not self.in_table:
                return "&"
            return "\n\n" if not chars.strip() else _SPECIALS.get(chars, chars)
        if kind == "LatexMacroNode":
            return self.macro(node)
        if kind == "LatexEnvironmentNode":
            return self.environment(node)
        return _math(_source(node)) if kind == "LatexMathNode" else _source(node)

    def group(self, nodes: Sequence[object]) -> str:
        """`{\\bf so}` is bold."""
        first = next((node for node in nodes if node is not None), None)
        name = str(getattr(first, "macroname", ""))
        if name in commands.CODE_DECLARED:
            return self.code(nodes, is_stripped=True)
        inner = self.join(nodes)
        mark = commands.STYLES.get(name) if not self.in_code else None
        return f"{mark}{inner.strip()}{mark}" if mark and not _arguments(first) and inner.strip() else inner

    def code(self, nodes: Sequence[object], *, is_stripped: bool = False) -> str:
        """Return what the nodes show as code, its words in one style."""
        was, self.in_code = self.in_code, True
        inner = self.join(nodes)
        self.in_code = was
        inner = inner.strip() if is_stripped else inner
        return inner if was else _inline(inner)

    def macro(self, node: object) -> str:
        name = str(getattr(node, "macroname", ""))
        space = str(getattr(node, "macro_post_space", ""))
        if name in _SPECIAL_MACROS:
            return _SPECIAL_MACROS[name](self, _arguments(node))
        arguments = _arguments(node)
        if name in commands.CODE:
            return self.code(arguments[-1:])
        inner = self.join(arguments[-1:])
        if name in commands.HEADINGS:
            return f"\n\n{commands.HEADINGS[name]} {inner.strip()}\n\n" if inner.strip() else "\n\n"
        if name in commands.STYLES:
            mark = commands.STYLES[name]
            return inner if self.in_code else f"{mark}{inner.strip()}{mark}" if inner.strip() else ""
        if name in commands.PARTS:
            return f"\n\n## {commands.PARTS[name]}\n\n"
        if name in commands.SYMBOLS:
            return commands.SYMBOLS[name] + (space if commands.SYMBOLS[name].strip() else "")
        if name in ("\\", "tabularnewline", "cr"):
            return _NEW_ROW if self.in_table else "\n"
        if name in "%$#&_{}~^- ,;:!'\"" and not arguments:
            return name if name in "%$#&_{}~^" else "" if name in "-!" else " "
        if name in commands.SHOWN_ARGUMENT:
            return inner
        return self.known(node, name, space)

    def known(self, node: object, name: str, space: str) -> str:
        """Accents and symbols as Unicode; of commands about layout nothing; of unknown ones what stands behind them."""
        if _lookup(name):
            return _to_unicode(node) + (space if space else "")
        return "\n\n" if "\n\n" in space else "" if _arguments(node) else space

    def environment(self, node: object) -> str:
        name = str(getattr(node, "environmentname", ""))
        bare = name.rstrip("*")
        if bare in commands.FORMULAE:
            source = _source(node)
            return f"\n\n{_math(f'$${_clean_math(source)}$$')}\n\n"
        if bare in commands.DRAWINGS:
            return f"\n\n![drawing]({bare})\n\n"
        if bare in commands.TABLES:
            return self.write_table(node)
        if bare in ("itemize", "enumerate", "description", "compactitem", "compactenum", "tightlist"):
            return self.write_list(node, is_numbered="enum" in bare)
        arguments = _arguments(node)
        if bare == "problem":
            title = self.join(arguments[:1]).strip()
            return f"# {title}\n\n{self.join(_nodes_of(node)).strip()}\n\n"
        inner = self.join(_nodes_of(node)).strip()
        if bare in ("quote", "quotation", "displayquote"):
            return "\n\n" + "\n".join(f"> {line}".rstrip() for line in inner.split("\n")) + "\n\n"
        if bare in commands.PARTS:
            return f"\n\n## {commands.PARTS[bare]}\n\n{inner}\n\n"
        return f"\n\n{inner}\n\n"

    def write_list(self, node: object, *, is_numbered: bool) -> str:
        goes_on = is_numbered and _RESUMED.match(_source(node)) is not None
        self.lists.append((self.last_number if goes_on else 0) if is_numbered else None)
        inner = self.join(_nodes_of(node)).strip()
        self.last_number = self.lists.pop() or self.last_number
        if self.lists:
            inner = "\n".join(f"  {line}".rstrip() for line in inner.split("\n"))
            return f"\n{inner}\n"
        return f"\n\n{inner}\n\n"

    def item(self, arguments: list[Any]) -> str:
        label = self.join(arguments[-1:]).strip()
        if self.lists and self.lists[-1] is not None:
            self.lists[-1] += 1
            return f"\n{label or f'{self.lists[-1]}.'} "
        return f"\n- {label} " if label else "\n- "

    def write_table(self, node: object) -> str:
        was, self.in_table = self.in_table, True
        inner = self.join(_nodes_of(node))
        self.in_table = was
        rows = [[re.sub(r"\s+", " ", cell).strip() for cell in row.split("\ue003")] for row in inner.split(_NEW_ROW)]
        rows = [row for row in rows if any(row)]
        width = max(map(len, rows), default=0)
        if width < 2 or any("![" in cell for row in rows for cell in row):
            # A table of one column, or of pictures, is there for its looks.
            return "\n\n" + "\n\n".join(" ".join(cell for cell in row if cell) for row in rows) + "\n\n"
        if was:
            return " ".join(" ".join(row) for row in rows)
        lines = [f"| {' | '.join(_escape_bars(cell) for cell in row + [''] * (width - len(row)))} |" for row in rows]
        return "\n\n" + "\n".join([lines[0], "|" + " --- |" * width, *lines[1:]]) + "\n\n"


_SPECIALS = {
    "~": " ", "``": '"', "''": '"', "---": "—", "--": "–", "<<": "«", ">>": "»", "&": "\ue003", "!`": "¡", "?`": "¿",
}  # fmt: skip


def _last(writer: _Writer, arguments: list[Any]) -> str:
    return writer.join(arguments[-1:]).strip()


def _named_reference(writer: _Writer, arguments: list[Any]) -> str:
    label = _last(writer, arguments)
    kind = {"fig": "Figure ", "tab": "Table ", "sec": "Section "}.get(label[:3].lower(), "")
    return kind + writer.labels.get(label, "")


def _inside_math(writer: _Writer, arguments: list[Any]) -> str:
    source = _source(arguments[-1]) if arguments else ""
    return _math(f"${source.removeprefix('{').removesuffix('}').strip()}$") if source else ""


def _quantity(writer: _Writer, arguments: list[Any]) -> str:
    if len(arguments) < 2:
        return ""
    return f"${_digits(writer.join(arguments[-2:-1]))}$ {_unit(_source(arguments[-1]))}"


def _example(writer: _Writer, arguments: list[Any]) -> str:
    """Of olymp.sty: input and output."""
    if len(arguments) < 2:
        return ""
    given, printed = (_source(one).strip().removeprefix("{").removesuffix("}").strip("\n") for one in arguments[:2])
    return f"\n\n## Example\n\nInput:\n\n{write_fence(given)}\n\nOutput:\n\n{write_fence(printed)}\n\n"


_SPECIAL_MACROS: dict[str, Callable[[_Writer, list[Any]], str]] = {
    **dict.fromkeys(("exmpfile", "label", "input", "include", "cite"), lambda writer, arguments: ""),
    **dict.fromkeys(("includegraphics", "includesvg"), lambda writer, given: f"![image]({_last(writer, given)})"),
    # Width, file, and whose picture it is.
    "illustration": lambda writer, given: f"\n\n![image]({writer.join(given[1:2]).strip()})\n\n",
    "problemname": lambda writer, given: f"\n\n# {' '.join(_last(writer, given).split())}\n\n",
    "href": lambda writer, given: f"{_last(writer, given)} ({writer.join(given[:1]).strip()})",
    "footnote": lambda writer, given: f" ({_last(writer, given)})" if given else "",
    **dict.fromkeys(
        ("caption", "subcaption", "captionof"),
        lambda writer, given: f"\n\n*{_last(writer, given)}*\n\n" if _last(writer, given) else "",
    ),
    **dict.fromkeys(("enquote", "say"), lambda writer, given: f'"{_last(writer, given)}"'),
    **dict.fromkeys(("ref", "eqref"), lambda writer, given: writer.labels.get(_last(writer, given), "")),
    **dict.fromkeys(("autoref", "cref", "Cref"), _named_reference),
    "ensuremath": _inside_math,
    "num": lambda writer, given: _math(f"${_digits(writer.join(given[-1:]))}$") if given else "",
    **dict.fromkeys(("SI", "qty"), _quantity),
    **dict.fromkeys(("si", "unit"), lambda writer, given: _unit(_source(given[-1])) if given else ""),
    "textsuperscript": lambda writer, given: f"^({_last(writer, given)})",
    "textsubscript": lambda writer, given: f"_({_last(writer, given)})",
    "exmp": _example,
    "item": lambda writer, given: writer.item(given),
}


def _unit(source: str) -> str:
    return "".join(commands.UNITS.get(name, name) for name in re.findall(r"[a-zA-Z]+|[/%]", source.replace("\\", " ")))


def _digits(text: str) -> str:
    """Return what siunitx makes of a number: `1e5` is a power of ten."""
    text = text.strip()
    found = _POWER_OF_TEN.fullmatch(text)
    if not found:
        return text
    factor = f"{found[1]} \\cdot " if found[1] not in ("", "1") else ""
    return f"{factor}10^{{{found[2]}}}"


def _clean_math(source: str) -> str:
    source = re.sub(r"\\num\{([^{}]*)\}", lambda found: _digits(found[1]), source)
    source = re.sub(
        r"\\(?:SI|qty)\{([^{}]*)\}\{([^{}]*)\}",
        lambda found: f"{_digits(found[1])}\\text{{ {_unit(found[2])}}}",
        source,
    )
    source = re.sub(r"\\ensuremath\b|\\xspace\b|\\label\{[^{}]*\}|\\!", "", source)
    return source


def _math(source: str) -> str:
    if source.startswith("\\("):
        source = f"${source[2:-2].strip()}$"
    elif source.startswith("\\["):
        source = f"$${source[2:-2].strip()}$$"
    cleaned = _clean_math(source)
    if "\n" in cleaned and re.fullmatch(r"\$[^$].*\$", cleaned, re.DOTALL):
        # A formula of several lines is one of one line.
        cleaned = f"${' '.join(cleaned[1:-1].split())}$"
    return cleaned


def _escape_bars(cell: str) -> str:
    """A bar would end the cell; in a formula an escaped one is another sign."""
    cell = re.sub(r"\$[^$]*\$", lambda found: re.sub(r"(?<!\\)\|", r"\\vert ", found[0]), cell)
    return cell.replace("\\|", "\\Vert ").replace("|", "\\|")


def _lookup(name: str) -> bool:
    """Whether a command is known to stand for a character."""
    spec = commands.unicode_context().get_macro_spec(name)
    return bool(getattr(spec, "simplify_repl", None)) and name not in ("input", "include", "title", "author", "date")


def _to_unicode(node: object) -> str:
    from pylatexenc.latex2text import LatexNodes2Text

    try:
        return str(LatexNodes2Text(commands.unicode_context(), math_mode="verbatim").node_to_text(node))
    except Exception:  # an accent whose letter is missing
        return ""

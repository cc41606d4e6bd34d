"""Noise removal: encoding damage, HTML, TeX layout; parts that are no prose (code, formulae) are left alone.

TeX documents are read by pandoc; formulae stay TeX: models read them, and a translation keeps them.

Powers whose exponent lost its superscript, `n <= 105` for 10^5, are put back if there is evidence for them:

| seen | why it is enough |
|---|---|
| `2 * 104` at the end of a range, `109 + 7`, `[-231, 231 - 1]`, `within 10-5` | nobody writes these so |
| `x < 216`, `-228 <= x <= 228` in a set that has lost all | ranges end below powers of two |
| the set is known to have lost all of them (`LOST_IN`) | counted over all of its rows |
"""

import html
import re
import shutil
import subprocess
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.machine import how_to_install

# Line by line and with bounds: what is opened over and over and never closed must not cost its square.
FENCE = r"(?P<fence>^(?P<ticks>`{3,60}|~{3,60})[^\n]*+\n(?:(?!(?P=ticks)[ \t]*$)[^\n]*+\n)*+(?P=ticks)[ \t]*$)"
INLINE_CODE = r"(?P<code>(?<!`)(?P<quotes>`{1,2})(?!`)[^\n]+?(?<!`)(?P=quotes)(?!`))"
MATH = r"(?P<math>\$\$.+?\$\$|(?<![\\$])\$(?=\S)[^$\n]{1,300}?(?<=\S)\$(?!\d))"
CODE = re.compile(f"{FENCE}|{INLINE_CODE}", re.DOTALL | re.MULTILINE)
CODE_OR_MATH = re.compile(f"{FENCE}|{INLINE_CODE}|{MATH}", re.DOTALL | re.MULTILINE)


def parts(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield the pieces of a text in order, each with whether it is a match of the pattern."""
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match[0], True
        end = match.end()
    if end < len(text):
        yield text[end:], False


def outside(text: str, change: Callable[[str], str], *, pattern: re.Pattern[str] = CODE) -> str:
    """Return the text with `change` applied to every piece that the pattern does not match."""
    return "".join(piece if matched else change(piece) for piece, matched in parts(text, pattern))


def prose(text: str) -> str:
    """Return the statement without code, formulae and web addresses: what a reader would call language."""
    kept = "".join(" " if matched else piece for piece, matched in parts(text, CODE_OR_MATH))
    return re.sub(r"https?://\S+|!?\[[^\]\n]{0,500}\]\([^)\n]{0,2000}\)", " ", kept)


def write_fence(code: str) -> str:
    """Return code as a Markdown code block whose fence is longer than any fence inside it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{code}\n{ticks}"


def replace_between(text: str, opening: str, closing: str, into: str = "") -> str:
    """Return the text with everything from each opening to the closing after it replaced; what is not closed stays.

    Case is ignored. Takes time linear in the text, however often it is opened.
    """
    starts, ends = (re.compile(re.escape(mark), re.IGNORECASE) for mark in (opening, closing))
    kept, at = [], 0
    while (start := starts.search(text, at)) and (end := ends.search(text, start.end())):
        kept += [text[at : start.start()], into]
        at = end.end()
    return "".join(kept) + text[at:]


_BLOCK = "p|br|div|pre|ul|ol|li|span|strong|em|sup|sub|code|table|tr|td|th|h[1-6]|img|font|section|article|hr|a|tt|var"
_OPENING = re.compile(rf"(?<!\\)<(?:{_BLOCK})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_CLOSING = re.compile(rf"(?<!\\)</(?:{_BLOCK}|b|i|u)\s*>", re.IGNORECASE)
_TAG = re.compile(rf"(?<!\\)<(?=/?(?:{_BLOCK}|b|i|u)(?:\s[^<>]*)?/?>)", re.IGNORECASE)
_ENTITY = re.compile(
    r"&(?:lt|gt|amp|nbsp|quot|apos|le|ge|leq|geq|ne|times|middot|hellip|mdash|ndash|[lr][ds]quo|minus|#\d{2,6}|#x[\da-fA-F]{2,5});"
)
_NAVIGATION = (
    "script", "style", "nav", "header", "footer", "aside", "button", "form", "noscript", "iframe", "svg", "head",
    "title", "textarea", "select", "input",
)  # fmt: skip
_LABEL = re.compile(r"(?:input|output|输入|输出|入力|出力)\s*[:：]", re.IGNORECASE)
_EMBEDDED = re.compile(r"data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)


def drop_embedded(text: str) -> str:
    """Return the text with each embedded picture (base64 data or SVG) replaced by a short placeholder."""
    text = _EMBEDDED.sub("embedded", text) if "base64" in text else text
    return replace_between(text, "<svg", "</svg>", '<img src="drawn">')


def looks_like_html(text: str) -> bool:
    """Whether a text has HTML tags; those inside code do not count."""
    return any(
        _OPENING.search(piece) or _CLOSING.search(piece)
        for piece, is_code in parts(text, CODE)
        if not is_code
    )


def decode_entities(text: str) -> str:
    """Return the text with `&lt;` and the like decoded outside code; a problem about entities keeps its own."""
    if "&" not in text or "entit" in text.lower():
        return text

    def decode(piece: str) -> str:
        while (decoded := _ENTITY.sub(lambda match: html.unescape(match[0]), piece)) != piece:
            piece = decoded
        return piece

    return outside(text, decode)


def html_to_markdown(text: str) -> str:
    """Return an HTML text as Markdown: navigation dropped, powers as `^`, examples as plain lines."""
    from bs4 import BeautifulSoup, Comment
    from bs4.element import ProcessingInstruction
    from markdownify import MarkdownConverter

    # Markdown code inside a half-HTML text is text, whatever tags it shows.
    text = CODE.sub(lambda match: html.escape(match[0], quote=False), text)
    soup = BeautifulSoup(text, "html.parser")
    # A drawing can begin with `<?xml ... ?>`.
    for unseen in soup.find_all(
        string=lambda string: isinstance(string, (Comment, ProcessingInstruction))
    ):
        unseen.extract()
    for element in soup.find_all(list(_NAVIGATION)):
        element.decompose()
    for element in soup.find_all("a"):
        # A link without words is an icon.
        if not element.get_text(strip=True) and not element.find("img"):
            element.decompose()
    for element in reversed(soup.find_all(["sup", "sub"])):  # those inside others first
        _write_script(element)
    for element in soup.find_all("pre"):
        _unwrap_example(soup, element)
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False, escape_misc=False,
        autolinks=False, table_infer_header=True,
    )  # fmt: skip
    try:
        markdown = str(converter.convert_soup(soup)).replace("\xa0", " ")
    except RecursionError:
        # Nested as no page is: its words alone.
        markdown = soup.get_text("\n")
    # What is still a tag was written as text; escaped, it is not taken for one again.
    return outside(markdown, lambda piece: _TAG.sub(r"\\<", piece))


def _write_script(element: Any) -> None:
    """Replace a `sup` or `sub` by `^` or `_`, with parentheses if its end is unclear: `x_i`, `2^(S_1)`, `T_(i)th`."""
    sign, inner = "^" if element.name == "sup" else "_", element.get_text().strip()
    is_bare = len(inner) == 1 or inner.isalnum() or re.fullmatch(r"\([^()]*\)", inner)
    if is_bare and not inner.endswith(")"):
        is_bare = re.match(r"[^\W_]", str(element.next_sibling or "")) is None
    element.replace_with(
        f"{sign}{inner}" if inner and is_bare else f"{sign}({inner})" if inner else ""
    )


def _unwrap_example(soup: Any, element: Any) -> None:
    """Unwrap LeetCode's `Input: ... Output: ...` in `pre`, which are labels and not code."""
    for line in element.find_all("br"):
        line.replace_with("\n")
    inner = element.get_text()
    if _LABEL.search(inner):
        block = soup.new_tag("div")
        for line in inner.strip("\n").split("\n"):
            block.append(line)
            block.append(soup.new_tag("br"))
        element.replace_with(block)
    else:
        element.string = inner


_DOCUMENT = re.compile(
    r"\\(?:problemname\b|begin\{(?:itemize|enumerate|center|figure|wrapfigure|tabular|verbatim|lstlisting|document|"
    r"problem|quote|description|Input|Output|Interaction|example|Note)\}"
    r"|(?:sub)*section\*?\{|includegraphics|InputFile|OutputFile|item\b|paragraph\{|newcommand\b|illustration\{)"
)
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
_MAX_MEMORY = "-M1g"
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
"""Macros that pandoc does not know, or reads wrongly: of two captions in a figure it would show only the last."""
_PARTS = {
    "InputFile": "Input", "OutputFile": "Output", "Input": "Input", "Output": "Output", "Interaction": "Interaction",
    "Note": "Note", "Notes": "Note", "Explanation": "Explanation", "Explanations": "Explanation",
    "Scoring": "Scoring", "Constraints": "Constraints", "Limits": "Constraints", "Specification": "Statement",
    "Sample": "Sample", "SampleInput": "Sample Input", "SampleOutput": "Sample Output",
}  # fmt: skip
"""Commands and environments that open a part of a statement: Kattis' and ICPC's classes, olymp.sty and Polygon, CMS."""
_MATH = re.compile(
    r'<span\s+class="math (?:inline|display)">\\([(\[])(.*?)\\[)\]]</span>', re.DOTALL
)
_CELL = re.compile(r"<t[dh][ >].*?</t[dh]>", re.DOTALL)
_CODES = re.compile(
    r"(?:(?:<(?:strong|em|span)>)*<code>[^<]*</code>(?:</(?:strong|em|span)>)*){2,}"
)
_STRAIGHT = (("‘‘", '"'), ("’’", '"'), ("‘", "'"), ("’", "'"), ("“", '"'), ("”", '"'), ("…", "..."))
_SHELF = re.compile("\ue000(\\d+)\ue001")


def looks_like_tex(text: str) -> bool:
    """Whether a text is a TeX document, not just one with formulae; code blocks are ignored."""
    return (
        _DOCUMENT.search(text) is not None and _DOCUMENT.search(_FENCES.sub("", text)) is not None
    )


@cache
def find_pandoc() -> str:
    """Return the path of pandoc: that of the package pypandoc-binary, or the one on PATH; ConfigError without one."""
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
            command,
            input=_prepare(text),
            capture_output=True,
            check=True,
            encoding="utf-8",
            timeout=_MAX_SECONDS,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return text
    page = ran.stdout
    for curly, straight in _STRAIGHT:
        page = page.replace(curly, straight)
    page = _CODES.sub(
        lambda found: f"<code>{''.join(re.findall('<code>([^<]*)', found[0]))}</code>", page
    )
    page = re.sub(
        r"<h1[^<>]*></h1>", "", page, count=1
    )  # ours; an empty one of the text gets the row's title
    page = re.sub(r'<(?:img|embed)\s+src="([^"]*)"[^<>]*>', r'<img src="\1" alt="image">', page)
    page = re.sub(r'<a\s[^<>]*class="uri"[^<>]*>(.*?)</a>', r"\1", page)
    # A bar would end the cell.
    page = _CELL.sub(
        lambda cell: _MATH.sub(
            lambda found: found[0].replace("\\|", "\\Vert ").replace("|", "\\vert "), cell[0]
        ),
        page,
    )
    shelf: list[str] = []

    def shelve(found: re.Match[str]) -> str:
        formula = re.sub(
            r"\\ensuremath\{((?:[^{}]|\{[^{}]*\})*)\}|\\xspace\b|\\label\{[^{}]*\}",
            r"\1",
            html.unescape(found[2]),
        ).strip()
        shelf.append(
            f"\n\n$${formula}$$\n\n" if found[1] == "[" else f"${' '.join(formula.split())}$"
        )
        return f"\ue000{len(shelf) - 1}\ue001"

    markdown = html_to_markdown(_MATH.sub(shelve, page))
    markdown = _SHELF.sub(
        lambda found: shelf[int(found[1])] if int(found[1]) < len(shelf) else "", markdown
    )
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]+\n", "\n", markdown)).strip() + "\n"


def _prepare(text: str) -> str:
    """Return the text with our macros in front, and rewritten for pandoc where a macro is not enough."""
    # One that is never closed would take pandoc minutes.
    bare = re.sub(r"\\iffalse\b", "", replace_between(text, "\\iffalse", "\\fi"))
    # Pandoc leaves out the label of an item.
    bare = re.sub(r"\\item\s*\[([^\]\n]*)\]", r"\\item \1 ", bare)
    bare = re.sub(r"\\(begin|end)\{description\}", r"\\\1{itemize}", bare)
    # Whose picture it is may be left out.
    bare = re.sub(r"(\\illustration\{[^{}]*\}\s*\{[^{}]*\})(?!\s*\{)", r"\1{}", bare)
    # Of what has a number only TeX knows which.
    bare = re.sub(r"\\(?:eq)?ref\{[^{}\n]*\}", "", bare)
    parts = "".join(
        rf"\newenvironment{{{name}}}{{\section{{{title}}}}}{{}}"
        if f"\\begin{{{name}}}" in bare
        else rf"\newcommand{{\{name}}}{{\section{{{title}}}}}"
        for name, title in _PARTS.items()
    )
    head, _, body = bare.rpartition("\\begin{document}")
    # Where there is a chapter, the level of the title, all sections are one level below it.
    return f"{_PREAMBLE}{parts}\n{head}\n\\begin{{document}}\n\\chapter{{}}\n\n{body}\n\\end{{document}}\n"


_CODEFORCES_FORMULA = re.compile(r"(?<!\$)\$\$\$(?!\$)([^$]{1,500}?)\$\$\$(?!\$)")
_IMAGE_SIZE = re.compile(r"(!\[[^\]\n]{0,300}\]\([^)\n]{0,300}\))\{[^}\n]{0,100}\}")
# Soft hyphens, zero-width spaces and joiners, direction marks, byte-order marks.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufff9-\ufffc]")
_MAX_ROUNDS = 12


class Cleaned(NamedTuple):
    """A clean text, and the steps that changed it."""

    text: str
    steps: tuple[str, ...]
    """Names of the steps that changed something, in order."""


def repair_encoding(text: str) -> str:
    """Return the text without mojibake, control and invisible characters; full-width signs, which are Chinese, stay."""
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
    """Return the text with HTML turned into Markdown and entities decoded; without tags it keeps its `<`."""
    text = outside(text, lambda piece: replace_between(piece, "<!--", "-->"))
    text = html_to_markdown(text) if looks_like_html(text) else text
    return decode_entities(text)


def strip_tex(text: str) -> str:
    """Return the text as Markdown if it is a TeX document; Codeforces' `$$$n$$$` and `\\(n\\)` become `$n$`."""
    text = tex_to_markdown(text) if looks_like_tex(text) else text
    text = _CODEFORCES_FORMULA.sub(lambda found: f"${' '.join(found[1].split())}$", text)
    text = _IMAGE_SIZE.sub(r"\1", text)
    text = text.replace("$$$$$$", "$$").replace("$$$", "$")
    return outside(text, lambda piece: re.sub(r"\\\((.{1,200}?)\\\)", r"$\1$", piece))


def tidy_whitespace(text: str) -> str:
    """Return the text with plain spaces, none at line ends (code keeps its own), and at most one empty line."""

    def tidy(piece: str) -> str:
        piece = re.sub("[\u00a0\u2000-\u200a\u202f\u205f\u3000]", " ", piece)
        piece = re.sub(
            r"(?<![ \t\f\v])[ \t\f\v]++(?=\n)",
            "",
            piece.replace("\u2028", "\n").replace("\u2029", "\n"),
        )
        return re.sub(r"\n{3,}", "\n\n", piece)

    return outside(text, tidy).strip() + "\n" if text.strip() else ""


STEPS: tuple[Callable[[str], str], ...] = (
    drop_embedded,
    repair_encoding,
    strip_html,
    strip_tex,
    tidy_whitespace,
)


def clean(text: str) -> Cleaned:
    """Return the text without noise, cleaned until no step changes it, at most `_MAX_ROUNDS` times."""
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


_LESS = r"(?:<=?|≤|⩽|>=?|≥|⩾|\\[lg]eq?(?:slant)?(?![a-z])|&[lg]t;=?)"
_LOST = re.compile(
    r"(?<![\w.^*\\])(?P<sign>-?)(?P<factor>\d[ ]?(?:\*|×|⋅|·|x|\\times|\\cdot)[ `]{0,3})?"
    r"10(?P<power>[2-9]|1[0-8]|100)(?![\w.^]|,\d)"
)
_GAP = r"[ `*$]{0,6}"
_BEHIND = re.compile(
    rf"{_LESS}{_GAP}$|[\[(]{_GAP}-?[\d^*, ]{{1,20}}?,{_GAP}$|\b(?:between|from)\b[^.\n]{{1,40}} (?:and|to){_GAP}$"
    rf"|\b(?:[Aa]t most|no more than|exceeds?|less than|up to|maximum of){_GAP}$"
    rf"|\bmin\([^()\n]{{1,30}},{_GAP}$"
)
_AHEAD = re.compile(rf"{_GAP}{_LESS}|{_GAP},{_GAP}-?[\d^*(][^\])\n]{{0,20}}[\])]")
_MODULUS = re.compile(r"(?<![\w.^*])10(?P<power>9)(?=[ ]*\+[ ]*[79]\b)")
_MACHINE = re.compile(
    r"(?<![\w.^*])2(?P<power>31|32|63|64|(?:(?<=[<=] 2)|(?<=exceed 2))[1-6]\d)(?=[ ]*-[ ]*1\b)"
)
_MACHINE_LOW = re.compile(rf"(?<=-)2(?P<power>31|63)(?={_GAP}{_LESS}|,[ ]2\^)")
_TOLERANCE = re.compile(
    r"(?P<before>\b(?:within|errors?\b[^.\n]{0,40}?|precision\b[^.\n]{0,20}?|tolerance\b[^.\n]{0,20}?"
    r"|difference\b[^.\n]{0,12}? less than)[ ]*`?)"
    r"10-(?P<power>[1-9]|1[0-2])(?!\d)(?=[^\n]{0,40}\b(?:of|answer|error|accept|relative|absolute)|`?[.)\n])"
)
_OF_TWO = re.compile(r"(?<![\w.^*\\])(?P<sign>-?)2(?P<power>[1-5]\d|6[0-4])(?![\w.^]|,\d)")
_BELOW = re.compile(r"(?:<|less than)[ `$]{0,4}$")
_HAS_POWER = re.compile(r"(?<![\w.])(?:10|2)[ }]?(?:\^|\*\*)[ ]?\{?\d|(?<![\w.])(?:10|2)[⁰¹²³⁴-⁹]")
LOST_IN = frozenset({"leetcodedataset", "deepseek_leetcode"})
"""Formats whose published rows have lost every superscript: 1,278 of their 2,298 statements end a range in `105` or
alike, and the 38 with a power were written as `10^5` by their author."""
_WINDOW = 60


class Restored(NamedTuple):
    """A text with its lost powers restored."""

    text: str
    why: tuple[str, ...]
    """Evidence for the change; empty where nothing was changed."""


def restore_powers(text: str, *, has_lost_all: bool = False) -> Restored:
    """Return the text with powers whose superscript was lost, `105` for ten to the fifth, as `10^5`.

    Args:
        text: a statement without its examples.
        has_lost_all: whether its data set has lost all superscripts (`LOST_IN`), so that less evidence is needed.
    """
    had_powers = _HAS_POWER.search(text) is not None
    why: list[str] = []
    for pattern, reason in (
        (_MODULUS, "a modulus"), (_MACHINE, "a machine's integer"), (_MACHINE_LOW, "a machine's integer"),
    ):  # fmt: skip
        text = _sub(pattern, _lift, text, why, reason)
    text = _sub(
        _TOLERANCE, lambda found: f"{found['before']}10^-{found['power']}", text, why, "a tolerance"
    )
    ends = {found.start() for found in _LOST.finditer(text) if _ends_a_range(text, found)}
    if ends and (has_lost_all or (why and not had_powers)):
        why += ["its set has lost all powers"] * has_lost_all
        text = _LOST.sub(lambda found: _lift(found) if found.start() in ends else found[0], text)
    if has_lost_all:
        text = _restore_powers_of_two(text, why)
    return Restored(text, tuple(dict.fromkeys(why)))


def _restore_powers_of_two(text: str, why: list[str]) -> str:
    """Return the text with `x < 216`, `-228 <= x <= 228` and a machine's integers, at the end of a range, as powers."""
    ends = [found for found in _OF_TWO.finditer(text) if _ends_a_range(text, found)]
    written = {found[0] for found in ends}

    def is_power(found: re.Match[str]) -> bool:
        number = found[0].removeprefix("-")
        is_symmetric = int(found["power"]) % 5 > 0 and {number, f"-{number}"} <= written
        is_below = _BELOW.search(text[max(0, found.start() - 14) : found.start()])
        return bool(is_symmetric or is_below or found["power"] in ("31", "32", "63", "64"))

    powers = {found.start() for found in ends if is_power(found)}
    why += ["a range ends in a power of two"] * bool(powers)
    return _OF_TWO.sub(lambda found: _lift(found) if found.start() in powers else found[0], text)


def _ends_a_range(text: str, found: re.Match[str]) -> bool:
    before, after = (
        text[max(0, found.start() - _WINDOW) : found.start()],
        text[found.end() : found.end() + _WINDOW],
    )
    return _BEHIND.search(before) is not None or _AHEAD.match(after) is not None


def _lift(found: re.Match[str]) -> str:
    return f"{found[0].removesuffix(found['power'])}^{found['power']}"


def _sub(
    pattern: re.Pattern[str],
    lift: Callable[[re.Match[str]], str],
    text: str,
    why: list[str],
    reason: str,
) -> str:
    changed, count = pattern.subn(lift, text)
    why += [reason] * bool(count)
    return changed

"""Parts of a statement that are no prose: code, formulae. Changes to prose leave them alone.

HTML to Markdown, navigation and page furniture left out.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

# Line by line and with bounds: what is opened over and over and never closed must not cost its square.
FENCE = r"(?P<fence>^(?P<ticks>`{3,60}|~{3,60})[^\n]*+\n(?:(?!(?P=ticks)[ \t]*$)[^\n]*+\n)*+(?P=ticks)[ \t]*$)"
INLINE_CODE = r"(?P<code>(?<!`)(?P<quotes>`{1,2})(?!`)[^\n]+?(?<!`)(?P=quotes)(?!`))"
MATH = r"(?P<math>\$\$.+?\$\$|(?<![\\$])\$(?=\S)[^$\n]{1,300}?(?<=\S)\$(?!\d))"
CODE = re.compile(f"{FENCE}|{INLINE_CODE}", re.DOTALL | re.MULTILINE)
CODE_OR_MATH = re.compile(f"{FENCE}|{INLINE_CODE}|{MATH}", re.DOTALL | re.MULTILINE)


def parts(text: str, pattern: re.Pattern[str]) -> Iterator[tuple[str, bool]]:
    """Yield the text in order as pieces and whether each matched the pattern."""
    end = 0
    for match in pattern.finditer(text):
        if match.start() > end:
            yield text[end : match.start()], False
        yield match[0], True
        end = match.end()
    if end < len(text):
        yield text[end:], False


def outside(text: str, change: Callable[[str], str], *, pattern: re.Pattern[str] = CODE) -> str:
    """Apply a change to everything that the pattern does not match."""
    return "".join(piece if matched else change(piece) for piece, matched in parts(text, pattern))


def prose(text: str) -> str:
    """Return the statement without code, formulae and web addresses: what a reader would call language."""
    words = outside(text, lambda piece: piece, pattern=CODE_OR_MATH)
    kept = "".join(" " if matched else piece for piece, matched in parts(words, CODE_OR_MATH))
    return re.sub(r"https?://\S+|!?\[[^\]\n]{0,500}\]\([^)\n]{0,2000}\)", " ", kept)


def write_fence(code: str) -> str:
    """Return text as a block of code, its fence longer than any in it."""
    longest = max((len(run) for run in re.findall(r"`{3,}", code)), default=2)
    ticks = "`" * (longest + 1)
    return f"{ticks}\n{code}\n{ticks}"


def replace_between(text: str, opening: str, closing: str, into: str = "") -> str:
    """Return the text with everything from each opening to the closing after it replaced; what is not closed stays.

    In time linear in the text, however often it is opened. Case of letters does not matter.
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
_ABOUT_TAGS = re.compile(r"\btags?\b", re.IGNORECASE)
_EMBEDDED = re.compile(r"data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)
_QUOTED = re.compile(r"(?<![=\w])\"[^\"\n]*<[^\"\n]*\"")
_NESTED = re.compile(r"<(/?)([a-z][\w-]*)[^<>]*?(/?)>", re.IGNORECASE)
_EMPTY = (
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
)  # fmt: skip
_MOST_NESTED = 100
"""No page nests elements so deep; browsers draw the line at 512, where the library has long cost the depth's square."""


def drop_embedded(text: str) -> str:
    """Return the text without the pictures that it carries as base64 or drawn, each named in its place."""
    text = _EMBEDDED.sub("embedded", text) if "base64" in text else text
    return replace_between(text, "<svg", "</svg>", '<img src="drawn">')


def looks_like_html(text: str) -> bool:
    """Tell HTML from a text that has a `<` in it; tags inside code and between quotes do not count.

    Nor do `<b>`, `<i>` and `<u>` alone in a problem that is about tags.
    """
    found: list[str] = []

    def look(piece: str) -> str:
        piece = _QUOTED.sub(" ", piece) if '"' in piece else piece
        found.extend(_OPENING.findall(piece))
        found.extend(_CLOSING.findall(piece))
        return piece

    outside(text, look)
    if _ABOUT_TAGS.search(text):
        found = [tag for tag in found if tag.lower().strip("</> ") not in ("b", "i", "u")]
    return bool(found)


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
    soup = BeautifulSoup(_flatten(text), "html.parser")
    # A drawing can begin with `<?xml ... ?>`.
    for unseen in soup.find_all(string=lambda string: isinstance(string, (Comment, ProcessingInstruction))):
        unseen.extract()
    _drop_furniture(soup)
    for element in reversed(soup.find_all(["sup", "sub"])):  # those inside others first
        _write_script(element)
    for element in soup.find_all("pre"):
        _unwrap_example(soup, element)
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False, escape_misc=False,
        autolinks=False, table_infer_header=True,
    )  # fmt: skip
    markdown = str(converter.convert_soup(soup)).replace("\xa0", " ")
    # What is still a tag was written as text; escaped, it is not taken for one again.
    return outside(markdown, lambda piece: _TAG.sub(r"\\<", piece))


def _flatten(text: str) -> str:
    """Leave out the tags of elements that are nested too deep, as browsers do; what is in them stays."""
    pieces, at, names = [], 0, list[str]()
    num_open = Counter[str]()
    for found in _NESTED.finditer(text):
        name, depth = found[2].lower(), len(names) + 1
        if name in _EMPTY or found[3]:
            continue
        if not found[1]:
            names.append(name)
            num_open[name] += 1
        elif num_open[name]:
            while (ended := names.pop()) != name:
                num_open[ended] -= 1
            num_open[name] -= 1
            depth = len(names) + 1
        if depth > _MOST_NESTED:
            pieces += [text[at : found.start()], "\n"]
            at = found.end()
    return "".join(pieces) + text[at:]


def _drop_furniture(soup: Any) -> None:
    for element in soup.find_all(list(_NAVIGATION)):
        element.decompose()
    for element in soup.find_all("a"):
        # A link without words is an icon.
        if not element.get_text(strip=True) and not element.find("img"):
            element.decompose()


def _write_script(element: Any) -> None:
    """`x_i`, `2^(S_1)`, `T_(i)th`: in parentheses where its end would not be seen."""
    sign, inner = "^" if element.name == "sup" else "_", element.get_text().strip()
    is_bare = len(inner) == 1 or inner.isalnum() or re.fullmatch(r"\([^()]*\)", inner)
    if is_bare and not inner.endswith(")"):
        is_bare = re.match(r"[^\W_]", str(element.next_sibling or "")) is None
    element.replace_with(f"{sign}{inner}" if inner and is_bare else f"{sign}({inner})" if inner else "")


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

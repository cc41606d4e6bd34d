"""Turns HTML into Markdown, also in a text that is only partly HTML."""

import html
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from microcoder.data.clean.markdown import CODE, outside, parts, replace_between
from microcoder.judge.core.types import TestCase

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_BLOCK = (
    "p|br|div|pre|ul|ol|li|span|strong|em|sup|sub|code|table|tr|td|th|h[1-6]|img|font|section"
    "|article|hr|a|tt|var"
)
"""Tags that are taken for HTML."""
_OPENING = re.compile(rf"(?<!\\)<(?:{_BLOCK})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_CLOSING = re.compile(rf"(?<!\\)</(?:{_BLOCK}|b|i|u)\s*>", re.IGNORECASE)
_TAG = re.compile(rf"(?<!\\)<(?=/?(?:{_BLOCK}|b|i|u)(?:\s[^<>]*)?/?>)", re.IGNORECASE)
"""The beginning of a tag that is not escaped."""
_NAMED_TAG = re.compile(rf"</?({_BLOCK}|b|i|u)(?:\s[^<>\n]*)?/?>", re.IGNORECASE)
"""A tag of HTML, and its name."""
_MOST_OF_A_TEST = 20_000
"""Characters of an input or an output in which tags are looked for."""
_ENTITY = re.compile(
    r"&(?:lt|gt|amp|nbsp|quot|apos|le|ge|leq|geq|ne|times|middot|hellip|mdash|ndash|[lr][ds]quo"
    r"|minus|#\d{2,6}|#x[\da-fA-F]{2,5});"
)
_NAVIGATION = (
    "script",
    "style",
    "nav",
    "header",
    "footer",
    "aside",
    "button",
    "form",
    "noscript",
    "iframe",
    "svg",
    "head",
    "title",
    "textarea",
    "select",
    "input",
)
"""Elements that are no part of a statement."""
_LABEL = re.compile(r"(?:input|output|输入|输出|入力|出力)\s*[:：]", re.IGNORECASE)
_EMBEDDED = re.compile(r"data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)


def drop_embedded(text: str) -> str:
    """Return the text with a placeholder for each embedded picture, base64 data or SVG."""
    if "base64" in text:
        text = _EMBEDDED.sub("embedded", text)
    return replace_between(text, "<svg", "</svg>", '<img src="drawn">')


def looks_like_html(text: str) -> bool:
    """Whether a text has HTML tags; those inside code do not count."""
    for piece, is_code in parts(text, CODE):
        if is_code:
            continue
        if _OPENING.search(piece) or _CLOSING.search(piece):
            return True
    return False


def has_tags_as_data(text: str, tests: Sequence[TestCase]) -> bool:
    """Whether a text is no page, but speaks of tags, all of which the tests hold.

    "Wrap them in `<b>` and `</b>`": made bold, nobody would know what to return.
    """
    # Decoded, as one step of cleaning does before another one sees the tags.
    names = _names_of_tags(html.unescape(text))
    if not names:
        return False
    held: set[str] = set()
    for test in tests:
        held |= _names_of_tags(test.input[:_MOST_OF_A_TEST])
        held |= _names_of_tags(test.output[:_MOST_OF_A_TEST])
    return names <= held


def _names_of_tags(text: str) -> set[str]:
    return {name.lower() for name in _NAMED_TAG.findall(text)}


def decode_entities(text: str) -> str:
    """Return the text with `&lt;` and the like decoded outside code.

    A problem about entities keeps its own.
    """
    if "&" not in text or "entit" in text.lower():
        return text

    def decode(piece: str) -> str:
        # Some are escaped twice: `&amp;lt;`.
        decoded = _ENTITY.sub(_unescape, piece)
        while decoded != piece:
            piece = decoded
            decoded = _ENTITY.sub(_unescape, piece)
        return piece

    return outside(text, decode)


def _unescape(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def html_to_markdown(text: str) -> str:
    """Return an HTML text as Markdown: no navigation, powers as `^`, examples as plain lines."""
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    # Markdown code inside a half-HTML text is text, whatever tags it shows.
    text = CODE.sub(lambda match: html.escape(match[0], quote=False), text)
    soup = BeautifulSoup(text, "html.parser")
    _drop_unseen(soup)
    # Those inside others first.
    for element in reversed(soup.find_all(["sup", "sub"])):
        _write_script(element)
    for element in soup.find_all("pre"):
        _unwrap_example(soup, element)
    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
        autolinks=False,
        table_infer_header=True,
    )
    try:
        markdown = str(converter.convert_soup(soup)).replace("\xa0", " ")
    except RecursionError:
        # Nested as no page is: its words alone.
        markdown = soup.get_text("\n")
    # What is still a tag was written as text; escaped, it is not taken for one again.
    return outside(markdown, lambda piece: _TAG.sub(r"\\<", piece))


def _drop_unseen(soup: "BeautifulSoup") -> None:
    """Drop what a reader of the page does not see, or does not read as the statement."""
    from bs4 import Comment
    from bs4.element import ProcessingInstruction

    # A drawing can begin with `<?xml ... ?>`.
    unseen = (Comment, ProcessingInstruction)
    for string in soup.find_all(string=lambda string: isinstance(string, unseen)):
        string.extract()
    for element in soup.find_all(list(_NAVIGATION)):
        element.decompose()
    for element in soup.find_all("a"):
        # A link without words is an icon.
        if not element.get_text(strip=True) and not element.find("img"):
            element.decompose()


def _write_script(element: "Tag") -> None:
    """Replace a `sup` or `sub` by `^` or `_`.

    With parentheses if its end is unclear: `x_i`, `2^(S_1)`, `T_(i)th`.
    """
    sign = "^" if element.name == "sup" else "_"
    inner = element.get_text().strip()
    if not inner:
        element.replace_with("")
        return
    is_bare = len(inner) == 1 or inner.isalnum()
    is_bare = is_bare or re.fullmatch(r"\([^()]*\)", inner) is not None
    if is_bare and not inner.endswith(")"):
        # A letter right behind it would be read as part of it.
        is_bare = re.match(r"[^\W_]", str(element.next_sibling or "")) is None
    if is_bare:
        element.replace_with(f"{sign}{inner}")
    else:
        element.replace_with(f"{sign}({inner})")


def _unwrap_example(soup: "BeautifulSoup", element: "Tag") -> None:
    """Unwrap LeetCode's `Input: ... Output: ...` in `pre`, which are labels and not code."""
    # Without this, the text of the element would glue two lines into one.
    for line in element.find_all("br"):
        line.replace_with("\n")
    inner = element.get_text()
    # Without labels it is code: its tags go, its lines stay.
    if not _LABEL.search(inner):
        element.string = inner
        return
    block = soup.new_tag("div")
    for line in inner.strip("\n").split("\n"):
        block.append(line)
        block.append(soup.new_tag("br"))
    element.replace_with(block)

"""HTML to Markdown, navigation left out."""

from __future__ import annotations

import html
import re
from typing import Any

from microcoder.dataset.process.spans import CODE, outside

_BLOCK = "p|br|div|pre|ul|ol|li|span|strong|em|sup|sub|code|table|tr|td|th|h[1-6]|img|font|section|article|hr|a|tt|var"
_OPENING = re.compile(rf"(?<!\\)<(?:{_BLOCK})(?:\s[^<>]*)?/?>", re.IGNORECASE)
_CLOSING = re.compile(rf"(?<!\\)</(?:{_BLOCK}|b|i|u)\s*>", re.IGNORECASE)
_TAG = re.compile(rf"(?<!\\)<(?=/?(?:{_BLOCK}|b|i|u)(?:\s[^<>]*)?/?>)", re.IGNORECASE)
_ENTITY = re.compile(
    r"&(?:lt|gt|amp|nbsp|quot|apos|le|ge|leq|geq|ne|times|middot|hellip|mdash|ndash|[lr][ds]quo|minus|#\d{2,6}|#x[\da-fA-F]{2,5});"
)
_NAVIGATION = ("script", "style", "nav", "header", "footer", "aside", "button", "form", "noscript", "iframe", "svg")
_LABEL = re.compile(r"(?:input|output|输入|输出|入力|出力)\s*[:：]", re.IGNORECASE)


def looks_like_html(text: str) -> bool:
    """Tell HTML from a text that has a `<` in it; tags inside code do not count."""
    found: list[str] = []

    def look(piece: str) -> str:
        found.extend(_OPENING.findall(piece))
        found.extend(_CLOSING.findall(piece))
        return piece

    outside(text, look)
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
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(_keep_code(text), "html.parser")
    for comment in soup.find_all(string=lambda string: isinstance(string, Comment)):
        comment.extract()
    for element in soup.find_all(list(_NAVIGATION)):
        element.decompose()
    for element in soup.find_all(["sup", "sub"]):
        element.replace_with(_script(element.get_text(), "^" if element.name == "sup" else "_"))
    for element in soup.find_all("pre"):
        _unwrap_example(soup, element)
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False, escape_misc=False,
        autolinks=False, table_infer_header=True,
    )  # fmt: skip
    markdown = str(converter.convert_soup(soup)).replace("\xa0", " ")
    # What is still a tag was written as text; escaped, it is not taken for one again.
    return outside(markdown, lambda piece: _TAG.sub(r"\\<", piece))


def _keep_code(text: str) -> str:
    """Markdown code inside a half-HTML text is text, whatever tags it shows."""
    return re.sub(CODE, lambda match: html.escape(match[0], quote=False), text)


def _script(inner: str, sign: str) -> str:
    inner = inner.strip()
    return f"{sign}{inner}" if len(inner) <= 1 or inner.isalnum() else f"{sign}({inner})" if inner else ""


def _unwrap_example(soup: Any, element: Any) -> None:
    """LeetCode puts `Input: ... Output: ...` into `pre`: labels to be read, not code."""
    inner = element.get_text()
    if _LABEL.search(inner):
        block = soup.new_tag("div")
        for line in inner.strip("\n").split("\n"):
            block.append(line)
            block.append(soup.new_tag("br"))
        element.replace_with(block)
    else:
        element.string = inner

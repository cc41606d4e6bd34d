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
_FURNITURE = re.compile(
    r"(?:^|[-_ ])(?:material-icons|copy|copier|clipboard|popup|tooltip|download|toolbar|breadcrumbs?|navbar|sidebar|"
    r"share|btn|button|menu|social|advert(?:isement)?|cookie|test-data-download|input-output-copier|"
    r"sr-only|toc)(?:[-_ ]|$)",
    re.IGNORECASE,
)
"""Classes of what a page has around a problem: buttons that copy or download, menus."""
_MOST_OF_FURNITURE = 400
_LABEL = re.compile(r"(?:input|output|输入|输出|入力|出力)\s*[:：]", re.IGNORECASE)
_ABOUT_TAGS = re.compile(r"\btags?\b", re.IGNORECASE)
_EMBEDDED = re.compile(r"data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=\s]*", re.IGNORECASE)
_QUOTED = re.compile(r"(?<![=\w])\"[^\"\n]*<[^\"\n]*\"")
_EMPHASIS = ("b", "strong", "i", "em")
_INLINE = (*_EMPHASIS, "sup", "sub", "code", "tt", "var")
_SIGN = re.compile(r"(\S|\A)[ \t]*\n[ \t]*(?=[-+*] )")
_ITEM = re.compile(r"<(/?)(li|ul|ol|h[1-6])\b[^<>]*>", re.IGNORECASE)
_NESTED = re.compile(r"<(/?)([a-z][\w-]*)[^<>]*?(/?)>", re.IGNORECASE)
_EMPTY = (
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr",
)  # fmt: skip
_MOST_NESTED = 100
"""No page nests elements so deep; browsers draw the line at 512, where the library has long cost the depth's square."""
_IMAGES_STAY_IN = [
    "td", "th", "a", "p", "div", "span", "font", "center", "b", "strong", "i", "em", "figure", "li", "h1", "h2", "h3",
    "h4", "h5", "h6",
]  # fmt: skip
"""Elements in which images stay: in cells and headings the library would keep the alternative text alone."""
_SAMPLE = re.compile(r"(?:(?:sample|example)s?\s+)?(in|out)put\s*(\d*)", re.IGNORECASE)


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
    soup = BeautifulSoup(_flatten(_close_items(text)), "html.parser")
    # A drawing can begin with `<?xml ... ?>`.
    for unseen in soup.find_all(string=lambda string: isinstance(string, (Comment, ProcessingInstruction))):
        unseen.extract()
    _drop_furniture(soup)
    for string in soup.find_all(string=_SIGN):
        _keep_sign(string)
    for element in reversed(soup.find_all(["sup", "sub"])):  # those inside others first
        _write_script(element)
    _gather_items(soup)
    for element in soup.find_all(["ul", "ol"]):
        item, around = element.find_previous_sibling(), element.parent
        if item is not None and item.name == "li" and around is not None and around.name in ("ul", "ol"):
            item.append(element.extract())
    for element in soup.find_all("p"):
        # An empty one inside another parts two sentences.
        if element.find_parent("p") and not element.get_text(strip=True) and not element.find("img"):
            element.replace_with("\n")
    for element in soup.find_all(_EMPHASIS):
        kind = _EMPHASIS[:2] if element.name in _EMPHASIS[:2] else _EMPHASIS[2:]
        if element.find_parent(kind):
            element.unwrap()
        else:
            _keep_apart(element)
    for element in soup.find_all(["code", "tt", "span", "font"]):
        # Code around a block of code would be fenced twice.
        if element.find("pre"):
            element.unwrap()
    for element in soup.find_all(["code", "tt"]):
        if element.find("br") and not element.find_parent(["pre", "table"]):
            for line in element.find_all("br"):
                line.replace_with("\x00")
            lines = element.get_text().split("\x00")
            element.name, element.string = "pre", "\n".join(re.sub(r"[ \t\n]+", " ", line).strip(" ") for line in lines)
    for row in soup.find_all("tr"):
        # A row ends where the next one begins, whether it is closed or not.
        outer = row.find_parent("tr")
        if outer is not None and row.find_parent("table") is outer.find_parent("table"):
            outer.insert_after(row.extract())
    _lay_out_samples(soup)
    for element in soup.find_all("pre"):
        _unwrap_example(soup, element)
    for element in soup.find_all(["ul", "ol"]):
        # Of a list inside an item the library does not end the last line.
        if element.find_parent("li") and str(element.next_sibling or "").strip():
            element.insert_after(soup.new_tag("br"))
    converter = MarkdownConverter(
        heading_style="ATX", bullets="-", escape_asterisks=False, escape_underscores=False, escape_misc=False,
        autolinks=False, table_infer_header=True, keep_inline_images_in=_IMAGES_STAY_IN,
    )  # fmt: skip
    markdown = str(converter.convert_soup(soup)).replace("\xa0", " ")
    # What is still a tag was written as text; escaped, it is not taken for one again.
    return outside(markdown, lambda piece: _TAG.sub(r"\\<", piece))


def _close_items(text: str) -> str:
    """End list items where the next one begins, as browsers do; the parser would put it inside.

    One that stands in no list ends at a heading, too: what follows is no part of it.
    """
    pieces, at, is_open = [], 0, [False]
    for found in _ITEM.finditer(text):
        pieces.append(text[at : found.start()])
        at = found.start()
        is_end, name = bool(found[1]), found[2].lower()
        if name.startswith("h"):
            if len(is_open) == 1 and is_open[0]:
                pieces.append("</li>")
                is_open[0] = False
        elif name != "li":
            if is_end:
                pieces.append("</li>" if is_open[-1] else "")
                is_open = is_open[:-1] or [False]
            else:
                is_open.append(False)
        else:
            pieces.append("</li>" if is_open[-1] and not is_end else "")
            is_open[-1] = not is_end
    return "".join(pieces) + text[at:]


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


def _gather_items(soup: Any) -> None:
    """Put items that stand in no list into one, so that the first does not go on the line before it."""
    for item in soup.find_all("li"):
        if item.parent is None or item.parent.name in ("ul", "ol", "menu"):
            continue
        gathered = soup.new_tag("ul")
        item.insert_before(gathered)
        following: Any = item
        while following is not None and (following.name == "li" or (following.name is None and not following.strip())):
            following, one = following.next_sibling, following
            gathered.append(one.extract())


def _drop_furniture(soup: Any) -> None:
    for element in soup.find_all(list(_NAVIGATION)):
        element.decompose()
    for element in soup.find_all(True):
        if element.decomposed or element.name in ("html", "body"):
            continue
        classes = " ".join(element.get("class") or ())
        style = str(element.get("style") or "").replace(" ", "").lower()
        is_furniture = "display:none" in style or element.has_attr("hidden") or _FURNITURE.search(classes)
        # A page may be wrapped in one element of such a class; what holds the problem is no furniture.
        if is_furniture and len(element.get_text()) < _MOST_OF_FURNITURE:
            element.decompose()
    for element in soup.find_all("a"):
        # A link without words is an icon.
        if not element.get_text(strip=True) and not element.find("img"):
            element.decompose()


def _keep_sign(string: Any) -> None:
    """A line of the source that begins with a sign goes on with its formula; in Markdown it would be an item."""
    before = string.previous_sibling
    goes_on = before is not None and before.name in _INLINE
    if string.find_parent("p") and not string.find_parent(["pre", "code", "tt"]):
        string.replace_with(_SIGN.sub(lambda found: f"{found[1]} " if found[1] or goes_on else found[0], string))


def _keep_apart(element: Any) -> None:
    """Separate a multiplying star from the emphasis beside it."""
    from bs4 import NavigableString

    before, after = element.previous_sibling, element.next_sibling
    if isinstance(before, NavigableString) and before.endswith("*"):
        before.replace_with(f"{before[:-1].rstrip()} * ")
    if isinstance(after, NavigableString) and after.startswith("*"):
        after.replace_with(f" * {after[1:].lstrip()}")


def _write_script(element: Any) -> None:
    """`x_i`, `2^(S_1)`, `T_(i)th`: in parentheses where its end would not be seen."""
    around = element.parent
    if (
        around.name in _EMPHASIS
        and len(around.contents) <= 3
        and not "".join(around.find_all(string=True, recursive=False)).strip()
    ):
        # A mark between a base and its power would stand as a sign of its own: `2**^N**`.
        around.unwrap()
    sign, inner = "^" if element.name == "sup" else "_", element.get_text().strip()
    is_bare = len(inner) == 1 or inner.isalnum() or re.fullmatch(r"\([^()]*\)", inner)
    if is_bare and not inner.endswith(")"):
        is_bare = re.match(r"[^\W_]", str(element.next_sibling or "")) is None
    element.replace_with(f"{sign}{inner}" if inner and is_bare else f"{sign}({inner})" if inner else "")


def _lay_out_samples(soup: Any) -> None:
    """Turn samples that lie beside each other, in a table or in boxes, into headings with code below."""
    for table in soup.find_all("table"):
        codes = table.find_all("pre")
        said = [cell.get_text(" ", strip=True) for cell in table.find_all(["th", "td"]) if not cell.find("pre")]
        heads = [f"Sample {found[1]}put {found[2]}" for text in said if (found := _SAMPLE.fullmatch(text))]
        if codes and len(heads) == len(codes):
            _replace(soup, table, [(head, _code_of(code)) for head, code in zip(heads, codes, strict=True)])
        elif codes:
            # A table of blocks of code is there for its looks.
            for part in (*table.find_all(["thead", "tbody", "tr", "th", "td"]), table):
                part.unwrap()


def _code_of(code: Any) -> str:
    """Return the lines of a `pre`; Codeforces has each line in a `div` of its own, others end them by `br`."""
    for line in code.find_all("br"):
        line.replace_with("\n")
    lines = code.find_all("div")
    if lines:
        return "\n".join(line.get_text().strip("\n") for line in lines if not line.find("div"))
    return str(code.get_text()).strip("\n")


def _replace(soup: Any, element: Any, samples: list[tuple[str, str]]) -> None:
    block = soup.new_tag("div")
    for head, code in samples:
        heading, text = soup.new_tag("h3"), soup.new_tag("pre")
        heading.string, text.string = head, code
        block.append(heading)
        block.append(text)
    element.replace_with(block)


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

"""What MkDocs does not do by itself: files that pages link to outside docs/, equations without a
script, search without a network, llms.txt.
"""

import posixpath
import re
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page
from mkdocs.utils import get_relative_url

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(\]\()([^)\s#]+)")
_MATHS = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)
_EMPTY_HEADER = re.compile(r"<th([^>]*)></th>")
_NAMED_SEARCH = (
    'data-md-component="search" role="dialog"',
    'data-md-component="search" role="dialog" aria-label="Search"',
)
_PACKED = ".tar.xz"
_SHIM = "https://unpkg.com/iframe-worker/shim"
MOST_PAGE_BYTES = 400_000
"""Size of the largest page: beyond it a browser takes seconds to lay it out."""
_PAGES: list[Page] = []


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the repository's files that pages link to, as text under repository/:
    links then work offline.
    """
    _PAGES.clear()
    for page in list(files.documentation_pages()):
        for _, target in _LINK.findall(page.content_string):
            outside = _outside(page.src_uri, target)
            uri = outside and _address(outside)
            if outside and uri and files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, content=_content_of(ROOT / outside)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links out of docs/ to the copies."""
    _PAGES.append(page)

    def replace(match: re.Match[str]) -> str:
        outside = _outside(page.file.src_uri, match[2])
        if outside is None:
            return match[0]
        return match[1] + posixpath.relpath(
            _address(outside), posixpath.dirname(page.file.src_uri) or "."
        )

    return _LINK.sub(replace, markdown)


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Write equations as MathML, which browsers show by themselves;
    those of their own line scroll where they are wide.

    A header without text is read out as nothing, so it becomes a cell.
    """

    def replace(match: re.Match[str]) -> str:
        text = match[3].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        if match[2] == "(":
            return convert(text, display="inline")
        return f'<div class="equation" tabindex="0">{convert(text, display="block")}</div>'

    return _EMPTY_HEADER.sub(r"<td\1></td>", _MATHS.sub(replace, html))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Load from the site itself what the offline plugin loads from a server;
    name the search for readers of screens.

    A page that a browser is slow to open ends the build.
    """
    size = len(output.encode("utf-8"))
    if size > MOST_PAGE_BYTES:
        raise PluginError(
            f"{page.file.src_uri} makes a page of {size:,} bytes, and at most "
            f"{MOST_PAGE_BYTES:,} are allowed; split it"
        )
    return output.replace(_SHIM, get_relative_url("assets/iframe-worker.js", page.url)).replace(
        *_NAMED_SEARCH
    )


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:
    """Do the same in 404.html."""
    return output_content.replace(_SHIM, "assets/iframe-worker.js").replace(*_NAMED_SEARCH)


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:
    """Keep the order of the navigation for llms.txt."""
    config.extra["order"] = {page.file.src_uri: place for place, page in enumerate(nav.pages)}
    return nav


def on_post_build(config: MkDocsConfig) -> None:
    """Write llms.txt (https://llmstxt.org): every page with its first sentence,
    beside the pages' Markdown.
    """
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    section = None
    for page in sorted(
        _PAGES, key=lambda page: config.extra["order"].get(page.file.src_uri, len(_PAGES))
    ):
        if (name := _section_of(page)) != section:
            lines += ["", f"## {name}", ""]
            section = name
        lines.append(
            f"- [{page.title}]({page.file.src_uri}): {_first_sentence(page.markdown or '')}"
        )
        copy = Path(config.site_dir, page.file.src_uri)
        copy.write_text(page.markdown or "", encoding="utf-8")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _outside(source: str, target: str) -> str | None:
    """Return where in the repository a link of a page leads to,
    or None where that is inside docs/ or elsewhere.
    """
    if "://" in target or target.startswith(("mailto:", "/")):
        return None
    path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(source), target))
    if path.startswith(("docs/", "..")) or not (ROOT / path).exists():
        return None
    return path


def _address(path: str) -> str:
    if path.endswith(_PACKED):
        return f"repository/{path}"
    return f"repository/{path}.txt"


def _content_of(path: Path) -> str | bytes:
    if path.name.endswith(_PACKED):
        return path.read_bytes()
    if path.is_file():
        return path.read_text(encoding="utf-8")
    names = []
    for one in sorted(path.rglob("*")):
        if one.suffix not in ("", ".pyc"):
            names.append(str(one.relative_to(ROOT)))
    return "\n".join(names)


def _section_of(page: Page) -> str:
    ancestors: list[Any] = page.ancestors
    return ancestors[-1].title if ancestors else "Start"


def _first_sentence(markdown: str) -> str:
    """Return the first sentence that is no heading, table, picture, code or HTML."""
    plain = re.sub(r"^```.*?^```$", "", markdown, flags=re.MULTILINE | re.DOTALL)
    paragraphs = (part.strip() for part in plain.split("\n\n"))
    text = next(
        (part for part in paragraphs if part and not re.match(r"#|!|\||<|:::|    |- ", part)), ""
    )
    linked = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(text.split()))
    return re.split(r"(?<=[.?!]) ", linked)[0]

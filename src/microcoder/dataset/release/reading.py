"""A page to read a corpus by eye: random problems as a contestant sees them, each beside its source."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Iterable
from heapq import nsmallest
from pathlib import Path

from microcoder.files import write_text
from microcoder.formats.candidates import Candidate

NUM_READ = 100
_MAX_SOURCE = 30_000
_HEAD = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: {number} problems to read</title>
<style>
:root {{ color-scheme: light dark; --line: #8884; --soft: #8882; }}
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 0 auto; max-width: 100rem; padding: 1rem; }}
section {{ border-top: 2px solid var(--line); padding: .5rem 0 1rem; }}
.pair {{ display: grid; grid-template-columns: 1fr 1fr; gap: 1rem; }}
.pair > * {{ min-width: 0; overflow-x: auto; }}
pre {{ background: var(--soft); padding: .5rem; border-radius: 4px; overflow-x: auto; font-size: 13px; }}
.source {{ white-space: pre-wrap; overflow-wrap: anywhere; max-height: 60rem; overflow-y: auto; }}
table {{ border-collapse: collapse; }} td, th {{ border: 1px solid var(--line); padding: .1rem .4rem; }}
small {{ opacity: .75; }}
@media (max-width: 800px) {{ .pair {{ grid-template-columns: 1fr; }} }}
</style>
<h1>{name}: {number} of {total} problems to read</h1>
<p>Drawn by a hash of their ids. Left: as the source has it. Right: what a model is asked. Formulae stay TeX.</p>
"""


def write_reading(path: Path, candidates: Iterable[Candidate], *, name: str) -> None:
    """Write the page; nothing in a statement becomes markup or is loaded from elsewhere."""
    total = 0

    def count(found: Iterable[Candidate]) -> Iterable[Candidate]:
        nonlocal total
        for total, one in enumerate(found, 1):  # noqa: B007 - read when the page is written
            # Up to a hundred are held together; their tests are not read.
            yield one.model_copy(update={"tests": ()})

    drawn = nsmallest(NUM_READ, count(candidates), key=lambda one: hashlib.sha256(one.id.encode()).digest())
    head = _HEAD.format(name=html.escape(name), number=len(drawn), total=total)
    write_text(path, head + "\n".join(map(show_pair, drawn)) + "\n</html>\n")


def show_pair(candidate: Candidate) -> str:
    """Return one problem and its source as HTML."""
    found = candidate.statement_found
    cut = f"\n... {len(found):,} characters" if len(found) > _MAX_SOURCE else ""
    changed = "; ".join(
        f"{line.step}: {line.detail}" if line.detail else line.step
        for line in candidate.lineage
        if line.field == "statement"
    )
    said = f"{candidate.id} · {', '.join(candidate.flags) or 'no flags'} · {changed}"
    return (
        f"<section>\n<h2>{html.escape(candidate.title or candidate.id)}</h2>\n<small>{html.escape(said)}</small>\n"
        f'<div class="pair">\n<pre class="source">{html.escape(found[:_MAX_SOURCE] + cut)}</pre>\n'
        f"<div>{render_markdown(candidate.statement)}</div>\n</div>\n</section>"
    )


def render_markdown(text: str) -> str:
    """Return Markdown as HTML: tags in it are text, pictures are named and not loaded, links lead nowhere."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False}).enable("table").disable(["link", "autolink", "image"])
    return str(parser.render(text))

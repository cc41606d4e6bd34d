"""Pages can be read: short sentences, short cells, and not tables alone.

What is generated from docstrings is left out. Pages that are not rewritten yet are named below.
Each list may only shrink: a page that keeps the rule may not stay in it.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from tests.doc_pages import DOCS, without_code

MOST_WORDS = 25
"""Words of a sentence."""
MOST_CELL_WORDS = 12
"""Words of a table's cell."""
MOST_TABLE_SHARE = 0.9
"""Share of a page's words that stand in tables."""

GENERATED = {"reference.md", "commands.md"}
"""Pages that are the code's docstrings, word for word; tests/test_density.py looks at those."""
LONG_SENTENCES = {
    "judges-results.md",
    "viewer.md",
}
"""Pages with sentences that are not cut yet."""
LONG_CELLS = {
    "insights/rate_and_fate.md",
    "viewer.md",
}
"""Pages with cells that are not cut yet."""
MOSTLY_TABLES: set[str] = set()
"""Pages that are hardly anything but tables."""


def plain_text_of(page: Path) -> str:
    """Return what a reader reads: no code, equations, marks, pictures, or targets of links."""
    text = without_code(page.read_text(encoding="utf-8"))
    text = re.sub(r"^\$\$.*?^\$\$", "\n\n", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^:::.*\n(?: {4}.*\n)*", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"!\[[^]]*\]\([^)]*\)", "", text)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)


def count_words(text: str) -> int:
    """Return the number of words; a piece of code is one."""
    return len(re.findall(r"\S*\w\S*", re.sub(r"`[^`]*`", "code", text)))


def is_row(line: str) -> bool:
    return line.lstrip().startswith("|")


def cells_of(text: str) -> Iterator[str]:
    """Yield the cells of a page's tables."""
    for line in text.splitlines():
        if is_row(line) and not re.fullmatch(r"[|\s:-]+", line):
            for cell in line.strip().strip("|").split("|"):
                yield cell.strip()


def sentences_of(text: str) -> Iterator[str]:
    """Yield the sentences outside of tables; an item of a list is one by itself."""
    lines = []
    for line in text.splitlines():
        is_left_out = is_row(line) or line.startswith(("#", "    "))
        lines.append("" if is_left_out else re.sub(r"^\s*(?:[-*]|\d+\.) ", "\n\n", line))
    for paragraph in re.split(r"\n\s*\n", "\n".join(lines)):
        yield from re.split(r"(?<=[.?!])[*)\"]*\s+", " ".join(paragraph.split()))


def pages() -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each page that somebody wrote."""
    for page in sorted(DOCS.rglob("*.md")):
        name = str(page.relative_to(DOCS))
        if name not in GENERATED:
            yield name, plain_text_of(page)


def check(found: dict[str, list[str]], exempt: set[str]) -> None:
    """See that only the exempt pages break a rule, and that each of them does."""
    unexpected = {name: texts for name, texts in found.items() if name not in exempt}
    assert unexpected == {}
    assert exempt - found.keys() == set(), "these keep the rule now; take them out of the list"


def test_sentences_are_short() -> None:
    found = {}
    for name, text in pages():
        long = [sentence for sentence in sentences_of(text) if count_words(sentence) > MOST_WORDS]
        if long:
            found[name] = long
    check(found, LONG_SENTENCES)


def test_cells_are_short() -> None:
    found = {}
    for name, text in pages():
        long = [cell for cell in cells_of(text) if count_words(cell) > MOST_CELL_WORDS]
        if long:
            found[name] = long
    check(found, LONG_CELLS)


def test_pages_are_not_tables_alone() -> None:
    found = {}
    for name, text in pages():
        in_tables = sum(map(count_words, cells_of(text)))
        in_sentences = sum(map(count_words, sentences_of(text)))
        share = in_tables / max(1, in_tables + in_sentences)
        if share > MOST_TABLE_SHARE:
            found[name] = [f"{share:.2f}"]
    check(found, MOSTLY_TABLES)


UNIDIOMATIC = (
    "is mostly not given",
    "How to have it again",
    "flat sooner",
    r"CPU cores do\b",
    r"seeds tell \d",
    "a dose between",
    "not to be had",
    r"cannot be had\b",
    r"\bhangs? on\b",
    "not told apart",
)
"""Phrases that no native speaker writes; found once, they do not come back."""


def test_phrases_are_those_of_the_field() -> None:
    found = {}
    for name, text in pages():
        words = " ".join(text.split())
        hits = [phrase for phrase in UNIDIOMATIC if re.search(phrase, words)]
        if hits:
            found[name] = hits
    assert found == {}

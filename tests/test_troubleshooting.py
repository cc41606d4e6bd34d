"""Every line that docs/troubleshooting.md shows is one that the code prints."""

import ast
from functools import cache

from tests.doc_pages import DOCS, ROOT, blocks_of

VALUE = "…"
"""Stands for a value, on the page and in what is collected here."""


@cache
def messages() -> tuple[str, ...]:
    """Return the texts in the package's source, each with a mark for every value."""
    found = []
    for path in sorted((ROOT / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                found.append("".join(map(as_text, node.values)))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
    return tuple(found)


def as_text(part: ast.expr) -> str:
    if isinstance(part, ast.Constant):
        return str(part.value)
    return VALUE


def is_printed(line: str) -> bool:
    """Whether some message holds the line; an alarm's name stands before its text."""
    name, mark, rest = line.partition(": ")
    if mark and name.isidentifier() and name in messages():
        line = rest
    return any(line in message for message in messages())


def test_each_line_of_the_page_is_printed_by_the_code() -> None:
    shown = []
    for block in blocks_of((DOCS / "troubleshooting.md").read_text(encoding="utf-8")):
        if block.language == "text":
            shown += block.text.splitlines()
    assert len(shown) >= 20
    assert [line for line in shown if not is_printed(line)] == []
    assert not is_printed("the sandbox is not isolated here")

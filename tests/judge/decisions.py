"""The tables of docs/comparison.md, read as tests."""

import ast
import re
from pathlib import Path

_ROW = re.compile(r"^\| (?P<outputs>[^|]+) \| (?P<expected>[^|]+) \| (?P<verdict>right|wrong)", re.MULTILINE)


def unescape(cell: str) -> str:
    """Return the text that a cell writes with escapes."""
    return ast.literal_eval('"' + cell.replace('"', '\\"') + '"')


def read_decisions(heading: str) -> list[tuple[str, str, bool]]:
    """Return the rows of a table: every output beside what was expected, and whether it is right."""
    page = (Path(__file__).parents[2] / "docs" / "comparison.md").read_text("utf-8")
    section = page.split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = []
    for row in _ROW.finditer(section):
        outputs, expected = (re.findall("`([^`]*)`", row[name]) or [""] for name in ("outputs", "expected"))
        expected = expected if len(expected) == len(outputs) else expected * len(outputs)
        rows += [(o, e, row["verdict"] == "right") for o, e in zip(outputs, expected, strict=True)]
    return rows

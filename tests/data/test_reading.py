"""The page on which a corpus is read by eye."""

from __future__ import annotations

import re
from pathlib import Path

from microcoder.data.formats.candidates import Candidate
from microcoder.data.release.tables import NUM_READ, write_reading


def make(number: int, statement: str = "Add two numbers.") -> Candidate:
    given = Candidate(
        id=f"a/{number}", dataset="a", title=f"Sum {number}", statement_found="\\textbf{Add}", statement=statement
    )
    return given.change("process", "clean/2", "strip_tex", statement=statement + "\n")


def test_the_same_rows_are_drawn_whatever_their_order(tmp_path: Path) -> None:
    rows = [make(number) for number in range(3 * NUM_READ)]
    write_reading(tmp_path / "a.html", rows, name="set")
    write_reading(tmp_path / "b.html", reversed(rows), name="set")
    page = (tmp_path / "a.html").read_text()
    assert page == (tmp_path / "b.html").read_text()
    assert page.count("<section>") == NUM_READ
    assert f"{NUM_READ} of {3 * NUM_READ} problems" in page
    assert "\\textbf{Add}" in page
    assert "clean/2: strip_tex" in page


def test_statements_are_laid_out_and_nothing_in_them_runs_or_loads(tmp_path: Path) -> None:
    hostile = (
        "## Input\n\n| a | b |\n| --- | --- |\n| 1 | 2 |\n\n<script>alert(1)</script> ![x](http://a.b/c.png) "
        "[go](javascript:x) <img src=x onerror=y>\n\n```\n1 < 2\n```\n"
    )
    write_reading(tmp_path / "a.html", [make(1, hostile)], name="<set>")
    page = (tmp_path / "a.html").read_text()
    assert "<h2>Input</h2>" in page
    assert "<td>1</td>" in page
    assert "1 &lt; 2" in page
    assert not re.search(r"<(?:script|img|a)\b|<set>", page)

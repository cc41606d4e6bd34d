"""The page about rows: its three lines work, and it names every format with the field that its tests are in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from published_rows import ROWS

from microcoder.data.formats.rows import FORMATS
from microcoder.data.release.export import EXPORTS

PAGE = (Path(__file__).parents[3] / "docs" / "rows.md").read_text(encoding="utf-8")


def test_the_three_lines_judge_a_row() -> None:
    lines = re.search(r"```python\n(.*?)```", PAGE, re.DOTALL)
    assert lines is not None
    assert len(list(filter(None, lines[1].splitlines()))) == 3
    names = {"row": ROWS["apps"].row, "code": ROWS["apps"].right}
    exec(lines[1], names)
    assert names["verdict"].is_accepted  # type: ignore[attr-defined]  # pyrefly: ignore[missing-attribute]


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_on_the_page(name: str) -> None:
    lines = [line for line in PAGE.splitlines() if f"`{name}`" in line]
    assert lines
    if FORMATS[name].folders is None:
        row = next(line for line in lines if line.startswith("|"))
        assert any(field.strip() in row for field in re.split(r", | or ", FORMATS[name].tests_in))


@pytest.mark.parametrize("name", EXPORTS)
def test_every_form_is_on_the_page(name: str) -> None:
    assert f"| `{name}` |" in PAGE

"""Generated documents are what the code says now."""

from __future__ import annotations

import runpy
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"


def test_the_reference_is_up_to_date() -> None:
    generated = runpy.run_path(str(DOCS / "generate.py"))["render"]()
    assert (DOCS / "reference.md").read_text(encoding="utf-8") == generated, "run: make docs"

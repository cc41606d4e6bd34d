from __future__ import annotations

import re
from pathlib import Path

from microcoder.data.formats import row
from microcoder.data.formats.candidates import REASONS

DOCS = Path(__file__).parents[2] / "docs" / "dataset-audit.md"


def test_the_table_of_reasons_is_up_to_date() -> None:
    reasons = DOCS.read_text(encoding="utf-8").partition("\n## Why a row was turned away\n")[2]
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", reasons.partition("\n## ")[0], re.MULTILINE)
    assert rows == [*row.REASONS.items(), *REASONS.items()]

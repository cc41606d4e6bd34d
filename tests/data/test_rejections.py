from __future__ import annotations

import re
from pathlib import Path

from microcoder.data.formats import row
from microcoder.data.formats.candidates import REASONS

DOCS = Path(__file__).parents[2] / "docs" / "dataset-reasons.md"


def test_the_table_of_reasons_is_up_to_date() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", DOCS.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [*row.REASONS.items(), *REASONS.items()]

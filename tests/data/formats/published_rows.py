"""A row of each public format, with every field as it is published,
and what is right and wrong for it.

They are in `published_rows.jsonl`, one a line.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple


class Published(NamedTuple):
    """One row."""

    format: str
    """What it is recognised as."""
    row: dict[str, Any]
    right: str
    wrong: str


def read_rows() -> dict[str, Published]:
    """Return the rows by name."""
    lines = Path(__file__).with_suffix(".jsonl").read_text(encoding="utf-8").splitlines()
    return {one.pop("name"): Published(**one) for one in map(json.loads, lines)}


ROWS = read_rows()
STDIN = ROWS["apps"].right
CALL = ROWS["verl, an object"].right


def verl_row(truth: object, extra: object = None) -> dict[str, Any]:
    """Return a row of verl's parquet."""
    return ROWS["prime"].row | {
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"split": "train", "index": 3} if extra is None else extra,
    }

"""Rows as LiveCodeBench publishes them, and where the real files are."""

import base64
import json
import os
import pickle
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

DATA_VARIABLE = "MICROCODER_DATA"


def find_archive(name: str) -> Path:
    """Return an archive of real data; skip the test where there is none."""
    folder = Path(os.environ.get(DATA_VARIABLE) or Path(__file__).parents[3] / "shared" / "data")
    if not (folder / f"{name}.tar.xz").exists():
        pytest.skip(f"{name}.tar.xz is not here; set {DATA_VARIABLE} to the folder of real data")
    return folder / f"{name}.tar.xz"


def pack(value: object) -> str:
    """Return a value as the hidden tests are published."""
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


def make_row(name: str = "abc1_a", **changes: Any) -> dict[str, Any]:
    """Return a stdin problem: print the sum."""
    row = {
        "question_title": "Sum",
        "question_content": "Print the sum of two numbers.",
        "platform": "atcoder",
        "question_id": name,
        "contest_id": "abc1",
        "contest_date": "2024-05-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "public_test_cases": json.dumps([{"input": "1 2\n", "output": "3\n", "testtype": "stdin"}]),
        "private_test_cases": pack(
            json.dumps([{"input": "5 6\n", "output": "11\n", "testtype": "stdin"}])
        ),
        "metadata": "{}",
    }
    return row | changes


def make_call_row(name: str = "3001", **changes: Any) -> dict[str, Any]:
    """Return a function-call problem: double every number."""
    tests = [{"input": "[1, 2]", "output": "[2, 4]", "testtype": "functional"}]
    return (
        make_row(
            name,
            platform="leetcode",
            difficulty="medium",
            contest_date="2024-08-10T19:30:00",
            starter_code=(
                "class Solution:\n    def double(self, a: List[int]) -> List[int]:\n        "
            ),
            public_test_cases=json.dumps(tests),
            private_test_cases=pack(json.dumps([{**tests[0], "input": "[]", "output": "[]"}])),
            metadata=json.dumps({"func_name": "double"}),
        )
        | changes
    )


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path

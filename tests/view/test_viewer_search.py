"""Words and expressions in the texts of a run."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from viewer_runs import records_of

from microcoder.judge.core.errors import DataError
from microcoder.view import open_collection
from microcoder.view.index import IndexPart, Needle, find_texts

TEXTS: list[dict[str, str | None]] = [
    {"prompt": "Add two Numbers", "response": "def f(self):\n    return 1", "program": None, "errors": ""},
    {"prompt": "Add two Numbers", "response": "naïve café 🙂 (a+b)", "program": "x = 1", "errors": "expected '3'"},
    {"prompt": "other", "response": None, "program": "", "errors": "expected 3"},
]  # fmt: skip


def part(rows: list[dict[str, str | None]]) -> IndexPart:
    texts = {name: pa.array([row[name] for row in rows], pa.string()) for name in rows[0]}
    texts["prompt"] = texts["prompt"].dictionary_encode()
    return IndexPart(len(rows), lambda: texts)


@pytest.mark.parametrize(
    ("needle", "found"),
    [
        (Needle("add two"), [0, 1]),
        (Needle("Add two"), [0, 1]),
        (Needle("ADD"), []),
        (Needle("numbers", field="response"), []),
        (Needle("(a+b)"), [1]),
        (Needle("café"), [1]),
        (Needle(r"expected '?3", is_regex=True), [1, 2]),
        (Needle(r"expected '?3", is_regex=True, field="errors"), [1, 2]),
        (Needle(r"def \w+\(self\):\s+return", is_regex=True), [0]),
        (Needle(r"^x = \d$", is_regex=True, field="program"), [1]),
        (Needle(r"\SDD", is_regex=True), []),
        (Needle(r"\sTWO", is_regex=True), []),
    ],
)
def test_a_needle_is_found_where_it_stands(needle: Needle, found: list[int]) -> None:
    mask = find_texts([part(TEXTS[:2]), part(TEXTS[2:])], needle)
    assert list(np.flatnonzero(mask)) == found


def test_a_run_that_changes_under_a_search_is_an_error() -> None:
    with pytest.raises(DataError, match="changed while it was searched"):
        find_texts([IndexPart(2, lambda: {"response": pa.array(["x"])})], Needle("x"))


def test_errors_and_programs_of_a_run_are_searched(shelf: Path) -> None:
    collection = open_collection([shelf / "one", shelf / "eval"])
    records = records_of(collection, "one")
    for text, verdicts in (("got '<2>'", {"wrong_answer", "runtime_error"}), ("map(int, input()", {"accepted"})):
        mask = find_texts(collection["one"].parts(collection["one"].index()), Needle(text))
        assert {record["verdict"] for record, hit in zip(records, mask, strict=True) if hit} == verdicts
    mask = find_texts(collection["eval"].parts(collection["eval"].index()), Needle("got 1", field="errors"))
    assert list(mask) == [False, True, False, True]

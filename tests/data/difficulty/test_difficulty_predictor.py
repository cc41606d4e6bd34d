from __future__ import annotations

import gzip
import json
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from microcoder.data import Candidate, Solution
from microcoder.data.difficulty.predictor import (
    load_predictor,
    measure_reference,
    measure_text,
    predict_difficulty,
    predictor_version,
)

pytest.importorskip("radon")

REPOSITORY = Path(__file__).parents[3]
LONG = """from heapq import heappush
def collect(n):
    for i in range(n):
        if i:
            heappush([], i)
collect(3)
"""


def make(statement: str = "", code: str = "", **fields: object) -> Candidate:
    solutions = (Solution(code=code),) if code else ()
    return Candidate.model_validate(
        {"id": "made/p", "dataset": "made", "statement": statement, "solutions": solutions, **fields}
    )


@pytest.mark.parametrize(
    ("statement", "largest"),
    [
        (r"$1 \le n \le 10^5$", 5),
        ("1 <= n <= 105", 5),
        ("1 <= n <= 2 * 10<sup>9</sup>", 9.3),
        (r"$n \leq 3 \cdot 10^{18}$", 18),
        ("at most 1000 cats", 3),
        ("n &lt;= 200,000", 5.3),
        ("no bound", 0),
    ],
)
def test_bounds_are_read_as_statements_write_them(statement: str, largest: float) -> None:
    assert measure_text(make(statement))["bound_largest"] == pytest.approx(largest, abs=0.01)


def test_a_longer_reference_measures_more() -> None:
    short = measure_reference(make(code="print(sum(map(int, input().split())))\n"))
    long = measure_reference(make(code=LONG))
    assert short is not None
    assert long is not None
    for name in ("reference_lines", "reference_mccabe", "reference_depth", "reference_loops"):
        assert long[name] > short[name], name
    assert (short["reference_heap"], long["reference_heap"]) == (0, 1)


def test_only_a_python_program_that_parses_is_measured() -> None:
    assert measure_reference(make(code="print 1")) is None
    assert measure_reference(make(solutions=[{"code": "int main() {}", "language": "cpp"}])) is None
    assert measure_reference(make(solutions=[{"code": "pass", "known": "wrong_answer"}])) is None


@settings(max_examples=30)
@given(st.text(max_size=300), st.text(max_size=80))
def test_any_text_gets_a_difficulty_on_the_scale(statement: str, code: str) -> None:
    predicted = predict_difficulty(make(statement, code)).difficulty.predicted
    assert predicted is not None
    assert 1 <= predicted <= 5


def test_a_prediction_says_what_made_it() -> None:
    changed = predict_difficulty(make("Print 1."))
    assert changed.difficulty.predictor == f"{predictor_version()} text"
    assert [line.field for line in changed.lineage] == ["difficulty"]
    assert predict_difficulty(changed).lineage == changed.lineage


def test_the_predictor_carries_its_measured_quality() -> None:
    quality = load_predictor().quality
    assert quality["reference/leetcode_later"] > 0.6
    assert quality["text/livecodebench_atcoder"] > 0.6


def test_later_problems_of_the_platform_are_ranked_as_it_does() -> None:
    folder = Path(os.environ.get("MICROCODER_DATA") or REPOSITORY.parent / "shared" / "data")
    archive = folder / "leetcodedataset.tar.xz"
    if not archive.exists():
        pytest.skip("leetcodedataset.tar.xz is not here; set MICROCODER_DATA to its folder")
    with tarfile.open(archive) as files:
        packed = files.extractfile("leetcodedataset/LeetCodeDataset-v0.3.1-test.jsonl.gz")
        assert packed is not None
        rows = [json.loads(line) for line in gzip.decompress(packed.read()).splitlines()]
    levels: dict[str, list[float]] = {}
    for row in rows[::3]:
        candidate = make(row["problem_description"], row["completion"], starter_code=row["starter_code"], fn_name="f")
        predicted = predict_difficulty(candidate).difficulty.predicted
        levels.setdefault(row["difficulty"], []).append(predicted or 0.0)
    means = {level: sum(values) / len(values) for level, values in levels.items()}
    assert means["Easy"] + 0.5 < means["Medium"] < means["Hard"] - 0.5


def test_a_reference_too_deep_to_measure_leaves_the_text_to_decide() -> None:
    deep = "if x == 0:\n    pass\n" + "".join(f"elif x == {n}:\n    pass\n" for n in range(490))
    predicted = predict_difficulty(make("Print the sum.", deep)).difficulty
    assert predicted.predictor.endswith(" text")

"""Every adapter reads its golden rows into exactly what is expected of them."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.rows import FORMATS
from microcoder.judge import check_problem, judge
from microcoder.judge.core.types import Outcome, Program

IN_FOLDERS = [name for name, found in FORMATS.items() if found.folders is not None]
EXAMPLES = Path(__file__).parents[3] / "examples/extensions"
OF_EXAMPLES = ("cms", "dmoj", "dodona", "doocs", "polygon")
IN_FILES = [name for name in FORMATS if name not in IN_FOLDERS]
PLACE = {"id", "source_row"}


def rows_of(golden: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (golden / f"{name}.jsonl").read_text().splitlines()]


def expected_of(golden: Path, name: str) -> list[Candidate]:
    return [Candidate.model_validate(row) for row in json.loads((golden / "expected" / f"{name}.json").read_text())]


def show(found: list[Any], *, without: set[str] | None = None) -> list[dict[str, Any]]:
    return [row.model_dump(mode="json", exclude_defaults=True, exclude=without) for row in found]


def test_every_format_of_the_issue_is_there_and_every_format_has_golden_rows(golden: Path) -> None:
    assert {*FORMATS, *OF_EXAMPLES} == {path.stem for path in golden.glob("*.jsonl")}
    assert {*FORMATS, *OF_EXAMPLES} == {path.stem for path in (golden / "expected").glob("*.json")}
    assert set(FORMATS) >= {
        *("apps", "taco", "codecontests", "codecontests_plus", "livecodebench", "deepcoder", "eurus", "synthetic"),
        *("openr1_verifiable", "openr1_codeforces", "kodcode", "rstar", "hardtests", "leetcodedataset"),
        *("deepseek_leetcode", "humaneval", "mbpp", "odex", "verl", "trl", "kattis"),
    }


@pytest.mark.parametrize("name", FORMATS)
def test_golden_rows_become_what_is_expected(golden: Path, name: str) -> None:
    rows = rows_of(golden, name)
    # As a worker process gets it.
    format = pickle.loads(pickle.dumps(FORMATS[name]))
    found = [format.read_row(row, f"{name}.jsonl:{number}") for number, row in enumerate(rows, 1)]
    assert show(found) == json.loads((golden / "expected" / f"{name}.json").read_text())


@pytest.mark.parametrize("name", IN_FILES)
def test_golden_files_become_what_is_expected_packed_and_as_a_list_too(
    golden: Path, name: str, collect: Any, tmp_path: Path
) -> None:
    assert collect(golden / f"{name}.jsonl", name) == expected_of(golden, name)
    expected = show(expected_of(golden, name), without=PLACE)
    packed, as_list = tmp_path / "rows.jsonl.gz", tmp_path / "rows.json"
    packed.write_bytes(gzip.compress((golden / f"{name}.jsonl").read_bytes()))
    as_list.write_text(json.dumps(rows_of(golden, name), ensure_ascii=False, indent=1))
    for file in (packed, as_list):
        assert show(collect(file, name, 1), without=PLACE) == expected


@pytest.mark.parametrize("name", [*IN_FOLDERS, *OF_EXAMPLES])
def test_golden_folders_become_what_is_expected(
    golden: Path, name: str, collect: Any, write_row: Callable[..., Path], tmp_path: Path
) -> None:
    for row in rows_of(golden, name):
        write_row(tmp_path, name, row)
    expected = sorted(show(expected_of(golden, name), without=PLACE), key=lambda row: row["title"])
    found = collect(tmp_path, f"{EXAMPLES}/{name}.py:{name}" if name in OF_EXAMPLES else name, 1)
    assert sorted(show(found, without=PLACE), key=lambda row: row["title"]) == expected
    assert {row.source_row for row in found} == {row["name"] for row in rows_of(golden, name)}


@pytest.mark.parametrize(
    "name", ["verl", "eurus", "livecodebench", "codecontests", "openr1_verifiable", "openr1_codeforces", "rstar"]
)
def test_rows_in_parquet_are_read_as_those_in_lines(golden: Path, name: str, collect: Any, tmp_path: Path) -> None:
    """Parquet gives every row every field, empty where it has none."""
    rows = [row for row in rows_of(golden, name) if not isinstance(row.get("metadata"), list)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "rows.parquet")
    expected = show(expected_of(golden, name)[: len(rows)], without=PLACE)
    assert show(collect(tmp_path, name, 1), without=PLACE) == expected


@pytest.mark.parametrize("name", FORMATS)
def test_golden_candidates_are_read_again_unchanged_and_those_with_tests_can_be_judged(golden: Path, name: str) -> None:
    for candidate in expected_of(golden, name):
        assert Candidate.model_validate_json(candidate.model_dump_json()) == candidate
        assert not candidate.groups or len(candidate.groups) == len(candidate.tests)
        if candidate.tests and candidate.programming_language != "rust" and "needs_checker" not in candidate.flags:
            check_problem(candidate.to_problem())


@pytest.mark.parametrize("name", ["openr1_codeforces", "hardtests"])
def test_a_checker_in_python_takes_any_right_answer_and_no_other(golden: Path, name: str) -> None:
    """Also where the checker itself fails on what was printed: that is a wrong answer, not a fault of the machine."""
    problem = expected_of(golden, name)[0].to_problem()
    programs = [f"n = int(input())\nprint({printed})" for printed in ("0, n", "n, 0", "0, n + 1", "'x'", "''")]
    verdicts = judge([Program(program) for program in programs], [problem] * len(programs))
    right = [verdict.outcome is Outcome.ACCEPTED for verdict in verdicts]
    assert right == [True, True, False, False, False]
    assert Outcome.SANDBOX_FAULT not in {verdict.outcome for verdict in verdicts}


@pytest.mark.parametrize(
    ("seconds", "mebibytes", "given"), [(1, 16, (1.0, 32)), (900, 1 << 18, (600.0, 65536)), (2, 256, (2.0, 256))]
)
def test_limits_that_cannot_be_given_move_to_the_nearest_with_a_note(
    golden: Path, seconds: int, mebibytes: int, given: tuple[float, int]
) -> None:
    row = rows_of(golden, "codecontests")[0]
    row |= {"time_limit": {"seconds": seconds, "nanos": 0}, "memory_limit_bytes": mebibytes << 20}
    found = FORMATS["codecontests"].read_row(row, "codecontests.jsonl:1")
    problem = found.to_problem()
    assert (problem.time_limit_seconds, problem.memory_limit_mib) == given
    noted = {line.field for line in found.lineage if line.detail.startswith("the source says")}
    assert noted == {name for name, moved in (("memory_limit_mib", mebibytes != given[1]),
                                              ("time_limit_seconds", seconds != given[0])) if moved}  # fmt: skip

"""Sets that no format knows, read by naming their columns; tests that are published in files of their own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from microcoder.data.build.config import FileDigests, SourceSettings, list_inputs, open_settings
from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.sources import collect_shard, list_shards
from microcoder.judge.core.errors import DataError

PAIRS = {"inputs": ["1 2\n"], "outputs": ["3\n"]}


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def collect(**settings: Any) -> list[Candidate | Rejection]:
    source = open_settings(SourceSettings.model_validate(settings))
    return [row for shard in list_shards(source, 2) for row in collect_shard(source, shard)]


def test_columns_are_read_under_the_names_of_the_format(tmp_path: Path) -> None:
    rows = [{"task": {"text": "Add."}, "io": json.dumps(PAIRS), "turns": [{"content": "a"}]}, {"task": {}, "io": None}]
    columns = {"question": "task.text", "input_output": "io", "name": "turns.0.content"}
    whole, broken = collect(path=str(write_lines(tmp_path / "a.jsonl", rows)), format="apps", columns=columns)
    assert isinstance(whole, Candidate)
    assert (whole.statement, whole.tests[0].output, whole.title) == ("Add.", "3\n", "a")
    assert isinstance(broken, Rejection)
    assert (broken.reason, broken.detail) == ("missing_field", "task.text, for question; the row has io, task")


def test_a_field_inside_an_object_can_be_named(tmp_path: Path) -> None:
    rows = [{"text": "Add.", "io": PAIRS, "info": '{"source": "mine"}', "extra": {"info": {"source": "theirs"}}}]
    path = str(write_lines(tmp_path / "a.jsonl", rows))
    columns = {"question": "text", "info.tests": "io", "info.source": "extra.info.source"}
    (found,) = collect(path=path, format="intellect", columns=columns)
    assert isinstance(found, Candidate)
    assert (found.tests[0].output, found.platform) == ("3\n", "theirs")


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"quesion": "text", "input_output": "io"}, "reads no field quesion in 2 rows; did you mean question?"),
        ({"question": "text", "input_output": "io", "nonsense": "io"}, "reads no field nonsense in 2 rows; it reads "),
        ({"question": "txt"}, "none of its first 2 rows has column txt, for question; the row has io, text"),
    ],
)
def test_a_column_that_leads_nowhere_ends_the_build(tmp_path: Path, columns: dict[str, str], said: str) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"text": f"Add {n}.", "io": PAIRS} for n in range(2)])
    source = SourceSettings(path=str(path), format="apps", columns=columns)
    with pytest.raises(DataError, match=re.escape(said)):
        list_inputs([source], rows_per_shard=8, digests=FileDigests(tmp_path / "digests.json"))


def test_a_reader_of_ones_own_that_fails_is_not_called_a_fault_of_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def read(row):\n    return row.values['a'] + 1\n")
    path = write_lines(tmp_path / "a.jsonl", [{"a": 1}, {}])
    found = collect(path=str(path), format=f"{tmp_path / 'mine.py'}:read")
    refused = [row for row in found if isinstance(row, Rejection)]
    assert [row.reason for row in refused] == ["reader_fault", "reader_fault"]
    assert ["returned 2" in refused[0].detail, "KeyError: 'a'" in refused[1].detail] == [True, True]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_tests_that_are_published_apart_are_joined(tmp_path: Path, suffix: str) -> None:
    problems = [{"pid": f"p{number}", "question": f"Add {number}."} for number in range(5)]
    tests = [{"pid": f"p{number}", "test_cases": [{"input": "1", "output": str(number)}]} for number in (4, 0, 2)]
    file = tmp_path / f"tests.{suffix}"
    if suffix == "parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(tests), file)
    else:
        write_lines(file, tests)
    join = [{"path": str(file), "key": "pid"}]
    found = collect(path=str(write_lines(tmp_path / "p.jsonl", problems)), format="hardtests", join=join)
    assert all(isinstance(row, Candidate) for row in found)
    assert [[test.output for test in row.tests] for row in found] == [["0"], [], ["2"], [], ["4"]]  # type: ignore[union-attr]


def test_many_rows_of_a_key_become_a_list(tmp_path: Path) -> None:
    """As open-r1/codeforces keeps its generated tests: a row a test."""
    problem = {
        "id": "1/A",
        "contest_id": "1",
        "index": "A",
        "title": "Sum",
        "description": "Add.",
        "official_tests": [],
    }
    tests = [{"problem_id": key, "input": f"{n}\n", "output": f"{n}\n"} for key in ("1/A", "1/B") for n in range(3)]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(tests), tmp_path / "tests.parquet")
    join = {"path": str(tmp_path / "tests.parquet"), "key": "problem_id", "row_key": "id"}
    problems = str(write_lines(tmp_path / "p.jsonl", [problem]))
    (found,) = collect(path=problems, format="openr1_codeforces", join=[{**join, "into": "generated_test_cases"}])
    assert isinstance(found, Candidate)
    assert found.groups == ("generated",) * 3
    (refused,) = collect(path=problems, format="openr1_codeforces", join=[join])
    assert isinstance(refused, Rejection)
    assert "give `into`" in refused.detail


def test_a_join_decides_what_a_shard_holds_and_names_what_is_wrong_with_it(tmp_path: Path) -> None:
    problems = write_lines(tmp_path / "p.jsonl", [{"pid": "a", "question": "Add."}])
    tests = write_lines(tmp_path / "t.jsonl", [{"pid": "a", "test_cases": []}])

    def digest(**settings: Any) -> str:
        source = SourceSettings.model_validate({"path": str(problems), "format": "hardtests", **settings})
        (shard,) = list_inputs([source], rows_per_shard=8, digests=FileDigests(tmp_path / "digests.json"))
        return shard.digest

    join = {"path": str(tests), "key": "pid"}
    digests = {digest(), digest(join=[join]), digest(columns={"title": "question"})}
    write_lines(tests, [{"pid": "a", "test_cases": [{"input": "1", "output": "1"}]}])
    assert len({*digests, digest(join=[join])}) == 4
    with pytest.raises(DataError, match="no column 'key'; it has pid, test_cases"):
        collect(path=str(problems), format="hardtests", join=[{**join, "key": "key", "row_key": "pid"}])
    with pytest.raises(DataError, match="no file or folder of rows"):
        collect(path=str(problems), format="hardtests", join=[{**join, "path": str(tmp_path / "none.jsonl")}])
    with pytest.raises(DataError, match="reads folders"):
        collect(path=str(tmp_path), format="kattis", columns={"a": "b"})

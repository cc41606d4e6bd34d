"""Files of rows, whole and damaged: every row has its place, and the same one however the file is cut into shards."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.sources import collect_shard, list_shards, open_source, read_shard
from microcoder.judge.core.errors import ConfigError, DataError

NUM_ROWS = 7
WRITTEN = (".jsonl", ".jsonl.gz", ".jsonl.zst", ".ndjson", ".json", ".json.gz", ".json.zst", ".parquet")


def make_row(number: int) -> dict[str, Any]:
    return {"prompt": f"Print {number}, å\u2028.", "tests": [{"input": "", "output": f"{number}\n"}]}


def zstd(content: bytes) -> bytes:
    return pyarrow.compress(content, codec="zstd", asbytes=True)


def write_rows(path: Path, rows: list[dict[str, Any]]) -> Path:
    """Write rows in the way that the name says."""
    if path.name.endswith(".parquet"):
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=3)
        return path
    if ".json." in path.name or path.suffix == ".json":
        content = json.dumps(rows, ensure_ascii=False).encode()
    else:
        content = b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)
    pack = {".gz": gzip.compress, ".zst": zstd}.get(path.suffix, bytes)
    path.write_bytes(pack(content))
    return path


def questions(found: list[Candidate | Rejection]) -> list[str]:
    assert all(isinstance(row, Candidate) for row in found), found
    return [row.statement for row in found if isinstance(row, Candidate)]


EXPECTED = [make_row(number)["prompt"] for number in range(NUM_ROWS)]


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("rows_per_shard", [1, 2, 3, 5, 100])
def test_every_kind_of_file_is_read_whole_whatever_the_shards(
    tmp_path: Path, collect: Any, suffix: str, rows_per_shard: int
) -> None:
    file = write_rows(tmp_path / f"rows{suffix}", [make_row(number) for number in range(NUM_ROWS)])
    found = collect(file, "trl", rows_per_shard)
    assert questions(found) == EXPECTED
    assert [row.source_row for row in found] == [f"{file.name}:{number}" for number in range(1, NUM_ROWS + 1)]


def test_a_folder_is_read_file_by_file_in_the_order_of_names(tmp_path: Path, collect: Any) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for number, name in enumerate(["a.jsonl", "b.parquet", "c.json.gz", "deep/er/d.jsonl.zst", "z.jsonl"]):
        write_rows(tmp_path / name, [make_row(number)])
    (tmp_path / "README.md").write_text("not rows")
    (tmp_path / "outside.jsonl").symlink_to("/etc/passwd")
    found = collect(tmp_path, "trl", 2)
    assert questions(found) == EXPECTED[:5]
    assert found[3].source_row == "deep/er/d.jsonl.zst:1"


def test_blank_lines_a_byte_order_mark_and_other_line_ends_are_no_rows(tmp_path: Path, collect: Any) -> None:
    lines = [json.dumps(make_row(number)).encode() for number in range(3)]
    content = b"\xef\xbb\xbf" + lines[0] + b"\r\n\n  \n" + lines[1] + b"\r\n\n" + lines[2]
    (tmp_path / "rows.jsonl").write_bytes(content)
    for rows_per_shard in (1, 10):
        found = collect(tmp_path, "trl", rows_per_shard)
        assert questions(found) == EXPECTED[:3]
        assert [row.source_row for row in found] == ["rows.jsonl:1", "rows.jsonl:4", "rows.jsonl:6"]


def test_several_packed_pieces_in_one_file_are_one_file(tmp_path: Path, collect: Any) -> None:
    """As `cat a.gz b.gz` makes them."""
    lines = [json.dumps(make_row(number)).encode() + b"\n" for number in range(4)]
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(b"".join(lines[:2])) + gzip.compress(b"".join(lines[2:])))
    assert questions(collect(tmp_path, "trl", 3)) == EXPECTED[:4]
    (tmp_path / "a.jsonl.gz").unlink()
    (tmp_path / "a.jsonl.zst").write_bytes(zstd(b"".join(lines[:2])) + zstd(b"".join(lines[2:])))
    assert questions(collect(tmp_path, "trl", 3)) == EXPECTED[:4]


@pytest.mark.parametrize("rows_per_shard", [1, 3, 1000])
@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_of_a_packed_file_that_ends_early_all_that_came_before_is_kept(
    tmp_path: Path, collect: Any, suffix: str, rows_per_shard: int
) -> None:
    rows = [{"prompt": f"{number} {os.urandom(40).hex()}"} for number in range(200)]
    file = write_rows(tmp_path / f"rows{suffix}", rows)
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    found = collect(file, "trl", rows_per_shard)
    *whole, last = found
    assert questions(whole) == [row["prompt"] for row in rows[: len(whole)]]
    assert isinstance(last, Rejection)
    assert last.reason == "unreadable_file"
    assert last.detail
    if suffix == ".jsonl.gz":
        assert len(whole) > 100
        assert json.dumps(rows[len(whole)]).encode().startswith(last.raw.encode())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.jsonl.gz", b"no gzip"),
        ("rows.jsonl.gz", b""),
        ("rows.jsonl.zst", b"no zstd"),
        ("rows.parquet", b"no parquet"),
        ("rows.parquet", b""),
        ("rows.parquet", b"PAR1" + b"\xff" * 100 + b"PAR1"),
        ("rows.json.gz", gzip.compress(b'[{"prompt": "a"}]' * 100, mtime=0)[:-12]),
        ("rows.json", b'[{"prompt": "a"'),
        ("rows.json", b'[{"prompt": "\xff"}]'),
        ("rows.json", b'{"prompt" "a"}'),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_one_row_with_its_reason(
    tmp_path: Path, collect: Any, name: str, content: bytes
) -> None:
    write_rows(tmp_path / "a.jsonl", [make_row(0)])
    (tmp_path / name).write_bytes(content)
    first, *others = collect(tmp_path, "trl")
    assert isinstance(first, Candidate)
    if content == b"" and name.endswith(".gz"):
        assert not others, "an empty file holds no row"
        return
    (found,) = others
    assert found.reason in ("unreadable_file", "not_json", "not_utf8")
    assert found.source_row.startswith(name)


def test_of_a_parquet_file_damaged_inside_every_row_is_accounted_for(tmp_path: Path, collect: Any) -> None:
    rows = [{"prompt": os.urandom(2000).hex()} for _ in range(30)]
    file = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), file, row_group_size=10, use_dictionary=False)
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle - 12_000 : middle + 12_000] = b"\xff" * 24_000
    file.write_bytes(content)
    for rows_per_shard in (4, 10, 100):
        found = collect(file, "trl", rows_per_shard)
        assert len(found) == 30
        lost = [row for row in found if isinstance(row, Rejection)]
        assert lost
        assert {row.reason for row in lost} <= {"unreadable_file", "not_utf8", "wrong_value"}


def test_of_a_list_that_breaks_off_the_items_before_are_kept(tmp_path: Path, collect: Any) -> None:
    items = [json.dumps(make_row(number)) for number in range(3)]
    (tmp_path / "rows.json").write_text(f"[{items[0]}, {items[1]}, {items[2][:20]}")
    *whole, last = collect(tmp_path, "trl", 2)
    assert questions(whole) == EXPECTED[:2]
    assert isinstance(last, Rejection)
    assert (last.reason, last.raw) == ("not_json", items[2][:20])


def test_items_of_a_list_that_are_no_objects_are_turned_away_alone(tmp_path: Path, collect: Any) -> None:
    (tmp_path / "rows.json").write_text(f"[7, {json.dumps(make_row(1))}, null, []]")
    found = collect(tmp_path, "trl", 1)
    assert [row.reason if isinstance(row, Rejection) else "" for row in found] == [
        *("not_an_object", "", "not_an_object", "not_an_object")
    ]


def test_a_file_that_vanishes_after_it_was_listed_is_a_rejection_for_each_shard(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [make_row(0)])
    source = open_source(tmp_path, "trl")
    (shard,) = list_shards(source, 10)
    file.unlink()
    (found,) = collect_shard(source, shard)
    assert isinstance(found, Rejection)
    assert found.reason == "unreadable_file"


@pytest.mark.parametrize(
    ("path", "format_name", "message"),
    [
        ("gone", "trl", "does not exist; check the path"),
        ("gone/rows.jsonl", "kattis", "does not exist; check the path"),
        ("empty", "trl", "holds nothing of format trl; it needs .jsonl"),
        ("empty", "kattis", "holds nothing of format kattis; it needs problem.yaml"),
        ("text.txt", "trl", "holds nothing of format trl"),
        ("empty", "codeforces2", "unknown format 'codeforces2'; did you mean "),
    ],
)
def test_what_cannot_be_opened_is_one_clear_error(tmp_path: Path, path: str, format_name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.txt").write_text("text")
    with pytest.raises((DataError, ConfigError)) as caught:
        open_source(tmp_path / path, format_name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_source_that_is_gone_when_its_shards_are_listed_is_an_error(tmp_path: Path) -> None:
    file = write_rows(tmp_path / "rows.jsonl", [make_row(0)])
    source = open_source(file, "trl")
    with pytest.raises(DataError, match="must be 1 or more"):
        list_shards(source, 0)
    file.unlink()
    with pytest.raises(DataError, match="does not exist"):
        list_shards(source, 1)


def test_shards_are_the_same_in_every_run_and_are_read_in_any_order(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.parquet", "c.jsonl.gz", "d.json"):
        write_rows(tmp_path / name, [make_row(number) for number in range(NUM_ROWS)])
    source = open_source(tmp_path, "trl")
    shards = list_shards(source, 3)
    assert list_shards(open_source(tmp_path, "trl"), 3) == shards
    assert [shard.index for shard in shards] == list(range(len(shards)))
    forward = {shard.index: list(read_shard(source, shard)) for shard in shards}
    assert {shard.index: list(read_shard(source, shard)) for shard in reversed(shards)} == forward
    assert sum(len(rows) for rows in forward.values()) == 4 * NUM_ROWS


@pytest.mark.parametrize("ending", WRITTEN)
def test_large_rows_are_cut_into_smaller_shards_and_all_of_them_are_read(tmp_path: Path, ending: str) -> None:
    rows = [{"prompt": f"Print {number} {'x' * 2000}", "tests": []} for number in range(NUM_ROWS)]
    source = open_source(write_rows(tmp_path / f"rows{ending}", rows), "trl")
    (whole,) = list_shards(source, 100)
    assert whole.num_bytes > 2000 * NUM_ROWS if ending != ".parquet" else whole.num_bytes > 0
    shards = list_shards(source, 100, whole.num_bytes // 3)
    assert len(shards) >= 3
    places = [row.place for shard in shards for row in read_shard(source, shard)]
    assert places == [row.place for row in read_shard(source, whole)]
    assert len(places) == NUM_ROWS

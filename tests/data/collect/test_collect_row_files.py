"""Files of rows, columns of other names, joined files, names of the Hub."""

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from microcoder.data.formats.candidates import Candidate, Rejection
from microcoder.data.sources import list_shards, match_files, open_source, parse_name, read_shard
from microcoder.judge.core.errors import ConfigError, DataError
from tests.data.golden_rows import collect
from tests.data.published import write_rows as write_lines

NUM_ROWS = 7
WRITTEN = (
    ".jsonl",
    ".jsonl.gz",
    ".jsonl.zst",
    ".ndjson",
    ".json",
    ".json.gz",
    ".json.zst",
    ".parquet",
)


def make_row(number: int) -> dict[str, Any]:
    return {
        "prompt": f"Print {number}, å\u2028.",
        "tests": [{"input": "", "output": f"{number}\n"}],
    }


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
    for row in found:
        assert isinstance(row, Candidate), found
    statements = []
    for row in found:
        if isinstance(row, Candidate):
            statements.append(row.statement)
    return statements


EXPECTED = [make_row(number)["prompt"] for number in range(NUM_ROWS)]


@pytest.mark.parametrize("suffix", WRITTEN)
@pytest.mark.parametrize("rows_per_shard", [1, 3, 100])
def test_every_kind_of_file_is_read_whole_whatever_the_shards(
    tmp_path: Path,
    suffix: str,
    rows_per_shard: int,
) -> None:
    file = write_rows(tmp_path / f"rows{suffix}", [make_row(number) for number in range(NUM_ROWS)])
    found = collect(file, "trl", rows_per_shard)
    assert questions(found) == EXPECTED
    expected = [f"{file.name}:{number}" for number in range(1, NUM_ROWS + 1)]
    assert [row.source_row for row in found] == expected


def test_a_folder_is_read_file_by_file_in_the_order_of_names(tmp_path: Path) -> None:
    (tmp_path / "deep" / "er").mkdir(parents=True)
    for number, name in enumerate(
        ["a.jsonl", "b.parquet", "c.json.gz", "deep/er/d.jsonl.zst", "z.jsonl"]
    ):
        write_rows(tmp_path / name, [make_row(number)])
    (tmp_path / "README.md").write_text("not rows")
    (tmp_path / "._a.jsonl").write_text("nor these")
    (tmp_path / "outside.jsonl").symlink_to("/etc/passwd")
    found = collect(tmp_path, "trl", 2)
    assert questions(found) == EXPECTED[:5]
    assert found[3].source_row == "deep/er/d.jsonl.zst:1"


def test_blank_lines_a_byte_order_mark_and_other_line_ends_are_no_rows(tmp_path: Path) -> None:
    lines = [json.dumps(make_row(number)).encode() for number in range(3)]
    content = b"\xef\xbb\xbf" + lines[0] + b"\r\n\n  \n" + lines[1] + b"\r\n\n" + lines[2]
    (tmp_path / "rows.jsonl").write_bytes(content)
    for rows_per_shard in (1, 10):
        found = collect(tmp_path, "trl", rows_per_shard)
        assert questions(found) == EXPECTED[:3]
        assert [row.source_row for row in found] == ["rows.jsonl:1", "rows.jsonl:4", "rows.jsonl:6"]


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_of_a_packed_file_that_ends_early_all_that_came_before_is_kept(
    tmp_path: Path, suffix: str
) -> None:
    rows = [{"prompt": f"{number} {os.urandom(40).hex()}"} for number in range(200)]
    file = write_rows(tmp_path / f"rows{suffix}", rows)
    if suffix == ".jsonl.gz":
        # Several packed pieces are one file, as `cat a.gz b.gz` makes them.
        lines = file.read_bytes()
        half = gzip.decompress(lines).splitlines(keepends=True)
        file.write_bytes(gzip.compress(b"".join(half[:20])) + gzip.compress(b"".join(half[20:])))
    assert questions(collect(file, "trl", 3)) == [row["prompt"] for row in rows]
    file.write_bytes(file.read_bytes()[: file.stat().st_size * 2 // 3])
    *whole, last = collect(file, "trl", 3)
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
        ("rows.jsonl.zst", b"no zstd"),
        ("rows.parquet", b""),
        ("rows.parquet", b"PAR1" + b"\xff" * 100 + b"PAR1"),
        ("rows.json.gz", gzip.compress(b'[{"prompt": "a"}]' * 100, mtime=0)[:-12]),
        ("rows.json", b'[{"prompt": "\xff"}]'),
        ("rows.json", b'{"prompt" "a"}'),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_one_row_with_its_reason(
    tmp_path: Path,
    name: str,
    content: bytes,
) -> None:
    write_rows(tmp_path / "a.jsonl", [make_row(0)])
    (tmp_path / name).write_bytes(content)
    first, found = collect(tmp_path, "trl")
    assert isinstance(found, Rejection)
    assert isinstance(first, Candidate)
    assert found.reason in ("unreadable_file", "not_json", "not_utf8")
    assert found.source_row.startswith(name)


def test_of_a_parquet_file_damaged_inside_every_row_is_accounted_for(tmp_path: Path) -> None:
    rows = [{"prompt": os.urandom(2000).hex()} for _ in range(30)]
    file = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(rows),
        file,
        row_group_size=10,
        use_dictionary=False,
    )
    content = bytearray(file.read_bytes())
    middle = len(content) // 2
    content[middle - 12_000 : middle + 12_000] = b"\xff" * 24_000
    file.write_bytes(content)
    for rows_per_shard in (4, 10, 100):
        found = collect(file, "trl", rows_per_shard)
        assert len(found) == 30
        lost = []
        for row in found:
            if isinstance(row, Rejection):
                lost.append(row)
        assert lost
        assert {row.reason for row in lost} <= {"unreadable_file", "not_utf8", "wrong_value"}


def test_what_cannot_be_opened_is_one_clear_error(tmp_path: Path) -> None:
    for path, format_name, message in (
        (tmp_path / "gone", "trl", "does not exist; check the path"),
        (tmp_path, "trl", "holds nothing of format trl; it needs .jsonl"),
        (tmp_path, "kattis", "holds nothing of format kattis; it needs problem.yaml"),
        (tmp_path, "codeforces2", "unknown format 'codeforces2'; did you mean "),
        ("hf://datasets/a", "apps", "write hf://datasets/owner/name"),
    ):
        with pytest.raises((DataError, ConfigError)) as caught:
            open_source(path, format_name)
        assert message in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", [".jsonl.gz", ".json", ".parquet"])
def test_large_rows_are_cut_into_smaller_shards_and_all_of_them_are_read(
    tmp_path: Path, ending: str
) -> None:
    rows = [{"prompt": f"Print {number} {'x' * 2000}", "tests": []} for number in range(NUM_ROWS)]
    source = open_source(write_rows(tmp_path / f"rows{ending}", rows), "trl")
    (whole,) = list_shards(source, 100)
    num_bytes = sum(part.num_bytes for part in whole)
    assert num_bytes > 2000 * NUM_ROWS if ending != ".parquet" else num_bytes > 0
    shards = list_shards(source, 100, num_bytes // 3)
    assert len(shards) >= 3
    places = []
    for shard in shards:
        for row in read_shard(source, shard):
            places.append(row.place)
    assert places == [row.place for row in read_shard(source, whole)]
    assert len(places) == NUM_ROWS


def test_a_reader_of_ones_own_that_fails_is_not_called_a_fault_of_ours(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def read(row):\n    return row.values['a'] + 1\n")
    path = write_lines(tmp_path / "a.jsonl", [{"a": 1}, {}])
    found = collect(path, f"{tmp_path / 'mine.py'}:read")
    refused = []
    for row in found:
        if isinstance(row, Rejection):
            refused.append(row)
    assert [row.reason for row in refused] == ["reader_fault", "reader_fault"]
    assert ["returned 2" in refused[0].detail, "KeyError: 'a'" in refused[1].detail] == [True, True]


FILES = [
    "README.md",
    "data/train-00000-of-00002.parquet",
    "data/train-00001-of-00002.parquet",
    "data/test-00000-of-00001.parquet",
    "all/train.jsonl",
    "all/train/0.jsonl.gz",
    "other/train.jsonl",
]


def test_a_name_means_these_files() -> None:
    pytest.importorskip("huggingface_hub")
    for name, revision, expected in (
        ("hf://datasets/a-1/b.c/", None, FILES[1:]),
        ("hf://datasets/a-1/b.c@main/default/train", "main", FILES[1:3]),
        ("hf://datasets/a-1/b.c@refs%2Fpr%2F1/all/train", "refs/pr/1", FILES[4:6]),
        ("hf://datasets/a-1/b.c/all/train.jsonl", None, FILES[4:5]),
        ("hf://datasets/a-1/b.c/data", None, FILES[1:4]),
        ("hf://datasets/a-1/b.c/nothing", None, []),
    ):
        parsed = parse_name(name)
        assert parsed.repository == "a-1/b.c"
        assert parsed.revision == revision
        assert match_files(FILES, parsed) == sorted(expected)
    for wrong in ("hf://a/b", "hf://datasets/a/b@", "hf://datasets/a/b c", "a/b"):
        with pytest.raises(DataError, match="write hf://datasets/owner/name"):
            parse_name(wrong)

"""Names of data sets on the Hub; what is downloaded is not tested here, as there is no network."""

from __future__ import annotations

import pytest

from microcoder.data.sources import HubName, match_files, open_source, parse_name
from microcoder.judge.core.errors import DataError

FILES = [
    "README.md",
    "data/train-00000-of-00002.parquet",
    "data/train-00001-of-00002.parquet",
    "data/test-00000-of-00001.parquet",
    "all/train.jsonl",
    "all/train/0.jsonl.gz",
    "other/train.jsonl",
]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hf://datasets/a/b", HubName("a/b", None, "")),
        ("hf://datasets/a/b/", HubName("a/b", None, "")),
        ("hf://datasets/a-1/b.c@main", HubName("a-1/b.c", "main", "")),
        ("hf://datasets/a/b@refs%2Fpr%2F1/all/train", HubName("a/b", "refs/pr/1", "all/train")),
    ],
)
def test_names_are_read(name: str, expected: HubName) -> None:
    assert parse_name(name) == expected


@pytest.mark.parametrize("name", ["hf://a/b", "hf://datasets/a", "hf://datasets/a/b@", "hf://datasets/a/b c", "a/b"])
def test_what_is_no_name_is_one_clear_error(name: str) -> None:
    with pytest.raises(DataError, match="write hf://datasets/owner/name"):
        parse_name(name)
    if name.startswith("hf://"):
        with pytest.raises(DataError, match="is no name of a data set"):
            open_source(name, "apps")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("", FILES[1:]),
        ("default/train", FILES[1:3]),
        ("default/test", FILES[3:4]),
        ("all/train", FILES[4:6]),
        ("all/train.jsonl", FILES[4:5]),
        ("data", FILES[1:4]),
        ("nothing", []),
    ],
)
def test_a_name_means_these_files(path: str, expected: list[str]) -> None:
    pytest.importorskip("huggingface_hub")
    assert match_files(FILES, HubName("a/b", None, path)) == sorted(expected)

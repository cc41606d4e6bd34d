"""The light columns: what the page is sent, and the names of rollouts."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from viewer_runs import LIGHT_ROWS, index_of

from microcoder.view.index import IndexBuilder


def head_of(pack: bytes) -> tuple[dict[str, Any], int]:
    """The header of a pack, and where its columns begin."""
    (size,) = struct.unpack_from("<I", pack)
    return json.loads(pack[4 : 4 + size]), 4 + size


EVERY = ["heldout/0/0", "train/1/0", "train/1/1", "train/1/2", "train/12/0"]


def test_every_name_finds_its_rollout_and_no_other_name_does() -> None:
    index = index_of(LIGHT_ROWS)
    assert [index.find(name) for name in EVERY] == [0, 1, 2, 3, 4]
    for name in ("", "train", "train/1", "train/1/9", "train/x/0", "other/1/0", "train/1/" + "9" * 30, "train/-1/0"):
        assert index.find(name) is None


def test_a_record_tells_unknown_from_zero() -> None:
    record = index_of(LIGHT_ROWS).record(4)
    assert (record["reward"], record["num_tokens"], record["is_truncated"]) == (None, None, False)


def test_the_pack_holds_every_column_at_its_place() -> None:
    index = index_of(LIGHT_ROWS)
    pack = index.pack()
    head, at = head_of(pack)
    assert (head["num"], at % 8) == (5, 0)
    columns = {}
    for name, kind in head["columns"]:
        columns[name] = np.frombuffer(pack, dtype=kind, count=head["num"], offset=at)
        at += -(-columns[name].nbytes // 8) * 8
    assert at == len(pack)
    assert columns.keys() == index.columns.keys()
    for name, column in columns.items():
        assert np.allclose(column, index.columns[name], equal_nan=True), name


def test_many_problems_have_wider_codes() -> None:
    rows = [{"split": "train", "step": 1, "row": n, "problem_id": f"p{n}"} for n in range(300)]
    head, _ = head_of(index_of(rows).pack())
    assert dict(head["columns"])["problem_id"] == "uint16"


def test_files_that_go_take_their_rollouts_along() -> None:
    builder = IndexBuilder()
    assert len(builder.build()) == 0
    assert builder.build().count("verdict") == {}
    builder.put_rows("file", [{"split": "train", "step": 1, "row": 0}])
    before = builder.build()
    builder.drop(["file"])
    after = builder.build()
    assert (len(before), len(after), before.version < after.version) == (1, 0, True)

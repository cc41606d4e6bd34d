"""The light columns: what the page is sent, and the names of rollouts."""

from __future__ import annotations

import json
import struct

import numpy as np
from viewer_runs import LIGHT_ROWS, index_of

from microcoder.view.index import IndexBuilder

EVERY = ["heldout/0/0", "train/1/0", "train/1/1", "train/1/2", "train/12/0"]


def test_every_name_finds_its_rollout_and_no_other_name_does() -> None:
    index = index_of(LIGHT_ROWS)
    assert [index.find(name) for name in EVERY] == [0, 1, 2, 3, 4]
    for name in ("", "train", "train/1", "train/1/9", "train/x/0", "other/1/0", "train/1/" + "9" * 30, "train/-1/0"):
        assert index.find(name) is None


def test_a_record_tells_unknown_from_zero() -> None:
    record = index_of(LIGHT_ROWS).record(4)
    assert (record["reward"], record["num_tokens"], record["is_truncated"]) == (None, None, False)


def test_the_pack_holds_every_column_at_its_place_with_wider_codes_for_many_problems() -> None:
    many = [{"split": "train", "step": 1, "row": n, "problem_id": f"p{n}"} for n in range(300)]
    for rows, width in ((LIGHT_ROWS, "uint8"), (many, "uint16")):
        index = index_of(rows)
        pack = index.pack()
        (size,) = struct.unpack_from("<I", pack)
        head, at, columns = json.loads(pack[4 : 4 + size]), 4 + size, {}
        assert (head["num"], at % 8, dict(head["columns"])["problem_id"]) == (len(rows), 0, width)
        for name, kind in head["columns"]:
            columns[name] = np.frombuffer(pack, dtype=kind, count=head["num"], offset=at)
            at += -(-columns[name].nbytes // 8) * 8
        assert at == len(pack)
        assert columns.keys() == index.columns.keys()
        for name, column in columns.items():
            assert np.allclose(column, index.columns[name], equal_nan=True), name


def test_files_that_go_take_their_rollouts_along() -> None:
    builder = IndexBuilder()
    assert len(builder.build()) == 0
    assert builder.build().count("verdict") == {}
    builder.put_rows("file", [{"split": "train", "step": 1, "row": 0}])
    before = builder.build()
    builder.drop(["file"])
    after = builder.build()
    assert (len(before), len(after), before.version < after.version) == (1, 0, True)

"""The golden pack's comparison names what moved; the pack itself is for `make golden`."""

from __future__ import annotations

import json
from pathlib import Path

from golden_values import compare_packs, flatten, shorten, steady, without_measures

OLD = {
    "verdicts": {"fork": "accepted", "loop": "time_limit"},
    "corpus": {"lineage.jsonl row 17": "1f00"},
    "verl": {"weights a": "77"},
}


def test_each_value_that_moved_is_gone_or_is_new_has_its_line() -> None:
    assert compare_packs(OLD, OLD) == []
    new = {"verdicts": {"fork": "time_limit", "sleep": "time_limit"}, "corpus": OLD["corpus"]}
    assert compare_packs(OLD, new) == [
        "verdicts/fork: accepted -> time_limit",
        "verdicts/loop: gone, was time_limit",
        "verdicts/sleep: new, time_limit",
    ]  # A part that was skipped is not compared.
    assert compare_packs({}, {"help": {"judge": "12"}}) == ["help/judge: new, 12"]


def test_values_tell_nothing_of_machine_or_version(tmp_path: Path) -> None:
    said = f"{tmp_path}/run: microcoder.judge.core.types and src/microcoder/a/b.py:12 at 0x7f0012ab34 on 127.0.0.1:8017"
    assert steady(said, tmp_path) == "PLACE/run: MODULE and MODULE at ADDRESS on HOST"
    row = {"reward": 1, "seconds": {"total": 3}, "tests": [{"verdict": "accepted", "memory_mib": 9}]}
    assert without_measures(row) == {"reward": 1, "tests": [{"verdict": "accepted"}]}
    # A long value is short, and differs where its end does.
    first, second = (shorten("x" * 300 + end) for end in "ab")
    assert first != second
    assert len(first) < 80
    assert flatten({"a": {"b": 1}, "c": [2]}, "row") == {"row.a.b": "1", "row.c": "[2]"}


def test_the_pack_that_is_committed_can_be_read_and_reviewed() -> None:
    path = Path(__file__).with_name("golden.json")
    pack = json.loads(path.read_text())
    assert sum(map(len, pack["parts"].values())) > 5000
    assert path.stat().st_size < 600_000

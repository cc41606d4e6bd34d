"""The golden pack's comparison names what moved; the pack itself is for `make golden`."""

import json
from pathlib import Path

from golden_values import compare_packs

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


def test_the_pack_that_is_committed_can_be_read_and_reviewed() -> None:
    path = Path(__file__).with_name("golden.json")
    pack = json.loads(path.read_text())
    assert sum(map(len, pack["parts"].values())) > 5000
    assert path.stat().st_size < 600_000

"""`microcoder audit-judge` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from microcoder.cli import main


def test_an_audit_is_a_page_and_a_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "audit"
    (tmp_path / "gullible.py").write_text("def judge(code, tests, time_limit):\n    return True\n")
    judges = ["--judge", "microcoder", "--judge", f"function@1.0={tmp_path}/gullible.py:judge"]
    suites = [word for suite in ("forgery", "fidelity", "pairs", "isolation") for word in ("--suite", suite)]
    main(["audit-judge", *judges, *suites, "--most", "5", "--seed", "3", "--lanes", "1", "--out", str(out)])
    assert capsys.readouterr().out.strip() == str(out / "audit.md")
    page, record = (out / "audit.md").read_text(), json.loads((out / "audit.json").read_text())
    assert page.index("## Our own misses\n\nNone in these cases.") < page.index("## Side by side")
    ours, gullible = record["judges"]
    assert [suite["misses"] for suite in ours["suites"].values()] == [0] * len(ours["suites"])
    assert gullible["suites"]["forgery"]["misses"] == gullible["suites"]["forgery"]["asked"] > 20
    assert gullible["suites"]["right pairs"]["misses"] == 0
    assert (gullible["version"], record["seed"], gullible["is_contained"]) == ("1.0", 3, True)

"""`microcoder doctor` says what holds here, and fails where programs could not be judged."""

from __future__ import annotations

import json

import pytest

from microcoder.cli import main
from microcoder.judge import Judge
from microcoder.judge.fleet.probes import PROBES, run_probes
from microcoder.judge.sandbox.layers import LAYERS, SECCOMP


def test_everything_is_named_and_the_self_test_passes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert found["isolation"]["level"] in ("full", "degraded")
    assert 1 <= found["time_scale"] <= 4
    assert set(found["languages"]) >= {"python", "cpp"}
    assert len(found["self_test"]) >= len(PROBES) - 1


def test_the_page_for_people_has_a_line_a_layer(capsys: pytest.CaptureFixture[str]) -> None:
    main(["doctor"])
    page = capsys.readouterr().out
    for layer in LAYERS:
        assert f"  {layer.replace('_', ' ')}" in page
    assert page.endswith("all is well\n")


def test_a_hole_in_the_sandbox_is_found() -> None:
    with Judge(workers=1, layers=set(LAYERS) - {SECCOMP}, unsafe=True) as judging:
        findings = {finding.name: finding.is_ok for finding in run_probes(judging)}
    assert not findings["no other process starts"]
    assert findings["a right program is accepted"]

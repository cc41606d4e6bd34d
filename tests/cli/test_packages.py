"""`microcoder packages`: what programs may import; `microcoder doctor`: what holds here,
and what is missing.
"""

import json
from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.cli.doctor import PROBES, describe, run_probes
from microcoder.judge import Judge
from microcoder.judge.languages.definition import CURRENT_VERSION
from microcoder.judge.sandbox.protocol import LAYERS, Layer
from tests.wheels import keep_packages_in


@pytest.fixture
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    keep_packages_in(tmp_path, monkeypatch)
    return tmp_path


def test_profiles_are_listed(own_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["packages"])
    shown = capsys.readouterr().out
    assert "not installed; type: microcoder packages standard" in shown
    assert "  numpy==" in shown
    assert f"kept in {own_root / 'packages'}, for Python {CURRENT_VERSION}" in shown


@pytest.mark.parametrize(
    ("pins", "message"),
    [("sortedcontainers==0.0.1\n", "failed: ERROR: "), ("numpy>=2\n", "write exact pins")],
)
def test_what_cannot_be_had_is_said_in_one_line(
    own_root: Path,
    capsys: pytest.CaptureFixture[str],
    pins: str,
    message: str,
) -> None:
    (own_root / "own.txt").write_text(pins)
    with pytest.raises(SystemExit) as ended:
        main(["packages", str(own_root / "own.txt")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    left = []
    for path in own_root.glob("packages/*"):
        if path.suffix != ".lock":
            left.append(path)
    assert not left, "nothing half made stays"


def test_doctor_names_everything_and_what_is_missing(
    own_root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (own_root / "own.txt").write_text("sortedcontainers==0.0.2\n")
    main(["doctor", "--json", "--packages", str(own_root / "own.txt")])
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert found["isolation"]["level"] in ("full", "degraded")
    assert 1 <= found["time_scale"] <= 4
    assert set(found["languages"]) >= {"python", "cpp"}
    assert len(found["self_test"]) >= len(PROBES) - 1
    packages = found["environment"]["packages"]
    assert packages["pins"] == ["sortedcontainers==0.0.2"]
    assert f"type `microcoder packages {own_root / 'own.txt'}`" in packages["missing"]
    page = describe(found)
    unnamed = []
    for layer in LAYERS:
        if not any(f"  {layer.replace('_', ' ')}" in line for line in page):
            unnamed.append(layer)
    assert unnamed == []
    assert page[-1] == "all is well"


def test_a_hole_in_the_sandbox_is_found() -> None:
    with Judge(workers=1, layers=set(LAYERS) - {Layer.SECCOMP}, unsafe=True) as judging:
        findings = {finding.name: finding.is_ok for finding in run_probes(judging)}
    assert not findings["no other process starts"]
    assert findings["a right program is accepted"]

"""`microcoder packages`: what programs may import, put where judges find it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from microcoder.cli import main
from microcoder.cli.doctor import examine
from microcoder.cli.judge_options import SandboxFlags
from microcoder.judge.languages.interpreter import CURRENT_VERSION
from wheels import keep_packages_in, make_wheel


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


def test_a_profile_is_installed(own_root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pins = own_root / "own.txt"
    pins.write_text("sortedcontainers==2.4.0\n")
    make_wheel(own_root, "sortedcontainers", "2.4.0", "SortedList = sorted\n")
    main(["packages", str(pins)])
    folder = Path(capsys.readouterr().out.split(": ")[1].strip())
    assert (folder / "sortedcontainers" / "__init__.py").read_text() == "SortedList = sorted\n"
    about = json.loads((folder / "profile.json").read_text())
    assert (about["profile"], about["pins"]) == ("own", ["sortedcontainers==2.4.0"])


@pytest.mark.parametrize(
    ("pins", "message"),
    [
        ("sortedcontainers==0.0.1\n", "failed: ERROR: "),
        ("numpy>=2\n", "write exact pins"),
    ],
)
def test_what_cannot_be_had_is_said_in_one_line(
    own_root: Path, capsys: pytest.CaptureFixture[str], pins: str, message: str
) -> None:
    (own_root / "own.txt").write_text(pins)
    with pytest.raises(SystemExit) as ended:
        main(["packages", str(own_root / "own.txt")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    left = [path for path in own_root.glob("packages/*") if path.suffix != ".lock"]
    assert not left, "nothing half made stays"


def test_doctor_says_what_is_missing(own_root: Path) -> None:
    (own_root / "own.txt").write_text("sortedcontainers==0.0.2\n")
    found = examine(SandboxFlags(packages=str(own_root / "own.txt")))
    packages = found["environment"]["packages"]
    assert packages["pins"] == ["sortedcontainers==0.0.2"]
    assert f"type `microcoder packages {own_root / 'own.txt'}`" in packages["missing"]
    assert CURRENT_VERSION in found["versions"]["python"]

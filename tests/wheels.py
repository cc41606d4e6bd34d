"""Wheels made by hand, so that installing can be tested without a package index."""

import zipfile
from pathlib import Path

import pytest

from microcoder.judge.languages.kept_folders import ROOT_VARIABLE


def make_wheel(folder: Path, name: str, version: str, text: str, *, needs: str = "") -> None:
    """Write a wheel of one package with this `__init__.py`, for PIP_FIND_LINKS."""
    about = f"{name}-{version}.dist-info"
    files = {
        f"{name}/__init__.py": text,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{about}/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = "".join(f"{path},,\n" for path in (*files, f"{about}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, content in {**files, f"{about}/RECORD": record}.items():
            wheel.writestr(path, content)


def keep_packages_in(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Have packages installed below a folder, from wheels that lie in it alone."""
    patch.setenv(ROOT_VARIABLE, str(folder / "packages"))
    patch.setenv("PIP_NO_INDEX", "1")
    patch.setenv("PIP_FIND_LINKS", str(folder))
    patch.setenv("UV_OFFLINE", "1")

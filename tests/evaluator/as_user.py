"""Start a Python of ours as somebody else: as we are, or as a user without rights."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import microcoder

USERS = ("ourselves", "nobody")
_NOBODY = 65534
_TESTS = Path(__file__).parents[1]


def run_python(arguments: Sequence[str], user: str) -> subprocess.CompletedProcess[str]:
    """Run Python with this package and these tests importable; skips the test where that user cannot."""
    if user == "ourselves":
        environment = {**os.environ, "PYTHONPATH": str(_TESTS)}
        return subprocess.run(
            [sys.executable, *arguments], env=environment, cwd="/", capture_output=True, text=True, check=False
        )
    if os.geteuid() != 0:
        pytest.skip("needs root to become someone else")
    modules = (microcoder, pytest, pytest.importorskip("pydantic"))
    packages = {str(_TESTS), *(str(Path(str(module.__file__)).parents[1]) for module in modules)}
    result = subprocess.run(
        [_system_python(), *arguments],
        env={"PYTHONPATH": os.pathsep.join(packages), "PYTHONDONTWRITEBYTECODE": "1", "PATH": "/usr/bin:/bin"},
        cwd="/",
        user=_NOBODY,
        group=_NOBODY,
        extra_groups=[],
        capture_output=True,
        text=True,
        check=False,
    )
    if "PermissionError" in result.stderr or "ModuleNotFoundError" in result.stderr:
        pytest.skip("the packages are readable by root only")
    return result


def _system_python() -> str:
    """Return a Python of our version that any user can run, with which our packages work too."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    probe = [python or "", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    if python is None or subprocess.run(probe, capture_output=True, text=True, check=False).stdout.strip() != version:
        pytest.skip(f"no system Python {version} that another user could run")
    return python

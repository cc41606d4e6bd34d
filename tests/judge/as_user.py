"""Start a Python of ours somewhere else: as we are, as a user without rights,
or as in a container.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import microcoder

_NOBODY = 65534
SETTINGS = {
    "ourselves": None,
    "nobody": ("", _NOBODY),
    "nobody in a container": ("default", _NOBODY),
    "root in a container": ("default,docker-root", 0),
    "root without capabilities in a container": ("default", 0),
}
"""What `container` makes of the process, and the user; None stays as we are."""
PLACES_TOO_OPEN = {
    "nobody without Landlock in a container": ("default,no-landlock", _NOBODY),
    "gVisor": ("no-mounts,no-landlock", _NOBODY),
}
"""Where programs cannot be closed in."""
_ROOT = Path(__file__).parents[2]


def run_python(arguments: Sequence[str], setting: str) -> subprocess.CompletedProcess[str]:
    """Run Python with this package and these tests importable;
    skips the test where that cannot be.
    """
    place = {**SETTINGS, **PLACES_TOO_OPEN}[setting]
    if place is None:
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        return _run([sys.executable, *arguments], environment)
    if os.geteuid() != 0:
        pytest.skip("needs root to become someone else")
    modules = (microcoder, pytest, pytest.importorskip("pydantic"))
    packages = {str(_ROOT), *(str(Path(str(module.__file__)).parents[1]) for module in modules)}
    environment = {
        "PYTHONPATH": os.pathsep.join(packages),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PATH": "/usr/bin:/bin",
    }
    python = _system_python()
    command = [python, "-m", "tests.judge.container", place[0], str(place[1]), python, *arguments]
    result = _run(command, environment)
    if "PermissionError" in result.stderr or "ModuleNotFoundError" in result.stderr:
        pytest.skip("the packages are readable by root only")
    return result


def contain_suite(suite: str, setting: str, *arguments: str) -> str:
    """Judge a suite of `safety_suites` in a setting; return its level.

    No program may get through or leave anything.
    """
    result = run_python(["-m", "tests.judge.safety_suites", suite, *arguments], setting)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["complaints"] == {}, report["complaints"]
    assert report["left"] == [], report["left"]
    return str(report["level"])


def _run(command: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )


def _system_python() -> str:
    """Return a Python of our version that any user can run, with which our packages work too."""
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    probe = [python or "", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    if (
        python is None
        or subprocess.run(probe, capture_output=True, text=True, check=False).stdout.strip()
        != version
    ):
        pytest.skip(f"no system Python {version} that another user could run")
    return python

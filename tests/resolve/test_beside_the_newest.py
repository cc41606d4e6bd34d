"""Each extra beside the newest TRL, transformers, torch, vLLM and verl that the index serves.

uv decides, from metadata alone: nothing is installed. Conflicts are those that docs/install.md
names, and no others, so that a new release elsewhere fails this test until the page says so.
"""

import functools
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from tests.doc_pages import DOCS, ROOT

UV = os.environ.get("UV", shutil.which("uv"))
NAMES = ("trl", "transformers", "torch", "vllm", "verl")
PYTHON = "3.12"
PLATFORM = "x86_64-manylinux_2_28"

pytestmark = pytest.mark.skipif(not UV, reason="needs uv; type: make test-resolve")


def list_extras() -> list[str]:
    """Return what a user may ask for: the core, and every extra but those of our own tools."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {*project["optional-dependencies"]} - {"docs", "dev"}
    return ["", *sorted(extras)]


def resolve(*requirements: str) -> "subprocess.CompletedProcess[str]":
    """Ask uv for versions that fit together."""
    assert UV
    return subprocess.run(
        [
            UV,
            "pip",
            "compile",
            "-",
            "--quiet",
            "--no-header",
            "--no-annotate",
            "--python-version",
            PYTHON,
            "--python-platform",
            PLATFORM,
        ],
        input="\n".join(requirements),
        capture_output=True,
        text=True,
        check=False,
    )


@functools.cache
def find_newest(name: str) -> str:
    """Return the newest release of a package, `name==version`."""
    resolved = resolve(name)
    assert resolved.returncode == 0, resolved.stderr
    found = re.search(rf"^{name}==\S+", resolved.stdout, re.MULTILINE)
    assert found
    return found[0]


def read_conflicts() -> dict[tuple[str, str], str]:
    """Return what the page says conflicts: extra and package -> why."""
    page = (DOCS / "install.md").read_text(encoding="utf-8")
    _, _, section = page.partition("## Beside the newest of others\n")
    conflicts = {}
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.+) \|$", section, re.MULTILINE)
    for extra, package, why in rows:
        conflicts[extra, package.lower()] = why
    return conflicts


@pytest.mark.parametrize("package", NAMES)
@pytest.mark.parametrize("extra", list_extras(), ids=lambda extra: extra or "core")
def test_an_extra_fits_beside_the_newest_unless_the_page_says_why_not(
    extra: str, package: str
) -> None:
    ours = "microcoder"
    if extra:
        ours = f"microcoder[{extra}]"
    newest = find_newest(package)
    resolved = resolve(f"{ours} @ {Path(ROOT).as_uri()}", newest)
    if (extra, package) in read_conflicts():
        assert resolved.returncode, f"{extra} fits beside {newest}; take it off docs/install.md"
        # Not for want of an index, or of the package itself.
        assert "your requirements are unsatisfiable" in resolved.stderr
    else:
        assert resolved.returncode == 0, f"beside {newest}:\n{resolved.stderr}"


def test_the_page_names_conflicts_of_extras_that_there_are() -> None:
    conflicts = read_conflicts()
    assert conflicts
    for extra, package in conflicts:
        assert extra in list_extras()
        assert package in NAMES

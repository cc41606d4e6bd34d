"""Which interpreter runs the programs, and which of its files they may read."""

from __future__ import annotations

import glob
import importlib.util
import os
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_PACKAGES = ("numpy", "sortedcontainers", "tzdata")
"""Third-party packages a program may import where they are installed; nothing else of the environment is visible."""

_PRELOAD = (
    "array bisect collections contextlib copy dataclasses datetime decimal enum fractions functools heapq io itertools "
    "json math operator os queue random re statistics string sys threading time typing"
)
STANDARD_PRELOAD = tuple(_PRELOAD.split())


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and the files it needs."""

    executable: str
    stdlib: str
    libraries: tuple[str, ...]
    hidden: tuple[str, ...]
    """Folders inside the libraries that programs must not read: installed packages, this one among them."""
    packages: dict[str, str]


@cache
def current_interpreter() -> Interpreter:
    """Return the interpreter this process runs on, without its virtual environment."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    stdlib = os.path.realpath(sysconfig.get_path("stdlib"))
    library_folder = str(Path(stdlib).parent)
    libraries = tuple(path for path in (*_SYSTEM_LIBRARIES, library_folder) if os.path.exists(path))
    real = {os.path.realpath(path) for path in libraries}
    hidden = {
        os.path.realpath(found)
        for folder in real
        for name in ("site-packages", "dist-packages")
        for found in glob.glob(f"{folder}/python*/{name}")
    }
    return Interpreter(executable, stdlib, libraries, tuple(sorted(hidden)), _find_packages())


def _find_packages() -> dict[str, str]:
    found = {}
    for name in _PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is None or not spec.submodule_search_locations:
            continue
        folder = os.path.realpath(next(iter(spec.submodule_search_locations)))
        found[name] = folder
        if os.path.isdir(f"{folder}.libs"):
            found[f"{name}.libs"] = f"{folder}.libs"
    return found

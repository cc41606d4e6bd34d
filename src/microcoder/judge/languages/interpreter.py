"""Which Python runs the programs, the one that MicroCoder runs on, and which of its files they may read."""

from __future__ import annotations

import glob
import os
import platform
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

CURRENT_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")

_PRELOAD = (
    "array bisect collections contextlib copy dataclasses datetime decimal enum fractions functools heapq io itertools "
    "json math operator os queue random re statistics string sys threading time typing"
)
STANDARD_PRELOAD = tuple(_PRELOAD.split())


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python and the files it needs."""

    executable: str
    """The interpreter itself, without its virtual environment."""
    version: str
    """All of it, such as 3.13.0."""
    abi: str
    """ABI tag that compiled packages must have, such as cpython-313-x86_64-linux-gnu."""
    stdlib: str
    libraries: tuple[str, ...]
    hidden: tuple[str, ...]
    """Folders inside the libraries that programs must not read: installed packages, this one among them."""


@cache
def current_interpreter() -> Interpreter:
    """Return the interpreter this process runs on, without its virtual environment."""
    executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    stdlib = os.path.realpath(sysconfig.get_path("stdlib"))
    libraries = tuple(path for path in (*_SYSTEM_LIBRARIES, str(Path(stdlib).parent)) if os.path.exists(path))
    hidden = {
        os.path.realpath(found)
        for folder in map(os.path.realpath, libraries)
        for name in ("site-packages", "dist-packages")
        for found in glob.glob(f"{folder}/python*/{name}")
    }
    abi = sysconfig.get_config_var("SOABI") or ""
    return Interpreter(executable, platform.python_version(), abi, stdlib, libraries, tuple(sorted(hidden)))

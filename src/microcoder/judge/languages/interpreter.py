"""Which Python runs the programs, and which of its files they may read.

Without a word from the problem it is the one that MicroCoder runs on; a problem may ask for another version, which is
looked for on this machine.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from microcoder.judge.core.errors import ConfigError, EvaluatorFault

PYTHONS_VARIABLE = "MICROCODER_PYTHONS"
"""Environment variable: paths of further interpreters, separated by colons; looked at before all other places."""
CURRENT_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"

_SYSTEM_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_FOLDERS_OF_VERSIONS = (
    "{pyenv}/versions/{version}.*/bin/python{version}",
    "{home}/.local/share/uv/python/cpython-{version}.*/bin/python{version}",
    "/usr/local/bin/python{version}",
    "/opt/python{version}/bin/python{version}",
)
_PROBE_SECONDS = 60.0
_DESCRIBE = """
import json, os, platform, sys, sysconfig
executable = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
stdlib = os.path.realpath(sysconfig.get_path("stdlib"))
description = [executable, platform.python_version(), stdlib, sysconfig.get_config_var("SOABI") or ""]
"""

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

    @property
    def short_version(self) -> str:
        """The version as problems name it, such as 3.13."""
        return ".".join(self.version.split(".")[:2])


@cache
def current_interpreter() -> Interpreter:
    """Return the interpreter this process runs on, without its virtual environment."""
    found: dict[str, list[str]] = {}
    exec(_DESCRIBE, found)
    return _describe(found["description"])


def find_interpreter(version: str) -> Interpreter:
    """Return an interpreter of a version such as 3.13."""
    if version == CURRENT_VERSION:
        return current_interpreter()
    interpreter = _search(version, os.environ.get(PYTHONS_VARIABLE, ""))
    if interpreter is None:
        # Somebody may install it while a service runs.
        _search.cache_clear()
        raise EvaluatorFault(
            f"no Python {version} on this machine; install it so that `python{version}` starts it, "
            f"or name it: {PYTHONS_VARIABLE}=/path/to/python{version}"
        )
    return interpreter


@cache
def _search(version: str, named: str) -> Interpreter | None:
    for path in filter(None, named.split(":")):
        interpreter = _examine(path)
        if interpreter is None:
            raise ConfigError(f"{PYTHONS_VARIABLE} names {path}, which is not a working Python 3; correct the path")
        if interpreter.short_version == version:
            return interpreter
    for path in _usual_places(version):
        interpreter = _examine(path)
        if interpreter is not None and interpreter.short_version == version:
            return interpreter
    return None


def _usual_places(version: str) -> Iterator[str]:
    """Yield where a version may be; the latest patch of a folder of versions first."""
    on_path = shutil.which(f"python{version}")
    if on_path is not None:
        yield on_path
    home = os.path.expanduser("~")
    pyenv = os.environ.get("PYENV_ROOT", f"{home}/.pyenv")
    for pattern in _FOLDERS_OF_VERSIONS:
        found = glob.glob(pattern.format(version=version, home=home, pyenv=pyenv))
        yield from sorted(found, key=lambda path: (len(path), path), reverse=True)


def _examine(path: str) -> Interpreter | None:
    """Run an interpreter, since its path may be a link or a script that finds it, and return what it is."""
    code = f"{_DESCRIBE}print(json.dumps(description))"
    try:
        ran = subprocess.run([path, "-I", "-S", "-c", code], capture_output=True, timeout=_PROBE_SECONDS, cwd="/")
        return _describe(json.loads(ran.stdout))
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None


def _describe(description: list[str]) -> Interpreter:
    executable, version, stdlib, abi = description
    libraries = tuple(path for path in (*_SYSTEM_LIBRARIES, str(Path(stdlib).parent)) if os.path.exists(path))
    real = {os.path.realpath(path) for path in libraries}
    hidden = {
        os.path.realpath(found)
        for folder in real
        for name in ("site-packages", "dist-packages")
        for found in glob.glob(f"{folder}/python*/{name}")
    }
    return Interpreter(executable, version, abi, stdlib, libraries, tuple(sorted(hidden)))

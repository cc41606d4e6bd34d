"""Pins -> a folder to import from: copied from the host's environment where it has these wheels, else downloaded."""

from __future__ import annotations

import base64
import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from microcoder.errors import EvaluatorFault
from microcoder.evaluator.interpreter import CURRENT_VERSION, Interpreter
from microcoder.evaluator.packages import Package, PackageProfile, normalise

_SECONDS = 900.0
_OPTIONS = ("--only-binary", ":all:", "--no-deps", "--quiet")
_PIP_OPTIONS = ("--no-compile", "--no-input", "--retries", "1", "--timeout", "15", "--disable-pip-version-check")
_END_OF_NAME = re.compile(r"[^A-Za-z0-9._-]")
_WRITTEN_BY = ("pip", "uv")
"""Installers that lay a wheel out as it is."""


def fill_folder(folder: Path, profile: PackageProfile, interpreter: Interpreter) -> None:
    """Put a profile's packages into an empty folder.

    Raises:
        EvaluatorFault: one cannot be installed; with the installer's last message.
        OSError: the folder cannot be written.
    """
    is_host = interpreter.short_version == CURRENT_VERSION
    left = [package for package in profile.packages if not (is_host and _copy_from_host(package, folder))]
    if left:
        _download(folder, [package.pin for package in left], interpreter, is_host=is_host)
    shutil.rmtree(folder / "bin", ignore_errors=True)
    _check(folder, profile)
    _compile(folder, interpreter)


def _check(folder: Path, profile: PackageProfile) -> None:
    """Refuse a profile that programs could not import: a module by another name, a package that is not pinned.

    Raises:
        EvaluatorFault: which, and what to write.
    """
    for package in profile.packages:
        module = package.modules[0]
        if not (folder / module).is_dir() and not any(folder.glob(f"{module}.*")):
            raise EvaluatorFault(
                f"{package.pin} brings no module {module}; name what it brings: imports = [...] (docs/languages.md)"
            )
    pinned = {package.name for package in profile.packages}
    for found in importlib.metadata.distributions(path=[str(folder)]):
        # With a condition it is for other systems, other versions or extras.
        needed = [normalise(_END_OF_NAME.split(line)[0]) for line in found.requires or () if ";" not in line]
        for name in needed:
            if name not in pinned:
                raise EvaluatorFault(f"{found.name} needs {name}, which is not pinned; add a line {name}==VERSION")


def _compile(folder: Path, interpreter: Interpreter) -> None:
    """Write bytecode, trusted unread since nobody changes the folder; not every file of a package compiles."""
    options = ("-q", "-x", "/tests?/", "--invalidation-mode", "unchecked-hash")
    subprocess.run([interpreter.executable, "-I", "-m", "compileall", *options, str(folder)], capture_output=True)


def _copy_from_host(package: Package, folder: Path) -> bool:
    """Copy a package that is installed beside MicroCoder, if it is the pinned version, file by file as in its wheel."""
    try:
        found = importlib.metadata.distribution(package.name)
    except importlib.metadata.PackageNotFoundError:
        return False
    if found.version != package.version or (found.read_text("INSTALLER") or "").strip() not in _WRITTEN_BY:
        return False
    files = [file for file in found.files or () if file.hash is not None and ".." not in file.parts]
    if not all(_is_unchanged(Path(str(file.locate())), file.hash) for file in files):
        return False
    for file in files:
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file.locate(), target)
    return bool(files)


def _is_unchanged(path: Path, expected: importlib.metadata.FileHash | None) -> bool:
    if expected is None or not path.is_file():
        return False
    digest = hashlib.new(expected.mode, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).decode().rstrip("=") == expected.value


def _download(folder: Path, pins: Sequence[str], interpreter: Interpreter, *, is_host: bool) -> None:
    """Install wheels by pip, as it is configured on this machine; without it by uv, or by a pip of our own."""
    hosts = [sys.executable] if is_host else []
    for python in (*hosts, interpreter.executable):
        if _has_pip(python):
            _run([python, "-I", "-m", "pip", "install", *_PIP_OPTIONS, *_OPTIONS, "--target", str(folder), *pins])
            return
    uv = shutil.which("uv")
    if uv is not None:
        _run([uv, "pip", "install", *_OPTIONS, "--python", interpreter.executable, "--target", str(folder), *pins])
        return
    with tempfile.TemporaryDirectory() as made:
        _run([interpreter.executable, "-I", "-m", "venv", made])
        python = f"{made}/bin/python"
        _run([python, "-I", "-m", "pip", "install", *_PIP_OPTIONS, *_OPTIONS, "--target", str(folder), *pins])


def _has_pip(python: str) -> bool:
    command = [python, "-I", "-c", "import pip"]
    return subprocess.run(command, capture_output=True, cwd="/").returncode == 0


def _run(command: Sequence[str]) -> None:
    # A host's own rules for pip (only in a virtual environment, into the user's folder) do not fit a folder of its own.
    environment = {**os.environ, "PIP_REQUIRE_VIRTUALENV": "0", "PIP_USER": "0"}
    environment.pop("PIP_TARGET", None)
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, cwd="/", env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EvaluatorFault(f"`{_shown(command)}` failed: {error}") from None
    if ran.returncode:
        said = [line.strip() for line in (ran.stderr or ran.stdout).splitlines() if line.strip()]
        errors = [line for line in said if line.lower().startswith("error")] or said[-1:]
        raise EvaluatorFault(f"`{_shown(command)}` failed: {' '.join(errors[:1])[:300] or ran.returncode}")


def _shown(command: Sequence[str]) -> str:
    return " ".join((os.path.basename(command[0]), *(part for part in command[1:5] if part != "-I")))

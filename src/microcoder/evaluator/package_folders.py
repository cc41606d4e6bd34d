"""Where the packages of a profile are: in a folder of their own for each Python, apart from the host's environment.

    <root>/<digest>/             one profile for one Python: what is imported from, and `profile.json`, which says so
    <root>/.<digest>.lock        held while it is made

The root is MICROCODER_PACKAGES if that is set. Else folders are looked for in the user's cache
(~/.cache/microcoder/packages) and then where root puts them for everybody (/var/cache/microcoder/packages).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from microcoder.errors import EvaluatorFault
from microcoder.evaluator.interpreter import Interpreter
from microcoder.evaluator.packages import PackageProfile, normalise
from microcoder.machine import lock_file

ROOT_VARIABLE = "MICROCODER_PACKAGES"
"""Environment variable: where packages are kept, such as a folder that all nodes of a cluster see."""

_FOR_EVERYBODY = Path("/var/cache/microcoder/packages")
_MARKER = "profile.json"
_SECONDS = 900.0
_OPTIONS = ("--only-binary", ":all:", "--no-deps", "--quiet")
_PIP_OPTIONS = ("--no-compile", "--no-input", "--retries", "1", "--timeout", "15", "--disable-pip-version-check")
_END_OF_NAME = re.compile(r"[^A-Za-z0-9._-]")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProvidedPackages:
    """The installed packages of a profile for one Python."""

    profile: PackageProfile
    folder: str
    """Folder of the packages; empty if there are none."""
    problem: str = ""
    """Why the packages are missing, and what to type; empty if they are installed."""

    def find_problem(self, code: str, *, is_function: bool) -> str:
        """Return why a program cannot be judged: a package of the profile that it imports is not installed."""
        needed = self.profile.find_needed(code, is_function=is_function) if self.problem else None
        return f"it asks for {needed.name}, and {self.problem}" if needed else ""


def find_roots() -> tuple[Path, ...]:
    """Return where folders are looked for; new ones are made in the first."""
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return (Path(named).absolute(),)
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache is None and os.geteuid() == 0:
        return (_FOR_EVERYBODY,)
    own = Path(cache or os.path.expanduser("~/.cache")) / "microcoder" / "packages"
    # A user id that the machine does not know, as in many containers, has no home.
    return (own, _FOR_EVERYBODY) if own.is_absolute() else (_FOR_EVERYBODY,)


def folder_digest(profile: PackageProfile, interpreter: Interpreter) -> str:
    """Return the name of a profile's folder: pins, Python version and platform decide it."""
    content = [profile.pins, interpreter.short_version, interpreter.abi]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def find_folder(profile: PackageProfile, interpreter: Interpreter) -> Path | None:
    """Return the folder of a profile that is installed already."""
    digest = folder_digest(profile, interpreter)
    return next((root / digest for root in find_roots() if (root / digest / _MARKER).is_file()), None)


def install_packages(profile: PackageProfile, interpreter: Interpreter) -> Path:
    """Return the folder of a profile, made first if it is not there yet.

    Raises:
        EvaluatorFault: the packages cannot be installed, or the folder cannot be written; why.
    """
    found = find_folder(profile, interpreter)
    if found is not None:
        return found
    root, digest = find_roots()[0], folder_digest(profile, interpreter)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with (root / f".{digest}.lock").open("a") as lock:
            lock_file(lock, waits=True)
            found = find_folder(profile, interpreter)
            return found if found is not None else _make(root / digest, profile, interpreter)
    except OSError as error:
        raise EvaluatorFault(
            f"{root} cannot be written ({error.strerror}); set {ROOT_VARIABLE} to a folder that can"
        ) from None


def _make(target: Path, profile: PackageProfile, interpreter: Interpreter) -> Path:
    """Make a folder, whole or not at all; with its lock held."""
    _LOG.warning(
        "microcoder: installing the packages that programs may import (%s) for Python %s into %s",
        ", ".join(profile.pins),
        interpreter.short_version,
        target,
    )
    for left_by_a_kill in target.parent.glob(f".{target.name}-*"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        _run_installer(staging, profile.pins, interpreter)
        shutil.rmtree(staging / "bin", ignore_errors=True)
        _check(staging, profile)
        # Bytecode is trusted unread, since nobody changes the folder; not every file of a package compiles.
        options = ("-q", "-x", "/tests?/", "--invalidation-mode", "unchecked-hash")
        subprocess.run([interpreter.executable, "-I", "-m", "compileall", *options, str(staging)], capture_output=True)
        about = {"profile": profile.name, "pins": profile.pins, "python": interpreter.version, "abi": interpreter.abi}
        (staging / _MARKER).write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
        open_to_everybody(staging)
        staging.rename(target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return target


def _run_installer(folder: Path, pins: Sequence[str], interpreter: Interpreter) -> None:
    """Install wheels by pip, as it is configured on this machine; without it by uv.

    Raises:
        EvaluatorFault: neither is here, or it failed; with its last message.
    """
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-I", "-m", "pip", "--python", interpreter.executable, "install", *_PIP_OPTIONS]
    elif (uv := shutil.which("uv")) is not None:
        command = [uv, "pip", "install", "--python", interpreter.executable]
    else:
        raise EvaluatorFault(f"there is neither pip nor uv; type `{sys.executable} -m ensurepip`")
    # A host's own rules for pip (only in a virtual environment, into the user's folder) do not fit a folder of its own.
    environment = {**os.environ, "PIP_REQUIRE_VIRTUALENV": "0", "PIP_USER": "0"}
    environment.pop("PIP_TARGET", None)
    command += [*_OPTIONS, "--target", str(folder), *pins]
    shown = "`pip install`" if "--no-input" in command else "`uv pip install`"
    try:
        ran = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, cwd="/", env=environment)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EvaluatorFault(f"{shown} failed: {error}") from None
    if ran.returncode:
        said = [line.strip() for line in (ran.stderr or ran.stdout).splitlines() if line.strip()]
        errors = [line for line in said if line.lower().startswith("error")] or said[-1:]
        raise EvaluatorFault(f"{shown} failed: {' '.join(errors[:1])[:300] or ran.returncode}")


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


def open_to_everybody(folder: Path) -> None:
    """Let programs read it, which run as a user of their own, whatever the umask."""
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)


class PackageShelf:
    """The packages of one judge, by Python; what was found first holds for its whole life.

    An answer that changed would meet sandboxes that were started under the earlier one.
    """

    def __init__(self, profile: PackageProfile) -> None:
        self.profile = profile
        self._lock = threading.Lock()
        self._provided: dict[str, ProvidedPackages] = {}

    def provide(self, interpreter: Interpreter) -> ProvidedPackages:
        """Return what programs of this Python may import, installed first if it is not there; it never raises."""
        with self._lock:
            key = interpreter.executable
            if key not in self._provided:
                self._provided[key] = provide_packages(self.profile, interpreter)
            return self._provided[key]


_failures: dict[str, str] = {}
"""Folders that could not be made by this process, which tries once, and why."""
_failures_lock = threading.Lock()


def provide_packages(profile: PackageProfile, interpreter: Interpreter) -> ProvidedPackages:
    """Return what there is of a profile, installed first if it is not there; a failure is loud, and no exception."""
    if not profile.packages:
        return ProvidedPackages(profile, "")
    digest = folder_digest(profile, interpreter)
    with _failures_lock:
        found = find_folder(profile, interpreter)
        if found is None and digest not in _failures:
            try:
                found = install_packages(profile, interpreter)
            except EvaluatorFault as fault:
                _failures[digest] = str(fault)
                _LOG.warning("microcoder: %s", describe_missing(profile, interpreter, str(fault)))
        if found is not None:
            return ProvidedPackages(profile, str(found))
        return ProvidedPackages(profile, "", describe_missing(profile, interpreter, _failures[digest]))


def describe_missing(profile: PackageProfile, interpreter: Interpreter, why: str) -> str:
    """Return the sentence that says that a profile's packages are not here, and what to type."""
    return (
        f"the packages of profile {profile.name} are missing for Python {interpreter.short_version}: programs that "
        f"import them stay unscored; type `microcoder packages install {profile.path or profile.name}` ({why})"
    )

"""Which third-party packages programs may import: profiles of pinned packages, one file each in `profiles/`.

A program's verdict must not depend on what happens to be installed beside MicroCoder, so programs see the packages of
a profile and no others. What it does depend on, with Python and the user's own languages, is a `JudgingEnvironment`.

Packages, and precompiled headers (`builds`), are kept in these folders, made when a judge first needs them:

    <root>/<digest>/             one profile for one Python: its modules, and `profile.json`, which describes it
    <root>/headers/<digest>/     one header for one compiler
    .<digest>.lock               beside each; held while it is made

The root is MICROCODER_PACKAGES if that is set. Else folders are looked for in the user's cache
(~/.cache/microcoder/packages) and then in the one that root fills for all users (/var/cache/microcoder/packages).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import json
import logging
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field, ValidationError

from microcoder.judge.core.errors import ConfigError, EvaluatorFault, explain_fault
from microcoder.judge.core.machine import lock_file
from microcoder.judge.core.syntax import try_parse
from microcoder.judge.core.types import Problem, Record
from microcoder.judge.languages import LANGUAGES, language_of
from microcoder.judge.languages.definition import CURRENT_VERSION, current_interpreter

ROOT_VARIABLE = "MICROCODER_PACKAGES"
"""Environment variable: where packages are kept, such as a folder that all nodes of a cluster see."""

_FOR_EVERYBODY = Path("/var/cache/microcoder/packages")
_SECONDS = 900.0
_OPTIONS = ("--only-binary", ":all:", "--no-deps", "--quiet")
_PIP_OPTIONS = (
    "--no-compile",
    "--no-input",
    "--retries",
    "1",
    "--timeout",
    "15",
    "--disable-pip-version-check",
)
_END_OF_NAME = re.compile(r"[^A-Za-z0-9._-]")
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProvidedPackages:
    """The installed packages of a profile; what a judge finds at its start holds for its whole life."""

    profile: PackageProfile
    folder: str
    """Folder of the packages; empty if there are none."""
    problem: str = ""
    """Why the packages are missing, and what to type; empty if they are installed."""

    def find_problem(self, code: str, *, is_function: bool) -> str:
        """Return why a program cannot be judged: it imports a package that is not installed; empty if it can."""
        needed = self.profile.find_needed(code, is_function=is_function) if self.problem else None
        return f"it asks for {needed.name}, and {self.problem}" if needed else ""


def find_roots() -> tuple[Path, ...]:
    """Return the roots that are searched for packages and headers; new ones are made in the first."""
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return (Path(named).absolute(),)
    cache = os.environ.get("XDG_CACHE_HOME")
    if cache is None and os.geteuid() == 0:
        return (_FOR_EVERYBODY,)
    own = Path(cache or os.path.expanduser("~/.cache")) / "microcoder" / "packages"
    # A user id that the machine does not know, as in many containers, has no home.
    return (own, _FOR_EVERYBODY) if own.is_absolute() else (_FOR_EVERYBODY,)


def find_kept(places: Sequence[Path], digest: str) -> Path | None:
    """Return the folder named by a digest in the first of these roots that has it; None if none has."""
    return next((place / digest for place in places if (place / digest).is_dir()), None)


def keep_folder(
    places: Sequence[Path], digest: str, make: Callable[[Path], object], *, waits: bool = True
) -> Path:
    """Return the folder named by a digest; if no root has it, `make` fills it, and it appears whole in the first root.

    Raises:
        BlockingIOError: another process fills it, and `waits` is false.
        EvaluatorFault: the root cannot be written, or `make` raised it.
    """
    if (found := find_kept(places, digest)) is not None:
        return found
    place = places[0]
    try:
        open_place(place)
        with (place / f".{digest}.lock").open("a") as lock:
            lock_file(lock, waits=waits)
            if (found := find_kept(places, digest)) is not None:
                return found
            for left_by_a_kill in place.glob(f".{digest}-*"):
                shutil.rmtree(left_by_a_kill, ignore_errors=True)
            staging = Path(tempfile.mkdtemp(prefix=f".{digest}-", dir=place))
            try:
                make(staging)
                # Programs and compilers run as users of their own, whatever the umask.
                for path in (staging, *staging.rglob("*")):
                    path.chmod(0o755 if path.is_dir() else 0o644)
                return staging.rename(place / digest)
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except BlockingIOError:
        raise
    except OSError as error:
        raise EvaluatorFault(
            f"{place} cannot be written ({error.strerror}); set {ROOT_VARIABLE} to a folder that can"
        ) from None


def open_place(place: Path) -> None:
    """Create a root if it is missing, readable by everybody whatever the umask."""
    if not place.is_dir():
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o755)


def folder_digest(profile: PackageProfile) -> str:
    """Return the name of a profile's folder: pins, Python version and platform decide it."""
    content = [profile.pins, CURRENT_VERSION, current_interpreter().abi]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def find_folder(profile: PackageProfile) -> Path | None:
    """Return the folder of a profile; None if it is not installed."""
    return find_kept(find_roots(), folder_digest(profile))


def install_packages(profile: PackageProfile) -> Path:
    """Return the folder of a profile, installing it first if it is missing; raises EvaluatorFault."""

    def fill(folder: Path) -> None:
        _LOG.warning(
            "microcoder: installing the packages that programs may import (%s) for Python %s into %s",
            ", ".join(profile.pins),
            CURRENT_VERSION,
            folder.parent,
        )
        interpreter = current_interpreter()
        _run_installer(folder, profile.pins, interpreter.executable)
        shutil.rmtree(folder / "bin", ignore_errors=True)
        _check(folder, profile)
        # Bytecode is trusted unread, since nobody changes the folder; not every file of a package compiles.
        options = ("-q", "-x", "/tests?/", "--invalidation-mode", "unchecked-hash")
        subprocess.run(
            [interpreter.executable, "-I", "-m", "compileall", *options, str(folder)],
            capture_output=True,
        )
        version = platform.python_version()
        about = {
            "profile": profile.name,
            "pins": profile.pins,
            "python": version,
            "abi": interpreter.abi,
        }
        (folder / "profile.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")

    return keep_folder(find_roots(), folder_digest(profile), fill)


def _run_installer(folder: Path, pins: Sequence[str], python: str) -> None:
    """Install wheels by pip, as it is configured on this machine; without it by uv."""
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-I", "-m", "pip", "--python", python, "install", *_PIP_OPTIONS]
    elif (uv := shutil.which("uv")) is not None:
        command = [uv, "pip", "install", "--python", python]
    else:
        raise EvaluatorFault(f"there is neither pip nor uv; type `{sys.executable} -m ensurepip`")
    # A host's own rules for pip (only in a virtual environment, into the user's folder) do not fit a folder of its own.
    environment = {**os.environ, "PIP_REQUIRE_VIRTUALENV": "0", "PIP_USER": "0"}
    environment.pop("PIP_TARGET", None)
    command += [*_OPTIONS, "--target", str(folder), *pins]
    shown = "`pip install`" if "--no-input" in command else "`uv pip install`"
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS, cwd="/", env=environment
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EvaluatorFault(f"{shown} failed: {error}") from None
    if ran.returncode:
        said = [line.strip() for line in (ran.stderr or ran.stdout).splitlines() if line.strip()]
        errors = [line for line in said if line.lower().startswith("error")] or said[-1:]
        raise EvaluatorFault(f"{shown} failed: {' '.join(errors[:1])[:300] or ran.returncode}")


def _check(folder: Path, profile: PackageProfile) -> None:
    """Raise EvaluatorFault for a package whose module has another name, or that needs a package which is not pinned."""
    for package in profile.packages:
        module = package.modules[0]
        if not (folder / module).is_dir() and not any(folder.glob(f"{module}.*")):
            raise EvaluatorFault(
                f"{package.pin} brings no module {module}; name what it brings: imports = [...] (docs/languages.md)"
            )
    pinned = {package.name for package in profile.packages}
    for found in importlib.metadata.distributions(path=[str(folder)]):
        # With a condition it is for other systems, other versions or extras.
        needed = [
            normalise(_END_OF_NAME.split(line)[0])
            for line in found.requires or ()
            if ";" not in line
        ]
        for name in needed:
            if name not in pinned:
                raise EvaluatorFault(
                    f"{found.name} needs {name}, which is not pinned; add a line {name}==VERSION"
                )


_missing: dict[str, str] = {}
"""Profiles that this process could not install (it tries once): digest -> why, and what to type."""
_missing_lock = threading.Lock()


def provide_packages(profile: PackageProfile) -> ProvidedPackages:
    """Return a profile's packages, installing them if missing; a failure is logged and in `problem`, not raised."""
    if not profile.packages:
        return ProvidedPackages(profile, "")
    digest = folder_digest(profile)
    with _missing_lock:
        found = find_folder(profile)
        if found is None and digest not in _missing:
            try:
                found = install_packages(profile)
            except EvaluatorFault as fault:
                _missing[digest] = (
                    f"the packages of profile {profile.name} are missing for Python {CURRENT_VERSION}: "
                    "programs that import them stay unscored; type "
                    f"`microcoder packages {profile.path or profile.name}` ({fault})"
                )
                _LOG.warning("microcoder: %s", _missing[digest])
        return (
            ProvidedPackages(profile, str(found))
            if found
            else ProvidedPackages(profile, "", _missing[digest])
        )


STANDARD = "standard"
"""The default profile."""

_FOLDER = Path(__file__).parent / "profiles"
_PIN = r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*$"
_IMPORTS = re.compile(r"import|from")
_IMPORTING_CALLS = ("__import__", "import_module")
_MOST_PARSED_CHARACTERS = 1 << 16
"""Longest source that is parsed: a tree takes a hundred times the source's own memory."""


def normalise(name: str) -> str:
    """Return a package's name as the index normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Package(Record):
    """One pinned package."""

    pin: str = Field(pattern=_PIN)
    """The package and its exact version: NAME==VERSION."""
    imports: tuple[str, ...] = ()
    """Module that programs import; the package's own name if left out."""
    prelude: tuple[str, ...] = ()
    """Names that a function-call program uses without importing them."""
    preload: tuple[str, ...] = ()
    """Modules loaded beforehand for programs whose source names this package."""

    @property
    def name(self) -> str:
        """The name in the package index, as the index normalises it."""
        return normalise(self.pin.partition("==")[0])

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules by which programs import the package."""
        return self.imports or (self.name.replace("-", "_"),)


class PackageProfile(Record):
    """The packages that programs may import, by exact version."""

    name: str
    packages: tuple[Package, ...]
    path: str = ""
    """The user's own profile file; empty for a built-in profile. Not a key of the file."""

    @cached_property
    def pins(self) -> tuple[str, ...]:
        """Every NAME==VERSION, sorted."""
        return tuple(
            sorted(f"{package.name}=={package.pin.partition('==')[2]}" for package in self.packages)
        )

    @cached_property
    def digest(self) -> str:
        """Digest of the pins, independent of the name."""
        return hashlib.sha256(json.dumps(self.pins).encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """Name and digest, as files name the profile."""
        return f"{self.name} {self.digest}"

    def preload_for(self, code: str) -> tuple[str, ...]:
        """Return the modules to preload for a program, those of packages that its source names."""
        wanted = {
            name: None
            for package in self.packages
            if package.preload and any(_find_word(module, code) for module in package.modules)
            for name in package.preload
        }
        return tuple(wanted)

    def find_needed(self, code: str, *, is_function: bool) -> Package | None:
        """Return the first package that a program imports, or None.

        A source that is long, or that this Python cannot parse, imports what its lines with `import` or `from` name.

        Args:
            code: the program's source.
            is_function: it also uses the names of a package's `prelude`, which it finds without an import.
        """
        words = [word for one in self.packages for word in (*one.modules, *one.prelude)]
        if not any(word in code for word in words):
            return None
        tree = try_parse(code) if len(code) <= _MOST_PARSED_CHARACTERS else None
        if tree is None:
            return self._find_in_lines(code, is_function=is_function)
        nodes = list(ast.walk(tree))
        imported = {name for node in nodes for name in _imports_of(node)}
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        for one in self.packages:
            if imported & {*one.modules} or (is_function and used & {*one.prelude}):
                return one
        return None

    def _find_in_lines(self, code: str, *, is_function: bool) -> Package | None:
        lines = "\n".join(line for line in code.splitlines() if _IMPORTS.search(line))
        for one in self.packages:
            is_used = is_function and any(_find_word(name, code) for name in one.prelude)
            if is_used or any(_find_word(module, lines) for module in one.modules):
                return one
        return None


def _imports_of(node: ast.AST) -> Iterator[str]:
    """Yield the modules, with their parent packages, that a node of a program's tree imports by name."""
    modules: list[str] = []
    match node:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names, level=0):
            modules = [f"{module}.{alias.name}" for alias in names]
        case ast.Call(
            func=ast.Name(id=name) | ast.Attribute(attr=name),
            args=[ast.Constant(value=str(module)), *_],
        ):
            if name in _IMPORTING_CALLS:
                modules = [module]
    for module in modules:
        parts = module.split(".")
        for length in range(1, len(parts) + 1):
            yield ".".join(parts[:length])


def _find_word(word: str, text: str) -> bool:
    return word in text and re.search(rf"\b{re.escape(word)}\b", text) is not None


def _read(path: Path) -> PackageProfile:
    return PackageProfile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


PROFILES: Mapping[str, PackageProfile] = MappingProxyType(
    {profile.name: profile for profile in map(_read, sorted(_FOLDER.glob("*.toml")))}
)
"""The built-in profiles by name."""

_KNOWN = {package.name: package for profile in PROFILES.values() for package in profile.packages}


def load_profile(name: str) -> PackageProfile:
    """Return a profile by name, or the user's own by the path of its file; raises ConfigError.

    A `.toml` file is as those in `profiles/`; a `.txt` file has one NAME==VERSION a line, as `pip freeze` writes.
    """
    if name in PROFILES:
        return PROFILES[name]
    path = Path(name)
    if path.suffix not in (".toml", ".txt"):
        raise ConfigError(
            f"packages = {name!r}; use one of {', '.join(PROFILES)}, or the path of a file of pins (.txt or .toml)"
        )
    try:
        profile = _read(path) if path.suffix == ".toml" else _read_requirements(path)
    except OSError as error:
        raise ConfigError(f"packages = {name!r} cannot be read ({error}); check the path") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        fault = explain_fault(first, f"{'.'.join(map(str, first['loc']))} = {first['input']!r}")
        raise ConfigError(
            f"packages = {name!r}: {fault}; write exact pins, such as numpy==2.4.6"
        ) from None
    except ValueError as error:  # no UTF-8, no TOML
        raise ConfigError(
            f"packages = {name!r} cannot be read ({error}); see docs/languages.md"
        ) from None
    twice = {
        package.name
        for package in profile.packages
        if [p.name for p in profile.packages].count(package.name) > 1
    }
    if twice:
        raise ConfigError(
            f"packages = {name!r} pins {', '.join(sorted(twice))} twice; keep one line of each"
        )
    return profile.model_copy(update={"path": name})


def _read_requirements(path: Path) -> PackageProfile:
    lines = (
        line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()
    )
    packages = [Package(pin=re.sub(r"\s*==\s*", "==", line)) for line in lines if line]
    known = [
        _KNOWN[one.name].model_copy(update={"pin": one.pin}) if one.name in _KNOWN else one
        for one in packages
    ]
    return PackageProfile(name=path.stem, packages=tuple(known))


@dataclass(frozen=True, slots=True)
class JudgingEnvironment:
    """The Python and packages that programs run with."""

    python: str
    """Version of the Python that MicroCoder runs on."""
    profile: PackageProfile
    missing: str = ""
    """Why the packages are missing, and what to type; empty if they are installed."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """Digests of the language files from outside the package, by language."""
    call_stack: str = ""
    """Why programs recurse less deep than under plain python; empty if they do not."""

    @property
    def identity(self) -> str:
        """One line that identifies the environment in files: Python, packages, the user's own languages."""
        own = "".join(f", {name} {digest}" for name, digest in self.languages.items())
        return f"Python {self.python}, packages {self.profile.label}{own}"

    def as_record(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON files."""
        return {
            "python": self.python,
            "call_stack": self.call_stack,
            **({"languages": dict(self.languages)} if self.languages else {}),
            "packages": {
                "profile": self.profile.name,
                "digest": self.profile.digest,
                "pins": list(self.profile.pins),
                "missing": self.missing,
            },
        }


def digest_languages() -> dict[str, str]:
    """Return the digests of the language files from outside the package, by language."""
    return {name: language.digest for name, language in LANGUAGES.items() if language.digest}


def name_environment(profile: PackageProfile, problems: Iterable[Problem]) -> dict[str, str]:
    """Return what verdicts on these problems depend on, by name: versions of Python and packages, own languages."""
    asked = {language_of(problem).name for problem in problems}
    own = {name: digest for name, digest in digest_languages().items() if name in asked}
    return {"Python": platform.python_version(), "packages": profile.label, **own}

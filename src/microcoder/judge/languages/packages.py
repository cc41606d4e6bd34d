"""Which third-party packages programs may import: profiles of pinned packages.

Each profile is one file in `profiles/`. A program's verdict must not depend on what happens to be
installed beside MicroCoder, so programs see the packages of a profile and no others. What it does
depend on, with Python and the user's own languages, is a `JudgingEnvironment`. `kept_folders` says
where packages are kept.
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
import threading
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import Field, ValidationError

from microcoder.judge.core.errors import ConfigError, EvaluatorFault, explain_fault
from microcoder.judge.core.syntax import try_parse
from microcoder.judge.core.types import Problem, Record
from microcoder.judge.languages import LANGUAGES, language_of
from microcoder.judge.languages.definition import CURRENT_VERSION, current_interpreter
from microcoder.judge.languages.kept_folders import find_kept, find_roots, keep_folder

_INSTALL_SECONDS = 900.0
"""Longest time that an installer may take."""
_INSTALL_OPTIONS = ("--only-binary", ":all:", "--no-deps", "--quiet")
"""Options of pip and uv: only wheels, since building one would run code of its author."""
_PIP_OPTIONS = (
    "--no-compile",
    "--no-input",
    "--retries",
    "1",
    "--timeout",
    "15",
    "--disable-pip-version-check",
)
"""Further options of pip."""
_COMPILE_OPTIONS = ("-q", "-x", "/tests?/", "--invalidation-mode", "unchecked-hash")
"""Options of Python's `compileall`: bytecode is trusted unread, since nobody changes the folder."""
_END_OF_NAME = re.compile(r"[^A-Za-z0-9._-]")
"""What ends the name of a package in a requirement."""
_MOST_SHOWN = 300
"""Most characters of an installer's error that a message shows."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ProvidedPackages:
    """The installed packages of a profile, looked up once, when the judge starts."""

    profile: PackageProfile
    folder: str
    """Folder of the packages; empty if there are none."""
    problem: str = ""
    """Why the packages are missing, and what to type; empty if they are installed."""

    def find_problem(self, code: str, *, is_function: bool) -> str:
        """Return why a program cannot be judged: it imports a package that is not installed.

        Empty if it can be judged.
        """
        if not self.problem:
            return ""
        # All programs that ask for none of them are judged as ever.
        needed = self.profile.find_needed(code, is_function=is_function)
        return "" if needed is None else f"it asks for {needed.name}, and {self.problem}"


def folder_digest(profile: PackageProfile) -> str:
    """Return the name of a profile's folder: pins, Python version and platform decide it."""
    content = [profile.pins, CURRENT_VERSION, current_interpreter().abi]
    encoded = json.dumps(content).encode()
    return hashlib.sha256(encoded).hexdigest()[:16]


def find_folder(profile: PackageProfile) -> Path | None:
    """Return the folder of a profile; None if it is not installed."""
    return find_kept(find_roots(), folder_digest(profile))


def install_packages(profile: PackageProfile) -> Path:
    """Return the folder of a profile, installing it first if it is missing.

    Raises:
        EvaluatorFault: it cannot be installed.
    """
    return keep_folder(
        find_roots(), folder_digest(profile), lambda folder: _fill_folder(folder, profile)
    )


def _fill_folder(folder: Path, profile: PackageProfile) -> None:
    """Install the packages of a profile into an empty folder."""
    # A warning is shown by default: nothing else would say why judging waits.
    _LOG.warning(
        "microcoder: installing the packages that programs may import (%s) for Python %s into %s",
        ", ".join(profile.pins),
        CURRENT_VERSION,
        folder.parent,
    )
    interpreter = current_interpreter()
    _run_installer(folder, profile.pins, interpreter.executable)
    # Scripts of packages are for people: programs cannot start them.
    shutil.rmtree(folder / "bin", ignore_errors=True)
    _check_installed(folder, profile)
    # Its exit status is ignored: not every file of a package compiles.
    compiling = [
        interpreter.executable,
        "-I",
        "-m",
        "compileall",
        *_COMPILE_OPTIONS,
        str(folder),
    ]
    subprocess.run(compiling, capture_output=True)
    description = {
        "profile": profile.name,
        "pins": profile.pins,
        "python": platform.python_version(),
        "abi": interpreter.abi,
    }
    text = json.dumps(description, indent=1) + "\n"
    (folder / "profile.json").write_text(text, encoding="utf-8")


def _run_installer(folder: Path, pins: Sequence[str], python: str) -> None:
    """Install wheels by pip, as it is configured on this machine; without it by uv."""
    if importlib.util.find_spec("pip") is not None:
        shown = "`pip install`"
        # Isolated: no variable and no package of the user's own may change what is installed.
        command = [
            sys.executable,
            "-I",
            "-m",
            "pip",
            "--python",
            python,
            "install",
            *_PIP_OPTIONS,
        ]
    else:
        uv = shutil.which("uv")
        if uv is None:
            raise EvaluatorFault(
                f"there is neither pip nor uv; type `{sys.executable} -m ensurepip`"
            )
        shown = "`uv pip install`"
        command = [uv, "pip", "install", "--python", python]
    command += [*_INSTALL_OPTIONS, "--target", str(folder), *pins]
    # A host's own rules for pip (only in a virtual environment, into the user's folder) do not fit
    # a folder of its own.
    environment = {**os.environ, "PIP_REQUIRE_VIRTUALENV": "0", "PIP_USER": "0"}
    environment.pop("PIP_TARGET", None)
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            cwd="/",
            env=environment,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EvaluatorFault(f"{shown} failed: {error}") from None
    if result.returncode:
        reason = _find_error(result.stderr or result.stdout) or result.returncode
        raise EvaluatorFault(f"{shown} failed: {reason}")


def _find_error(output: str) -> str:
    """Return the first line of an installer's output that names an error, else its last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if line.lower().startswith("error"):
            return line[:_MOST_SHOWN]
    return lines[-1][:_MOST_SHOWN] if lines else ""


def _check_installed(folder: Path, profile: PackageProfile) -> None:
    """Raise EvaluatorFault if programs cannot import a package of the profile.

    Either its module has another name, or it needs a package that is not pinned.
    """
    for package in profile.packages:
        module = package.modules[0]
        # A module may be a folder, a file, or a compiled file with the ABI in its name.
        if not (folder / module).is_dir() and not any(folder.glob(f"{module}.*")):
            raise EvaluatorFault(
                f"{package.pin} brings no module {module}; "
                "name what it brings: imports = [...] (docs/languages.md)"
            )
    pinned = {package.name for package in profile.packages}
    for distribution in importlib.metadata.distributions(path=[str(folder)]):
        for requirement in distribution.requires or ():
            if ";" in requirement:
                continue  # With a condition it is for other systems, other versions or extras.
            name = normalise(_END_OF_NAME.split(requirement)[0])
            if name not in pinned:
                raise EvaluatorFault(
                    f"{distribution.name} needs {name}, which is not pinned; "
                    f"add a line {name}==VERSION"
                )


_missing: dict[str, str] = {}
"""Profiles that this process could not install: digest -> why, and what to type.

It tries once.
"""
_missing_lock = threading.Lock()
"""Held while packages are looked for or installed."""


def provide_packages(profile: PackageProfile) -> ProvidedPackages:
    """Return a profile's packages, installing them if missing.

    A failure is logged and in `problem`, not raised.
    """
    if not profile.packages:
        return ProvidedPackages(profile, "")
    digest = folder_digest(profile)
    # One thread installs, the others find the packages.
    with _missing_lock:
        folder = find_folder(profile)
        # An attempt that failed is not repeated here: each may take minutes.
        if folder is None and digest not in _missing:
            try:
                folder = install_packages(profile)
            except EvaluatorFault as fault:
                _missing[digest] = (
                    f"the packages of profile {profile.name} are missing for Python "
                    f"{CURRENT_VERSION}: programs that import them stay unscored; type "
                    f"`microcoder packages {profile.path or profile.name}` ({fault})"
                )
                _LOG.warning("microcoder: %s", _missing[digest])
        if folder is None:
            return ProvidedPackages(profile, "", _missing[digest])
        return ProvidedPackages(profile, str(folder))


STANDARD = "standard"
"""The default profile."""

_FOLDER = Path(__file__).parent / "profiles"
"""Folder of the built-in profiles."""
_PIN = r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*$"
"""NAME==VERSION."""
_IMPORTS = re.compile(r"import|from")
"""A line that may import something."""
_IMPORTING_CALLS = ("__import__", "import_module")
"""Functions that import the module that they are called with."""
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
        # Normalised and sorted, so that one set of packages has one digest however it is written.
        pins = []
        for package in self.packages:
            version = package.pin.partition("==")[2]
            pins.append(f"{package.name}=={version}")
        return tuple(sorted(pins))

    @cached_property
    def digest(self) -> str:
        """Digest of the pins, independent of the name."""
        encoded = json.dumps(self.pins).encode()
        return hashlib.sha256(encoded).hexdigest()[:12]

    @property
    def label(self) -> str:
        """Name and digest, as files name the profile."""
        return f"{self.name} {self.digest}"

    def preload_for(self, code: str) -> tuple[str, ...]:
        """Return the modules to preload for a program: those of packages that its source names."""
        modules: dict[str, None] = {}  # a set in order
        for package in self.packages:
            if package.preload and _has_word(package.modules, code):
                modules |= dict.fromkeys(package.preload)
        return tuple(modules)

    def find_needed(self, code: str, *, is_function: bool) -> Package | None:
        """Return the first package that a program imports, or None.

        Source that is long, or that this Python cannot parse, is searched for lines with `import`
        or `from`.

        Args:
            code: the program's source.
            is_function: it also uses the names of a package's `prelude`, which it finds without an
                import.
        """
        if not self._is_named_in(code):
            return None
        tree = try_parse(code) if len(code) <= _MOST_PARSED_CHARACTERS else None
        if tree is None:
            return self._find_in_lines(code, is_function=is_function)
        imported: set[str] = set()
        used: set[str] = set()
        for node in ast.walk(tree):
            imported.update(_imports_of(node))
            if isinstance(node, ast.Name):
                used.add(node.id)
        for package in self.packages:
            if not imported.isdisjoint(package.modules):
                return package
            if is_function and not used.isdisjoint(package.prelude):
                return package
        return None

    def _is_named_in(self, code: str) -> bool:
        """Whether a word of one of the packages occurs in a source: a fast first look."""
        words: list[str] = []
        for package in self.packages:
            words += [*package.modules, *package.prelude]
        return any(word in code for word in words)

    def _find_in_lines(self, code: str, *, is_function: bool) -> Package | None:
        lines = "\n".join(line for line in code.splitlines() if _IMPORTS.search(line))
        for package in self.packages:
            if is_function and _has_word(package.prelude, code):
                return package
            if _has_word(package.modules, lines):
                return package
        return None


def _imports_of(node: ast.AST) -> Iterator[str]:
    """Yield the modules that a node of a program's tree imports by name, with their parents."""
    modules: list[str] = []
    match node:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        # Level 0: a relative import names no package.
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
        # To import `scipy.stats` needs scipy, too.
        for length in range(1, len(parts) + 1):
            yield ".".join(parts[:length])


def _has_word(words: Iterable[str], text: str) -> bool:
    """Whether any of the words occurs in a text as a whole word."""
    # Most words are nowhere in it, and that is told faster without an expression.
    likely = [word for word in words if word in text]
    return any(re.search(rf"\b{re.escape(word)}\b", text) for word in likely)


def _read(path: Path) -> PackageProfile:
    return PackageProfile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


PROFILES: Mapping[str, PackageProfile] = MappingProxyType(
    {profile.name: profile for profile in map(_read, sorted(_FOLDER.glob("*.toml")))}
)
"""The built-in profiles by name."""


def _list_known() -> dict[str, Package]:
    known: dict[str, Package] = {}
    for profile in PROFILES.values():
        known |= {package.name: package for package in profile.packages}
    return known


_KNOWN = _list_known()
"""The packages of all built-in profiles, by name."""


@cache
def known_modules() -> frozenset[str]:
    """Return the top modules of the packages of all built-in profiles."""
    modules: set[str] = set()
    for package in _KNOWN.values():
        modules |= {module.split(".")[0] for module in package.modules}
    return frozenset(modules)


def load_profile(name: str) -> PackageProfile:
    """Return a profile by name, or the user's own by the path of its file; raises ConfigError.

    A `.toml` file is as those in `profiles/`; a `.txt` file has one NAME==VERSION a line, as
    `pip freeze` writes.
    """
    if name in PROFILES:
        return PROFILES[name]
    path = Path(name)
    if path.suffix not in (".toml", ".txt"):
        raise ConfigError(
            f"packages = {name!r}; use one of {', '.join(PROFILES)}, "
            "or the path of a file of pins (.txt or .toml)"
        )
    read = _read if path.suffix == ".toml" else _read_requirements
    try:
        profile = read(path)
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
    names = [package.name for package in profile.packages]
    # An installer would take one of two pins, and verdicts would hang on which.
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ConfigError(
            f"packages = {name!r} pins {', '.join(repeated)} twice; keep one line of each"
        )
    return profile.model_copy(update={"path": name})


def _read_requirements(path: Path) -> PackageProfile:
    """Return the profile of a file with one NAME==VERSION a line."""
    packages = []
    for line in path.read_text(encoding="utf-8").splitlines():
        requirement = line.partition("#")[0].strip()
        if not requirement:
            continue
        package = Package(pin=re.sub(r"\s*==\s*", "==", requirement))
        known = _KNOWN.get(package.name)
        if known is not None:
            # What programs import, and what they use without an import, is as we know it.
            package = known.model_copy(update={"pin": package.pin})
        packages.append(package)
    return PackageProfile(name=path.stem, packages=tuple(packages))


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
        """One line that identifies the environment in files.

        It names Python, the packages and the user's own languages.
        """
        own = "".join(f", {name} {digest}" for name, digest in self.languages.items())
        return f"Python {self.python}, packages {self.profile.label}{own}"

    def as_record(self) -> dict[str, Any]:
        """Return the fields as plain values, for JSON files."""
        record: dict[str, Any] = {"python": self.python, "call_stack": self.call_stack}
        if self.languages:
            record["languages"] = dict(self.languages)
        record["packages"] = {
            "profile": self.profile.name,
            "digest": self.profile.digest,
            "pins": list(self.profile.pins),
            "missing": self.missing,
        }
        return record


def digest_languages() -> dict[str, str]:
    """Return the digests of the language files from outside the package, by language."""
    return {name: language.digest for name, language in LANGUAGES.items() if language.digest}


def name_environment(profile: PackageProfile, problems: Iterable[Problem]) -> dict[str, str]:
    """Return the versions and languages that verdicts on these problems depend on, by name.

    They are those of Python, of packages, and the user's own languages.
    """
    # A language that no problem uses must not keep old verdicts from being used again.
    used = {language_of(problem).name for problem in problems}
    own = {name: digest for name, digest in digest_languages().items() if name in used}
    return {"Python": platform.python_version(), "packages": profile.label, **own}

"""Which third-party packages programs may import: profiles of pinned packages, one file each in `profiles/`.

A program's verdict must not depend on what happens to be installed beside MicroCoder, so programs see the packages of
a profile and no others. Where those are kept, and how they come there: `package_folders.py`.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from pydantic import Field, ValidationError

from microcoder.errors import ConfigError, EvaluatorFault
from microcoder.syntax import parse_source
from microcoder.types import Record

STANDARD = "standard"
"""The default profile."""

_FOLDER = Path(__file__).parent / "profiles"
_PIN = r"^[A-Za-z0-9][A-Za-z0-9._-]*==[A-Za-z0-9][A-Za-z0-9.+!_-]*$"
_IMPORTING_CALLS = ("__import__", "import_module")
_IMPORTS = re.compile(r"import|from")
_MOST_PARSED_CHARACTERS = 1 << 16
"""Parsing takes a hundred times the source's own memory."""


def normalise(name: str) -> str:
    """Return a package's name as the index normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


class Package(Record):
    """One pinned package."""

    pin: str = Field(pattern=_PIN)
    """NAME==VERSION."""
    imports: tuple[str, ...] = ()
    """What a program that needs it imports; the package's own name if left out."""
    prelude: tuple[str, ...] = ()
    """Names that a function-call program uses without importing them."""
    preload: tuple[str, ...] = ()
    """What is loaded beforehand for programs whose source names this package."""

    @property
    def name(self) -> str:
        """The name in the package index, as the index normalises it."""
        return normalise(self.pin.partition("==")[0])

    @property
    def version(self) -> str:
        """The pinned version."""
        return self.pin.partition("==")[2]

    @property
    def modules(self) -> tuple[str, ...]:
        """What a program that needs it imports."""
        return self.imports or (self.name.replace("-", "_"),)


class PackageProfile(Record):
    """The packages that programs may import, by exact version."""

    name: str
    packages: tuple[Package, ...]
    path: str = ""
    """The user's own file; empty for a profile of ours. Not a key of the file."""

    @cached_property
    def pins(self) -> tuple[str, ...]:
        """Every NAME==VERSION, in one order."""
        return tuple(sorted(f"{package.name}=={package.version}" for package in self.packages))

    @cached_property
    def digest(self) -> str:
        """Digest of the pins, independent of the name."""
        return hashlib.sha256(json.dumps(self.pins).encode()).hexdigest()[:12]

    @property
    def label(self) -> str:
        """Name and digest, as files name the profile."""
        return f"{self.name} {self.digest}"

    def preload_for(self, code: str) -> tuple[str, ...]:
        """Return the packages to preload for a program."""
        wanted = {
            name: None
            for package in self.packages
            if package.preload and any(_find_word(module, code) for module in package.modules)
            for name in package.preload
        }
        return tuple(wanted)

    def find_needed(self, code: str, *, is_function: bool) -> Package | None:
        """Return the first package that a program imports, or None.

        A source that is long, or that the Python around the judge cannot parse (a newer one's, say), imports what its
        lines with `import` or `from` name.

        Args:
            code: its source.
            is_function: it may also use the names that function-call programs find without an import.
        """
        if not any(word in code for package in self.packages for word in (*package.modules, *package.prelude)):
            return None
        if len(code) > _MOST_PARSED_CHARACTERS:
            return self._find_in_lines(code, is_function=is_function)
        try:
            nodes = list(ast.walk(parse_source(code)))
        except (SyntaxError, ValueError, RecursionError, MemoryError, EvaluatorFault):
            return self._find_in_lines(code, is_function=is_function)
        imported = {name for node in nodes for name in _imports_of(node)}
        used = {node.id for node in nodes if isinstance(node, ast.Name)} if is_function else set()
        return next((one for one in self.packages if imported & {*one.modules} or used & {*one.prelude}), None)

    def _find_in_lines(self, code: str, *, is_function: bool) -> Package | None:
        lines = "\n".join(line for line in code.splitlines() if _IMPORTS.search(line))
        for one in self.packages:
            is_used = is_function and any(_find_word(name, code) for name in one.prelude)
            if is_used or any(_find_word(module, lines) for module in one.modules):
                return one
        return None


def _imports_of(node: ast.AST) -> Iterator[str]:
    """Yield the modules, and the packages around them, that a part of a program imports by name."""
    match node:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names, level=0):
            modules = [f"{module}.{alias.name}" for alias in names]
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=[ast.Constant(value=str(module)), *_]):
            modules = [module] if name in _IMPORTING_CALLS else []
        case _:
            modules = []
    for module in modules:
        parts = module.split(".")
        yield from (".".join(parts[:length]) for length in range(1, len(parts) + 1))


def _find_word(word: str, text: str) -> bool:
    return word in text and re.search(rf"\b{re.escape(word)}\b", text) is not None


def _read(path: Path) -> PackageProfile:
    return PackageProfile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


PROFILES: Mapping[str, PackageProfile] = MappingProxyType(
    {profile.name: profile for profile in map(_read, sorted(_FOLDER.glob("*.toml")))}
)
"""By name."""

_KNOWN = {package.name: package for profile in PROFILES.values() for package in profile.packages}


def load_profile(name: str) -> PackageProfile:
    """Return a profile by name, or the user's by the path of its file.

    A `.toml` file is as those in `profiles/`; a `.txt` file has one NAME==VERSION a line, as `pip freeze` writes.

    Raises:
        ConfigError: there is none, or its file cannot be read; why, and what is allowed.
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
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"packages = {name!r} cannot be read ({error}); check the path") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"packages = {name!r} is not valid TOML ({error}); see docs/languages.md") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(
            f"packages = {name!r}: {where} = {first['input']!r}: {first['msg']}; write exact pins, such as numpy==2.4.6"
        ) from None
    twice = {package.name for package in profile.packages if [p.name for p in profile.packages].count(package.name) > 1}
    if twice:
        raise ConfigError(f"packages = {name!r} pins {', '.join(sorted(twice))} twice; keep one line of each")
    return profile.model_copy(update={"path": name})


def _read_requirements(path: Path) -> PackageProfile:
    lines = (line.partition("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    packages = [Package(pin=re.sub(r"\s*==\s*", "==", line)) for line in lines if line]
    known = [_KNOWN[one.name].model_copy(update={"pin": one.pin}) if one.name in _KNOWN else one for one in packages]
    return PackageProfile(name=path.stem, packages=tuple(known))

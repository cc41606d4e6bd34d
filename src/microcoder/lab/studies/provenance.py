"""Code provenance of a run: a digest of every module that training imports, and of the whole evaluator.

Comments, layout and docstrings do not count, nor does anything that training never imports (reports, commands, other
engines): they cannot change a number.
"""

from __future__ import annotations

import ast
import hashlib
from functools import cache
from pathlib import Path

import microcoder
from microcoder.judge.core.syntax import parse_source

_SOURCE = Path(microcoder.__file__).parent
_ROOTS = ("train/run/session.py", "train/{engine}/engine.py")
_GATHERING = _SOURCE / "lab" / "studies" / "__init__.py"
"""Names the package's public functions, reports among them; a measuring function gets it with its package."""
_EXTRA = ("judge/**/*.py", "judge/**/*.toml", "data/micro/*.toml")
"""The sandbox is started by path, so no import leads there; nor to files that are read."""


@cache
def digest_code(engine: str, *, module: str = "") -> str:
    """Return the digest of the code that an engine's runs depend on, and of what a module of ours imports."""
    digest = hashlib.sha256()
    for path in code_files(engine, module=module):
        digest.update(path.relative_to(_SOURCE).as_posix().encode() + b"\0")
        digest.update(_essence(path).encode() + b"\0")
    return digest.hexdigest()[:8]


def code_files(engine: str, *, module: str = "") -> list[Path]:
    """Return the files behind a run, and those behind a module of this package, sorted."""
    found: set[Path] = set()
    waiting = [_SOURCE / root.format(engine=engine) for root in _ROOTS] + _files_of(module)
    while waiting:
        path = waiting.pop()
        if path not in found and path != _GATHERING:
            found.add(path)
            waiting.extend(_imported_files(path))
    return sorted(found.union(*(_SOURCE.glob(pattern) for pattern in _EXTRA)))


@cache
def _imported_files(path: Path) -> list[Path]:
    names = []
    for node in ast.walk(parse_source(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [file for name in names for file in _files_of(name)]


def _files_of(name: str) -> list[Path]:
    """Return a module's file with those of the packages that it is in; none for another package's."""
    package, *rest = name.split(".")
    if package != "microcoder":
        return []
    stems = [_SOURCE.joinpath(*rest[:depth]) for depth in range(1, len(rest) + 1)]
    return [file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py") if file.is_file()]


@cache
def _essence(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    tree = parse_source(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [item for item in node.body if not _is_text(item)] or [ast.Pass()]
    return ast.unparse(tree)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

"""Which private names of a library files of ours use, read from its source."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path


def private_names(folder: Path) -> set[str]:
    """Return the names with a leading underscore that files read or call of a base class, and have not defined."""
    read: set[str] = set()
    own: set[str] = set()
    inherited: set[str] = set()
    for node in (node for path in folder.glob("*.py") for node in ast.walk(ast.parse(path.read_text("utf-8")))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            own.add(node.target.id)
        elif isinstance(node, ast.Attribute):
            is_super = isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "super"
            names = own if isinstance(node.ctx, ast.Store) else inherited if is_super else read
            names.add(node.attr)
    return {name for name in (read - own) | inherited if name.startswith("_") and not name.startswith("__")}


def parameters(function: object) -> str:
    """Return a function's parameters but for `self`, by name."""
    assert callable(function)
    return ", ".join(list(inspect.signature(function).parameters)[1:])

"""Attribute docstrings: the string under each attribute of a class, read from its source on demand.

Pydantic can read them too, but does so whenever a class is made, which every start of the program would pay for.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache

from microcoder.syntax import parse_source


@cache
def attribute_docstrings(owner: type) -> dict[str, str]:
    """Return the docstring under each attribute of a class and of its bases, on one line; none if there is none."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.partition(".")[0] not in ("builtins", "pydantic"):
            found |= _own_docstrings(base)
    return found


def _own_docstrings(owner: type) -> dict[str, str]:
    try:
        source = inspect.getsource(owner)
    except OSError:  # made without a file: at a prompt, by exec
        return {}
    definition = parse_source(textwrap.dedent(source)).body[0]
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for statement, following in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            found[statement.target.id] = " ".join(str(following.value.value).split())
    return found

"""Python source -> its syntax tree, safely from any thread.

Nothing else in the package calls `ast.parse`. For source that is not Python, `parse_source` raises
and `try_parse` returns None.
"""

import ast
import inspect
import threading
import warnings
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, overload

from microcoder.judge.core.digits import is_long, shorten_integers
from microcoder.judge.core.errors import EvaluatorFault

_ONE_AT_A_TIME = threading.RLock()
"""Held while parsing.

All threads of CPython 3.11 share one counter of the tree's depth (gh-106905). Two that parse at the
same time, or one in whose parse garbage is collected, may raise `SystemError: AST constructor
recursion depth mismatch`. And in every version all threads share the rules for warnings.
"""
_MOST_ATTEMPTS = 20
"""Most attempts to parse a text."""
_WITH_BODIES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
"""Statements that have a name and a body."""


@overload
def parse_source(source: str, mode: Literal["exec"] = "exec") -> ast.Module: ...


@overload
def parse_source(source: str, mode: Literal["eval"]) -> ast.Expression: ...


def parse_source(source: str, mode: Literal["exec", "eval"] = "exec") -> Any:
    """Return the tree of `ast.parse`, without its warnings.

    Raises:
        SyntaxError: the source is no Python; and whatever else `ast.parse` raises.
        EvaluatorFault: the parser keeps failing for another reason.
    """
    fault = None
    # Held over all attempts: whoever else parses would leave new garbage, whose collection may fail
    # the next one too.
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(_MOST_ATTEMPTS):
            try:
                return ast.parse(source, mode=mode)
            except SyntaxError as error:
                if "digits" not in str(error):
                    raise
                tree = ast.parse(shorten_integers(source), mode=mode)
                return _KeepsLongIntegers().visit(tree)
            except SystemError as error:
                # Code that is not ours parses beside us, or was called by the collector: once more.
                fault = error
    raise EvaluatorFault(f"Python's parser failed {_MOST_ATTEMPTS} times: {fault}")


def try_parse(source: str) -> ast.Module | None:
    """Return a program's tree; None if the Python that this runs on cannot parse it."""
    try:
        return parse_source(source)
    # A null byte is a ValueError, deep nesting a RecursionError or MemoryError.
    except (SyntaxError, ValueError, RecursionError, MemoryError, EvaluatorFault):
        return None


def evaluate_literal(source: str) -> object:
    """Return the value of a literal, as `ast.literal_eval` does.

    It raises the same errors, and those of `parse_source`.
    """
    # As `ast.literal_eval` does, to which indentation is no error.
    source = shorten_integers(source.lstrip(" \t"))
    return ast.literal_eval(parse_source(source, mode="eval"))


def dump_meaning(path: Path) -> str:
    """Return a file's content for a digest of code.

    Of a module that is its tree, without comments, layout and docstrings.
    """
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text
    return ast.dump(_NoTexts().visit(parse_source(text)))


class LongInteger(int):
    """An integer of more digits than Python writes.

    It is shown in hexadecimal, as `ast.unparse` then writes it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the integer as hexadecimal Python."""
        return hex(self)


class _KeepsLongIntegers(ast.NodeTransformer):
    """Replaces long integers of a tree by forms that can be written as source again."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if type(node.value) is int and is_long(node.value):
            return ast.copy_location(ast.Constant(LongInteger(node.value)), node)
        return node


class _NoTexts(ast.NodeTransformer):
    """Removes docstrings and other expression statements that are constants."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        return None if isinstance(node.value, ast.Constant) else node


@cache
def attribute_docstrings(owner: type) -> dict[str, str]:
    """Return attribute name -> the docstring under it, on one line.

    For a class and its bases; attributes without one are left out.
    """
    docstrings: dict[str, str] = {}
    # From the last base on, so that a class's own docstring replaces that of a base.
    for base in reversed(owner.__mro__):
        if base.__module__.partition(".")[0] not in ("builtins", "pydantic"):
            docstrings |= _own_docstrings(base)
    return docstrings


def _own_docstrings(owner: type) -> dict[str, str]:
    try:  # not by `inspect.getsource`, which parses by itself
        source = Path(inspect.getfile(owner)).read_text(encoding="utf-8")
        body = parse_source(source).body
    except (OSError, TypeError):  # made without a file: at a prompt, by exec
        return {}
    for name in owner.__qualname__.replace("<locals>.", "").split("."):
        body = _find_body(body, name)
    docstrings = {}
    for attribute, text in pairwise(body):
        if not isinstance(attribute, ast.AnnAssign) or not isinstance(attribute.target, ast.Name):
            continue
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            docstring = str(text.value.value)
            docstrings[attribute.target.id] = " ".join(docstring.split())
    return docstrings


def _find_body(statements: Sequence[ast.stmt], name: str) -> list[ast.stmt]:
    """Return the body of the class or function of a name; nothing if there is none."""
    for statement in statements:
        is_named = getattr(statement, "name", "") == name
        if is_named and isinstance(statement, _WITH_BODIES):
            return statement.body
    return []

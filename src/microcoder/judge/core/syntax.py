"""Python source -> its syntax tree, safely from any thread: nothing else in the package calls `ast.parse`."""

import ast
import inspect
import threading
import warnings
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, overload

from microcoder.judge.core.digits import is_long, shorten_integers
from microcoder.judge.core.errors import EvaluatorFault

_ONE_AT_A_TIME = threading.RLock()
"""Held while parsing. All threads of CPython 3.11 share one counter of the tree's depth (gh-106905): two that parse at
the same time, or one in whose parse garbage is collected, may raise `SystemError: AST constructor recursion depth
mismatch`. And in every version all threads share the rules for warnings."""
_MOST_TRIES = 20


@overload
def parse_source(source: str, mode: Literal["exec"] = "exec") -> ast.Module: ...


@overload
def parse_source(source: str, mode: Literal["eval"]) -> ast.Expression: ...


def parse_source(source: str, mode: Literal["exec", "eval"] = "exec") -> Any:
    """Return the tree of `ast.parse`, without its warnings; raises its errors, EvaluatorFault if it keeps failing."""
    fault = None
    # Held over all tries: whoever else parses would leave new garbage, whose collection may fail the next one too.
    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(_MOST_TRIES):
            try:
                return ast.parse(source, mode=mode)
            except SyntaxError as error:
                if "digits" not in str(error):
                    raise
                return _KeepsLongIntegers().visit(ast.parse(shorten_integers(source), mode=mode))
            except SystemError as error:
                fault = error  # Code that is not ours parses beside us, or was called by the collector: once more.
    raise EvaluatorFault(f"Python's parser failed {_MOST_TRIES} times: {fault}")


def try_parse(source: str) -> ast.Module | None:
    """Return a program's tree; None if the Python that this runs on cannot parse it."""
    try:
        return parse_source(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError, EvaluatorFault):
        return None


def evaluate_literal(source: str) -> object:
    """Return the value of a literal, as `ast.literal_eval` of a text does; raises like it and like `parse_source`."""
    source = shorten_integers(source.lstrip(" \t"))
    return ast.literal_eval(parse_source(source, mode="eval"))


def dump_meaning(path: Path) -> str:
    """Return a file's content for a digest of code: a module's tree, without comments, layout and docstrings."""
    text = path.read_text(encoding="utf-8")
    return ast.dump(_NoTexts().visit(parse_source(text))) if path.suffix == ".py" else text


class LongInteger(int):
    """An integer of more digits than Python writes; it is shown in hexadecimal, as `ast.unparse` then writes it."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the integer as hexadecimal Python."""
        return hex(self)


class _KeepsLongIntegers(ast.NodeTransformer):
    """Makes long integers of a tree such that can be written as source again."""

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
    """Return attribute name -> the docstring under it, on one line, for a class and its bases; others are left out."""
    found: dict[str, str] = {}
    for base in reversed(owner.__mro__):
        if base.__module__.partition(".")[0] not in ("builtins", "pydantic"):
            found |= _own_docstrings(base)
    return found


def _own_docstrings(owner: type) -> dict[str, str]:
    try:  # not by `inspect.getsource`, which parses by itself
        body = parse_source(Path(inspect.getfile(owner)).read_text(encoding="utf-8")).body
    except (OSError, TypeError):  # made without a file: at a prompt, by exec
        return {}
    for name in owner.__qualname__.replace("<locals>.", "").split("."):
        body = next(
            (
                node.body
                for node in body
                if getattr(node, "name", "") == name and hasattr(node, "body")
            ),
            [],
        )
    return {
        named.target.id: " ".join(str(text.value.value).split())
        for named, text in pairwise(body)
        if isinstance(named, ast.AnnAssign) and isinstance(named.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }

"""Scopes of a program that is screened.

They say which names a function or a class binds, and which nodes belong to it.
"""

import ast
from collections.abc import Sequence
from typing import NamedTuple

from microcoder.judge.run.sharing_names import NAMING_FIELDS

Function = ast.FunctionDef | ast.Lambda


class Scope(NamedTuple):
    """How names are looked up in a function or a class."""

    own: frozenset[str]
    """Names bound here, so never looked up outside."""
    elsewhere: frozenset[str]
    """Names declared global or imported here: they never mean a variable of an outer function."""


def scope_of(node: Function | ast.ClassDef) -> Scope:
    """Return how names are looked up in a function or a class."""
    bound: set[str] = set()
    outer: set[str] = set()
    elsewhere: set[str] = set()
    body = node.body if isinstance(node.body, list) else [node.body]
    for inner in nodes_of_scope(body):
        if isinstance(inner, ast.Name):
            if not isinstance(inner.ctx, ast.Load):
                bound.add(inner.id)
        elif isinstance(inner, _BINDING):
            bound.add(getattr(inner, NAMING_FIELDS[type(inner)]) or "")
        elif isinstance(inner, ast.Nonlocal):
            outer.update(inner.names)
        elif isinstance(inner, ast.Global):
            elsewhere.update(inner.names)
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            elsewhere.update(alias.asname or alias.name for alias in inner.names)
    if isinstance(node, ast.ClassDef):
        # What a class binds is looked up outside by the functions in it, and in the module before
        # it is bound.
        return Scope(frozenset(), frozenset(elsewhere | bound))
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        bound.add(argument.arg)
    for rest in (arguments.vararg, arguments.kwarg):
        if rest is not None:
            bound.add(rest.arg)
    return Scope(frozenset(bound - elsewhere - outer), frozenset(elsewhere))


def nodes_of_scope(body: Sequence[ast.AST]) -> list[ast.AST]:
    """Return the nodes that belong to a scope.

    Those inside its functions, classes and comprehensions do not.
    """
    nodes = [*body]
    # It grows on the way.
    for inner in nodes:
        if isinstance(inner, (ast.FunctionDef, ast.ClassDef)):
            nodes += inner.decorator_list
        elif not isinstance(inner, _SCOPES):
            nodes += ast.iter_child_nodes(inner)
    return nodes


_SCOPES = (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
"""Expressions with a scope of their own."""
_BINDING = (
    ast.FunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
)
"""Nodes that bind a name without an `ast.Name`, which `NAMING_FIELDS` says where to find."""

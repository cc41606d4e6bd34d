"""Starter code -> how its function is called: annotations such as `Optional[ListNode]` become kinds of values.

Only a problem's own starter code is read, never the program that is judged; nothing is executed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Call, Method, Problem

NOT_JUDGED_BY = frozenset({"id", "statement", "starter_code", "tier", "reference"})
"""Fields of a problem that decide no verdict; of the starter code only the call does that it implies."""

_OPEN, _CLOSE = "([{", ")]}"
_COMMENT = re.compile(r"^[ \t]*#[^\n]*$|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}", re.MULTILINE)
_FIELD = re.compile(r"self\.(children|neighbors|random|next)\b")
_NODE_CLASS = re.compile(r"class Node\b.*?(?=^\S*\s*class |\Z)", re.MULTILINE | re.DOTALL)
_METHOD = re.compile(r"\bdef[ \t]+(\w+)[ \t]*\(")
_LONGEST_STARTER = 20_000


def find_call(problem: Problem) -> Call | None:
    """Return how a problem's function is called: its own `call`, else from its starter code's annotations.

    None if all is plain JSON.
    """
    if problem.fn_name is None or problem.harness is not None:
        return None
    if problem.call is not None:
        return problem.call if problem.call != Call() else None
    test = problem.tests[0]
    are_null = all(test.output.strip() == "null" for test in problem.tests)
    return infer_call(problem.starter_code or "", problem.fn_name, first_input=test.input, are_null=are_null)


def judged_by(problem: Problem) -> dict[str, Any]:
    """Return all fields of a problem that decide verdicts, with the call that its starter code implies.

    Everything that compares problems, or passes one on to be judged, uses this, so that no field is forgotten.
    """
    fields = {name: getattr(problem, name) for name in Problem.model_fields if name not in NOT_JUDGED_BY}
    return fields | {"call": find_call(problem)}


@lru_cache(maxsize=4096)
def infer_call(source: str, fn_name: str, *, first_input: str = "", are_null: bool = False) -> Call | None:
    """Read annotations; None if they name nothing but plain JSON.

    Args:
        source: starter code; it may end after a function's head.
        fn_name: a function, a method, or a design class.
        first_input: of the first test: a bare number where a tree is expected names a node by its value.
        are_null: whether every test expects null, so that `-> None` does not mean a change in place.
    """
    if len(source) > _LONGEST_STARTER:
        return None
    code = _COMMENT.sub("", source)
    node_kind = _find_node_kind(source)
    head = find_head(code, fn_name)
    if head is None:
        return _infer_design(code, fn_name, node_kind)
    parameters = [_kind_of(argument.annotation, node_kind) for argument in _arguments_of(head)]
    lines = [line.strip() for line in first_input.split("\n") if line.strip()]
    for place, line in enumerate(lines[: len(parameters)]):
        if parameters[place] == "TreeNode" and not line.startswith(("[", "n")):
            parameters[place] = "TreeNode.val"
    returns = _kind_of(head.returns, node_kind)
    if returns == "TreeNode" and "TreeNode.val" in parameters:
        returns = "TreeNode.val"
    result = None if are_null else _changed_argument(head, parameters)
    if {*parameters, returns} == {"json"} and result is None:
        return None
    is_copy = returns in ("Node.neighbors", "Node.random")
    return Call(parameters=tuple(parameters), returns=returns, result=result, is_copy=is_copy)


def find_head(source: str, name: str) -> ast.FunctionDef | None:
    """Return the head of a function or method in code that may be cut off after it; None if it is not there."""
    found = re.search(rf"\bdef[ \t]+{re.escape(name)}[ \t]*\(", source) if name.isidentifier() else None
    return _parse_head(source, found.end() - 1) if found else None


def _parse_head(source: str, start: int) -> ast.FunctionDef | None:
    """Parse the parameters that begin here, and the annotation behind them."""
    depth, end = 0, start
    for end in range(start, len(source)):
        depth += (source[end] in _OPEN) - (source[end] in _CLOSE)
        if depth == 0:
            break
    returns = re.match(r"\s*->[^:\n]+(?=:|\n|\Z)", source[end + 1 :])
    for tail in (returns[0].strip() if returns else "", ""):
        try:
            tree = parse_source(f"def f{source[start : end + 1]} {tail}: pass")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            continue
        if tree.body and isinstance(tree.body[0], ast.FunctionDef):
            return tree.body[0]
    return None


def _infer_design(code: str, name: str, node_kind: str) -> Call | None:
    """Read the methods of a class; None if there is no such class."""
    found = re.search(rf"^class[ \t]+{re.escape(name)}\b", code, re.MULTILINE) if name.isidentifier() else None
    if found is None:
        return None
    body = re.split(r"^class\b", code[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    methods = []
    for method in _METHOD.finditer(body):
        head = _parse_head(body, method.end() - 1)
        if head is not None:
            parameters = tuple(_kind_of(argument.annotation, node_kind) for argument in _arguments_of(head))
            returns = _kind_of(head.returns, node_kind)
            if {*parameters, returns} != {"json"}:
                methods.append(Method(name=method[1], parameters=parameters, returns=returns))
    return Call(style="design", methods=tuple(methods))


def _arguments_of(head: ast.FunctionDef) -> list[ast.arg]:
    arguments = [*head.args.posonlyargs, *head.args.args]
    return arguments[1:] if arguments and arguments[0].arg in ("self", "cls") else arguments


def _kind_of(annotation: ast.expr | None, node_kind: str) -> str:
    """Return the name in an annotation, without `Optional[X]`, `X | None`, quotes and `List[X]`."""
    match annotation:
        case ast.Name(id="ListNode" | "TreeNode" as name):
            return name
        case ast.Name(id="Node"):
            return node_kind
        case ast.Constant(value=str(text)):
            try:
                return _kind_of(parse_source(text, mode="eval").body, node_kind)
            except (SyntaxError, ValueError, MemoryError, RecursionError):
                return "json"
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _kind_of(inner, node_kind)
        case ast.BinOp(left=left, op=ast.BitOr(), right=ast.Constant(value=None)):
            return _kind_of(left, node_kind)
        case ast.Subscript(value=ast.Name(id="List" | "list"), slice=inner):
            kind = _kind_of(inner, node_kind)
            return "json" if kind == "json" or kind.count("[") > 3 else f"list[{kind}]"
    return "json"


def _find_node_kind(source: str) -> str:
    """Return which `Node` a definition in the starter code describes, also one that is commented out."""
    found = _NODE_CLASS.search(source)
    fields = set(_FIELD.findall(found[0])) if found else set()
    return next((f"Node.{name}" for name in ("children", "neighbors", "random", "next") if name in fields), "json")


def _changed_argument(head: ast.FunctionDef, kinds: Sequence[str]) -> int | None:
    """Return the argument that `-> None` says is changed in place: the first list, or the first node."""
    if not (isinstance(head.returns, ast.Constant) and head.returns.value is None) or not kinds:
        return None
    for place, argument in enumerate(_arguments_of(head)):
        is_list = isinstance(argument.annotation, ast.Subscript)
        if is_list or kinds[place] != "json":
            return place
    return 0

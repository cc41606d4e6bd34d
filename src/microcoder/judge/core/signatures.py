"""Starter code -> how its function is called.

Annotations such as `Optional[ListNode]` become kinds of values. Only a problem's own starter code
is read, never the program that is judged; nothing is executed. Start with `find_call`.
"""

import ast
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Call, Method, Problem

NOT_JUDGED_BY = frozenset({"id", "statement", "starter_code", "tier", "reference"})
"""Fields of a problem that do not affect verdicts; of the starter code only its call does."""

_OPEN = "([{"
"""Opening brackets."""
_CLOSE = ")]}"
"""Closing brackets."""
_COMMENT = re.compile(r"^[ \t]*#[^\n]*$|\"{3}[\s\S]*?\"{3}|'{3}[\s\S]*?'{3}", re.MULTILINE)
"""A comment on a line of its own, or a docstring."""
_NODE_CLASS = re.compile(r"^\W*class Node\b", re.MULTILINE)
"""The head of a class `Node`, also in a comment."""
_METHOD = re.compile(r"\bdef[ \t]+(\w+)[ \t]*\(")
"""The head of a method, up to its parameters."""
_LONGEST_STARTER = 20_000
"""Longest starter code that is read, in characters."""
_DEEPEST_LIST = 4
"""Deepest list of nodes that is a kind."""
_PARSE_ERRORS = (SyntaxError, ValueError, MemoryError, RecursionError)
"""What Python's parser raises for text that it cannot read."""


def find_call(problem: Problem) -> Call | None:
    """Return how a problem's function is called: `call`, else what its starter code implies.

    None for plain JSON.
    """
    if problem.fn_name is None or problem.assertions is not None:
        return None
    if problem.call is not None:
        # A call of defaults alone says that all is plain JSON, whatever the annotations say.
        return problem.call if problem.call != Call() else None
    are_null = all(test.output.strip() == "null" for test in problem.tests)
    return infer_call(problem.starter_code or "", problem.fn_name, are_null=are_null)


def judged_by(problem: Problem) -> dict[str, Any]:
    """Return all fields of a problem that decide verdicts, with the call that its starter code
    implies.

    Code that compares problems, or passes a problem on to be judged, uses this, so that no field is
    forgotten.
    """
    fields = {
        name: getattr(problem, name) for name in Problem.model_fields if name not in NOT_JUDGED_BY
    }
    return fields | {"call": find_call(problem)}


@lru_cache(maxsize=4096)
def infer_call(source: str, fn_name: str, *, are_null: bool = False) -> Call | None:
    """Return the call that the starter code's annotations imply; None if all values are plain JSON.

    Args:
        source: starter code; it may end after a function's head.
        fn_name: a function, a method, or a design class.
        are_null: whether every test expects null: `-> None` then does not mean that an argument is
            changed in place.
    """
    if len(source) > _LONGEST_STARTER:
        return None
    # LeetCode puts the classes of its nodes into comments, with heads of functions in them.
    code = _COMMENT.sub("", source)
    head = find_head(code, fn_name)
    if head is None:
        return _infer_design(code, fn_name)
    parameters = _kinds_of_arguments(head)
    returns = _kind_of(head.returns)
    result = None if are_null else _changed_argument(head, parameters)
    if {*parameters, returns} == {"json"} and result is None:
        return None
    return Call(parameters=parameters, returns=returns, result=result)


def find_head(source: str, name: str) -> ast.FunctionDef | None:
    """Return a function's or method's `def` as a tree without its body; None if not found.

    The code may lack the body.
    """
    # Names come from data sets, and may be anything.
    if not name.isidentifier():
        return None
    head = re.search(rf"\bdef[ \t]+{re.escape(name)}[ \t]*\(", source)
    if head is None:
        return None
    return _parse_head(source, head.end() - 1)


def _parse_head(source: str, start: int) -> ast.FunctionDef | None:
    """Parse the parameters in brackets at `start`, and the return annotation behind them.

    None if invalid.
    """
    end = _find_closing_bracket(source, start)
    parameters = source[start : end + 1]
    returns = re.match(r"\s*->[^:\n]+(?=:|\n|\Z)", source[end + 1 :])
    annotation = returns[0].strip() if returns else ""
    # An annotation that Python cannot read is left out.
    for tail in (annotation, ""):
        try:
            tree = parse_source(f"def f{parameters} {tail}: pass")
        except _PARSE_ERRORS:
            continue
        if tree.body and isinstance(tree.body[0], ast.FunctionDef):
            return tree.body[0]
    return None


def _find_closing_bracket(source: str, start: int) -> int:
    """Return the offset of the bracket that closes the bracket at `start`, else of the text's
    end."""
    depth = 0
    for offset in range(start, len(source)):
        if source[offset] in _OPEN:
            depth += 1
        elif source[offset] in _CLOSE:
            depth -= 1
        if depth == 0:
            return offset
    return max(start, len(source) - 1)


def _infer_design(code: str, name: str) -> Call | None:
    """Return a design-style call with the methods of a class; None if there is no such class."""
    if not name.isidentifier():
        return None
    head = re.search(rf"^class[ \t]+{re.escape(name)}\b", code, re.MULTILINE)
    if head is None:
        return None
    # A class further down is another one, whose methods are not called.
    behind = code[head.end() :]
    body = re.split(r"^class\b", behind, maxsplit=1, flags=re.MULTILINE)[0]
    methods = []
    for method in _METHOD.finditer(body):
        definition = _parse_head(body, method.end() - 1)
        if definition is None:
            continue
        parameters = _kinds_of_arguments(definition)
        returns = _kind_of(definition.returns)
        if {*parameters, returns} != {"json"}:
            methods.append(
                Method(
                    name=method[1],
                    parameters=parameters,
                    returns=returns,
                )
            )
    return Call(style="design", methods=tuple(methods))


def arguments_of(head: ast.FunctionDef) -> list[ast.arg]:
    """Return a function's positional arguments, a method's without self."""
    arguments = [*head.args.posonlyargs, *head.args.args]
    if arguments and arguments[0].arg in ("self", "cls"):
        return arguments[1:]
    return arguments


def _kinds_of_arguments(head: ast.FunctionDef) -> tuple[str, ...]:
    return tuple(_kind_of(argument.annotation) for argument in arguments_of(head))


def _kind_of(annotation: ast.expr | None) -> str:
    """Return the kind of an annotation; `json` if it has none of its own.

    Kinds are `ListNode`, `TreeNode` and lists of them, also quoted or optional.
    """
    match annotation:
        case ast.Name(id="ListNode" | "TreeNode" as name):
            return name
        case ast.Constant(value=str(text)):
            try:
                return _kind_of(parse_source(text, mode="eval").body)
            except _PARSE_ERRORS:
                return "json"
        case ast.Subscript(value=ast.Attribute(attr=name), slice=inner):
            return _kind_of(ast.Subscript(ast.Name(name), inner))
        case ast.Subscript(value=ast.Name(id="Optional"), slice=inner):
            return _kind_of(inner)
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=[first, second])):
            return _kind_of_two(first, second)
        case ast.BinOp(left=first, op=ast.BitOr(), right=second):
            return _kind_of_two(first, second)
        case ast.Subscript(value=ast.Name(id="List" | "list"), slice=inner):
            kind = _kind_of(inner)
            # A list of plain values is itself plain JSON.
            if kind == "json" or kind.count("[") >= _DEEPEST_LIST:
                return "json"
            return f"list[{kind}]"
    return "json"


def _kind_of_two(first: ast.expr, second: ast.expr) -> str:
    """Return the kind of a union of two annotations: it is optional if one of them is None."""
    if isinstance(second, ast.Constant) and second.value is None:
        return _kind_of(first)
    if isinstance(first, ast.Constant) and first.value is None:
        return _kind_of(second)
    return "json"


def defines_node(source: str) -> bool:
    """Whether starter code describes a class `Node` of its own, if only in a comment."""
    return _NODE_CLASS.search(source) is not None


def _changed_argument(head: ast.FunctionDef, kinds: Sequence[str]) -> int | None:
    """Return the index of the argument that a function changes in place; None if there is none.

    A `-> None` function changes its first list or node, else its first argument.
    """
    returns_none = isinstance(head.returns, ast.Constant) and head.returns.value is None
    if not returns_none or not kinds:
        return None
    for index, argument in enumerate(arguments_of(head)):
        annotation = argument.annotation
        if kinds[index] != "json" or isinstance(annotation, ast.Subscript):
            return index
        if isinstance(annotation, ast.Name) and annotation.id in ("list", "List"):
            return index
    return 0

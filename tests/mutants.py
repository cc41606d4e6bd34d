"""Small changes of a program's syntax tree, each named after what was changed: the mistakes that tests must notice."""

import ast
import copy
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv, ast.Pow: ast.Mult,
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil", "sorted": "list"}


class Mutant(NamedTuple):
    """A changed program and its name, `mutation@line`."""

    name: str
    code: str


def make_mutants(code: str, *, limit: int) -> list[Mutant]:
    """Return mutants of as many mutations and lines as there are."""
    tree = ast.parse(code)
    places = list(range(len(list(find_sites(tree)))))
    random.Random(0).shuffle(places)
    found: dict[str, Mutant] = {}
    for place in places:
        changed = copy.deepcopy(tree)
        name, node, field, value = list(find_sites(changed))[place]
        setattr(node, field, value)
        text = ast.unparse(ast.fix_missing_locations(changed))
        if text != ast.unparse(tree):
            found.setdefault(text, Mutant(f"{name}@{getattr(node, 'lineno', 0)}", text))
        if len(found) == limit:
            break
    return sorted(found.values())


def find_sites(tree: ast.Module) -> Iterator[tuple[str, ast.AST, str, Any]]:
    """Yield every change: its name, a node, one of the node's fields, and what to put there."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(ops=[op], comparators=[right]):
                yield "compare", node, "ops", [OPPOSITES[type(op)]()]
                if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                    yield "bound", node, "comparators", [ast.BinOp(right, ast.Add(), ast.Constant(1))]
            case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPPOSITES:
                yield "operator", node, "op", OPPOSITES[type(op)]()
            case ast.BoolOp(op=op, values=values):
                yield "logic", node, "op", OPPOSITES[type(op)]()
                yield "logic", node, "values", values[:-1]
                yield "logic", node, "values", values[1:]
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                yield "logic", node, "operand", ast.UnaryOp(ast.Not(), operand)
            case ast.Constant(value=bool(value)):
                yield "constant", node, "value", not value
            case ast.Constant(value=int(value)):
                yield "constant", node, "value", value + 1
                yield "constant", node, "value", value - 1
            case ast.If() | ast.IfExp():
                yield "branch", node, "test", ast.Constant(True)
                yield "branch", node, "test", ast.Constant(False)
            case ast.For(body=body):
                yield "loop", node, "body", [*body, ast.Break()]
                yield "loop", node, "body", body[:-1] or [ast.Pass()]
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield "call", node.func, "id", CALLS[name]
            case ast.Subscript(slice=index, ctx=ast.Load()) if not isinstance(index, ast.Slice):
                yield "index", node, "slice", ast.BinOp(index, ast.Add(), ast.Constant(1))

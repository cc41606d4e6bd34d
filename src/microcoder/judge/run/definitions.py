"""Which functions are defined once for all tests of a process, and then only called.

A program that may share a process (`screen`) reaches only the library, which is looked at between tests, and what its
own module defines. That need not be made anew for each test if the module binds nothing but functions, classes and
constants, and binds each once: of such, a call can change only attributes. So the process that runs the program
defines it once if besides it sets no attribute of anything, and names nothing of the library that does
(`is_rare` in `sandbox/batch.py`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from microcoder.judge.run.screen import parse

_CONSTANT = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context)
_TARGET = (ast.Name, ast.Tuple, ast.expr_context)
_ANNOTATION = (*_CONSTANT, ast.Name, ast.Attribute, ast.Subscript, ast.List)
_SIGNATURE = (*_ANNOTATION, ast.arguments, ast.arg)


def binds_constants(code: str) -> bool:
    """Whether a program without an obstacle (`find_obstacle`) binds only functions, classes and constants, once."""
    tree = parse(code)
    return (
        not isinstance(tree, str)
        and all(map(_is_fixed, tree.body))
        and not any(isinstance(node, ast.Global) for node in ast.walk(tree))
    )


def _is_fixed(statement: ast.stmt) -> bool:
    """Whether a statement of a module or a class binds nothing that holds anything but constants."""
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        case ast.FunctionDef(args=args, returns=returns, decorator_list=[]):
            defaults = filter(None, (*args.defaults, *args.kw_defaults))
            return _consist_of(_CONSTANT, defaults) and _consist_of(_SIGNATURE, filter(None, (args, returns)))
        case ast.ClassDef(decorator_list=[], bases=bases, body=body):
            return all(isinstance(base, ast.Name) for base in bases) and all(map(_is_fixed, body))
        case ast.Assign(targets=targets, value=value):
            return _consist_of(_TARGET, targets) and _consist_of(_CONSTANT, [value])
        case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=ast.expr() as value):
            return _consist_of(_CONSTANT, [value]) and _consist_of(_ANNOTATION, [annotation])
    return False


def _consist_of(kinds: tuple[type, ...], trees: Iterable[ast.AST]) -> bool:
    return all(isinstance(node, kinds) for tree in trees for node in ast.walk(tree))

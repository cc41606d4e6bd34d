"""Which functions are defined once for all tests of a process, and then only called.

A program that may share a process (`screen`) reaches only the library, which is looked at between tests, and what its
own module defines. That is the same in every test, and need not be made anew, if no call can change it: the module
binds functions, classes and constants, once; and neither a function nor a class of it is ever a value, which could be
given an attribute. What a call makes itself cannot be reached from the next.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from microcoder.judge.run.screen import parse

_CONSTANT = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.BinOp, ast.unaryop, ast.operator, ast.expr_context)
_TARGET = (ast.Name, ast.Tuple, ast.expr_context)
_ANNOTATION = (*_CONSTANT, ast.Name, ast.Attribute, ast.Subscript, ast.List)


def is_defined_once(code: str) -> bool:
    """Whether the module of a program without an obstacle (`find_obstacle`) is the same before and after any call."""
    tree = parse(code)
    if isinstance(tree, str) or not all(_is_fixed(statement, of_class=False) for statement in tree.body):
        return False
    nodes = [*ast.walk(tree)]
    named = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    # Where they are called, inherited from, or part of an annotation, no value comes of them.
    harmless = {id(used) for node in nodes for used in _uses(node)}
    return not any(
        isinstance(node, ast.Global)
        # Is given its class as a value.
        or (isinstance(node, ast.FunctionDef) and node.name == "__new__")
        or (isinstance(node, ast.Name) and node.id in named and id(node) not in harmless)
        for node in nodes
    )


def _is_fixed(statement: ast.stmt, *, of_class: bool) -> bool:
    """Whether a statement of a module or a class binds nothing but what cannot be changed without being named."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            return not of_class
        case ast.FunctionDef(args=args, decorator_list=[]):
            given = [*args.defaults, *(default for default in args.kw_defaults if default)]
            return _consist_of(_CONSTANT, given) and _consist_of(_ANNOTATION, _annotations(statement))
        case ast.ClassDef(decorator_list=[], bases=bases, body=body):
            # A class in a class would be an attribute of each object.
            is_plain = not of_class and all(isinstance(base, ast.Name) for base in bases)
            return is_plain and all(_is_fixed(inner, of_class=True) for inner in body)
        case ast.Assign(targets=targets, value=value):
            return _consist_of(_TARGET, targets) and _consist_of(_CONSTANT, [value])
        case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=ast.expr() as value):
            return _consist_of(_CONSTANT, [value]) and _consist_of(_ANNOTATION, [annotation])
    return isinstance(statement, ast.Pass) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    )


def _consist_of(kinds: tuple[type, ...], expressions: Iterable[ast.expr]) -> bool:
    return all(isinstance(node, kinds) for expression in expressions for node in ast.walk(expression))


def _annotations(function: ast.FunctionDef) -> list[ast.expr]:
    args = function.args
    every = [*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg]
    found = [argument.annotation for argument in every if argument]
    return [one for one in [*found, function.returns] if one]


def _uses(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Call(func=function):
            yield function
        case ast.ClassDef(bases=bases):
            yield from bases
        case ast.FunctionDef():
            for annotation in _annotations(node):
                yield from ast.walk(annotation)
        case ast.AnnAssign(annotation=annotation):
            yield from ast.walk(annotation)

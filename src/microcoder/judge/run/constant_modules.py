"""Programs that a shared process need define only once: their module binds nothing that changes.

What a program's own module defines need not be made again for each test if the module binds nothing
but functions, classes and constants, and no function rebinds them by `global` (`binds_constants`).
Of these, a call can change only attributes. So the process defines the module once if, besides, the
program sets no attribute of anything, and names nothing of the library that does (`is_rare` in
`sandbox/batch.py`).
"""

import ast
from collections.abc import Iterable

from microcoder.judge.run.screen import parse

_CONSTANT = (
    ast.Constant,
    ast.Tuple,
    ast.UnaryOp,
    ast.BinOp,
    ast.unaryop,
    ast.operator,
    ast.expr_context,
)
"""What a constant value consists of."""
_TARGET = (ast.Name, ast.Tuple, ast.expr_context)
"""What the target of an assignment of constants consists of."""
_ANNOTATION = (*_CONSTANT, ast.Name, ast.Attribute, ast.Subscript, ast.List)
"""What an annotation consists of."""
_SIGNATURE = (*_ANNOTATION, ast.arguments, ast.arg)
"""What the arguments of a function consist of."""


def binds_constants(code: str) -> bool:
    """Whether a program without an obstacle (`find_obstacle`) binds only what does not change.

    That is functions, classes and constants, and nothing by `global`.
    """
    tree = parse(code)
    # Wherever the word stands: looking for the statement takes longer than a test.
    if "global" in code or isinstance(tree, str):
        return False
    return all(map(_is_fixed, tree.body))


def _is_fixed(statement: ast.stmt) -> bool:
    """Whether a statement binds only imports, functions, classes and constants.

    It is one of a module or a class.
    """
    match statement:
        case ast.Import() | ast.ImportFrom() | ast.Pass() | ast.Expr(value=ast.Constant()):
            return True
        # Without decorators, which may do anything.
        case ast.FunctionDef(args=args, returns=returns, decorator_list=[]):
            defaults = filter(None, (*args.defaults, *args.kw_defaults))
            signature = filter(None, (args, returns))
            return _consist_of(_CONSTANT, defaults) and _consist_of(_SIGNATURE, signature)
        # A base that is more than a name may do anything as well.
        case ast.ClassDef(decorator_list=[], bases=bases, body=body):
            return all(isinstance(base, ast.Name) for base in bases) and all(map(_is_fixed, body))
        case ast.Assign(targets=targets, value=value):
            return _consist_of(_TARGET, targets) and _consist_of(_CONSTANT, [value])
        case ast.AnnAssign(target=ast.Name(), annotation=annotation, value=ast.expr() as value):
            return _consist_of(_CONSTANT, [value]) and _consist_of(_ANNOTATION, [annotation])
    return False


def _consist_of(kinds: tuple[type, ...], trees: Iterable[ast.AST]) -> bool:
    for tree in trees:
        for node in ast.walk(tree):
            if not isinstance(node, kinds):
                return False
    return True

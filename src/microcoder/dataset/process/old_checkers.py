"""Checkers in Python 2, as archives before 2020 have them: turned into Python 3, or said to be missing.

Python 2 divides integers and reals by one sign; the converted program asks which, each time.
"""

from __future__ import annotations

import ast
import re

from microcoder.formats.candidates import Candidate
from microcoder.formats.text import is_python2, parse_python

_OPENS = re.compile(r"(?<![\w.])file\(")
"""What only Python 2 opens files by."""
_PRELUDE = """file = open
def _divide(a, b):
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b
"""


def convert_checker(candidate: Candidate) -> Candidate:
    """Return the candidate with a checker that runs; `needs_checker` where it cannot be converted."""
    checker = candidate.checker
    if checker.type != "program" or checker.language != "python" or checker.code is None:
        return candidate
    if checker.code.startswith(_PRELUDE):
        return candidate
    speaks_python2 = is_python2(checker.code) or _OPENS.search(checker.code)
    if not speaks_python2 and parse_python(checker.code) is not None:
        return candidate
    # fissix comes with the data extra and takes a while to load.
    from microcoder.dataset.verify.python2 import convert_grammar

    tree = parse_python(convert_grammar(checker.code) or "(")
    if tree is None:
        flags = tuple(sorted({*candidate.flags, "needs_checker"}))
        return candidate.change("process", "convert_checker/1", "neither Python 3 nor Python 2", flags=flags)
    is_exact = any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    tree.body = [node for node in tree.body if not (isinstance(node, ast.ImportFrom) and node.module == "__future__")]
    code = _PRELUDE + ast.unparse(ast.fix_missing_locations(tree if is_exact else _Divisions().visit(tree)))
    changed = checker.model_copy(update={"code": code})
    return candidate.change("process", "convert_checker/1", "from Python 2", checker=changed)


class _Divisions(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div):
            return node
        return ast.Call(ast.Name("_divide", ast.Load()), [node.left, node.right], [])

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Div) or not isinstance(node.target, ast.Name):
            return node
        left = ast.Name(node.target.id, ast.Load())
        return ast.Assign([node.target], ast.Call(ast.Name("_divide", ast.Load()), [left, node.value], []))

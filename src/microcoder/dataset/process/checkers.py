"""How answers are compared: checkers in Python 2, as archives before 2020 have them, and lists in any order."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

from microcoder.formats.candidates import Candidate
from microcoder.formats.text import is_python2, parse_python
from microcoder.types import Checker

_OPENS = re.compile(r"(?<![\w.])file\(")
"""What only Python 2 opens files by."""
# Python 2 divides integers and reals by one sign; the converted program asks which, each time.
_PRELUDE = """file = open
def _divide(a, b):
    return a // b if isinstance(a, int) and isinstance(b, int) else a / b
"""
_ANY_ORDER = re.compile(
    r"\b(?:return|output|print)(?:ed|s)?\b(?P<what>[^.\n]{0,160}?)\bin \**any order\b(?! you)"
    r"|(?P<named>[^.\n]{0,80})\b(?:return|output|print)ed in \**any order\b"
    r"|(?:返回|输出)[^。\n]{0,40}任意顺序|任意顺序[^。\n]{0,10}(?:返回|输出)",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\b(?:integers|elements|indices|numbers|values|items)\b", re.IGNORECASE)


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


def find_order(candidate: Candidate) -> Checker | None:
    """Return the checker of a function whose statement asks for a list in any order; None where it does not.

    Where lists of lists are expected and the statement speaks of numbers or indices, it means the inner lists.
    """
    call = candidate.call
    if not candidate.fn_name or not candidate.tests or candidate.checker != Checker():
        return None
    if call is not None and (call.style == "design" or call.returns != "json"):
        return None
    found = _ANY_ORDER.search(candidate.statement)
    values = _read_lists(candidate) if found else None
    if found is None or values is None:
        return None
    is_nested = any(values) and all(isinstance(item, list) for value in values for item in value)
    told = found["what"] or found["named"] or ""
    return Checker(type="unordered", lists="inner" if is_nested and _PARTS.search(told) else "outermost")


def _read_lists(candidate: Candidate) -> list[list[Any]] | None:
    """Return the expected values; None where one of them is no list."""
    try:
        values = [json.loads(test.output) for test in candidate.tests]
    except (ValueError, RecursionError):
        return None
    return values if all(isinstance(value, list) for value in values) else None

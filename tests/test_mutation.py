"""The tests of the pure modules notice when those compute something else."""

import ast
import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import microcoder

TESTS = Path(__file__).parent
MOST_MUTANTS = 16
ALGORITHM = "microcoder.train.algorithm."
JUDGE = "microcoder.judge."
COMPARISON = ("judge/test_compare.py", "judge/test_values.py")
TESTS_OF = {
    f"{ALGORITHM}advantages": ("train/test_scoring.py",),
    f"{ALGORITHM}masking": ("train/test_scoring.py",),
    "microcoder.train.run.alarms": ("train/test_temperature.py", "train/test_metrics.py"),
    f"{ALGORITHM}selection": ("train/test_filtering.py", "train/test_scoring.py"),
    f"{ALGORITHM}scoring": ("train/test_scoring.py",),
    "microcoder.train.rollouts": (
        "train/test_metrics.py",
        "train/test_scoring.py",
        "train/test_chat.py",
    ),
    f"{JUDGE}core.rewards": ("judge/test_extensions.py",),
    f"{JUDGE}core.extract": ("judge/test_extract.py",),
    f"{JUDGE}core.answers": ("judge/test_extract.py",),
    f"{JUDGE}compare.compare": COMPARISON,
    f"{JUDGE}compare.text": COMPARISON,
}
LEAST_KILLED = 0.6
"""Of each module.

What is left is mostly faster ways to the same end, which change nothing where they are not taken.
"""


class _Bare(ast.NodeTransformer):
    """Takes away what computes nothing: annotations, decorators, `strict` of a zip."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.decorator_list = []
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [keyword for keyword in node.keywords if keyword.arg != "strict"]
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def bare(source: str) -> str:
    return ast.dump(_Bare().visit(ast.parse(source)))


def test_every_module_of_the_algorithm_is_tried() -> None:
    folder = Path(microcoder.__file__).parent / "train" / "algorithm"
    names = {path.stem for path in folder.glob("*.py")} - {
        "__init__",
        "config",
        "sampling",
    }  # the keys of recipes
    modules = set()
    for name in TESTS_OF:
        if name.startswith(ALGORITHM):
            modules.add(name.removeprefix(ALGORITHM))
    assert modules == names


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("module", TESTS_OF)
def test_a_module_that_computes_something_else_is_noticed(module: str, tmp_path: Path) -> None:
    spec = find_spec(module)
    assert spec is not None
    source = Path(str(spec.origin)).read_text(encoding="utf-8")
    mutants = []
    for one in make_mutants(source, limit=2 * MOST_MUTANTS):
        if bare(one.code) != bare(source):
            mutants.append(one)
    mutants = mutants[:: max(1, len(mutants) // MOST_MUTANTS)][:MOST_MUTANTS]
    result = subprocess.run(
        [
            sys.executable,
            str(TESTS / "mutation.py"),
            module,
            *(str(TESTS / name) for name in TESTS_OF[module]),
        ],
        input=json.dumps([source, *(one.code for one in mutants)]),
        env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    unchanged, *codes = json.loads(result.stdout)
    assert unchanged == 0, "the tests fail without a mutant"
    survivors = []
    for one, code in zip(mutants, codes, strict=True):
        if code == 0:
            survivors.append(one.name)
    print(
        f"{module}: {len(mutants) - len(survivors)} of {len(mutants)} noticed; not "
        f"{', '.join(survivors)}"
    )
    assert len(survivors) <= (1 - LEAST_KILLED) * len(mutants), survivors


OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
}
CALLS = {
    "min": "max",
    "max": "min",
    "any": "all",
    "all": "any",
    "ceil": "floor",
    "floor": "ceil",
    "sorted": "list",
}


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


Site = tuple[str, ast.AST, str, Any]
"""A change: its name, a node, one of the node's fields, and what to put there."""


def find_sites(tree: ast.Module) -> Iterator[Site]:
    """Yield every change of a program, in the order of its nodes."""
    for node in ast.walk(tree):
        yield from change_operators(node)
        yield from change_constants(node)
        yield from change_flow(node)


def change_operators(node: ast.AST) -> Iterator[Site]:
    """Yield changes of a comparison, of arithmetic or of logic."""
    match node:
        case ast.Compare(ops=[op], comparators=[right]):
            yield "compare", node, "ops", [OPPOSITES[type(op)]()]
            if isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
                further = ast.BinOp(right, ast.Add(), ast.Constant(1))
                yield "bound", node, "comparators", [further]
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPPOSITES:
            yield "operator", node, "op", OPPOSITES[type(op)]()
        case ast.BoolOp(op=op, values=values):
            yield "logic", node, "op", OPPOSITES[type(op)]()
            yield "logic", node, "values", values[:-1]
            yield "logic", node, "values", values[1:]
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "logic", node, "operand", ast.UnaryOp(ast.Not(), operand)


def change_constants(node: ast.AST) -> Iterator[Site]:
    """Yield changes of a constant. A bool is an int too, so it is asked for first."""
    match node:
        case ast.Constant(value=bool(value)):
            yield "constant", node, "value", not value
        case ast.Constant(value=int(value)):
            yield "constant", node, "value", value + 1
            yield "constant", node, "value", value - 1


def change_flow(node: ast.AST) -> Iterator[Site]:
    """Yield changes of a branch, a loop, a call or an index."""
    match node:
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

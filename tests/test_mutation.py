"""The tests of the pure modules notice when those compute something else."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import microcoder
from mutants import make_mutants

TESTS = Path(__file__).parent
MOST_MUTANTS = 16
ALGORITHM, JUDGE = "microcoder.train.algorithm.", "microcoder.judge."
COMPARISON = ("judge/test_compare.py", "judge/test_values.py")
TESTS_OF = {
    f"{ALGORITHM}advantages": ("train/test_scoring.py",),
    f"{ALGORITHM}continuation": ("train/test_continuation.py",),
    f"{ALGORITHM}masking": ("train/test_scoring.py",),
    "microcoder.train.run.alarms": ("train/test_temperature.py", "train/test_metrics.py"),
    f"{ALGORITHM}selection": ("train/test_filtering.py", "train/test_scoring.py"),
    f"{ALGORITHM}scoring": ("train/test_scoring.py",),
    "microcoder.train.rollouts": ("train/test_metrics.py", "train/test_scoring.py", "train/test_chat.py"),
    f"{JUDGE}core.rewards": ("judge/test_rewards.py",),
    f"{JUDGE}core.extract": ("judge/test_extract.py",),
    f"{JUDGE}compare.compare": COMPARISON,
    f"{JUDGE}compare.text": COMPARISON,
}
LEAST_KILLED = 0.6
"""Of each module. What is left is mostly faster ways to the same end, which change nothing where they are not taken."""


class _Bare(ast.NodeTransformer):
    """Takes away what computes nothing: annotations, decorators, `strict` of a zip."""

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns, node.decorator_list = None, []
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
    names = {path.stem for path in folder.glob("*.py")} - {"__init__", "config", "sampling"}  # the keys of recipes
    assert {name.removeprefix(ALGORITHM) for name in TESTS_OF if name.startswith(ALGORITHM)} == names


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("module", TESTS_OF)
def test_a_module_that_computes_something_else_is_noticed(module: str, tmp_path: Path) -> None:
    spec = find_spec(module)
    assert spec is not None
    source = Path(str(spec.origin)).read_text(encoding="utf-8")
    mutants = [one for one in make_mutants(source, limit=2 * MOST_MUTANTS) if bare(one.code) != bare(source)]
    mutants = mutants[:: max(1, len(mutants) // MOST_MUTANTS)][:MOST_MUTANTS]
    result = subprocess.run(
        [sys.executable, str(TESTS / "mutation.py"), module, *(str(TESTS / name) for name in TESTS_OF[module])],
        input=json.dumps([source, *(one.code for one in mutants)]),
        env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    unchanged, *codes = json.loads(result.stdout)
    assert unchanged == 0, "the tests fail without a mutant"
    survivors = [one.name for one, code in zip(mutants, codes, strict=True) if code == 0]
    print(f"{module}: {len(mutants) - len(survivors)} of {len(mutants)} noticed; not {', '.join(survivors)}")
    assert len(survivors) <= (1 - LEAST_KILLED) * len(mutants), survivors

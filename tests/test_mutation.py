"""The tests of the pure modules notice when those compute something else."""

import ast
import json
import os
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from evaluator_step import mutate_program

import microcoder
from microcoder.judge.core.syntax import try_parse

TESTS = Path(__file__).parent
MOST_MUTANTS = 16
ALGORITHM, JUDGE = "microcoder.train.algorithm.", "microcoder.judge."
COMPARISON = ("judge/test_compare.py", "judge/test_values.py")
TESTS_OF = {
    f"{ALGORITHM}advantages": ("train/test_scoring.py",),
    f"{ALGORITHM}masking": ("train/test_scoring.py",),
    "microcoder.train.run.alarms": ("train/test_temperature.py", "train/test_metrics.py"),
    f"{ALGORITHM}selection": ("train/test_filtering.py", "train/test_scoring.py"),
    f"{ALGORITHM}scoring": ("train/test_scoring.py",),
    "microcoder.train.rollouts": ("train/test_metrics.py", "train/test_scoring.py", "train/test_chat.py"),
    f"{JUDGE}core.rewards": ("judge/test_extensions.py",),
    f"{JUDGE}core.extract": ("judge/test_extract.py",),
    f"{JUDGE}compare.compare": COMPARISON,
    f"{JUDGE}compare.text": COMPARISON,
}
LEAST_KILLED = 0.6
"""Of each module. What is left is mostly faster ways to the same end, which change nothing where they are not taken."""


class _Bare(ast.NodeTransformer):
    """Takes away what computes nothing: annotations, decorators, keys and constants by name, what follows a return."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        node = super().generic_visit(node)
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                ends = (at for at, one in enumerate(block, 1) if isinstance(one, ast.Return | ast.Raise))
                setattr(node, name, block[: next(ends, None)])
        return node

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
        if isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "Field":
            node.value = None
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        if isinstance(node.value, ast.Constant) and ast.unparse(node.targets[0]).isupper():
            node.value = ast.Constant(None)
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
    mutants, plain = make_mutants(source), ast.unparse(ast.parse(source)).splitlines()
    assert len(mutants) == MOST_MUTANTS
    result = subprocess.run(
        [sys.executable, str(TESTS / "mutation.py"), module, *(str(TESTS / name) for name in TESTS_OF[module])],
        input=json.dumps([source, *mutants]),
        env={**os.environ, "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    unchanged, *codes = json.loads(result.stdout)
    assert unchanged == 0, "the tests fail without a mutant"
    unseen = [one.splitlines() for one, code in zip(mutants, codes, strict=True) if code == 0]
    survivors = [next((line.strip() for line in lines if line not in plain), "a line less") for lines in unseen]
    print(f"{module}: {len(mutants) - len(survivors)} of {len(mutants)} noticed; not {', '.join(survivors)}")
    assert len(survivors) <= (1 - LEAST_KILLED) * len(mutants), survivors


def make_mutants(source: str) -> list[str]:
    """Return programs with one fault each, of the kinds that models' answers have, and that compute something else."""
    found = dict.fromkeys(mutate_program(source, random.Random(seed)) for seed in range(4 * MOST_MUTANTS))
    return [code for code in found if try_parse(code) and bare(code) != bare(source)][:MOST_MUTANTS]

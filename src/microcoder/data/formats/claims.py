"""Tests that are Python assertions, judged word for word as claims about what an answer returned.

Nothing is evaluated here. A claim (HumanEval, MBPP) is judged so that an answer can neither see nor
forge the verdict. Of `assert abs(candidate(3) - 0.5) < 1e-6` the answer's process gets the call,
`candidate(3)`, and returns its value over a typed wire. A checker program in a sandbox of its own
decides the rest, `abs(_r[0] - 0.5) < 1e-6`, about the plain value: the expected one was never where
the answer runs.

A test that cannot be cut (it loops over random arguments) is run whole, twice: beside the answer,
to learn what its calls return, and in the checker, over the recorded values. There the answer could
read the test, so it could see an expected value that the test spells out; it still cannot forge a
verdict.
"""

import ast
import builtins
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from microcoder.data.formats.assertions import NotACall, cut_calls, is_result
from microcoder.data.formats.values import parse_python, shorten
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Checker, TestCase

_CANDIDATE = "candidate"
"""Name under which a `check` is given the function."""


@dataclass(frozen=True, slots=True)
class SplitAssertion:
    """An assertion cut in two, as source: calls of the answer, and a condition on their values."""

    calls: tuple[str, ...]
    """Python expressions that the answer's process evaluates."""
    source: str
    """Python expression that must be true of the values of `calls`; `_r[0]` is the first."""


@cache
def claims_checker() -> Checker:
    """Return a checker of type `program` that decides claims: `sandboxed/claims.py`."""
    return Checker(type="program", code=_read("claims"), protocol="testlib")


def claims_harness(preamble: str = "") -> str:
    """Return Python source that runs the preamble, an answer and the calls in stdin.

    It prints the values of the calls. To run an answer, add `main(code)` with its code as the
    last line.
    """
    harness = _read("caller")
    if preamble:
        harness += f"\n\nPREAMBLE = {preamble!r}\n"
    return harness


def claims_test(
    claims: Sequence[SplitAssertion], *, prelude: str = "", setup: str = ""
) -> TestCase:
    """Return one test that makes the calls of all these claims, and passes if every claim is true.

    Args:
        claims: the assertions, cut in two.
        prelude: source that runs in the checker before the claims.
        setup: source that runs in the answer's process before the calls.
    """
    calls: list[str] = []
    conditions = []
    for claim in claims:
        # The first keeps its source as it is written.
        condition = _renumber(claim.source, len(calls)) if calls else claim.source
        conditions.append(condition)
        calls.extend(claim.calls)
    asked: dict[str, Any] = {"calls": calls}
    if setup:
        asked["setup"] = setup
    expected = {"prelude": prelude, "claims": conditions}
    return TestCase(input=json.dumps(asked), output=json.dumps(expected))


def _renumber(condition: str, num_before: int) -> str:
    """Return a condition on the values of calls that stand behind others in one list."""
    expression = parse_source(condition, mode="eval").body
    for node in ast.walk(expression):
        if not isinstance(node, ast.Subscript) or not is_result(node):
            continue
        if isinstance(node.slice, ast.Constant):
            node.slice = ast.Constant(int(str(node.slice.value)) + num_before)
    return ast.unparse(expression)


def read_claims(
    statements: Sequence[ast.stmt], *, called: Collection[str], entry: str
) -> list[SplitAssertion] | None:
    """Cut assertions in two; None if one of them cannot be.

    Args:
        statements: assertions, and statements that prepare them without naming the answer.
        called: names under which the answer's function is called.
        entry: the name that the answer defines.
    """
    bound = _bound_by(statements)
    claims = []
    for statement in statements:
        if isinstance(statement, ast.Assert):
            claim = cut_assertion(statement.test, called=called, entry=entry, bound=bound)
            if claim is None:
                return None
            claims.append(claim)
        # A call of the answer outside an assertion cannot be cut out.
        elif _names(statement) & set(called):
            return None
    return claims


def cut_assertion(
    test: ast.expr, *, called: Collection[str], entry: str, bound: Collection[str] = ()
) -> SplitAssertion | None:
    """Cut one assertion in two; None if its calls depend on names that only the test defines."""
    cut = cut_calls(test, called)
    # A function that is passed on, not called, cannot be cut out.
    if _names(cut.rest) & set(called):
        return None
    # The answer's process has none of the names that the test defines.
    if any(_names(call) & set(bound) for call in cut.calls):
        return None
    # A call inside a comprehension uses names that exist only there.
    if cut.calls and any(_has_scope(part) for part in (cut.rest, *cut.calls)):
        return None
    for call in cut.calls:
        for node in ast.walk(call):
            # A test may call the function `candidate`; its own name is called.
            if isinstance(node, ast.Name) and node.id == _CANDIDATE:
                node.id = entry
    return SplitAssertion(tuple(map(ast.unparse, cut.calls)), ast.unparse(cut.rest))


def _has_scope(expression: ast.expr) -> bool:
    """Whether an expression binds names of its own, which the other part might use."""
    scopes = (ast.comprehension, ast.Lambda, ast.NamedExpr)
    return any(isinstance(node, scopes) for node in ast.walk(expression))


def claim_tests(source: str, *, called: Collection[str], entry: str) -> list[TestCase]:
    """Return one test per assertion that calls the answer.

    Raises:
        NotACall: one cannot be cut, or none calls the answer.
    """
    tests = _claim(parse_test(source).body, called, entry)
    if not tests:
        raise NotACall(f"no assertion about {entry} alone: {shorten(source, 80)}")
    return tests


def check_tests(source: str, *, entry: str, preamble: str = "") -> list[TestCase]:
    """Return tests of a `def check(candidate)`: one per assertion, or one that runs it whole.

    Raises:
        NotACall: no such function is defined.
    """
    tree = parse_test(source)
    check = _find_check(tree)
    if check is None:
        raise NotACall("it defines no check(candidate)")
    # What stands around it, such as imports and helpers, prepares its assertions.
    around = [node for node in tree.body if node is not check]
    tests = _claim([*around, *check.body], (_CANDIDATE, entry), entry, preamble)
    if tests:
        return tests
    # Nothing could be cut, so the whole test runs twice, as the module's docstring says.
    asked = {"replay": source, "entry": entry}
    expected = {"replay": source, "prelude": preamble}
    return [TestCase(input=json.dumps(asked), output=json.dumps(expected))]


def _find_check(tree: ast.Module) -> ast.FunctionDef | None:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "check":
            return node
    return None


def _claim(
    statements: Sequence[ast.stmt], called: Collection[str], entry: str, prelude: str = ""
) -> list[TestCase]:
    """Return one test per assertion that calls the answer; none if any cannot be split."""
    claims = read_claims(statements, called=called, entry=entry) or []
    before = [ast.unparse(node) for node in statements if not isinstance(node, ast.Assert)]
    whole_prelude = "\n".join([prelude, *before])
    # A claim without a call is about no answer.
    return [claims_test([claim], prelude=whole_prelude) for claim in claims if claim.calls]


def find_called(source: str, code: str = "") -> list[str]:
    """Return names that assertions call, in order.

    They are functions of `code`, or names that are neither bound in `source` nor built in.
    """
    tree = parse_python(source)
    if tree is None:
        return []
    solution = parse_python(code) or ast.Module([], [])
    defined = {node.name for node in solution.body if isinstance(node, ast.FunctionDef)}
    bound = _bound_by(tree.body)
    names: dict[str, None] = {}
    for test in ast.walk(tree):
        if isinstance(test, ast.Assert):
            for node in ast.walk(test):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                    names[node.func.id] = None
    called = []
    for name in names:
        is_known = name in bound or hasattr(builtins, name)
        # A solution may define a function by the name of a built-in one.
        if name in defined or not is_known:
            called.append(name)
    return called


def parse_test(source: str) -> ast.Module:
    """Return the syntax tree of a test's code; NotACall if it is not Python."""
    tree = parse_python(source)
    if tree is None:
        raise NotACall(f"it is not Python: {shorten(source, 80)}")
    return tree


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _bound_by(statements: Sequence[ast.stmt]) -> set[str]:
    """Return the names that some statements bind."""
    bound: set[str] = set()
    for statement in statements:
        bound |= _bound_names(statement)
    return bound


def _bound_names(statement: ast.stmt) -> set[str]:
    bound: set[str] = set()
    for node in ast.walk(statement):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                bound.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                bound |= {(alias.asname or alias.name).split(".")[0] for alias in names}
    return bound


@cache
def _read(name: str) -> str:
    path = files("microcoder.data.formats").joinpath("sandboxed", f"{name}.py")
    return path.read_text(encoding="utf-8")

"""Tests that are Python assertions (HumanEval, MBPP), judged so that an answer can neither see nor forge the verdict.

An assertion such as `assert abs(candidate(3) - 0.5) < 1e-6` is cut in two. The answer's process gets the call,
`candidate(3)`, and returns its value over a typed wire. A checker program in a sandbox of its own decides the rest,
`abs(_r[0] - 0.5) < 1e-6`, about the plain value: the expected one was never where the answer runs.

A test that cannot be cut (it loops over random arguments) is run whole, twice: beside the answer, to learn what its
calls return, and in the checker, over the recorded values. There the answer could read the test, so it could see an
expected value that the test spells out; it still cannot forge a verdict.
"""

from __future__ import annotations

import ast
import builtins
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from microcoder.data.formats.assertions import NotACall, cut_calls, is_result
from microcoder.data.formats.text import parse_python, shorten
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Checker, TestCase

_CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class SplitAssertion:
    """An assertion cut in two."""

    calls: tuple[str, ...]
    """Expressions for the answer's process, as source."""
    source: str
    """Expression that must be true of their values; `_r[0]` is the first."""


@cache
def claims_checker() -> Checker:
    """Return the checker program that decides claims."""
    return Checker(type="program", code=_read("claims"), protocol="testlib")


def claims_harness(preamble: str = "") -> str:
    """Return Python source, to be ended by `main(answer)`: it runs the preamble, the answer and stdin's calls."""
    return f"{_read('caller')}\n\nPREAMBLE = {preamble!r}\n" if preamble else _read("caller")


def claims_test(claims: Sequence[SplitAssertion], *, prelude: str = "", setup: str = "") -> TestCase:
    """Return one test that makes the calls of some claims and checks all of them.

    Args:
        claims: conditions that must all be true.
        prelude: source that runs in the checker before the claims.
        setup: source that runs beside the answer before the calls.
    """
    calls, sources = [], []
    for claim in claims:
        source = claim.source
        if calls:
            rest = parse_source(source, mode="eval").body
            for node in ast.walk(rest):
                if isinstance(node, ast.Subscript) and is_result(node) and isinstance(node.slice, ast.Constant):
                    node.slice = ast.Constant(int(str(node.slice.value)) + len(calls))
            source = ast.unparse(rest)
        sources.append(source)
        calls.extend(claim.calls)
    asked = {"calls": calls, **({"setup": setup} if setup else {})}
    return TestCase(input=json.dumps(asked), output=json.dumps({"prelude": prelude, "claims": sources}))


def read_claims(statements: Sequence[ast.stmt], *, called: Collection[str], entry: str) -> list[SplitAssertion] | None:
    """Cut assertions in two; None if one of them cannot be.

    Args:
        statements: assertions, and statements that prepare them without naming the answer.
        called: names under which the answer's function is called.
        entry: the name that the answer defines.
    """
    bound = {name for statement in statements for name in _bound_names(statement)}
    claims = []
    for statement in statements:
        if isinstance(statement, ast.Assert):
            claim = cut_assertion(statement.test, called=called, entry=entry, bound=bound)
            if claim is None:
                return None
            claims.append(claim)
        elif _names(statement) & set(called):
            return None
    return claims


def cut_assertion(
    test: ast.expr, *, called: Collection[str], entry: str, bound: Collection[str] = ()
) -> SplitAssertion | None:
    """Cut one assertion in two; None if its calls depend on names that only the test defines."""
    cut = cut_calls(test, called)
    if _names(cut.rest) & set(called) or any(_names(call) & set(bound) for call in cut.calls):
        return None
    scopes = (ast.comprehension, ast.Lambda, ast.NamedExpr)
    if cut.calls and any(isinstance(node, scopes) for part in (cut.rest, *cut.calls) for node in ast.walk(part)):
        return None
    for node in (inner for call in cut.calls for inner in ast.walk(call)):
        # A test may call the function `candidate`; its own name is called.
        if isinstance(node, ast.Name) and node.id == _CANDIDATE:
            node.id = entry
    return SplitAssertion(tuple(map(ast.unparse, cut.calls)), ast.unparse(cut.rest))


def claim_tests(source: str, *, called: Collection[str], entry: str) -> list[TestCase]:
    """Return one test for each assertion of a program of assertions; NotACall if one cannot be cut."""
    tests = _claim(parse_test(source).body, called, entry)
    if not tests:
        raise NotACall(f"no assertion about {entry} alone: {shorten(source, 80)}")
    return tests


def check_tests(source: str, *, entry: str, preamble: str = "") -> list[TestCase]:
    """Return the tests of a `def check(candidate)`: one per assertion, or a single one if it must stay whole."""
    tree = parse_test(source)
    check = next((node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"), None)
    if check is None:
        raise NotACall("it defines no check(candidate)")
    statements = [*(node for node in tree.body if node is not check), *check.body]
    tests = _claim(statements, (_CANDIDATE, entry), entry, preamble)
    asked, told = {"replay": source, "entry": entry}, {"replay": source, "prelude": preamble}
    return tests or [TestCase(input=json.dumps(asked), output=json.dumps(told))]


def _claim(statements: Sequence[ast.stmt], called: Collection[str], entry: str, prelude: str = "") -> list[TestCase]:
    """Return one test per assertion that calls the answer; none if any cannot be split."""
    claims = read_claims(statements, called=called, entry=entry) or []
    before = [ast.unparse(node) for node in statements if not isinstance(node, ast.Assert)]
    known = "\n".join([prelude, *before])
    return [claims_test([claim], prelude=known) for claim in claims if claim.calls]


def find_called(source: str, code: str = "") -> list[str]:
    """Return the names of functions that assertions call and only `code` may define, in order."""
    tree, solution = (parse_python(text) or ast.Module([], []) for text in (source, code))
    defined = {node.name for node in solution.body if isinstance(node, ast.FunctionDef)}
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    calls = [node.func for test in asserts for node in ast.walk(test) if isinstance(node, ast.Call)]
    bound = {name for node in tree.body for name in _bound_names(node)}
    names = dict.fromkeys(func.id for func in calls if isinstance(func, ast.Name))
    return [name for name in names if name in defined or not (name in bound or hasattr(builtins, name))]


def parse_test(source: str) -> ast.Module:
    """Return the syntax tree of a test's code; NotACall if it is not Python."""
    tree = parse_python(source)
    if tree is None:
        raise NotACall(f"it is not Python: {shorten(source, 80)}")
    return tree


def _names(node: ast.AST) -> set[str]:
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def _bound_names(statement: ast.stmt) -> set[str]:
    found = set()
    for node in ast.walk(statement):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {(alias.asname or alias.name).split(".")[0] for alias in names}
    return found


@cache
def _read(name: str) -> str:
    return files("microcoder.data.formats").joinpath("sandboxed", f"{name}.py").read_text(encoding="utf-8")

"""Tests that are Python assertions: each is cut into the calls of the answer and a condition on their values.

Nothing is evaluated. What was cut becomes a test in one of two ways: as JSON arguments and a JSON value, which any
judge of functions can run, or word for word in a checker program, as a claim.

An assertion becomes a plain test where a call of the function, with literal arguments, is compared with a literal: by
`==` or `is`, within a tolerance (`abs(f(x) - y) < 1e-6`, `math.isclose`, `pytest.approx`). Names bound to literals
before stand for them. `list_node([1, 2])` and `tree_node([1, None, 2])` say what an argument or a result is
(LeetCodeDataset). Everything else is counted and left out. Arguments are written in the order of the signature.

A claim (HumanEval, MBPP) is judged so that an answer can neither see nor forge the verdict. Of
`assert abs(candidate(3) - 0.5) < 1e-6` the answer's process gets the call, `candidate(3)`, and returns its value over
a typed wire. A checker program in a sandbox of its own decides the rest, `abs(_r[0] - 0.5) < 1e-6`, about the plain
value: the expected one was never where the answer runs.

A test that cannot be cut (it loops over random arguments) is run whole, twice: beside the answer, to learn what its
calls return, and in the checker, over the recorded values. There the answer could read the test, so it could see an
expected value that the test spells out; it still cannot forge a verdict.
"""

import ast
import builtins
import contextlib
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from microcoder.data.formats.candidates import DecodedTests
from microcoder.data.formats.values import is_json_value, parse_python, shorten, write_json
from microcoder.judge.core.signatures import arguments_of, find_head
from microcoder.judge.core.syntax import parse_source
from microcoder.judge.core.types import Call, Checker, TestCase


class NotACall(ValueError):
    """A test cannot be written as JSON arguments and a JSON value."""


def arrange(
    parameters: Sequence[str], positional: Sequence[Any], named: Mapping[str, Any]
) -> list[Any]:
    """Return arguments in the order of a function's parameters; NotACall if one has an unknown name."""
    left = dict(named)
    arguments = list(positional)
    for name in parameters[len(arguments) :]:
        if name not in left:
            break
        arguments.append(left.pop(name))
    if left:
        raise NotACall(
            f"argument {next(iter(left))!r} has no place among {', '.join(parameters) or 'none'}"
        )
    return arguments


def read_parameters(source: str, name: str) -> tuple[str, ...]:
    """Return a function's positional parameters, without self; `source` may lack its body; empty if it is not there."""
    head = find_head(source, name)
    return tuple(argument.arg for argument in arguments_of(head)) if head else ()


def _explain_value(value: Any) -> str:
    """Say why a value cannot be given to a function, or be compared with what it returns."""
    shown = shorten(value, 40)
    return (
        "is or holds a value that no function is given here (a set, bytes, a dict with keys that are no texts): "
        f"{shown}"
    )


def write_call(arguments: Sequence[Any], expected: Any) -> TestCase:
    """Return the test of a call; NotACall if a value has no JSON form."""
    for number, argument in enumerate(arguments, 1):
        if not is_json_value(argument):
            raise NotACall(f"argument {number} {_explain_value(argument)}")
    if not is_json_value(expected, is_expected=True):
        raise NotACall(f"the expected value {_explain_value(expected)}")
    try:
        return TestCase(input="\n".join(map(write_json, arguments)), output=write_json(expected))
    except ValueError as error:
        raise NotACall(str(error)) from None


_BUILDERS = {"list_node": "ListNode", "tree_node": "TreeNode"}
_SAME = ("is_same_list", "is_same_tree")
_WORDS = {"inf": math.inf, "nan": math.nan, "null": None, "true": True, "false": False}
_ROOTS = ("Solution", "solution", "my_solution", "sol")


@dataclass(frozen=True, slots=True)
class _Claim:
    arguments: list[Any]
    expected: Any
    absolute: float | None = None
    relative: float | None = None
    kinds: tuple[str, ...] = ()
    """Type name of each argument (see `_kind_of`)."""
    returns: str = "json"


RESULTS = "_r"
"""Variable with the values that an assertion's calls returned; `_r[0]` is the first."""


class Cut(NamedTuple):
    """An assertion's syntax tree cut in two: calls of the answer's function, and a condition on their values."""

    calls: tuple[ast.Call, ...]
    rest: ast.expr
    """The asserted expression, with `_r[0]` in place of the first call."""


class _Bound(NamedTuple):
    """A literal that a test has bound to a name: its syntax tree and its value."""

    node: ast.expr
    value: Any


_Names = Mapping[str, _Bound]


def read_assertions(
    source: str, *, called: Collection[str], parameters: Sequence[str] = ()
) -> DecodedTests:
    """Return the tests in the assertions of a program, those inside its functions included.

    Args:
        source: the program: bare assertions, `def check(candidate)`, or a pytest file.
        called: names under which the function is called, also as a method of the solution.
        parameters: names of the function's parameters, in order, for named arguments.
    """
    tree = parse_python(source)
    if tree is None:
        return DecodedTests(dropped=(f"no Python: {shorten(source, 60)}",))
    reader = _Reader(called, parameters)
    reader.read(tree.body, {})
    return reader.asserted()


def cut_calls(test: ast.expr, called: Collection[str]) -> Cut:
    """Split an assertion's expression in place: the calls of the answer's function, outermost first, and the rest."""
    cutter = _Cutter(set(called))
    rest = cutter.visit(test)
    return Cut(tuple(cutter.calls), rest)


class _Cutter(ast.NodeTransformer):
    """Replaces calls of the answer's function by `_r[0]`, `_r[1]`, ... in place, and collects them in `calls`."""

    def __init__(self, called: Collection[str]) -> None:
        self.calls: list[ast.Call] = []
        self._called = called

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node.func:
            case ast.Name(id=name):
                is_answer = name in self._called
            case ast.Attribute(
                value=ast.Name(id=root) | ast.Call(func=ast.Name(id=root)), attr=name
            ):
                is_answer = name in self._called and root in _ROOTS
            case _:
                is_answer = False
        if not is_answer:
            self.generic_visit(node)
            return node
        self.calls.append(node)
        return ast.Subscript(
            ast.Name(RESULTS, ast.Load()), ast.Constant(len(self.calls) - 1), ast.Load()
        )

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        # Most of what a long literal holds; the library looks at each for old names of visitors, four times as long.
        return node


def is_result(node: ast.expr) -> bool:
    """Whether a node is an item of the results list, such as `_r[0]`, which stands for a call's value."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id == RESULTS
    )


def parse_value(node: ast.expr, names: _Names | None = None) -> Any:
    """Return the value of a literal, `inf`, `nan`, or a name bound to a literal; NotACall for anything else."""
    if isinstance(node, ast.Name) and names and node.id in names:
        return names[node.id].value
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return ast.literal_eval(_Literals(names or {}).visit(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise NotACall(f"not a literal: {_show(node)}") from None


class _Reader:
    def __init__(self, called: Collection[str], parameters: Sequence[str]) -> None:
        self._called, self._parameters = set(called), parameters
        self._claims: list[_Claim] = []
        self._dropped: list[str] = []

    def read(self, statements: Sequence[ast.stmt], names: dict[str, _Bound]) -> None:
        """Read statements in order; `names` are those bound to literals so far."""
        for statement in statements:
            match statement:
                case ast.Assert(test=ast.Constant()):
                    pass
                case ast.Assert(test=test):
                    try:
                        self._claims.append(self._read_claim(test, names))
                    except NotACall as error:
                        self._dropped.append(str(error))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    names.pop(name, None)
                    # Names inside are not followed: `b = [a, a]; c = [b, b]; ...` would grow without bound.
                    with contextlib.suppress(NotACall):
                        names[name] = _Bound(value, parse_value(value))
                case ast.FunctionDef(body=body) | ast.ClassDef(body=body):
                    self.read(body, dict(names))
                case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    # A loop, a `with`, a call: its assertions are no literal tests, and its names may have changed.
                    inner = list(ast.walk(statement))
                    self._dropped += [
                        f"inside {type(statement).__name__}"
                        for node in inner
                        if isinstance(node, ast.Assert)
                    ]
                    for node in inner:
                        if isinstance(node, ast.Name):
                            names.pop(node.id, None)

    def asserted(self) -> DecodedTests:
        """Return the tests that were read, all with one tolerance, since a problem has one checker."""
        tolerances = {
            (c.absolute, c.relative)
            for c in self._claims
            if (c.absolute, c.relative) != (None, None)
        }
        chosen = min(tolerances, key=lambda t: (t[0] or 0, t[1] or 0), default=None)
        # Nodes where at least half of the claims say so.
        places = range(max((len(claim.kinds) for claim in self._claims), default=0))
        kinds = tuple(
            _usual([claim.kinds[place] for claim in self._claims if place < len(claim.kinds)])
            for place in places
        )
        returns = _usual([claim.returns for claim in self._claims])
        call = Call(parameters=kinds, returns=returns) if {*kinds, returns} != {"json"} else None
        tests, dropped = [], list(self._dropped)
        for claim in self._claims:
            if (claim.absolute, claim.relative) not in ((None, None), chosen):
                dropped.append("a second tolerance")
            elif not _fits(claim, call or Call()):
                dropped.append("nodes in place of plain values, or the other way around")
            else:
                try:
                    tests.append(write_call(claim.arguments, claim.expected))
                except NotACall as error:
                    dropped.append(str(error))
        checker = (
            Checker(type="float", absolute=chosen[0], relative=chosen[1]) if chosen else Checker()
        )
        return DecodedTests(tuple(tests), checker=checker, call=call, dropped=tuple(dropped))

    def _read_claim(self, test: ast.expr, names: _Names) -> _Claim:
        """Read an assertion that compares one call with a literal."""
        calls, rest = cut_calls(test, self._called)
        call = calls[0] if len(calls) == 1 else None
        match rest:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                call, other = self._sides(call, left, right)
                match other:
                    case ast.Call(
                        func=ast.Attribute(attr="approx"), args=[value], keywords=options
                    ):
                        return self._claim_close(call, value, options, names, ("rel", 1e-6), "abs")
                return self._claim(call, other, names)
            case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in _SAME:
                call, other = self._sides(call, left, right)
                return self._claim(call, other, names)
            case ast.Compare(
                left=ast.Call(
                    func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=right)]
                ),
                ops=[ast.Lt() | ast.LtE()],
                comparators=[bound],
            ):
                call, other = self._sides(call, left, right)
                expected, within = parse_value(other, names), parse_value(bound, names)
                return _Claim(
                    self._read_call(call, names)[0], _real(expected), absolute=_tolerance(within)
                )
            case ast.Call(
                func=ast.Attribute(attr="isclose") | ast.Name(id="isclose"), args=[left, right]
            ):
                call, other = self._sides(call, left, right)
                return self._claim_close(
                    call, other, rest.keywords, names, ("rel_tol", 1e-9), "abs_tol"
                )
        raise NotACall(f"no call compared with a literal: {_show(test)}")

    def _claim(self, call: ast.Call, other: ast.expr, names: _Names) -> _Claim:
        arguments, kinds = self._read_call(call, names)
        return _Claim(arguments, parse_value(other, names), kinds=kinds, returns=_kind_of(other))

    def _claim_close(
        self,
        call: ast.Call,
        value: ast.expr,
        options: Sequence[ast.keyword],
        names: _Names,
        relative: tuple[str, float],
        absolute: str,
    ) -> _Claim:
        """Return the claim of a comparison within the tolerance in `options`; `relative` is a name and default."""
        given = {option.arg or "": parse_value(option.value, names) for option in options}
        if not given.keys() <= {relative[0], absolute}:
            raise NotACall(f"unknown options of a tolerance: {', '.join(given)}")
        within = {
            name: _tolerance(number)
            for name, number in (given or dict([relative])).items()
            if number
        }
        expected = _real(parse_value(value, names))
        return _Claim(
            self._read_call(call, names)[0], expected, within.get(absolute), within.get(relative[0])
        )

    def _sides(
        self, call: ast.Call | None, left: ast.expr, right: ast.expr
    ) -> tuple[ast.Call, ast.expr]:
        """Return the call, and the expression that its value is compared with; NotACall without a call."""
        if call is None or not (is_result(left) or is_result(right)):
            raise NotACall(f"no call of {' or '.join(sorted(self._called))}: {_show(right)}")
        return (call, right) if is_result(left) else (call, left)

    def _read_call(self, node: ast.Call, names: _Names) -> tuple[list[Any], tuple[str, ...]]:
        """Return the arguments of a call in the order of the parameters, and the type name of each."""
        positional: list[Any] = []
        kinds: list[str] = []
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                spread = parse_value(argument.value, names)
                if not isinstance(spread, list | tuple):
                    raise NotACall(f"no list of arguments: {_show(argument)}")
                positional += spread
                kinds += ["json"] * len(spread)
            else:
                positional.append(parse_value(argument, names))
                kinds.append(_kind_of(argument))
        named: dict[str, Any] = {}
        named_kinds: dict[str, Any] = {}
        for keyword in node.keywords:
            value = parse_value(keyword.value, names)
            if keyword.arg is not None:
                named[keyword.arg] = value
                named_kinds[keyword.arg] = _kind_of(keyword.value)
            elif isinstance(value, dict) and all(isinstance(key, str) for key in value):
                named |= value
                named_kinds |= dict.fromkeys(value, "json")
            else:
                raise NotACall(f"no named arguments: {_show(keyword.value)}")
        arguments = arrange(self._parameters, positional, named)
        return arguments, tuple(arrange(self._parameters, kinds, named_kinds))


class _Literals(ast.NodeTransformer):
    """Replaces in place: names by their literals; `inf`, `null`, ... by constants; `list_node([1])` by its list."""

    def __init__(self, names: _Names) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._names:
            return self._names[node.id].node
        return ast.Constant(_WORDS[node.id]) if node.id in _WORDS else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        is_math = isinstance(node.value, ast.Name) and node.value.id in ("math", "np", "numpy")
        return ast.Constant(float(node.attr)) if is_math and node.attr in ("inf", "nan") else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(
                func=ast.Name(id="float"), args=[ast.Constant(value=str(text))], keywords=[]
            ):
                if text.strip().lower().lstrip("+-") in ("inf", "infinity", "nan"):
                    return ast.Constant(float(text))
            case ast.Call(func=ast.Name(id=name), args=[values], keywords=[]) if name in _BUILDERS:
                return (
                    _drop_orphans(self.visit(values)) if name == "tree_node" else self.visit(values)
                )
        self.generic_visit(node)
        return node


def _drop_orphans(values: ast.expr) -> ast.expr:
    """Return a level-order list without the items that have no parent, which the tree's builder ignores."""
    if isinstance(values, ast.List):
        places, kept = 1, 0
        for item in values.elts:
            if places == 0:
                break
            places += -1 if isinstance(item, ast.Constant) and item.value is None else 1
            kept += 1
        return ast.List(values.elts[:kept], values.ctx)
    return values


def _usual(kinds: Sequence[str]) -> str:
    found = Counter(kinds).most_common()
    return max(found, key=lambda pair: (pair[1], pair[0] != "json"))[0] if found else "json"


def _fits(claim: _Claim, call: Call) -> bool:
    """Whether a claim's values have the types of `call`; None and [] fit every type."""
    given = [
        *zip(
            call.parameters or ["json"] * len(claim.kinds),
            claim.kinds,
            claim.arguments,
            strict=False,
        )
    ]
    given.append((call.returns, claim.returns, claim.expected))
    return all(
        kind == mine or (mine == "json" and value in (None, [])) for kind, mine, value in given
    )


def _kind_of(node: ast.expr) -> str:
    """Return the type name of an expression; `json` if unknown."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _BUILDERS:
            return _BUILDERS[name]
        case ast.List(elts=[first, *rest]) if (kind := _kind_of(first)) != "json":
            return f"list[{kind}]" if all(_kind_of(one) == kind for one in rest) else "json"
    return "json"


def _real(value: Any) -> Any:
    """Return a value with its integers as floats, for comparison within a tolerance."""
    if isinstance(value, list | tuple):
        return [_real(item) for item in value]
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53:
        return float(value)
    return value


def _tolerance(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise NotACall(f"no tolerance: {shorten(value, 40)}")
    return float(value)


def _show(node: ast.AST) -> str:
    try:
        return shorten(ast.unparse(node), 60)
    except (RecursionError, ValueError, MemoryError):
        return type(node).__name__


_CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True)
class SplitAssertion:
    """An assertion cut in two, as source: calls that the answer's process runs, and a condition on their values."""

    calls: tuple[str, ...]
    """Python expressions that the answer's process evaluates."""
    source: str
    """Python expression that must be true of the values of `calls`; `_r[0]` is the first."""


@cache
def claims_checker() -> Checker:
    """Return a checker of type `program` that decides claims: `sandboxed/claims.py`."""
    return Checker(type="program", code=_read("claims"), protocol="testlib")


def claims_harness(preamble: str = "") -> str:
    """Return Python source that runs the preamble, the answer and the calls in stdin, once `main(answer)` is added."""
    return f"{_read('caller')}\n\nPREAMBLE = {preamble!r}\n" if preamble else _read("caller")


def claims_test(
    claims: Sequence[SplitAssertion], *, prelude: str = "", setup: str = ""
) -> TestCase:
    """Return one test that makes the calls of all these claims, and passes if every claim is true.

    Args:
        claims: the assertions, cut in two.
        prelude: source that runs in the checker before the claims.
        setup: source that runs in the answer's process before the calls.
    """
    calls, sources = [], []
    for claim in claims:
        source = claim.source
        if calls:
            rest = parse_source(source, mode="eval").body
            for node in ast.walk(rest):
                if (
                    isinstance(node, ast.Subscript)
                    and is_result(node)
                    and isinstance(node.slice, ast.Constant)
                ):
                    node.slice = ast.Constant(int(str(node.slice.value)) + len(calls))
            source = ast.unparse(rest)
        sources.append(source)
        calls.extend(claim.calls)
    asked = {"calls": calls, **({"setup": setup} if setup else {})}
    return TestCase(
        input=json.dumps(asked), output=json.dumps({"prelude": prelude, "claims": sources})
    )


def read_claims(
    statements: Sequence[ast.stmt], *, called: Collection[str], entry: str
) -> list[SplitAssertion] | None:
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
    if cut.calls and any(
        isinstance(node, scopes) for part in (cut.rest, *cut.calls) for node in ast.walk(part)
    ):
        return None
    for node in (inner for call in cut.calls for inner in ast.walk(call)):
        # A test may call the function `candidate`; its own name is called.
        if isinstance(node, ast.Name) and node.id == _CANDIDATE:
            node.id = entry
    return SplitAssertion(tuple(map(ast.unparse, cut.calls)), ast.unparse(cut.rest))


def claim_tests(source: str, *, called: Collection[str], entry: str) -> list[TestCase]:
    """Return one test per assertion that calls the answer; NotACall if one cannot be cut, or none calls it."""
    tests = _claim(parse_test(source).body, called, entry)
    if not tests:
        raise NotACall(f"no assertion about {entry} alone: {shorten(source, 80)}")
    return tests


def check_tests(source: str, *, entry: str, preamble: str = "") -> list[TestCase]:
    """Return tests of a `def check(candidate)`: one per assertion, or one that runs it whole; NotACall without it."""
    tree = parse_test(source)
    check = next(
        (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "check"),
        None,
    )
    if check is None:
        raise NotACall("it defines no check(candidate)")
    statements = [*(node for node in tree.body if node is not check), *check.body]
    tests = _claim(statements, (_CANDIDATE, entry), entry, preamble)
    asked, told = {"replay": source, "entry": entry}, {"replay": source, "prelude": preamble}
    return tests or [TestCase(input=json.dumps(asked), output=json.dumps(told))]


def _claim(
    statements: Sequence[ast.stmt], called: Collection[str], entry: str, prelude: str = ""
) -> list[TestCase]:
    """Return one test per assertion that calls the answer; none if any cannot be split."""
    claims = read_claims(statements, called=called, entry=entry) or []
    before = [ast.unparse(node) for node in statements if not isinstance(node, ast.Assert)]
    known = "\n".join([prelude, *before])
    return [claims_test([claim], prelude=known) for claim in claims if claim.calls]


def find_called(source: str, code: str = "") -> list[str]:
    """Return names that assertions call, in order: functions of `code`, or neither bound in `source` nor built in."""
    tree, solution = (parse_python(text) or ast.Module([], []) for text in (source, code))
    defined = {node.name for node in solution.body if isinstance(node, ast.FunctionDef)}
    asserts = [node for node in ast.walk(tree) if isinstance(node, ast.Assert)]
    calls = [node.func for test in asserts for node in ast.walk(test) if isinstance(node, ast.Call)]
    bound = {name for node in tree.body for name in _bound_names(node)}
    names = dict.fromkeys(func.id for func in calls if isinstance(func, ast.Name))
    return [
        name for name in names if name in defined or not (name in bound or hasattr(builtins, name))
    ]


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
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.FunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                found.add(name)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                found |= {(alias.asname or alias.name).split(".")[0] for alias in names}
    return found


@cache
def _read(name: str) -> str:
    return (
        files("microcoder.data.formats")
        .joinpath("sandboxed", f"{name}.py")
        .read_text(encoding="utf-8")
    )

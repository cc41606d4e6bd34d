"""Tests that are Python assertions, read as calls with JSON arguments and a JSON value.

Nothing is evaluated. What was read is a test that any judge of functions can run; programs of which
that is not all run as they were published, see `test_programs`.

An assertion becomes a test where a call of the function, with literal arguments, is compared with a
literal: by `==` or `is`, or within a tolerance (`abs(f(x) - y) < 1e-6`, `math.isclose`,
`pytest.approx`). Names bound to literals before stand for them. `list_node([1, 2])` and
`tree_node([1, None, 2])` say what an argument or a result is (LeetCodeDataset). Everything else is
counted and left out. Arguments are written in the order of the signature.
"""

import ast
import contextlib
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from microcoder.data.formats.candidates import DecodedTests
from microcoder.data.formats.values import is_json_value, parse_python, shorten, write_json
from microcoder.judge.core.signatures import arguments_of, find_head
from microcoder.judge.core.types import Call, Checker, TestCase


class NotACall(ValueError):
    """A test cannot be written as JSON arguments and a JSON value."""


def arrange(
    parameters: Sequence[str],
    positional: Sequence[Any],
    named: Mapping[str, Any],
) -> list[Any]:
    """Return arguments in the order of a function's parameters.

    Raises:
        NotACall: one has an unknown name.
    """
    left = dict(named)
    arguments = list(positional)
    for name in parameters[len(arguments) :]:
        # Those behind it have defaults, or are named too.
        if name not in left:
            break
        arguments.append(left.pop(name))
    if left:
        known = ", ".join(parameters) or "none"
        raise NotACall(f"argument {next(iter(left))!r} has no place among {known}")
    return arguments


def read_parameters(source: str, name: str) -> tuple[str, ...]:
    """Return a function's positional parameters, without self.

    Args:
        source: may lack the function's body; if it lacks the function, there are no parameters.
    """
    head = find_head(source, name)
    if head is None:
        return ()
    return tuple(argument.arg for argument in arguments_of(head))


def _explain_value(value: Any) -> str:
    """Say why a value cannot be given to a function, or be compared with what it returns."""
    return (
        "is or holds a value that no function is given here "
        f"(a set, bytes, a dict with keys that are no texts): {shorten(value, 40)}"
    )


def write_call(arguments: Sequence[Any], expected: Any) -> TestCase:
    """Return the test of a call; NotACall if a value has no JSON form."""
    for number, argument in enumerate(arguments, 1):
        if not is_json_value(argument):
            raise NotACall(f"argument {number} {_explain_value(argument)}")
    if not is_json_value(expected, is_expected=True):
        raise NotACall(f"the expected value {_explain_value(expected)}")
    try:
        text = "\n".join(map(write_json, arguments))
        return TestCase(input=text, output=write_json(expected))
    except ValueError as error:
        raise NotACall(str(error)) from None


_BUILDERS = {"list_node": "ListNode", "tree_node": "TreeNode"}
"""Functions of LeetCodeDataset that make nodes from lists, and the type of these nodes."""
_RAISES = ("raises", "assertRaises")
"""Functions of pytest and unittest by which a test asks for an exception."""
_SAME = ("is_same_list", "is_same_tree")
"""Functions of LeetCodeDataset that compare nodes."""
_WORDS = {
    "inf": math.inf,
    "nan": math.nan,
    "null": None,
    "true": True,
    "false": False,
}
"""Names that stand for values, some of them JSON's."""
_ROOTS = ("Solution", "solution", "my_solution", "sol")
"""Names of the object, class or module whose method or function is called."""


@dataclass(frozen=True, slots=True)
class _Comparison:
    """A call with literal arguments, and the literal that its value is compared with."""

    arguments: list[Any]
    expected: Any
    absolute: float | None = None
    relative: float | None = None
    kinds: tuple[str, ...] = ()
    """Type name of each argument (see `_kind_of`)."""
    returns: str = "json"

    @property
    def tolerance(self) -> tuple[float | None, float | None]:
        """The absolute and the relative tolerance."""
        return self.absolute, self.relative


_EXACT = (None, None)
"""The tolerance of a comparison without one."""


def _strictness(tolerance: tuple[float | None, float | None]) -> tuple[float, float]:
    absolute, relative = tolerance
    # None allows no error at all of its kind, so nothing is stricter.
    return absolute or 0, relative or 0


RESULTS = "_r"
"""Variable with the values that an assertion's calls returned; `_r[0]` is the first."""


class Cut(NamedTuple):
    """An assertion's syntax tree cut in two: the answer's calls, a condition on their values."""

    calls: tuple[ast.Call, ...]
    rest: ast.expr
    """The asserted expression, with `_r[0]` in place of the first call."""


class _Bound(NamedTuple):
    """A literal that a test has bound to a name: its syntax tree and its value."""

    node: ast.expr
    value: Any


_Names = Mapping[str, _Bound]


def read_assertions(
    source: str,
    *,
    called: Collection[str],
    parameters: Sequence[str] = (),
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
    """Split an assertion in place: the answer's calls, outermost first, and the rest."""
    cutter = _Cutter(set(called))
    rest = cutter.visit(test)
    return Cut(tuple(cutter.calls), rest)


class _Cutter(ast.NodeTransformer):
    """Replaces calls of the answer by `_r[0]`, `_r[1]`, ... in place, and collects them."""

    def __init__(self, called: Collection[str]) -> None:
        self.calls: list[ast.Call] = []
        self._called = called

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node.func:
            case ast.Name(id=name):
                is_answer = name in self._called
            case ast.Attribute(
                value=ast.Name(id=root) | ast.Call(func=ast.Name(id=root)),
                attr=name,
            ):
                is_answer = name in self._called and root in _ROOTS
            case _:
                is_answer = False
        if not is_answer:
            self.generic_visit(node)
            return node
        # Whole, with the calls inside it, which the answer's process makes too.
        self.calls.append(node)
        return ast.Subscript(
            ast.Name(RESULTS, ast.Load()),
            ast.Constant(len(self.calls) - 1),
            ast.Load(),
        )

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        # A long literal is made of these, and for each the library looks for old names of visitors,
        # which takes four times as long.
        return node


def is_result(node: ast.expr) -> bool:
    """Whether a node is an item of the results: `_r[0]` stands for the value of a call."""
    if not isinstance(node, ast.Subscript) or not isinstance(node.value, ast.Name):
        return False
    return node.value.id == RESULTS


def is_claim(node: ast.AST) -> bool:
    """Whether a node of a test says what must be so: an assertion, or an exception asked for."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)):
            return name in _RAISES
    return isinstance(node, ast.Assert)


def parse_value(node: ast.expr, names: _Names | None = None) -> Any:
    """Return the value of a literal, `inf`, `nan`, or a name bound to a literal.

    Raises:
        NotACall: it is anything else.
    """
    if isinstance(node, ast.Name) and names and node.id in names:
        return names[node.id].value
    # Most are plain literals; only in others are names and builders of nodes looked for.
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass
    try:
        return ast.literal_eval(_Literals(names or {}).visit(node))
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        raise NotACall(f"not a literal: {_show(node)}") from None


class _Reader:
    """Reads the assertions of a program, and gathers the tests that they make."""

    def __init__(self, called: Collection[str], parameters: Sequence[str]) -> None:
        self._called = set(called)
        self._parameters = parameters
        self._comparisons: list[_Comparison] = []
        self._dropped: list[str] = []

    def read(self, statements: Sequence[ast.stmt], names: dict[str, _Bound]) -> None:
        """Read statements in order; `names` are those bound to literals so far."""
        for statement in statements:
            match statement:
                case ast.Assert(test=ast.Constant()):
                    # It is about no answer, so nothing is lost.
                    pass
                case ast.Assert(test=test):
                    try:
                        self._comparisons.append(self._read_comparison(test, names))
                    except NotACall as error:
                        self._dropped.append(str(error))
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    # What cannot be read now must not keep the value that it had before.
                    names.pop(name, None)
                    # Names inside are not followed: `b = [a, a]; c = [b, b]; ...` would grow
                    # without bound.
                    with contextlib.suppress(NotACall):
                        names[name] = _Bound(value, parse_value(value))
                case ast.FunctionDef(body=body) | ast.ClassDef(body=body):
                    # A copy, since what a function binds is not known outside of it.
                    self.read(body, dict(names))
                case ast.Import() | ast.ImportFrom() | ast.Expr(value=ast.Constant()) | ast.Pass():
                    pass
                case _:
                    self._drop(statement, names)

    def _drop(self, statement: ast.stmt, names: dict[str, _Bound]) -> None:
        """Leave out a loop, a `with`, a call.

        Its assertions are no literal tests, and names in it may have changed.
        """
        for node in ast.walk(statement):
            if is_claim(node):
                self._dropped.append(f"inside {type(statement).__name__}")
            elif isinstance(node, ast.Name):
                names.pop(node.id, None)

    def asserted(self) -> DecodedTests:
        """Return the tests that were read, all with one tolerance: a problem has one checker."""
        tolerances = {comparison.tolerance for comparison in self._comparisons}
        tolerances.discard(_EXACT)
        # Of several tolerances the strictest counts; comparisons with others are left out.
        chosen = min(tolerances, key=_strictness, default=_EXACT)
        call = self._find_call()
        tests = []
        dropped = list(self._dropped)
        for comparison in self._comparisons:
            # An exact comparison also holds within a tolerance.
            if comparison.tolerance not in (_EXACT, chosen):
                dropped.append("a second tolerance")
            elif not _fits(comparison, call or Call()):
                dropped.append("nodes in place of plain values, or the other way around")
            else:
                try:
                    tests.append(write_call(comparison.arguments, comparison.expected))
                except NotACall as error:
                    dropped.append(str(error))
        checker = Checker()
        if chosen != _EXACT:
            absolute, relative = chosen
            checker = Checker(type="float", absolute=absolute, relative=relative)
        return DecodedTests(
            tuple(tests),
            checker=checker,
            call=call,
            dropped=tuple(dropped),
        )

    def _find_call(self) -> Call | None:
        """Return the types of arguments and result; None if all are plain JSON.

        A type is taken where at least half of the comparisons say so.
        """
        shown_by_place: list[list[str]] = []
        for comparison in self._comparisons:
            for place, kind in enumerate(comparison.kinds):
                if place == len(shown_by_place):
                    shown_by_place.append([])
                shown_by_place[place].append(kind)
        kinds = [_usual(shown) for shown in shown_by_place]
        returns = _usual([comparison.returns for comparison in self._comparisons])
        if {*kinds, returns} == {"json"}:
            return None
        return Call(parameters=tuple(kinds), returns=returns)

    def _read_comparison(self, test: ast.expr, names: _Names) -> _Comparison:
        """Read an assertion that compares one call with a literal."""
        calls, rest = cut_calls(test, self._called)
        call = calls[0] if len(calls) == 1 else None
        match rest:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.Is()], comparators=[right]):
                call, other = self._sides(call, left, right)
                match other:
                    case ast.Call(
                        func=ast.Attribute(attr="approx"),
                        args=[value],
                        keywords=options,
                    ):
                        return self._compare_within(
                            call, value, options, names, ("rel", 1e-6), "abs"
                        )
                return self._compare(call, other, names)
            case ast.Call(func=ast.Name(id=name), args=[left, right], keywords=[]) if name in _SAME:
                call, other = self._sides(call, left, right)
                return self._compare(call, other, names)
            case ast.Compare(
                left=ast.Call(
                    func=ast.Name(id="abs"),
                    args=[ast.BinOp(left=left, op=ast.Sub(), right=right)],
                ),
                ops=[ast.Lt() | ast.LtE()],
                comparators=[bound],
            ):
                call, other = self._sides(call, left, right)
                expected = parse_value(other, names)
                within = parse_value(bound, names)
                arguments, _ = self._read_call(call, names)
                return _Comparison(arguments, _real(expected), absolute=_tolerance(within))
            case ast.Call(
                func=ast.Attribute(attr="isclose") | ast.Name(id="isclose"),
                args=[left, right],
            ):
                call, other = self._sides(call, left, right)
                return self._compare_within(
                    call, other, rest.keywords, names, ("rel_tol", 1e-9), "abs_tol"
                )
        raise NotACall(f"no call compared with a literal: {_show(test)}")

    def _compare(self, call: ast.Call, other: ast.expr, names: _Names) -> _Comparison:
        arguments, kinds = self._read_call(call, names)
        return _Comparison(
            arguments,
            parse_value(other, names),
            kinds=kinds,
            returns=_kind_of(other),
        )

    def _compare_within(
        self,
        call: ast.Call,
        value: ast.expr,
        options: Sequence[ast.keyword],
        names: _Names,
        relative: tuple[str, float],
        absolute: str,
    ) -> _Comparison:
        """Return a comparison within the tolerance in `options`.

        Args:
            relative: name of the option of a relative tolerance, and the default where there are no
                options.
            absolute: name of the option of an absolute tolerance.
        """
        name_of_relative, default = relative
        # Options by `**` have no name, and are refused below.
        options_given = {option.arg or "": parse_value(option.value, names) for option in options}
        if not options_given.keys() <= {name_of_relative, absolute}:
            raise NotACall(f"unknown options of a tolerance: {', '.join(options_given)}")
        if not options_given:
            options_given = {name_of_relative: default}
        within = {}
        for name, number in options_given.items():
            if number:
                within[name] = _tolerance(number)
        expected = _real(parse_value(value, names))
        arguments, _ = self._read_call(call, names)
        return _Comparison(arguments, expected, within.get(absolute), within.get(name_of_relative))

    def _sides(
        self,
        call: ast.Call | None,
        left: ast.expr,
        right: ast.expr,
    ) -> tuple[ast.Call, ast.expr]:
        """Return the call, and the expression that its value is compared with.

        Raises:
            NotACall: neither side is the call.
        """
        if call is not None and is_result(left):
            return call, right
        if call is not None and is_result(right):
            return call, left
        raise NotACall(f"no call of {' or '.join(sorted(self._called))}: {_show(right)}")

    def _read_call(self, node: ast.Call, names: _Names) -> tuple[list[Any], tuple[str, ...]]:
        """Return the arguments of a call in the order of the parameters, and their type names."""
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
        # The kinds likewise, so that each stays with its argument.
        return arguments, tuple(arrange(self._parameters, kinds, named_kinds))


class _Literals(ast.NodeTransformer):
    """Replaces in place what stands for a literal.

    Names by their literals, `inf` and `null` by constants, `list_node([1])` by its list.
    """

    def __init__(self, names: _Names) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self._names:
            return self._names[node.id].node
        if node.id in _WORDS:
            return ast.Constant(_WORDS[node.id])
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        is_math = isinstance(node.value, ast.Name) and node.value.id in ("math", "np", "numpy")
        if is_math and node.attr in ("inf", "nan"):
            return ast.Constant(float(node.attr))
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(
                func=ast.Name(id="float"),
                args=[ast.Constant(value=str(text))],
                keywords=[],
            ):
                word = text.strip().lower().lstrip("+-")
                if word in ("inf", "infinity", "nan"):
                    return ast.Constant(float(text))
            case ast.Call(func=ast.Name(id=name), args=[values], keywords=[]) if name in _BUILDERS:
                items = self.visit(values)
                return _drop_orphans(items) if name == "tree_node" else items
        self.generic_visit(node)
        return node


def _drop_orphans(values: ast.expr) -> ast.expr:
    """Return a level-order list of a tree without the items that have no parent.

    The tree's builder ignores them.
    """
    if not isinstance(values, ast.List):
        return values
    num_free = 1
    num_kept = 0
    for item in values.elts:
        if num_free == 0:
            break
        # A node takes one place and makes two; None only takes one.
        is_none = isinstance(item, ast.Constant) and item.value is None
        if is_none:
            num_free -= 1
        else:
            num_free += 1
        num_kept += 1
    return ast.List(values.elts[:num_kept], values.ctx)


def _usual(kinds: Sequence[str]) -> str:
    """Return the most frequent of some type names, of equals one that is not `json`."""
    if not kinds:
        return "json"
    counts = Counter(kinds).most_common()
    kind, _ = max(counts, key=lambda pair: (pair[1], pair[0] != "json"))
    return kind


def _fits(comparison: _Comparison, call: Call) -> bool:
    """Whether a comparison's values have the types of `call`; None and [] fit every type."""
    parameters = call.parameters or ["json"] * len(comparison.kinds)
    arguments = zip(parameters, comparison.kinds, comparison.arguments, strict=False)
    for kind, shown, value in arguments:
        if not _has_type(kind, shown, value):
            return False
    return _has_type(call.returns, comparison.returns, comparison.expected)


def _has_type(kind: str, shown: str, value: Any) -> bool:
    return kind == shown or (shown == "json" and value in (None, []))


def _kind_of(node: ast.expr) -> str:
    """Return the type name of an expression; `json` if unknown."""
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in _BUILDERS:
            return _BUILDERS[name]
        case ast.List(elts=[first, *rest]):
            kind = _kind_of(first)
            if kind != "json" and all(_kind_of(item) == kind for item in rest):
                return f"list[{kind}]"
    return "json"


def _real(value: Any) -> Any:
    """Return a value with its integers as floats, for comparison within a tolerance."""
    if isinstance(value, list | tuple):
        return [_real(item) for item in value]
    # Larger ones are not exact as floats.
    if isinstance(value, bool) or not isinstance(value, int):
        return value
    if abs(value) < 1 << 53:
        return float(value)
    return value


def _tolerance(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 < value < 1:
        raise NotACall(f"no tolerance: {shorten(value, 40)}")
    return float(value)


def _show(node: ast.AST) -> str:
    try:
        return shorten(ast.unparse(node), 60)
    except (RecursionError, ValueError, MemoryError):
        # A message must not fail on what it is about.
        return type(node).__name__

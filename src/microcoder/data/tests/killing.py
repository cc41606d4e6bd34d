"""Which tests catch which wrong programs, found by running each program until its first failure, in several orders.

Wrong programs made from a right one: small changes of its syntax tree, each named after what was changed.

They stand for the mistakes of people and models: another comparison, a bound that is off by one, a forgotten branch,
a greedy choice in place of all, a slow list in place of a set. Some mutants are right after all (equivalent); which
ones nobody can decide, so those that no input tells from the reference are counted apart.
"""

from __future__ import annotations

import ast
import copy
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from microcoder.data.formats.text import parse_python
from microcoder.data.tests.answers import Answering, MadeTest
from microcoder.judge import Judge
from microcoder.judge.core.files import take_in_turn
from microcoder.judge.core.types import Outcome, Program, TestCase


class MadeMutant(NamedTuple):
    """A mutant and its name, `mutation@line`."""

    name: str
    code: str


_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.Pow: ast.Mult,
}
_OPPOSITES = {"min": "max", "max": "min", "any": "all", "all": "any", "ceil": "floor", "floor": "ceil",
              "bisect_left": "bisect_right", "bisect_right": "bisect_left", "pop": "popleft", "popleft": "pop",
              "heappush": "append", "lower": "upper", "upper": "lower", "startswith": "endswith"}  # fmt: skip
_SLOWER = {"set": "list", "frozenset": "list", "deque": "list"}

Site = Callable[[], None]
"""Changes the tree that it was found in."""


def make_mutants(code: str, *, limit: int, seed: int = 0) -> list[MadeMutant]:
    """Return mutants of a Python program, of as many mutations and lines as there are; none where it does not parse."""
    tree = parse_python(code)
    if tree is None:
        return []
    number = sum(1 for _ in _sites(tree))
    places = list(range(number))
    random.Random(seed).shuffle(places)
    found: dict[str, MadeMutant] = {}
    original = ast.unparse(tree)
    by_mutation: dict[str, int] = {}
    most = max(2, limit // 6)
    for place in places:
        changed = copy.deepcopy(tree)
        name, site = next(one for number, one in enumerate(_sites(changed)) if number == place)
        if by_mutation.get(name.split("@")[0].split("/")[0], 0) >= most:
            continue
        site()
        text = _unparse(changed)
        if text and text != original and text not in found:
            found[text] = MadeMutant(name, text)
            kind = name.split("@")[0].split("/")[0]
            by_mutation[kind] = by_mutation.get(kind, 0) + 1
        if len(found) >= limit:
            break
    return sorted(found.values())


def _unparse(tree: ast.Module) -> str:
    try:
        text = ast.unparse(ast.fix_missing_locations(tree))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "mutant", "exec")
    except (SyntaxError, ValueError, RecursionError):
        return ""
    return text + "\n"


def _sites(tree: ast.Module) -> Iterator[tuple[str, Site]]:
    """Yield every change that can be made to a tree, in the same order for equal trees."""
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        for name, site in _sites_of(node):
            yield f"{name}@{line}", site


def _sites_of(node: ast.AST) -> Iterator[tuple[str, Site]]:
    match node:
        case ast.Compare():
            yield from _compare(node)
        case ast.BinOp() | ast.AugAssign():
            other = _OPERATORS.get(type(node.op))
            if other:
                yield f"operator/{type(node.op).__name__}", _setting(node, "op", other())
        case ast.BoolOp():
            opposite = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield "logic/and_or", _setting(node, "op", opposite)
            yield "logic/drop_last", _setting(node, "values", node.values[:-1])
            yield "logic/drop_first", _setting(node, "values", node.values[1:])
        case ast.UnaryOp(op=ast.Not()):
            yield "logic/not", _setting(node, "operand", ast.UnaryOp(ast.Not(), node.operand))
        case ast.Constant(value=bool(value)):
            yield "constant/bool", _setting(node, "value", not value)
        case ast.Constant(value=int(value)):
            yield "constant/plus_one", _setting(node, "value", value + 1)
            yield "constant/minus_one", _setting(node, "value", value - 1)
        case ast.If():
            yield "branch/always", _setting(node, "test", ast.Constant(True))
            yield "branch/never", _setting(node, "test", ast.Constant(False))
        case ast.IfExp():
            yield "branch/swap", _swapping(node)
        case ast.While():
            yield "greedy/once", _setting(node, "body", [*node.body, ast.Break()])
        case ast.For():
            yield "greedy/first", _setting(node, "body", [*node.body, ast.Break()])
            if len(node.body) > 1:
                yield "statement/drop_last", _setting(node, "body", node.body[:-1])
        case ast.Call():
            yield from _call(node)
        case ast.Subscript(slice=index) if not isinstance(index, ast.Slice) and isinstance(node.ctx, ast.Load):
            yield "index/plus_one", _setting(node, "slice", ast.BinOp(index, ast.Add(), ast.Constant(1)))
        case ast.FunctionDef() if node.decorator_list:
            memo = [one for one in node.decorator_list if "cache" in ast.dump(one)]
            if memo:
                rest = [one for one in node.decorator_list if one not in memo]
                yield "slow/no_memo", _setting(node, "decorator_list", rest)
        case ast.Assign(value=value) if len(node.targets) == 1 and isinstance(value, ast.Name):
            yield "statement/zero", _setting(node, "value", ast.Constant(0))


def _compare(node: ast.Compare) -> Iterator[tuple[str, Site]]:
    for number, operator in enumerate(node.ops):
        for other in _COMPARISONS.get(type(operator), ()):
            ops = [*node.ops[:number], other(), *node.ops[number + 1 :]]
            yield f"compare/{type(operator).__name__}_{other.__name__}", _setting(node, "ops", ops)
    last = node.comparators[-1]
    if isinstance(node.ops[-1], ast.Lt | ast.LtE | ast.Gt | ast.GtE):
        moved = ast.BinOp(last, ast.Add(), ast.Constant(1))
        yield "bound/plus_one", _setting(node, "comparators", [*node.comparators[:-1], moved])


def _call(node: ast.Call) -> Iterator[tuple[str, Site]]:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name in _OPPOSITES and name != "heappush":
        yield f"call/{name}", _setting(node.func, "attr" if isinstance(node.func, ast.Attribute) else "id",
                                       _OPPOSITES[name])  # fmt: skip
    if name in _SLOWER and node.args and isinstance(node.func, ast.Name):
        yield f"slow/{name}", _setting(node.func, "id", _SLOWER[name])
    if name == "range" and node.args:
        stop = min(1, len(node.args) - 1)
        for what, operator in (("plus", ast.Add()), ("minus", ast.Sub())):
            moved = ast.BinOp(node.args[stop], operator, ast.Constant(1))
            yield f"bound/range_{what}_one", _setting(node, "args", [*node.args[:stop], moved, *node.args[stop + 1 :]])
        if len(node.args) > 1:
            start = ast.BinOp(node.args[0], ast.Add(), ast.Constant(1))
            yield "bound/range_start", _setting(node, "args", [start, *node.args[1:]])
    if name in ("sorted", "abs") and len(node.args) == 1 and isinstance(node.func, ast.Name):
        yield f"call/drop_{name}", _setting(node.func, "id", "list" if name == "sorted" else "int")


def _setting(node: ast.AST, field: str, value: object) -> Site:
    return lambda: setattr(node, field, value)


def _swapping(node: ast.IfExp) -> Site:
    def swap() -> None:
        node.body, node.orelse = node.orelse, node.body

    return swap


_SMALL_BYTES = 4096
"""On a longer input a program may be slow by being slow; on a shorter one it does not end."""
_LIMITS = (Outcome.TIME_LIMIT, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT)
_CANNOT_RUN = (Outcome.COMPILE_ERROR, Outcome.NO_CODE, Outcome.SANDBOX_FAULT)


@dataclass(frozen=True, slots=True)
class WrongProgram:
    """A wrong program that tests should reject."""

    name: str
    program: Program


def find_killers(
    judge: Judge,
    answering: Answering,
    wrong: Sequence[WrongProgram],
    tests: Sequence[TestCase],
    *,
    seconds: float,
    num_orders: int = 1,
    seed: int = 0,
) -> list[set[int] | None]:
    """Return for each program numbers of tests that it fails, one an order; None for one that cannot be run.

    A program that runs over a limit on a long input is not counted as caught by it: where it ends differs from
    machine to machine, and what is chosen must not.

    Args:
        judge: of the stop rule `first_failure`.
        tests: in the order of the first run.
        seconds: CPU limit of a test.
        num_orders: further orders are tried for what was caught.
    """
    killers: list[set[int] | None] = [set() for _ in wrong]
    again = list(range(len(wrong)))
    for number in range(num_orders if wrong and tests else 0):
        order = list(range(len(tests)))
        if number:
            random.Random(seed + number).shuffle(order)
        problems = {
            language: answering.problem([tests[n] for n in order], seconds=seconds, language=language)
            for language in {wrong[place].program.language for place in again}
        }
        verdicts = judge.judge(
            [wrong[place].program for place in again], [problems[wrong[place].program.language] for place in again]
        )
        still = []
        for place, verdict in zip(again, verdicts, strict=True):
            failed = len(verdict.tests) - 1
            if verdict.outcome in _CANNOT_RUN:
                killers[place] = None
            elif not verdict.is_accepted:
                test = order[failed]
                known = killers[place]
                if verdict.outcome in _LIMITS:
                    if len(tests[test].input) <= _SMALL_BYTES and known is not None:
                        known.add(test)
                elif known is not None:
                    known.add(test)
                    still.append(place)
        again = still
        if not again:
            break
    return killers


def choose_tests(
    tests: Sequence[MadeTest],
    hacked: Sequence[set[int]],
    mutants: Sequence[set[int]],
    *,
    most: int,
    num_large: int,
) -> list[int]:
    """Return the numbers of the tests to keep: some large, hacks, those that kill mutants, then a spread.

    Of equal standing are those first that catch most per second of judging.

    Args:
        hacked: for each submission that is known to be wrong the tests that it is known to fail.
        mutants: likewise for each mutant.
        num_large: of those, large ones that are kept whatever they kill.
    """
    chosen = _spread_large(tests)[: min(num_large, most)]
    for killers in (hacked, mutants):
        left = [failed for failed in killers if failed and not failed & set(chosen)]
        while left and len(chosen) < most:
            catches = Counter(number for failed in left for number in failed)
            best = max(catches, key=lambda n: (catches[n] / tests[n].seconds, -len(tests[n].test.input), -n))
            chosen.append(best)
            left = [failed for failed in left if best not in failed]
    by_kind: dict[str, list[int]] = {}
    for number, one in enumerate(tests):
        if number not in chosen:
            by_kind.setdefault(one.origin.kind, []).append(number)
    # What no known mistake asked for may still catch the mistakes of a model: some of every kind, longest first, each
    # way of making inputs in its turn.
    by_way: dict[str, list[list[int]]] = {}
    for kind, numbers in by_kind.items():
        numbers.sort(key=lambda n: (-len(tests[n].test.input), n))
        by_way.setdefault(kind.partition("/")[0], []).append(numbers)
    chosen += take_in_turn(take_in_turn(by_way.values()))[: most - len(chosen)]
    return sorted(chosen)


def _spread_large(tests: Sequence[MadeTest]) -> list[int]:
    """Return the numbers of the large tests: of each kind in turn the longest that is left."""
    large = [number for number, one in enumerate(tests) if one.is_large]
    by_kind: dict[str, list[int]] = {}
    for number in sorted(large, key=lambda n: -len(tests[n].test.input)):
        by_kind.setdefault(tests[number].origin.kind, []).append(number)
    return take_in_turn(by_kind.values())

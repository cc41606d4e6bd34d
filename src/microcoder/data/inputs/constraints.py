"""What a statement says of its input, as relations between places: `1 <= k <= nums.length`, `n == grid.length`.

A place is a parameter (`k`), a length (`nums#`), the items of a list (`nums[]`), their lengths (`words[]#`) or a column
of a list of rows (`edges[][0]`). Other names are places too: `n` where nothing of that name is given. What is computed
of places is a formula: `k <= floor(nums.length / m)`.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache
from types import CodeType, MappingProxyType
from typing import NamedTuple

from microcoder.data.clean.completeness import WRITTEN, plain_formulae, read_number
from microcoder.judge.core.syntax import parse_source

_NAME = r"\|?[A-Za-z_]\w*(?:\.(?:length|size(?:\(\))?|len)|\[[^\]\n]{0,12}\])*\|?(?:\.length)?"
_FUNCTIONS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {"floor": math.floor, "ceil": math.ceil, "min": min, "max": max}
)
_NUMBER = WRITTEN.replace(r"\(?", "").replace(r"\)?", "")
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{_NUMBER})|(?P<function>{'|'.join(_FUNCTIONS)})(?=\s*\()|(?P<name>{_NAME})|(?P<mark>[-+*/^(),]))"
)
_GOES_ON = re.compile(r"[\w(]|\s*[*/^!%]|\s*[-+]\s*\w")
"""What follows a term that was not read whole."""
_OPERATOR = re.compile(r"\s*(<=|>=|==|<|>)\s*")
_COLUMNS = re.compile(r"\b(\w+)\[\w\]\s*(?:=|==)\s*[\[(]([^\])\n]{1,80})[\])]")
_LENGTH = re.compile(r"\.(?:length|size(?:\(\))?|len)")
_TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "=="}
_GROUPS = re.compile(r"\b(?:sub-?tasks?|groups?|(?:test|del)?grupp(?:er)?|deluppgift)\b", re.IGNORECASE)
_MOST_TEXT, _MOST_TOKENS, _MOST_POWER, _MOST_DIGITS = 20_000, 24, 6, 300


class Term(NamedTuple):
    """A number; a place and what is added to it; or a formula, whose places stand in braces: `={nums#}/{m}`."""

    place: str
    number: float
    """The number itself where `place` is empty."""

    @property
    def is_formula(self) -> bool:
        """Whether it is computed of places."""
        return self.place.startswith("=")

    @property
    def places(self) -> list[str]:
        """All places in it."""
        if self.is_formula:
            return re.findall(r"\{([^}]*)\}", self.place)
        return [self.place] if self.place else []

    def evaluate(self, known: Mapping[str, float]) -> float | None:
        """Return its number; None where that of a place is not known, or cannot be computed."""
        if any(place not in known for place in self.places):
            return None
        if not self.is_formula:
            return (known[self.place] if self.place else 0) + self.number
        names = {f"v{number}": known[place] for number, place in enumerate(self.places)}
        try:
            return eval(_compiled(self.place), {"__builtins__": {}, **_FUNCTIONS}, names) + self.number
        except (ArithmeticError, ValueError, TypeError):
            return None


class Relation(NamedTuple):
    """`left operator right`, with `<=`, `<` or `==`."""

    left: Term
    operator: str
    right: Term


def read_relations(
    statement: str, parameters: Collection[str], places: Mapping[str, str] = MappingProxyType({})
) -> tuple[Relation, ...]:
    """Return what a statement says between numbers and places."""
    text = re.sub(r"\\lfloor\b|⌊", "floor(", re.sub(r"\\rfloor\b|⌋", ")", statement[:_MOST_TEXT]))
    text = re.sub(r"\\d?frac\{([^{}]{1,60})\}\{([^{}]{1,60})\}", r"((\1)/(\2))", re.sub(r"\\(min|max)\b", r"\1", text))
    text = re.sub(r"(?<![A-Za-z_])([A-Za-z])\(", r"\1*(", text)
    # What two differing numbers are bounded by, each is.
    text = re.sub(r"(?<=\w)\s*(?:\\neq?(?![a-zA-Z])|≠|!=)\s*(?=\w)", ", ", text)
    text = re.sub(r"[ ]+and[ ]+", ", ", plain_formulae(text))
    columns = {**_read_columns(text, parameters), **places}

    def name(found: str) -> str:
        return _place(found, parameters, columns)

    relations: dict[Relation, None] = {}
    for line in _each_of(text, columns):
        parts = _OPERATOR.split(line)
        for position in range(0, len(parts) - 2, 2):
            operator = parts[position + 1]
            is_last = position + 2 == len(parts) - 1
            for left in _terms_before(parts[position], name):
                for right in _terms_after(parts[position + 2], name, is_last=is_last):
                    made = Relation(left, operator, right)
                    if operator.startswith(">"):
                        made = Relation(right, _TURNED[operator], left)
                    if (made.left.place or made.right.place) and made.left != made.right:
                        relations.setdefault(made)
    return tuple(relations)


def without_group_rows(statement: str) -> str:
    """Return a statement without the rows of its table of test groups: they bound their group alone."""
    rest: list[str] = []
    is_inside = False
    for line in statement.split("\n"):
        is_inside = line.lstrip().startswith("|") and (is_inside or _GROUPS.search(line) is not None)
        if not is_inside:
            rest.append(line)
    return "\n".join(rest)


def _each_of(text: str, places: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines, those on `m_i` once for each of `m_1`, `m_2`, ... where these are what has places."""
    for line in text.split("\n"):
        families = {one for one in re.findall(r"\b([A-Za-z])_[ijk]\b", line) if f"{one}_1" in places}
        numbers = sorted({name[2:] for name in places if name[:1] in families and re.fullmatch(r"\w_\d", name)})
        found = [re.sub(rf"\b({'|'.join(sorted(families))})_[ijk]\b", rf"\g<1>_{one}", line) for one in numbers]
        yield from found or [line]


def _terms_before(text: str, name: Callable[[str], str]) -> list[Term]:
    """Return the terms that stand right before an operator: a list of them, or the longest that can be read."""
    items = _split_list(text, name)
    if items is None:
        tokens = _tokens(text)
        ends = [place for place in range(len(tokens)) if all(a.end() == b.start() for a, b in _pairs(tokens[place:]))]
        found = (_term(tokens[place:], name) for place in ends if tokens[-1].end() == len(text))
        return [one for one in found if one is not None][:1]
    numbers = [place for place, one in enumerate(items) if not one.place]
    return items[min(numbers[-1] + 1, len(items) - 1) :] if numbers else items


def _terms_after(text: str, name: Callable[[str], str], *, is_last: bool) -> list[Term]:
    items = None if is_last else _split_list(text, name)
    if items is None:
        tokens = list(itertools.islice(_TOKEN.finditer(text), _MOST_TOKENS))
        for end in range(len(tokens), 0, -1):
            is_whole = all(a.end() == b.start() for a, b in _pairs(tokens[:end])) and tokens[0].start() == 0
            if is_whole and (term := _term(tokens[:end], name)) is not None:
                return [] if _GOES_ON.match(text, tokens[end - 1].end()) else [term]
        return []
    numbers = [place for place, one in enumerate(items) if not one.place]
    return items[: max(numbers[0], 1)] if numbers else items


def _split_list(text: str, name: Callable[[str], str]) -> list[Term] | None:
    """Return the terms of a text that is a list of them from end to end."""
    items = re.split(r"\s*,\s*(?![^()]*\))", text.strip())
    found = []
    for item in items:
        tokens = _tokens(item)
        is_whole = bool(tokens) and all(a.end() == b.start() for a, b in _pairs(tokens))
        term = _term(tokens, name) if is_whole and tokens[0].start() == 0 and tokens[-1].end() == len(item) else None
        if term is None:
            return None
        found.append(term)
    return found


def _tokens(text: str) -> list[re.Match[str]]:
    return list(_TOKEN.finditer(text))[-_MOST_TOKENS:]


def _pairs(tokens: Sequence[re.Match[str]]) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    return itertools.pairwise(tokens)


def _term(tokens: Sequence[re.Match[str]], name: Callable[[str], str]) -> Term | None:
    """Return what tokens mean; None where they are no expression."""
    source, places, is_operand = "", [], False
    for token in tokens:
        if token["number"]:
            number = _read_number(token["number"])
            if number is None or (is_operand and number >= 0):
                return None
            source += f"{number:+.17g}" if is_operand else f"({number:.17g})"
        elif token["name"]:
            if is_operand:
                # Words of a sentence are no product.
                return None
            source += f"v{len(places)}"
            places.append(name(token["name"]))
        else:
            source += token["function"] or ("**" if token["mark"] == "^" else token["mark"])
        is_operand = bool(token["number"] or token["name"])
    try:
        tree = parse_source(source, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    match tree:
        case _ if not _is_allowed(tree):
            return None
        case ast.Name():
            return Term(places[0], 0.0)
        case ast.BinOp(ast.Name(), ast.Add() | ast.Sub() as sign, ast.Constant(float() | int() as value)):
            return Term(places[0], float(value if isinstance(sign, ast.Add) else -value))
    formula = Term("=" + re.sub(r"v(\d+)", lambda found: f"{{{places[int(found[1])]}}}", source), 0.0)
    if places:
        return formula
    value = formula.evaluate({})
    return None if value is None or not math.isfinite(value) else Term("", float(value))


def _read_number(text: str) -> float | None:
    power = re.fullmatch(r"10\^\(?(\d{3})\)?", text.replace(" ", ""))
    # A text that is asked for its digits has more of them than other bounds.
    return 10.0 ** int(power[1]) if power and int(power[1]) < _MOST_DIGITS else read_number(text)


def _is_allowed(tree: ast.expr) -> bool:
    match tree:
        case ast.Constant(int() | float()):
            return True
        case ast.Name(name):
            return name not in _FUNCTIONS
        case ast.UnaryOp(ast.USub() | ast.UAdd(), operand):
            return _is_allowed(operand)
        case ast.BinOp(left, ast.Pow(), ast.Constant(int() | float() as power)):
            return 0 <= power <= _MOST_POWER and _is_allowed(left)
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div(), right):
            return _is_allowed(left) and _is_allowed(right)
        case ast.Call(ast.Name(function), arguments, keywords=[]):
            return function in _FUNCTIONS and bool(arguments) and all(map(_is_allowed, arguments))
    return False


@cache
def _compiled(formula: str) -> CodeType:
    numbers = itertools.count()
    return compile(re.sub(r"\{[^}]*\}", lambda _: f"v{next(numbers)}", formula[1:]), "formula", "eval")


def _read_columns(text: str, parameters: Collection[str]) -> dict[str, str]:
    """Return the places of names that a row is written with, such as `edges[i] = [from_i, to_i]`."""
    columns: dict[str, str] = {}
    for found in _COLUMNS.finditer(text):
        if found[1] in parameters:
            for number, name in enumerate(found[2].split(",")):
                columns.setdefault(name.strip(), f"{found[1]}[][{number}]")
    return columns


def _place(name: str, parameters: Collection[str], columns: dict[str, str]) -> str:
    if name in columns:
        return columns[name]
    is_length = name.startswith("|") and name.removesuffix(".length").endswith("|")
    name = _LENGTH.sub("#", name.strip("|"))
    name = re.sub(r"\[(\D[^\]]*)\]", "[]", name)
    name = re.sub(r"\[\]\[(\d)\]", r"[][\1]", name)
    name = re.sub(r"(?<!\])\[\d+\]", "[]", name)
    base = re.split(r"[#\[]", name)[0]
    if base not in parameters:
        # `a_i`, `ai`: the items of `a`.
        shorter = re.fullmatch(r"(\w+?)_?[ijk]", base)
        if shorter and shorter[1] in parameters:
            name = f"{shorter[1]}[]{name[len(base) :]}"
    return f"{name}#" if is_length else name

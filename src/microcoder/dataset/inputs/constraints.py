"""What a statement says of its input, as relations between places: `1 <= k <= nums.length`, `n == grid.length`.

A place is a parameter (`k`), a length (`nums#`), the items of a list (`nums[]`), their lengths (`words[]#`) or a column
of a list of rows (`edges[][0]`). Other names are places too: `n` where nothing of that name is given.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

from microcoder.dataset.process.completeness import WRITTEN, plain_formulae, read_number

_NAME = r"\|?[A-Za-z_]\w*(?:\.(?:length|size(?:\(\))?|len)|\[[^\]\n]{0,12}\])*\|?(?:\.length)?"
_OFFSET = r"(?:[ ]*[-+][ ]*\d{1,9}(?![\w.]))?"
_TERM = rf"(?:{WRITTEN}|{_NAME}{_OFFSET}(?:\s*(?:,|and)\s*{_NAME})*)(?![\w(]|[ ]*[*/^(]|[ ]*[-+][ ]*\w)"
_CHAIN = re.compile(rf"{_TERM}(?:\s*(?:<=|>=|==|<|>)\s*{_TERM})+")
_OPERATOR = re.compile(r"\s*(<=|>=|==|<|>)\s*")
_COLUMNS = re.compile(r"\b(\w+)\[\w\]\s*(?:=|==)\s*[\[(]([^\])\n]{1,80})[\])]")
_LENGTH = re.compile(r"\.(?:length|size(?:\(\))?|len)")
_TURNED = {"<=": ">=", "<": ">", ">=": "<=", ">": "<", "==": "=="}
_MOST_TEXT = 20_000


class Term(NamedTuple):
    """A number, or a place and what is added to it."""

    place: str
    number: float
    """The number itself where `place` is empty."""


class Relation(NamedTuple):
    """`left operator right`, with `<=`, `<` or `==`."""

    left: Term
    operator: str
    right: Term


def read_relations(
    statement: str, parameters: Collection[str], places: Mapping[str, str] = MappingProxyType({})
) -> tuple[Relation, ...]:
    """Return what a statement says between numbers and places.

    Args:
        statement: the text.
        parameters: the names that values are given under.
        places: further names and the places that they stand for.
    """
    text = plain_formulae(statement[:_MOST_TEXT])
    columns = {**_read_columns(text, parameters), **places}
    relations: dict[Relation, None] = {}
    for found in _CHAIN.finditer(text):
        parts = _OPERATOR.split(found[0])
        for position in range(0, len(parts) - 2, 2):
            operator = parts[position + 1]
            for left in _read_terms(parts[position], parameters, columns):
                for right in _read_terms(parts[position + 2], parameters, columns):
                    made = Relation(left, operator, right)
                    if operator.startswith(">"):
                        made = Relation(right, _TURNED[operator], left)
                    if made.left.place or made.right.place:
                        relations.setdefault(made)
    return tuple(relations)


def _read_columns(text: str, parameters: Collection[str]) -> dict[str, str]:
    """Return the places of names that a row is written with, such as `edges[i] = [from_i, to_i]`."""
    columns: dict[str, str] = {}
    for found in _COLUMNS.finditer(text):
        if found[1] in parameters:
            for number, name in enumerate(found[2].split(",")):
                columns.setdefault(name.strip(), f"{found[1]}[][{number}]")
    return columns


def _read_terms(text: str, parameters: Collection[str], columns: dict[str, str]) -> list[Term]:
    text = text.strip()
    number = read_number(text)
    if number is not None:
        return [Term("", number)]
    terms = []
    for part in re.split(r"\s*,\s*|\s+and\s+", text):
        found = re.fullmatch(rf"({_NAME})(?:[ ]*([-+])[ ]*(\d+))?", part.strip())
        if found:
            offset = float(f"{found[2] or ''}{found[3] or 0}")
            terms.append(Term(_place(found[1], parameters, columns), offset))
    return terms


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

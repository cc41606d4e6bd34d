"""The words of the micro world: small operations, each with phrasings, code, typical slips and look-alikes.

A problem is a chain of one to five operations; `{k}` is its constant. A *slip* is code that looks right and is
wrong; a *look-alike* is the operation a careless reader takes it for. Slips never loop for ever: a time limit
would cost a second of judging, and teach nothing that a wrong answer does not. All of them are in `operations.toml`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Domain = Literal["numbers", "word", "integer"]
Tier = Literal["easy", "medium", "hard"]


class Kind(StrEnum):
    """What an operation takes and gives."""

    FILTER = "filter"
    """Numbers to fewer numbers; the code is a condition on x."""
    MAP = "map"
    """Each number to another; the code is an expression of x."""
    MEASURE = "measure"
    """Numbers to one value; the code is an expression of a."""
    ARRANGE = "arrange"
    """Numbers to a list; the code is an expression of a."""
    EDIT = "edit"
    """A word to a word; the code is an expression of s."""
    TRAIT = "trait"
    """A word to one value; the code is an expression of s."""
    STEP = "step"
    """An integer to an integer; the code is a statement on x."""
    ALGORITHM = "algorithm"
    """A whole task; the code is statements and, last, the expression of the answer."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One thing that a problem may ask for."""

    name: str
    """How a plan refers to it."""
    phrases: tuple[str, ...]
    """How a statement refers to it."""
    code: str
    slips: tuple[str, ...]
    """Wrong code, the likelier first."""
    lookalikes: tuple[str, ...]
    """Names, of the same kind, that a careless reader takes it for; the first is the likeliest."""
    constants: tuple[int, ...] = ()
    """What `{k}` may be; empty for an operation without a constant."""
    gives_list: bool = False
    """The answer is a list: printed with spaces, returned as it is."""
    domain: Domain = "numbers"
    """What comes in; only given for algorithms, since the kind says it for the others."""
    tier: Tier = "easy"
    """Only given for algorithms."""


def _read_operation(kind: Kind, name: str, record: Mapping[str, Any]) -> Operation:
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in record.items()}
    if kind is Kind.ALGORITHM:
        # Given as (right piece, wrong piece) of the code, so that they cannot drift from it.
        fields["slips"] = tuple(fields["code"].replace(right, wrong) for right, wrong in fields["slips"])
    if fields["code"] in fields["slips"]:
        raise AssertionError(f"a slip of {kind} {name} changes nothing")
    return Operation(name, **fields)


def _read_operations() -> Mapping[Kind, Mapping[str, Operation]]:
    """Return the operations of each kind by name, in the file's order, which draws depend on."""
    tables = tomllib.loads(Path(__file__).with_name("operations.toml").read_text(encoding="utf-8"))
    found = {}
    for kind in Kind:
        table = {name: _read_operation(kind, name, record) for name, record in tables[kind].items()}
        for operation in table.values():
            if unknown := set(operation.lookalikes) - table.keys():
                raise AssertionError(f"{kind} {operation.name} has unknown look-alikes {sorted(unknown)}")
        found[kind] = MappingProxyType(table)
    return MappingProxyType(found)


OPERATIONS = _read_operations()

"""The words of the micro world: small operations, each with phrasings, code, typical slips and look-alikes.

A problem is a chain of one to five operations; `{k}` is its constant. A *slip* is code that looks right and is
wrong; a *look-alike* is the operation a careless reader takes it for. Slips never loop for ever: a time limit
would cost a second of judging, and teach nothing that a wrong answer does not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

Domain = Literal["numbers", "word", "integer"]


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
    domain: Domain = "numbers"
    """What comes in; only told for algorithms, since the kind tells it for the others."""
    gives_list: bool = False
    """The answer is a list: printed with spaces, returned as it is."""


def make_table(kind: Kind, operations: Iterable[Operation]) -> Mapping[str, Operation]:
    """Key operations by name, and see that every look-alike exists."""
    table = {operation.name: operation for operation in operations}
    for operation in table.values():
        unknown = set(operation.lookalikes) - set(table)
        if unknown:
            raise AssertionError(f"{kind} {operation.name} has unknown look-alikes {sorted(unknown)}")
    return MappingProxyType(table)

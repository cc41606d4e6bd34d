"""The words of the micro world: small operations, each with phrasings, code, typical slips and look-alikes.

A problem is a chain of one to five operations; `{k}` is its constant. A *slip* is code that looks right and is
wrong; a *look-alike* is the operation a careless reader takes it for. Slips never loop for ever: a time limit
would cost a second of judging, and teach nothing that a wrong answer does not. All of them are in `operations.toml`.

Templates: the kinds of problem there are, in three tiers, and the tasks drawn from them.

A template fixes the tier, what comes in and the chain of operation kinds; a task fills in the operations, their
constants and the answer style. Tasks are split by *composition*: a quarter of all operation chains never appears
in training or in demonstrations. A chain of one operation cannot be held out without holding out the operation,
so there the split goes by the wording instead.
"""

from __future__ import annotations

import hashlib
import random
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
    """Types of an operation's input and output."""

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
    """Name in a plan."""
    phrases: tuple[str, ...]
    """Phrases for it in a statement."""
    code: str
    slips: tuple[str, ...]
    """Wrong code, the likelier first."""
    lookalikes: tuple[str, ...]
    """Names, of the same kind, that a careless reader takes it for; the first is the likeliest."""
    constants: tuple[int, ...] = ()
    """Values of `{k}`; empty for an operation without a constant."""
    gives_list: bool = False
    """The answer is a list: printed with spaces, returned as it is."""
    domain: Domain = "numbers"
    """Possible inputs; only given for algorithms, since the kind implies those of the others."""
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


Style = Literal["stdin", "function"]
Split = Literal["train", "heldout"]

TIERS: tuple[Tier, ...] = ("easy", "medium", "hard")
STYLES: tuple[Style, ...] = ("stdin", "function")
HELDOUT_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class Step:
    """An operation of a task with its constant filled in."""

    kind: Kind
    name: str
    """Key into `OPERATIONS[kind]`; still with `{k}` where there is a constant."""
    constant: int | None = None

    @property
    def operation(self) -> Operation:
        """Operation of the step."""
        return OPERATIONS[self.kind][self.name]

    def fill(self, text: str) -> str:
        """Put the constant into a text of the operation."""
        return text if self.constant is None else text.replace("{k}", str(self.constant))


@dataclass(frozen=True, slots=True)
class Template:
    """A kind of problem."""

    name: str
    tier: Tier
    domain: Domain
    slots: tuple[Kind, ...]
    weight: float
    """Weight in the draw among the others of its tier."""
    algorithm: str | None = None
    """The one operation of an algorithm template."""


@dataclass(frozen=True, slots=True)
class TemplateTask:
    """A template with its operations: all that is asked, before it is put into words."""

    template: Template
    steps: tuple[Step, ...]
    style: Style

    @property
    def composition(self) -> str:
        """The chain of operations without constants: what the split holds out."""
        return " > ".join(step.name for step in self.steps)


def _shape(tier: Tier, domain: Domain, weight: float, *slots: Kind) -> Template:
    return Template("-".join([domain, *slots]), tier, domain, slots, weight)


_F, _M, _Q, _A, _E, _T, _S, _ = Kind
_SHAPES = (
    _shape("easy", "numbers", 3, _Q),
    _shape("easy", "numbers", 2, _A),
    _shape("easy", "word", 2, _E),
    _shape("easy", "word", 2, _T),
    _shape("easy", "integer", 2, _S),
    _shape("easy", "integer", 3, _S, _S),
    _shape("medium", "numbers", 4, _F, _Q),
    _shape("medium", "numbers", 3, _F, _A),
    _shape("medium", "numbers", 3, _M, _Q),
    _shape("medium", "numbers", 3, _M, _A),
    _shape("medium", "word", 3, _E, _T),
    _shape("medium", "word", 2, _E, _E),
    _shape("medium", "integer", 3, _S, _S, _S),
    _shape("hard", "numbers", 5, _F, _M, _Q),
    _shape("hard", "numbers", 4, _F, _M, _A),
    _shape("hard", "numbers", 3, _F, _F, _Q),
    _shape("hard", "numbers", 3, _M, _F, _Q),
    _shape("hard", "word", 3, _E, _E, _T),
    _shape("hard", "integer", 3, _S, _S, _S, _S),
    _shape("hard", "integer", 2, _S, _S, _S, _S, _S),
)


TEMPLATES: tuple[Template, ...] = (
    *_SHAPES,
    *(
        Template(f"{item.domain}-{item.name}", tier, item.domain, (Kind.ALGORITHM,), 0.7, item.name)
        for tier in TIERS
        for item in OPERATIONS[Kind.ALGORITHM].values()
        if item.tier == tier
    ),
)


def draw_step(kind: Kind, generator: random.Random) -> Step:
    """Draw an operation of a kind and its constant."""
    return with_constant(kind, generator.choice(list(OPERATIONS[kind])), generator)


def with_constant(kind: Kind, name: str, generator: random.Random) -> Step:
    """Fill in a random constant where the operation has one."""
    constants = OPERATIONS[kind][name].constants
    return Step(kind, name, generator.choice(constants) if constants else None)


def draw_task(template: Template, style: Style, generator: random.Random) -> TemplateTask:
    """Fill a template; no operation comes twice, since twice over is often once or never."""
    if template.algorithm is not None:
        return TemplateTask(template, (Step(Kind.ALGORITHM, template.algorithm),), style)
    while True:
        steps = tuple(draw_step(kind, generator) for kind in template.slots)
        if len({step.name for step in steps}) == len(steps):
            return TemplateTask(template, steps, style)


def draw_template(tier: Tier, generator: random.Random) -> Template:
    """Draw a template of a tier by weight."""
    templates = [template for template in TEMPLATES if template.tier == tier]
    return generator.choices(templates, [template.weight for template in templates])[0]


def split_of(task: TemplateTask, statement: str) -> Split:
    """Say which split a task belongs to: by its composition, or by its wording when it has one operation only."""
    key = task.composition if len(task.steps) > 1 else statement
    return "heldout" if stable_share("split", key) < HELDOUT_SHARE else "train"


def stable_share(*words: str) -> float:
    """Hash words to [0, 1), the same on every machine and in every process."""
    digest = hashlib.sha256("\x1f".join(words).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64

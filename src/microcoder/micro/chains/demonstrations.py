"""Demonstrations of chains: ways of thinking that differ in what they cost and in how often who uses them is right.

No error is drawn here. A demonstration that thinks to the end is right; one that stops half-way takes the digit it has;
one that does not think takes any. How often a *model* that thinks in some way is right is its own: a leap asks for two
steps in one pass, a bare trace for the right step of the statement and its result at once, a worked trace for one thing
at a time, and a check computes everything anew.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field, model_validator

from microcoder.micro.chains.tasks import MODULUS, ChainTask, draw_chain_tasks, take_step
from microcoder.micro.templates import STYLES, TIERS, Style, Tier
from microcoder.micro.tricks import draw_trick
from microcoder.types import Record

Thinking = Literal["none", "leap", "bare", "worked", "checked", "ramble", "loop", "trick"]
THOROUGH: tuple[Thinking, ...] = ("leap", "bare", "worked", "checked")
_WORDS = ("hmm\n", "wait\n", "let me see\n", "so\n")


class ThinkingShares(Record):
    """How demonstrations of chains think; weights need not sum to one."""

    none: float = Field(default=0.25, ge=0)
    """No thinking: the program takes any digit."""
    leap: float = Field(default=0.05, ge=0)
    """Every second digit: `leap 94`."""
    bare: float = Field(default=0.2, ge=0)
    """Every digit: `digits 7924`."""
    worked: float = Field(default=0.4, ge=0)
    """Every step with its result: `3 +4 =7`, a line each."""
    checked: float = Field(default=0.05, ge=0)
    """Worked twice; the program takes the second result."""
    ramble: float = Field(default=0.05, ge=0)
    """Thinks half-way, then words without use; seldom a program."""
    loop: float = Field(default=0.05, ge=0)
    """Worked again and again."""
    trick: float = Field(default=0.0, ge=0)
    """No thinking, and a program that fools a naive grader in place of an answer (`microcoder.micro.tricks`)."""
    stop_share: float = Field(default=0.5, ge=0, le=1)
    """Of the thinking ones, the share that stops before the last step and takes the digit that it has."""

    @model_validator(mode="after")
    def _something_is_thought_through(self) -> ThinkingShares:
        if not sum(self.weights[kind] for kind in THOROUGH):
            raise ValueError(
                f"no way of thinking to the end has a weight; give one of {', '.join(THOROUGH)} more than 0"
            )
        return self

    @property
    def weights(self) -> dict[Thinking, float]:
        """The weight of each way."""
        return {kind: getattr(self, kind) for kind in get_args(Thinking)}


@dataclass(frozen=True, slots=True)
class ChainDemonstration:
    """A statement and one answer to it."""

    statement: str
    response: str
    thinking: Thinking
    num_steps_thought: int
    """Steps of the chain that the thinking goes through; fewer than the task has: it stopped half-way."""
    task: ChainTask


def generate_chain_demonstrations(
    *,
    num: int,
    seed: int = 0,
    shares: ThinkingShares | None = None,
    thorough: bool = False,
    tiers: Sequence[Tier] = TIERS,
    styles: Sequence[Style] = STYLES,
) -> Iterator[ChainDemonstration]:
    """Generate demonstrations of training tasks; none shows a held-out chain.

    Args:
        num: how many.
        seed: another seed draws others.
        shares: how they think.
        thorough: only those that think to the end and then give a program: what is learnt from first.
        tiers: tiers of the tasks, drawn at random.
        styles: styles of the programs, drawn at random.
    """
    shares = shares or ThinkingShares()
    generator = random.Random(f"microcoder chains {seed} {'thorough' if thorough else 'all'}")
    kinds = THOROUGH if thorough else get_args(Thinking)
    weights = [shares.weights[kind] for kind in kinds]
    for _, task in zip(
        range(num), draw_chain_tasks(generator, tiers=tiers, styles=styles, split="train"), strict=False
    ):
        stops = not thorough and generator.random() < shares.stop_share
        yield demonstrate(task, generator.choices(kinds, weights)[0], generator, stops=stops)


def demonstrate(task: ChainTask, thinking: Thinking, generator: random.Random, *, stops: bool) -> ChainDemonstration:
    """Answer a task in a way of thinking; `stops`: before the last step."""
    num = generator.randrange(1, len(task.steps)) if stops else len(task.steps)
    digits = task.digits[:num]
    has_program = True
    match thinking:
        case "none":
            num, thought, digits = 0, "", [generator.randrange(MODULUS)]
        case "trick":
            trick = draw_trick(generator, is_function=task.style == "function")
            return ChainDemonstration(task.statement, f"```python\n{trick}```", thinking, 0, task)
        case "leap":
            thought = leap(digits)
        case "bare":
            thought = bare(digits)
        case "worked":
            thought = worked(task, num)
        case "checked":
            thought = worked(task, num) + "again\n" + worked(task, num)
        case "ramble":
            thought = worked(task, num) + "".join(generator.choice(_WORDS) for _ in range(generator.randint(3, 40)))
            has_program = generator.random() < 0.3
        case "loop":
            thought = worked(task, num) * generator.randint(2, 5)
    response = thought + f"```python\n{task.render_program(digits[-1])}```" if has_program else thought
    return ChainDemonstration(task.statement, response, thinking, num, task)


def bare(digits: Sequence[int]) -> str:
    """Return the digits alone."""
    return f"digits {''.join(map(str, digits))}\n"


def leap(digits: Sequence[int]) -> str:
    """Return every second digit, the last one always among them."""
    return f"leap {''.join(map(str, digits[(len(digits) + 1) % 2 :: 2]))}\n"


def worked(task: ChainTask, num_steps: int) -> str:
    """Return the first steps with their results, a line each."""
    lines, digit = [], task.start
    for step in task.steps[:num_steps]:
        after = take_step(digit, step)
        lines.append(f"{digit}{step}={after}\n")
        digit = after
    return "".join(lines)

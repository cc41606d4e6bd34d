"""Chains of steps on one digit: the tasks of a world where thinking is computation.

A task starts from a digit, takes a number of steps modulo ten one after another, and uses the last digit as a constant
of a one-line program. Each step needs the digit before it, so that a small model, which looks at the statement through
two or three layers, cannot have the last digit in one pass. It can write the digits down one by one.
"""

from __future__ import annotations

import hashlib
import operator
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from microcoder.micro.templates import Split, Style, Tier

MODULUS = 10
NUM_STEPS_BY_TIER: dict[Tier, tuple[int, ...]] = {"easy": (2, 3), "medium": (4, 5), "hard": (6, 7)}
"""How many serial steps a problem of a tier takes: harder problems need longer thinking."""
HELDOUT_SHARE = 0.25
FUNCTION_NAME = "solve"
# Factors have an inverse modulo ten: no step forgets the digit before it, so that no chain can be begun in its middle.
_STEPS = (*(f"+{d}" for d in range(1, 10)), *(f"-{d}" for d in range(1, 10)), "*3", "*7", "*9")


@dataclass(frozen=True, slots=True)
class LastStep:
    """What the program does with its input and the last digit."""

    phrase: str
    code: str
    """An expression of `{x}`, the input, and `{n}`, the last digit."""
    answer: Callable[[int, int], int]
    """The same of the input and the last digit."""


ENDINGS = (
    LastStep("x plus n", "{x} + {n}", operator.add),
    LastStep("x times n", "{x} * {n}", operator.mul),
    LastStep("the larger of x and n", "max({x}, {n})", max),
)


@dataclass(frozen=True, slots=True)
class ChainTask:
    """A start, the steps from there, and what is asked in the end."""

    tier: Tier
    start: int
    steps: tuple[str, ...]
    """Sign and constant of each step, such as `*7`."""
    ending: LastStep
    style: Style

    @property
    def digits(self) -> list[int]:
        """The digit after each step."""
        digits, digit = [], self.start
        for step in self.steps:
            digit = take_step(digit, step)
            digits.append(digit)
        return digits

    @property
    def statement(self) -> str:
        """What the model reads."""
        asked = "Write solve(x):" if self.style == "function" else "Read x, print"
        return f"Let n be {self.start}, then modulo ten: {''.join(self.steps)}. {asked} {self.ending.phrase}."

    def render_program(self, digit: int) -> str:
        """Return the program that takes a digit for the last one."""
        if self.style == "function":
            return f"def {FUNCTION_NAME}(x):\n    return {self.ending.code.format(x='x', n=digit)}\n"
        return f"print({self.ending.code.format(x='int(input())', n=digit)})\n"


def take_step(digit: int, step: str) -> int:
    """Return the digit after a step."""
    constant = int(step[1])
    match step[0]:
        case "+":
            return (digit + constant) % MODULUS
        case "-":
            return (digit - constant) % MODULUS
        case _:
            return digit * constant % MODULUS


def split_of(task: ChainTask) -> Split:
    """Return the split that a chain belongs to by a stable hash: the same in every style and with every ending."""
    key = f"{task.start} {' '.join(task.steps)}"
    share = int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") / 2**64
    return "heldout" if share < HELDOUT_SHARE else "train"


def draw_chain_tasks(
    generator: random.Random, *, tiers: Sequence[Tier], styles: Sequence[Style], split: Split
) -> Iterator[ChainTask]:
    """Draw tasks of a split, without end; tiers come up at random."""
    while True:
        tier = generator.choice(tiers)
        task = ChainTask(
            tier,
            generator.randrange(MODULUS),
            tuple(generator.choice(_STEPS) for _ in range(generator.choice(NUM_STEPS_BY_TIER[tier]))),
            generator.choice(ENDINGS),
            generator.choice(styles),
        )
        if split_of(task) == split:
            yield task

"""Task -> tests and problem: inputs that probe the corners, answers from running the reference in this process.

Only our own reference programs run here; what a model writes goes to `microcoder.judge`.
"""

from __future__ import annotations

import builtins
import json
import random
from collections.abc import Callable, Sequence
from typing import Any

from microcoder.data.micro.operations import Kind, Style, TemplateTask, Tier
from microcoder.data.micro.programs import FUNCTION_NAME
from microcoder.judge.core.types import Problem, TestCase

NUM_TESTS = 6
ATTEMPTS = 500
"""Draws for one more distinct problem, before it is said that there is none."""
TIME_LIMIT_SECONDS = 1.0
MEMORY_LIMIT_MIB = 256
_LETTERS = "aaaeeioubbcdkmnrst"
_ALLOWED = frozenset({"abs", "bin", "len", "list", "map", "max", "min", "range", "set", "sorted", "str", "sum", "int"})


def build_problem(
    identifier: str, *, statement: str, reference: str, tests: Sequence[TestCase], style: Style, tier: Tier
) -> Problem:
    """Return the problem of a task, with the limits of the world."""
    is_function = style == "function"
    return Problem(
        id=identifier,
        statement=statement,
        fn_name=FUNCTION_NAME if is_function else None,
        starter_code=reference.split("\n")[0] if is_function else None,
        tests=tuple(tests),
        time_limit_seconds=TIME_LIMIT_SECONDS,
        memory_limit_mib=MEMORY_LIMIT_MIB,
        tier=tier,
        reference=reference,
    )


def make_tests(task: TemplateTask, reference: str, generator: random.Random) -> tuple[TestCase, ...]:
    """Draw inputs of a task and compute what its reference answers."""
    draw = {"numbers": _draw_numbers, "word": _draw_word, "integer": _draw_integer}[task.template.domain]
    run = _function(reference) if task.style == "function" else None
    code = compile(reference, "<reference>", "exec")
    tests = []
    for index in range(NUM_TESTS):
        value = draw(task, index, generator)
        if run is not None:
            tests.append(TestCase(input=json.dumps(value), output=json.dumps(run(value))))
        else:
            line = " ".join(map(str, value)) if isinstance(value, list) else str(value)
            tests.append(TestCase(input=f"{line}\n", output=_printed(code, line)))
    return tuple(tests)


def _draw_numbers(task: TemplateTask, index: int, generator: random.Random) -> list[int]:
    """Lists of 5 to 9 numbers, then a short one and a single number; a third of the values sit near the constants."""
    constants = [step.constant for step in task.steps if step.constant is not None]
    length = {NUM_TESTS - 2: 3, NUM_TESTS - 1: 1}.get(index) or generator.randint(5, 9)
    values: list[int] = []
    for _ in range(length):
        dice = generator.random()
        if constants and dice < 0.35:
            constant = generator.choice(constants)
            values.append(constant * generator.choice((1, 1, 1, -1, 2, 3)) + generator.choice((0, 0, 1, -1)))
        elif dice < 0.5:
            values.append(generator.randint(-3, 3))
        elif values and dice < 0.7:
            values.append(generator.choice(values))
        else:
            values.append(generator.randint(-30, 60))
    return values


def _draw_word(task: TemplateTask, index: int, generator: random.Random) -> str:
    """Words of 4 to 9 letters, one of them a palindrome, one with doubled letters, and a single letter last."""
    if index == NUM_TESTS - 1:
        return generator.choice("abe")
    word = "".join(generator.choice(_LETTERS) for _ in range(generator.randint(4, 9)))
    if index == 1:
        return word[:4] + word[:4][::-1]
    return "".join(letter * 2 for letter in word[:4]) if index == 2 else word


def _draw_integer(task: TemplateTask, index: int, generator: random.Random) -> int:
    if any(step.kind is Kind.ALGORITHM for step in task.steps):
        return (1, 2, *(generator.randint(3, 25) for _ in range(NUM_TESTS - 2)))[index]
    return (0, generator.randint(-9, -1), generator.randint(1, 9), *(generator.randint(-40, 80) for _ in range(3)))[
        index
    ]


def _namespace(**extra: Any) -> dict[str, Any]:
    allowed = {name: getattr(builtins, name) for name in _ALLOWED}
    return {"__builtins__": {**allowed, **extra}}


def _function(reference: str) -> Callable[[Any], Any]:
    namespace = _namespace()
    exec(reference, namespace)
    return namespace[FUNCTION_NAME]


def _printed(code: Any, line: str) -> str:
    output: list[str] = []

    def write(*values: object) -> None:
        output.append(" ".join(map(str, values)) + "\n")

    exec(code, _namespace(input=lambda: line, print=write))
    return "".join(output)

"""Task -> program: the same chain of operations as a script or a function, in several hands.

`snippets` is the code of each step, right or wrong; this module only arranges it. Which arrangement and which
variable names are used is free: it changes nothing about the answer, and is there so that samples can differ.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Literal

from microcoder.micro.operations import Kind
from microcoder.micro.templates import TemplateTask

FUNCTION_NAME = "solve"
_VARIABLES = {"numbers": "a", "word": "s", "integer": "x"}
_READERS = {"numbers": "list(map(int, input().split()))", "word": "input()", "integer": "int(input())"}

Hand = Literal["stepwise", "fused", "loop"]
HANDS: tuple[Hand, ...] = ("stepwise", "fused", "loop")


def render_program(
    task: TemplateTask, snippets: Sequence[str], *, hand: Hand = "stepwise", names: bool = False, answer: str = "{}"
) -> str:
    """Arrange step code as a whole program.

    Args:
        task: what is asked.
        snippets: code of each step, constants filled in.
        hand: how filters and maps are written; matters only for numbers.
        names: call the list `nums` instead of `a`.
        answer: wrapped around the answer expression, for slips of form.
    """
    body, result = _body(task, snippets, hand)
    variable = _VARIABLES[task.template.domain]
    result = answer.format(result)
    if task.style == "function":
        lines = [f"def {FUNCTION_NAME}({variable}):", *(f"    {line}" for line in body), f"    return {result}"]
    else:
        star = "*" if task.steps[-1].operation.gives_list and answer == "{}" else ""
        lines = [f"{variable} = {_READERS[task.template.domain]}", *body, f"print({star}{result})"]
    code = "\n".join(lines)
    if names and variable == "a":
        code = re.sub(r"\ba\b(?!\")", "nums", code)
    return code


def reference_program(task: TemplateTask) -> str:
    """Return the plain right program of a task."""
    return render_program(task, [step.fill(step.operation.code) for step in task.steps])


def draw_hand(task: TemplateTask, generator: random.Random) -> Hand:
    """Draw how a program is written; tasks without filters and maps have one hand only."""
    if not any(step.kind in (Kind.FILTER, Kind.MAP) for step in task.steps):
        return "stepwise"
    return generator.choices(HANDS, (2, 1, 1))[0]


def _body(task: TemplateTask, snippets: Sequence[str], hand: Hand) -> tuple[list[str], str]:
    """Return the statements and the expression of the answer."""
    last = task.steps[-1].kind
    if last is Kind.ALGORITHM:
        *statements, result = snippets[0].split("\n")
        return statements, result
    if last is Kind.STEP:
        return list(snippets), "x"
    if last in (Kind.EDIT, Kind.TRAIT):
        return [f"s = {snippet}" for snippet in snippets[:-1]], snippets[-1]
    kinds = [step.kind for step in task.steps[:-1]]
    return _pipeline(kinds, snippets[:-1], hand), snippets[-1]


def _pipeline(kinds: Sequence[Kind], snippets: Sequence[str], hand: Hand) -> list[str]:
    conditions = [code for kind, code in zip(kinds, snippets, strict=True) if kind is Kind.FILTER]
    values = [code for kind, code in zip(kinds, snippets, strict=True) if kind is Kind.MAP]
    is_filter_first = Kind.MAP not in kinds or Kind.FILTER not in kinds[kinds.index(Kind.MAP) :]
    if hand == "stepwise" or not kinds or not is_filter_first:
        return [
            f"a = [x for x in a if {code}]" if kind is Kind.FILTER else f"a = [{code} for x in a]"
            for kind, code in zip(kinds, snippets, strict=True)
        ]
    value = values[0] if values else "x"
    condition = " and ".join(conditions)
    if hand == "fused":
        return [f"a = [{value} for x in a if {condition}]" if condition else f"a = [{value} for x in a]"]
    keep = [f"    if {condition}:", f"        b.append({value})"] if condition else [f"    b.append({value})"]
    return ["b = []", "for x in a:", *keep, "a = b"]

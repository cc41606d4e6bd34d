"""Task -> statement: many wordings for one meaning."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from microcoder.micro.operations import Kind
from microcoder.micro.templates import Step, Style, TemplateTask, choose

_OPENINGS: Mapping[tuple[str, Style], Sequence[str]] = {
    ("numbers", "stdin"): (
        "Read a line of integers.",
        "The input is one line of integers.",
        "One line holds some integers.",
    ),
    ("numbers", "function"): (
        "Write solve(a) for a list a of integers.",
        "Function solve gets a list of integers.",
        "Given is a list; write solve(a).",
    ),
    ("word", "stdin"): ("Read a word.", "The input is one word.", "One line holds a word."),
    ("word", "function"): (
        "Write solve(s) for a word s.",
        "Function solve gets a word.",
        "Given is a word; write solve(s).",
    ),
    ("integer", "stdin"): ("Read an integer x.", "The input is an integer x.", "One line holds an integer x."),
    ("integer", "function"): (
        "Write solve(x) for an integer x.",
        "Function solve gets an integer x.",
        "Given is an integer; write solve(x).",
    ),
}
_ANSWERS: Mapping[Style, Sequence[str]] = {"stdin": ("Print", "Output"), "function": ("Return", "Give back")}
_KEEP = ("Keep only the {}.", "Of these take the {}.")
_REPLACE = ("Replace each by its {}.", "Turn each into its {}.")


def write_statement(task: TemplateTask, generator: random.Random) -> str:
    """Put a task into words; the generator chooses among equivalent wordings."""
    parts = [choose(generator, _OPENINGS[task.template.domain, task.style])]
    answer = choose(generator, _ANSWERS[task.style])
    changes = [step for step in task.steps if step.kind in (Kind.EDIT, Kind.STEP)]
    if changes:
        joined = ", then ".join(_phrase(step, generator) for step in changes)
        parts.append(f"{joined[0].upper()}{joined[1:]}.")
    for step in task.steps:
        if step.kind is Kind.FILTER:
            parts.append(choose(generator, _KEEP).format(_phrase(step, generator)))
        elif step.kind is Kind.MAP:
            parts.append(choose(generator, _REPLACE).format(_phrase(step, generator)))
    last = task.steps[-1]
    if last in changes:
        parts.append(f"{answer} the result.")
    elif last.kind is Kind.TRAIT:
        parts.append(f"{answer} {_phrase(last, generator)}.")
    else:
        parts.append(f"{answer} the {_phrase(last, generator)}.")
    return " ".join(parts)


def _phrase(step: Step, generator: random.Random) -> str:
    return step.fill(choose(generator, step.operation.phrases))

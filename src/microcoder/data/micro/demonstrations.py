"""Demonstrations to warm a model up on: right, wrong and unfinished answers, in known shares.

A demonstration restates the operations in zero or more numbered plan lines and then gives the program. Its author
misreads operations, slips while coding, and gets both right more often with every further plan: the error rates
fall by `decay` a line. So a longer response is a better one up to the length limit, which is what makes response
length, truncation and its masking live quantities in this world.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import Field

from microcoder.data.micro.operations import (
    OPERATIONS,
    STYLES,
    TIERS,
    Kind,
    Step,
    Style,
    TemplateTask,
    Tier,
    draw_step,
    stable_share,
    with_constant,
)
from microcoder.data.micro.problems import draw_tasks
from microcoder.data.micro.programs import draw_hand, render_program
from microcoder.judge.core.types import Record

_REMARKS = ("That is all.", "This covers the empty case too.", "Done.")
_REMARK_SHARE = 0.08
"""Share with a closing sentence after the program."""
_WRONG_CONSTANT_SHARE = 0.3
"""Of the misread operations with a constant, the share where only the constant is misread."""


class DemonstrationNoise(Record):
    """How far demonstrations are from right; every share is a probability."""

    misread_range: tuple[float, float] = (0.15, 0.6)
    """Chance to misread an operation without any plan; each operation has its own rate in this range."""
    slip_range: tuple[float, float] = (0.1, 0.5)
    """Chance to code an operation wrongly without any plan; each operation has its own rate in this range."""
    decay: float = Field(default=0.55, ge=0, le=1)
    """Factor on both rates for every plan line."""
    plan_weights: tuple[float, ...] = (0.5, 0.18, 0.12, 0.08, 0.06, 0.04, 0.02)
    """Weights of writing 0, 1, 2 ... plan lines."""
    form_share: float = Field(default=0.08, ge=0, le=1)
    """The right value in another form: a float for an integer, Yes for YES, brackets around a list."""
    layout_share: float = Field(default=0.0, ge=0, le=1)
    """The right value laid out otherwise, of scripts: white space around it, a list line by line, Yes for YES. A robust
    comparison accepts it, an exact one does not."""
    ramble_share: float = Field(default=0.04, ge=0, le=1)
    """8 to 14 plan lines before the program."""
    repeat_share: float = Field(default=0.03, ge=0, le=1)
    """One plan line over and over before the program."""
    cut_share: float = Field(default=0.03, ge=0, le=1)
    """The response stops somewhere before its end."""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A statement and one answer to it, good or bad."""

    statement: str
    response: str
    tier: Tier
    num_plans: int
    """Plan lines before the program."""
    flaws: tuple[str, ...]
    """Flaws in it: misread, slip, form, cut. Without any it is right; `form` may still be accepted, and
    a slip may by luck make no difference."""
    task: TemplateTask
    """Task that is demonstrated."""


def generate_demonstrations(
    *,
    num: int,
    seed: int = 0,
    noise: DemonstrationNoise | None = None,
    tiers: Sequence[Tier] = TIERS,
    styles: Sequence[Style] = STYLES,
) -> Iterator[Demonstration]:
    """Generate demonstrations of training tasks; none has a held-out statement or composition."""
    generator = random.Random(f"microcoder demonstrations {seed}")
    drawn = draw_tasks(generator, tiers=tiers, styles=styles, split="train")
    for _, (task, statement) in zip(range(num), drawn, strict=False):
        yield _demonstrate(task, statement, noise or DemonstrationNoise(), generator)


def _demonstrate(
    task: TemplateTask, statement: str, noise: DemonstrationNoise, generator: random.Random
) -> Demonstration:
    num_plans = generator.choices(range(len(noise.plan_weights)), noise.plan_weights)[0]
    is_repeating = generator.random() < noise.repeat_share
    if generator.random() < noise.ramble_share:
        num_plans = generator.randint(8, 14)
    understood = _misread(task.steps, 0, noise, generator)
    lines = []
    for number in range(1, num_plans + 1):
        understood = _misread(task.steps, number, noise, generator)
        lines.append(f"{number}. {', '.join(step.fill(step.name) for step in understood)}")
    if is_repeating and lines:
        lines += [lines[-1]] * generator.randint(6, 16)
    snippets = [_snippet(step, num_plans, noise, generator) for step in understood]
    has_form_slip = generator.random() < noise.form_share
    code = render_program(
        TemplateTask(task.template, understood, task.style),
        snippets,
        hand=draw_hand(task, generator),
        names=generator.random() < 0.3,
        answer=(_form if has_form_slip else _layout)(understood[-1], task.style, noise, generator),
    )
    response = "\n".join([*lines, "```python", code, "```"])
    if generator.random() < _REMARK_SHARE:
        response += f"\n{generator.choice(_REMARKS)}"
    is_cut = generator.random() < noise.cut_share
    if is_cut:
        response = response[: generator.randint(1, len(response) - 4)]
    flaws = {
        "misread": understood != task.steps,
        "slip": any(s != step.fill(step.operation.code) for s, step in zip(snippets, understood, strict=True)),
        "form": has_form_slip,
        "cut": is_cut,
    }
    return Demonstration(
        statement, response, task.template.tier, num_plans, tuple(name for name, is_so in flaws.items() if is_so), task
    )


def _rate(what: str, step: Step, bounds: tuple[float, float], num_plans: int, decay: float) -> float:
    low, high = bounds
    return (low + (high - low) * stable_share(what, step.kind, step.name)) * decay**num_plans


def _misread(
    steps: Sequence[Step], num_plans: int, noise: DemonstrationNoise, generator: random.Random
) -> tuple[Step, ...]:
    return tuple(
        _mistake(step, generator)
        if generator.random() < _rate("misread", step, noise.misread_range, num_plans, noise.decay)
        else step
        for step in steps
    )


def _mistake(step: Step, generator: random.Random) -> Step:
    """Misread the constant, take a look-alike, or (rarely) any other operation of the kind."""
    if step.constant is not None and generator.random() < _WRONG_CONSTANT_SHARE:
        return Step(step.kind, step.name, max(1, step.constant + generator.choice((-1, 1, 2))))
    if step.kind is not Kind.ALGORITHM and generator.random() < 0.25:
        return draw_step(step.kind, generator)
    name = generator.choice(step.operation.lookalikes)
    if step.constant is not None and OPERATIONS[step.kind][name].constants:
        return Step(step.kind, name, step.constant)
    return with_constant(step.kind, name, generator)


def _snippet(step: Step, num_plans: int, noise: DemonstrationNoise, generator: random.Random) -> str:
    code, slips = step.operation.code, step.operation.slips
    if generator.random() < _rate("slip", step, noise.slip_range, num_plans, noise.decay):
        code = slips[0] if len(slips) == 1 or generator.random() < 0.8 else slips[1]
    return step.fill(code)


def _layout(last: Step, style: Style, noise: DemonstrationNoise, generator: random.Random) -> str:
    """Return a wrapper that keeps the value and its form, and now and then changes the layout."""
    # Where nothing is asked for, nothing is drawn: other draws stay what they were.
    if style == "function" or not noise.layout_share or generator.random() >= noise.layout_share:
        return "{}"
    if last.operation.gives_list:
        return '"\\n".join(map(str, {}))'
    if "YES" in last.operation.code and generator.random() < 0.5:
        return "({}).title()"
    return generator.choice(('{}, ""', '"", {}'))


def _form(last: Step, style: Style, noise: DemonstrationNoise, generator: random.Random) -> str:
    """Return a wrapper that keeps the value and changes its form."""
    if last.operation.gives_list:
        return "list({})" if style == "stdin" else "tuple({})"
    if "YES" in last.operation.code:
        return "({}).title()"
    return generator.choice(("str({})", "[{}]")) if style == "function" else generator.choice(("[{}]", '"Answer:", {}'))

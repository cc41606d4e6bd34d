"""Problems by the hundred: graded, split for training and for measuring, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Literal

from microcoder.data.micro.chains import generate_chain_problems
from microcoder.data.micro.operations import (
    STYLES,
    TIERS,
    Split,
    Style,
    TemplateTask,
    Tier,
    draw_task,
    draw_template,
    split_of,
)
from microcoder.data.micro.programs import ATTEMPTS, build_problem, make_tests, reference_program, write_statement
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.types import Problem

World = Literal["operations", "chains"]
WORLDS: tuple[World, ...] = ("operations", "chains")


def generate_problems(
    *,
    split: Split,
    num_problems: int,
    seed: int = 0,
    tiers: Sequence[Tier] = TIERS,
    styles: Sequence[Style] = STYLES,
    world: World = "operations",
) -> list[Problem]:
    """Generate problems with distinct statements.

    Args:
        split: no held-out statement is ever a training statement, whatever the seeds; nor is a held-out chain of
            two or more operations ever in training or in a demonstration.
        num_problems: how many.
        seed: another seed draws other problems of the same split.
        tiers: dealt out in turn; name a tier twice to get twice as many of it.
        styles: drawn at random; name a style twice to get it twice as often.
        world: `operations` on what comes in, or `chains` of steps that a program needs the end of.

    Raises:
        DataError: the world has no more distinct statements of that kind, or an argument is not allowed.
    """
    _check(split, tiers, styles, world)
    if world == "chains":
        return generate_chain_problems(split=split, num_problems=num_problems, seed=seed, tiers=tiers, styles=styles)
    generator = random.Random(f"microcoder problems {split} {seed}")
    drawn = draw_tasks(generator, tiers=tiers, styles=styles, split=split)
    seen: set[str] = set()
    problems = []
    for index in range(num_problems):
        for _, (task, statement) in zip(range(ATTEMPTS), drawn, strict=False):
            if task.template.tier == tiers[index % len(tiers)] and statement not in seen:
                seen.add(statement)
                identifier = f"micro-{split}-{task.template.tier}-{index:06d}"
                problem = make_problem(task, statement, identifier, generator)
                # Some chains give one answer whatever comes in (modulo 5, then at least 9): nothing to ask.
                if len({test.output for test in problem.tests}) > 1:
                    break
        else:
            raise DataError(
                f"{num_problems} {split} problems of tiers {list(tiers)} and styles {list(styles)} are more than "
                f"can be found: {index} distinct ones; ask for {index} or fewer, or for more tiers and styles"
            )
        problems.append(problem)
    return problems


def draw_tasks(
    generator: random.Random, *, tiers: Sequence[Tier], styles: Sequence[Style], split: Split
) -> Iterator[tuple[TemplateTask, str]]:
    """Draw tasks of a split with their statements, without end; tiers come up at random."""
    while True:
        template = draw_template(generator.choice(tiers), generator)
        task = draw_task(template, generator.choice(styles), generator)
        statement = write_statement(task, generator)
        if split_of(task, statement) == split:
            yield task, statement


def _check(split: str, tiers: Sequence[str], styles: Sequence[str], world: str) -> None:
    for name, given, allowed in (
        ("split", (split,), ("train", "heldout")),
        ("tier", tiers, TIERS),
        ("style", styles, STYLES),
        ("world", (world,), WORLDS),
    ):
        unknown = [value for value in given if value not in allowed]
        if unknown or not given:
            what = f"unknown {name} {unknown[0]!r}" if unknown else f"no {name} given"
            raise DataError(f"{what}; allowed: {', '.join(allowed)}")


def make_problem(task: TemplateTask, statement: str, identifier: str, generator: random.Random) -> Problem:
    """Give a task its tests and its limits."""
    reference = reference_program(task)
    return build_problem(
        identifier,
        statement=statement,
        reference=reference,
        tests=make_tests(task, reference, generator),
        style=task.style,
        tier=task.template.tier,
    )

"""Inputs by a package's own generators, and its validators asked about them; all in the sandbox."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future

from microcoder.dataset.generation.answers import AT_ONCE, MOST_BYTES, MadeInput
from microcoder.dataset.generation.settings import GenerateSettings
from microcoder.errors import DataError, EvaluatorFault
from microcoder.evaluator import Execution, Invocation, Judge
from microcoder.formats.candidates import Candidate, InputProgram, InputRecipe, Origin
from microcoder.types import Program

_MEMORY_MIB = 2048
_VALID = (0, 42)
"""Exit codes of a validator that accepts: testlib's and its like, and those of the Kattis format."""


_MOST_TOO_LONG = 4
"""Outputs of one generator in one group that may be too long; the group's others are not waited for."""


def run_kit(
    judge: Judge,
    candidate: Candidate,
    settings: GenerateSettings,
    dropped: Counter[str],
    *,
    most: int,
    maker: str = "package",
) -> list[MadeInput]:
    """Return the inputs that a package's recipes make and all its validators accept.

    Args:
        judge: what runs the programs.
        candidate: with a kit.
        settings: limits.
        dropped: counts what became of the others.
        most: how many recipes are run.
        maker: who wrote the programs, for the lineage.
    """
    kit = candidate.kit
    generators = {one.name: one for one in kit.programs if one.role == "generator"}
    chosen = spread_recipes(kit.recipes, most)
    made: list[tuple[MadeInput, InputRecipe]] = []
    too_long: Counter[tuple[str, str]] = Counter()
    num_bytes = 0
    for start in range(0, len(chosen), AT_ONCE):
        piece = [one for one in chosen[start : start + AT_ONCE] if too_long[_family(one)] < _MOST_TOO_LONG]
        dropped["like those that were too long"] += len(chosen[start : start + AT_ONCE]) - len(piece)
        runs = [_start(judge, generators.get(recipe.generator), recipe, settings, dropped) for recipe in piece]
        for recipe, run in zip(piece, runs, strict=True):
            text = recipe.text
            if recipe.generator:
                text = read_output(run.result(), settings, dropped) if run is not None else ""
                too_long[_family(recipe)] += run is not None and len(run.result().stdout) > settings.max_package_bytes
            if num_bytes + len(text) > MOST_BYTES:
                # Short ones of other groups may still have room.
                too_long[_family(recipe)] = _MOST_TOO_LONG
                dropped["too much together"] += 1
            elif text.strip():
                num_bytes += len(text)
                kind = f"{maker}/{recipe.generator or 'by hand'}"
                made.append((MadeInput(text, Origin(kind=kind, arguments=recipe.arguments), recipe.group), recipe))
    return find_valid(judge, [one for one in kit.programs if one.role == "validator"], made, settings, dropped)


def _family(recipe: InputRecipe) -> tuple[str, str]:
    """Return what recipes whose outputs are about as long have in common."""
    return recipe.group, recipe.generator


def spread_recipes(recipes: Sequence[InputRecipe], most: int) -> list[InputRecipe]:
    """Return so many recipes: of each group in turn, the last one, which is the largest, and the first one by turns."""
    by_group: dict[str, list[InputRecipe]] = {}
    for recipe in recipes:
        by_group.setdefault(recipe.group, []).append(recipe)
    chosen: list[InputRecipe] = []
    place = -1
    while len(chosen) < most and any(by_group.values()):
        chosen += [group.pop(place) for group in by_group.values() if group]
        place = -1 - place
    return chosen[:most]


def _start(
    judge: Judge,
    generator: InputProgram | None,
    recipe: InputRecipe,
    settings: GenerateSettings,
    dropped: Counter[str],
) -> Future[Execution] | None:
    if not recipe.generator:
        return None
    if generator is None:
        dropped["generator not read"] += 1
        return None
    try:
        return judge.submit_run(
            Invocation(
                program=Program(generator.code, generator.language),
                arguments=recipe.arguments,
                cpu_seconds=settings.generator_seconds,
                memory_limit_mib=_MEMORY_MIB,
            )
        )
    except (DataError, EvaluatorFault):
        dropped["generator cannot be run here"] += 1
        return None


def read_output(run: Execution, settings: GenerateSettings, dropped: Counter[str]) -> str:
    """Return what a generator wrote; empty, and counted, where that is no input."""
    if run.failure is not None:
        dropped[f"generator: {run.failure.value}"] += 1
        return ""
    if len(run.stdout) > settings.max_package_bytes:
        dropped["too long"] += 1
        return ""
    try:
        return run.stdout.decode("utf-8")
    except UnicodeDecodeError:
        dropped["generator wrote no text"] += 1
        return ""


def find_valid(
    judge: Judge,
    validators: Sequence[InputProgram],
    made: Sequence[tuple[MadeInput, InputRecipe]],
    settings: GenerateSettings,
    dropped: Counter[str],
) -> list[MadeInput]:
    """Return the inputs that every validator accepts; a validator that cannot be run is counted and not asked."""
    asked = []
    for validator in validators:
        for number, (one, recipe) in enumerate(made):
            try:
                run = judge.submit_run(
                    Invocation(
                        program=Program(validator.code, validator.language),
                        stdin=one.text.encode(),
                        arguments=(*validator.arguments, *recipe.flags),
                        cpu_seconds=settings.generator_seconds,
                        memory_limit_mib=_MEMORY_MIB,
                    )
                )
            except (DataError, EvaluatorFault):
                dropped["validator cannot be run here"] += 1
                continue
            asked.append((number, run))
    refused = set()
    for number, run in asked:
        done = run.result()
        if done.exit_code not in _VALID:
            refused.add(number)
    dropped["refused by a validator"] += len(refused)
    return [one for number, (one, _) in enumerate(made) if number not in refused]

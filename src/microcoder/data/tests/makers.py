"""Inputs: by a package's own generators, mutated from known ones, by generators that a model writes.

All programs run in the sandbox; what a generator draws hangs on the seed that it is called with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from itertools import cycle

from microcoder.data.completions import BadReply, Endpoint
from microcoder.data.formats.candidates import Candidate, InputKit, InputProgram, InputRecipe, Origin
from microcoder.data.inputs.mutating import MUTATIONS, mutate
from microcoder.data.tests.answers import (
    AT_ONCE,
    MOST_BYTES,
    MOST_MADE,
    MOST_PACKAGE_BYTES,
    PACKAGE_INPUTS,
    MadeInput,
)
from microcoder.data.tests.making import Understanding, digest_input, seed_of
from microcoder.data.tests.validators import PROGRAM_MIB, PROGRAM_SECONDS, describe_form, describe_problem
from microcoder.judge import Execution, Invocation, Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Program

_MOST_TOO_LONG = 4
"""Outputs of one generator in one group that may be too long; the group's others are not waited for."""


def run_kit(
    judge: Judge, kit: InputKit, dropped: Counter[str], *, most: int, maker: str = "package"
) -> list[MadeInput]:
    """Return the inputs that a package's recipes make."""
    generators = {one.name: one for one in kit.programs if one.role == "generator"}
    chosen = spread_recipes(kit.recipes, most)
    made: list[MadeInput] = []
    too_long: Counter[tuple[str, str]] = Counter()
    num_bytes = 0
    for start in range(0, len(chosen), AT_ONCE):
        piece = [one for one in chosen[start : start + AT_ONCE] if too_long[_family(one)] < _MOST_TOO_LONG]
        dropped["like those that were too long"] += len(chosen[start : start + AT_ONCE]) - len(piece)
        runs = [_start(judge, generators.get(recipe.generator), recipe, dropped) for recipe in piece]
        for recipe, run in zip(piece, runs, strict=True):
            text = recipe.text
            if recipe.generator:
                text = read_output(run.result(), dropped) if run is not None else ""
                too_long[_family(recipe)] += run is not None and len(run.result().stdout) > MOST_PACKAGE_BYTES
            if num_bytes + len(text) > MOST_BYTES:
                # Short ones of other groups may still have room.
                too_long[_family(recipe)] = _MOST_TOO_LONG
                dropped["too much together"] += 1
            elif text.strip():
                num_bytes += len(text)
                kind = f"{maker}/{recipe.generator or 'by hand'}"
                made.append(MadeInput(text, Origin(kind=kind, arguments=recipe.arguments), recipe.group))
    return made


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
                cpu_seconds=PROGRAM_SECONDS,
                memory_limit_mib=PROGRAM_MIB,
            )
        )
    except (DataError, EvaluatorFault):
        dropped["generator cannot be run here"] += 1
        return None


def read_output(run: Execution, dropped: Counter[str]) -> str:
    """Return the input that a generator wrote; empty, and counted, where it is unusable."""
    if run.failure is not None:
        dropped[f"generator: {run.failure.value}"] += 1
        return ""
    if len(run.stdout) > MOST_PACKAGE_BYTES:
        dropped["too long"] += 1
        return ""
    try:
        return run.stdout.decode("utf-8")
    except UnicodeDecodeError:
        dropped["generator wrote no text"] += 1
        return ""


def mutate_known(
    candidate: Candidate, understanding: Understanding, dropped: Counter[str], *, seed: int, is_checked: bool
) -> list[MadeInput]:
    """Return inputs mutated from known ones, by every mutation in turn, each once; `dropped` counts tries in vain.

    `is_checked`: a validator is asked about them, so every second one need not meet what known inputs have in common.
    """
    model, known = understanding.model, understanding.known
    seen = {text.strip() for text, _ in known}
    made: list[MadeInput] = []
    for number, name in zip(range(2 * MOST_MADE), cycle(MUTATIONS)):
        kind = f"mutated/{name}"
        own = seed_of(seed, candidate.id, kind, number)
        parent, parent_values = known[own % len(known)]
        is_free = is_checked and number // len(MUTATIONS) % 2 == 1
        values = mutate(model, parent_values, name, seed=own, is_checked=is_free)
        text = "" if values is None else understanding.write(values)
        if values is None:
            dropped["not met the model of inputs"] += 1
        elif text.strip() in seen:
            dropped["made twice"] += 1
        else:
            seen.add(text.strip())
            made.append(MadeInput(text, Origin(kind=kind, seed=own, parent=digest_input(parent)), "generated"))
        if len(made) == MOST_MADE:
            break
    return made


_SCHEMA = {
    "type": "object",
    "properties": {"generators": {"type": "array", "items": {"type": "string"}}},
    "required": ["generators"],
    "additionalProperties": False,
}
_ASKED = """\
Write Python 3 programs that make test inputs for the programming problem below.

Each generator is a whole program. It takes a seed as its only argument (sys.argv[1]), makes all its random choices by
random.seed(int(seed)), and prints one valid input, {form}. Write {number} of them: small inputs, edge cases,
adversarial inputs for wrong or slow solutions, the largest inputs.

Reply with JSON: {{"generators": ["...", ...]}}

{problem}"""
_NUM_GENERATORS, _RUNS_PER_GENERATOR = 4, 6


def ask_for_inputs(
    endpoint: Endpoint, judge: Judge, candidate: Candidate, dropped: Counter[str], *, seed: int
) -> list[MadeInput]:
    """Return the inputs of generators that a model writes."""
    text = _ASKED.format(form=describe_form(candidate), number=_NUM_GENERATORS, problem=describe_problem(candidate))
    try:
        reply = endpoint.ask([{"role": "user", "content": text}], _SCHEMA)
    except BadReply:
        dropped["model: no usable reply"] += 1
        return []
    programs = tuple(
        InputProgram(name=f"generator {number}", role="generator", code=code, language="python")
        for number, code in enumerate(reply["generators"][:_NUM_GENERATORS])
        if isinstance(code, str)
    )
    recipes = tuple(
        InputRecipe(group="generated", generator=program.name, arguments=(str(seed + run + 1),))
        for program in programs
        for run in range(_RUNS_PER_GENERATOR)
    )
    return run_kit(judge, InputKit(programs=programs, recipes=recipes), dropped, most=PACKAGE_INPUTS, maker="model")

"""Makes inputs by generators: a package's own, or those that a model writes.

A generator's random choices depend on the seed that it is called with.
"""

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future

from microcoder.data.completions import BadReply, Endpoint
from microcoder.data.formats.candidates import (
    Candidate,
    InputKit,
    InputProgram,
    InputRecipe,
    Origin,
)
from microcoder.data.testgen.made import MadeInput, start
from microcoder.data.testgen.settings import (
    AT_ONCE,
    LONGEST_BYTES,
    MOST_BYTES,
    PACKAGE_INPUTS,
)
from microcoder.data.testgen.validators import describe
from microcoder.judge import Execution, Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.files import cut_pieces, take_in_turn
from microcoder.judge.core.types import Program, Record

_NUM_GENERATORS = 4
"""Generators that a model is asked for."""
_RUNS_PER_GENERATOR = 6
"""Inputs that each of them makes, with a seed each."""


def run_kit(
    judge: Judge,
    kit: InputKit,
    dropped: Counter[str],
    *,
    most: int,
    maker: str = "package",
) -> list[MadeInput]:
    """Return the inputs of up to `most` of a package's recipes.

    `dropped` counts failures by reason.
    """
    generators = {}
    for program in kit.programs:
        if program.role == "generator":
            generators[program.name] = program
    made: list[MadeInput] = []
    num_bytes = 0
    # A few at a time: their outputs are whole in memory.
    for piece in cut_pieces(spread_recipes(kit.recipes, most), AT_ONCE):
        runs = []
        for recipe in piece:
            generator = generators.get(recipe.generator)
            runs.append(_start_recipe(judge, generator, recipe, dropped))
        for recipe, run in zip(piece, runs, strict=True):
            text = _text_of(recipe, run, dropped)
            # A smaller one after it may still fit.
            if num_bytes + len(text) > MOST_BYTES:
                dropped["too much together"] += 1
            elif text.strip():
                num_bytes += len(text)
                kind = f"{maker}/{recipe.generator or 'by hand'}"
                origin = Origin(kind=kind, arguments=recipe.arguments)
                made.append(MadeInput(text, origin, recipe.group))
    return made


def _start_recipe(
    judge: Judge,
    generator: InputProgram | None,
    recipe: InputRecipe,
    dropped: Counter[str],
) -> Future[Execution] | None:
    """Start a recipe's generator; None if it has no generator that can be run."""
    if not recipe.generator:
        return None
    if generator is None:
        dropped["generator not read"] += 1
        return None
    program = Program(generator.code, generator.language)
    # Its language may not be installed here.
    try:
        return start(judge, program, arguments=recipe.arguments)
    except (DataError, EvaluatorFault):
        dropped["generator cannot be run here"] += 1
        return None


def _text_of(
    recipe: InputRecipe,
    run: Future[Execution] | None,
    dropped: Counter[str],
) -> str:
    """Return the input that a recipe makes; empty if its generator made none."""
    if not recipe.generator:
        return recipe.text
    if run is None:
        return ""
    return read_output(run.result(), dropped)


def spread_recipes(
    recipes: Sequence[InputRecipe],
    most: int,
) -> list[InputRecipe]:
    """Return up to `most` recipes, taken from the groups in turn.

    In each group they are taken alternately from its end, where the largest are, and from its
    start.
    """
    by_group: dict[str, list[InputRecipe]] = {}
    for recipe in recipes:
        by_group.setdefault(recipe.group, []).append(recipe)
    groups = list(map(_from_both_ends, by_group.values()))
    return take_in_turn(groups)[:most]


def _from_both_ends(recipes: Sequence[InputRecipe]) -> list[InputRecipe]:
    """Return the recipes alternately from both ends: the last, the first, the last but one, and
    so on."""
    ordered = []
    for number in range(len(recipes)):
        # Large inputs are made last, as a rule, and the simplest ones first.
        from_start, is_odd = divmod(number, 2)
        place = from_start if is_odd else -1 - from_start
        ordered.append(recipes[place])
    return ordered


def read_output(run: Execution, dropped: Counter[str]) -> str:
    """Return the input that a generator wrote; empty, counted in `dropped`, if it is unusable."""
    if run.failure is not None:
        dropped[f"generator: {run.failure.value}"] += 1
        return ""
    if len(run.stdout) > LONGEST_BYTES:
        dropped["too long"] += 1
        return ""
    try:
        return run.stdout.decode("utf-8")
    except UnicodeDecodeError:
        dropped["generator wrote no text"] += 1
        return ""


_ASKED = """\
Write Python 3 programs that make test inputs for the programming problem below.

Each generator is a whole program. It takes a seed as its only argument (sys.argv[1]), \
makes all its random choices by
random.seed(int(seed)), and prints one valid input, {form}. \
Write {number} of them: small inputs, edge cases,
adversarial inputs for wrong or slow solutions, the largest inputs.

Reply with JSON: {{"generators": ["...", ...]}}

{problem}"""


class WrittenGenerators(Record):
    """A model's reply that holds the sources of input generators, Python programs."""

    generators: tuple[str, ...]


def ask_for_inputs(
    endpoint: Endpoint,
    judge: Judge,
    candidate: Candidate,
    dropped: Counter[str],
) -> list[MadeInput]:
    """Return the inputs of generators that a model writes.

    Empty, counted in `dropped`, without a usable reply.
    """
    prompt = _ASKED.format(number=_NUM_GENERATORS, **describe(candidate))
    try:
        reply = endpoint.ask(prompt, WrittenGenerators)
    except BadReply:
        dropped["model: no usable reply"] += 1
        return []
    kit = _kit_of(reply)
    return run_kit(
        judge,
        kit,
        dropped,
        most=PACKAGE_INPUTS,
        maker="model",
    )


def _kit_of(reply: WrittenGenerators) -> InputKit:
    """Return a model's generators, each with a recipe for some seeds."""
    programs = []
    recipes = []
    # A model may write more than it was asked for.
    for number, code in enumerate(reply.generators[:_NUM_GENERATORS]):
        name = f"generator {number}"
        program = InputProgram(
            name=name,
            role="generator",
            code=code,
            language="python",
        )
        programs.append(program)
        for seed in range(1, _RUNS_PER_GENERATOR + 1):
            recipe = InputRecipe(
                group="generated",
                generator=name,
                arguments=(str(seed),),
            )
            recipes.append(recipe)
    return InputKit(
        programs=tuple(programs),
        recipes=tuple(recipes),
    )

"""A package's input validators, asked about inputs that are made here.

Validators are called with the flags of a group of tests, and an input may be valid in one group and not in another: it
is valid here by the flags of any. The groups that the most known inputs are valid in are the widest, and asked first.

Inputs by a package's own generators, and its validators asked about them; all in the sandbox.

Inputs mutated from known ones, inside of what is known of them.

Generators and a validator that a model writes, as programs; they run in the sandbox, and its replies are cached.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
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
from microcoder.judge import Execution, Invocation, Judge
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.types import Program

_MOST_TRIED = 8
"""Known inputs that the validators are tried on."""
_REFUSED = "refused by a validator"


@dataclass(slots=True)
class Validators:
    """The problem's validators of inputs; where there are no validators, all are."""

    judge: Judge
    kit: InputKit
    known: Sequence[str]
    """Inputs that came with the problem."""
    dropped: Counter[str]
    """Counts what was refused, and what could not be run."""
    _ways: list[tuple[str, ...]] | None = field(default=None, init=False)

    def accept(self, made: Sequence[MadeInput]) -> list[MadeInput]:
        """Return the inputs that all validators accept by the flags of one group, in their order."""
        ways = self._find_ways() if made else []
        if not ways:
            return list(made)
        left = list(made)
        for flags in ways:
            accepted = {one.text for one in self._ask(left, flags)}
            left = [one for one in left if one.text not in accepted]
        self.dropped[_REFUSED] += len(left)
        refused = {one.text for one in left}
        return [one for one in made if one.text not in refused]

    def _find_ways(self) -> list[tuple[str, ...]]:
        """Return the flags to call the validators with, those of the widest group first; none: do not ask them."""
        if self._ways is None:
            self._ways = []
            if any(one.role == "validator" for one in self.kit.programs):
                recipes = dict.fromkeys(recipe.flags for recipe in reversed(self.kit.recipes))
                self._ways = self._widest([*dict.fromkeys([*reversed(self.kit.flags), *recipes])] or [()])
        return self._ways

    def _widest(self, ways: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
        if not self.known:
            return ways
        step = max(1, len(self.known) // _MOST_TRIED)
        tried = [MadeInput(text, Origin(kind="given")) for text in sorted(self.known, key=len)[::-step][:_MOST_TRIED]]
        accepted = {flags: len(self._ask(tried, flags)) for flags in ways}
        if not any(accepted.values()):
            # They are called in a way that is not known here.
            self.dropped["validators not asked, since they refuse what came with the problem: inputs"] += len(tried)
            return []
        return sorted(ways, key=lambda flags: -accepted[flags])

    def _ask(self, made: Sequence[MadeInput], flags: tuple[str, ...]) -> list[MadeInput]:
        programs = [one for one in self.kit.programs if one.role == "validator"]
        recipe = InputRecipe(group="", flags=flags)
        found: Counter[str] = Counter()
        valid = find_valid(self.judge, programs, [(one, recipe) for one in made], found) if made else []
        # What one group refuses may be valid in another one.
        self.dropped.update({why: count for why, count in found.items() if why != _REFUSED})
        return valid


_GENERATOR_SECONDS = 20.0
"""CPU seconds of a generator or validator (our choice)."""
_MEMORY_MIB = 2048
_VALID = (0, 42)
"""Exit codes of a validator that accepts: testlib's and its like, and those of the Kattis format."""


_MOST_TOO_LONG = 4
"""Outputs of one generator in one group that may be too long; the group's others are not waited for."""


def run_kit(
    judge: Judge,
    candidate: Candidate,
    dropped: Counter[str],
    *,
    most: int,
    maker: str = "package",
) -> list[MadeInput]:
    """Return the inputs that a package's recipes make and all its validators accept."""
    kit = candidate.kit
    generators = {one.name: one for one in kit.programs if one.role == "generator"}
    chosen = spread_recipes(kit.recipes, most)
    made: list[tuple[MadeInput, InputRecipe]] = []
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
                made.append((MadeInput(text, Origin(kind=kind, arguments=recipe.arguments), recipe.group), recipe))
    return find_valid(judge, [one for one in kit.programs if one.role == "validator"], made, dropped)


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
                cpu_seconds=_GENERATOR_SECONDS,
                memory_limit_mib=_MEMORY_MIB,
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


def find_valid(
    judge: Judge,
    validators: Sequence[InputProgram],
    made: Sequence[tuple[MadeInput, InputRecipe]],
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
                        cpu_seconds=_GENERATOR_SECONDS,
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


def mutate_known(
    candidate: Candidate, understanding: Understanding, dropped: Counter[str], *, seed: int
) -> list[MadeInput]:
    """Return inputs mutated from known ones, by every mutation in turn, each once; `dropped` counts tries in vain."""
    model, known = understanding.model, understanding.known
    seen = {text.strip() for text, _ in known}
    made: list[MadeInput] = []
    for number, name in zip(range(2 * MOST_MADE), cycle(MUTATIONS)):
        kind = f"mutated/{name}"
        own = seed_of(seed, candidate.id, kind, number)
        parent, parent_values = known[own % len(known)]
        values = mutate(model, parent_values, name, seed=own)
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
    "properties": {
        "validator": {"type": "string"},
        "generators": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["validator", "generators"],
    "additionalProperties": False,
}
_ASKED = """\
Write Python 3 programs that make test inputs for the programming problem below.

Each generator is a whole program. It takes a seed as its only argument (sys.argv[1]), makes all its random choices by
random.seed(int(seed)), and prints one valid input, {form}. Write {number} of them: small inputs, edge cases,
adversarial inputs for wrong or slow solutions, the largest inputs.
The validator is a whole program. It reads one input from stdin and exits with 0 if the problem allows it, else with 1.

Reply with JSON: {{"validator": "...", "generators": ["...", ...]}}

Problem:

{statement}

Known inputs, one after the other:

{known}
"""
_NUM_GENERATORS, _RUNS_PER_GENERATOR = 4, 6
_FORMS = {True: "one JSON value a line, an argument of the function each", False: "as the program reads it from stdin"}


def ask_for_inputs(
    endpoint: Endpoint, judge: Judge, candidate: Candidate, dropped: Counter[str], *, seed: int
) -> list[MadeInput]:
    """Return the inputs of a model's generators that its validator accepts, if it accepts every known input too."""
    known = [test.input for test in candidate.tests if len(test.input) <= 2000][:5]
    text = _ASKED.format(
        form=_FORMS[candidate.fn_name is not None],
        number=_NUM_GENERATORS,
        statement=candidate.statement,
        known="\n---\n".join(known),
    )
    try:
        reply = endpoint.ask([{"role": "user", "content": text}], _SCHEMA)
    except BadReply:
        dropped["model: no usable reply"] += 1
        return []
    codes = [one for one in reply["generators"] if isinstance(one, str)][:_NUM_GENERATORS]
    validator = InputProgram(name="validator", role="validator", code=str(reply["validator"]), language="python")
    right = [(MadeInput(one, Origin(kind="given")), InputRecipe(group="")) for one in known]
    if len(find_valid(judge, [validator], right, Counter())) < len(right):
        # A validator that refuses what is known to be valid misread the problem, and so may its generators.
        dropped["model: its validator refuses a known input"] += 1
        return []
    programs = [
        InputProgram(name=f"generator {number}", role="generator", code=code, language="python")
        for number, code in enumerate(codes)
    ]
    recipes = [
        InputRecipe(group="generated", generator=program.name, arguments=(str(seed + run + 1),))
        for program in programs
        for run in range(_RUNS_PER_GENERATOR)
    ]
    kit = InputKit(programs=(*programs, validator), recipes=tuple(recipes))
    with_kit = candidate.model_copy(update={"kit": kit})
    return run_kit(judge, with_kit, dropped, most=PACKAGE_INPUTS, maker="model")

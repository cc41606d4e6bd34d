"""Generators and a validator that a model writes, as programs; they run in the sandbox, and its replies are cached."""

from __future__ import annotations

from collections import Counter

from microcoder.completions import BadReply, Endpoint
from microcoder.dataset.generation.answers import MadeInput
from microcoder.dataset.generation.packages import find_valid, run_kit
from microcoder.dataset.generation.settings import GenerateSettings
from microcoder.evaluator import Judge
from microcoder.formats.candidates import Candidate, InputKit, InputProgram, InputRecipe, Origin

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
_FORMS = {True: "one JSON value a line, an argument of the function each", False: "as the program reads it from stdin"}


def ask_for_inputs(
    endpoint: Endpoint, judge: Judge, candidate: Candidate, settings: GenerateSettings, dropped: Counter[str]
) -> list[MadeInput]:
    """Return the inputs of a model's generators that its validator accepts, if it accepts every known input too.

    Args:
        endpoint: the model.
        judge: what runs its programs.
        candidate: the problem.
        settings: how many programs and runs.
        dropped: counts what became of the others.

    Raises:
        ConfigError: the endpoint gave no answer at all.
    """
    known = [test.input for test in candidate.tests if len(test.input) <= 2000][:5]
    text = _ASKED.format(
        form=_FORMS[candidate.fn_name is not None],
        number=settings.max_generators,
        statement=candidate.statement,
        known="\n---\n".join(known),
    )
    try:
        reply = endpoint.ask([{"role": "user", "content": text}], _SCHEMA)
    except BadReply:
        dropped["model: no usable reply"] += 1
        return []
    codes = [one for one in reply["generators"] if isinstance(one, str)][: settings.max_generators]
    validator = InputProgram(name="validator", role="validator", code=str(reply["validator"]), language="python")
    right = [(MadeInput(one, Origin(kind="given")), InputRecipe(group="")) for one in known]
    if len(find_valid(judge, [validator], right, settings, Counter())) < len(right):
        # A validator that refuses what is known to be valid misread the problem, and so may its generators.
        dropped["model: its validator refuses a known input"] += 1
        return []
    programs = [
        InputProgram(name=f"generator {number}", role="generator", code=code, language="python")
        for number, code in enumerate(codes)
    ]
    recipes = [
        InputRecipe(group="generated", generator=program.name, arguments=(str(settings.seed + run + 1),))
        for program in programs
        for run in range(settings.runs_per_generator)
    ]
    kit = InputKit(programs=(*programs, validator), recipes=tuple(recipes))
    with_kit = candidate.model_copy(update={"kit": kit})
    return run_kit(judge, with_kit, settings, dropped, most=settings.max_package_inputs, maker="model")

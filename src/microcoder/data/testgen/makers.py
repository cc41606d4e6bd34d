"""Makes inputs: by a package's own generators, by mutation of known ones, by generators that a model writes.

All programs run in the sandbox; a generator's random choices depend on the seed that it is called with.

The certificate of a made input says which validators accept it.

`package`    all validators of the package accept it, by the flags of one group of its tests, and refuse known ones that
             were spoilt
`model`      two validators accept it that a model wrote apart from each other, and that accept every known input and
             refuse spoilt ones, too
`unchecked`  no validator was run
"""

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from typing import Any

from microcoder.data.clean.bounds import find_numbers
from microcoder.data.completions import BadReply, Endpoint
from microcoder.data.formats.candidates import (
    Candidate,
    InputKit,
    InputProgram,
    InputRecipe,
    Origin,
)
from microcoder.data.inputs.layouts import Values, read_texts, split_repeated
from microcoder.data.inputs.models import InputModel, learn
from microcoder.data.inputs.mutating import MUTATIONS, find_repeats, mutate
from microcoder.data.testgen.answers import (
    AT_ONCE,
    MOST_BYTES,
    MOST_MADE,
    MOST_PACKAGE_BYTES,
    PACKAGE_INPUTS,
    MadeInput,
    start,
)
from microcoder.judge import Execution, Judge
from microcoder.judge.core.digits import dump_json, parse_json
from microcoder.judge.core.errors import DataError, EvaluatorFault
from microcoder.judge.core.files import cut_pieces, take_in_turn
from microcoder.judge.core.types import Program, Record

PROGRAM_SECONDS, PROGRAM_MIB = 20.0, 2048
"""CPU seconds and memory of a generator or validator (our choices)."""
_VALID = (0, 42)
"""Exit codes of a validator that accepts: testlib's and its like, and those of the Kattis format."""
_MOST_TRIED = 8
"""Known inputs that validators are tried on."""
_NUM_BY_MODEL, _MOST_BY_MODEL = 2, 4
"""Validators of a model that must accept an input; how many it is asked for at most, until so many are reliable."""
_TEMPERATURE = 0.8
"""Sampling temperature: a model is to write another validator each time."""
_HUGE = "9" * 40
_ALL_DIFFER = re.compile(
    r"\b(?:distinct|unique|pairwise|all different|no two|permutation)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Validators:
    """Programs that must all accept an input."""

    judge: Judge
    programs: tuple[Program, ...]
    certificate: str
    """Certificate of the inputs that they accept."""
    ways: tuple[tuple[str, ...], ...] = ((),)
    """Arguments to call them with, one tuple per group of tests; the one that accepts most known inputs first."""

    def accept(self, made: Sequence[MadeInput], dropped: Counter[str]) -> list[MadeInput]:
        """Return the inputs that all programs accept in one of `ways`, certified, in order; `dropped` counts others."""
        valid: set[int] = set()
        for flags in self.ways:
            left = [number for number in range(len(made)) if number not in valid]
            valid |= {
                left[place] for place in self.ask([made[number].text for number in left], flags)
            }
        dropped["refused by a validator"] += len(made) - len(valid)
        return [certify(made[number], self.certificate) for number in sorted(valid)]

    def ask(self, texts: Sequence[str], flags: tuple[str, ...] = ()) -> set[int]:
        """Return the indices of the texts that all programs accept with these arguments."""
        valid = set(range(len(texts)))
        for program in self.programs:
            runs = {
                number: _start_program(self.judge, program, stdin=texts[number], arguments=flags)
                for number in sorted(valid)
            }
            valid = {number for number, run in runs.items() if run.result().exit_code in _VALID}
        return valid


_start_program = partial(start, seconds=PROGRAM_SECONDS, memory_mib=PROGRAM_MIB)


def certify(made: MadeInput, certificate: str) -> MadeInput:
    """Return an input with its certificate."""
    return made._replace(origin=made.origin.model_copy(update={"certificate": certificate}))


def read_validators(
    judge: Judge, kit: InputKit, known: Sequence[str], dropped: Counter[str]
) -> Validators | None:
    """Return a package's own validators; None if there are none or, counted in `dropped`, if they do not work.

    Their `ways` are ordered by how many known inputs are accepted, since it is not always stated which group of tests
    flags belong to.
    """
    programs = tuple(
        Program(one.code, one.language) for one in kit.programs if one.role == "validator"
    )
    if not programs:
        return None
    found = Validators(judge, programs, "package")
    # What is asked of the samples may be next to nothing.
    recipes = dict.fromkeys(
        one.flags for one in reversed(kit.recipes) if not one.group.startswith("sample")
    )
    ways = [*dict.fromkeys([*reversed(kit.flags), *recipes])] or [()]
    step = max(1, len(known) // _MOST_TRIED)
    tried = sorted(known, key=len)[::-step][:_MOST_TRIED] or [""]
    try:
        accepted = {flags: len(found.ask(tried, flags)) for flags in ways}
    except (DataError, EvaluatorFault):
        dropped["validators cannot be run here"] += 1
        return None
    if known and not any(accepted.values()):
        # They are called in a way that is not known here.
        dropped["validators refuse what came with the problem"] += 1
        return None
    ways.sort(key=lambda flags: -accepted[flags])
    if known and found.ask(spoil(tried[::-1]), ways[0]):
        dropped["validators accept a spoilt input"] += 1
        return None
    return replace(found, ways=tuple(ways))


_VALIDATOR_ASKED = """\
Write a Python 3 program that checks test inputs for the programming problem below. It reads one input from stdin,
{form}. It exits with 0 if the statement allows that input, else with 1: it checks every number of lines and of tokens,
every bound, every letter, whatever else the statement promises (distinct, sorted, connected, a tree, ...), and that
nothing follows.

Reply with JSON: {{"validator": "..."}}

{problem}"""


class WrittenValidator(Record):
    """A model's reply that holds the source of an input validator, a Python program."""

    validator: str


def write_validators(
    endpoint: Endpoint, judge: Judge, candidate: Candidate, dropped: Counter[str]
) -> Validators | None:
    """Return validators that a model wrote; None, counted in `dropped`, if too few prove reliable."""
    known = [test.input for test in candidate.tests]
    spoilt = spoil(known)
    asked = _VALIDATOR_ASKED.format(**describe(candidate))
    found: list[Program] = []
    for number in range(_MOST_BY_MODEL if known else 0):
        try:
            reply = endpoint.ask(asked, WrittenValidator, seed=number + 1, temperature=_TEMPERATURE)
        except BadReply:
            dropped["model: no usable reply"] += 1
            continue
        program = Program(reply.validator)
        one = Validators(judge, (program,), "model")
        if program in found:
            dropped["model: wrote a validator twice"] += 1
        elif len(one.ask(known)) < len(known):
            dropped["model: its validator refuses a known input"] += 1
        elif one.ask(spoilt):
            dropped["model: its validator accepts a spoilt input"] += 1
        else:
            found.append(program)
        if len(found) == _NUM_BY_MODEL:
            return Validators(judge, tuple(found), "model")
    dropped["model: too few validators that can be relied on"] += 1
    return None


def spoil(known: Sequence[str]) -> list[str]:
    """Return inputs that no problem allows, made from known ones: cut short, with something after them, or with a word
    or a huge number where all known ones have a small number; empty without known ones.
    """
    if not known:
        return []
    first = known[0]
    tokens = list(re.finditer(r"\S+", first))
    lines = first.rstrip("\n").split("\n")
    found = ["", f"{first.rstrip()}\nxq zz!\n", "".join(f"{line}\n" for line in lines[:-1])]
    if not tokens:
        return list(dict.fromkeys(found))
    found.append(first[: tokens[-1].start()].rstrip() + "\n")
    of_all = zip(*(re.findall(r"\S+", text) for text in known), strict=False)
    place = next(
        (
            at
            for at, seen in enumerate(of_all)
            if all(re.fullmatch(r"-?\d{1,30}", one) for one in seen)
        ),
        None,
    )
    if place is not None:
        token = tokens[place]
        found += [
            first[: token.start()] + other + first[token.end() :]
            for other in ("xq", _HUGE, f"-{_HUGE}")
        ]
    return [one for one in dict.fromkeys(found) if one not in known]


def describe(candidate: Candidate) -> dict[str, str]:
    """Return what a prompt needs of a problem: `form`, how an input is written, and `problem`, with known inputs."""
    is_call = candidate.fn_name is not None
    form = (
        "one JSON value a line, an argument of the function each"
        if is_call
        else "as a solution reads it from stdin"
    )
    known = "\n---\n".join([test.input for test in candidate.tests if len(test.input) <= 2000][:5])
    said = f"Problem:\n\n{candidate.statement}\n\nKnown inputs, one after the other:\n\n{known}\n"
    return {"form": form, "problem": said}


_MOST_KNOWN = 30
"""Known inputs that are learnt from."""
_MOST_KNOWN_BYTES = 1 << 16
_MOST_READ = 3
"""Accepted programs whose constants are used."""
_ABSURD_NUMBER, _ABSURD_LENGTH = 10**18, 1 << 21
_STRING = re.compile(r"""[\"']([^\"'\\\s]{1,20})[\"']""")


def digest_input(text: str) -> str:
    """Return a short digest of an input, by which `Origin.parent` names it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Understanding:
    """Layouts and bounds inferred from a problem's inputs."""

    model: InputModel
    known: tuple[tuple[str, Values], ...]
    """Known inputs: text and values."""
    write: Callable[[Values], str]
    constants: tuple[int | str, ...] = ()
    """Values that mutations write into inputs (`widen`)."""


def understand(candidate: Candidate, *, is_validated: bool) -> Understanding | str:
    """Return the layout and bounds of a problem's inputs, or the reason why they are unknown.

    Where validators decide, a list may repeat an item: most refuse that where it is forbidden. Of rows, such as the
    ends of an edge, they check less than statements say (240 packages with validators).
    """
    tests = [test for test in candidate.tests if len(test.input) <= _MOST_KNOWN_BYTES][:_MOST_KNOWN]
    if not tests:
        return "no known input"
    if candidate.call is not None and candidate.call.style == "design":
        return "a design class"
    texts = [test.input for test in tests]
    if candidate.fn_name is not None and candidate.harness is None:
        known = tuple(
            (text, tuple(parse_json(line) for line in text.split("\n") if line.strip()))
            for text in texts
        )
        if len({len(values) for _, values in known}) > 1:
            return "another number of arguments in some inputs"
        model = learn([values for _, values in known], may_repeat=is_validated)
        if not model.is_usable:
            return "a value of no known shape"
        return Understanding(
            model,
            known,
            lambda values: "\n".join(dump_json(v, ensure_ascii=False) for v in values),
        )
    cut = split_repeated(texts, [test.output for test in tests])
    # Cases of one line each are the rows of a table as well, and a table has several of them.
    is_cut = cut is not None and any(case.count("\n") > 1 for case in cut[0])
    for read in read_texts(cut[0] if cut and is_cut else texts, is_typed=True):
        model = learn(read.values, may_repeat=is_validated)
        layout = replace(read.layout, is_repeated=is_cut)
        known = tuple((layout.render(values), values) for values in read.values)
        is_same = is_cut or all(
            _lines(text) == _lines(given) for (text, _), given in zip(known, texts, strict=True)
        )
        if model.is_usable and is_same:
            return Understanding(model, known, layout.render)
    return "a layout of another kind, or a value of no known shape"


def widen(
    understanding: Understanding, validators: Validators, candidate: Candidate
) -> Understanding:
    """Return an understanding without bounds on the values of which validators refuse absurd ones, and with constants.

    The constants are the whole numbers in the statement and in some accepted programs, and short strings in these.
    """
    known = [values for _, values in understanding.known]
    probes: list[tuple[int, str]] = []
    for place in range(len(known[0])):
        found = ((values, absurd) for values in known if (absurd := _exaggerate(values[place])))
        values, absurd = next(found, (known[0], []))
        probes += [
            (place, understanding.write((*values[:place], one, *values[place + 1 :])))
            for one in absurd
        ]
    asked = partial(validators.ask, [text for _, text in probes])
    unchecked = {probes[number][0] for flags in validators.ways for number in asked(flags)}
    model = learn(known, may_repeat=True, open_places={place for place, _ in probes} - unchecked)
    codes = [one.code for one in candidate.solutions if one.known == "accepted"][:_MOST_READ]
    constants = [number for text in (candidate.statement, *codes) for number in find_numbers(text)]
    constants += [text for code in codes for text in _STRING.findall(code)]
    return replace(understanding, model=model, constants=tuple(dict.fromkeys(constants)))


def _exaggerate(value: Any) -> list[Any]:
    """Return absurd values in place of a number, a text, or the last item of a list of these; none for others."""
    if isinstance(value, bool) or not value:
        return []
    if isinstance(value, int | float):
        return [_ABSURD_NUMBER, -_ABSURD_NUMBER]
    if isinstance(value, str):
        return [value * (_ABSURD_LENGTH // len(value)), f"{value}~"]
    return (
        []
        if isinstance(value[-1], list)
        else [[*value[:-1], absurd] for absurd in _exaggerate(value[-1])]
    )


def _lines(text: str) -> list[int]:
    """Return the number of tokens of each line, empty lines included, since some formats use them as separators."""
    return [len(line.split()) for line in text.rstrip().split("\n")]


def run_kit(
    judge: Judge, kit: InputKit, dropped: Counter[str], *, most: int, maker: str = "package"
) -> list[MadeInput]:
    """Return the inputs of up to `most` of a package's recipes; `dropped` counts failures by reason."""
    generators = {one.name: one for one in kit.programs if one.role == "generator"}
    made: list[MadeInput] = []
    num_bytes = 0
    for piece in cut_pieces(spread_recipes(kit.recipes, most), AT_ONCE):
        runs = [
            _start(judge, generators.get(recipe.generator), recipe, dropped) for recipe in piece
        ]
        for recipe, run in zip(piece, runs, strict=True):
            text = recipe.text
            if recipe.generator:
                text = read_output(run.result(), dropped) if run is not None else ""
            if num_bytes + len(text) > MOST_BYTES:
                dropped["too much together"] += 1
            elif text.strip():
                num_bytes += len(text)
                kind = f"{maker}/{recipe.generator or 'by hand'}"
                made.append(
                    MadeInput(text, Origin(kind=kind, arguments=recipe.arguments), recipe.group)
                )
    return made


def spread_recipes(recipes: Sequence[InputRecipe], most: int) -> list[InputRecipe]:
    """Return up to `most` recipes, from groups in turn; of each alternately from its end (the largest) and start."""
    by_group: dict[str, list[InputRecipe]] = {}
    for recipe in recipes:
        by_group.setdefault(recipe.group, []).append(recipe)
    # From the ends of each group to its middle.
    places = {
        group: [n // 2 if n % 2 else -1 - n // 2 for n in range(len(some))]
        for group, some in by_group.items()
    }
    return take_in_turn(
        [[by_group[group][place] for place in order] for group, order in places.items()]
    )[:most]


def _start(
    judge: Judge, generator: InputProgram | None, recipe: InputRecipe, dropped: Counter[str]
) -> Future[Execution] | None:
    if not recipe.generator:
        return None
    if generator is None:
        dropped["generator not read"] += 1
        return None
    try:
        return _start_program(
            judge, Program(generator.code, generator.language), arguments=recipe.arguments
        )
    except (DataError, EvaluatorFault):
        dropped["generator cannot be run here"] += 1
        return None


def read_output(run: Execution, dropped: Counter[str]) -> str:
    """Return the input that a generator wrote; empty, counted in `dropped`, if it is unusable."""
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
    candidate: Candidate, understanding: Understanding, dropped: Counter[str]
) -> list[MadeInput]:
    """Return inputs mutated from known ones, by every mutation in turn, each once; `dropped` counts failed tries.

    Each has what known inputs have in common: a validator often checks less than the statement says. Where that speaks
    of distinct items, no list has equal ones that had none.
    """
    model, known = understanding.model, understanding.known
    must_differ = _ALL_DIFFER.search(candidate.statement)
    seen = {text.strip() for text, _ in known}
    made: list[MadeInput] = []
    for number, name in zip(range(2 * MOST_MADE), cycle(MUTATIONS)):
        kind = f"mutated/{name}"
        # A seed that hangs on these alone.
        own = int(digest_input(f"0/{candidate.id}/{kind}/{number}"), 16)
        parent, parent_values = known[own % len(known)]
        values = mutate(model, parent_values, name, seed=own, constants=understanding.constants)
        text = "" if values is None else understanding.write(values)
        if values is None or (must_differ and find_repeats(values) - find_repeats(parent_values)):
            dropped["not met the model of inputs"] += 1
        elif text.strip() in seen:
            dropped["made twice"] += 1
        else:
            seen.add(text.strip())
            made.append(
                MadeInput(
                    text, Origin(kind=kind, seed=own, parent=digest_input(parent)), "generated"
                )
            )
        if len(made) == MOST_MADE:
            break
    return made


_ASKED = """\
Write Python 3 programs that make test inputs for the programming problem below.

Each generator is a whole program. It takes a seed as its only argument (sys.argv[1]), makes all its random choices by
random.seed(int(seed)), and prints one valid input, {form}. Write {number} of them: small inputs, edge cases,
adversarial inputs for wrong or slow solutions, the largest inputs.

Reply with JSON: {{"generators": ["...", ...]}}

{problem}"""
_NUM_GENERATORS, _RUNS_PER_GENERATOR = 4, 6


class WrittenGenerators(Record):
    """A model's reply that holds the sources of input generators, Python programs."""

    generators: tuple[str, ...]


def ask_for_inputs(
    endpoint: Endpoint, judge: Judge, candidate: Candidate, dropped: Counter[str]
) -> list[MadeInput]:
    """Return the inputs of generators that a model writes; empty, counted in `dropped`, without a usable reply."""
    text = _ASKED.format(number=_NUM_GENERATORS, **describe(candidate))
    try:
        reply = endpoint.ask(text, WrittenGenerators)
    except BadReply:
        dropped["model: no usable reply"] += 1
        return []
    programs = tuple(
        InputProgram(name=f"generator {number}", role="generator", code=code, language="python")
        for number, code in enumerate(reply.generators[:_NUM_GENERATORS])
    )
    recipes = tuple(
        InputRecipe(group="generated", generator=program.name, arguments=(str(run + 1),))
        for program in programs
        for run in range(_RUNS_PER_GENERATOR)
    )
    return run_kit(
        judge,
        InputKit(programs=programs, recipes=recipes),
        dropped,
        most=PACKAGE_INPUTS,
        maker="model",
    )

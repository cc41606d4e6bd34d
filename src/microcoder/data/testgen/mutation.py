"""Makes inputs by mutation of known ones, by what all known inputs have in common."""

import hashlib
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any, NamedTuple

from microcoder.data.clean.bounds import find_numbers
from microcoder.data.formats.candidates import Candidate, Origin
from microcoder.data.inputs.layouts import Read, Values, read_texts, split_repeated
from microcoder.data.inputs.models import InputModel, learn
from microcoder.data.inputs.mutating import MUTATIONS, find_repeats, mutate
from microcoder.data.inputs.redrawing import blend
from microcoder.data.inputs.texts import (
    TEXT_CHANGES,
    Repeats,
    change_text,
    find_text_repeats,
)
from microcoder.data.inputs.tiny import list_tiny
from microcoder.data.testgen.made import MadeInput
from microcoder.data.testgen.settings import MOST_MADE
from microcoder.data.testgen.validators import Validators
from microcoder.judge.core.digits import dump_json, parse_json
from microcoder.judge.core.types import TestCase

_MOST_KNOWN = 30
"""Known inputs that are learnt from."""
_MOST_KNOWN_BYTES = 1 << 16
"""Length of a known input that is learnt from."""
_MOST_CHANGED_BYTES = 1 << 12
"""Length of a known input whose text is changed."""
_MOST_ANSWERS = 8
"""Different answers of a problem from which on one says little about an input."""
_MOST_WAYS = 24
"""Ways between inputs with different answers."""
_MOST_STEPS = 12
"""Steps of such a way."""
_SEED_BITS = 40
"""Place of a bit of a seed that decides nothing else."""
_MOST_READ = 3
"""Accepted programs whose constants are used."""
_ABSURD_NUMBER = 10**18
"""A number that a validator refuses if it checks any bound."""
_ABSURD_LENGTH = 1 << 21
"""Length of a text of which the same holds."""
_STRING = re.compile(r"""[\"']([^\"'\\\s]{1,20})[\"']""")
"""A short string in a program."""
_PHRASE = re.compile(r"""[\"']([^\"'\\\n%{}]{1,40})[\"']""")
"""The same, of several words too."""
_ALL_DIFFER = re.compile(
    r"\b(?:distinct|unique|pairwise|all different|no two|permutation)\b",
    re.IGNORECASE,
)
"""Words by which statements say that items are distinct."""


def digest_input(text: str) -> str:
    """Return a short digest of an input, which `Origin.parent` uses as its name."""
    encoded = text.encode("utf-8", "surrogatepass")
    return hashlib.sha256(encoded).hexdigest()[:12]


class KnownInput(NamedTuple):
    """An input that came with a problem, as text and as values."""

    text: str
    values: Values


@dataclass(frozen=True, slots=True)
class InputSchema:
    """Layout and bounds inferred from a problem's inputs."""

    model: InputModel
    known: tuple[KnownInput, ...]
    write: Callable[[Values], str]
    """Writes values as an input."""
    constants: tuple[int | str, ...] = ()
    """Values that mutations write into inputs (`relax_bounds`)."""


def infer_schema(
    candidate: Candidate,
    *,
    is_validated: bool,
) -> InputSchema | str:
    """Return the layout and bounds of a problem's inputs, or the reason why they are unknown.

    Where validators decide, a list may repeat an item: most validators refuse that if it is
    forbidden. Lists inside lists, such as the two ends of an edge, must still differ. There
    validators check less than statements say (240 packages with validators).
    """
    tests = [test for test in candidate.tests if len(test.input) <= _MOST_KNOWN_BYTES]
    tests = tests[:_MOST_KNOWN]
    # Without an example nothing is learnt.
    if not tests:
        return "no known input"
    if candidate.call is not None and candidate.call.style == "design":
        return "a design class"
    if candidate.assertions is not None:
        return "tests that are programs"
    if candidate.fn_name is not None:
        return _infer_from_calls(tests, is_validated)
    return _infer_from_texts(tests, is_validated)


def _infer_from_calls(
    tests: Sequence[TestCase],
    is_validated: bool,
) -> InputSchema | str:
    """Return the schema of a function's arguments, or the reason why it is unknown."""
    known = []
    for test in tests:
        lines = [line for line in test.input.split("\n") if line.strip()]
        values = tuple(map(parse_json, lines))
        known.append(KnownInput(test.input, values))
    # A model is learnt place by place, so all inputs need the same places.
    if len({len(values) for _, values in known}) > 1:
        return "another number of arguments in some inputs"
    model = learn([values for _, values in known], may_repeat=is_validated)
    if not model.is_usable:
        return "a value of no known shape"
    return InputSchema(model, tuple(known), _write_arguments)


def _write_arguments(values: Values) -> str:
    return "\n".join(dump_json(value, ensure_ascii=False) for value in values)


def _infer_from_texts(
    tests: Sequence[TestCase],
    is_validated: bool,
) -> InputSchema | str:
    """Return the schema of texts for stdin, or the reason why it is unknown."""
    texts = [test.input for test in tests]
    cases = split_repeated(texts, [test.output for test in tests])
    # Cases of one line each are the rows of a table as well, and a table has several of them.
    is_split = cases is not None and any(case.count("\n") > 1 for case in cases.inputs)
    learnt_from = cases.inputs if cases is not None and is_split else texts
    for read in read_texts(learnt_from, is_typed=True):
        layout = replace(read.layout, is_repeated=is_split)
        model = learn(read.values, may_repeat=is_validated)
        known = _render_all(Read(layout, read.values))
        # A case of its own is no longer the input that it was a part of.
        is_same = is_split or _have_same_lines(known, texts)
        if model.is_usable and is_same:
            return InputSchema(model, known, layout.render_text)
    return "a layout of another kind, or a value of no known shape"


def _render_all(read: Read) -> tuple[KnownInput, ...]:
    """Return all values as inputs."""
    return tuple(KnownInput(read.layout.render_text(values), values) for values in read.values)


def _have_same_lines(
    known: Sequence[KnownInput],
    texts: Sequence[str],
) -> bool:
    """Whether inputs were written as they were read, apart from spaces between tokens."""
    pairs = zip(known, texts, strict=True)
    return all(_count_tokens(item.text) == _count_tokens(text) for item, text in pairs)


def _count_tokens(text: str) -> list[int]:
    """Return the number of tokens of each line.

    Empty lines are included, since some formats use them as separators.
    """
    return [len(line.split()) for line in text.rstrip().split("\n")]


class _Probe(NamedTuple):
    """An input with an absurd value."""

    place: int
    """Index of that value."""
    text: str


def relax_bounds(
    schema: InputSchema,
    validators: Validators,
    candidate: Candidate,
) -> InputSchema:
    """Return the schema without the bounds that validators check, and with constants to try.

    Validators check the bounds of a value if they refuse absurd ones. The constants are the whole
    numbers in the statement and in some accepted programs, and short strings in these.
    """
    probes = []
    for place in range(len(schema.known[0].values)):
        probes += _probe(schema, place)
    # All at once: each validator runs a process a text.
    texts = [probe.text for probe in probes]
    open_places = {probe.place for probe in probes}
    # A value keeps its bounds if an absurd one is accepted anywhere.
    for flags in validators.ways:
        for number in validators.ask(texts, flags):
            open_places.discard(probes[number].place)
    known = [values for _, values in schema.known]
    # Validators decide here, so that lists may repeat an item.
    model = learn(known, may_repeat=True, open_places=open_places)
    return replace(schema, model=model, constants=find_constants(candidate))


def _probe(schema: InputSchema, place: int) -> list[_Probe]:
    """Return known inputs with absurd values at one place.

    They are made of the first known input whose value there can be exaggerated.
    """
    for _, values in schema.known:
        exaggerated = _exaggerate(values[place])
        if exaggerated:
            before = values[:place]
            after = values[place + 1 :]
            texts = [schema.write((*before, absurd, *after)) for absurd in exaggerated]
            return [_Probe(place, text) for text in texts]
    return []


def _exaggerate(value: object) -> list[Any]:
    """Return absurd values for the place of a number, a text, or a list's last item; else none."""
    # A bool has two values only, and an empty value has nothing to enlarge.
    if isinstance(value, bool) or not value:
        return []
    if isinstance(value, int | float):
        return [_ABSURD_NUMBER, -_ABSURD_NUMBER]
    if isinstance(value, str):
        return [value * (_ABSURD_LENGTH // len(value)), f"{value}~"]
    if not isinstance(value, list):
        return []
    *others, last = value
    if isinstance(last, list):
        return []
    return [[*others, absurd] for absurd in _exaggerate(last)]


def find_constants(
    candidate: Candidate,
    strings: re.Pattern[str] = _STRING,
) -> tuple[int | str, ...]:
    """Return the different constants of a problem: numbers first, then strings of its programs."""
    accepted = [solution for solution in candidate.solutions if solution.known == "accepted"]
    codes = [solution.code for solution in accepted[:_MOST_READ]]
    constants: list[int | str] = []
    for text in (candidate.statement, *codes):
        constants += find_numbers(text)
    for code in codes:
        constants += strings.findall(code)
    return tuple(dict.fromkeys(constants))


def must_differ(candidate: Candidate) -> bool:
    """Whether the statement speaks of distinct items, which validators do not always check."""
    return _ALL_DIFFER.search(candidate.statement) is not None


def mutate_known(
    candidate: Candidate,
    schema: InputSchema,
    dropped: Counter[str],
) -> list[MadeInput]:
    """Return inputs mutated from known ones, by every mutation in turn, each once.

    `dropped` counts failed attempts. Each input has what the known inputs have in common, since a
    validator often checks less than the statement says. If the statement speaks of distinct items,
    a list gets equal items only where known ones have them.
    """
    all_differ = must_differ(candidate)
    seen = {known.text.strip() for known in schema.known}
    made: list[MadeInput] = []
    # More attempts than inputs, since many fail or were made before.
    for number, name in zip(range(2 * MOST_MADE), cycle(MUTATIONS)):
        kind = f"mutated/{name}"
        # A seed that depends on these alone: a rebuild must make the same inputs.
        seed = int(digest_input(f"0/{candidate.id}/{kind}/{number}"), 16)
        # By the seed as well, so that a rebuild takes the same one.
        parent = schema.known[seed % len(schema.known)]
        values = mutate(
            schema.model,
            parent.values,
            name,
            seed=seed,
            constants=schema.constants,
        )
        is_usable = values is not None and not (all_differ and _repeats_more(values, parent.values))
        if not is_usable:
            dropped["not met the model of inputs"] += 1
            continue
        text = schema.write(values)
        if text.strip() in seen:
            dropped["made twice"] += 1
            continue
        seen.add(text.strip())
        origin = Origin(
            kind=kind,
            seed=seed,
            parent=digest_input(parent.text),
        )
        made.append(MadeInput(text, origin, "generated"))
        if len(made) == MOST_MADE:
            break
    return made


def _repeats_more(values: Values, parent: Values) -> bool:
    """Whether a list has equal items although the list that it was made from had none."""
    return not find_repeats(values) <= find_repeats(parent)


def change_known_texts(
    candidate: Candidate,
    known: Sequence[TestCase],
    *,
    most: int,
    round_name: str = "0",
    latest: Sequence[MadeInput] = (),
    changes: Sequence[str] = tuple(TEXT_CHANGES),
) -> list[MadeInput]:
    """Return inputs made of known ones by changes of their text, by every change in turn.

    Args:
        candidate: the problem, whose id decides the choices.
        known: tests whose inputs are changed, for stdin.
        most: how many are made.
        round_name: another name makes others.
        latest: made inputs; every second change is one of these.
        changes: names of changes, made in turn.
    """
    parents = _by_output(known)
    if not parents:
        return []
    walked = [made.text for made in latest if len(made.text) <= _MOST_CHANGED_BYTES]
    constants = list(map(str, find_constants(candidate, _PHRASE)))
    # Where all differ; read once, since known inputs are long.
    seen = _find_known_repeats(known) if must_differ(candidate) else None
    made: dict[str, MadeInput] = {}
    for number, name in zip(range(2 * most), cycle(changes)):
        kind = f"changed/{name}"
        seed = int(digest_input(f"{round_name}/{candidate.id}/{kind}/{number}"), 16)
        alike = parents[seed % len(parents)]
        # Those of one walk together are as often changed as all known ones.
        if walked and (seed >> _SEED_BITS) % 2:
            alike = walked
        parent = alike[seed // len(parents) % len(alike)]
        text = change_text(
            parent,
            name,
            seed=seed,
            constants=constants,
        )
        if text is None or text.strip() in made:
            continue
        if seen is not None and _repeats_anew(text, seen):
            continue
        origin = Origin(
            kind=kind,
            seed=seed,
            parent=digest_input(parent),
        )
        made[text.strip()] = MadeInput(text, origin, "generated")
        if len(made) == most:
            break
    return list(made.values())


def _find_known_repeats(known: Sequence[TestCase]) -> Repeats:
    """Return what repeats in some of the known inputs."""
    has_lines = False
    has_tokens = False
    for test in known[:_MOST_KNOWN]:
        repeats = find_text_repeats(test.input)
        has_lines |= repeats.lines
        has_tokens |= repeats.tokens
    return Repeats(has_lines, has_tokens)


def _repeats_anew(text: str, seen: Repeats) -> bool:
    """Whether lines, or tokens of a line, repeat in a text and in no known input.

    Where they do in a known one, other things are those that the statement says are distinct.
    """
    repeats = find_text_repeats(text)
    new_lines = repeats.lines and not seen.lines
    new_tokens = repeats.tokens and not seen.tokens
    return new_lines or new_tokens


def _by_output(known: Sequence[TestCase]) -> list[list[str]]:
    """Return the short inputs, those with the same output together.

    Where most answers are "no", an input whose answer is another one is as good as all those.
    """
    by_output: dict[str, list[str]] = {}
    for test in known:
        # A text of many lines would change in too few of them.
        if len(test.input) <= _MOST_CHANGED_BYTES:
            by_output.setdefault(test.output, []).append(test.input)
    return list(by_output.values())


def find_ways(candidate: Candidate, known: Sequence[TestCase]) -> list[list[MadeInput]]:
    """Return ways between inputs with different answers, step by step; none with many answers.

    Where the answer changes on a way, two inputs that differ little have different answers.
    """
    parents = _by_output(known)
    if not 1 < len(parents) <= _MOST_ANSWERS:
        return []
    all_differ = must_differ(candidate)
    ways = []
    for number in range(_MOST_WAYS):
        seed = int(digest_input(f"way {number}/{candidate.id}"), 16)
        source = random.Random(seed)
        first, second = source.sample(parents, 2)
        start = source.choice(first)
        way = []
        for text in blend(start, source.choice(second), most=_MOST_STEPS, seed=seed):
            if all_differ and find_text_repeats(text).tokens:
                continue
            origin = Origin(kind="between/answers", seed=seed, parent=digest_input(start))
            way.append(MadeInput(text, origin, "generated"))
        ways.append(way)
    return ways


def make_tiny(
    candidate: Candidate,
    schema: InputSchema,
    *,
    most: int,
) -> list[MadeInput]:
    """Return the tiniest inputs of a layout."""
    all_differ = must_differ(candidate)
    made = []
    for number, values in enumerate(list_tiny(schema.model, most=most)):
        if all_differ and find_repeats(values):
            continue
        origin = Origin(kind="tiny/all", seed=number)
        made.append(MadeInput(schema.write(values), origin, "generated"))
    return made

"""Inputs made from what is known of a problem: drawn from the model of its inputs, and mutated from known ones."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from microcoder.dataset.generation.answers import MadeInput
from microcoder.dataset.generation.settings import GenerateSettings
from microcoder.dataset.inputs.drawing import PROFILES, draw
from microcoder.dataset.inputs.layouts import Read, Values, read_texts, split_repeated
from microcoder.dataset.inputs.model import InputModel, learn
from microcoder.dataset.inputs.mutating import MUTATIONS, mutate
from microcoder.dataset.process.sections import split
from microcoder.formats.candidates import Candidate, Origin
from microcoder.signatures import find_head
from microcoder.types import TestCase

_MOST_KNOWN = 30
"""Known inputs that are learnt from."""
_MOST_KNOWN_BYTES = 1 << 16
_BYTES_PER_ITEM = 12
_IDENTIFIER = re.compile(r"[$`*]\\?([A-Za-z])(?:_\{?\w{1,3}\}?)?[$`*]|\$([A-Za-z])_|\b([A-Za-z])(?=\s*(?:<=|≤|\\le))")


def digest_input(text: str) -> str:
    """Return what an input is named by in the lineage of those made from it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def seed_of(*parts: object) -> int:
    """Return a seed that hangs on these alone."""
    return int(hashlib.sha256("/".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()[:12], 16)


@dataclass(frozen=True, slots=True)
class Understanding:
    """What was understood of a problem's inputs."""

    model: InputModel
    known: tuple[tuple[str, Values], ...]
    """Known inputs: text and values."""
    write: Callable[[Values], str]


def understand(candidate: Candidate) -> Understanding | str:
    """Return what a problem's inputs look like, or why that is not known."""
    tests = [test for test in candidate.tests if len(test.input) <= _MOST_KNOWN_BYTES][:_MOST_KNOWN]
    if not tests:
        return "no known input"
    if candidate.call is not None and candidate.call.style == "design":
        return "a design class"
    if candidate.fn_name is not None and candidate.harness is None:
        return _understand_function(candidate, [test.input for test in tests])
    return _understand_text(candidate, tests)


def _understand_function(candidate: Candidate, texts: Sequence[str]) -> Understanding | str:
    known = [(text, tuple(json.loads(line) for line in text.split("\n") if line.strip())) for text in texts]
    num_values = len(known[0][1])
    if any(len(values) != num_values for _, values in known):
        return "another number of arguments in some inputs"
    head = find_head(candidate.starter_code or "", candidate.fn_name or "")
    names = [argument.arg for argument in head.args.args if argument.arg not in ("self", "cls")] if head else []
    if len(names) != num_values:
        names = [f"argument{number}" for number in range(num_values)]
    kinds = candidate.call.parameters if candidate.call is not None else ()
    nodes = [name for name, kind in zip(names, kinds, strict=False) if kind in ("ListNode", "TreeNode")]
    model = learn(names, [values for _, values in known], candidate.statement, nodes=nodes)
    if not model.is_usable:
        return "a value of no known shape"
    return Understanding(model, tuple(known), write_arguments)


def write_arguments(values: Values) -> str:
    """Return the arguments of a function as a test has them."""
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values)


def _understand_text(candidate: Candidate, tests: Sequence[TestCase]) -> Understanding | str:
    texts = [test.input for test in tests]
    cut = split_repeated(texts, [test.output for test in tests])
    # Cases of one line each are the rows of a table as well, and a table is drawn with several of them.
    is_cut = cut is not None and any(case.count("\n") > 1 for case in cut[0])
    reads = [read for read in read_texts(cut[0] if cut and is_cut else texts, is_typed=True) if read.layout.names]
    for read in reads:
        model = learn(
            read.layout.names,
            read.values,
            candidate.statement,
            places=_name_slots(read, candidate.statement),
            records=read.records,
        )
        if model.is_usable:
            layout = replace(read.layout, is_repeated=is_cut)
            known = tuple((layout.render(values), values) for values in read.values)
            if is_cut or all(_lines(text) == _lines(given) for (text, _), given in zip(known, texts, strict=True)):
                return Understanding(model, known, layout.render)
    return "a value of no known shape" if reads else "a layout of another kind"


def _lines(text: str) -> list[int]:
    """Return how many tokens each line has: an empty line says something to those who wrote it."""
    return [len(line.split()) for line in text.rstrip().split("\n")]


def _name_slots(read: Read, statement: str) -> dict[str, str]:
    """Return the places of the names that the input section introduces, where it has one for each place."""
    section = split(statement).input
    found = [next(filter(None, match.groups())) for match in _IDENTIFIER.finditer(section)]
    names = list(dict.fromkeys(found))
    slots = read.slots
    if len(names) != len(slots):
        return {}
    # `a_i` is written for an item; the bare name would be a number of its own.
    places: dict[str, str] = {}
    for name, slot in zip(names, slots, strict=True):
        places |= {name: slot} if "[" not in slot else {f"{name}_i": slot, f"{name}i": slot, name: slot}
    return places


def make_inputs(
    candidate: Candidate,
    understanding: Understanding,
    settings: GenerateSettings,
    dropped: Counter[str],
    *,
    most_bytes: int,
    is_large_alone: bool = False,
) -> list[MadeInput]:
    """Return made inputs, each once: drawn by every profile and mutated from known ones, in turn, then large ones.

    Args:
        candidate: whose inputs they are.
        understanding: what they look like.
        settings: how many.
        dropped: counts tries that gave none.
        most_bytes: of a large input.
        is_large_alone: make no small ones.
    """
    making = _Making(candidate.id, understanding, settings, dropped)
    large = [name for name, profile in PROFILES.items() if profile.is_full]
    small = [name for name in PROFILES if name not in large]
    kinds = [f"drawn/{name}" for name in small] + [f"mutated/{name}" for name in MUTATIONS]
    num_large = min(settings.max_inputs, 2 * len(large))
    for number in range(0 if is_large_alone else 2 * settings.max_inputs):
        if len(making.made) >= settings.max_inputs - num_large:
            break
        making.add(kinds[number % len(kinds)], number, settings.max_test_bytes)
    for number in range(num_large):
        making.add(f"drawn/{large[number % len(large)]}", number, most_bytes)
    return making.made


@dataclass(slots=True)
class _Making:
    """Inputs made so far."""

    problem_id: str
    understanding: Understanding
    settings: GenerateSettings
    dropped: Counter[str]
    made: list[MadeInput] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)

    def add(self, kind: str, number: int, most_bytes: int) -> None:
        """Make one of a kind, if it can be and is new."""
        model, known = self.understanding.model, self.understanding.known
        seed = seed_of(self.settings.seed, self.problem_id, kind, number)
        how, _, name = kind.partition("/")
        parent = ""
        if how == "drawn":
            values = draw(model, name, seed=seed, most_items=most_bytes // _BYTES_PER_ITEM)
        else:
            text, parent_values = known[seed % len(known)]
            parent = digest_input(text)
            values = mutate(model, parent_values, name, seed=seed)
        if values is None:
            self.dropped["not met the model of inputs"] += 1
            return
        text = self.understanding.write(values)
        if text.strip() in self.seen or any(text.strip() == one.strip() for one, _ in known):
            self.dropped["made twice"] += 1
        elif len(text) > most_bytes:
            self.dropped["too long"] += 1
        else:
            self.seen.add(text.strip())
            self.made.append(MadeInput(text, Origin(kind=kind, seed=seed, parent=parent), "generated"))

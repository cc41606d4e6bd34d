"""What is understood of a problem's inputs: their layout, and the model of their values."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from microcoder.data.clean.sections import split
from microcoder.data.formats.candidates import Candidate
from microcoder.data.inputs.constraints import read_relations, without_group_rows
from microcoder.data.inputs.layouts import Read, Values, read_texts, split_repeated
from microcoder.data.inputs.model import InputModel, collect_numbers, learn, meets
from microcoder.judge.core.signatures import find_head
from microcoder.judge.core.types import TestCase

_MOST_KNOWN = 30
"""Known inputs that are learnt from."""
_MOST_KNOWN_BYTES = 1 << 16
_FORMULA = re.compile(
    r"\$([^$\n]{1,200}(?:\n[^$\n]{1,200})?)\$|[`*]([A-Za-z](?:_\w)?)[`*]|\b([A-Za-z](?:_\w)?)(?=\s*(?:<=|≤))"
)
_COMMAND = re.compile(r"\\[A-Za-z]+|\b[A-Za-z]{2,}\b|[{}]")
_NAME = re.compile(r"(?<![A-Za-z_\d])([A-Za-z])(?![A-Za-z])(?:_ ?([A-Za-z0-9]))?")
_SUBSCRIPTED = re.compile(r"(?<![A-Za-z_\\])([A-Za-z])_")
_DOTS = re.compile(r"\\[lc]?dots|…|\.\.\.")


def digest_input(text: str) -> str:
    """Return what an input is named by in the lineage of those made from it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def seed_of(*parts: object) -> int:
    """Return a seed that hangs on these alone."""
    return int(hashlib.sha256("/".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()[:12], 16)


@dataclass(frozen=True, slots=True)
class Understanding:
    """Layouts and bounds inferred from a problem's inputs."""

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
    return _find_obstacle(model) or Understanding(model, tuple(known), write_arguments)


def _find_obstacle(model: InputModel) -> str:
    """Return why nothing may be made by a model of inputs; empty where it may."""
    if model.unplaced:
        return "a bound of the statement that could not be placed"
    return "" if model.is_usable else "a value of no known shape"


def write_arguments(values: Values) -> str:
    """Return the arguments of a function as a test has them."""
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values)


def _understand_text(candidate: Candidate, tests: Sequence[TestCase]) -> Understanding | str:
    texts = [test.input for test in tests]
    cut = split_repeated(texts, [test.output for test in tests])
    # Cases of one line each are the rows of a table as well, and a table is drawn with several of them.
    is_cut = cut is not None and any(case.count("\n") > 1 for case in cut[0])
    reads = [read for read in read_texts(cut[0] if cut and is_cut else texts, is_typed=True) if read.layout.names]
    obstacle = ""
    for read in reads:
        model = learn(
            read.layout.names,
            read.values,
            candidate.statement,
            places=_name_slots(read, candidate.statement),
            records=read.records,
        )
        obstacle = _find_obstacle(model)
        if not obstacle:
            layout = replace(read.layout, is_repeated=is_cut)
            known = tuple((layout.render(values), values) for values in read.values)
            if is_cut or all(_lines(text) == _lines(given) for (text, _), given in zip(known, texts, strict=True)):
                return Understanding(model, known, layout.render)
    return obstacle or "a layout of another kind"


def _lines(text: str) -> list[int]:
    """Return how many tokens each line has: an empty line says something to those who wrote it."""
    return [len(line.split()) for line in text.rstrip().split("\n")]


def _name_slots(read: Read, statement: str) -> dict[str, str]:
    """Return the places of the names that the input section introduces, in the order of both.

    Of several ways to read the names, that is taken whose bounds no known input contradicts and most of them tell of.
    """
    names, slots = find_names(split(statement).input), list(read.slots)
    twins = [name for at, name in enumerate(names) if name.upper() not in names[:at]]
    ways = {tuple(one): _align(one, slots, read) for one in (names, [n for n in twins if n not in "ijk"], twins)}
    numbers = [collect_numbers(read.layout.names, values) for values in read.values]
    seen_places = set().union(*numbers)

    def rate(places: dict[str, str]) -> tuple[int, int]:
        said = read_relations(without_group_rows(statement), read.layout.names, places)
        told = [one for one in said if {*one.left.places, *one.right.places} & seen_places]
        held = [one for one in told if all(meets(one, seen) for seen in numbers)]
        return 4 * len(held) - 3 * len(told), len(held)

    return max(ways.values(), key=rate)


def _align(names: list[str], slots: list[str], read: Read) -> dict[str, str]:
    """Return places by name; where there are fewer names than places, only those before the first list are sure."""
    if len(names) < len(slots):
        texts = {name for name, value in zip(read.layout.names, read.values[0], strict=True) if isinstance(value, str)}
        leading = next((at for at, slot in enumerate(slots) if "[" in slot or slot in texts), len(slots))
        slots = slots[:leading]
        if len(names) < leading or any(name.endswith("[]") for name in names[:leading]):
            return {}
    # `a_i` is written for an item; the bare name would be a number of its own.
    places: dict[str, str] = {}
    for found, slot in zip(names, slots, strict=False):
        name = found.removesuffix("[]")
        places |= {name: slot} if "[" not in slot else {f"{name}_i": slot, f"{name}i": slot, name: slot}
    return places


def find_names(section: str) -> list[str]:
    """Return the names of one letter in the formulae of an input section, in order.

    `N` and `t_0` are names; `a_1, ..., a_N` is one too, given as `a[]`. A letter that only numbers others, such as the
    `i` of `a_i`, is left out.
    """
    formulae = [next(filter(None, one.groups())) for one in _FORMULA.finditer(section)]
    listed = {one for formula in formulae if _DOTS.search(formula) for one in _SUBSCRIPTED.findall(formula)}
    found: dict[str, None] = {}
    for formula in formulae:
        for letter, subscript in _NAME.findall(_COMMAND.sub(" ", formula)):
            is_item = letter in listed or (subscript and not subscript.isdigit())
            found.setdefault(f"{letter}[]" if is_item else f"{letter}_{subscript}" if subscript else letter)
    indices = {subscript for formula in formulae for _, subscript in _NAME.findall(_COMMAND.sub(" ", formula))}
    return [name for name in found if name not in indices & set("ijk")]

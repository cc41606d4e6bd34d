"""What is understood of a problem's inputs: their layout, and the model of their values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from microcoder.data.formats.candidates import Candidate
from microcoder.data.inputs.layouts import Values, read_texts, split_repeated
from microcoder.data.inputs.model import InputModel, learn
from microcoder.judge.core.types import TestCase

_MOST_KNOWN = 30
"""Known inputs that are learnt from."""
_MOST_KNOWN_BYTES = 1 << 16


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
        return _understand_function([test.input for test in tests])
    return _understand_text(tests)


def _understand_function(texts: Sequence[str]) -> Understanding | str:
    known = [(text, tuple(json.loads(line) for line in text.split("\n") if line.strip())) for text in texts]
    num_values = len(known[0][1])
    if any(len(values) != num_values for _, values in known):
        return "another number of arguments in some inputs"
    model = learn([f"argument{number}" for number in range(num_values)], [values for _, values in known])
    return Understanding(model, tuple(known), _write_arguments) if model.is_usable else "a value of no known shape"


def _write_arguments(values: Values) -> str:
    return "\n".join(json.dumps(value, ensure_ascii=False) for value in values)


def _understand_text(tests: Sequence[TestCase]) -> Understanding | str:
    texts = [test.input for test in tests]
    cut = split_repeated(texts, [test.output for test in tests])
    # Cases of one line each are the rows of a table as well, and a table has several of them.
    is_cut = cut is not None and any(case.count("\n") > 1 for case in cut[0])
    for read in read_texts(cut[0] if cut and is_cut else texts, is_typed=True):
        model = learn(read.layout.names, read.values, records=read.records)
        layout = replace(read.layout, is_repeated=is_cut)
        known = tuple((layout.render(values), values) for values in read.values)
        is_same = is_cut or all(_lines(text) == _lines(given) for (text, _), given in zip(known, texts, strict=True))
        if model.is_usable and is_same:
            return Understanding(model, known, layout.render)
    return "a layout of another kind, or a value of no known shape"


def _lines(text: str) -> list[int]:
    """Return how many tokens each line has: an empty line says something to those who wrote it."""
    return [len(line.split()) for line in text.rstrip().split("\n")]

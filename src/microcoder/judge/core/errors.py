"""The error tree.

    MicroCoderError
    ├── ConfigError      a recipe, flag or option is wrong          (also ValueError)
    ├── DataError        a problem file or checkpoint is wrong      (also ValueError)
    ├── EvaluatorFault   our sandbox failed, not a program          (also RuntimeError)
    └── TrainingError    a run cannot start, continue or resume     (also RuntimeError)

A bad program is never an error: it is a `Verdict`. Every message says what was wrong (with the
value), what is allowed, and what to type next; the command line prints it without a traceback.

`explain_fault` gives the messages for invalid config values and records, in place of pydantic's.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails

Location = tuple[int | str, ...]
"""Where a fault is in a record, as pydantic says it: keys, and indexes of lists."""


class MicroCoderError(Exception):
    """Base of every error this package raises on purpose."""


class ConfigError(MicroCoderError, ValueError):
    """A recipe, flag or option is wrong; the user can fix it."""


class DataError(MicroCoderError, ValueError):
    """A problem file, checkpoint folder or record is wrong; the user can fix it."""


class EvaluatorFault(MicroCoderError, RuntimeError):
    """The sandbox itself failed; the program has no verdict."""


class TrainingError(MicroCoderError, RuntimeError):
    """A training run cannot start, continue or be resumed."""


_Context = Mapping[str, Any]
"""What pydantic gives besides an error's type, such as the bound."""


def _too_few_characters(context: _Context) -> str:
    if context["min_length"] == 1:
        return "must not be empty"
    return f"must have {context['min_length']} or more characters"


_SENTENCES: Mapping[str, Callable[[_Context], str]] = {
    "missing": lambda _: "is missing",
    "greater_than_equal": lambda context: f"must be {context['ge']:g} or more",
    "greater_than": lambda context: f"must be more than {context['gt']:g}",
    "less_than_equal": lambda context: f"must be {context['le']:g} or less",
    "less_than": lambda context: f"must be less than {context['lt']:g}",
    "extra_forbidden": lambda _: "unknown key",
    "literal_error": lambda context: f"use {context['expected']}",
    "too_short": lambda context: f"must have {context['min_length']} or more items",
    "too_long": lambda context: f"must have {context['max_length']} or fewer items",
    "string_too_short": _too_few_characters,
    "string_too_long": lambda context: f"must have {context['max_length']} or fewer characters",
    "string_pattern_mismatch": lambda context: f"must match {context['pattern']}",
}
"""Type of pydantic's error -> our sentence."""
_KINDS = {
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a finite number",
    "bool": "must be true or false",
    "string": "must be text",
    "path": "must be a path",
    "tuple": "must be a list",
    "list": "must be a list",
    "dict": "must be a table of keys",
    "model": "must be a table of keys",
    "mapping": "must be a table of keys",
    "date": "must be a date, such as 2025-01-31",
}
"""Sentences by the first word of pydantic's error type, such as `int` of `int_parsing`."""


_ENDS_OF_KINDS = ("_type", "_parsing", "_from_float", "_number", "_inexact")
"""Ends of pydantic's error types that say that a value is of the wrong type."""
_LEAST_SIMILAR = 0.6
"""Similarity, from 0 to 1, from which a known name is offered for a misspelt one."""


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar; empty if none is similar."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=_LEAST_SIMILAR)
    return close[0] if close else ""


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `did you mean NAME?` with the known name that is most similar; empty if none is."""
    close = nearest(word, known)
    return f"did you mean {close}?" if close else ""


def own_faults(faults: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Return pydantic's errors, without "too short" of a list that has an error inside.

    The refused item caused both errors.
    """

    def is_alone(location: Location) -> bool:
        return sum(fault["loc"][: len(location)] == location for fault in faults) == 1

    return [fault for fault in faults if fault["type"] != "too_short" or is_alone(fault["loc"])]


def explain_fault(fault: ErrorDetails, key: str = "") -> str:
    """Return the message for one pydantic error, after its key if given.

    Our own validators' messages are unchanged.
    """
    kind = fault["type"]
    if kind == "missing" and key:
        return f"{key} is missing"
    # pydantic puts these words before the messages of our own validators.
    sentence = fault["msg"].removeprefix("Value error, ")
    if kind in _SENTENCES:
        sentence = _SENTENCES[kind](fault.get("ctx", {}))
    # `int_parsing`, `float_type` ...: the first word says what the value must be.
    elif kind.endswith(_ENDS_OF_KINDS):
        expected_type = kind.partition("_")[0]
        sentence = _KINDS.get(expected_type, fault["msg"])
    return f"{key}: {sentence}" if key else sentence

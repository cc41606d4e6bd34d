"""The error tree.

    MicroCoderError
    ├── ConfigError      a recipe, flag or option is wrong          (also ValueError)
    ├── DataError        a problem file or checkpoint is wrong      (also ValueError)
    ├── EvaluatorFault   our sandbox failed, not a program          (also RuntimeError)
    └── TrainingError    a run cannot start, continue or resume     (also RuntimeError)

A bad program is never an error: it is a `Verdict`. Every message says what was wrong (with the value),
what is allowed, and what to type next; the command line prints it without a traceback.

`explain_fault` gives the messages for invalid config values and records, in place of pydantic's.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic_core import ErrorDetails


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

_SENTENCES: Mapping[str, Callable[[_Context], str]] = {
    "missing": lambda _: "is missing",
    "greater_than_equal": lambda given: f"must be {given['ge']:g} or more",
    "greater_than": lambda given: f"must be more than {given['gt']:g}",
    "less_than_equal": lambda given: f"must be {given['le']:g} or less",
    "less_than": lambda given: f"must be less than {given['lt']:g}",
    "extra_forbidden": lambda _: "unknown key",
    "literal_error": lambda given: f"use {given['expected']}",
    "too_short": lambda given: f"must have {given['min_length']} or more items",
    "too_long": lambda given: f"must have {given['max_length']} or fewer items",
    "string_too_short": lambda given: (
        "must not be empty"
        if given["min_length"] == 1
        else f"must have {given['min_length']} or more characters"
    ),
    "string_too_long": lambda given: f"must have {given['max_length']} or fewer characters",
    "string_pattern_mismatch": lambda given: f"must match {given['pattern']}",
}
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


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar; empty if none is similar."""
    return next(iter(difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)), "")


def suggest(word: str, known: Iterable[str]) -> str:
    """Return `did you mean NAME?`, with the known name that is most similar; empty if none is similar."""
    close = nearest(word, known)
    return f"did you mean {close}?" if close else ""


def own_faults(faults: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Return pydantic's errors, but not "too short" for a list with an error inside: the refused item caused both."""

    def is_alone(place: tuple[int | str, ...]) -> bool:
        return sum(fault["loc"][: len(place)] == place for fault in faults) == 1

    return [fault for fault in faults if fault["type"] != "too_short" or is_alone(fault["loc"])]


def explain_fault(fault: ErrorDetails, key: str = "") -> str:
    """Return the message for one pydantic error, after its key if given; our own validators' messages are unchanged."""
    kind = fault["type"]
    if kind == "missing" and key:
        return f"{key} is missing"
    said = fault["msg"].removeprefix("Value error, ")
    if kind in _SENTENCES:
        said = _SENTENCES[kind](fault.get("ctx", {}))
    elif kind.endswith(("_type", "_parsing", "_from_float", "_number", "_inexact")):
        said = _KINDS.get(kind.partition("_")[0], fault["msg"])
    return f"{key}: {said}" if key else said

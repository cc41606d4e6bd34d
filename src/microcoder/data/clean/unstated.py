"""Finds what a program must give back and its statement never names.

"Check whether the string is binary", and the tests expect "Yes": who returns True, or "yes, it is",
fails for ever. Such a text is the same for several inputs, so it is not made from one of them.

So does who returns nothing for "no such word" where "None" is expected, who takes another pi than
3.1415, and who does not round to two digits.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.test_programs import list_calls
from microcoder.data.formats.values import parse_python, read_json
from microcoder.judge.core.types import TestCase

FLAG = "unstated_output"
"""Flag of a problem whose tests expect such a text."""
_WORD = re.compile(r"[^\W\d_]{2,}")
_NO_WORD = re.compile(r"[\W_]+")
_LEAST_INPUTS = 2
"""Fewest inputs with one text: a text of one input may be made from it."""
_LEAST_SHARE = 1 / 3
"""Least share of the tests that expect such a text.

Of a hundred short words that are made from inputs, two may be the same by chance.
"""
_NOTHING = re.compile(r"\b(?:none|null|nil|nothing|undefined|empty|optional)\b", re.IGNORECASE)
"""Words of a statement that says what is given back where there is no answer."""
_NO_TEXTS = frozenset({"none", "null", "-1"})
"""Texts for "no answer"."""
_CHECKS = re.compile(r"\b(?:check|whether|validate|determine)\b", re.IGNORECASE)
"""Words of a statement that asks for a truth."""
_SET_STATED = re.compile(
    r"\b(?:sets?|unique|distinct|union|intersection|difference)\b", re.IGNORECASE
)
"""Words of a statement whose answer is taken for a set."""
_MOST_VERDICTS = 3
"""Most different texts that stand for truths."""
_TRUTH = re.compile(r"\b(?:true|false|bool(?:ean)?)\b", re.IGNORECASE)
_SHORT_PI = re.compile(r"(?<![\w.])3\.14(?:1|15|159)?(?!\d)|\b22(?:\.0)?\s*/\s*7\b")
"""Numbers that stand for pi and are none that a library has."""
_PI_STATED = re.compile(r"3[.,]14|\b22\s*/\s*7\b")
_ROUNDS = re.compile(r"\bround\s*\(|%\.\d|:\.\d+f")
"""What rounds in a program."""
_ROUNDING_STATED = re.compile(
    r"\b(?:round\w*|decimals?|digits?|places|precision|nearest|toleran\w+|truncat\w+|accura\w+"
    r"|tenths?|hundredths?|thousandths?|cents|d\.?p)\b|%\.\d|\.\df\b",
    re.IGNORECASE,
)
_TWO_DIGITS = 0.005
"""A checker that forgives as much takes what was rounded to two digits, and what was not."""
_ROUNDED = re.compile(r"-?\d+\.\d{2,3}")
"""A number that was rounded, as it is written."""
_MOST_CHARACTERS = 2000
"""Characters of an input or an output; longer ones are not looked at."""


def has_unstated_answer(candidate: Candidate) -> bool:
    """Whether the tests expect a text or a value that nothing names."""
    if has_unstated_text(candidate) or has_unstated_value(candidate):
        return True
    return _has_unstated_verdict(candidate) or _has_unstated_set(candidate)


def _has_unstated_set(candidate: Candidate) -> bool:
    """Whether assertions compare an answer with a set, of which the statement says nothing.

    A list with the same items is not equal to it.
    """
    if candidate.assertions is None or _SET_STATED.search(_read_shown(candidate)):
        return False
    for test in candidate.tests:
        tree = parse_python(test.output) or ast.Module([], [])
        for node in ast.walk(tree):
            match node:
                case ast.Assert(
                    test=ast.Compare(left=ast.Call(), ops=[ast.Eq()], comparators=[ast.Set()])
                ):
                    return True
    return False


def _has_unstated_verdict(candidate: Candidate) -> bool:
    """Whether a function answers "check whether" by texts that stand otherwise in the statement.

    "Valid Email" for "check if it is a valid email address" is one: True would be as right.
    """
    if candidate.fn_name is None or not _CHECKS.search(candidate.statement):
        return False
    texts = []
    for test in list_calls(candidate):
        if not test.output.startswith('"') or len(test.output) > _MOST_CHARACTERS:
            return False
        texts.append(str(read_json(test.output)))
    # Texts that never come twice are made of inputs.
    if len(texts) <= len(set(texts)) or len(set(texts)) > _MOST_VERDICTS:
        return False
    shown = _read_shown(candidate)
    return any(text not in shown for text in texts)


def has_unstated_text(candidate: Candidate) -> bool:
    """Whether a third of the tests expect texts, each of several inputs, that nothing names."""
    # Once: tests that are programs are parsed for it.
    texts = list(_list_texts(candidate))
    inputs: defaultdict[str, list[str]] = defaultdict(list)
    for given, text in texts:
        if len(given) <= _MOST_CHARACTERS and len(text) <= _MOST_CHARACTERS:
            inputs[text].append(given)
    stated = _read_stated(_read_shown(candidate))
    num_repeated = 0
    for text, given in inputs.items():
        if len(set(given)) >= _LEAST_INPUTS and _is_unstated(text, stated, given):
            num_repeated += len(given)
    return num_repeated > 0 and num_repeated >= _LEAST_SHARE * len(texts)


def has_unstated_value(candidate: Candidate) -> bool:
    """Whether tests of a function expect a value that nothing names.

    That is None, a truth or "None" beside other answers, or a number by a short pi or a rounding.
    """
    if candidate.fn_name is None or candidate.call is not None:
        return False
    outputs = [test.output for test in list_calls(candidate)]
    outputs = [output for output in outputs if len(output) <= _MOST_CHARACTERS]
    kinds = {_kind_of(output) for output in outputs}
    statement = _read_shown(candidate)
    if len(kinds) > 1:
        if kinds & {"nothing", "text for nothing"} and not _NOTHING.search(statement):
            return "nothing" in kinds or "-1" not in statement
        if "truth" in kinds and not _TRUTH.search(statement):
            return True
    return "number" in kinds and _is_computed_otherwise(candidate, outputs)


def _kind_of(output: str) -> str:
    """Return the kind of a value, so far as another kind may stand for "no answer"."""
    if output == "null":
        return "nothing"
    if output in ("true", "false"):
        return "truth"
    if output.strip('"').lower() in _NO_TEXTS and output.startswith('"'):
        return "text for nothing"
    if output[:1] in "-0123456789":
        return "number"
    return "other"


def _is_computed_otherwise(candidate: Candidate, outputs: Sequence[str]) -> bool:
    """Whether the first right program has a pi or a rounding that its statement does not name."""
    code = candidate.solutions[0].code if candidate.solutions else ""
    shown = _read_shown(candidate)
    if _SHORT_PI.search(code) and not _PI_STATED.search(shown):
        return True
    is_forgiving = (candidate.checker.absolute or 0) >= _TWO_DIGITS
    if is_forgiving or not _ROUNDS.search(code) or _ROUNDING_STATED.search(shown):
        return False
    return any(_ROUNDED.fullmatch(output) for output in outputs)


def _read_shown(candidate: Candidate) -> str:
    """Return all that a problem shows: its statement, and the code that a program begins with."""
    return f"{candidate.statement}\n{candidate.starter_code or ''}"


class _Stated(NamedTuple):
    """What a statement names."""

    squeezed: str
    words: frozenset[str]


def _read_stated(statement: str) -> _Stated:
    """Return what a statement names: read once, since it may be long and the texts many."""
    return _Stated(_squeeze(statement), frozenset(_WORD.findall(statement.lower())))


def _is_unstated(
    text: str,
    stated: _Stated,
    given: list[str],
) -> bool:
    """Whether neither a statement nor the inputs of a text have it, or all of its words."""
    words = {word.lower() for word in _WORD.findall(text)}
    if not words:
        return False
    squeezed = _squeeze(text)
    if squeezed in stated.squeezed or any(squeezed in _squeeze(item) for item in given):
        return False
    in_inputs = _WORD.findall(" ".join(given).lower())
    return not words <= stated.words.union(in_inputs)


def _squeeze(text: str) -> str:
    return _NO_WORD.sub("", text.lower())


def _list_texts(candidate: Candidate) -> Iterator[tuple[str, str]]:
    """Yield the tests that expect a text: input and text."""
    for test in candidate.tests:
        if candidate.assertions is not None:
            yield from _texts_of_program(test)
        elif candidate.fn_name is None:
            yield test.input, test.output.strip()
        else:
            try:
                value = read_json(test.output)
            except ValueError:
                continue
            if isinstance(value, str):
                yield test.input, value


def _texts_of_program(test: TestCase) -> Iterator[tuple[str, str]]:
    """Yield the texts that assertions of a program compare something with."""
    tree = parse_python(test.output)
    if tree is None:
        return
    for node in ast.walk(tree):
        match node:
            case ast.Assert(
                test=ast.Compare(
                    left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=str(text))]
                )
            ):
                # A chain of hundreds of calls is too deep to be written again.
                with suppress(RecursionError):
                    yield ast.unparse(left), text

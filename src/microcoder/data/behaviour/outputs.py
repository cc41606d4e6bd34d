"""Outputs as tokens, whatever their text format, and how far two programs' outputs agree."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from microcoder.judge.core.digits import parse_json

Tokens = tuple[str, ...]
"""An output as its numbers and words.

No brackets, no quotes, `5` for `5.0`, `true` for `True`.
"""
Outputs = Sequence[Tokens | None]
"""A program's outputs, one per input; None, no output, agrees with nothing and is no label."""

LATE: Tokens = ("", "late")
"""Stands for an output that was not waited for, which says nothing."""
_CASE = re.compile(r"^[ \t]*case[ \t]*#?[ \t]*\d+[ \t]*[:.][ \t]*", re.MULTILINE | re.IGNORECASE)
"""The number of a case, as contests print it before an answer."""
_TOKEN = re.compile(r"[^\s,\[\](){}\"'`]+")
_LEADING_ZERO = re.compile(r"-?0\d+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_WHOLE = re.compile(r"-?\d+")
_LARGEST_EXACT = 1e15
"""Whole numbers below it are exact as floats."""
_NOTHING: frozenset[Tokens] = frozenset(
    {
        (),
        ("-1",),
        ("none",),
        ("0",),
        ("1",),
    }
)
"""Outputs that say no more than that there is nothing, or yes and no."""
_NO_ANSWER: frozenset[Tokens] = frozenset({(), ("-1",)})
"""Outputs without words that say that there is no answer."""
_FLAGS = frozenset({"true", "false", "yes", "no", "none", "", "0", "1", "-1"})
"""Words one of which every second program gives."""
_SMALL = 10
"""Largest number that is likely to be given by an unrelated program."""
_SHORT = 2
"""Characters of a word of which the same holds."""
_FEW_LABELS = 3
"""Most different outputs of a classification."""
_LONGEST_LABEL = 3
"""Most tokens of one of its labels."""
_FLAG_CHANCE = 0.5
"""How often an unrelated program gives the same of two labels."""
_SMALL_CHANCE = 0.25
"""How often it gives the same number of one digit."""
_OTHER_CHANCE = 0.06
"""How often it gives the same of anything else."""
_MOST_CHANCE = 0.99
"""Chance beyond which equal outputs say no less: it keeps the evidence above zero."""
_COSTS = {
    "same": 0.0,
    "with other words": 3.0,
    "without their number": 2.0,
    "joined": 2.0,
    "rounded": 1.0,
}
"""Bits subtracted from the evidence, by the way in which outputs agree."""
_MOST_DECIMALS = 3
"""Most digits behind the point of numbers that are taken for rounded ones."""
_ROUNDED_BY = 0.51
"""How far a rounded number may be from another, in units of its last digit."""
_DIGITS_KEPT = 1e-4
"""How far it may be in any case, as tokens keep five digits."""

_KINDS_OF_LISTS = {
    "n": "N",
    "s": "S",
    "N": "T",
    "S": "R",
    "E": "T",
}
"""Kind of a list, by that of its items."""


def kind_of(values: Sequence[Any]) -> str:
    """Return the kind of all values of an input, as a letter.

    `n` a number, `N` a list of them, `T` a list of lists, `s` a text, `S` texts, `R` lists of
    texts, `b` a flag, `E` only empty lists, `x` anything else.
    """
    kinds = {_kind_of_one(value) for value in values}
    # An empty list may be one of any kind.
    if kinds != {"E"}:
        kinds.discard("E")
    return kinds.pop() if len(kinds) == 1 else "x"


def _kind_of_one(value: object) -> str:
    # A bool is an int as well, so it comes first.
    if isinstance(value, bool):
        return "b"
    if isinstance(value, int | float):
        return "n"
    if isinstance(value, str):
        return "s"
    if not isinstance(value, list):
        return "x"
    if not value:
        return "E"
    return _KINDS_OF_LISTS.get(kind_of(value), "x")


def tokens_of_value(value: object) -> Tokens:
    """Return the tokens of a value that a function returned.

    Lists, tuples and dicts are flattened.
    """
    tokens: list[str] = []
    _flatten(value, tokens)
    return tuple(tokens)


def tokens_of_text(text: str) -> Tokens:
    """Return the tokens of what a program printed, without the numbers of cases."""
    return tuple(map(_normal, _TOKEN.findall(_CASE.sub("", text))))


def tokens_of_json(text: str) -> Tokens:
    """Return the tokens of an expected value in JSON; if it is not JSON, of its text."""
    try:
        return tokens_of_value(parse_json(text))
    except (ValueError, RecursionError):
        return tokens_of_text(text)


def _flatten(value: object, tokens: list[str]) -> None:
    """Add the tokens of a value."""
    if isinstance(value, dict):
        for key, item in value.items():
            _flatten(key, tokens)
            _flatten(item, tokens)
    elif isinstance(value, list | tuple):
        for item in value:
            _flatten(item, tokens)
    elif isinstance(value, str):
        tokens.extend(tokens_of_text(value))
    else:
        tokens.append(_normal(str(value)))


def _normal(token: str) -> str:
    """Return a token as it is compared: numbers in one way of writing, yes and no in lower case."""
    try:
        number = float(token)
    except ValueError:
        return _normal_word(token)
    # Python takes `nan` and `1_000` for numbers, the authors of tests do not.
    if not math.isfinite(number) or "_" in token:
        return _normal_word(token)
    if number == int(number) and abs(number) < _LARGEST_EXACT:
        # A leading zero is a digit of a text.
        return token if _LEADING_ZERO.fullmatch(token) else str(int(number))
    # Programs print as many digits of a fraction as they like; a large whole number is exact as
    # written.
    return token if _WHOLE.fullmatch(token) else f"{number:.5g}"


def _normal_word(word: str) -> str:
    """Return a word as it is compared; of other words than yes and no, capitals may matter."""
    lowered = word.lower()
    return lowered if lowered in _FLAGS else word


def shapes_of(outputs: Iterable[Tokens]) -> frozenset[str]:
    """Return what outputs look like: `whole`, `decimal`, `numbers`, `words`.

    Outputs that say no more than that there is nothing, or yes and no, are left out.
    """
    shapes = {_shape_of(output) for output in outputs if output not in _NOTHING}
    return frozenset(shapes)


def _shape_of(output: Tokens) -> str:
    if not all(map(_NUMBER.fullmatch, output)):
        return "words"
    if len(output) > 1:
        return "numbers"
    return "whole" if _WHOLE.fullmatch(output[0]) else "decimal"


class Agreement(NamedTuple):
    """How far two programs' outputs agree."""

    agreed: tuple[bool, ...]
    """Whether the outputs are equal, for each input in order."""
    bits: float
    """Evidence: minus the binary logarithm of the chance that unrelated programs agree as far."""
    how: str
    """How outputs were compared.

    `same`, as they are; `with other words`, after renaming labels one to one; `without their
    number`, where one begins with how many tokens follow; `joined`, without blanks; `rounded`.
    """

    @property
    def share(self) -> float:
        """Share of inputs on which the outputs agree, 0 to 1; 0 without inputs."""
        if not self.agreed:
            return 0.0
        return sum(self.agreed) / len(self.agreed)


class _Matching(NamedTuple):
    """A way to compare two programs' outputs, and its answer for each input."""

    how: str
    agreed: list[bool]
    tells: list[bool]
    """Whether an agreement is evidence."""


def compare(
    one: Outputs,
    other: Outputs,
    *,
    chance: float = 0.0,
    how: str = "",
) -> Agreement:
    """Return how far two programs' outputs on the same inputs agree.

    Outputs are compared in several ways; the way in which they agree most counts.

    Args:
        one: a program's outputs, one per input.
        other: the other program's.
        chance: the share of unrelated programs that agree on an input, where it was measured.
        how: `how` of the agreement on other inputs, if any: the same renaming costs no further
            bits.
    """
    chances = _chances_of(one, chance)
    matchings = [_match("same", one, other)]
    # Other ways cost evidence, so they are only tried where outputs differ.
    if not all(matchings[0].agreed):
        matchings.append(_relabel(one, other))
        matchings += _match_otherwise(one, other)
    agreements = []
    for matching in matchings:
        bits = _count_bits(matching, chances)
        if matching.how != how:
            bits -= _COSTS[matching.how]
        agreements.append(
            Agreement(
                tuple(matching.agreed),
                bits,
                matching.how,
            )
        )
    return max(agreements, key=lambda agreement: (sum(agreement.agreed), agreement.bits))


def _match(
    how: str,
    one: Outputs,
    other: Outputs,
) -> _Matching:
    """Compare outputs as they are."""
    same = []
    for output, other_output in zip(one, other, strict=True):
        same.append(output is not None and output == other_output)
    return _Matching(how, same, [True] * len(one))


def _match_otherwise(one: Outputs, other: Outputs) -> list[_Matching]:
    """Compare outputs that are written in another way, where they may be."""
    matchings = []
    if _have_numbers_of_items(one) != _have_numbers_of_items(other):
        how = "without their number"
        matchings.append(_match(how, _without_first(one), _without_first(other)))
    if any(_differ_in_length(*pair) for pair in zip(one, other, strict=True)):
        matchings.append(_match("joined", _join(one), _join(other)))
    decimals = min(_count_decimals(one), _count_decimals(other))
    if 0 < decimals <= _MOST_DECIMALS:
        agreed = []
        for output, other_output in zip(one, other, strict=True):
            agreed.append(_are_close(output, other_output, decimals))
        matchings.append(_Matching("rounded", agreed, [True] * len(one)))
    return matchings


def _have_numbers_of_items(outputs: Outputs) -> bool:
    """Whether each output begins with the number of its other tokens."""
    known = [output for output in outputs if output is not None]
    if not any(len(output) > 1 for output in known):
        return False
    return all(output and output[0] == str(len(output) - 1) for output in known)


def _without_first(outputs: Outputs) -> Outputs:
    """Return outputs without the number of their other tokens, if they begin with it."""
    if not _have_numbers_of_items(outputs):
        return outputs
    return [output and output[1:] for output in outputs]


def _differ_in_length(output: Tokens | None, other: Tokens | None) -> bool:
    if output is None or other is None:
        return False
    return len(output) != len(other)


def _join(outputs: Outputs) -> Outputs:
    """Return outputs as one token each."""
    return [output and ("".join(output),) for output in outputs]


def _count_decimals(outputs: Outputs) -> int:
    """Return the most digits behind the point of any number."""
    most = 0
    for output in outputs:
        for token in output or ():
            if _NUMBER.fullmatch(token) and "e" not in token:
                most = max(most, len(token.partition(".")[2]))
    return most


def _are_close(
    output: Tokens | None,
    other: Tokens | None,
    decimals: int,
) -> bool:
    """Whether outputs are the same where their numbers are rounded."""
    if output is None or other is None or len(output) != len(other):
        return False
    for token, other_token in zip(output, other, strict=True):
        if token == other_token:
            continue
        if not _NUMBER.fullmatch(token) or not _NUMBER.fullmatch(other_token):
            return False
        number = float(token)
        allowed = max(_ROUNDED_BY * 10**-decimals, _DIGITS_KEPT * abs(number))
        if abs(number - float(other_token)) > allowed:
            return False
    return True


def is_outside(output: Tokens, known: Iterable[Tokens]) -> bool:
    """Whether an output says that there is no answer, and none of the known ones does.

    Then the input is none that the problem allows.
    """
    is_word = bool(output) and _shape_of(output) == "words"
    if not is_word and output not in _NO_ANSWER:
        return False
    for other in known:
        if other == output or (is_word and other and _shape_of(other) == "words"):
            return False
    return True


def _chances_of(outputs: Outputs, measured: float) -> list[float]:
    """Return for each output the chance that an unrelated program gives the same."""
    least = measured
    # Of two or three labels every program gives one, whatever words they are.
    if are_labels([output for output in outputs if output is not None]):
        least = max(measured, _FLAG_CHANCE)
    counts = Counter(outputs)
    chances = []
    for output in outputs:
        # What a program often gives, it may give always.
        # Less one: an output that was given once is no habit.
        often = (counts[output] - 1) / len(outputs)
        chances.append(
            max(
                chance_of(output or ()),
                often,
                least,
            )
        )
    return chances


def _count_bits(matching: _Matching, chances: Sequence[float]) -> float:
    """Return the evidence, in bits, of the outputs that agree and say something."""
    bits = []
    columns = zip(
        chances,
        matching.agreed,
        matching.tells,
        strict=True,
    )
    for chance, is_equal, is_telling in columns:
        if is_equal and is_telling:
            bits.append(-math.log2(min(chance, _MOST_CHANCE)))
    return float(sum(bits))


def chance_of(output: Tokens) -> float:
    """Return how often an unrelated program gives this output."""
    if len(output) > 1:
        return _OTHER_CHANCE
    word = output[0] if output else ""
    if word in _FLAGS:
        return _FLAG_CHANCE
    try:
        is_small = abs(float(word)) <= _SMALL
    except ValueError:
        is_small = len(word) <= _SHORT
    return _SMALL_CHANCE if is_small else _OTHER_CHANCE


def is_small(output: Tokens) -> bool:
    """Whether an output is one small number, or a word that says no more than yes and no."""
    return len(output) <= 1 and chance_of(output) > _OTHER_CHANCE


def _relabel(one: Outputs, other: Outputs) -> _Matching:
    """Compare outputs as labels that may have other names: each label is matched with one other.

    The first match of two labels is an assumption and no evidence; later ones confirm it.
    """
    matched: dict[Tokens | None, Tokens | None] = {}
    taken: set[Tokens | None] = set()
    agreed = []
    tells = []
    for output, other_output in zip(one, other, strict=True):
        if not _is_label(output) or not _is_label(other_output):
            agreed.append(output is not None and output == other_output)
            tells.append(True)
            continue
        # One to one: another label for each.
        is_new = output not in matched and other_output not in taken
        if is_new:
            matched[output] = other_output
            taken.add(other_output)
        agreed.append(output in matched and matched[output] == other_output)
        # The first match of two labels is an assumption, which later ones confirm.
        tells.append(not is_new)
    return _Matching("with other words", agreed, tells)


def are_labels(outputs: Sequence[Tokens]) -> bool:
    """Whether outputs look like a classification: three labels at most, and more outputs than
    that."""
    if not len(set(outputs)) <= _FEW_LABELS < len(outputs):
        return False
    return all(map(_is_label, outputs))


def _is_label(output: Tokens | None) -> bool:
    """Whether an output may be a label: a few words without digits."""
    if output is None:
        return False
    if output in _NOTHING:
        return True
    if len(output) > _LONGEST_LABEL:
        return False
    return not any(map(str.isdigit, "".join(output)))

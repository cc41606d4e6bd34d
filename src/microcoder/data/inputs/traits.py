"""Says what is special about an input: which bounds it meets, what repeats in it, what touches.

A mistake shows on inputs of one kind. Which kind is not known beforehand, so that tests are chosen
to have, together, every trait that any of the made ones has.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from microcoder.data.inputs.finding import INTEGER

_MOST_LINES = 200
"""Lines of an input that are looked at."""
_MOST_COLUMNS = 4
"""Columns that are looked at by themselves; all further tokens are one column."""
_MOST_TOKENS = 40
"""Tokens that are looked at for pairs that touch."""
_BRACKETS = str.maketrans('[]{}",', " " * 6)
"""What stands between the values of a function's arguments."""
Trait = tuple[str, ...]
"""A name, and where or of what."""


class Pair(NamedTuple):
    """An input and its answer."""

    input: str
    output: str


def find_traits(pairs: Sequence[Pair]) -> list[list[Trait]]:
    """Return the traits of every pair, sorted; which number is the largest depends on the rest."""
    tables = [_read_columns(pair.input) for pair in pairs]
    least: dict[str, int] = {}
    largest: dict[str, int] = {}
    for table in tables:
        for column, tokens in table.items():
            numbers = _numbers_of(tokens)
            if numbers:
                least[column] = min(numbers[0], *numbers, least.get(column, numbers[0]))
                largest[column] = max(numbers[0], *numbers, largest.get(column, numbers[0]))
    num_with = Counter(pair.output.strip() for pair in pairs)
    found = []
    for pair, table in zip(pairs, tables, strict=True):
        traits = _traits_of_output(pair, num_with)
        for column, tokens in table.items():
            numbers = _numbers_of(tokens)
            if numbers:
                traits |= _traits_of_numbers(column, numbers, least[column], largest[column])
            else:
                traits |= _traits_of_words(column, tokens)
        traits |= _traits_of_pairs(table)
        found.append(sorted(traits))
    return found


def _read_columns(text: str) -> dict[str, list[str]]:
    """Return the tokens by column: those of the first line apart, then each column of the rest.

    The tokens of a long line are a column, too.
    """
    columns: dict[str, list[str]] = {}
    for number, line in enumerate(text.split("\n")[:_MOST_LINES]):
        tokens = line.translate(_BRACKETS).split()
        is_list = len(tokens) > _MOST_COLUMNS
        for place, token in enumerate(tokens):
            column = "list" if is_list else str(place)
            # Letters and numbers of one place are two columns.
            kind = "number" if INTEGER.fullmatch(token) else "word"
            columns.setdefault(f"{min(number, 1)}/{column}/{kind}", []).append(token)
    return columns


def _numbers_of(tokens: Sequence[str]) -> list[int]:
    if not INTEGER.fullmatch(tokens[0]):
        return []
    return list(map(int, tokens))


def _size_of(number: int) -> str:
    """Return about how large a number is: by the digits of its half as a rule."""
    sign = "-" if number < 0 else ""
    return f"{sign}{abs(number).bit_length()}"


def _traits_of_numbers(
    column: str,
    numbers: list[int],
    least: int,
    largest: int,
) -> set[Trait]:
    """Return the traits of a column of numbers."""
    traits: set[Trait] = {
        ("count", column, _size_of(len(numbers))),
        ("largest", column, _size_of(max(numbers))),
        ("least", column, _size_of(min(numbers))),
        ("sum", column, _size_of(sum(numbers))),
    }
    has = {
        "bound above": max(numbers) == largest,
        "bound below": min(numbers) == least,
        "near bound": largest - 1 in numbers,
        "only bound above": min(numbers) == largest,
        "only bound below": max(numbers) == least,
        "zero": 0 in numbers,
        "one": 1 in numbers,
        "odd and even": len({number % 2 for number in numbers}) > 1,
    }
    if len(numbers) > 1:
        steps = [after - before for before, after in pairwise(numbers)]
        counted = Counter(numbers)
        has |= {
            "all equal": len(counted) == 1,
            "all differ": len(counted) == len(numbers),
            "one repeats": len(counted) == len(numbers) - 1,
            "largest twice": counted[max(numbers)] > 1,
            "least twice": counted[min(numbers)] > 1,
            "largest first": numbers[0] == max(numbers),
            "largest last": numbers[-1] == max(numbers),
            "least first": numbers[0] == min(numbers),
            "least last": numbers[-1] == min(numbers),
            "rising": min(steps) >= 0,
            "falling": max(steps) <= 0,
            "equal neighbours": 0 in steps,
            "neighbours by one": 1 in steps or -1 in steps,
        }
    traits.update((name, column) for name, is_so in has.items() if is_so)
    return traits


def _traits_of_words(column: str, words: Sequence[str]) -> set[Trait]:
    """Return the traits of a column of words."""
    lengths = list(map(len, words))
    traits: set[Trait] = {
        ("count", column, _size_of(len(words))),
        ("longest", column, _size_of(max(lengths))),
        ("shortest", column, _size_of(min(lengths))),
        ("different", column, _size_of(len(set(words)))),
    }
    commonest = Counter(words).most_common(1)[0][1]
    traits.add(("commonest", column, _size_of(commonest)))
    for word in words[:_MOST_TOKENS]:
        traits.add(("letters", column, _size_of(len(set(word)))))
        if len(word) > 1:
            ends = "same ends" if word[0] == word[-1] else "other ends"
            traits.add((ends, column))
            if word == word[::-1]:
                traits.add(("palindrome", column))
            runs = sum(before == after for before, after in pairwise(word))
            traits.add(("runs", column, _size_of(runs)))
    return traits


def _traits_of_pairs(table: dict[str, list[str]]) -> set[Trait]:
    """Return how the numbers of two columns compare: in a row, and with those of other rows."""
    traits: set[Trait] = set()
    numbers = {}
    for column, tokens in table.items():
        if _numbers_of(tokens):
            numbers[column] = _numbers_of(tokens)[:_MOST_TOKENS]
    names = sorted(numbers)
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            left, right = numbers[first], numbers[second]
            for one, other in zip(left, right, strict=False):
                sign = (one > other) - (one < other)
                is_next = abs(one - other) == 1
                traits.add(("compares", first, second, str(sign), str(is_next)))
            shared = set(left) & set(right)
            traits.add(("shared", first, second, _size_of(len(shared))))
    return traits


def _traits_of_output(pair: Pair, num_with: Counter[str]) -> set[Trait]:
    """Return the traits of an answer."""
    output = pair.output.strip()
    traits: set[Trait] = {("output length", _size_of(len(output)))}
    # Few answers are names of cases.
    if num_with[output] > 1:
        traits.add(("output", output[:100]))
    tokens = output.split()
    for token in tokens[:_MOST_COLUMNS]:
        if INTEGER.fullmatch(token):
            traits.add(("output size", _size_of(int(token))))
    if tokens and tokens[0] in pair.input.split():
        traits.add(("output is in input",))
    return traits

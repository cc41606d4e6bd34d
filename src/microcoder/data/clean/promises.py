"""Compares the inputs of tests with the ranges that a statement promises.

A range is met by its name: a parameter of the function (`nums`, `nums.length`, `nums[i]`), or one
of the numbers that the first line of an input holds ("The first line contains n and m").

A number beyond the end of a range says that the end lost its superscript where that explains it,
105 for 10 to the 5th. Else the test is left out, as long as enough others stay. Tests that a
package's validators vouch for are not looked at.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from microcoder.data.clean.bounds import (
    SHORT_WORDS,
    Bound,
    list_bounds,
    list_worded_bounds,
    parse_bounds,
    plain_formulae,
)
from microcoder.data.clean.powers import LOST_IN
from microcoder.data.clean.sections import split
from microcoder.data.formats.candidates import Candidate
from microcoder.data.formats.values import is_number, read_json
from microcoder.judge.core.signatures import arguments_of, find_head
from microcoder.judge.core.types import TestCase

_PATH = re.compile(
    r"(?P<name>[^\W\d]\w*)(?P<places>(?:\[\w+\]){0,3})(?P<length>\.(?:length|size))?"
)
"""A range's name: a parameter, an item of it, or the length of either."""
_FIRST_LINE = re.compile(
    r"\bfirst line(?: of (?:the |each )?input)?"
    r"(?: (?:contains|has|holds|consists of|gives|is|there (?:is|are))\b|:)"
    r"(?P<said>[^.\n]{1,200}(?:\n[^.\n]{1,200})?)",
    re.IGNORECASE,
)
"""What a statement says of the first line of an input."""
_IN_FIRST_LINE = re.compile(
    r"(?:^|[.:]\s)(?P<said>[^.\n]{1,80}?) (?:(?:is|are) (?:given |written )?)?"
    r"(?:in|on) (?:the|its) first line\b",
    re.IGNORECASE | re.MULTILINE,
)
"""The same the other way round: "an integer n is given in the first line"."""
_FORM = re.compile(
    r"\bformat\b[^\n]{0,60}:?\s*(?:```[^\n]*)?\n(?P<line>[^\n`]{1,80})\n", re.IGNORECASE
)
"""The first line of an input's form, as AtCoder shows it."""
_FORM_NAMES = re.compile(r"(?:\$?\\?[A-Za-z](?:_?[a-z0-9])?\$?[ \t]*){1,6}")
_NAME = re.compile(r"(?<![\w\\^])[A-Za-z](?:_?[a-z0-9])?(?![\w(])")
"""A short name of a number."""
_IN_BRACKETS = re.compile(
    r"\([^()]*\)|\[[^\[\]]*\]|(?:,? where |;|, separated | - |: ).*", re.DOTALL
)
_INTEGER = re.compile(r"-?\d{1,30}")
_LONGEST = 1 << 22
"""Characters of an input; of longer ones nothing is read."""
_CONDITION = r"\b(?:for|if|where|when|except|unless|or|otherwise|all but)\b"
"""Words of a line whose range does not hold everywhere."""
_SUBTASKS = re.compile(r"\bsub-?tasks?\b|\btest groups?\b", re.IGNORECASE)
"""Words of a statement whose ranges may hold for a part of the tests."""
_POWER = re.compile(r"(?P<base>10|2)(?P<exponent>[1-9]\d?)")
"""An end of a range that may have lost its superscript."""
_ROUND = (20, 21, 22, 25, 26)
"""Ends of ranges that people write as they are: 20 is a round number, 26 that of letters."""
_LEAST_INSIDE = 5
"""Fewest tests that stay where others are left out (our choice)."""
STEP = "check_bounds/1"
"""Name and version of the step in the lineage of a candidate."""
FLAG = "tests_outside_bounds"
"""Flag of a row with tests outside its ranges, of which too few would be left without them."""


class Outside(NamedTuple):
    """A number of a test that is outside the range that the statement promises."""

    test: int
    """Index of the test."""
    bound: Bound
    value: float


def find_outside(candidate: Candidate) -> list[Outside]:
    """Return the first number of each test and range that is outside it."""
    bounds = _bounds_of(candidate.statement)
    if not bounds or candidate.assertions is not None:
        return []
    # A package's validators know more than a text.
    if any(program.role == "validator" for program in candidate.kit.programs):
        return []
    if candidate.fn_name is None:
        names = _names_of_first_line(candidate.statement, bounds)
        return _outside_lines(candidate.tests, names, bounds) if names else []
    head = find_head(candidate.starter_code or "", candidate.fn_name)
    if head is None:
        return []
    names = [argument.arg for argument in arguments_of(head)]
    return _outside_calls(candidate.tests, names, bounds)


def _bounds_of(statement: str) -> dict[str, Bound]:
    """Return the ranges that a statement promises without a condition, by their name.

    None of a statement with subtasks, and none of a name that has several ranges.
    """
    if _SUBTASKS.search(statement):
        return {}
    num_ranges = Counter(bound.name for bound in set(list_bounds(statement)))
    sections = split(statement)
    # Elsewhere a range may say what is to be done: "Orange if 30 < timer <= 90".
    promised = sections.constraints or sections.input
    text = plain_formulae(promised)
    bounds = {}
    for bound in parse_bounds(promised):
        name = re.escape(bound.name)
        is_size = f"|{bound.name}|" in text
        if num_ranges[bound.name] > 1:
            continue
        if not is_size and not re.search(rf"{name}[^\n]*{_CONDITION}", text):
            bounds[bound.name] = bound
    worded = Counter(bound.name for bound in list_worded_bounds(sections.input))
    for bound in list_worded_bounds(promised):
        if num_ranges[bound.name] == 0 and worded[bound.name] <= 1:
            bounds[bound.name] = bound
    return bounds


def _outside_calls(
    tests: Sequence[TestCase],
    names: Sequence[str],
    bounds: Mapping[str, Bound],
) -> list[Outside]:
    outside = []
    for number, test in enumerate(tests):
        lines = [line for line in test.input.split("\n") if line.strip()]
        if len(test.input) > _LONGEST or len(lines) != len(names):
            continue
        try:
            values = dict(zip(names, map(read_json, lines), strict=True))
        except ValueError:
            continue
        for bound in bounds.values():
            for value in _values_at(bound.name, values):
                if not bound.low <= value <= bound.high:
                    outside.append(Outside(number, bound, value))
                    break
    return outside


def _values_at(name: str, values: Mapping[str, Any]) -> Iterator[float]:
    """Yield the numbers of a call that a range's name stands for; none if it is no such name."""
    path = _PATH.fullmatch(name)
    if path is None or path["name"] not in values:
        return
    found = [values[path["name"]]]
    for place in re.findall(r"\w+", path["places"]):
        if not all(isinstance(value, list) for value in found):
            return
        found = list(chain.from_iterable(_items_at(value, place) for value in found))
    for value in found:
        if path["length"]:
            if isinstance(value, list | str):
                yield len(value)
        elif is_number(value):
            yield value


def _items_at(value: Sequence[Any], place: str) -> Sequence[Any]:
    """Return the item at a place, or all where the place is a name."""
    if not place.isdecimal():
        return value
    return value[int(place) : int(place) + 1]


def _names_of_first_line(statement: str, bounds: Mapping[str, Bound]) -> list[str]:
    """Return the names of the numbers in an input's first line; empty if they are not said."""
    given = split(statement).input
    form = _FORM.search(given)
    if form is not None and _FORM_NAMES.fullmatch(form["line"].strip()):
        return plain_formulae(form["line"]).split()
    said = _FIRST_LINE.search(given) or _IN_FIRST_LINE.search(given)
    if said is None:
        return []
    text = _IN_BRACKETS.sub(" ", plain_formulae(said["said"]))
    names = [
        name for name in _NAME.findall(text) if name.lower() not in SHORT_WORDS or name in bounds
    ]
    return list(dict.fromkeys(names))


def _outside_lines(
    tests: Sequence[TestCase],
    names: Sequence[str],
    bounds: Mapping[str, Bound],
) -> list[Outside]:
    outside = []
    for number, test in enumerate(tests):
        line = test.input.lstrip("\n").partition("\n")[0]
        words = line.split()
        # Where a line holds something else than was read of the statement, nothing is said.
        if len(words) != len(names) or not all(map(_INTEGER.fullmatch, words)):
            continue
        for name, word in zip(names, words, strict=True):
            bound = bounds.get(name)
            if bound is not None and not bound.low <= int(word) <= bound.high:
                outside.append(Outside(number, bound, int(word)))
    return outside


def keep_promises(candidate: Candidate) -> Candidate:
    """Return a candidate whose tests and ranges agree, as far as they can be brought to.

    Ends that lost their superscript get it back, and tests outside a range are left out. Where too
    few tests would stay, the row is flagged.
    """
    candidate = _restore_by_tests(candidate, find_outside(candidate))
    outside = find_outside(candidate)
    if not outside:
        return candidate
    numbers = {item.test for item in outside}
    first = outside[0]
    detail = f"{len(numbers)} of {len(candidate.tests)} tests: {first.bound.name} = {first.value:g}"
    if len(candidate.tests) - len(numbers) < _LEAST_INSIDE:
        flags = tuple(sorted({*candidate.flags, FLAG}))
        return candidate.change("process", STEP, detail, flags=flags)
    inside = [number for number in range(len(candidate.tests)) if number not in numbers]
    flags = tuple(sorted({*candidate.flags, "tests_dropped"}))
    return candidate.change(
        "process",
        STEP,
        f"{detail}; left out",
        tests=tuple(candidate.tests[number] for number in inside),
        groups=tuple(candidate.groups[number] for number in inside) if candidate.groups else (),
        flags=flags,
    )


def _restore_by_tests(candidate: Candidate, outside: Sequence[Outside]) -> Candidate:
    """Return a candidate with those powers put back that the tests show to be lost."""
    largest: dict[Bound, float] = {}
    for item in outside:
        largest[item.bound] = max(item.value, largest.get(item.bound, item.value))
    lines = candidate.statement.split("\n")
    why = []
    for bound, value in largest.items():
        power = _find_lost(bound, value, has_lost_all=candidate.dataset in LOST_IN)
        if power is None:
            continue
        why.append(f"a test has {bound.name} = {value:g}")
        end = re.compile(rf"(?<![\w.^]){bound.high:.0f}(?![\w.^])")
        for number, line in enumerate(lines):
            # Elsewhere, as in an example, the same digits are data.
            if bound in parse_bounds(line):
                lines[number] = end.sub(power, line)
    return candidate.change("process", STEP, "; ".join(why), statement="\n".join(lines))


def _find_lost(
    bound: Bound,
    value: float,
    *,
    has_lost_all: bool,
) -> str | None:
    """Return the power that the end of a range was, by the largest value of a test; else None.

    Args:
        has_lost_all: whether its data set has lost all superscripts.
    """
    found = _POWER.fullmatch(f"{bound.high:.0f}")
    if found is None or value <= bound.high or bound.high in _ROUND:
        return None
    base = int(found["base"])
    exponent = int(found["exponent"])
    # 250 is a round number, and nobody writes 10^1.
    is_round = exponent == 1 or (base == 2 and exponent % 5 == 0 and not has_lost_all)
    if is_round or value > base**exponent:
        return None
    return f"{base}^{exponent}"

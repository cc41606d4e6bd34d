"""Compare an output with the expected one: pure functions, no guessing.

docs/comparison.md has the whole table.

| checker     | accepts                                                                           |
|-------------|-----------------------------------------------------------------------------------|
| `exact`     | the same text, one newline at the end more or less                                |
| `tokens`    | the same tokens between any white space                                           |
| `float`     | token by token, or value by value; two numbers within the tolerance, else equal   |
| `unordered` | the same lines, or tokens, in any order, each as often as expected                |
| `default`   | the first of the seven below that accepts; the verdict names it                   |

| method        | what may differ from the expected output                                        |
|---------------|---------------------------------------------------------------------------------|
| `exact`       | one newline at the end                                                          |
| `lines`       | a byte order mark, CRLF, white space at line ends, blank lines before and after |
| `tokens`      | any white space between tokens                                                  |
| `numeric`     | how a number is written; a real one within the bounds of `text.py`,             |
|               | an integer exactly                                                              |
| `words`       | the letter case of `yes`, `no`, `true`, `false`, on lines of such words and     |
|               | numbers alone                                                                   |
| `value`       | how one list, tuple, set, dict or string is written: spacing, line breaks,      |
|               | quotes, `None`/`null`                                                           |
| `value_lines` | the same, line by line                                                          |

Order and number of tokens always matter; a set is a set only if the expected output is written as
one; extra output is wrong. Comparisons in order end at the first difference.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice, zip_longest

from microcoder.judge.compare.literals import same_literal
from microcoder.judge.compare.text import (
    WHITE_SPACE,
    Agree,
    Tolerance,
    agree_in_step,
    all_lines,
    count_tokens,
    is_number,
    lines,
    never,
    normalise,
    numbers_agree,
    numbers_agree_within,
    same_lines,
    split,
    tokens,
    tokens_agree,
    without_zero_fraction,
)
from microcoder.judge.compare.values import (
    ValueRules,
    find_difference,
    rules_for,
    stated_tolerance,
)
from microcoder.judge.core.types import Checker

# A double ends near 1e308: a longer integer would become infinity.
_MAX_DIGITS = 300
"""Longer integers are compared as text instead of within a tolerance."""

Unit = tuple[str, ...]
"""The tokens of a line, or one token."""


def find_unordered_difference(text: str, wanted: str, checker: Checker) -> str:
    """Compare lines or tokens without regard to order.

    Return a message about the first that is missing or not expected; empty if there is none.
    """
    units = _lines if checker.by == "lines" else _tokens
    expected = Counter(units(wanted, checker.case_sensitive))
    # Within a tolerance there is no common spelling to count by: units are paired instead.
    tolerance = stated_tolerance(checker)
    if tolerance is not None:
        num_wanted = expected.total()
        # One more than expected is enough to know: a hostile output has millions.
        found = list(islice(units(text, checker.case_sensitive), num_wanted + 1))
        if len(found) != num_wanted:
            num_found = "more" if len(found) > num_wanted else len(found)
            return f"in any order: expected {num_wanted} {checker.by}, got {num_found}"
        rules = replace(ValueRules(), tolerance=tolerance, is_unordered=True)
        return find_difference(_read(found), _read(expected.elements()), rules)
    for unit in units(text, checker.case_sensitive):
        if not expected[unit]:
            return f"in any order: unexpected {' '.join(unit)!r:.80}"
        expected[unit] -= 1
    for unit, num_left in expected.items():
        if num_left:
            return f"in any order: missing {' '.join(unit)!r:.80}"
    return ""


def _lines(text: str, is_case_sensitive: bool) -> Iterator[Unit]:
    for line in lines(text):
        plain = line if is_case_sensitive else line.casefold()
        words = split(plain)
        # Only with a point can a token have another spelling, so most lines are spared the work.
        if "." in plain:
            words = map(_canonical, words)
        yield tuple(words)


def _tokens(text: str, is_case_sensitive: bool) -> Iterator[Unit]:
    for token in tokens(text):
        plain = token if is_case_sensitive else token.casefold()
        yield (_canonical(plain),)


def _canonical(token: str) -> str:
    """Return the same spelling for integers that compare as equal, such as `3` and `3.0`."""
    return without_zero_fraction(token) if "." in token else token


def _read(units: Iterable[Unit]) -> list[object]:
    """Return units as values, to compare them within a tolerance."""
    return [list(map(_read_token, unit)) for unit in units]


def _read_token(token: str) -> float | str:
    if len(token) <= _MAX_DIGITS and is_number(token):
        return float(token)
    return token


_DEFAULT = Checker()
"""The checker of problems that name none."""
_MAX_DETAIL = 200
"""Most characters of a message."""
_MAX_QUOTED = 60
"""Most characters that a message quotes of a line or token."""
# An expected output may be one character: by its length alone, padding would be refused.
_ALWAYS_READ = 1 << 20
"""An output of up to so many characters is always compared."""
_MOST_TIMES_LONGER = 16
"""A longer output is rejected uncompared if it exceeds the bound above by more than this.

It is counted in lengths of the expected output. A right output is longer only by padding,
indentation or digits.
"""

_WORDS = frozenset(("yes", "no", "true", "false"))
"""Answers whose letter case is free."""
_ANY_VALUE = re.compile("[\\[({\"']")
"""A sign that a text may write a container or a string."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a comparison: whether the output is right, and which method found that."""

    accepted: bool
    method: str
    """The method that accepted, empty when none did."""
    detail: str
    """The first difference, for a human.

    It may show the expected output, so it must not reach the program.
    """


def compare_output(
    output: str,
    expected: str,
    checker: Checker = _DEFAULT,
) -> Comparison:
    """Compare a program's stdout with the expected output.

    Raises:
        ValueError: the checker is a program, which only a sandbox can run.
    """
    if checker.type == "program":
        raise ValueError('checker type "program" is run in the sandbox, see judge/run/checkers.py')
    # A program may print 16 MiB to make its judge slow.
    if len(output) > _ALWAYS_READ + _MOST_TIMES_LONGER * len(expected):
        return _reject(
            f"the output is {len(output)} characters long, the expected one {len(expected)}"
        )
    # On the raw text: `exact` allows nothing more, and most right outputs are accepted here at
    # once.
    if checker.type in ("exact", "default"):
        is_same = output.removesuffix("\n") == expected.removesuffix("\n")
        if is_same:
            return _accept("exact")
        # The comparison is over; what follows only finds words for a human.
        if checker.type == "exact":
            return _reject(_first_difference(normalise(output), normalise(expected), never))
    text = normalise(output)
    wanted = normalise(expected)
    match checker.type:
        case "tokens":
            return _compare_tokens(text, wanted, checker)
        case "float":
            return _compare_floats(text, wanted, checker)
        case "unordered":
            difference = find_unordered_difference(text, wanted, checker)
            return _reject(difference) if difference else _accept("unordered")
    # The strictest method is tried first, so the verdict names how little had to be forgiven.
    method = _find_method(text, wanted)
    if method:
        return _accept(method)
    return _reject(_first_difference(text, wanted, _numbers_or_words_agree))


def _compare_tokens(text: str, wanted: str, checker: Checker) -> Comparison:
    agree = never if checker.case_sensitive else _same_word
    if tokens_agree(text, wanted, agree):
        return _accept("tokens")
    return _reject(_first_difference(text, wanted, agree))


def _compare_floats(text: str, wanted: str, checker: Checker) -> Comparison:
    agree = _float_agreement(checker)

    def lines_agree(line: str, other: str) -> bool:
        return tokens_agree(line, other, agree)

    if tokens_agree(text, wanted, agree) or _find_value_method(text, wanted, agree, lines_agree):
        return _accept("float")
    return _reject(_first_difference(text, wanted, agree))


def compare_value(
    value: object,
    expected: object,
    checker: Checker = _DEFAULT,
) -> Comparison:
    """Compare a returned value with the expected one.

    For the rules see `values.find_difference`.
    """
    difference = find_difference(value, expected, rules_for(checker))
    return _reject(difference) if difference else _accept("value")


def _accept(method: str) -> Comparison:
    return Comparison(accepted=True, method=method, detail="")


def _reject(difference: str) -> Comparison:
    return Comparison(accepted=False, method="", detail=_one_line(difference))


def _find_method(text: str, wanted: str) -> str:
    """Return the first method of the table, from `lines` on, that accepts a normalised text.

    Empty if none does.
    """
    if same_lines(text, wanted):
        return "lines"
    if tokens_agree(text, wanted, never):
        return "tokens"
    if tokens_agree(text, wanted, numbers_agree):
        return "numeric"
    if _has_word(wanted) and agree_in_step(lines(text), lines(wanted), _words_on_a_line_agree):
        return "words"
    return _find_value_method(text, wanted, numbers_agree, _words_on_a_line_agree)


def _has_word(wanted: str) -> bool:
    """Whether any of the words occurs in the text, even inside another word: a fast first look."""
    # In the expected output alone: the judge chose it, not the program.
    plain = wanted.lower()
    return any(word in plain for word in _WORDS)


def _find_value_method(
    text: str,
    wanted: str,
    agree: Agree,
    lines_agree: Agree,
) -> str:
    """Return `value` if two texts write the same value, `value_lines` if they do line by line.

    Empty if neither.
    """
    # Most expected outputs are numbers and words: nothing to parse.
    if not _ANY_VALUE.search(wanted):
        return ""
    if same_literal(text, wanted, agree):
        return "value"
    # A single line was just compared whole.
    if "\n" not in wanted:
        return ""

    def agree_on_a_line(line: str, other: str) -> bool:
        return same_literal(line, other, agree) or lines_agree(line, other)

    is_right = agree_in_step(lines(text), lines(wanted), agree_on_a_line)
    return "value_lines" if is_right else ""


def _same_word(token: str, wanted: str) -> bool:
    return token.casefold() == wanted.casefold()


def _numbers_or_words_agree(token: str, wanted: str) -> bool:
    if wanted.lower() in _WORDS:
        return token.lower() == wanted.lower()
    return numbers_agree(token, wanted)


def _float_agreement(checker: Checker) -> Agree:
    """Return how tokens agree for the checker `float`."""
    tolerance = stated_tolerance(checker) or Tolerance(is_stated=True)

    def agree(token: str, wanted: str) -> bool:
        if numbers_agree_within(token, wanted, tolerance):
            return True
        # Letter case is free for words only: a number outside of the tolerance stays wrong.
        if checker.case_sensitive or is_number(wanted):
            return False
        return _same_word(token, wanted)

    return agree


def _words_on_a_line_agree(line: str, wanted: str) -> bool:
    """Whether two lines agree.

    Upper and lower case are the same if the wanted line has only numbers and words like `yes`.
    """
    if wanted.lower() in _WORDS:
        return line.rstrip(WHITE_SPACE).lower() == wanted.lower()
    is_answer = all(token.lower() in _WORDS or is_number(token) for token in tokens(wanted))
    agree = _numbers_or_words_agree if is_answer else numbers_agree
    return tokens_agree(line, wanted, agree)


def _first_difference(text: str, wanted: str, agree: Agree) -> str:
    """Return a message about the first difference between two normalised texts."""
    if not text and wanted:
        return f"no output, expected {_quote(wanted)}"
    # Blank lines count here, unlike in the comparison: so does the reader of the message.
    pairs = zip_longest(all_lines(text), all_lines(wanted))
    for number, (line, other) in enumerate(pairs, 1):
        if line is None:
            quoted = _quote(other.rstrip(WHITE_SPACE))
            return f"line {number}: expected {quoted}, the output ends ({number - 1} lines)"
        if other is None:
            quoted = _quote(line.rstrip(WHITE_SPACE))
            return f"line {number}: expected the end ({number - 1} lines), got {quoted}"
        if line != other and not tokens_agree(line, other, agree):
            return f"line {number}: {_difference_in_line(line, other, agree)}"
    if agree is never:
        return "only white space differs"
    # Each line agrees alone, such as `true story` with `True story`, where all together do not.
    return _first_difference(text, wanted, never)


def _difference_in_line(line: str, wanted: str, agree: Agree) -> str:
    num_wanted = count_tokens(wanted)
    # Not strict: a line with more tokens is what the last message below is about.
    pairs = zip(tokens(line), tokens(wanted), strict=False)
    for number, (token, other) in enumerate(pairs, 1):
        if token != other and not agree(token, other):
            where = f"token {number}: " if num_wanted > 1 else ""
            return f"{where}expected {_quote(other)}, got {_quote(token)}"
    return f"expected {num_wanted} tokens, got {count_tokens(line)}"


def _quote(text: str) -> str:
    """Return the beginning of a text on one line, in quotation marks."""
    # Cut first: escapes of a megabyte would be made for nothing.
    shown = text if len(text) <= _MAX_QUOTED else text[: _MAX_QUOTED - 3] + "..."
    return '"' + shown.encode("unicode_escape", "backslashreplace").decode() + '"'


def _one_line(text: str) -> str:
    # A lone surrogate in an output would make the message impossible to write as UTF-8.
    line = " ".join(text.split())
    line = line.encode("utf-8", "backslashreplace").decode()
    if len(line) <= _MAX_DETAIL:
        return line
    return line[: _MAX_DETAIL - 3] + "..."

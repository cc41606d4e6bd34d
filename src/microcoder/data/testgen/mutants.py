"""Makes wrong programs of accepted ones: each has one small mistake of a kind that people make.

Contest archives have few wrong submissions, and most sets none. A mutant stands in for them: tests
are chosen by the mutants that they catch. Programs are changed by their tokens, so that one list of
mistakes serves Python and the languages with C's operators.
"""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from microcoder.judge.core.files import take_in_turn
from microcoder.judge.core.types import Program

_MOST_BYTES = 1 << 16
"""Length of a program that is changed; a longer one is mostly tables."""
_TOKENS = r"""
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<word>long\s+long|[^\W\d]\w*)
    |(?P<number>\d[\w.]*)
    |(?P<sign><<=?|>>=?|[<>=!+\-*/%&|^]=|&&|\|\||\+\+|--|->|\*\*|//|[<>+\-*%!])
    """
"""Texts, which are left alone; words, numbers and signs."""
_COMMENTS = {
    "python": r"\#[^\n]*|\"\"\".*?\"\"\"|\'\'\'.*?\'\'\'",
    "cpp": r"//[^\n]*|/\*.*?\*/|^[ \t]*\#[ \t]*(?!define)[^\n]*",
}
"""What the languages skip. The `#define` of C++ is read, since types are shortened by it."""
_PATTERNS = {
    language: re.compile(comments + _TOKENS, re.VERBOSE | re.DOTALL | re.MULTILINE)
    for language, comments in _COMMENTS.items()
}
_OTHER_WORDS: Mapping[str, Sequence[str]] = {
    "min": ("max",),
    "max": ("min",),
    "and": ("or",),
    "or": ("and",),
    "any": ("all",),
    "all": ("any",),
    "True": ("False",),
    "False": ("True",),
    "true": ("false",),
    "false": ("true",),
    "lower_bound": ("upper_bound",),
    "upper_bound": ("lower_bound",),
    "bisect_left": ("bisect_right",),
    "bisect_right": ("bisect_left",),
}
"""Words that are taken for each other."""
_OTHER_SIGNS: Mapping[str, Sequence[str]] = {
    "<": ("<=",),
    "<=": ("<",),
    ">": (">=",),
    ">=": (">",),
    "==": ("!=",),
    "!=": ("==",),
    "+": ("-",),
    "-": ("+",),
    "*": ("+",),
    "&&": ("||",),
    "||": ("&&",),
    "+=": ("-=", "="),
    "-=": ("+=",),
}
"""Signs that are taken for each other."""
_WIDE = re.compile(r"long\s+long|int64_t")
"""Types that hold larger numbers than an int."""
_TEMPLATE_START = re.compile(r"\w<[\w\s:,*<>]*$")
"""What stands before the end of a template's arguments, as in `vector<int`."""
_TEMPLATE_END = re.compile(r"[\w:,*][\w\s:,*<>]*>")
"""What stands after their start."""
_LOST_LINES = {
    "python": re.compile(
        r"(?m)^[ \t]+(?P<lost>(?:[\w.]+(?:\[[^\n=]*\])?[ ]*[-+*|&^]?=(?!=)[^\n]*"
        r"|[\w.]+\.\w+\([^\n]*\)|(?:sys\.)?exit\([^\n]*\)|quit\(\)|return))[ \t\r]*$"
    ),
    "cpp": re.compile(
        r"(?m)^[ \t]+(?P<lost>[\w.]+(?:\[[^\n=]*\])?[ ]*[-+*|&^]?=(?!=)[^\n;]*"
        r"|[\w.]+\.\w+\([^\n;]*\)|exit\(0\)|[\w.]+(?:\+\+|--));"
    ),
}
"""Statements that may be forgotten, each on a line inside a block: it ends what runs, or changes a
value."""
_SET = re.compile(r"(?P<name>[\w.]+)(?:\[[^\n=]*\])?[ ]*=(?!=)")
"""A statement that gives a value to a name, or to an item of it."""
_RESETS = {
    "python": re.compile(
        r"(?m)^[ \t]+(?P<name>[^\W\d]\w*)[ ]*=[ ]*"
        r"(?P<value>-?\d+|True|False|None|\[\]|\{\}|set\(\)|\"\"|'')[ \t\r]*$"
    ),
    "cpp": re.compile(
        r"(?m)^[ \t]+(?P<name>)"
        r"(?P<value>(?:bool|int|long|long long|ll|string)[ ]\w+[ ]*=[ ]*[-\w]+);"
    ),
}
"""Statements that give a name its first value, perhaps anew for every case."""
_LARGEST_NUMBER = 1000
"""Larger ones are sizes and limits, and being one off changes nothing."""


class _Mistake(NamedTuple):
    """A part of a program, and what is written there instead."""

    kind: str
    start: int
    end: int
    text: str


def make_mutants(
    programs: Sequence[Program],
    *,
    most: int,
    seed: str,
) -> list[Program]:
    """Return wrong stand-ins of accepted programs: of every kind of mistake and program in turn.

    Some do not compile, and some are still right; running them tells.

    Args:
        programs: accepted programs; those of other languages are left out.
        most: how many mutants are returned at most.
        seed: decides which mistakes are made.
    """
    source = random.Random(seed)
    by_kind: dict[str, list[list[tuple[Program, _Mistake]]]] = {}
    for program in programs:
        code = program.code or ""
        if program.language not in _COMMENTS or len(code) > _MOST_BYTES:
            continue
        of_program: dict[str, list[tuple[Program, _Mistake]]] = {}
        for mistake in _find_mistakes(code, program.language, source):
            of_program.setdefault(mistake.kind, []).append((program, mistake))
        for kind, mistakes in of_program.items():
            source.shuffle(mistakes)
            by_kind.setdefault(kind, []).append(mistakes)
    kinds = sorted(by_kind)
    # In any order, since most of few mutants would be of the kinds that come first.
    source.shuffle(kinds)
    queues = [take_in_turn(by_kind[kind]) for kind in kinds]
    chosen: dict[Program, None] = {}
    for program, mistake in take_in_turn(queues):
        if len(chosen) == most:
            break
        chosen.setdefault(_make(program, mistake))
    return list(chosen)


def _make(program: Program, mistake: _Mistake) -> Program:
    """Return a program with a mistake; only of the chosen ones, since a table has thousands."""
    code = program.code or ""
    changed = code[: mistake.start] + mistake.text + code[mistake.end :]
    return Program(changed, program.language)


def _find_mistakes(
    code: str,
    language: str,
    source: random.Random,
) -> Iterator[_Mistake]:
    """Yield the mistakes that can be made in a program, in its order."""
    names = _find_names(code)
    yield from _forget(code, language)
    for found in _PATTERNS[language].finditer(code):
        start, end = found.span()
        before = code[:start].rstrip()[-1:]
        after = code[end:].lstrip()[:1]
        if found["word"]:
            yield from _confuse_word(found, language, code, names, source)
        elif found["number"]:
            yield from _confuse_number(found, before, after)
        elif found["sign"] and _is_operator(code, start, end):
            for other in _OTHER_SIGNS.get(found["sign"], ()):
                yield _Mistake(f"sign {found['sign']}", start, end, other)


def _forget(code: str, language: str) -> Iterator[_Mistake]:
    """Yield the mistakes of lines: one is lost, or a value of the case before is kept."""
    nothing = "pass" if language == "python" else ""
    for found in _LOST_LINES[language].finditer(code):
        if language == "cpp" and _is_first_value(found["lost"], code[: found.start()]):
            continue
        yield _Mistake("lost line", *found.span("lost"), nothing)
    for found in _RESETS[language].finditer(code):
        start, end = found.span("value")
        name = found["name"]
        kept = f"static {found['value']}"
        if language == "python":
            kept = f"{{**globals(), **locals()}}.get({name!r}, {found['value']})"
        yield _Mistake("kept value", start, end, kept)


def _is_first_value(statement: str, before: str) -> bool:
    """Whether a statement gives a name its first value, as far as the code before it tells.

    Without it a C++ program reads what memory holds, and each run of it ends in another way.
    """
    found = _SET.match(statement)
    if found is None:
        return False
    return re.search(rf"\b{re.escape(found['name'])}\s*[=(](?!=)", before) is None


def _find_names(code: str) -> list[str]:
    """Return the short names that a program gives values to."""
    assigned = re.findall(r"\b([^\W\d]\w{0,11})\s*(?:=(?!=)|\+=|-=|\bin\b)", code)
    return sorted(set(assigned))


def _confuse_word(
    found: re.Match[str],
    language: str,
    code: str,
    names: Sequence[str],
    source: random.Random,
) -> Iterator[_Mistake]:
    """Yield the mistakes at a word: a case lost, a jump lost, a word or name for another."""
    word = found[0]
    start, end = found.span()
    if word in ("break", "continue"):
        nothing = "pass" if language == "python" else ""
        yield _Mistake("lost jump", start, end, nothing)
    elif word in ("if", "elif"):
        yield from _lose_case(found, language, code)
    elif language == "cpp" and _WIDE.fullmatch(word):
        yield _Mistake("narrow", start, end, "int")
    elif word == "not":
        yield _Mistake("lost not", start, end, "")
    elif word in _OTHER_WORDS:
        for other in _OTHER_WORDS[word]:
            yield _Mistake("word", start, end, other)
    elif word in names and not re.match(r"\s*(?:=(?!=)|\()", code[end:]):
        others = [name for name in names if name != word]
        if others:
            yield _Mistake("name", start, end, source.choice(others))


def _lose_case(
    found: re.Match[str],
    language: str,
    code: str,
) -> Iterator[_Mistake]:
    """Yield the mistakes of a condition: it never holds, or always."""
    end = found.end()
    if language == "python":
        yield _Mistake("lost case", end, end, " False and")
        return
    opened = re.match(r"\s*\(", code[end:])
    if opened:
        place = end + opened.end()
        yield _Mistake("lost case", place, place, "false && ")


def _confuse_number(
    found: re.Match[str],
    before: str,
    after: str,
) -> Iterator[_Mistake]:
    """Yield the neighbours of a small number."""
    digits = found["number"]
    if not digits.isascii() or not digits.isdigit() or int(digits) > _LARGEST_NUMBER:
        return
    number = int(digits)
    start, end = found.span()
    # `x[0]` and `x[-1]` are columns and ends as a rule; of others, one more and one less.
    kind = "column" if before == "[" and after == "]" else "number"
    yield _Mistake(kind, start, end, str(number + 1))
    if number > 0:
        yield _Mistake(f"{kind} less", start, end, str(number - 1))


def _is_operator(code: str, start: int, end: int) -> bool:
    """Whether a sign stands between two values: it is none of a template, nor of a number."""
    sign = code[start:end]
    line_before = code[:start].rpartition("\n")[2]
    line_after = code[end:].partition("\n")[0]
    if sign == "<" and _TEMPLATE_END.match(line_after):
        return False
    if sign == ">" and _TEMPLATE_START.search(line_before):
        return False
    if sign in ("+", "-", "*", "<", ">"):
        return re.search(r"[\w\])]\s*$", line_before) is not None
    return True

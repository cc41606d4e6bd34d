"""Reads Kodsport's script `generator`, which says how a package makes its inputs.

The script is not executed: its loops, variables and sums are followed as in a shell.
"""

import ast
import hashlib
import operator
import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from pathlib import PurePosixPath

from microcoder.data.formats.candidates import InputRecipe
from microcoder.data.formats.kit_programs import KitReading
from microcoder.judge.core.syntax import parse_source

_MOST_WORDS = 200
"""Words of a loop that are followed."""
_MOST_EXPONENT = 64
"""Largest exponent: with any base but 0 and 1 the value is over 64 bits."""
_COMMAND_END = re.compile(r";(?=(?:[^\"']|\"[^\"]*\"|'[^']*')*$)")
"""The end of a command in a line; a quoted text stays whole."""
_LOOP = re.compile(r"for\s+(\w+)\s+in\s+(.+)")
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
_LET = re.compile(r"^let\s+(\w+)=([^\s$]+)$")
_SUM = re.compile(r"\$\(\((.*?)\)\)(?!\))")
_ASSIGNMENT = re.compile(r"(?:let |export )?([A-Za-z_]\w*)=([\w.+-]*$|\"[^\"$]*\"$)?")
"""Its second group is the value, if that can be read."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_LOOP_WORD = re.compile(r"\{-?\d+\.\.-?\d+\}|\$\(seq [-\d ]+\)|\S+")
"""A word that a loop goes over, or a range of numbers."""


class GeneratorScript:
    """Reads Kodsport's script `generator`: one line per test, `tc NAME GENERATOR ARGUMENTS`.

    Loops over words, variables and sums are followed as in a shell; anything else is left out.
    """

    def __init__(self, reading: KitReading) -> None:
        self._reading = reading
        self._variables: dict[str, str] = {}
        self._group = "secret"
        self._flags: dict[str, tuple[str, ...]] = {}
        """Arguments of validators, by group of tests."""
        self._seen: set[str] = set()
        """Names of the tests so far; a test that is named again is not made again."""

    def read(self, text: str) -> None:
        """Add the generators and recipes of a script to the kit."""
        commands: list[str] = []
        for line in text.replace("\\\n", " ").split("\n"):
            commands += [piece.strip() for piece in _COMMAND_END.split(line)]
        for command in self._expand(commands):
            try:
                words = shlex.split(command, comments=True)
            except ValueError:
                # A quotation without an end is no command that can be followed.
                continue
            if words:
                self._run(words[0], words[1:])

    def _expand(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield a script's commands; those inside a loop over words once per word."""
        position = 0
        while position < len(lines):
            loop = _LOOP.fullmatch(lines[position])
            if not loop:
                yield self._substitute(lines[position])
                position += 1
                continue
            start = position + 1
            position = _find_loop_end(lines, start)
            body = []
            for line in lines[start : position - 1]:
                if line != "do":
                    body.append(line.removeprefix("do "))
            loop_words = _split_words(self._substitute(loop[2]))
            for word in loop_words[:_MOST_WORDS]:
                self._variables[loop[1]] = word
                yield from self._expand(body)

    def _substitute(self, line: str) -> str:
        """Return a line with variables and sums replaced by their values.

        An assignment is stored, and an empty line returned.
        """
        # Variables first, since sums are made of their values.
        line = _VARIABLE.sub(self._value_of, line)
        # `let` computes what other assignments take as text.
        line = _LET.sub(r"\1=$((\2))", line)
        line = _SUM.sub(self._add_up, line)
        assignment = _ASSIGNMENT.match(line)
        if assignment is None:
            return line
        # A value that cannot be read leaves the variable unknown, not as it was.
        self._variables.pop(assignment[1], None)
        if assignment[2] is not None:
            self._variables[assignment[1]] = assignment[2].strip('"')
        return ""

    def _value_of(self, variable: re.Match[str]) -> str:
        """Return the value of `$n` or `${n}`; the text itself if the variable is not known."""
        name = variable[1] or variable[2]
        return self._variables.get(name, variable[0])

    def _add_up(self, expression: re.Match[str]) -> str:
        """Return the value of `$((MAX_N - 1))`.

        The text itself, where it is more than whole-number arithmetic.
        """
        try:
            # In brackets, since a shell computes the value of a variable before it is used.
            numbers = _NAME.sub(lambda name: f"({self._variables[name[0]]})", expression[1])
            tree = parse_source(numbers.strip(), mode="eval")
            return str(_compute(tree.body))
        except (KeyError, SyntaxError, ValueError, ArithmeticError, RecursionError):
            return expression[0]

    def _run(self, command: str, words: Sequence[str]) -> None:
        """Do what a command of the script says."""
        if command == "group" and words:
            self._group = f"secret/{words[0]}"
        elif command == "samplegroup":
            self._group = "sample"
        elif command == "limits":
            self._flags[self._group] = tuple(words)
            self._reading.flags.append(tuple(words))
        elif command == "compile" and words:
            path = posixpath.normpath(f"data/{words[0]}")
            self._reading.add_generator(PurePosixPath(path).stem, path)
        elif command == "tc_manual" and words:
            path = posixpath.normpath(posixpath.join("data", words[0]))
            if path in self._reading.files:
                self._add_text(self._reading.files[path])
        elif command == "tc" and len(words) > 1:
            self._add_test(words[0], words[1], words[2:])

    def _add_test(self, name: str, generator: str, arguments: Sequence[str]) -> None:
        """Add the recipe of a test that a generator makes; note one that cannot be followed."""
        written = " ".join((name, generator, *arguments))
        if "$" in written or "`" in written:
            self._reading.left_out.append("generator: a line that only a shell can read")
            return
        if generator not in self._reading.generators:
            self._reading.left_out.append(f"generator: {generator} is not a program that was read")
            return
        if name in self._seen:
            return
        self._seen.add(name)
        # As the tool does that these packages share: the seed is the last argument.
        digest = hashlib.md5(name.encode(), usedforsecurity=False)
        seed = int(digest.hexdigest()[:6], 16)
        self._reading.recipes.append(
            InputRecipe(
                group=self._group,
                flags=self._flags.get(self._group, ()),
                generator=generator,
                arguments=(*arguments, str(seed)),
            )
        )

    def _add_text(self, text: str) -> None:
        """Add the recipe of a test whose input is a file of the package."""
        self._reading.recipes.append(
            InputRecipe(
                group=self._group,
                flags=self._flags.get(self._group, ()),
                text=text,
            )
        )


def _find_loop_end(lines: Sequence[str], start: int) -> int:
    """Return the position after the `done` of a loop; `start` is that of its first line."""
    depth = 1
    position = start
    while position < len(lines) and depth:
        if lines[position].startswith("for "):
            depth += 1
        if lines[position] == "done":
            depth -= 1
        position += 1
    return position


def _divide(dividend: int, divisor: int) -> int:
    """Return a quotient without its fraction, as a shell does: -7 / 2 is -3."""
    return int(Fraction(dividend, divisor))


def _remainder(dividend: int, divisor: int) -> int:
    """Return what a shell's division leaves: -7 % 2 is -1."""
    return dividend - divisor * _divide(dividend, divisor)


def _power(base: int, exponent: int) -> int:
    """Return a power; ValueError if its exponent is negative or would make it over 64 bits."""
    if not 0 <= exponent <= _MOST_EXPONENT:
        raise ValueError("an exponent that is negative or too large")
    return base**exponent


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: _divide,
    ast.Mod: _remainder,
    ast.Pow: _power,
}
"""What operators of a shell compute."""


def _compute(node: ast.expr) -> int:
    """Return the value of whole-number arithmetic as in a shell.

    Raises:
        ValueError: it is anything else, or a value is over 64 bits.
    """
    value = None
    match node:
        case ast.Constant(value=int(value)):
            pass
        # A shell reads `-2**2` as `(-2)**2`: Python's tree of it means another value.
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not _is_power(operand):
            value = -_compute(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            value = _OPERATIONS[type(op)](_compute(left), _compute(right))
    # At every step, so that no number can grow without bound on the way.
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise ValueError("no sum, or one over 64 bits")
    return value


def _is_power(node: ast.expr) -> bool:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow)


def _split_words(text: str) -> list[str]:
    """Return the words that a shell loop goes over.

    `{01..15}` and `$(seq 1 2 9)` are expanded to numbers.
    """
    words: list[str] = []
    for word in _LOOP_WORD.findall(text):
        numbers = []
        if word[0] in "{$":
            numbers = re.findall(r"-?\d+", word)
        if numbers:
            words += _count(numbers, is_brace=word[0] == "{")
        else:
            words.append(word)
    return words


def _count(numbers: Sequence[str], *, is_brace: bool) -> list[str]:
    """Return the numbers of a range in a shell.

    Args:
        numbers: LAST, FIRST LAST, or FIRST STEP LAST.
        is_brace: it is written `{FIRST..LAST}`, which also counts down; `seq` needs a step for it.
    """
    first = numbers[0] if len(numbers) > 1 else "1"
    last = numbers[-1]
    # As many digits as the first number, if that begins with a zero.
    width = len(first) if first.startswith("0") else 0
    if len(numbers) > 2:
        step = int(numbers[1])
    elif is_brace and int(last) < int(first):
        step = -1
    else:
        step = 1
    end = int(last) + 1 if step > 0 else int(last) - 1
    # Python has no range with a step of zero.
    counted = range(int(first), end, step or 1)
    return [str(number).zfill(width) for number in counted[:_MOST_WORDS]]

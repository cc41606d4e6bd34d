"""Reads how packages make and check their inputs: BAPCtools' `generators.yaml`, Kodsport's script `generator`.

Nothing is executed here. A program of several files becomes one: C++ headers are put in the place of their includes
(also `testlib.h`, where the package has it), Python modules beside a script go with it as texts. A validator in
Checktestdata's language becomes the Python program that the package `checktestdata` makes of it.
"""

import ast
import hashlib
import operator
import posixpath
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Any, Literal

from microcoder.data.formats.candidates import InputKit, InputProgram, InputRecipe
from microcoder.data.formats.tests import language_of
from microcoder.data.formats.values import read_yaml
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.syntax import parse_source

_INPUT_FOLDERS = ("input_validators", "input_validator", "input_format_validators")
TAKES = (
    *(f"{folder}/**" for folder in _INPUT_FOLDERS),
    "generators/**",
    "manual-tests/**",
    "manual_tests/**",
)
"""Patterns of the files of a package that are read for its kit, besides those below `data`."""

_CHECKTESTDATA = "checktestdata"
_HEADERS = (".h", ".hpp", ".hh", ".md", ".txt")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">].*$', re.MULTILINE)
_INCLUDED = (".h", ".hpp", ".hh", ".cpp", ".cc")
_MAIN = re.compile(r"\bint\s+main\s*\(|\bmain\s*\(\s*(?:int|void|\))")
_SEED = re.compile(r"\{seed(?::[^}]*)?\}")
_SCRIPT = re.compile(r"data/[^/.]*gen[^/.]*(?:\.sh)?")
"""Path of Kodsport's generator script; also `donotuse_generator.sh`, of packages whose own tests are final."""
_TOOL = re.compile(r"^[ \t]*tc[ \t]*\(\)", re.MULTILINE)
"""Matches a script that defines the command `tc` for others; it makes no inputs itself and is skipped."""
_FLAGS = re.compile(r"^input_validator_(?:flags|args):[ \t]*([^\n#]{1,300})", re.MULTILINE)
_MOST_RECIPES, _MOST_WORDS = 2000, 200
_HEADER = "validation.h"
"""BAPCtools' header for validators: under the GPL, so read from an installed BAPCtools, not copied here."""
_BUNDLE = """\
import importlib.abc, importlib.util, sys

class _Beside(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    texts = {modules!a}

    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name in self.texts else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        exec(compile(self.texts[module.__name__], module.__name__ + ".py", "exec"), module.__dict__)

sys.meta_path.insert(0, _Beside())
exec(compile({code!a}, "main.py", "exec"), {{"__name__": "__main__", "__file__": "main.py"}})
"""


def translate_checktestdata(code: str) -> str:
    """Return a Python program that checks an input by a Checktestdata script; ValueError if it cannot be translated."""
    most_digits = sys.get_int_max_str_digits()
    try:
        # It comes with the data extra; rows that are no folders do without.
        from checktestdata.parser import ParserException, parse
        from checktestdata.tokenizer import (
            EOFException,
            UnexpectedTokenException,
            UnknownTokenException,
            tokenize,
        )
    except ImportError:
        raise ValueError(f"needs the package checktestdata ({how_to_install('data')})") from None
    finally:
        # Its import lifts the limit for the whole process, and with it what the judge takes for a value.
        sys.set_int_max_str_digits(most_digits)
    try:
        program = parse(tokenize(code.encode("utf-8", "surrogatepass"))).python_code(
            standalone=True
        )
    except (
        ParserException,
        EOFException,
        UnexpectedTokenException,
        UnknownTokenException,
        RecursionError,
    ) as error:
        raise ValueError(f"cannot be read ({error})") from None
    # It takes a first argument for a file; the flags of a group are for validators that know them.
    return f"import sys\ndel sys.argv[1:]\n{program}"


@cache
def _find_header() -> Mapping[str, str]:
    """Return BAPCtools' header as {name: text}; empty if BAPCtools is not installed."""
    found = find_spec("bapctools")
    folders = found.submodule_search_locations if found is not None else None
    paths = [Path(folder, "resources", "headers", _HEADER) for folder in folders or ()]
    return {path.name: path.read_text(encoding="utf-8") for path in paths if path.is_file()}


def read_kit(files: Mapping[str, str]) -> InputKit:
    """Return a package's generators, the recipes that call them, and its input validators."""
    reading = KitReading(files)
    for folder in _INPUT_FOLDERS:
        for name in sorted({name.split("/")[1] for name in files if name.startswith(f"{folder}/")}):
            reading.add_validator(f"{folder}/{name}")
    for name in sorted(files):
        found = (
            _FLAGS.search(files[name])
            if posixpath.basename(name) in ("testdata.yaml", "test_group.yaml")
            else None
        )
        # A text, or a list in brackets.
        reading.flags += (
            [tuple(re.sub(r"^\[|\]$|['\"]|,(?=\s)", " ", found[1].strip()).split())]
            if found
            else []
        )
    if "generators/generators.yaml" in files:
        _read_yaml(reading, files["generators/generators.yaml"])
    else:
        scripts = (
            text
            for name, text in sorted(files.items())
            if _SCRIPT.fullmatch(name) and not _TOOL.search(text)
        )
        _Script(reading).read(next(scripts, ""))
    return reading.kit()


@dataclass(slots=True)
class KitReading:
    """Collects the programs and recipes of a package while it is read; `kit` returns them."""

    files: Mapping[str, str]
    generators: dict[str, InputProgram] = field(default_factory=dict)
    validators: list[InputProgram] = field(default_factory=list)
    recipes: list[InputRecipe] = field(default_factory=list)
    flags: list[tuple[str, ...]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def kit(self) -> InputKit:
        """Return the programs and recipes that were read; at most the first `_MOST_RECIPES` recipes."""
        return InputKit(
            programs=(*self.generators.values(), *self.validators),
            recipes=tuple(self.recipes[:_MOST_RECIPES]),
            flags=tuple(dict.fromkeys(self.flags)),
            left_out=tuple(dict.fromkeys(self.left_out)),
        )

    def add_validator(self, path: str) -> None:
        """Read an input validator, a file or a folder; one that cannot be read is noted."""
        if program := self._read(path, path, "validator"):
            self.validators.append(program)

    def add_generator(self, name: str, path: str, beside: Sequence[str] = ()) -> bool:
        """Read a generator, once (a file or folder, and further modules), and return whether it could be read."""
        if name not in self.generators and (program := self._read(name, path, "generator", beside)):
            self.generators[name] = program
        return name in self.generators

    def _read(
        self,
        name: str,
        path: str,
        role: Literal["generator", "validator"],
        beside: Sequence[str] = (),
    ) -> InputProgram | None:
        """Return a program with its includes or modules in one text; None, noted in `left_out`, if unreadable."""
        entry = path if path in self.files else self._find_main(path)
        language = _language_of(entry)
        if not language:
            if role == "generator" or PurePosixPath(name).suffix.lower() not in _HEADERS:
                self.left_out.append(f"{path}: no program in a language that is known")
            return None
        code, missing = self.files[entry], list[str]()
        try:
            if language in ("cpp", "c"):
                code, missing = inline_includes(
                    entry, {**_find_header(), **self.files}, anywhere=True
                )
            elif language == "python":
                code = self._bundle(entry, beside)
            elif language == _CHECKTESTDATA:
                code, language = translate_checktestdata(code), "python"
            if missing:
                hint = "; type: pip install bapctools" if _HEADER in missing else ""
                raise ValueError(
                    f"includes {', '.join(dict.fromkeys(missing))}, which the package lacks{hint}"
                )
        except ValueError as error:
            self.left_out.append(f"{name}: {error}"[:200])
            return None
        return InputProgram(name=name, role=role, code=code, language=language)

    def _find_main(self, folder: str) -> str:
        """Return the path of the main file of a program's folder; empty if no file in it is a program."""
        sources = [
            one for one in sorted(self.files) if one.startswith(f"{folder}/") and _language_of(one)
        ]
        mains = [
            one
            for one in sources
            if one.endswith((".py", ".py3", ".ctd")) or _MAIN.search(self.files[one])
        ]
        named = [
            one for one in mains if PurePosixPath(one).stem in (PurePosixPath(folder).name, "main")
        ]
        return (named or mains or sources or [""])[0]

    def _bundle(self, path: str, beside: Sequence[str]) -> str:
        """Return a Python script as one file: modules beside it that it imports are embedded as texts."""
        folder = posixpath.dirname(path)
        near = [
            one for one in self.files if posixpath.dirname(one) == folder and one.endswith(".py")
        ]
        modules = {
            PurePosixPath(one).stem: self.files[one] for one in (*near, *beside) if one != path
        }
        needed: dict[str, str] = {}
        waiting = [self.files[path]]
        while waiting:
            for name in _IMPORT.findall(waiting.pop()):
                if name in modules and name not in needed:
                    needed[name] = modules[name]
                    waiting.append(modules[name])
        return _BUNDLE.format(modules=needed, code=self.files[path]) if needed else self.files[path]


def _read_yaml(reading: KitReading, text: str) -> None:
    """Add the recipes of BAPCtools' `generators.yaml` to `reading`; what cannot be read goes to `left_out`."""
    try:
        settings = read_yaml(text)
    except ValueError as error:
        reading.left_out.append(f"generators.yaml: {error}"[:200])
        return
    if not isinstance(settings, Mapping):
        return
    of_files, salt = settings.get("generators"), str(settings.get("random_salt") or "")

    def read(data: object, group: str) -> None:
        for item in data if isinstance(data, list) else [data]:
            for name, value in item.items() if isinstance(item, Mapping) else ():
                read_one(str(name or "test"), value, group)

    def read_one(name: str, value: object, group: str) -> None:
        settings = value if isinstance(value, Mapping) else {"generate": value}
        if "data" in settings or settings.get("type") == "directory":
            read(settings.get("data"), f"{group}/{name}".strip("/"))
        elif isinstance(settings.get("in"), str):
            reading.recipes.append(
                InputRecipe(group=group, text=f"{str(settings['in']).rstrip()}\n")
            )
        elif isinstance(settings.get("copy"), str):
            copy(f"{settings['copy']}.in", group)
        elif isinstance(command := settings.get("generate"), str):
            if command.strip().endswith(".in") and len(command.split()) == 1:
                copy(command.strip(), group)
            else:
                most = settings.get("count")
                for count in range(1, min(most, 100) + 1) if isinstance(most, int) else [1]:
                    call(command.replace("{count}", str(count)).replace("{name}", name), group)

    def copy(name: str, group: str) -> None:
        path = posixpath.normpath(posixpath.join("generators", name))
        if path in reading.files:
            reading.recipes.append(InputRecipe(group=group, text=reading.files[path]))
        else:
            reading.left_out.append(f"{path}: not there")

    def call(command: str, group: str) -> None:
        seed = int(hashlib.sha512((salt + command).encode()).hexdigest(), 16) % (1 << 31)
        name, *arguments = _SEED.sub(str(seed), command).split() or [""]
        listed = of_files.get(name) if isinstance(of_files, Mapping) else None
        path, *beside = [
            posixpath.normpath(posixpath.join("generators", str(one))) for one in listed or [name]
        ]
        if reading.add_generator(name, name.lstrip("/") if name.startswith("/") else path, beside):
            reading.recipes.append(
                InputRecipe(group=group, generator=name, arguments=tuple(arguments))
            )

    read(settings.get("data"), "")


class _Script:
    """Reads Kodsport's script `generator`: one line per test, `tc NAME GENERATOR ARGUMENTS`.

    Loops over words, variables and sums are followed as in a shell; anything else is left out.
    """

    def __init__(self, reading: KitReading) -> None:
        self._reading = reading
        self._variables: dict[str, str] = {}
        self._group = "secret"
        self._flags: dict[str, tuple[str, ...]] = {}
        self._known: set[str] = set()

    def read(self, text: str) -> None:
        """Add the generators and recipes of a script to the kit."""
        lines = text.replace("\\\n", " ").split("\n")
        # A quoted text stays whole.
        pieces = [re.split(r";(?=(?:[^\"']|\"[^\"]*\"|'[^']*')*$)", line) for line in lines]
        for command in self._expand([one.strip() for piece in pieces for one in piece]):
            try:
                words = shlex.split(command, comments=True)
            except ValueError:
                continue
            if words:
                self._run(words[0], words[1:])

    def _expand(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield a script's commands; those inside a loop over words once per word."""
        position = 0
        while position < len(lines):
            loop = re.fullmatch(r"for\s+(\w+)\s+in\s+(.+)", lines[position])
            if not loop:
                yield self._put(lines[position])
                position += 1
                continue
            depth, end = 1, position + 1
            while end < len(lines) and depth:
                depth += lines[end].startswith("for ") - (lines[end] == "done")
                end += 1
            body = [
                line.removeprefix("do ") for line in lines[position + 1 : end - 1] if line != "do"
            ]
            for word in _words(self._put(loop[2]))[:_MOST_WORDS]:
                self._variables[loop[1]] = word
                yield from self._expand(body)
            position = end

    def _put(self, line: str) -> str:
        """Return a line with variables and sums replaced by values; store an assignment, and return an empty line."""
        line = re.sub(
            r"\$(?:\{(\w+)\}|(\w+))",
            lambda one: self._variables.get(one[1] or one[2], one[0]),
            line,
        )
        line = re.sub(r"^let\s+(\w+)=([^\s$]+)$", r"\1=$((\2))", line)
        line = re.sub(r"\$\(\((.*?)\)\)(?!\))", self._add_up, line)
        found = re.match(r"(?:let |export )?([A-Za-z_]\w*)=([\w.+-]*$|\"[^\"$]*\"$)?", line)
        if found:
            self._variables.pop(found[1], None)
            self._variables |= {found[1]: found[2].strip('"')} if found[2] is not None else {}
        return "" if found else line

    def _add_up(self, found: re.Match[str]) -> str:
        """Return the value of `$((MAX_N - 1))`; the text itself where it is more than whole-number arithmetic."""
        try:
            named = re.sub(r"[A-Za-z_]\w*", lambda name: f"({self._variables[name[0]]})", found[1])
            return str(_compute(parse_source(named.strip(), mode="eval").body))
        except (KeyError, SyntaxError, ValueError, ArithmeticError, RecursionError):
            return found[0]

    def _run(self, command: str, words: Sequence[str]) -> None:
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
                self._add(text=self._reading.files[path])
        elif command == "tc" and len(words) > 1:
            name, generator, *rest = words
            if "$" in " ".join(words) or "`" in " ".join(words):
                self._reading.left_out.append("generator: a line that only a shell can read")
            elif generator not in self._reading.generators:
                self._reading.left_out.append(
                    f"generator: {generator} is not a program that was read"
                )
            elif name not in self._known:
                self._known.add(name)
                # The tool that these packages share: the seed is the last argument.
                seed = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:6], 16)
                self._add(generator=generator, arguments=(*rest, str(seed)))

    def _add(self, **fields: Any) -> None:
        self._reading.recipes.append(
            InputRecipe(group=self._group, flags=self._flags.get(self._group, ()), **fields)
        )


_OPERATIONS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul,
    ast.Div: lambda one, other: int(Fraction(one, other)), ast.Pow: lambda one, other: one ** range(65).index(other),
    ast.Mod: lambda one, other: one - other * int(Fraction(one, other)),
}  # fmt: skip


def _compute(node: ast.expr) -> int:
    """Return the value of whole-number arithmetic as in a shell; ValueError for anything else, or over 64 bits."""
    value = None
    match node:
        case ast.Constant(value=int(value)):
            pass
        # A shell reads `-2**2` as `(-2)**2`.
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(
            getattr(operand, "op", None), ast.Pow
        ):
            value = -_compute(operand)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            value = _OPERATIONS[type(op)](_compute(left), _compute(right))
    if value is None or not -(1 << 63) <= value < 1 << 63:
        raise ValueError("no sum, or one over 64 bits")
    return value


def _words(text: str) -> list[str]:
    """Return the words that a shell loop goes over, with `{01..15}` and `$(seq 1 2 9)` expanded to numbers."""
    found: list[str] = []
    for one in re.findall(r"\{-?\d+\.\.-?\d+\}|\$\(seq [-\d ]+\)|\S+", text):
        numbers = re.findall(r"-?\d+", one) if one[0] in "{$" else []
        if numbers:
            first, last = (numbers[0] if len(numbers) > 1 else "1"), numbers[-1]
            width = len(first) if first.startswith("0") else 0
            step = (
                int(numbers[1])
                if len(numbers) > 2
                else -1
                if one[0] == "{" and int(last) < int(first)
                else 1
            )
            counted = range(int(first), int(last) + (1 if step > 0 else -1), step or 1)
            found += [str(number).zfill(width) for number in counted[:_MOST_WORDS]]
        else:
            found.append(one)
    return found


def _language_of(path: str) -> str:
    return _CHECKTESTDATA if path.lower().endswith(".ctd") else language_of(path)


def inline_includes(
    path: str, files: Mapping[str, str], *, anywhere: bool = False
) -> tuple[str, list[str]]:
    """Return a source with the package's files in place of their includes, and which local ones are missing.

    Args:
        path: of the source; a Python source stays as it is, and modules beside it that it imports are missing.
        anywhere: also use headers from other folders of the package, and for includes in angle brackets.
    """
    folder = posixpath.dirname(path)
    if path.endswith((".py", ".py3")):
        modules = {
            PurePosixPath(name).stem
            for name in files
            if posixpath.dirname(name) == folder and name != path
        }
        return files[path], sorted(modules & set(_IMPORT.findall(files[path])))
    missing: list[str] = []
    seen = {path}

    def inline(source: str) -> str:
        def replace(found: re.Match[str]) -> str:
            is_local, name = found[1] == '"', found[2]
            target = (
                _find_included(posixpath.dirname(source), name, files, anywhere)
                if is_local or anywhere
                else None
            )
            if target is None:
                # `#include "cstring"` is looked for beside the file and then among the standard headers.
                missing.extend(
                    [name] if is_local and "." in name and not name.startswith("bits/") else []
                )
                return found[0]
            if target in seen:
                return ""
            seen.add(target)
            return inline(target)

        return _INCLUDE.sub(replace, files[source])

    return inline(path), missing


def _find_included(folder: str, name: str, files: Mapping[str, str], anywhere: bool) -> str | None:
    beside = posixpath.normpath(posixpath.join(folder, name))
    if beside in files:
        return beside
    base = posixpath.basename(name)
    is_sought = anywhere and base.endswith(_INCLUDED)
    return (
        next((one for one in sorted(files) if posixpath.basename(one) == base), None)
        if is_sought
        else None
    )

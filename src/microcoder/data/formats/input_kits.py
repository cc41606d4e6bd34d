"""What contest packages make and check their inputs with: BAPCtools' `generators.yaml`, Kodsport's `generator.sh`.

Nothing is executed here. A program of several files becomes one: C++ headers are put in the place of their includes
(also `testlib.h`, where the package has it), Python modules beside a script go with it as texts. A validator in
Checktestdata's language becomes the Python program that the package `checktestdata` makes of it.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from microcoder.data.formats.candidates import InputKit, InputProgram, InputRecipe
from microcoder.data.formats.packages import inline_includes
from microcoder.data.formats.tests import language_of
from microcoder.judge.core.installation import how_to_install

TAKES = (
    "input_validators/**",
    "input_validator/**",
    "input_format_validators/**",
    "generators/**",
    "manual-tests/**",
    "manual_tests/**",
)
"""What is read of a package for it, besides its `data`."""

_CHECKTESTDATA = "checktestdata"
_WITH_INCLUDES = ("cpp", "c")
_IMPORT = re.compile(r"^[ \t]*(?:from|import)[ \t]+(\w+)", re.MULTILINE)
_MAIN = re.compile(r"\bint\s+main\s*\(|\bmain\s*\(\s*(?:int|void|\))")
_SEED = re.compile(r"\{seed(?::[^}]*)?\}")
_SCRIPT = re.compile(r"data/[^/]*gen[^/]*\.sh")
"""Also `donotuse_generator.sh`: that its tests are final is no reason to make no further ones."""
_TOOL = re.compile(r"^[ \t]*tc[ \t]*\(\)", re.MULTILINE)
"""Of the script that defines the commands."""
_SETTINGS_OF_GROUPS = ("testdata.yaml", "test_group.yaml")
_FLAGS = re.compile(r"^input_validator_(?:flags|args):[ \t]*([^\n#]{1,300})", re.MULTILINE)
_MOST_RECIPES = 2000
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
    """Return the Python program that checks an input as a text in Checktestdata's language says."""
    most_digits = sys.get_int_max_str_digits()
    try:
        # It comes with the data extra; rows that are no folders do without.
        from checktestdata.parser import ParserException, parse
        from checktestdata.tokenizer import EOFException, UnexpectedTokenException, UnknownTokenException, tokenize
    except ImportError:
        raise ValueError(f"needs the package checktestdata ({how_to_install('data')})") from None
    finally:
        # Its import lifts the limit for the whole process, and with it what the judge takes for a value.
        sys.set_int_max_str_digits(most_digits)
    try:
        program = parse(tokenize(code.encode("utf-8", "surrogatepass"))).python_code(standalone=True)
    except (ParserException, EOFException, UnexpectedTokenException, UnknownTokenException, RecursionError) as error:
        raise ValueError(f"cannot be read ({error})") from None
    # It takes a first argument for a file; the flags of a group are for validators that know them.
    return f"import sys\ndel sys.argv[1:]\n{program}"


def read_kit(files: Mapping[str, str]) -> InputKit:
    """Return a package's generators, the recipes that call them, and its input validators."""
    reading = _Reading(files)
    validators = reading.validators()
    if "generators/generators.yaml" in files:
        reading.read_yaml(files["generators/generators.yaml"])
    else:
        scripts = (text for name, text in sorted(files.items()) if _SCRIPT.fullmatch(name) and not _TOOL.search(text))
        _Script(reading).read(next(scripts, ""))
    return InputKit(
        programs=(*reading.generators.values(), *validators),
        recipes=tuple(reading.recipes),
        flags=tuple(dict.fromkeys([*_read_flags(files), *reading.flags])),
        left_out=tuple(dict.fromkeys(reading.left_out)),
    )


def _read_flags(files: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the flags of the input validators in each group of tests, as its `testdata.yaml` has them."""
    for name in sorted(files):
        found = _FLAGS.search(files[name]) if posixpath.basename(name) in _SETTINGS_OF_GROUPS else None
        if found:
            yield tuple(found[1].strip().strip("'\"").split())


@dataclass(slots=True)
class _Reading:
    """One package, and what was found in it."""

    files: Mapping[str, str]
    generators: dict[str, InputProgram] = field(default_factory=dict)
    recipes: list[InputRecipe] = field(default_factory=list)
    flags: list[tuple[str, ...]] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def validators(self) -> list[InputProgram]:
        """Return the input validators that can be read."""
        found = []
        for folder in ("input_validators", "input_validator", "input_format_validators"):
            names = sorted({name.split("/")[1] for name in self.files if name.startswith(f"{folder}/")})
            for name in names:
                program = self.program(f"{folder}/{name}", "validator")
                if program is not None:
                    found.append(program)
        return found

    def program(self, path: str, role: str) -> InputProgram | None:
        """Return a program of one file or of a folder, whole; None, and noted, where it cannot be read."""
        if path in self.files:
            entry = path
        else:
            inside = [one for one in sorted(self.files) if one.startswith(f"{path}/")]
            sources = [one for one in inside if _language_of(one)]
            mains = [
                one for one in sources if _suffix(one).startswith((".py", ".ctd")) or _MAIN.search(self.files[one])
            ]
            named = [one for one in mains if PurePosixPath(one).stem in (PurePosixPath(path).name, "main")]
            entry = (named or mains or sources or [""])[0]
        return self.whole(path, entry, role)

    def whole(self, name: str, entry: str, role: str, beside: Sequence[str] = ()) -> InputProgram | None:
        """Return the program that begins in a file, with the files that it names."""
        language = _language_of(entry)
        if not language or entry not in self.files:
            if role == "generator" or _suffix(name) not in (".h", ".hpp", ".hh", ".md", ".txt"):
                self.left_out.append(f"{name}: no program in a language that is known")
            return None
        code = self.files[entry]
        if language in _WITH_INCLUDES:
            code, _ = inline_includes(entry, self.files, anywhere=True)
        elif language == "python":
            code = self._bundled(entry, beside)
        elif language == _CHECKTESTDATA:
            try:
                code, language = translate_checktestdata(code), "python"
            except ValueError as error:
                self.left_out.append(f"{name}: {error}"[:200])
                return None
        return InputProgram.model_validate({"name": name, "role": role, "code": code, "language": language})

    def _bundled(self, path: str, beside: Sequence[str]) -> str:
        folder = posixpath.dirname(path)
        near = [one for one in self.files if posixpath.dirname(one) == folder and one.endswith(".py")]
        modules = {PurePosixPath(one).stem: self.files[one] for one in (*near, *beside) if one != path}
        needed: dict[str, str] = {}
        waiting = [self.files[path]]
        while waiting:
            for name in _IMPORT.findall(waiting.pop()):
                if name in modules and name not in needed:
                    needed[name] = modules[name]
                    waiting.append(modules[name])
        return _BUNDLE.format(modules=needed, code=self.files[path]) if needed else self.files[path]

    def add(self, recipe: InputRecipe) -> None:
        """Add a recipe, unless there are very many."""
        if len(self.recipes) < _MOST_RECIPES:
            self.recipes.append(recipe)

    def read_yaml(self, text: str) -> None:
        """Read BAPCtools' `generators.yaml`."""
        # PyYAML comes with the data extra; rows that are no folders do without.
        from microcoder.data.formats.yaml_text import read_yaml

        try:
            settings = read_yaml(text)
        except ValueError as error:
            self.left_out.append(f"generators.yaml: {error}"[:200])
            return
        if not isinstance(settings, Mapping):
            return
        named = settings.get("generators")
        own = {str(name): listed for name, listed in named.items()} if isinstance(named, Mapping) else {}
        data = settings.get("data")
        _Tree(self, own, str(settings.get("random_salt") or "")).read(data, "")


@dataclass(slots=True)
class _Tree:
    """The tree of test groups of a `generators.yaml`."""

    reading: _Reading
    named: Mapping[str, Any]
    """Generators of several files."""
    salt: str

    def read(self, data: object, group: str) -> None:
        """Read what stands under `data`: groups and tests by name, or a list of such."""
        items = data if isinstance(data, list) else [data]
        for item in items:
            if isinstance(item, Mapping):
                for name, value in item.items():
                    self._read_one(str(name or "test"), value, group)

    def _read_one(self, name: str, value: object, group: str) -> None:
        if isinstance(value, Mapping) and ("data" in value or value.get("type") == "directory"):
            self.read(value.get("data"), f"{group}/{name}".strip("/"))
        elif isinstance(value, str):
            self._call(name, value, group)
        elif isinstance(value, Mapping):
            if isinstance(value.get("in"), str):
                self.reading.add(InputRecipe(group=group, text=f"{str(value['in']).rstrip()}\n"))
            elif isinstance(value.get("copy"), str):
                self._copy(f"{value['copy']}.in", group)
            elif isinstance(value.get("generate"), str):
                for count in _counts(value.get("count", 1)):
                    self._call(name, str(value["generate"]), group, count=count)

    def _copy(self, name: str, group: str) -> None:
        path = posixpath.normpath(posixpath.join("generators", name))
        if path in self.reading.files:
            self.reading.add(InputRecipe(group=group, text=self.reading.files[path]))
        else:
            self.reading.left_out.append(f"{path}: not there")

    def _call(self, name: str, command: str, group: str, *, count: int = 1) -> None:
        if command.split()[-1:] and command.strip().endswith(".in") and len(command.split()) == 1:
            self._copy(command.strip(), group)
            return
        command = command.replace("{count}", str(count)).replace("{name}", name)
        seed = int(hashlib.sha512((self.salt + command).encode()).hexdigest(), 16) % (1 << 31)
        program, *arguments = _SEED.sub(str(seed), command).split() or [""]
        if self._load(program):
            self.reading.add(InputRecipe(group=group, generator=program, arguments=tuple(arguments)))

    def _load(self, name: str) -> bool:
        known = self.reading.generators
        if name not in known:
            listed = self.named.get(name)
            if isinstance(listed, list) and listed:
                paths = [posixpath.normpath(posixpath.join("generators", str(one))) for one in listed]
                made = self.reading.whole(name, paths[0], "generator", paths[1:])
            else:
                path = name.lstrip("/") if name.startswith("/") else f"generators/{name}"
                made = self.reading.program(path, "generator")
            if made is None:
                return False
            known[name] = made.model_copy(update={"name": name})
        return True


def _counts(value: object) -> Sequence[int]:
    if isinstance(value, int):
        return range(1, min(value, 100) + 1)
    if isinstance(value, list):
        return [one for one in value if isinstance(one, int)]
    found = re.fullmatch(r"(-?\d+)\.\.=(-?\d+)", str(value))
    return range(int(found[1]), min(int(found[2]), int(found[1]) + 100) + 1) if found else [1]


class _Script:
    """Kodsport's `generator.sh`: a line a test, `tc NAME GENERATOR ARGUMENTS`; what else a shell can do is left out."""

    def __init__(self, reading: _Reading) -> None:
        self._reading = reading
        self._variables: dict[str, str] = {}
        self._group = "secret"
        self._flags: dict[str, tuple[str, ...]] = {}
        self._known: set[str] = set()

    def read(self, text: str) -> None:
        """Read a script."""
        commands = [part for line in text.replace("\\\n", " ").split("\n") for part in _split_commands(line)]
        for command in self._expand(commands):
            self._run(command)

    def _expand(self, lines: Sequence[str]) -> Iterator[str]:
        """Yield lines, those of a loop over words once for each."""
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
            body = [line.removeprefix("do ") for line in lines[position + 1 : end - 1] if line != "do"]
            for word in _words(self._put(loop[2]))[:200]:
                self._variables[loop[1]] = word
                yield from self._expand(body)
            position = end

    def _put(self, line: str) -> str:
        """Put what variables hold in their places."""
        found = re.fullmatch(r"(?:let |export )?([A-Za-z_]\w*)=([\w.+-]*|\"[^\"$]*\")", line)
        if found:
            self._variables[found[1]] = found[2].strip('"')
            return ""
        return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda one: self._variables.get(one[1] or one[2], one[0]), line)

    def _run(self, line: str) -> None:
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            return
        if not words:
            return
        command, arguments = words[0], words[1:]
        if command == "group" and arguments:
            self._group = f"secret/{arguments[0]}"
        elif command == "samplegroup":
            self._group = "sample"
        elif command == "limits":
            self._flags[self._group] = tuple(arguments)
            self._reading.flags.append(tuple(arguments))
        elif command == "compile" and arguments:
            path = f"data/{arguments[0]}"
            made = self._reading.program(posixpath.normpath(path), "generator")
            if made is not None:
                name = PurePosixPath(path).stem
                self._reading.generators[name] = made.model_copy(update={"name": name})
        elif command == "tc_manual" and arguments:
            path = posixpath.normpath(posixpath.join("data", arguments[0]))
            if path in self._reading.files:
                self._add(text=self._reading.files[path])
        elif command == "tc" and len(arguments) > 1:
            self._test(arguments)

    def _test(self, arguments: Sequence[str]) -> None:
        name, generator, *rest = arguments
        if "$" in " ".join(arguments) or "`" in " ".join(arguments):
            self._reading.left_out.append("generator.sh: a line that only a shell can read")
        elif generator not in self._reading.generators:
            self._reading.left_out.append(f"generator.sh: {generator} is no program that was read")
        elif name not in self._known:
            self._known.add(name)
            # The tool that these packages share: the seed is the last argument.
            seed = int(hashlib.md5(name.encode(), usedforsecurity=False).hexdigest()[:6], 16)
            self._add(generator=generator, arguments=(*rest, str(seed)))

    def _add(self, **fields: Any) -> None:
        self._reading.add(InputRecipe(group=self._group, flags=self._flags.get(self._group, ()), **fields))


def _split_commands(line: str) -> list[str]:
    """Return the commands of a line; a quoted text stays whole."""
    return [part.strip() for part in re.split(r";(?=(?:[^\"']|\"[^\"]*\"|'[^']*')*$)", line)]


def _words(text: str) -> list[str]:
    """Return the words that a loop goes over; `{1..5}` and `$(seq 1 5)` are numbers."""
    found: list[str] = []
    for one in re.findall(r"\{-?\d+\.\.-?\d+\}|\$\(seq [-\d ]+\)|\S+", text):
        numbers = [int(number) for number in re.findall(r"-?\d+", one)] if one[0] in "{$" else []
        if len(numbers) == 1:
            numbers = [1, *numbers]
        found += map(str, range(numbers[0], numbers[-1] + 1)) if numbers else [one]
    return found


def _language_of(path: str) -> str:
    """Return the language of a program by its name; empty if it is not known."""
    return _CHECKTESTDATA if _suffix(path) == ".ctd" else language_of(path)


def _suffix(path: str) -> str:
    return PurePosixPath(path).suffix.lower()

"""Reads programs of a package that make or check its inputs, and collects them with their recipes.

Nothing is executed here. A program of several files becomes one: C++ headers are put in the place
of their includes (also `testlib.h`, where the package has it), Python modules beside a script go
with it as texts. A validator in Checktestdata's language becomes the Python program that the
package `checktestdata` makes of it.
"""

import posixpath
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.util import find_spec
from pathlib import Path, PurePosixPath
from typing import Literal

from microcoder.data.formats.candidates import InputKit, InputProgram, InputRecipe
from microcoder.data.formats.includes import IMPORT, inline_includes
from microcoder.data.formats.programs import language_of
from microcoder.judge.core.machine import how_to_install

_CHECKTESTDATA = "checktestdata"
"""Our name for the language of Checktestdata's scripts."""
_NO_PROGRAMS = (".h", ".hpp", ".hh", ".md", ".txt")
"""Suffixes of files beside validators that are none, so that nothing is said about them."""
_MAIN = re.compile(r"\bint\s+main\s*\(|\bmain\s*\(\s*(?:int|void|\))")
"""A source in C++ or Java that is the main one of several."""
_MOST_RECIPES = 2000
"""Recipes of a package that are kept."""
_LONGEST_REASON = 200
"""Characters of the reason why a program is left out."""
_HEADER = "validation.h"
"""BAPCtools' header for validators: under the GPL, so read from an installed BAPCtools, not copied
here."""
# It is part of programs in the corpus: a changed letter is another program.
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
"""Template of a program of several Python modules: these are imported from texts in it."""


def translate_checktestdata(code: str) -> str:
    """Return a Python program that checks an input by a Checktestdata script.

    Raises:
        ValueError: the script cannot be translated.
    """
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
        # Its import lifts the limit for the whole process, and with it what the judge takes for a
        # value.
        sys.set_int_max_str_digits(most_digits)
    try:
        script = parse(tokenize(code.encode("utf-8", "surrogatepass")))
        program = script.python_code(standalone=True)
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
def find_header() -> Mapping[str, str]:
    """Return BAPCtools' header as {name: text}; empty if BAPCtools is not installed."""
    package = find_spec("bapctools")
    if package is None:
        return {}
    headers = {}
    for folder in package.submodule_search_locations or ():
        path = Path(folder, "resources", "headers", _HEADER)
        if path.is_file():
            headers[path.name] = path.read_text(encoding="utf-8")
    return headers


@dataclass(slots=True)
class KitReading:
    """Collects the programs and recipes of a package while it is read; `kit` returns them."""

    files: Mapping[str, str]
    """The package's files that are text, by path."""
    generators: dict[str, InputProgram] = field(default_factory=dict)
    validators: list[InputProgram] = field(default_factory=list)
    recipes: list[InputRecipe] = field(default_factory=list)
    flags: list[tuple[str, ...]] = field(default_factory=list)
    """Arguments of validators, a tuple for each group of tests."""
    left_out: list[str] = field(default_factory=list)
    """Parts that could not be read, and why."""

    def kit(self) -> InputKit:
        """Return the programs and recipes that were read; of recipes at most the first 2,000."""
        return InputKit(
            programs=(*self.generators.values(), *self.validators),
            recipes=tuple(self.recipes[:_MOST_RECIPES]),
            flags=tuple(dict.fromkeys(self.flags)),
            left_out=tuple(dict.fromkeys(self.left_out)),
        )

    def add_validator(self, path: str) -> None:
        """Read an input validator, a file or a folder; one that cannot be read is noted."""
        program = self._read(path, path, "validator")
        if program is not None:
            self.validators.append(program)

    def add_generator(self, name: str, path: str, beside: Sequence[str] = ()) -> bool:
        """Read a generator, unless it was read before, and return whether it could be read.

        Args:
            path: a file or a folder.
            beside: paths of further modules that it may import.
        """
        # Many recipes call one generator, which is read once.
        if name not in self.generators:
            program = self._read(name, path, "generator", beside)
            if program is not None:
                self.generators[name] = program
        return name in self.generators

    def _read(
        self,
        name: str,
        path: str,
        role: Literal["generator", "validator"],
        beside: Sequence[str] = (),
    ) -> InputProgram | None:
        """Return a program with its includes or modules in one text.

        None, which is noted in `left_out`, if it cannot be read.
        """
        entry = path if path in self.files else self._find_main(path)
        language = _language_of(entry)
        if not language:
            if role == "generator" or PurePosixPath(name).suffix.lower() not in _NO_PROGRAMS:
                self.left_out.append(f"{path}: no program in a language that is known")
            return None
        code = self.files[entry]
        try:
            if language in ("cpp", "c"):
                code = self._inline(entry)
            elif language == "python":
                code = self._bundle(entry, beside)
            elif language == _CHECKTESTDATA:
                code = translate_checktestdata(code)
                language = "python"
        except ValueError as error:
            self.left_out.append(f"{name}: {error}"[:_LONGEST_REASON])
            return None
        return InputProgram(name=name, role=role, code=code, language=language)

    def _find_main(self, folder: str) -> str:
        """Return the path of the main file of a program's folder.

        Empty if no file in it is a program.
        """
        sources = []
        for path in sorted(self.files):
            if path.startswith(f"{folder}/") and _language_of(path):
                sources.append(path)
        mains = [path for path in sources if self._is_main(path)]
        main_names = (PurePosixPath(folder).name, "main")
        # A file with the name of its folder, or `main`, is likelier the one than any other.
        named = [path for path in mains if PurePosixPath(path).stem in main_names]
        best = named or mains or sources
        return best[0] if best else ""

    def _is_main(self, path: str) -> bool:
        """Whether a source can be run: a script, or a file that defines the function `main`."""
        if path.endswith((".py", ".py3", ".ctd")):
            return True
        return bool(_MAIN.search(self.files[path]))

    def _inline(self, path: str) -> str:
        """Return a source in C or C++ as one file; ValueError if it includes missing files."""
        # A header of the package's own counts more than the one of BAPCtools.
        files = {**find_header(), **self.files}
        code, missing = inline_includes(path, files, anywhere=True)
        if missing:
            hint = "; type: pip install bapctools" if _HEADER in missing else ""
            names = ", ".join(dict.fromkeys(missing))
            raise ValueError(f"includes {names}, which the package lacks{hint}")
        return code

    def _bundle(self, path: str, beside: Sequence[str]) -> str:
        """Return a Python script as one file: modules beside it that it imports are embedded."""
        folder = posixpath.dirname(path)
        near = []
        for other in self.files:
            if posixpath.dirname(other) == folder and other.endswith(".py"):
                near.append(other)
        modules = {}
        for other in (*near, *beside):
            if other != path:
                modules[PurePosixPath(other).stem] = self.files[other]
        needed: dict[str, str] = {}
        waiting = [self.files[path]]
        # Modules may import each other, so what is found is searched in turn.
        while waiting:
            for name in IMPORT.findall(waiting.pop()):
                if name in modules and name not in needed:
                    needed[name] = modules[name]
                    waiting.append(modules[name])
        # Alone it runs as it is: only modules need a loader.
        if not needed:
            return self.files[path]
        return _BUNDLE.format(modules=needed, code=self.files[path])


def _language_of(path: str) -> str:
    if path.lower().endswith(".ctd"):
        return _CHECKTESTDATA
    return language_of(path)

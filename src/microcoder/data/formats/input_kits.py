"""Reads how packages make and check their inputs; nothing is executed.

The inputs are made by BAPCtools' `generators.yaml` or by Kodsport's script `generator`
(`kit_scripts`). Programs are read in `kit_programs`.
"""

import hashlib
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any

from microcoder.data.formats.candidates import InputKit, InputRecipe
from microcoder.data.formats.kit_programs import KitReading
from microcoder.data.formats.kit_scripts import GeneratorScript
from microcoder.data.formats.values import read_yaml

_INPUT_FOLDERS = ("input_validators", "input_validator", "input_format_validators")
"""Folders of input validators, by version of the format."""
TAKES = (
    "input_validators/**",
    "input_validator/**",
    "input_format_validators/**",
    "generators/**",
    "manual-tests/**",
    "manual_tests/**",
)
"""Patterns of the files of a package that are read for its kit, besides those below `data`."""
_SEED = re.compile(r"\{seed(?::[^}]*)?\}")
"""Stands for a seed in the command of a generator."""
_MOST_SEED = 1 << 31
"""Seeds are less than this."""
_SCRIPT = re.compile(r"data/[^/.]*gen[^/.]*(?:\.sh)?")
"""Path of Kodsport's generator script.

Also `donotuse_generator.sh`, of packages whose own tests are final.
"""
_TOOL = re.compile(r"^[ \t]*tc[ \t]*\(\)", re.MULTILINE)
"""A script that defines the command `tc` for others; it makes no inputs itself and is skipped."""
_SETTINGS_OF_TESTS = ("testdata.yaml", "test_group.yaml")
_FLAGS = re.compile(r"^input_validator_(?:flags|args):[ \t]*([^\n#]{1,300})", re.MULTILINE)
_PUNCTUATION = re.compile(r"^\[|\]$|['\"]|,(?=\s)")
"""What is no part of the flags, which are a text or a list in brackets."""
_MOST_COUNT = 100
"""Inputs that one command with a count makes."""
_LONGEST_REASON = 200
"""Characters of the reason why settings are left out."""


def read_kit(files: Mapping[str, str]) -> InputKit:
    """Return a package's generators, the recipes that call them, and its input validators."""
    reading = KitReading(files)
    for folder in _INPUT_FOLDERS:
        # A file or a folder: all that lies below one name is one program.
        names = {path.split("/")[1] for path in files if path.startswith(f"{folder}/")}
        for name in sorted(names):
            reading.add_validator(f"{folder}/{name}")
    for path in sorted(files):
        if posixpath.basename(path) in _SETTINGS_OF_TESTS:
            flags = _FLAGS.search(files[path])
            if flags:
                words = _PUNCTUATION.sub(" ", flags[1].strip()).split()
                reading.flags.append(tuple(words))
    if "generators/generators.yaml" in files:
        _read_yaml(reading, files["generators/generators.yaml"])
    else:
        GeneratorScript(reading).read(_find_script(files))
    return reading.kit()


def _find_script(files: Mapping[str, str]) -> str:
    """Return the text of Kodsport's generator script; empty without one."""
    for path, text in sorted(files.items()):
        if _SCRIPT.fullmatch(path) and not _TOOL.search(text):
            return text
    return ""


def _read_yaml(reading: KitReading, text: str) -> None:
    """Add the recipes of BAPCtools' `generators.yaml`; note what cannot be read."""
    try:
        settings = read_yaml(text)
    except ValueError as error:
        reading.left_out.append(f"generators.yaml: {error}"[:_LONGEST_REASON])
        return
    if isinstance(settings, Mapping):
        _GeneratorsFile(reading, settings).read()


class _GeneratorsFile:
    """Reads the settings in BAPCtools' `generators.yaml`: a tree of groups and tests."""

    def __init__(self, reading: KitReading, settings: Mapping[str, Any]) -> None:
        self._reading = reading
        self._data = settings.get("data")
        self._files_of = settings.get("generators")
        """The files of each generator, if that is more than one."""
        self._salt = str(settings.get("random_salt") or "")
        """Part of all seeds."""

    def read(self) -> None:
        """Add the recipes of all tests."""
        self._read_group(self._data, "")

    def _read_group(self, data: object, group: str) -> None:
        """Add the recipes of the tests in a group: an object, or a list of objects."""
        items = data if isinstance(data, list) else [data]
        for item in items:
            if isinstance(item, Mapping):
                for name, value in item.items():
                    self._read_entry(str(name or "test"), value, group)

    def _read_entry(self, name: str, value: object, group: str) -> None:
        """Add the recipe of a test, or those of a group."""
        # A test may be its command alone.
        settings = value if isinstance(value, Mapping) else {"generate": value}
        if "data" in settings or settings.get("type") == "directory":
            self._read_group(settings.get("data"), f"{group}/{name}".strip("/"))
            return
        text = settings.get("in")
        if isinstance(text, str):
            self._reading.recipes.append(InputRecipe(group=group, text=f"{text.rstrip()}\n"))
            return
        path = settings.get("copy")
        if isinstance(path, str):
            self._copy(f"{path}.in", group)
            return
        command = settings.get("generate")
        if not isinstance(command, str):
            return
        is_path = command.strip().endswith(".in") and len(command.split()) == 1
        if is_path:
            self._copy(command.strip(), group)
            return
        num = settings.get("count")
        counts: Sequence[int] = [1]
        if isinstance(num, int):
            counts = range(1, min(num, _MOST_COUNT) + 1)
        for count in counts:
            filled = command.replace("{count}", str(count))
            filled = filled.replace("{name}", name)
            self._call(filled, group)

    def _copy(self, name: str, group: str) -> None:
        """Add the recipe of a test whose input is a file of the package."""
        path = posixpath.normpath(posixpath.join("generators", name))
        if path in self._reading.files:
            text = self._reading.files[path]
            self._reading.recipes.append(InputRecipe(group=group, text=text))
        else:
            self._reading.left_out.append(f"{path}: not there")

    def _call(self, command: str, group: str) -> None:
        """Add the recipe of a test that a generator makes."""
        # As BAPCtools computes it: the inputs are those of the package.
        salted = self._salt + command
        digest = hashlib.sha512(salted.encode()).hexdigest()
        seed = int(digest, 16) % _MOST_SEED
        words = _SEED.sub(str(seed), command).split()
        name, *arguments = words or [""]
        listed = None
        if isinstance(self._files_of, Mapping):
            listed = self._files_of.get(name)
        paths = []
        for file in listed or [name]:
            below_generators = posixpath.join("generators", str(file))
            paths.append(posixpath.normpath(below_generators))
        # Of a generator of several files the first one is run.
        path, *beside = paths
        if name.startswith("/"):
            # It is relative to the package, not to the folder of generators.
            path = name.lstrip("/")
        if self._reading.add_generator(name, path, beside):
            self._reading.recipes.append(
                InputRecipe(group=group, generator=name, arguments=tuple(arguments))
            )

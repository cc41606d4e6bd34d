"""What two processes of a conversation see of each other besides values.

In the harness that published a test, test and answer run in one process. So what the answer prints
is printed in the test, which may catch it. What the test does to the answer's surroundings is done
there too, before its next call: it replaces functions of a library (`subprocess.call = Mock()`) or
`sys.stdin`, seeds random numbers, sets variables of the environment, writes files and reads those
that the answer wrote.

What is watched is decided by the test's source, so that most calls cost nothing.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import os
import random
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from microcoder.judge.sandbox.value_kinds import Malformed

Event = tuple[Any, ...]
"""Something that happened in one process: what, and the details."""
_NAMES_FILES = re.compile(
    r"\bopen\s*\(|\bos\b|pathlib|shutil|tempfile|glob|sqlite|\b(?:to|read)_\w+\("
)
"""Tests that may write files or read them."""
_MOST_FILES = 256
"""Most files that cross."""
_MOST_FILE_BYTES = 8 << 20
"""Bytes of the largest file that crosses."""
_NOT_REPLACED = ("sys.stdout", "sys.stderr")
"""What a test replaces in its own process only: what the answer prints is sent there."""
_IS_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")
_MISSING = object()


class Surroundings:
    """What one side tells and is told: nothing, unless a subclass watches something."""

    def describe(self) -> list[Event] | None:
        """Return what happened here since the last message."""
        return None

    def adopt(self, events: object) -> None:
        """Do here what happened on the other side."""


class Folder:
    """The working folder, as far as the other side knows it."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int]] = {}

    def find_changes(self) -> list[Event]:
        """Return the files and folders that were made, changed or removed since the last time."""
        found: dict[str, tuple[int, int]] = {}
        with contextlib.suppress(OSError):
            for path, state in _walk("."):
                found[path] = state
                if len(found) >= _MOST_FILES:
                    break
        events: list[Event] = []
        for path in self._known.keys() - found.keys():
            events.append(("file", path, None))
        for path, state in found.items():
            if self._known.get(path) == state:
                continue
            if state == _FOLDER:
                events.append(("folder", path, None))
            elif state[1] <= _MOST_FILE_BYTES:
                with contextlib.suppress(OSError):
                    events.append(("file", path, _read(path)))
        self._known = found
        return events

    def write(self, what: object, path: object, content: object) -> None:
        """Make, write or remove a file or a folder below the working folder."""
        if not isinstance(path, str) or path.startswith("/") or ".." in path.split("/"):
            raise Malformed("a file outside the folder")
        with contextlib.suppress(OSError):
            if what == "folder":
                os.makedirs(path, exist_ok=True)
                self._known[path] = _FOLDER
                return
            if content is None:
                remove = os.rmdir if os.path.isdir(path) else os.unlink
                remove(path)
                self._known.pop(path, None)
                return
            if not isinstance(content, bytes):
                raise Malformed("a file without content")
            _write(path, content)
            status = os.stat(path)
            self._known[path] = (status.st_mtime_ns, status.st_size)


_FOLDER = (-1, -1)
"""In place of the time and size of a file: it is a folder."""


def _walk(folder: str) -> Iterator[tuple[str, tuple[int, int]]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_symlink() or entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield entry.path, _FOLDER
                yield from _walk(entry.path)
            elif entry.is_file():
                status = entry.stat()
                yield entry.path, (status.st_mtime_ns, status.st_size)


def _read(path: str) -> bytes:
    # Not by `open`, which a test may have replaced.
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.pread(descriptor, _MOST_FILE_BYTES, 0)
    finally:
        os.close(descriptor)


def _write(path: str, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


class TestSurroundings(Surroundings):
    """The side of the test: it tells what the test replaces, and prints what the answer prints."""

    __test__ = False  # not a pytest class

    def __init__(self, source: str) -> None:
        """Watch what a test's source names."""
        self._folder = Folder() if _NAMES_FILES.search(source) else None
        self._watched = {path: _find(path) for path in _find_replaced(source)}
        self._told: dict[str, object] = {}
        self._seeds: list[Event] = []
        self._environment = dict(os.environ) if "environ" in source else None
        if "seed(" in source:
            self._note_seeds()
        self.begin: dict[str, Any] = {"files": self._folder is not None}
        """What the side of the answer is to know before the first call."""

    def describe(self) -> list[Event] | None:
        """Return what the test did since the last message."""
        events = self._seeds
        self._seeds = []
        for path, original in self._watched.items():
            value = _find(path)
            if value is self._told.get(path, original) or value is _MISSING:
                continue
            self._told[path] = value
            is_restored = value is original
            events.append(("restore", path) if is_restored else ("replace", path, value))
        if self._environment is not None:
            events += self._find_variables(self._environment)
        if self._folder is not None:
            events += self._folder.find_changes()
        return events or None

    def adopt(self, events: object) -> None:
        """Print what the answer printed; write the files that it wrote."""
        for event in _check_events(events):
            if event[0] == "printed" and len(event) == 3 and isinstance(event[2], str):
                stream = sys.stdout if event[1] == 1 else sys.stderr
                stream.write(event[2])
            elif event[0] in ("file", "folder") and len(event) == 3 and self._folder is not None:
                self._folder.write(*event)
            else:
                raise Malformed("an event of another kind")

    def _find_variables(self, known: dict[str, str]) -> list[Event]:
        # A test may have put something else in its place.
        if not isinstance(os.environ, os._Environ):
            return []
        now = dict(os.environ)
        events: list[Event] = []
        for name in known.keys() | now.keys():
            if known.get(name) != now.get(name):
                events.append(("variable", name, now.get(name)))
        self._environment = now
        return events

    def _note_seeds(self) -> None:
        """Have seeds of random numbers noted, for the answer's process."""

        def note(module: str, seed: Callable[..., Any]) -> Callable[..., Any]:
            def noted(*arguments: Any, **named: Any) -> Any:
                self._seeds.append(("seed", module, arguments))
                return seed(*arguments, **named)

            return noted

        random.seed = note("random", random.seed)
        with contextlib.suppress(ImportError):
            numpy_random: Any = importlib.import_module("numpy.random")
            numpy_random.seed = note("numpy.random", numpy_random.seed)


class AnswerSurroundings(Surroundings):
    """The side of the answer: it tells what was printed, and does what the test did."""

    def __init__(self, begin: dict[str, Any]) -> None:
        self._folder = Folder() if begin.get("files") else None
        self._originals: dict[str, object] = {}
        self._printed = {1: _size_of(1), 2: _size_of(2)}

    def describe(self) -> list[Event] | None:
        """Return what the answer printed and wrote since the last message."""
        events: list[Event] = []
        for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
            with contextlib.suppress(Exception):
                stream.flush()
            size = _size_of(descriptor)
            since = self._printed[descriptor]
            if size > since:
                text = os.pread(descriptor, size - since, since).decode("utf-8", "replace")
                events.append(("printed", descriptor, text))
            self._printed[descriptor] = size
        if self._folder is not None:
            events += self._folder.find_changes()
        return events or None

    def adopt(self, events: object) -> None:
        """Do what the test did."""
        for event in _check_events(events):
            match event:
                case ("replace", path, value):
                    self._originals.setdefault(path, _find(path))
                    _set(path, value)
                case ("restore", path):
                    _set(path, self._originals.get(path))
                case ("seed", module, arguments):
                    importlib.import_module(module).seed(*arguments)
                case ("variable", name, None):
                    os.environ.pop(name, None)
                case ("variable", name, value):
                    os.environ[name] = value
                case ("file" | "folder", _, _) if self._folder is not None:
                    self._folder.write(*event)


def _check_events(events: object) -> list[Event]:
    if events is None:
        return []
    if type(events) is not list:
        raise Malformed("no events")
    for event in events:
        if type(event) is not tuple or not event:
            raise Malformed("no event")
    return events


def _size_of(descriptor: int) -> int:
    try:
        return os.fstat(descriptor).st_size
    except OSError:
        return 0


def _find_owner(path: str) -> tuple[Any, str]:
    """Return the module or class that holds what a dotted path names, and its name there."""
    parts = path.split(".")
    for length in range(len(parts) - 1, 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(parts[:length]))
        except Exception:
            continue
        for part in parts[length:-1]:
            owner = getattr(owner, part, None)
        return owner, parts[-1]
    return None, parts[-1]


def _find(path: str) -> object:
    """Return what a dotted path names now; `_MISSING` for nothing."""
    owner, name = _find_owner(path)
    return _MISSING if owner is None else getattr(owner, name, _MISSING)


def _set(path: str, value: object) -> None:
    owner, name = _find_owner(path)
    with contextlib.suppress(AttributeError, TypeError):
        if value is _MISSING:
            delattr(owner, name)
        else:
            setattr(owner, name, value)


def _find_replaced(source: str) -> list[str]:
    """Return dotted paths that a test assigns to, or names for a patch, from a module's name on."""
    if not re.search(r"\.\w+\s*=[^=]|patch|setattr", source):
        return []
    tree = compile(source, "", "exec", ast.PyCF_ONLY_AST)
    modules = _find_imported(tree)
    paths: dict[str, None] = {}
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets):
                for target in targets:
                    if isinstance(target, ast.Attribute):
                        paths[_resolve(ast.unparse(target), modules)] = None
            case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]):
                if "patch" in ast.unparse(func):
                    paths[name] = None
            case ast.Call(func=func, args=[owner, ast.Constant(value=str(name)), *_]):
                if re.search(r"patch|setattr", ast.unparse(func)):
                    paths[_resolve(f"{ast.unparse(owner)}.{name}", modules)] = None
    return [path for path in paths if _IS_DOTTED.fullmatch(path) and path not in _NOT_REPLACED]


def _find_imported(tree: ast.Module) -> dict[str, str]:
    """Return the dotted path behind each name that is imported."""
    modules: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.partition(".")[0]
                modules[alias.asname or first] = alias.name if alias.asname else first
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return modules


def _resolve(path: str, modules: dict[str, str]) -> str:
    """Return a path with the module's own name; empty if it does not begin with a module."""
    first, _, rest = path.partition(".")
    return f"{modules[first]}.{rest}" if first in modules else ""

"""What a language's runtime is given in a sandbox, resolved on this machine."""

from __future__ import annotations

import os
import struct
from typing import Any

from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.languages import Language, Runtime
from microcoder.judge.languages.definition import expand_paths
from microcoder.judge.run.supervisor import LoadedBinary, LoadedProgram

_PROGRAM_INTERPRETER = 3
_MOST_HEADERS_BYTES = 1 << 16


def require_runtime(language: Language) -> tuple[Runtime, str]:
    """Return a language's runtime and the path of its command."""
    command = language.runtime.find_command() if language.runtime else None
    if language.runtime is None or command is None:
        raise EvaluatorFault(language.find_problem())
    return language.runtime, os.path.realpath(command)


def find_room(language: Language) -> dict[str, Any]:
    """Return what a sandbox gives a language's runtime beyond a binary's files and memory, as sent there."""
    runtime, command = require_runtime(language)
    readable = expand_paths(runtime.fill(path, command) for path in runtime.readable)
    return {
        "readable": (*readable, command),
        # The only files that may be started: the runtime itself and the system's loader.
        "executables": (command, *_find_loader(command)),
        "environment": {name: runtime.fill(value, command) for name, value in runtime.environment.items()},
        "links": {name: runtime.fill(target, command) for name, target in runtime.links.items()},
        "texts": dict(runtime.texts),
        "address_space_bytes": runtime.address_space_mib << 20,
        "reserved_bytes": runtime.reserved_memory_mib << 20,
    }


class LoadedRuntime(LoadedBinary):
    """A built program, ready to be run by its language's runtime."""

    def __init__(self, language: Language, built: bytes, memory_mib: int) -> None:
        """Open the runtime."""
        runtime, command = require_runtime(language)
        self.source = os.open(command, os.O_RDONLY | os.O_CLOEXEC)
        self._command = tuple(runtime.command(command, memory_mib))
        self._files = {runtime.program_file: built}


Loaded = LoadedProgram | LoadedBinary
"""A program ready to be run."""


def _find_loader(command: str) -> tuple[str, ...]:
    """Return the program that the kernel loads an executable with; nothing for a static one."""
    with open(command, "rb") as file:
        head = file.read(_MOST_HEADERS_BYTES)
    if head[:5] != b"\x7fELF\x02":
        raise EvaluatorFault(f"{command} is no 64-bit executable; name the program itself, not a script that starts it")
    (offset,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
    for start in range(offset, offset + size * count, size):
        kind, _, place, _, _, length = struct.unpack_from("<IIQQQQ", head, start)
        if kind == _PROGRAM_INTERPRETER:
            name = head[place : place + length].rstrip(b"\0").decode()
            return (os.path.realpath(name),)
    return ()

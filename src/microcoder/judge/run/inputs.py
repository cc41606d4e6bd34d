"""Large inputs of tests, sealed and shared: the samples of a group read one copy, each at a place of its own.

Programs that open their standard streams by name: `/dev/stdin`, `/dev/fd/1`, `/proc/self/fd/0`.

A private root has no `/proc`, so streams in anonymous memory have no name there. A program whose text holds such a name
is given a copy of its input as a file, and files in the place of its output streams, which the fork server reads after
the test; every other program is spared them.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections import OrderedDict

_NAMES_INPUT = re.compile(r"/dev/(?!null|zero|u?random|stdout|stderr)|/proc/")
_NAMES_OUTPUT = re.compile(r"/dev/(?!null|zero|u?random|stdin)|/proc/")


def names_input(code: str) -> bool:
    """Whether a program's text may name its standard input."""
    return _NAMES_INPUT.search(code) is not None


def names_output(code: str) -> bool:
    """Whether a program's text may name its standard output or error."""
    return _NAMES_OUTPUT.search(code) is not None


_ALL_SEALS = 0xF
_WORTH_SHARING_BYTES = 1 << 18
"""A smaller input is copied as fast as it is looked up."""
_MAX_FILES, _MAX_BYTES = 64, 256 << 20


class InputShelf:
    """The latest used large inputs; safe for several threads at once."""

    def __init__(self, most_bytes: int = _MAX_BYTES) -> None:
        """Start empty; hold at most so many bytes."""
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._files: OrderedDict[bytes, int] = OrderedDict()
        self._num_bytes = 0

    def open(self, content: bytes) -> int:
        """Return a descriptor with this content, at its start; the caller's to close."""
        if not _WORTH_SHARING_BYTES <= len(content) <= self._most_bytes:
            return make_memory_file(content)
        with self._lock:
            if content in self._files:
                self._files.move_to_end(content)
            else:
                self._files[content] = make_memory_file(content)
                self._num_bytes += len(content)
            while len(self._files) > _MAX_FILES or self._num_bytes > self._most_bytes:
                evicted, descriptor = self._files.popitem(last=False)
                self._num_bytes -= len(evicted)
                os.close(descriptor)
            # Opened anew: a descriptor that was only duplicated would share its position.
            with contextlib.suppress(OSError):
                return os.open(f"/proc/self/fd/{self._files[content]}", os.O_RDONLY | os.O_CLOEXEC)
        return make_memory_file(content)

    def close(self) -> None:
        """Free the memory."""
        with self._lock:
            while self._files:
                os.close(self._files.popitem()[1])
            self._num_bytes = 0


def make_memory_file(data: bytes) -> int:
    """Return the descriptor of an anonymous file with this content, sealed: nobody can change it any more."""
    import fcntl  # Not there on Windows, where this module can be imported all the same.

    descriptor = os.memfd_create("data", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    write_all(descriptor, data)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _ALL_SEALS)
    return descriptor


def write_all(descriptor: int, data: bytes) -> None:
    """Write a file from its start; its position stays."""
    num_written = os.pwrite(descriptor, data, 0)
    while num_written < len(data):
        num_written += os.pwrite(descriptor, memoryview(data)[num_written:], num_written)

"""/tmp for Python programs that name it where the folder they may write to is another one.

Only what a program calls is led elsewhere, not what it says: a path stays the text that the program made. Programs that
do not name /tmp run untouched; what reaches the kernel by other ways than these functions sees the machine's own /tmp,
which it cannot read.
"""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable
from typing import Any

USUAL = "/tmp"
_ONE_PATH = """
open stat lstat access mkdir rmdir unlink remove listdir scandir chdir chmod readlink truncate utime statvfs
"""
_TWO_PATHS = "rename replace symlink"
_PATH_KEYWORDS = ("path", "file", "src", "dst")


def is_needed(source: int) -> bool:
    """Whether a program's source names /tmp."""
    return USUAL.encode() in os.pread(source, os.fstat(source).st_size, 0)


def redirect_to(folder: str) -> None:
    """Make Python's functions find /tmp in `folder`; in a test's own process, before its program."""

    def lead(path: Any) -> Any:
        if isinstance(path, os.PathLike):
            path = os.fspath(path)
        pairs: list[tuple[Any, Any]] = [(USUAL, folder), (USUAL.encode(), folder.encode())]
        for usual, own in pairs:
            if type(path) is type(usual) and _is_below(path, usual) and not _is_below(path, own):
                return own + path[len(usual) :]
        return path

    def wrap(function: Callable[..., Any], num_paths: int) -> Callable[..., Any]:
        def led(*arguments: Any, **named: Any) -> Any:
            paths = [lead(path) for path in arguments[:num_paths]]
            for key in _PATH_KEYWORDS:
                if key in named:
                    named[key] = lead(named[key])
            return function(*paths, *arguments[num_paths:], **named)

        led.__name__ = led.__qualname__ = function.__name__
        led.__doc__ = function.__doc__
        return led

    for names, num_paths in ((_ONE_PATH, 1), (_TWO_PATHS, 2)):
        for name in names.split():
            setattr(os, name, wrap(getattr(os, name), num_paths))
    builtins.open = io.open = wrap(open, 1)
    find_folder = os.getcwd
    os.getcwd = lambda: USUAL + here[len(folder) :] if (here := find_folder()).startswith(folder) else here


def _is_below(path: Any, folder: Any) -> bool:
    return path[: len(folder)] == folder and path[len(folder) : len(folder) + 1] in ("", b"", "/", b"/")

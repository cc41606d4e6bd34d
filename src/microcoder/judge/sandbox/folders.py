"""The folder a sandbox may write to.

It is made where nothing can be mounted, measured, and emptied after each test. Everything below a
folder is reached by descriptors, one at a time and never through a link. So neither a path that is
too long nor a program that moves folders leads anywhere else.

`redirect_to` serves Python programs that name /tmp where the folder they may write to is another
one. The functions that they call use that folder, while the program's own text of a path is
unchanged. Programs that do not name /tmp run untouched; what reaches the kernel by other ways than
these functions sees the machine's own /tmp, which it cannot read.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import io
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any

PRIVATE_MODE = 0o700
"""Mode of a folder that only its owner enters."""
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags that open a folder, and no link to one."""
_BLOCK_BYTES = 512
"""Size of the blocks that `st_blocks` counts."""


def make_private_folder(path: str) -> int:
    """Make a folder that only its owner enters.

    Return a descriptor that marks it as in use while it is open.
    """
    try:
        os.mkdir(path, PRIVATE_MODE)
        descriptor = os.open(path, _OPEN)
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise OSError(
            f"without mounts programs need a folder to write to, and {path} cannot be made "
            f"({error.strerror}); give this user a folder for temporary files, such as a tmpfs on "
            "/tmp, or set TMPDIR to one"
        ) from None
    return descriptor


def empty_folder(folder: str, mode: int) -> None:
    """Remove what a test left behind, and give the folder its mode back."""
    if os.lstat(folder).st_mode != stat.S_IFDIR | mode:
        os.chmod(folder, mode)
    elif not os.listdir(folder):
        return
    for parent, name, is_folder in _everything_below(folder, is_emptied=True):
        if is_folder:
            os.rmdir(name, dir_fd=parent)
        else:
            os.unlink(name, dir_fd=parent)


def measure_folder(folder: str) -> tuple[int, int]:
    """Return the number of entries and of bytes below a folder.

    Nobody may change its names meanwhile.
    """
    num_entries = 0
    num_bytes = 0
    for parent, name, is_folder in _everything_below(folder):
        num_entries += 1
        if not is_folder:
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            num_bytes += _BLOCK_BYTES * status.st_blocks
    return num_entries, num_bytes


def open_files(folder: str) -> list[int]:
    """Return a descriptor of every file below a folder.

    Nobody may change its names meanwhile.
    """
    opened: list[int] = []
    try:
        for parent, name, is_folder in _everything_below(folder):
            if is_folder:
                continue
            status = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if stat.S_ISREG(status.st_mode):
                opened.append(_open_file(name, parent))
    except OSError:
        close_all(opened)
        raise
    return opened


def close_all(descriptors: Iterable[int]) -> None:
    """Close descriptors."""
    for descriptor in descriptors:
        os.close(descriptor)


def num_bytes_of(descriptor: int) -> int:
    """Return the bytes that an open file takes on the disk."""
    return _BLOCK_BYTES * os.fstat(descriptor).st_blocks


def is_open_elsewhere(descriptor: int) -> bool:
    """Whether a file is, or may be, in use besides by this descriptor.

    That is open, mapped, or being passed between processes.
    """
    try:
        # The kernel grants a lease to whoever alone has a file open: it counts what /proc does not
        # list.
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return True
    return False


def _open_file(name: str, parent: int) -> int:
    flags = os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        return os.open(name, os.O_RDONLY | flags, dir_fd=parent)
    except PermissionError:
        # Not readable, but held all the same.
        return os.open(name, os.O_PATH | flags, dir_fd=parent)


def _everything_below(folder: str, *, is_emptied: bool = False) -> Iterator[tuple[int, str, bool]]:
    """Yield everything below a folder, the deepest entries first.

    Yielded are the open folder that an entry is in, its name, and whether it is a folder.
    """
    here = os.open(folder, _OPEN)
    above: list[tuple[str, tuple[int, int], list[tuple[str, bool]]]] = []
    try:
        left = _list(here)
        while left or above:
            if not left:
                name, identity, left = above.pop()
                here = _replace(here, os.open("..", _OPEN, dir_fd=here))
                # A program that moves the folder changes what ".." is; climbing on would lead out
                # of what is to be emptied.
                if _identity(here) != identity:
                    raise OSError(errno.ESTALE, "a folder was moved")
                yield here, name, True
                continue
            name, is_folder = left.pop()
            if not is_folder:
                yield here, name, False
                continue
            inner = _open_inside(name, here, is_emptied)
            above.append((name, _identity(here), left))
            here = _replace(here, inner)
            left = _list(here)
    finally:
        os.close(here)


def _list(descriptor: int) -> list[tuple[str, bool]]:
    """Return the entries of an open folder: name, and whether it is a folder."""
    with os.scandir(descriptor) as entries:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]


def _open_inside(name: str, parent: int, is_emptied: bool) -> int:
    """Open a folder, also one whose mode keeps its owner out."""
    try:
        descriptor = os.open(name, _OPEN, dir_fd=parent)
    except PermissionError:
        _open_up(name, parent)
        return os.open(name, _OPEN, dir_fd=parent)
    if is_emptied and os.fstat(descriptor).st_mode & PRIVATE_MODE != PRIVATE_MODE:
        os.fchmod(descriptor, PRIVATE_MODE)
    return descriptor


def _open_up(name: str, parent: int) -> None:
    """Give a folder's owner all rights on it, whatever its mode."""
    handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        reach = f"/proc/self/fd/{handle}"
        if os.path.exists(reach):
            os.chmod(reach, PRIVATE_MODE)
        else:
            # In a private root, where the only process that could put a link in its place has
            # ended.
            os.chmod(name, PRIVATE_MODE, dir_fd=parent)
    finally:
        os.close(handle)


def _identity(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_dev, status.st_ino


def _replace(old: int, new: int) -> int:
    """Close a descriptor and return the one that takes its place."""
    os.close(old)
    return new


USUAL = "/tmp"
"""The folder that programs expect to write to."""
_SINGLE_PATH = """
open stat lstat access mkdir rmdir unlink remove listdir scandir chdir chmod readlink truncate utime
statvfs
"""
"""Functions of `os` that take one path."""
_TWO_PATHS = "rename replace symlink"
"""Functions of `os` that take two paths."""
_PATH_KEYWORDS = ("path", "file", "src", "dst")
"""Names of their parameters that are paths."""
_ENDS_OF_NAME = ("", b"", "/", b"/")
"""What follows the name of a folder in a path to it, or to what is below it."""


def is_needed(source: int) -> bool:
    """Whether a program's source names /tmp, so that it needs `redirect_to`."""
    return USUAL.encode() in os.pread(source, os.fstat(source).st_size, 0)


def redirect_to(folder: str) -> None:
    """Make Python's functions find /tmp in `folder`.

    It is called in a test's own process, before its program.
    """

    def wrap(function: Callable[..., Any], num_paths: int) -> Callable[..., Any]:
        def redirected(*arguments: Any, **named: Any) -> Any:
            paths = [_redirect(path, folder) for path in arguments[:num_paths]]
            for key in _PATH_KEYWORDS:
                if key in named:
                    named[key] = _redirect(named[key], folder)
            return function(*paths, *arguments[num_paths:], **named)

        redirected.__name__ = function.__name__
        redirected.__qualname__ = function.__name__
        redirected.__doc__ = function.__doc__
        return redirected

    find_folder = os.getcwd

    def find_usual_folder() -> str:
        here = find_folder()
        return USUAL + here[len(folder) :] if here.startswith(folder) else here

    for names, num_paths in ((_SINGLE_PATH, 1), (_TWO_PATHS, 2)):
        for name in names.split():
            setattr(os, name, wrap(getattr(os, name), num_paths))
    own_open = wrap(open, 1)
    builtins.open = own_open
    io.open = own_open
    os.getcwd = find_usual_folder


def _redirect(path: Any, folder: str) -> Any:
    """Return a path below /tmp as one below a folder; any other as it is."""
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    pairs: list[tuple[Any, Any]] = [(USUAL, folder), (USUAL.encode(), folder.encode())]
    for usual, own in pairs:
        if type(path) is not type(usual):
            continue
        # The folder may be below /tmp itself.
        if _is_below(path, usual) and not _is_below(path, own):
            return own + path[len(usual) :]
    return path


def _is_below(path: Any, folder: Any) -> bool:
    """Whether a path is that of a folder, or of something below it."""
    length = len(folder)
    return path[:length] == folder and path[length : length + 1] in _ENDS_OF_NAME

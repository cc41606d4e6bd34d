"""File rules by Landlock (kernel >= 5.13): the fallback for a private root, and a second layer on top of it."""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable

from microcoder.evaluator.sandbox.syscalls import PR_SET_NO_NEW_PRIVS, prctl, syscall

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE = 1 << 14
SINCE_TRUNCATE = 3
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: 1 << 13, SINCE_TRUNCATE: _TRUNCATE, 5: 1 << 15}
_TCP, _SCOPES = 3, 3


def version() -> int:
    """Return the kernel's version of Landlock.

    Raises:
        OSError: it has none.
    """
    return syscall(_CREATE_RULESET, 0, 0, 1)


def restrict(
    *,
    readable: Iterable[str],
    hidden: Iterable[str] = (),
    writable: Iterable[str] = (),
    devices: Iterable[str] = (),
    executables: Iterable[str] = (),
    can_execute: bool,
) -> None:
    """Confine the caller to the given files, for good; listing folders above a hidden one stays possible.

    Without `can_execute` no file may be started, not even by `execveat`, whose path the filter of system calls
    cannot read; a binary in anonymous memory still may, as `executables` may, and libraries are mapped as ever.

    Raises:
        OSError: the kernel has no Landlock.
    """
    abi = version()
    handled = sum(rights for since, rights in _RIGHTS_BY_ABI.items() if abi >= since)
    attributes = struct.pack("Q", handled)
    # TCP and, below, abstract sockets and signals to processes outside: handled without any rule, so refused
    # throughout.
    if abi >= 4:
        attributes += struct.pack("Q", _TCP)
    if abi >= 6:
        attributes += struct.pack("Q", _SCOPES)
    ruleset = syscall(_CREATE_RULESET, ctypes.create_string_buffer(attributes), len(attributes), 0)
    covered = {os.path.realpath(path) for path in hidden}
    allowed = handled if can_execute else handled & ~_EXECUTE
    for path in readable:
        _allow_below(ruleset, os.path.realpath(path), covered, allowed)
    for path in writable:
        # What is written is never started, not even by a compiler.
        _allow(ruleset, path, allowed & ~_EXECUTE, allowed)
    for path in executables:
        _allow(ruleset, path, _EXECUTE | _READ_FILE, handled)
    for path in devices:
        _allow(ruleset, path, _READ_FILE | _WRITE_FILE, handled)
    prctl(PR_SET_NO_NEW_PRIVS, 1)
    syscall(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _allow_below(ruleset: int, path: str, hidden: set[str], handled: int) -> None:
    """Landlock only adds rights, so a folder with something hidden inside is opened entry by entry."""
    if path in hidden:
        return
    if not any(cover.startswith(path + "/") for cover in hidden):
        _allow(ruleset, path, _READ, handled)
        return
    _allow(ruleset, path, _READ_DIR, handled)
    for entry in os.scandir(path):
        # A rule for a link is one for what it leads to, which may be hidden.
        if not entry.is_symlink():
            _allow_below(ruleset, entry.path, hidden, handled)


def _allow(ruleset: int, path: str, rights: int, handled: int) -> None:
    path_beneath, o_path = 1, 0o10000000
    try:
        descriptor = os.open(path, o_path | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS | _TRUNCATE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights & handled, descriptor))
        syscall(_ADD_RULE, ruleset, path_beneath, rule, 0)
    finally:
        os.close(descriptor)

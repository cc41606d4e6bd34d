"""The system calls a program may make, as BPF programs.

`allow_list` is installed once in the zygote and inherited by every test. `per_test` is small,
because it is installed for each test: it takes away what only the zygote needs (processes, filters,
signals to others).

The kernel asks every filter in force and takes the strictest answer: what `per_test` lets pass was
allowed before. A filter sees numbers and not what a pointer leads to, so no rule here rests on a
path or a structure: those are for Landlock and the mount namespace.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterable
from typing import NamedTuple

from microcoder.judge.sandbox import quota
from microcoder.judge.sandbox.kernel import (
    AT_EMPTY_PATH,
    AUDIT_ARCH,
    FIRST_UNKNOWN,
    IS_X86,
    NUMBERS,
)

# Operations of BPF.
_LOAD = 0x20
"""Load a word of what the kernel tells about a call."""
_IF_EQUAL = 0x15
_IF_AT_LEAST = 0x35
_IF_ANY_BIT = 0x45
_RETURN = 0x06

# Answers of a filter; `_error` makes others.
_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ASK = 0x7FC00000
"""The fork server decides."""

# Where the words stand that a filter loads.
_NUMBER = 0
"""The call's number."""
_ARCH = 4
"""The architecture that it is a number of."""

_X32_BIT = 0x40000000
"""Bit of the numbers of x32, another table of the same architecture."""
_CLONE_THREAD = 0x00010000
"""Flag of clone(2): the new thread is of this process."""
_CLONE_NEW_ANYTHING = 0x7E020080
"""Flags of clone(2) that make namespaces."""

_BASE_NAMES = """
read write close fstat stat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask
rt_sigreturn pread64 pwrite64 readv writev access pipe select sched_yield mremap msync mincore
madvise dup dup2 pause nanosleep getitimer alarm setitimer getpid exit wait4 uname fsync fdatasync
ftruncate getdents64 getcwd chdir fchdir readlink umask gettimeofday getrlimit setrlimit getrusage
sysinfo times getuid getgid geteuid getegid getppid getpgrp getgroups getresuid getresgid getpgid
getsid rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack statfs fstatfs getpriority
sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min arch_prctl gettid
time futex sched_getaffinity epoll_create set_tid_address restart_syscall fadvise64 timer_create
timer_settime timer_gettime timer_delete clock_gettime clock_getres clock_nanosleep exit_group
epoll_wait epoll_ctl waitid newfstatat readlinkat faccessat pselect6 ppoll set_robust_list
get_robust_list epoll_pwait eventfd2 epoll_create1 dup3 pipe2 getcpu getrandom membarrier statx
rseq close_range faccessat2 futex_waitv sendto recvfrom sendmsg recvmsg shutdown getsockopt mlock
munlock open openat kill tgkill tkill pidfd_open fork vfork
"""
"""Calls that change nothing outside a process, or that another rule restricts."""
_WRITING_NAMES = """
truncate rename mkdir rmdir unlink symlink chmod fchmod mkdirat unlinkat renameat renameat2
symlinkat fchmodat utimensat fallocate copy_file_range sendfile
"""
"""Calls that change files."""
_ATTRIBUTE_NAMES = "chmod fchmod fchmodat utimensat"
"""Calls that Landlock does not restrict.

Without a private root they reach every file of the same user.
"""
_ASKED_NAMES = f"mkdir mkdirat symlink symlinkat fallocate {quota.REMOVING_NAMES}"
"""Calls about which the fork server decides where it counts files."""

_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x5421)
"""Allowed ones: TCGETS, WINSZ, FIONREAD, FIONCLEX, FIOCLEX, FIONBIO."""
_FCNTLS_REFUSED = (8, 10, 15, 1026)
"""SETOWN, SETSIG, SETOWN_EX, NOTIFY: signals to other processes."""
_FCNTLS_OF_ZYGOTE = (1024,)
"""SETLEASE: signals, too."""
_LOCK_QUESTIONS = (5, 36)
"""GETLK, OFD_GETLK: with read locks, which any readable file takes, programs could talk."""
_SET_PIPE_SIZE = 1031
_PRCTLS = (3, 15, 16, 0x53564D41)
"""GET_DUMPABLE, SET_NAME, GET_NAME, SET_VMA."""
_PRCTLS_OF_ZYGOTE = (1, 22)
"""SET_PDEATHSIG, SET_SECCOMP."""
_RLIMIT_STACK = 3
_UNIX_SOCKETS = 1
"""The domain of sockets within a machine."""
_OWN_PROCESS = 0
"""A process id that means the caller."""

# Flags of open(2).
_ACCESS_MODE = 0o3
"""Set in part if a file is opened to write."""
_CREATE = 0o100
_TRUNCATE = 0o1000
_UNNAMED = 0o20000000
"""Make a file without a name."""
_HANDLE = 0o10000000
"""A handle on a file, which does not have it open."""
_OPEN_TO_WRITE = _ACCESS_MODE | _CREATE | _TRUNCATE | _UNNAMED
_SET_MODE_FILTER = 1
"""Operation of seccomp(2) that installs a filter."""


class FileRules(NamedTuple):
    """Rules for files; the defaults are for a private root, where all files are the test's own."""

    is_shared: bool = False
    """Whether there is no private root: a test must then not set modes and times of files."""
    can_write: bool = True
    """Whether a test may write files; False if nothing else keeps it from the user's own."""
    can_truncate: bool = True
    """Whether a test may truncate files; False if the kernel's Landlock does not check that."""
    asks_about_entries: bool = False
    """Whether the fork server decides about new files, folders and links."""


PRIVATE_FILES = FileRules()
"""The rules for a private root."""


def _argument(index: int) -> int:
    """Return where a call's argument stands: its lower half, the upper one four bytes behind."""
    return 16 + 8 * index


def _error(number: int) -> int:
    """Return the answer by which a call fails with an error."""
    return 0x00050000 | number


_Instructions = list[tuple[int, int, int, int]]
"""BPF: operation, value, and how many instructions are skipped if it is true, and if false."""


def _start() -> _Instructions:
    """Return the start of a filter: kill on a foreign architecture, then load the call's number."""
    # `int 0x80` makes 32-bit calls from a 64-bit program, in which the same number is another call.
    return [
        (_LOAD, _ARCH, 0, 0),
        (_IF_EQUAL, AUDIT_ARCH, 1, 0),
        (_RETURN, _KILL, 0, 0),
        (_LOAD, _NUMBER, 0, 0),
    ]


def _rules(names: str, action: int) -> _Instructions:
    """Return the rules that answer calls of these names by an action."""
    rules: _Instructions = []
    for name in names.split():
        if name in NUMBERS:
            rules += [(_IF_EQUAL, NUMBERS[name], 0, 1), (_RETURN, action, 0, 0)]
    return rules


def _rule_by(name: str, body: _Instructions) -> _Instructions:
    """Return the filter of one system call by its arguments; `body` must end in a return."""
    if name not in NUMBERS:
        return []
    return [(_IF_EQUAL, NUMBERS[name], 0, len(body)), *body]


def _look(index: int, cases: Iterable[tuple[int, int, int]], otherwise: int) -> _Instructions:
    """Return a body that tests one argument.

    It tests the lower 32 bits: the kernel uses no more of any argument that is tested here. A
    pointer has two halves, see `_READ_LIMITS`.

    Args:
        index: the argument.
        cases: operation, value, action if true; in order.
        otherwise: the action where none is true.
    """
    body = [(_LOAD, _argument(index), 0, 0)]
    for operation, value, action in cases:
        body += [(operation, value, 0, 1), (_RETURN, action, 0, 0)]
    return [*body, (_RETURN, otherwise, 0, 0)]


def _look_for(index: int, values: Iterable[int], found: int, otherwise: int) -> _Instructions:
    """Return a body whose action is `found` if an argument has one of these values.

    Else it is `otherwise`.
    """
    return _look(index, [(_IF_EQUAL, value, found) for value in values], otherwise)


def _pack(program: _Instructions) -> bytes:
    """Return a program as the kernel reads it."""
    packed = b""
    for operation, value, if_true, if_false in program:
        packed += struct.pack("HBBI", operation, if_true, if_false, value & 0xFFFFFFFF)
    return packed


def allow_list(*, can_execute: bool = False, can_ask: bool = False) -> bytes:
    """Return the filter that zygote and tests share; whatever it does not name is refused.

    Args:
        can_execute: allow starting any program that can be seen; only where compilers run.
        can_ask: allow installing a filter whose questions the fork server answers.
    """
    program = _start()
    # ENOSYS for calls younger than the list below: libc then falls back to an older one, where
    # EPERM would be final.
    for first_unknown in (_X32_BIT, FIRST_UNKNOWN) if IS_X86 else (FIRST_UNKNOWN,):
        program += [(_IF_AT_LEAST, first_unknown, 0, 1), (_RETURN, _error(errno.ENOSYS), 0, 0)]
    program += _rule_by("clone", _clone(fork=_ALLOW))
    # Its flags are behind a pointer; libc falls back to clone, whose flags are not.
    program += _rules("clone3", _error(errno.ENOSYS))
    program += _rules("socket", _error(errno.EACCES))
    program += _rules("execve", _ALLOW if can_execute else _error(errno.EACCES))
    # A binary in anonymous memory, without a path; `per_test` takes this from Python programs too.
    program += _rule_by("execveat", _look_for(4, (AT_EMPTY_PATH,), _ALLOW, _error(errno.EACCES)))
    ioctls = list(_IOCTLS)
    refused_fcntls = [*_FCNTLS_REFUSED, *_LOCK_QUESTIONS, _SET_PIPE_SIZE]
    if can_ask:
        ioctls += quota.IOCTLS
    else:
        refused_fcntls += _FCNTLS_OF_ZYGOTE
    program += _rule_by("ioctl", _look_for(1, ioctls, _ALLOW, _error(errno.ENOTTY)))
    program += _rule_by("fcntl", _look_for(1, refused_fcntls, _error(errno.EPERM), _ALLOW))
    refused = _error(errno.EPERM)
    prctls = (*_PRCTLS, *_PRCTLS_OF_ZYGOTE)
    program += _rule_by("prctl", _look_for(0, prctls, _ALLOW, refused))
    program += _rule_by("socketpair", _look_for(0, (_UNIX_SOCKETS,), _ALLOW, _error(errno.EACCES)))
    # The caller's own limits: without a pid namespace the fork server's could be set as well.
    program += _rule_by("prlimit64", _look_for(0, (_OWN_PROCESS,), _ALLOW, refused))
    if can_ask:
        program += _rule_by("seccomp", _look_for(0, (_SET_MODE_FILTER,), _ALLOW, refused))
    program += _rules(_BASE_NAMES + _WRITING_NAMES, _ALLOW)
    return _pack([*program, (_RETURN, _error(errno.EPERM), 0, 0)])


def per_test(
    only_pid: int | None = None,
    *,
    is_binary: bool = False,
    asks_about_threads: bool = False,
    files: FileRules = PRIVATE_FILES,
) -> bytes:
    """Return the filter of one test: it may start threads, but no processes, and signal no others.

    Args:
        only_pid: without a pid namespace, the only process that may be signalled: the test itself.
        is_binary: the test is a binary that is still to be started.
        asks_about_threads: the fork server decides about new threads.
        files: what it may do with files.
    """
    program = _start()
    program += _rules("fork vfork", _error(errno.EAGAIN))
    # Handles on other processes, and filters with a listener, are the fork server's alone. Limits
    # may be read, not set: see `LimitSetter`.
    program += _rules("pidfd_open seccomp setrlimit", _error(errno.EPERM))
    program += _rule_by("prlimit64", _READ_LIMITS)
    if not is_binary:
        program += _rules("execveat", _error(errno.EACCES))
    thread = _ASK if asks_about_threads else _ALLOW
    program += _rule_by("clone", _clone(fork=_error(errno.EAGAIN), thread=thread))
    program += _rule_by("prctl", _look_for(0, _PRCTLS, _ALLOW, _error(errno.EPERM)))
    if only_pid is not None:
        # A thread's id alone does not say which process it is of; 0, -1 and negative ids, which
        # mean many, do not match.
        program += _rules("tkill", _error(errno.EPERM))
        for name in ("kill", "tgkill"):
            program += _rule_by(name, _look_for(0, (only_pid,), _ALLOW, _error(errno.EPERM)))
    return _pack([*program, *_restrict_files(files), (_RETURN, _ALLOW, 0, 0)])


def per_build(*, has_own_processes: bool, files: FileRules) -> bytes:
    """Return the filter of a compiler and what it starts."""
    refused = "seccomp" if has_own_processes else "seccomp kill tkill tgkill"
    program = [*_start(), *_rules(refused, _error(errno.EPERM)), *_restrict_files(files)]
    return _pack([*program, (_RETURN, _ALLOW, 0, 0)])


def _restrict_files(files: FileRules) -> _Instructions:
    """Return the rules of one test for files."""
    program: _Instructions = []
    if not files.can_write:
        program += _rules(_WRITING_NAMES, _error(errno.EROFS))
    if not files.can_truncate:
        program += _rules("truncate", _error(errno.EPERM))
    if files.is_shared:
        program += _rules(_ATTRIBUTE_NAMES, _error(errno.EPERM))
    if files.asks_about_entries:
        program += _rules(_ASKED_NAMES, _ASK)
        program += _rule_by("fcntl", _look_for(1, _FCNTLS_OF_ZYGOTE, _error(errno.EPERM), _ALLOW))
    if files != PRIVATE_FILES:
        program += [*_rule_by("open", _open(1, files)), *_rule_by("openat", _open(2, files))]
    return program


def _clone(*, fork: int, thread: int = _ALLOW) -> _Instructions:
    """Return the body for clone(2): an action for a new process, and one for a new thread."""
    refused = (_IF_ANY_BIT, _CLONE_NEW_ANYTHING, _error(errno.EPERM))
    return _look(0, (refused, (_IF_ANY_BIT, _CLONE_THREAD, thread)), fork)


_READ_LIMITS = [
    (_LOAD, _argument(2), 0, 0),
    (_IF_EQUAL, 0, 0, 3),
    (_LOAD, _argument(2) + 4, 0, 0),
    (_IF_EQUAL, 0, 0, 1),
    (_RETURN, _ALLOW, 0, 0),
    *_look_for(1, (_RLIMIT_STACK,), _error(0), _error(errno.EPERM)),
]
"""Allows prlimit64 only without new limits: both halves of that pointer are null.

A new stack size is answered as if it had been set, because deep recursion is often begun with that
call; the stack is large enough for it already.
"""


def _open(flags: int, files: FileRules) -> _Instructions:
    """Return the body for a call that opens files.

    Args:
        flags: the argument that holds the flags.
        files: what a test may do with files.
    """
    cases: list[tuple[int, int, int]] = []
    if not files.can_write:
        cases.append((_IF_ANY_BIT, _OPEN_TO_WRITE, _error(errno.EROFS)))
    truncating: _Instructions = []
    if files.can_write and not files.can_truncate:
        # Landlock decides about opening to write; to truncate what is opened only to be read it
        # would let pass.
        truncating = [(_LOAD, _argument(flags), 0, 0), (_IF_ANY_BIT, _ACCESS_MODE, 2, 0)]
        truncating += [(_IF_ANY_BIT, _TRUNCATE, 0, 1), (_RETURN, _error(errno.EACCES), 0, 0)]
    if files.asks_about_entries:
        # A file without a name cannot be seen, so not be counted; a handle keeps a file without
        # having it open.
        cases.append((_IF_ANY_BIT, _UNNAMED, _error(errno.EOPNOTSUPP)))
        cases += [(_IF_ANY_BIT, _HANDLE, _error(errno.EPERM)), (_IF_ANY_BIT, _CREATE, _ASK)]
    return [*truncating, *_look(flags, cases, _ALLOW)]

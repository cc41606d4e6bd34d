"""The system calls a program may make, as BPF programs.

`allow_list` is installed once in the zygote and inherited by every test. `per_test` is small, because it is
installed for each test: it takes away what only the zygote needs (processes, filters, signals to others).

The kernel asks every filter in force and takes the strictest answer: what `per_test` lets pass was allowed before. A
filter sees numbers and not what a pointer leads to, so no rule here rests on a path or a structure: those are for
Landlock and the mount namespace.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from typing import NamedTuple

from microcoder.judge.sandbox import quota
from microcoder.judge.sandbox.kernel import AUDIT_ARCH, FIRST_UNKNOWN, IS_X86, NUMBERS
from microcoder.judge.sandbox.runner import AT_EMPTY_PATH

_LOAD, _IF_EQUAL, _IF_AT_LEAST, _IF_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ASK = 0x7FFF0000, 0x80000000, 0x7FC00000
_OFFSET_NUMBER, _OFFSET_ARCH = 0, 4
_X32_BIT = 0x40000000
_CLONE_THREAD = 0x00010000
_CLONE_NEW_ANYTHING = 0x7E020080

_BASE_NAMES = """
read write close fstat stat lstat poll lseek mmap mprotect munmap brk rt_sigaction rt_sigprocmask rt_sigreturn pread64
pwrite64 readv writev access pipe select sched_yield mremap msync mincore madvise dup dup2 pause nanosleep getitimer
alarm setitimer getpid exit wait4 uname fsync fdatasync ftruncate getdents64 getcwd chdir fchdir readlink umask
gettimeofday getrlimit setrlimit getrusage sysinfo times getuid getgid geteuid getegid getppid getpgrp getgroups
getresuid getresgid getpgid getsid rt_sigpending rt_sigtimedwait rt_sigsuspend sigaltstack statfs fstatfs getpriority
sched_getparam sched_getscheduler sched_get_priority_max sched_get_priority_min arch_prctl gettid time futex
sched_getaffinity epoll_create set_tid_address restart_syscall fadvise64 timer_create timer_settime timer_gettime
timer_delete clock_gettime clock_getres clock_nanosleep exit_group epoll_wait epoll_ctl waitid newfstatat readlinkat
faccessat pselect6 ppoll set_robust_list get_robust_list epoll_pwait eventfd2 epoll_create1 dup3 pipe2 getcpu getrandom
membarrier statx rseq close_range faccessat2 futex_waitv sendto recvfrom sendmsg recvmsg shutdown getsockopt mlock
munlock open openat kill tgkill tkill pidfd_open fork vfork
"""
_WRITING_NAMES = """
truncate rename mkdir rmdir unlink symlink chmod fchmod mkdirat unlinkat renameat renameat2 symlinkat fchmodat
utimensat fallocate copy_file_range sendfile
"""
_ATTRIBUTE_NAMES = "chmod fchmod fchmodat utimensat"
"""Landlock does not look at these: without a private root they reach every file of the same user."""
_ASKED_NAMES = f"mkdir mkdirat symlink symlinkat fallocate {quota.REMOVING_NAMES}"
_SIGNAL_NAMES = "kill tkill tgkill"

_IOCTLS = (0x5401, 0x5413, 0x541B, 0x5450, 0x5451, 0x5421)  # TCGETS WINSZ FIONREAD FIONCLEX FIOCLEX FIONBIO
_FCNTLS_REFUSED = (8, 10, 15, 1026)  # SETOWN SETSIG SETOWN_EX NOTIFY: signals to other processes
_FCNTLS_OF_ZYGOTE = (1024,)  # SETLEASE: signals, too
_LOCK_QUESTIONS = (5, 36)  # GETLK OFD_GETLK: with read locks, which any readable file takes, programs could talk
_SET_PIPE_SIZE = 1031
_PRCTLS = (3, 15, 16, 0x53564D41)  # GET_DUMPABLE SET_NAME GET_NAME SET_VMA
_PRCTLS_OF_ZYGOTE = (1, 22)  # SET_PDEATHSIG SET_SECCOMP
_RLIMIT_STACK = 3
_ACCESS_MODE, _CREATE, _TRUNCATE, _UNNAMED, _HANDLE = 0o3, 0o100, 0o1000, 0o20000000, 0o10000000
_OPEN_TO_WRITE = _ACCESS_MODE | _CREATE | _TRUNCATE | _UNNAMED
_SET_MODE_FILTER = 1


class FileRules(NamedTuple):
    """Rules for files; the defaults are for a private root, where everything is its own."""

    is_shared: bool = False
    """There is no private root: modes and times of files are not the test's to set."""
    can_write: bool = True
    """False if nothing else keeps a test from writing to the user's own files."""
    can_truncate: bool = True
    """False if the kernel's Landlock does not look at truncation."""
    asks_about_entries: bool = False
    """The fork server decides about new files, folders and links."""


PRIVATE_FILES = FileRules()


def _argument(index: int) -> int:
    return 16 + 8 * index


def _error(number: int) -> int:
    return 0x00050000 | number


class _Program:
    """A BPF program under construction: falls through from rule to rule."""

    def __init__(self) -> None:
        self.instructions: list[tuple[int, int, int, int]] = []

    def add(self, code: int, value: int, if_true: int = 0, if_false: int = 0) -> None:
        self.instructions.append((code, if_true, if_false, value & 0xFFFFFFFF))

    def start(self) -> None:
        """Kill on a foreign architecture, then load the call's number."""
        # `int 0x80` makes 32-bit calls from a 64-bit program, in which the same number is another call.
        self.add(_LOAD, _OFFSET_ARCH)
        self.add(_IF_EQUAL, AUDIT_ARCH, 1, 0)
        self.add(_RETURN, _KILL)
        self.add(_LOAD, _OFFSET_NUMBER)

    def rule(self, name: str, action: int) -> None:
        if name in NUMBERS:
            self.add(_IF_EQUAL, NUMBERS[name], 0, 1)
            self.add(_RETURN, action)

    def detailed_rule(self, name: str, build: Callable[[_Program], None]) -> None:
        """Add a rule that looks at arguments; `build` must end in a return."""
        if name in NUMBERS:
            body = _Program()
            build(body)
            self.add(_IF_EQUAL, NUMBERS[name], 0, len(body.instructions))
            self.instructions += body.instructions

    def match_argument(self, index: int, values: tuple[int, ...], matched: int, otherwise: int) -> None:
        # The lower 32 bits: the kernel takes no more of any argument that is matched here. A pointer has two halves,
        # see `_read_limits`.
        self.add(_LOAD, _argument(index))
        for value in values:
            self.add(_IF_EQUAL, value, 0, 1)
            self.add(_RETURN, matched)
        self.add(_RETURN, otherwise)

    def pack(self) -> bytes:
        return b"".join(struct.pack("HBBI", *instruction) for instruction in self.instructions)


def allow_list(*, can_execute: bool = False, can_ask: bool = False) -> bytes:
    """Return the filter that zygote and tests share; whatever it does not name is refused.

    Args:
        can_execute: allow starting any program that can be seen; only where compilers run.
        can_ask: allow installing a filter whose questions the fork server answers.
    """
    program = _Program()
    program.start()
    if IS_X86:
        program.add(_IF_AT_LEAST, _X32_BIT, 0, 1)
        program.add(_RETURN, _error(errno.ENOSYS))
    # ENOSYS for calls younger than the list below: libc then falls back to an older one, where EPERM would be final.
    program.add(_IF_AT_LEAST, FIRST_UNKNOWN, 0, 1)
    program.add(_RETURN, _error(errno.ENOSYS))
    program.detailed_rule("clone", lambda p: _clone(p, may_fork=True))
    # Its flags are behind a pointer; libc falls back to clone, whose flags are not.
    program.rule("clone3", _error(errno.ENOSYS))
    program.rule("socket", _error(errno.EACCES))
    program.rule("execve", _ALLOW if can_execute else _error(errno.EACCES))
    # A binary in anonymous memory, without a path; `per_test` takes this from Python programs too.
    program.detailed_rule("execveat", lambda p: p.match_argument(4, (AT_EMPTY_PATH,), _ALLOW, _error(errno.EACCES)))
    ioctls = (*_IOCTLS, *(quota.IOCTLS if can_ask else ()))
    program.detailed_rule("ioctl", lambda p: p.match_argument(1, ioctls, _ALLOW, _error(errno.ENOTTY)))
    fcntls = (*_FCNTLS_REFUSED, *_LOCK_QUESTIONS, _SET_PIPE_SIZE, *(() if can_ask else _FCNTLS_OF_ZYGOTE))
    program.detailed_rule("fcntl", lambda p: p.match_argument(1, fcntls, _error(errno.EPERM), _ALLOW))
    known = (*_PRCTLS, *_PRCTLS_OF_ZYGOTE)
    program.detailed_rule("prctl", lambda p: p.match_argument(0, known, _ALLOW, _error(errno.EPERM)))
    program.detailed_rule("socketpair", lambda p: p.match_argument(0, (1,), _ALLOW, _error(errno.EACCES)))
    # The caller's own limits: without a pid namespace the fork server's could be set as well.
    program.detailed_rule("prlimit64", lambda p: p.match_argument(0, (0,), _ALLOW, _error(errno.EPERM)))
    if can_ask:
        program.detailed_rule(
            "seccomp", lambda p: p.match_argument(0, (_SET_MODE_FILTER,), _ALLOW, _error(errno.EPERM))
        )
    for name in (*_BASE_NAMES.split(), *_WRITING_NAMES.split()):
        program.rule(name, _ALLOW)
    program.add(_RETURN, _error(errno.EPERM))
    return program.pack()


def per_test(
    only_pid: int | None = None,
    *,
    is_binary: bool = False,
    asks_about_threads: bool = False,
    files: FileRules = PRIVATE_FILES,
) -> bytes:
    """Return the filter of one test: threads yes, processes no, and no word to other processes.

    Args:
        only_pid: without a pid namespace, the only process that may be signalled: the test itself.
        is_binary: the test is a binary that is still to be started.
        asks_about_threads: the fork server decides about new threads.
        files: what it may do with files.
    """
    program = _Program()
    program.start()
    for name in ("fork", "vfork"):
        program.rule(name, _error(errno.EAGAIN))
    # Handles on other processes, and filters with a listener, are the fork server's alone.
    for name in ("pidfd_open", "seccomp"):
        program.rule(name, _error(errno.EPERM))
    # Limits may be read, not set: see `LimitSetter`.
    program.rule("setrlimit", _error(errno.EPERM))
    program.detailed_rule("prlimit64", _read_limits)
    if not is_binary:
        program.rule("execveat", _error(errno.EACCES))
    program.detailed_rule("clone", lambda p: _clone(p, may_fork=False, thread=_ASK if asks_about_threads else _ALLOW))
    program.detailed_rule("prctl", lambda p: p.match_argument(0, _PRCTLS, _ALLOW, _error(errno.EPERM)))
    if only_pid is not None:
        # A thread's id alone does not say which process it is of; 0, -1 and negative ids, which mean many, do not
        # match.
        program.rule("tkill", _error(errno.EPERM))
        for name in ("kill", "tgkill"):
            program.detailed_rule(name, lambda p: p.match_argument(0, (only_pid,), _ALLOW, _error(errno.EPERM)))
    _restrict_files(program, files)
    program.add(_RETURN, _ALLOW)
    return program.pack()


def per_build(*, has_own_processes: bool, files: FileRules) -> bytes:
    """Return the filter of a compiler and what it starts."""
    program = _Program()
    program.start()
    program.rule("seccomp", _error(errno.EPERM))
    for name in () if has_own_processes else _SIGNAL_NAMES.split():
        program.rule(name, _error(errno.EPERM))
    _restrict_files(program, files)
    program.add(_RETURN, _ALLOW)
    return program.pack()


def _restrict_files(program: _Program, files: FileRules) -> None:
    if not files.can_write:
        for name in _WRITING_NAMES.split():
            program.rule(name, _error(errno.EROFS))
    if not files.can_truncate:
        program.rule("truncate", _error(errno.EPERM))
    if files.is_shared:
        for name in _ATTRIBUTE_NAMES.split():
            program.rule(name, _error(errno.EPERM))
    if files.asks_about_entries:
        for name in _ASKED_NAMES.split():
            program.rule(name, _ASK)
        leases = _FCNTLS_OF_ZYGOTE
        program.detailed_rule("fcntl", lambda p: p.match_argument(1, leases, _error(errno.EPERM), _ALLOW))
    if files != PRIVATE_FILES:
        for name, flags in (("open", 1), ("openat", 2)):
            program.detailed_rule(name, lambda p, flags=flags: _open(p, flags, files))


def _clone(program: _Program, may_fork: bool, thread: int = _ALLOW) -> None:
    program.add(_LOAD, _argument(0))
    program.add(_IF_ANY_BIT, _CLONE_NEW_ANYTHING, 0, 1)
    program.add(_RETURN, _error(errno.EPERM))
    program.add(_IF_ANY_BIT, _CLONE_THREAD, 0, 1)
    program.add(_RETURN, thread)
    program.add(_RETURN, _ALLOW if may_fork else _error(errno.EAGAIN))


def _read_limits(program: _Program) -> None:
    """Allow prlimit64 only without new limits: both halves of that pointer are null.

    A new stack size is answered as if it had been set, because deep recursion is often begun with that call; the
    stack has room for it already.
    """
    which, new_limits = _argument(1), _argument(2)
    program.add(_LOAD, new_limits)
    program.add(_IF_EQUAL, 0, 0, 3)
    program.add(_LOAD, new_limits + 4)
    program.add(_IF_EQUAL, 0, 0, 1)
    program.add(_RETURN, _ALLOW)
    program.add(_LOAD, which)
    program.add(_IF_EQUAL, _RLIMIT_STACK, 0, 1)
    program.add(_RETURN, _error(0))
    program.add(_RETURN, _error(errno.EPERM))


def _open(program: _Program, flags: int, files: FileRules) -> None:
    program.add(_LOAD, _argument(flags))
    if not files.can_write:
        program.add(_IF_ANY_BIT, _OPEN_TO_WRITE, 0, 1)
        program.add(_RETURN, _error(errno.EROFS))
    if not files.can_truncate:
        # Landlock decides about opening to write; to truncate what is opened only to be read it would let pass.
        program.add(_IF_ANY_BIT, _ACCESS_MODE, 2, 0)
        program.add(_IF_ANY_BIT, _TRUNCATE, 0, 1)
        program.add(_RETURN, _error(errno.EACCES))
    if files.asks_about_entries:
        # A file without a name cannot be seen, so not be counted.
        program.add(_IF_ANY_BIT, _UNNAMED, 0, 1)
        program.add(_RETURN, _error(errno.EOPNOTSUPP))
        # A handle keeps a file without having it open.
        program.add(_IF_ANY_BIT, _HANDLE, 0, 1)
        program.add(_RETURN, _error(errno.EPERM))
        program.add(_IF_ANY_BIT, _CREATE, 0, 1)
        program.add(_RETURN, _ASK)
    program.add(_RETURN, _ALLOW)

"""Linux system calls that Python does not offer, through ctypes. No dependency.

`NUMBERS` holds the numbers of the system calls that filters name, for x86_64 (tested) and aarch64
(the generic table, not tested).

`restrict` sets file rules by Landlock (kernel >= 5.13): the fallback for a private root, and a
second layer on it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

IS_X86 = platform.machine() == "x86_64"
"""Whether numbers are those of x86_64, else of aarch64."""

# Flags of unshare(2) and clone(2), by the kernel's names.
CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

# Operations of prctl(2), and their arguments, by the kernel's names.
PR_SET_PDEATHSIG = 1
PR_SET_DUMPABLE = 4
PR_GET_SECCOMP = 21
PR_SET_SECCOMP = 22
PR_CAPBSET_DROP = 24
PR_SET_SECUREBITS = 28
PR_SET_CHILD_SUBREAPER = 36
PR_SET_NO_NEW_PRIVS = 38
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_CLEAR_ALL = 4
SECCOMP_MODE_FILTER = 2

# Numbers of system calls that are made here.
_NR_CAPSET = 126 if IS_X86 else 91
_NR_SECCOMP = 317 if IS_X86 else 277
_NR_PIVOT_ROOT = 155 if IS_X86 else 41
_NR_MOUNT_SETATTR = 442
_NO_ROOT_LOCKED = 0x2F
"""Secure bits: user id 0 means no capabilities, and no process can change that again."""
_NUM_CAPABILITIES = 64
"""More capabilities than any kernel has."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_ZERO = ctypes.c_ulong(0)
_kill = _libc.kill
"""Looked up once: a test's own process would pay for each look."""


def _fail(what: str) -> OSError:
    """Return the error of the system call that was made last."""
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


def syscall(number: int, *arguments: object) -> int:
    """Make a raw system call; integers are passed as C longs."""
    converted: list[object] = []
    for argument in arguments:
        converted.append(ctypes.c_long(argument) if isinstance(argument, int) else argument)
    result = _libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        raise _fail(f"syscall {number}")
    return result


def prctl(operation: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> None:
    """Call prctl(2) with integer arguments."""
    if _libc.prctl(operation, *map(ctypes.c_ulong, (a, b, c, d))) < 0:
        raise _fail(f"prctl {operation}")


def kill_everything() -> bool:
    """Kill all processes that we may; return whether there was one."""
    # No exception where there was none: it would cost 40 page faults.
    sigkill = 9
    return _kill(-1, sigkill) == 0


def unshare(flags: int) -> None:
    """Move the caller into new namespaces."""
    if _libc.unshare(ctypes.c_int(flags)) < 0:
        raise _fail("unshare")


def mount(
    source: str, target: str, kind: str | None, flags: int = 0, options: str | None = None
) -> None:
    """Call mount(2)."""
    result = _libc.mount(
        source.encode(),
        target.encode(),
        None if kind is None else kind.encode(),
        ctypes.c_ulong(flags),
        None if options is None else options.encode(),
    )
    if result < 0:
        raise _fail(f"mount {source} on {target}")


_MOUNT_ATTR_RDONLY = 1
_MOUNT_ATTR_NOSUID = 2
_MOUNT_ATTR_NODEV = 4
_AT_RECURSIVE = 0x8000
"""The call reaches what is mounted below, too."""
_AT_FDCWD = -100
"""A path is relative to the current folder."""


def make_mount_read_only(path: str, *, has_devices: bool = False) -> None:
    """Make a mount and everything below it read-only (kernel >= 5.12).

    Set-uid programs have no rights below it, and devices cannot be used unless `has_devices`.
    """
    flags = _MOUNT_ATTR_RDONLY | _MOUNT_ATTR_NOSUID
    if not has_devices:
        flags |= _MOUNT_ATTR_NODEV
    attributes = struct.pack("QQQQ", flags, 0, 0, 0)
    syscall(
        _NR_MOUNT_SETATTR,
        _AT_FDCWD,
        ctypes.c_char_p(path.encode()),
        _AT_RECURSIVE,
        ctypes.create_string_buffer(attributes),
        len(attributes),
    )


def pivot_into(root: str) -> None:
    """Make `root` the root directory and unmount the old one."""
    # Not chroot, which a descriptor of an outer folder leads out of. With both at ".", the old root
    # ends up mounted over the new one, and is what umount then takes away.
    os.chdir(root)
    syscall(_NR_PIVOT_ROOT, ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    detach = 2
    if _libc.umount2(b".", ctypes.c_int(detach)) < 0:
        raise _fail("umount2")
    os.chdir("/")


def drop_bounding_capabilities() -> None:
    """Give up every capability that an exec could bring back; needs CAP_SETPCAP if any is left."""
    for capability in range(_NUM_CAPABILITIES):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break
    with contextlib.suppress(OSError):
        prctl(PR_SET_SECUREBITS, _NO_ROOT_LOCKED)
    with contextlib.suppress(OSError):
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)


def drop_capabilities() -> None:
    """Give up every capability held now."""
    version_3 = 0x20080522
    header = ctypes.create_string_buffer(struct.pack("Ii", version_3, 0))
    syscall(_NR_CAPSET, header, ctypes.create_string_buffer(24))


class _FilterProgram(ctypes.Structure):
    """The kernel's `struct sock_fprog`."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class SeccompFilter:
    """A BPF program, ready to be installed many times."""

    def __init__(self, instructions: bytes, operation: int = PR_SET_SECCOMP) -> None:
        self._buffer = ctypes.create_string_buffer(instructions, len(instructions))
        self._program = _FilterProgram(len(instructions) // 8, ctypes.addressof(self._buffer))
        # Made here, because a test's own process pays for every object that it makes or touches.
        self._call = _libc.prctl
        self._arguments = (
            ctypes.c_int(operation),
            ctypes.c_ulong(SECCOMP_MODE_FILTER),
            ctypes.byref(self._program),
            _ZERO,
            _ZERO,
        )

    @classmethod
    def harmless(cls) -> SeccompFilter:
        """Return a filter whose `install` installs nothing.

        The same call only asks which mode is in force.
        """
        return cls(b"", PR_GET_SECCOMP)

    def install(self) -> None:
        """Stack the filter on the calling thread, for good."""
        if self._call(*self._arguments) < 0:
            raise _fail("seccomp")

    def install_with_listener(self) -> int:
        """Stack the filter; return its listener.

        That is the descriptor at which the kernel asks about the test's calls.
        """
        set_mode_filter = 1
        new_listener = 8
        return syscall(_NR_SECCOMP, set_mode_filter, new_listener, ctypes.byref(self._program))


AUDIT_ARCH = 0xC000003E if IS_X86 else 0xC00000B7
"""Number of the architecture, as the kernel tells filters."""
FIRST_UNKNOWN = 451
"""First number of system calls newer than these tables.

Filters answer ENOSYS, so that libc falls back.
"""

_TABLE = """
read 0 63, write 1 64, open 2 -, close 3 57, stat 4 -, fstat 5 80, lstat 6 -, poll 7 -, lseek 8 62,
mmap 9 222, mprotect 10 226, munmap 11 215, brk 12 214, rt_sigaction 13 134, rt_sigprocmask 14 135,
rt_sigreturn 15 139, ioctl 16 29, pread64 17 67, pwrite64 18 68, readv 19 65, writev 20 66,
access 21 -, pipe 22 -, select 23 -, sched_yield 24 124, mremap 25 216, msync 26 227,
mincore 27 232, madvise 28 233, dup 32 23, dup2 33 -, pause 34 -, nanosleep 35 101,
getitimer 36 102, alarm 37 -, setitimer 38 103, getpid 39 172, sendfile 40 71, socket 41 198,
sendto 44 206, recvfrom 45 207, sendmsg 46 211, recvmsg 47 212, shutdown 48 210, socketpair 53 199,
getsockopt 55 209, clone 56 220, fork 57 -, vfork 58 -, execve 59 221, exit 60 93, wait4 61 260,
kill 62 129, uname 63 160, fcntl 72 25, flock 73 32, fsync 74 82, fdatasync 75 83, truncate 76 45,
ftruncate 77 46, getdents64 217 61, getcwd 79 17, chdir 80 49, fchdir 81 50, rename 82 -,
mkdir 83 -, rmdir 84 -, unlink 87 -, symlink 88 -, readlink 89 -, chmod 90 -, fchmod 91 52,
umask 95 166, gettimeofday 96 169, getrlimit 97 163, getrusage 98 165, sysinfo 99 179,
times 100 153, getuid 102 174, getgid 104 176, geteuid 107 175, getegid 108 177, getppid 110 173,
getpgrp 111 -, setsid 112 157, getgroups 115 158, getresuid 118 148, getresgid 120 150,
getpgid 121 155, getsid 124 156, rt_sigpending 127 136, rt_sigtimedwait 128 137,
rt_sigsuspend 130 133, sigaltstack 131 132, statfs 137 43, fstatfs 138 44, getpriority 140 141,
sched_getparam 143 121, sched_getscheduler 145 120, sched_get_priority_max 146 125,
sched_get_priority_min 147 126, mlock 149 228, munlock 150 229, prctl 157 167, arch_prctl 158 -,
setrlimit 160 164, gettid 186 178, tkill 200 130, time 201 -, futex 202 98,
sched_getaffinity 204 123, epoll_create 213 -, set_tid_address 218 96, restart_syscall 219 128,
fadvise64 221 223, timer_create 222 107, timer_settime 223 110, timer_gettime 224 108,
timer_delete 226 111, clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115,
exit_group 231 94, epoll_wait 232 -, epoll_ctl 233 21, tgkill 234 131, waitid 247 95,
openat 257 56, mkdirat 258 34, newfstatat 262 79, unlinkat 263 35, renameat 264 38,
symlinkat 266 36, readlinkat 267 78, fchmodat 268 53, faccessat 269 48, pselect6 270 72,
ppoll 271 73, set_robust_list 273 99, get_robust_list 274 100, utimensat 280 88,
epoll_pwait 281 22, fallocate 285 47, eventfd2 290 19, epoll_create1 291 20, dup3 292 24,
pipe2 293 59, prlimit64 302 261, getcpu 309 168, renameat2 316 276, seccomp 317 277,
getrandom 318 278, memfd_create 319 279, execveat 322 281, membarrier 324 283,
copy_file_range 326 285, statx 332 291, rseq 334 293, pidfd_send_signal 424 424,
pidfd_open 434 434, clone3 435 435, close_range 436 436, faccessat2 439 439, futex_waitv 449 449
"""
"""System calls: name, x86_64, aarch64; "-" if a machine has no such call."""


def _parse(table: str) -> dict[str, int]:
    """Return the number of each system call that this machine has."""
    column = 1 if IS_X86 else 2
    numbers: dict[str, int] = {}
    for entry in table.replace("\n", " ").split(","):
        fields = entry.split()
        if fields[column] != "-":
            numbers[fields[0]] = int(fields[column])
    return numbers


NUMBERS = _parse(_TABLE)
"""Name of a system call -> its number."""


# Numbers of Landlock's system calls.
_CREATE_RULESET = 444
_ADD_RULE = 445
_RESTRICT_SELF = 446
# Landlock's rights.
_EXECUTE = 1
_WRITE_FILE = 2
_READ_FILE = 4
_READ_DIR = 8
_TRUNCATE = 1 << 14
SINCE_TRUNCATE = 3
"""First version of Landlock that restricts truncating."""
_SINCE_TCP = 4
"""First version that restricts TCP."""
_SINCE_SCOPES = 6
"""First version that restricts abstract sockets and signals."""
_READ = _EXECUTE | _READ_FILE | _READ_DIR
"""Rights to read a folder and what is below it."""
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE
"""Rights that a rule for a file may have."""
_RIGHTS_BY_ABI = {1: (1 << 13) - 1, 2: 1 << 13, SINCE_TRUNCATE: _TRUNCATE, 5: 1 << 15}
"""Version of Landlock -> the rights that are new in it."""
_TCP = 3
"""Rights to bind and to connect."""
_SCOPES = 3
"""Scopes of abstract sockets and of signals."""


def version() -> int:
    """Return the version of the kernel's Landlock; OSError if it has none."""
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
    """Confine the caller to the given files, for good.

    Listing folders above a hidden one stays possible. Without `can_execute` no file may be started,
    not even by `execveat`, whose path the filter of system calls cannot read. A binary in anonymous
    memory still may, as `executables` may, and libraries are mapped as ever.
    """
    abi = version()
    handled = sum(rights for since, rights in _RIGHTS_BY_ABI.items() if abi >= since)
    attributes = struct.pack("Q", handled)
    # TCP and, below, abstract sockets and signals to processes outside: handled without any rule,
    # so refused throughout.
    if abi >= _SINCE_TCP:
        attributes += struct.pack("Q", _TCP)
    if abi >= _SINCE_SCOPES:
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
    """Allow reading below a path, entry by entry where something inside is hidden.

    Landlock can only add rights.
    """
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
    """Add a rule for a path, if it exists."""
    path_beneath = 1
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _FILE_RIGHTS | _TRUNCATE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", rights & handled, descriptor))
        syscall(_ADD_RULE, ruleset, path_beneath, rule, 0)
    finally:
        os.close(descriptor)


ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC0",
    "TMPDIR": ".",
    "MALLOC_ARENA_MAX": "4",
}
"""Environment variables of binaries and compilers.

Without the last, libc reserves 64 MiB for 8 heaps per core.
"""
_NR_EXECVEAT = 322 if IS_X86 else 281
AT_EMPTY_PATH = 0x1000
"""Flag of execveat(2): start what is behind the descriptor."""


def run_binary(descriptor: int, arguments: Sequence[str], further: Mapping[str, str]) -> NoReturn:
    """Replace this process by a binary.

    Args:
        descriptor: of the binary; it is closed.
        arguments: the command line.
        further: environment variables besides `ENVIRONMENT`.
    """
    variables = {**ENVIRONMENT, **further}
    environment = [f"{name}={value}" for name, value in variables.items()]
    syscall(
        _NR_EXECVEAT,
        descriptor,
        ctypes.c_char_p(b""),
        _strings(arguments),
        _strings(environment),
        AT_EMPTY_PATH,
    )
    raise OSError("execveat returned")


def run_compiler(command: Sequence[str]) -> NoReturn:
    """Replace this process by a compiler."""
    os.execve(command[0], list(command), ENVIRONMENT)


def _strings(texts: Sequence[str]) -> ctypes.Array[ctypes.c_char_p]:
    """Return texts as C has a list of them, with a null at its end."""
    encoded = [text.encode() for text in texts]
    return (ctypes.c_char_p * (len(texts) + 1))(*encoded, None)

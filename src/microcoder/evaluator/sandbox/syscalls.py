"""Linux system calls that Python does not offer, through ctypes. No dependency."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

IS_X86 = platform.machine() == "x86_64"

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

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

_NR_CAPSET = 126 if IS_X86 else 91
_NR_SECCOMP = 317 if IS_X86 else 277
_NR_PIVOT_ROOT = 155 if IS_X86 else 41
_NR_MOUNT_SETATTR = 442
_NO_ROOT_LOCKED = 0x2F

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long
_ZERO = ctypes.c_ulong(0)
_kill = _libc.kill


def _fail(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


def syscall(number: int, *arguments: object) -> int:
    """Make a raw system call; integers are passed as C longs.

    Raises:
        OSError: the call failed.
    """
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = _libc.syscall(ctypes.c_long(number), *converted)
    if result < 0:
        raise _fail(f"syscall {number}")
    return result


def prctl(operation: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0) -> None:
    """Call prctl(2) with integer arguments."""
    if _libc.prctl(operation, *(ctypes.c_ulong(x) for x in (a, b, c, d))) < 0:
        raise _fail(f"prctl {operation}")


def kill_everything() -> bool:
    """Kill all processes that we may; return whether there was one. No exception, which would cost 40 page faults."""
    return _kill(-1, 9) == 0


def unshare(flags: int) -> None:
    """Move the caller into new namespaces."""
    if _libc.unshare(ctypes.c_int(flags)) < 0:
        raise _fail("unshare")


def mount(source: str, target: str, kind: str | None, flags: int = 0, options: str | None = None) -> None:
    """Call mount(2)."""
    encoded = [None if text is None else text.encode() for text in (source, target, kind, options)]
    if _libc.mount(*encoded[:3], ctypes.c_ulong(flags), encoded[3]) < 0:
        raise _fail(f"mount {source} on {target}")


def make_mount_read_only(path: str, *, has_devices: bool = False) -> None:
    """Make a mount and everything below it read-only, without set-uid programs and devices (kernel >= 5.12)."""
    read_only_nosuid, nodev, at_recursive, at_fdcwd = 1 | 2, 4, 0x8000, -100
    flags = read_only_nosuid if has_devices else read_only_nosuid | nodev
    attributes = ctypes.create_string_buffer(struct.pack("QQQQ", flags, 0, 0, 0))
    syscall(_NR_MOUNT_SETATTR, at_fdcwd, ctypes.c_char_p(path.encode()), at_recursive, attributes, 32)


def pivot_into(root: str) -> None:
    """Make `root` the root directory and let go of the old one."""
    # Not chroot, which a descriptor of an outer folder leads out of. With both at ".", the old root ends up mounted
    # over the new one, and is what umount then takes away.
    os.chdir(root)
    syscall(_NR_PIVOT_ROOT, ctypes.c_char_p(b"."), ctypes.c_char_p(b"."))
    detach = 2
    if _libc.umount2(b".", ctypes.c_int(detach)) < 0:
        raise _fail("umount2")
    os.chdir("/")


def drop_bounding_capabilities() -> None:
    """Give up every capability that an exec could bring back; needs CAP_SETPCAP if any is left."""
    for capability in range(64):
        try:
            prctl(PR_CAPBSET_DROP, capability)
        except OSError:
            break
    for operation, value in ((PR_SET_SECUREBITS, _NO_ROOT_LOCKED), (PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)):
        try:
            prctl(operation, value)
        except OSError:
            continue


def drop_capabilities() -> None:
    """Give up every capability held now."""
    version_3 = 0x20080522
    header = ctypes.create_string_buffer(struct.pack("Ii", version_3, 0))
    syscall(_NR_CAPSET, header, ctypes.create_string_buffer(24))


class _FilterProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


class SeccompFilter:
    """A BPF program, ready to be installed many times."""

    def __init__(self, instructions: bytes, operation: int = PR_SET_SECCOMP) -> None:
        self._buffer = ctypes.create_string_buffer(instructions, len(instructions))
        self._program = _FilterProgram(len(instructions) // 8, ctypes.addressof(self._buffer))
        # Made here, because a test's own process pays for every object that it makes or touches.
        self._call, program = _libc.prctl, ctypes.byref(self._program)
        self._arguments = (ctypes.c_int(operation), ctypes.c_ulong(SECCOMP_MODE_FILTER), program, _ZERO, _ZERO)

    @classmethod
    def harmless(cls) -> SeccompFilter:
        """Return one whose `install` makes the same call, and asks only which mode is in force."""
        return cls(b"", PR_GET_SECCOMP)

    def install(self) -> None:
        """Stack the filter on the calling thread, for good."""
        if self._call(*self._arguments) < 0:
            raise _fail("seccomp")

    def install_with_listener(self) -> int:
        """Stack the filter, and return the descriptor at which the kernel asks about calls that it refers to us.

        Raises:
            OSError: the kernel is older than 5.5, or another such filter is in force.
        """
        set_mode_filter, new_listener = 1, 8
        return syscall(_NR_SECCOMP, set_mode_filter, new_listener, ctypes.byref(self._program))

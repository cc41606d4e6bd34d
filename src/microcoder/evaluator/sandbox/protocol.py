"""What the trusted and the untrusted side say to each other, over one SOCK_SEQPACKET socket.

The supervisor sends CONFIG once, then one TEST per test with its descriptors; the zygote answers READY or
FAILED, then one RESULT per TEST. Results have a fixed size and come from the kernel's accounting of the child.
"""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

CONFIG, READY, FAILED, TEST, RESULT = b"C", b"Y", b"F", b"T", b"R"
MAX_MESSAGE = 1 << 16

FINISHED, CPU_EXPIRED, WALL_EXPIRED = 0, 1, 2

COMPILED, REJECTED = b"C", b"E"
"""First byte of a program's cache memfd, written before any of its own code runs: bytecode or a message follows."""

WIRE_FD = 3
"""The descriptor that a function's result leaves by; for a binary, the binary itself."""

BUILT_FILE = "main"
"""What a build leaves in its folder."""

STDIN_FILE = "stdin"
"""The scratch file that /dev/stdin leads to, for programs that name it."""

_REQUEST = struct.Struct("<ddQQ")
_RESULT = struct.Struct("<iiQQQB")


class Request(NamedTuple):
    """One test to run. Beside it travel its descriptors: source, cache, stdin, stdout, stderr, the wire of a function
    or the place for what is built, and the files."""

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    file_bytes: int
    fn_name: str = ""
    """Call this function of the program, and send its result over the wire."""
    command: tuple[str, ...] = ()
    """Run a binary: the source itself with these arguments, or, to build, the compiler."""
    arguments: tuple[str, ...] = ()
    """What a Python program finds in sys.argv after its own name."""
    files: tuple[str, ...] = ()
    """Names of the files to lay into the scratch folder; a name that ends in / is an empty folder."""
    int_digits: int | None = None
    """Digits of an integer that Python reads or writes, 0 for any number; None for what Python allows by itself."""

    def pack(self) -> bytes:
        """Return the message."""
        rest = json.dumps(self[4:]) if self[4:] != _DEFAULTS else ""
        return TEST + _REQUEST.pack(*self[:4]) + rest.encode()

    @classmethod
    def unpack(cls, message: bytes) -> Request:
        """Read a message back."""
        end = 1 + _REQUEST.size
        cpu, wall, memory, file = _REQUEST.unpack(message[1:end])
        return cls(cpu, wall, memory, file, *(json.loads(message[end:]) if len(message) > end else ()))


_DEFAULTS = tuple(Request._field_defaults.values())


class Result(NamedTuple):
    """How the child ended, as the kernel accounts for it."""

    exit_code: int
    signal: int
    cpu_us: int
    wall_us: int
    memory_kib: int
    """Peak resident memory beyond what the zygote itself holds."""
    expired: int

    def pack(self) -> bytes:
        """Return the message."""
        return RESULT + _RESULT.pack(*self)

    @classmethod
    def unpack(cls, message: bytes) -> Result:
        """Read a message back."""
        return cls(*_RESULT.unpack(message[1:]))

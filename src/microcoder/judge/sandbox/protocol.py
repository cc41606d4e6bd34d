"""Messages between the judge (supervisor) and the sandbox's fork server (zygote), over one socket.

The socket is of SOCK_SEQPACKET. The supervisor sends CONFIG once, then one TEST per test with its
descriptors; the zygote answers READY or FAILED, then one RESULT per TEST. Results have a fixed size
and come from the kernel's accounting of the child.

While a test runs, the zygote asks, with the child's pidfd beside it, and the supervisor answers
each question by GO_ON. STILL asks whether to go on, where its wall time is spent. SLICE asks when
it may go on after each slice of CPU time, until which the child is stopped.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any, NamedTuple

MAX_DESCRIPTORS = 64
"""Most open files of a test."""
MAX_THREADS = 256
"""Most threads of a test."""

# The first byte of a message says what it is.
CONFIG = b"C"
"""The supervisor's configuration of the sandbox, as JSON."""
READY = b"Y"
"""The fork server is isolated; what it reports about that, as JSON."""
FAILED = b"F"
"""The fork server could not start, or not begin a test; the reason as text."""
TEST = b"T"
"""A test to run: a `Request`."""
RESULT = b"R"
"""How a test ended: a `Result`."""
STILL = b"S"
"""A test has spent its wall time: may it go on?"""
SLICE = b"L"
"""A test has used a slice of CPU time: when may it go on?"""
GO_ON = b"G"
"""The supervisor's answer to either question."""
MAX_MESSAGE = 1 << 16
"""Largest message, in bytes."""


class Expiry(IntEnum):
    """Why the fork server ended a test: `Result.expired`."""

    FINISHED = 0
    """It did not: the test ended by itself, or by a limit of the kernel's."""
    CPU = 1
    """It used more CPU time than it may."""
    WALL = 2
    """It took more wall time than it may."""
    FOLDER = 3
    """Its folder held more than it may."""
    FILE_SYSTEM = 4
    """The file system was full before its folder was: a fault of the machine."""
    CONVERSATION = 5
    """Its partner had ended, the test that it answered: no fault of anybody."""
    DEADLOCK = 6
    """It waited for its partner, which waited for it."""


SLICE_SECONDS = 0.2
"""CPU time after which the fork server asks whether other tests are to run first."""

# First byte of a program's cache memfd, written before any of its own code runs.
COMPILED = b"C"
"""The program's bytecode follows."""
REJECTED = b"E"
"""The message of the compiler's error follows."""

PLAIN = "plain"
"""The dialect of programs that run as they are."""


class Ending(StrEnum):
    """How a test ended."""

    CALLING = "calling"
    """It has begun to call the answer; what a process leaves that was ended."""
    PASSED = "passed"
    FAILED = "failed"
    """An assertion failed, or the test raised an error after it had called the answer."""
    RAISED = "raised"
    """The answer raised an exception, which the test did not expect."""
    LEFT = "left"
    """The answer's process ended during a call, or before it."""
    MALFORMED = "malformed"
    """The answer's process wrote something else than a reply."""
    TOO_LONG = "too_long"
    """A message was longer than any may be."""
    BROKEN = "broken"
    """The test broke before it called the answer."""


ASKS = "asks"
"""The role of a test in a conversation."""
ANSWERS = "answers"
"""The role of an answer."""
TALKS = "talks"
"""The role of either side of an interaction: its stdin and stdout are pipes to the other."""

WIRE_FD = 3
"""The descriptor that a function's result is written to; for a binary, the binary itself."""

BUILT_FILE = "main"
"""Name of the file that a build leaves in its folder."""

STDIN_FILE = "stdin"
"""The scratch file that /dev/stdin and /dev/fd/0 lead to, for programs that name it."""
STDOUT_FILE = ".stdout"
"""The scratch file that /dev/stdout leads to."""
STDERR_FILE = ".stderr"
"""The scratch file that /dev/stderr leads to."""


class Layer(StrEnum):
    """The layers of isolation, in the order in which they are put on."""

    MOUNT_NAMESPACE = "mount_namespace"
    PID_NAMESPACE = "pid_namespace"
    NETWORK_NAMESPACE = "network_namespace"
    IPC_NAMESPACE = "ipc_namespace"
    UTS_NAMESPACE = "uts_namespace"
    UNPRIVILEGED_USER = "unprivileged_user"
    NO_CAPABILITIES = "no_capabilities"
    NO_NEW_PRIVILEGES = "no_new_privileges"
    NOT_DUMPABLE = "not_dumpable"
    LANDLOCK = "landlock"
    SECCOMP = "seccomp"
    RESOURCE_LIMITS = "resource_limits"


LAYERS = tuple(Layer)
"""All layers, in order."""

_REQUEST = struct.Struct("<ddQQ")
"""Layout of a request's limits; the rest is JSON."""
_RESULT = struct.Struct("<iiQQQB")
"""Layout of a result."""
_SECONDS = struct.Struct("<d")
"""Layout of a number of seconds."""
_NUM_LIMITS = 4
"""Fields of a request that are its limits."""


NO_RUNTIME: Mapping[str, Any] = {
    "readable": (),
    "executables": (),
    "environment": {},
    "address_space_bytes": 0,
    "reserved_bytes": 0,
}
"""What a sandbox adds for a language's runtime if it runs none.

See `describe_runtime` in `judge/run/builds.py`.
"""


class Request(NamedTuple):
    """One test to run.

    Beside it travel its descriptors: source, cache, stdin, stdout, stderr, the wire of a function
    or the file for what is built, and the files.
    """

    cpu_seconds: float
    wall_seconds: float
    memory_bytes: int
    file_bytes: int
    fn_name: str = ""
    """Call this function of the program, and send its result over the wire."""
    command: tuple[str, ...] = ()
    """Run a binary: the source itself with these arguments, or, to build, the compiler."""
    arguments: tuple[str, ...] = ()
    """sys.argv of a Python program after its own name."""
    files: tuple[str, ...] = ()
    """Names of files to lay into the scratch folder; a name that ends in / is an empty folder."""
    dialect: str = PLAIN
    """Environment of a Python program, see `runner`."""
    has_named_streams: bool = False
    """Use files in the scratch folder as stdout and stderr, so that they can be opened by name."""
    call: dict[str, Any] | None = None
    """Kinds of the function's arguments and result; None if all is plain JSON."""
    int_digits: int | None = None
    """Maximum digits of an integer that Python reads or writes, 0 for no limit.

    None for Python's default.
    """
    is_batch: bool = False
    """Several tests run in one process (see `batch`), and the limits are those of all together.

    Descriptors of a batch: source, cache, stdin, stdout, stderr, stdin of the tests, inputs,
    frames, and the socket for its questions.
    """
    role: str = ""
    """`ASKS` or `ANSWERS` in a conversation (see `conversation`), `TALKS` in an interaction; empty
    for any other run.

    Further descriptors of a conversation are the pipe that is read, the one that is written to, and
    for a test the wire of its report; of an interaction a pipe whose end ends the run.
    """
    collected: str = ""
    """Name of a file of the scratch folder that is copied to the wire after the run; empty for
    none."""

    def pack(self) -> bytes:
        """Return the request as a message."""
        limits = _REQUEST.pack(*self[:_NUM_LIMITS])
        details = self[_NUM_LIMITS:]
        if details == NO_LIMITS[_NUM_LIMITS:]:
            return TEST + limits
        return TEST + limits + json.dumps(details).encode()

    @classmethod
    def unpack(cls, message: bytes) -> Request:
        """Return the request that a message holds."""
        end = 1 + _REQUEST.size
        limits = _REQUEST.unpack(message[1:end])
        details = json.loads(message[end:]) if len(message) > end else ()
        return cls(*limits, *details)


NO_LIMITS = Request(0, 0, 0, 0)
"""A request of a plain program, without any limit."""


class Result(NamedTuple):
    """How the child ended, as the kernel accounts for it."""

    exit_code: int
    """Exit code of the process; -1 if a signal ended it."""
    signal: int
    """The signal that ended the process; 0 if none did."""
    cpu_us: int
    wall_us: int
    memory_kib: int
    """Peak resident memory beyond what the zygote itself holds."""
    expired: int
    """An `Expiry`: FINISHED, or the limit at which the fork server ended it."""

    def pack(self) -> bytes:
        """Return the result as a message."""
        return RESULT + _RESULT.pack(*self)

    @classmethod
    def unpack(cls, message: bytes) -> Result:
        """Return the result that a message holds."""
        return cls(*_RESULT.unpack(message[1:]))


def pack_seconds(kind: bytes, seconds: float) -> bytes:
    """Return a message with a number of seconds.

    STILL carries a test's wall time so far, SLICE its CPU time. GO_ON carries, as the answer to
    STILL, how much longer it may take; to SLICE, nothing: 0.
    """
    return kind + _SECONDS.pack(seconds)


def unpack_seconds(message: bytes) -> float:
    """Return the seconds in a message of `pack_seconds`."""
    return _SECONDS.unpack(message[1:])[0]

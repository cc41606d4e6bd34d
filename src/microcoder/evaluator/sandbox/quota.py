"""What one test may take if no namespace of its own counts it: threads, and entries and bytes of its folder.

The kernel asks the fork server before each such call of the test (seccomp's user notifications), and the fork server
answers "go on" or the error that a full file system, or a user with too many threads, would have given. What has
grown meanwhile is looked at from time to time.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import socket
import struct
import time

from microcoder.evaluator.sandbox import folders
from microcoder.evaluator.sandbox.syscall_numbers import NUMBERS
from microcoder.evaluator.sandbox.syscalls import PR_SET_NO_NEW_PRIVS, SeccompFilter, prctl

MAX_THREADS = 256
MAX_ENTRIES = 256
POLL_SECONDS = 0.02
"""How often a folder that something was put into is looked at."""

_MAX_BLIND_LOOKS = 25
"""So often in a row a program may keep its folder from being measured, by moving folders about."""
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
"""SECCOMP_IOCTL_NOTIF_RECV and _SEND."""
_NOTIFICATION_BYTES = 80
_HEAD = struct.Struct("=QIIi")
"""Of a notification: id, thread, flags, number of the call."""
_ANSWER = struct.Struct("=QqiI")
_GO_ON = 1
_FEW_SECONDS = 0.002
_SENDING_TRIES, _SENDING_PAUSE_SECONDS = 500, 0.005

IOCTLS = (_RECEIVE, _SEND)


class Quota:
    """What one test has taken so far; made before the fork, used on both sides of it."""

    def __init__(self, folder: str, max_bytes: int, *, has_files: bool) -> None:
        """Open the way by which the test hands over the listener.

        Args:
            folder: what the test may write to.
            max_bytes: how much may be in it.
            has_files: there is something in it already.
        """
        self.has_files = has_files
        """Whether there may be something in the folder."""
        self._folder, self._max_bytes = folder, max_bytes
        self._ours, self._theirs = socket.socketpair()
        self._listener = -1
        self._blind_looks = 0
        self._measured = (0, 0)
        self._num_unseen = 0
        """Entries made since the last look."""
        self._looked_at = 0.0

    def hand_over(self, rules: SeccompFilter) -> None:
        """In the test: install its filter, and give the fork server the listener."""
        listener = rules.install_with_listener()
        rights = array.array("i", [listener])
        for is_last in [False] * _SENDING_TRIES + [True]:
            try:
                self._theirs.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
                break
            except OSError as error:
                # The test before this one left descriptors under way, which the kernel gathers in its own time.
                if error.errno != errno.ETOOMANYREFS or is_last:
                    raise
                time.sleep(_SENDING_PAUSE_SECONDS)
        # Both before the program runs: whoever holds the listener could answer the questions about itself.
        os.close(listener)
        self._theirs.close()

    @property
    def test_end(self) -> int:
        """The descriptor that the test must keep until it has handed over."""
        return self._theirs.fileno()

    def begin(self) -> int:
        """In the fork server, after the fork: return the descriptor to wait at for `accept`."""
        self._theirs.close()
        return self._ours.fileno()

    def accept(self) -> int:
        """Return the listener to wait at for `answer`; -1 if the test ended before it had one."""
        _, ancillary, _, _ = self._ours.recvmsg(1, socket.CMSG_SPACE(4))
        for _, _, data in ancillary:
            self._listener = int.from_bytes(data[:4], "little")
        return self._listener

    def answer(self, pid: int) -> None:
        """Answer one call of the test."""
        notification = bytearray(_NOTIFICATION_BYTES)
        # The thread that asked may be gone by now, or by the time of the answer.
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._listener, _RECEIVE, notification)
            identity, _, _, number = _HEAD.unpack_from(notification)
            # After "go on" the kernel reads the arguments again, which another thread may have changed meanwhile.
            # Nothing rests on them here: what is decided by is how much there is already.
            error = self._refuse_thread(pid) if number == NUMBERS["clone"] else self._refuse_entry()
            fcntl.ioctl(self._listener, _SEND, _ANSWER.pack(identity, 0, -error, 0 if error else _GO_ON))

    def is_exceeded(self, *, is_final: bool = False) -> bool:
        """Whether the folder holds more than it may."""
        if is_final or self._seconds_since_look() > POLL_SECONDS:
            self._look()
        return self._measured[1] > self._max_bytes or self._blind_looks > _MAX_BLIND_LOOKS

    def close(self) -> None:
        """Let go of the listener; what still asks is refused by the kernel."""
        if self._listener >= 0:
            os.close(self._listener)
        self._ours.close()

    def _refuse_thread(self, pid: int) -> int:
        try:
            # The kernel counts a process's threads as links of this folder, which needs no right to read it.
            num_threads = os.stat(f"/proc/{pid}/task").st_nlink - 2
        except OSError:
            return errno.EAGAIN
        return errno.EAGAIN if num_threads >= MAX_THREADS else 0

    def _refuse_entry(self) -> int:
        self.has_files = True
        self._num_unseen += 1
        if self._measured[0] + self._num_unseen >= MAX_ENTRIES or self._seconds_since_look() > _FEW_SECONDS:
            self._look()
        num_entries, num_bytes = self._measured
        is_full = num_entries >= MAX_ENTRIES or num_bytes >= self._max_bytes or self._blind_looks
        return errno.ENOSPC if is_full else 0

    def _look(self) -> None:
        self._num_unseen = 0
        try:
            self._measured = folders.measure_folder(self._folder)
            self._blind_looks = 0
        except OSError:
            self._blind_looks += 1
        self._looked_at = time.monotonic()

    def _seconds_since_look(self) -> float:
        return time.monotonic() - self._looked_at


def find_problem() -> str:
    """Return why the kernel does not ask us; empty if it does. To be called before anything else is filtered."""
    pid = os.fork()
    if pid == 0:
        allow_everything = struct.pack("HBBI", 0x06, 0, 0, 0x7FFF0000)
        try:
            prctl(PR_SET_NO_NEW_PRIVS, 1)
            SeccompFilter(allow_everything).install_with_listener()
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"no seccomp notifications: {os.strerror(code)}" if code else ""

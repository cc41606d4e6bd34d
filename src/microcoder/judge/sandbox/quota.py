"""Limits of one test that no namespace of its own enforces: threads, and its folder.

Counted are the entries and bytes of the folder. The kernel asks the fork server before each such
call of the test (seccomp's user notifications), and the fork server answers "go on" or the error
that a full file system, or a user with too many threads, would have given. How files have grown is
measured from time to time.

A file takes space until it has neither a name nor an open descriptor. So before a name may be
removed, the fork server opens every file in the folder, and keeps open those that have lost theirs.
None is missed: names change only by calls that are asked about, and each such call has ended before
the next one is answered.
"""

from __future__ import annotations

import array
import contextlib
import errno
import fcntl
import os
import resource
import signal
import socket
import struct
import time

from microcoder.judge.sandbox import folders
from microcoder.judge.sandbox.kernel import NUMBERS, PR_SET_NO_NEW_PRIVS, SeccompFilter, prctl
from microcoder.judge.sandbox.protocol import MAX_THREADS

REMOVING_NAMES = "unlink unlinkat rmdir rename renameat renameat2"
"""Calls by which a file may lose its name."""
MAX_ENTRIES = 256
"""Most entries of a folder."""
POLL_SECONDS = 0.02
"""Interval between measurements of a folder that files were put into."""

_LEAST_FREE_BYTES = 1 << 20
"""A file system with fewer free bytes is full: a fault of the machine, not of the test."""
_LEAST_FREE_ENTRIES = 8
"""A file system with fewer free entries is full, too."""
_MAX_DESCRIPTORS = MAX_ENTRIES + 256
"""Most open files of the fork server: every file of a folder, and its own."""
_STOP_PAUSE_SECONDS = 5e-5
"""Interval of checks whether a test is stopped."""
_STOP_PAUSES = 100
"""Checks until the signal to stop is sent again."""
_STOP_CPU_SECONDS = 1.0
"""CPU time after which a test that is to stop counts as evading it."""
_RECEIVE = 0xC0502100
"""The ioctl SECCOMP_IOCTL_NOTIF_RECV: read a question."""
_SEND = 0xC0182101
"""The ioctl SECCOMP_IOCTL_NOTIF_SEND: answer it."""
_NOTIFICATION_BYTES = 80
"""Size of a question."""
_HEAD = struct.Struct("=QIIi")
"""Layout of a notification's head: id, thread, flags, number of the call."""
_LENGTH = struct.Struct("=56xQ")
"""Layout that reads the fourth argument of a notification's call."""
_ANSWER = struct.Struct("=QqiI")
"""Layout of an answer: id, value, error, flags."""
_GO_ON = 1
"""The flag SECCOMP_USER_NOTIF_FLAG_CONTINUE: the kernel makes the call."""
_FEW_SECONDS = 0.002
"""Shortest interval between measurements of a folder whose entries change."""
_SENDING_ATTEMPTS = 501
"""Most attempts to send the listener."""
_SENDING_PAUSE_SECONDS = 0.005
"""Time between two of them."""
_RETURN = 0x06
"""The BPF instruction that returns a constant."""
_ALLOW = 0x7FFF0000
"""The answer of a filter that allows a call."""

IOCTLS = (_RECEIVE, _SEND)
"""What the fork server must be able to call."""
_REMOVING = {NUMBERS[name] for name in REMOVING_NAMES.split() if name in NUMBERS}
"""Numbers of the calls by which a file may lose its name."""


class Quota:
    """Counts threads and disk space that one test takes.

    It is made before the fork, and used on both sides of it.
    """

    def __init__(self, folder: str, max_bytes: int, *, has_files: bool) -> None:
        """Open the socket by which the test hands over its listener.

        Args:
            folder: the test's folder.
            max_bytes: how much it may hold.
            has_files: it holds something.
        """
        self.has_files = has_files
        """Whether the folder may hold anything."""
        self._folder = folder
        self._max_bytes = max_bytes
        self._ours, self._theirs = socket.socketpair()
        self._listener = -1
        self._pid = 0
        self._num_entries = 0
        """Entries at the last measurement."""
        self._num_bytes = 0
        """Bytes at the last measurement."""
        self._num_unseen = 0
        """Entries made since the last measurement."""
        self._measured_at = 0.0
        """Time of the last measurement."""
        self._nameless: list[int] = []
        """Files without a name that the test may still have open."""
        self._reserved_bytes = 0
        """Bytes that the test asked to reserve in files (fallocate)."""
        self._is_evading = False
        """Whether the test evaded `_stop`."""
        self._descriptor_limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.lacks_space = False
        """Whether the file system was full before the folder was: a fault of the machine."""

    def hand_over(self, rules: SeccompFilter) -> None:
        """In the test: install its filter, and send the filter's listener to the fork server."""
        listener = rules.install_with_listener()
        rights = array.array("i", [listener])
        num_failed = 0
        while True:
            try:
                self._theirs.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
                break
            except OSError as error:
                # The test before this one left descriptors under way, which the kernel gathers in
                # its own time.
                num_failed += 1
                if error.errno != errno.ETOOMANYREFS or num_failed == _SENDING_ATTEMPTS:
                    raise
                time.sleep(_SENDING_PAUSE_SECONDS)
        # Both before the program runs: whoever holds the listener could answer the questions about
        # itself.
        os.close(listener)
        self._theirs.close()

    @property
    def test_end(self) -> int:
        """Descriptor of the test's side of the socket.

        The test keeps it open until `hand_over` has sent over it.
        """
        return self._theirs.fileno()

    def begin(self, pid: int) -> int:
        """In the fork server, after the fork: return the descriptor to wait at for `accept`."""
        self._theirs.close()
        self._pid = pid
        hard = self._descriptor_limits[1]
        most = _MAX_DESCRIPTORS
        if hard != resource.RLIM_INFINITY:
            most = min(hard, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return self._ours.fileno()

    def accept(self) -> int:
        """In the fork server: receive the test's listener, and return its descriptor.

        Call `answer` whenever it can be read. It is -1 if the test ended before it sent one.
        """
        _, ancillary, _, _ = self._ours.recvmsg(1, socket.CMSG_SPACE(4))
        for _, _, data in ancillary:
            self._listener = int.from_bytes(data[:4], "little")
        return self._listener

    def answer(self) -> None:
        """Answer the kernel's question about one call of the test."""
        notification = bytearray(_NOTIFICATION_BYTES)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notification)
        except OSError:
            return  # The thread that asked is gone.
        identity, _, _, number = _HEAD.unpack_from(notification)
        # After "go on" the kernel reads what pointers lead to again, which another thread may have
        # changed meanwhile. Nothing rests on that here: what is decided by is how much there is
        # already.
        if number == NUMBERS["clone"]:
            self._send(identity, self._refuse_thread())
        elif number == NUMBERS["fallocate"]:
            self._send(identity, self._refuse_space(_LENGTH.unpack_from(notification)[0]))
        else:
            self._answer_change(identity, is_removal=number in _REMOVING)

    def is_exceeded(self, *, is_final: bool = False) -> bool:
        """Whether the folder holds more bytes than it may.

        Args:
            is_final: the test has ended, only named files count.
        """
        if is_final:
            folders.close_all(self._nameless)
            self._nameless.clear()
        if is_final or self._seconds_since_measured() > POLL_SECONDS:
            self._measure()
        return self._num_bytes > self._max_bytes or self._is_evading

    def close(self) -> None:
        """Close the listener and the kept files.

        The kernel refuses calls that are still asked about.
        """
        if self._listener >= 0:
            os.close(self._listener)
        self._ours.close()
        folders.close_all(self._nameless)
        resource.setrlimit(resource.RLIMIT_NOFILE, self._descriptor_limits)

    def _send(self, identity: int, error: int) -> None:
        """Answer a question by an error; by 0 the call goes on."""
        answer = _ANSWER.pack(identity, 0, -error, 0 if error else _GO_ON)
        # The thread that asked may be gone by now.
        with contextlib.suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, answer)

    def _answer_change(self, identity: int, *, is_removal: bool) -> None:
        """Answer a call that changes names, and wait for its end.

        Files that lose their name are kept open.
        """
        self.has_files = True
        try:
            opened = folders.open_files(self._folder) if is_removal else []
        except OSError:
            self._send(identity, errno.ENOSPC)
            return
        try:
            error = 0 if is_removal else self._refuse_entry()
            self._send(identity, error)
            if not error and self._stop():
                os.kill(self._pid, signal.SIGCONT)
        finally:
            nameless = {number for number in opened if os.fstat(number).st_nlink == 0}
            self._nameless += nameless
            folders.close_all({*opened} - nameless)

    def _stop(self) -> bool:
        """Stop the test, so that no call of it is under way.

        Return False if it ended meanwhile.
        """
        began = cpu_clock(self._pid)
        options = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG
        while cpu_clock(self._pid) - began < _STOP_CPU_SECONDS:
            # Again and again: a timer of the test may send it on.
            os.kill(self._pid, signal.SIGSTOP)
            for _ in range(_STOP_PAUSES):
                change = os.waitid(os.P_PID, self._pid, options)
                if change is not None:
                    return change.si_code == os.CLD_STOPPED
                time.sleep(_STOP_PAUSE_SECONDS)
        self._is_evading = True
        return True

    def _refuse_thread(self) -> int:
        try:
            # The kernel counts a process's threads as links of this folder, which needs no right to
            # read it.
            num_threads = os.stat(f"/proc/{self._pid}/task").st_nlink - 2
        except OSError:
            return errno.EAGAIN
        return errno.EAGAIN if num_threads >= MAX_THREADS else 0

    def _refuse_space(self, num_bytes: int) -> int:
        self.has_files = True
        self._reserved_bytes += num_bytes
        return errno.ENOSPC if self._reserved_bytes > self._max_bytes else 0

    def _refuse_entry(self) -> int:
        self._num_unseen += 1
        may_be_full = self._num_entries + self._num_unseen >= MAX_ENTRIES
        if may_be_full or self._seconds_since_measured() > _FEW_SECONDS:
            self._measure()
        return errno.ENOSPC if self._is_full() else 0

    def _is_full(self) -> bool:
        return self._num_entries >= MAX_ENTRIES or self._num_bytes >= self._max_bytes

    def _measure(self) -> None:
        """Measure the folder, and note whether the file system has space left."""
        self._num_unseen = 0
        self._measure_folder()
        if self._is_full() and self._nameless:
            self._forget_closed()
            self._measure_folder()
        status = os.statvfs(self._folder)
        has_bytes = status.f_bavail * status.f_frsize >= _LEAST_FREE_BYTES
        # Where a file system counts no entries, it has space for any number.
        has_entries = status.f_files == 0 or status.f_favail >= _LEAST_FREE_ENTRIES
        if not has_bytes or not has_entries:
            self.lacks_space = True
        self._measured_at = time.monotonic()

    def _measure_folder(self) -> None:
        num_entries, num_bytes = folders.measure_folder(self._folder)
        nameless_bytes = sum(map(folders.num_bytes_of, self._nameless))
        self._num_entries = num_entries + len(self._nameless)
        self._num_bytes = num_bytes + nameless_bytes

    def _forget_closed(self) -> None:
        """Close the kept files without a name that the test has closed."""
        # While it stands still: what it closes in one thread it could be opening again in another.
        if self._stop():
            kept = [number for number in self._nameless if folders.is_open_elsewhere(number)]
            folders.close_all({*self._nameless} - {*kept})
            self._nameless = kept
            os.kill(self._pid, signal.SIGCONT)

    def _seconds_since_measured(self) -> float:
        return time.monotonic() - self._measured_at


def cpu_clock(pid: int) -> float:
    """Return the CPU seconds of another process, 0 if it is gone (see clock_getcpuclockid(3))."""
    process_wide = ~pid << 3
    scheduler = 2
    try:
        return time.clock_gettime(process_wide | scheduler)
    except OSError:
        return 0.0


def find_problem() -> str:
    """Return why the kernel has no seccomp notifications; empty if it has.

    Call it before any filter is installed.
    """
    # In another process: a filter is never taken away again.
    pid = os.fork()
    if pid == 0:
        allow_everything = struct.pack("HBBI", _RETURN, 0, 0, _ALLOW)
        try:
            prctl(PR_SET_NO_NEW_PRIVS, 1)
            SeccompFilter(allow_everything).install_with_listener()
        except OSError as error:
            os._exit(error.errno or 1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return f"no seccomp notifications: {os.strerror(code)}" if code else ""

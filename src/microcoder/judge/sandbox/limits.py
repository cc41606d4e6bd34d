"""Resource limits of one test.

Also lowers the priority (nice) of a process, its children and their scheduler group.
"""

from __future__ import annotations

import os
import resource
import time

from microcoder.judge.sandbox.protocol import MAX_DESCRIPTORS, Request

DEFAULT_STACK_BYTES = 8 << 20
"""Stack size the zygote is exec'ed with: libc takes it as the size of every thread's stack."""

_MAIN_STACK_BYTES = 120 << 20
"""Stack size of a Python program's main thread."""
_MAX_PROCESSES = 256 + 4
"""Limit on processes of the tests' user.

That is 256 threads of a test, its first, the fork server, and two to spare.
"""
_HEAPS_BYTES = 192 << 20
"""Address space added for a binary: libc reserves 64 MiB for each of up to three more heaps."""
_MAX_PENDING_SIGNALS = 256
"""Maximum pending signals of a test; each of its timers takes one."""
_UNLIMITED = (1 << 63) - 1
"""No limit: larger than any that the kernel knows."""
_SPARE_CPU_SECONDS = 2
"""How much later the kernel ends a test than the fork server does."""

_RLIMITS = (
    "AS",
    "DATA",
    "FSIZE",
    "NOFILE",
    "STACK",
    "CORE",
    "MEMLOCK",
    "MSGQUEUE",
    "SIGPENDING",
    "CPU",
    "NPROC",
)
"""Limits that are set, without `RLIMIT_`."""
_CPU = resource.RLIMIT_CPU


class LimitSetter:
    """Applies limits; knows the hard limits in force, so that it never asks to exceed one.

    Setting limits costs a test 0.2 ms in page faults. So the fork server takes them on itself, as
    soft limits that its children inherit and that the filter of system calls keeps them from
    raising.
    """

    def __init__(
        self, *, owns_uid: bool, address_space_bytes: int = 0, reserved_bytes: int = 0
    ) -> None:
        """Set what is the same for every test.

        Args:
            owns_uid: nothing outside this sandbox runs under our user id, so its processes may be
                counted.
            address_space_bytes: above 0: tests are run by a runtime that may reserve so much,
                whatever their limit on memory, which then bounds what they may write to.
            reserved_bytes: of that, what it asks for beyond the limit and hardly uses.
        """
        self._address_space_bytes = address_space_bytes
        self._reserved_bytes = reserved_bytes
        self._base_bytes = 0
        self._owns_uid = owns_uid
        self._is_raising_filtered = True
        self._ceilings = {name: _find_ceiling(name) for name in _RLIMITS}
        self._in_force: Request | None = None
        self._cpu = resource.getrlimit(_CPU)

    def settle(self, base_bytes: int, *, is_raising_filtered: bool) -> None:
        """Set what is known only once the fork server is ready; until then `apply` changes nothing.

        Args:
            base_bytes: address space that the zygote already takes.
            is_raising_filtered: tests cannot call setrlimit; if they can, each must give up its
                hard limits.
        """
        self._base_bytes = base_bytes
        self._is_raising_filtered = is_raising_filtered

    def set_inherited(self, request: Request) -> None:
        """Set a test's soft limits on the fork server, for its children to inherit.

        `apply` sets the one on CPU time.
        """
        if request is self._in_force:
            return
        self._in_force = request
        # The fork server ends a test at its exact limit; this, in whole seconds, holds should it be
        # stopped itself.
        backstop = int(request.cpu_seconds) + _SPARE_CPU_SECONDS
        ceiling = self._ceilings["CPU"]
        self._cpu = (min(backstop, ceiling), min(backstop + 1, ceiling))
        for name, value in self._values(request).items():
            self._set(name, value, self._ceilings[name])

    def lift(self) -> None:
        """Let the fork server itself write files of any size again."""
        if self._in_force is not None:
            self._in_force = None
            self._set("FSIZE", _UNLIMITED, self._ceilings["FSIZE"])

    def apply(self, request: Request) -> None:
        """Set the CPU limit of the calling process.

        If it could raise limits again, its hard limits are set, too.
        """
        resource.setrlimit(_CPU, self._cpu)
        if not self._is_raising_filtered:
            for name, value in self._values(request).items():
                self._set(name, value, value)

    def _values(self, request: Request) -> dict[str, int]:
        """Return the limits of a test, by name."""
        values = {
            "AS": self._base_bytes + request.memory_bytes,
            "FSIZE": request.file_bytes,
            "NOFILE": MAX_DESCRIPTORS,
            "STACK": _MAIN_STACK_BYTES,
            # With 0, a core would still be piped to the host's collector of crashes; with 1 the
            # kernel gives up.
            "CORE": 1,
            "SIGPENDING": _MAX_PENDING_SIGNALS,
            "MEMLOCK": 0,
            "MSGQUEUE": 0,
        }
        if request.command:
            # Any limit would also be the size of every thread's stack, all of it address space.
            # Without one the main stack grows while there is address space, and libc gives a thread
            # 2 MiB, as on contest judges.
            values["STACK"] = _UNLIMITED
            values["AS"] += _HEAPS_BYTES
        if self._address_space_bytes:
            values["AS"] = self._address_space_bytes
            values["DATA"] = request.memory_bytes + self._reserved_bytes
        if self._owns_uid:
            values["NPROC"] = _MAX_PROCESSES
        return values

    def _set(self, name: str, soft: int, hard: int) -> None:
        ceiling = self._ceilings[name]
        limits = (_to_kernel(min(soft, ceiling)), _to_kernel(min(hard, ceiling)))
        resource.setrlimit(_number_of(name), limits)


def _number_of(name: str) -> int:
    return getattr(resource, f"RLIMIT_{name}")


def _find_ceiling(name: str) -> int:
    """Return the hard limit in force."""
    hard = resource.getrlimit(_number_of(name))[1]
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard


def _to_kernel(limit: int) -> int:
    return resource.RLIM_INFINITY if limit == _UNLIMITED else limit


_ENABLED_FILE = "/proc/sys/kernel/sched_autogroup_enabled"
"""Says whether Linux groups processes by session."""
_GROUP_FILE = "/proc/self/autogroup"
"""Takes the niceness of this process's group."""
_MOST_SECONDS = 30.0
"""How long it is tried to set the niceness of the group."""
_PAUSE_SECONDS = 0.02
"""Time between two attempts."""


def stand_back(nice: int) -> None:
    """Set the niceness of this process, its children and their scheduler group.

    It becomes no less than it is already. Where Linux groups processes by session, a process's
    niceness counts within its own session only: beside others, the session has one of its own,
    which starts from 0.
    """
    nice = max(nice, os.getpriority(os.PRIO_PROCESS, 0))
    os.setpriority(os.PRIO_PROCESS, 0, nice)
    if nice <= 0 or not _are_sessions_grouped():
        return
    latest = time.monotonic() + _MOST_SECONDS
    while True:
        try:
            with open(_GROUP_FILE, "w") as file:
                file.write(str(nice))
            return
        except BlockingIOError:
            # The kernel lets one of all processes without privileges do so in a tenth of a second.
            if time.monotonic() > latest:
                raise
            time.sleep(_PAUSE_SECONDS)


def _are_sessions_grouped() -> bool:
    try:
        with open(_ENABLED_FILE) as file:
            return file.read().strip() == "1" and os.path.exists(_GROUP_FILE)
    except OSError:
        return False

"""Resource limits of one test."""

from __future__ import annotations

import resource

from microcoder.evaluator.sandbox.protocol import Request

DEFAULT_STACK_BYTES = 8 << 20
"""Stack size the zygote is exec'ed with: libc takes it as the size of every thread's stack."""

_MAIN_STACK_BYTES = 120 << 20
_MAX_DESCRIPTORS = 64
_MAX_PROCESSES = 256
_UNLIMITED = (1 << 63) - 1


_RLIMITS = ("AS", "FSIZE", "NOFILE", "STACK", "CORE", "MEMLOCK", "MSGQUEUE", "CPU", "NPROC")


class LimitSetter:
    """Applies limits in a test's process; knows the hard limits in force, so that it never asks to exceed one."""

    def __init__(self, base_bytes: int, *, owns_uid: bool) -> None:
        """Note what every test shares.

        Args:
            base_bytes: address space that the zygote already takes.
            owns_uid: nothing outside this sandbox runs under our user id, so its processes may be counted.
        """
        self._base_bytes = base_bytes
        self._owns_uid = owns_uid
        self._ceilings = {name: _hard_limit(name) for name in _RLIMITS}

    def apply(self, request: Request) -> None:
        """Limit the calling process for good."""
        self._set("AS", self._base_bytes + request.memory_bytes)
        self._set("FSIZE", request.file_bytes)
        self._set("NOFILE", _MAX_DESCRIPTORS)
        self._set("STACK", _MAIN_STACK_BYTES)
        for nothing in ("CORE", "MEMLOCK", "MSGQUEUE"):
            self._set(nothing, 0)
        backstop = int(request.cpu_seconds) + 2
        self._set("CPU", backstop, backstop + 1)
        if self._owns_uid:
            self._set("NPROC", _MAX_PROCESSES)

    def _set(self, name: str, soft: int, hard: int | None = None) -> None:
        ceiling = self._ceilings[name]
        limits = min(soft, ceiling), min(soft if hard is None else hard, ceiling)
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), limits)


def _hard_limit(name: str) -> int:
    hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name}"))[1]
    return _UNLIMITED if hard == resource.RLIM_INFINITY else hard

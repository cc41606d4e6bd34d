"""Resource limits of one test."""

from __future__ import annotations

import resource

from microcoder.evaluator.sandbox.protocol import Request

DEFAULT_STACK_BYTES = 8 << 20
"""Stack size the zygote is exec'ed with: libc takes it as the size of every thread's stack."""

_MAIN_STACK_BYTES = 120 << 20
_MAX_DESCRIPTORS = 64
_MAX_PROCESSES = 256


def set_soft_and_hard(which: int, value: int, hard: int | None = None) -> None:
    """Set a limit, never above the hard limit that is in force."""
    ceiling = resource.getrlimit(which)[1]
    hard = value if hard is None else hard
    if ceiling != resource.RLIM_INFINITY:
        value, hard = min(value, ceiling), min(hard, ceiling)
    resource.setrlimit(which, (value, hard))


def apply_limits(request: Request, base_bytes: int, *, owns_uid: bool) -> None:
    """Limit the calling process for good.

    Args:
        request: the test's limits.
        base_bytes: address space that the zygote already takes.
        owns_uid: nothing outside this sandbox runs under our user id, so its processes may be counted.
    """
    set_soft_and_hard(resource.RLIMIT_AS, base_bytes + request.memory_bytes)
    set_soft_and_hard(resource.RLIMIT_FSIZE, request.file_bytes)
    set_soft_and_hard(resource.RLIMIT_NOFILE, _MAX_DESCRIPTORS)
    set_soft_and_hard(resource.RLIMIT_STACK, _MAIN_STACK_BYTES)
    for nothing in (resource.RLIMIT_CORE, resource.RLIMIT_MEMLOCK, resource.RLIMIT_MSGQUEUE):
        set_soft_and_hard(nothing, 0)
    backstop = int(request.cpu_seconds) + 2
    set_soft_and_hard(resource.RLIMIT_CPU, backstop, backstop + 1)
    if owns_uid:
        set_soft_and_hard(resource.RLIMIT_NPROC, _MAX_PROCESSES)

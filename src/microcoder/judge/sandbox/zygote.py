"""Script of the fork server, started with a clean environment.

The command is `python -s -P -S -B zygote.py SOCKET`. Not `-I`: that would ignore PYTHONHASHSEED,
and set order would differ from run to run. The environment holds nothing but what the supervisor
chose.
"""

import os
import resource
import sys
from types import ModuleType

_PACKAGES = ("microcoder", "microcoder.judge", "microcoder.judge.sandbox")
"""The package of the untrusted side, and those above it."""


def _exec_with_default_stack(stack_bytes: int) -> None:
    """Execute this script again with the usual stack limit, if it has another.

    At its start, libc takes the size of thread stacks from the limit.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != stack_bytes and (hard == resource.RLIM_INFINITY or hard >= stack_bytes):
        resource.setrlimit(resource.RLIMIT_STACK, (stack_bytes, hard))
        os.execv(sys.executable, sys.orig_argv)


def _adopt_own_folder() -> None:
    """Make the untrusted side importable under its usual name, and nothing else of the package."""
    for name in _PACKAGES:
        package = ModuleType(name)
        package.__path__ = []
        sys.modules[name] = package
    sys.modules[_PACKAGES[-1]].__path__ = [os.path.dirname(os.path.abspath(__file__))]


_adopt_own_folder()
# The hooks that threading and random would register cost every test 0.35 ms, and no test may fork.
_register_at_fork = os.register_at_fork
os.register_at_fork = lambda **hooks: None

from microcoder.judge.sandbox import limits, server  # noqa: E402

if __name__ == "__main__":
    _exec_with_default_stack(limits.DEFAULT_STACK_BYTES)
    fork_server = server.ForkServer(int(sys.argv[1]))
    os.register_at_fork = _register_at_fork
    fork_server.serve()

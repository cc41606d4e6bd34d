"""Mutants of a module of ours, and whether its tests notice: `python mutation.py MODULE TEST...`,
mutants on stdin.

Each mutant is tested in a fork of this process, where what is large to import is imported already,
and stands in the module's place from the first import on. Files are not changed.
"""

import json
import os
import resource
import signal
import sys
from importlib.util import find_spec, module_from_spec

SECONDS = 120
"""What the tests of a mutant may take; one that hangs is noticed."""


def exit_code(module: str, tests: list[str], source: str) -> int:
    """Return pytest's exit code, or a signal's number below zero,
    with this source in place of the module's own.
    """
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    import pytest

    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    spec = find_spec(module)
    assert spec is not None
    assert module not in sys.modules, "the mutant comes too late"
    sys.modules[module] = module_from_spec(spec)
    # One that cannot be imported ends the child, and is noticed.
    exec(compile(source, str(spec.origin), "exec", dont_inherit=True), vars(sys.modules[module]))
    quick = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not long and not slow"]
    os._exit(pytest.main([*quick, *tests]))


if __name__ == "__main__":
    name, *files = sys.argv[1:]
    for large in ("numpy", "pydantic", "hypothesis", *["torch"] * (".train." in name)):
        __import__(large)
    print(json.dumps([exit_code(name, files, source) for source in json.load(sys.stdin)]))

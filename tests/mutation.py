"""Mutants of a module of ours, and whether its tests notice: `python mutation.py MODULE TEST...`, mutants on stdin.

Each mutant is tested in a fork of this process, where what is large to import is imported already, and stands in the
module's place from the first import on. Files are not changed.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType

SECONDS = 120
"""What the tests of a mutant may take; one that hangs is noticed."""
LARGE = ("numpy", "pydantic", "hypothesis", "torch")


class Mutated(MetaPathFinder):
    """Finds one module with other source than its file has."""

    def __init__(self, module: str, source: str) -> None:
        self._module, self._source = module, source

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if fullname != self._module:
            return None
        spec = PathFinder.find_spec(fullname, path)  # type: ignore[arg-type]
        assert spec is not None
        assert spec.origin is not None
        spec.loader = _Loader(fullname, spec.origin, self._source)
        return spec


class _Loader(SourceFileLoader):
    def __init__(self, fullname: str, path: str, source: str) -> None:
        super().__init__(fullname, path)
        self._source = source

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


def exit_codes(module: str, tests: list[str], sources: list[str]) -> Iterator[int]:
    """Yield pytest's exit code, or a signal's number below zero, for each source in place of the module's own."""
    for source in sources:
        child = os.fork()
        if child == 0:
            _test(module, tests, source)
        yield os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _test(module: str, tests: list[str], source: str) -> None:
    import pytest

    signal.alarm(SECONDS)
    resource.setrlimit(resource.RLIMIT_DATA, (8 << 30, 8 << 30))
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    sys.meta_path.insert(0, Mutated(module, source))
    quick = ["-x", "-q", "-p", "no:cacheprovider", "-m", "not long and not slow"]
    os._exit(pytest.main([*quick, *tests]))


if __name__ == "__main__":
    for large in LARGE if "training" in sys.argv[1] else LARGE[:-1]:
        __import__(large)
    assert not any(name.startswith("microcoder") for name in sys.modules), "the mutant would come too late"
    print(json.dumps(list(exit_codes(sys.argv[1], sys.argv[2:], json.load(sys.stdin)))))

"""One run of everything a test does, before the first fork, so that caches and call sites are settled by then."""

from __future__ import annotations

import io
import marshal
import os
import sys

from microcoder.evaluator.sandbox.frames import CallStack
from microcoder.evaluator.sandbox.runner import FILE_NAME, guarded

_PROGRAM = """
import sys
a, b = map(int, input().split())
for i in range(3):
    print(a + b, "x", [1.5, (2,)], {3: 4})
class A:
    def f(self):
        return sorted([3, 1, 2])
print(A().f(), *sys.stdin.readlines())
try:
    {}[1]
except KeyError as error:
    print(repr(error))
"""
_ROUNDS = 10


def run_everything_once(stack: CallStack) -> None:
    """Compile and run a small program on descriptors 0 and 1, then leave them empty and untouched."""
    standard = sys.stdin, sys.stdout
    code = compile(_PROGRAM, FILE_NAME, "exec", dont_inherit=True)
    os.pwrite(0, b"1 2\nx\n", 0)
    for _ in range(_ROUNDS):
        os.lseek(0, 0, os.SEEK_SET)
        sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "r", closefd=False)), encoding="utf-8")
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(io.FileIO(1, "w", closefd=False)), encoding="utf-8")
        namespace = {"__name__": "__main__", "__builtins__": sys.modules["builtins"]}
        guarded(stack.execute, marshal.loads(marshal.dumps(code)), namespace)
        sys.stdout.flush()
    sys.stdin, sys.stdout = standard
    os.ftruncate(0, 0)
    os.ftruncate(1, 0)

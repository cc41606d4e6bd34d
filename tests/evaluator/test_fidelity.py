# ruff: noqa: E501 - the programs are kept on one line each
"""Ordinary programs behave in the sandbox as under plain `python`: same output, same exit code."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from microcoder.evaluator.supervisor import Limits, LoadedProgram, Sandbox

INPUT = b"3\n1 2\n3 4\n5 6\n"
LIMITS = Limits(cpu_seconds=5.0, wall_seconds=20.0, memory_bytes=1 << 30, output_bytes=1 << 24)

PROGRAMS = {
    "input": "n = int(input())\nfor _ in range(n): print(sum(map(int, input().split())))",
    "readline": "import sys\ninput = sys.stdin.readline\nn = int(input())\nprint(n, [line.strip() for line in sys.stdin])",
    "readline then read": "import sys\nprint(sys.stdin.readline(), sys.stdin.read())",
    "iterate over stdin": "import sys\nfor line in sys.stdin: print(line, end='')",
    "stdin buffer": "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])",
    "open(0)": "print(open(0).read().upper())",
    "os.read": "import os\nprint(os.read(0, 10 ** 6))",
    "own stdin": "import sys, io, os\nsys.stdin = io.StringIO(os.read(0, 10 ** 6).decode())\nprint(input())",
    "end of file": "while True: print(input())",
    "exit": "print(1)\nexit()\nprint(2)",
    "quit with code": "print(1)\nquit(3)",
    "sys.exit text": "import sys\nprint(1)\nsys.exit('bad')",
    "sys.exit 256": "import sys\nsys.exit(256)",
    "sys.exit bool": "import sys\nsys.exit(True)",
    "exception": "print(1)\n1 / 0",
    "os._exit": "import os\nprint('lost')\nos._exit(4)",
    "recursion near the limit": "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(980))",
    "recursion beyond it": "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nf(1000)",
    "deep recursion": "import sys\nsys.setrecursionlimit(10 ** 6)\ndef f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(50000))",
    "thread with a big stack": """
import sys, threading
sys.setrecursionlimit(10 ** 6)
threading.stack_size(1 << 27)
def f(n): return 0 if n == 0 else 1 + f(n - 1)
def main(): print(f(100000))
thread = threading.Thread(target=main); thread.start(); thread.join()
""",
    "main block": "def main(): print(__name__)\nif __name__ == '__main__':\n    main()\nprint('after')",
    "global": "count = 0\ndef f():\n    global count\n    count += 1\nf(); f()\nprint(count)",
    "future annotations": "from __future__ import annotations\nx: unknown = 1\nprint(x, __annotations__)",
    "dataclass and pickle": """
from dataclasses import dataclass
import pickle
@dataclass
class A: x: int
print(pickle.loads(pickle.dumps(A(3))))
""",
    "namedtuple, enum, typing": """
from typing import NamedTuple, Generic, TypeVar
from enum import Enum, auto
class P(NamedTuple):
    x: int = 1
class E(Enum):
    A = auto()
print(P(), E.A, P.__module__)
""",
    "big integers": "print(7 ** 5000)",
    "integer beyond the digits limit": "print(7 ** 9000)",
    "asyncio": "import asyncio\nasync def m():\n    await asyncio.sleep(0.01); print('a')\nasyncio.run(m())",
    "atexit": "import atexit\natexit.register(print, 'bye')\nprint('x')",
    "no newline at the end": "import sys\nsys.stdout.write('abc')",
    "unicode": "print('é→' + input())",
    "thread outlives main": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.05), print('t'))).start()\nprint('m')",
    "daemon thread": "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nprint('m')",
    "thread pool": "from concurrent.futures import ThreadPoolExecutor as T\nwith T(4) as e: print(list(e.map(abs, [-1, -2])))",
    "decimal": "from decimal import *\ngetcontext().prec = 50\nprint(Decimal(1) / 7)",
    "stderr beside stdout": "import sys\nprint('e', file=sys.stderr)\nprint('o')",
    "exec": "exec('a = 5')\nprint(a, 'a' in globals())",
    "match": "match 5:\n    case x if (y := x + 1): print(y)",
    "streams": "import sys\nprint(sys.stdin.isatty(), sys.stdout.isatty(), sys.stdin.fileno(), sys.stdin.name, sys.stdout.encoding)",
    "set order": "print(set('hello world'), hash('a'))",
    "temporary file": "import tempfile\nf = tempfile.TemporaryFile(); f.write(b'x'); print(f.tell())",
    "alarm": "import signal\nsignal.alarm(1)\nprint(signal.alarm(0))",
    "keyboard interrupt": "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(1)\nexcept KeyboardInterrupt: print('caught')",
    "seeded random": "import random\nrandom.seed(5)\nprint(random.random(), random.sample(range(100), 3))",
    "interpreter": "import sys\nprint(sys.maxsize, sys.version_info[:2], sys.byteorder, sys.flags.optimize, sys.argv[1:])",
    "output object without flush": """
import sys, io
out = io.TextIOWrapper(io.FileIO(1, "w", closefd=False))
out.write("held back")
""",
    "output kept in an object": """
import io, os
class Fast:
    def __init__(self): self.out = open(1, "w", closefd=False)
    def write(self, text): self.out.write(text)
fast = Fast()
fast.write("through an object")
""",
    "stdout replaced": "import sys, io\nprint('first')\nsys.stdout = io.StringIO()\nprint('second')",
    "stdout closed": "import sys\nprint('x')\nsys.stdout.close()",
    "stdout without a descriptor": "import os\nprint('x')\nos.close(1)",
    "stdout removed": "import sys\nprint('x', flush=True)\nsys.stdout = None",
    "stdout unusable": "import sys\nprint('x')\nsys.stdout = 5",
    "fast output": """
import os, sys
from io import BytesIO, IOBase
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
class IOWrapper(IOBase):
    def __init__(self, file):
        self.buffer = FastIO(file)
        self.flush = self.buffer.flush
        self.writable = self.buffer.writable
        self.write = lambda s: self.buffer.write(s.encode("ascii"))
sys.stdout = IOWrapper(sys.stdout)
sys.stdout.write("fast\\n")
""",
    "regular expressions, heap, bisect": "import re, heapq, bisect\nh = [3, 1]; heapq.heapify(h)\nprint(re.findall('l+', 'hello'), h, bisect.bisect([1, 2], 1))",
    "zoneinfo-free datetime": "import datetime\nprint(datetime.date(2020, 1, 31) + datetime.timedelta(1))",
    "wide imports": "import array, cmath, csv, difflib, hashlib, json, lzma, sqlite3, struct, textwrap, unittest, zlib\nprint(hashlib.sha256(b'').hexdigest())",
    "numpy": "import numpy as np\nprint(np.arange(6).reshape(2, 3).sum(axis=0), np.linalg.det(np.eye(3)))",
    "syntax warning": "print('x' is 'x')",
    "module docstring": "'''doc'''\nprint(__doc__, __file__ is not None, __name__)",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    sandbox = Sandbox()
    yield sandbox
    sandbox.close()


@pytest.mark.parametrize("name", PROGRAMS)
def test_behaves_as_under_plain_python(sandbox: Sandbox, name: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    code = PROGRAMS[name]
    if "numpy" in code:
        pytest.importorskip("numpy")
    script = tmp_path_factory.mktemp("plain") / "main.py"
    script.write_text(code, encoding="utf-8")
    plain = subprocess.run(
        [sys.executable, str(script)],
        input=INPUT,
        capture_output=True,
        env={"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "PATH": os.environ["PATH"]},
        timeout=60,
        check=False,
    )
    program = LoadedProgram(code)
    run = sandbox.run(program.task(INPUT), LIMITS)
    program.close()
    assert (run.stdout, run.result.exit_code) == (plain.stdout, plain.returncode), run.stderr
    if plain.returncode:
        assert run.stderr.strip().splitlines()[-1:] == plain.stderr.decode().strip().splitlines()[-1:]

"""Programs that try to be accepted without solving the problem: name -> (kind of problem, source).

The kinds and what they ask for are in `safety_suites`; most ask for the sum of two integers. None of these prints or
returns the right answer in a form that counts. Written for this suite; safe to run only inside the sandbox.
"""

from __future__ import annotations

from .forging_calls import CALLS  # pyrefly: ignore[missing-import]
from .forging_frames import FRAMES  # pyrefly: ignore[missing-import]

_LIAR = """
class Liar{base}:
    __hash__ = lambda self: 0
    __eq__ = __le__ = __ge__ = __contains__ = lambda self, other: True
    __ne__ = __lt__ = __gt__ = lambda self, other: False
    __bool__ = lambda self: True
    __len__ = lambda self: 1
    __iter__ = lambda self: iter([self])
    __getitem__ = lambda self, key: self
    __repr__ = __str__ = lambda self: "121547"
    __int__ = __index__ = __trunc__ = lambda self: 121547
    __float__ = lambda self: 121547.0
    __reduce__ = lambda self: (int, (121547,))
"""


def _liar(base: str, value: str, more: str = "") -> tuple[str, str]:
    return "function", _LIAR.format(base=f"({base})" if base else "") + more + f"\ndef add(a, b): return {value}\n"


FORGERIES: dict[str, tuple[str, str]] = {
    # What a comparison might let through.
    "nothing": ("sum", ""),
    "blank lines": ("sum", "print('\\n' * 1000)"),
    "every integer": ("sum", "print(*range(122_000))"),
    "many integers on a line of their own": ("sum", "for n in range(121_000, 122_000): print(n)"),
    "many integers as a set": ("sum", "print(set(range(121_000, 122_000)))"),
    "the answer among debug output": ("sum", "a, b = map(int, input().split())\nprint('a + b =', a + b)"),
    "the answer twice": ("sum", "a, b = map(int, input().split())\nprint(a + b, a + b)"),
    "the answer and more answers": ("sum", "a, b = map(int, input().split())\nfor n in range(3): print(a + b + n)"),
    "the answer quoted": ("sum", "a, b = map(int, input().split())\nprint(repr(str(a + b)))"),
    "the answer in a list": ("sum", "a, b = map(int, input().split())\nprint([a + b])"),
    "the answer almost": ("sum", "a, b = map(int, input().split())\nprint(a + b + 1e-7)"),
    "the answer in other digits": (
        "sum",
        "a, b = map(int, input().split())\nprint(str(a + b).translate({48 + n: 0x660 + n for n in range(10)}))",
    ),
    "the answer behind a terminal's erasures": (
        "sum",
        "a, b = map(int, input().split())\nprint(f'wrong\\x1b[2K\\r\\b\\b{a + b}\\0')",
    ),
    "the answer on stderr": ("sum", "import sys\nprint(sum(map(int, input().split())), file=sys.stderr)"),
    "the answer, then a failure": ("sum", "print(sum(map(int, input().split())), flush=True)\n1 / 0"),
    "the answer, then exit code 1": (
        "sum",
        "import os\nos.write(1, b'%d' % sum(map(int, input().split())))\nos._exit(1)",
    ),
    "the answer, then an odd exit": ("sum", "import sys\nprint(sum(map(int, input().split())))\nsys.exit('0')"),
    "the answer, then killed": (
        "sum",
        "import os\nprint(sum(map(int, input().split())), flush=True)\nos.kill(os.getpid(), 9)",
    ),
    "wild cards": ("sum", "print('.*|*|%|?|[0-9]+|\\\\d+|ANY|__any__')"),
    "a wild card": ("sum", "print('.*')"),
    "nan": ("sum", "print('nan')"),
    "infinity": ("sum", "print('inf')"),
    "None": ("sum", "print(None)"),
    "True": ("sum", "print(True)"),
    "a huge number": ("sum", "print('9' * 10 ** 5)"),
    "a number with a huge exponent": ("sum", "print('1e999999999')"),
    "nan where a real number is expected": ("third", "print(float('nan'))"),
    "infinities where a real number is expected": ("third", "print('inf -inf')"),
    "an interval where a real number is expected": ("third", "print('0.3..0.4 [0.3,0.4] 0.3+-0.1')"),
    "too few digits where a real number is expected": ("third", "print(0.33)"),
    "both words": ("yes", "print('YES NO')"),
    "both words on two lines": ("yes", "print('YES\\nNO')"),
    "both words in one": ("yes", "print('YES/NO')"),
    "a word that means the same": ("yes", "print(True, 1, 'y')"),
    "a larger set": ("set", "print(set(range(100)))"),
    "a list with holes": ("set", "print('{*}')"),
    "a set that repeats itself": ("set", "print('{3, 3, 3}')"),
    "an expression": ("set", "print('{3} | {5}')"),
    "output of exactly the limit": ("sum", "import os\nos.write(1, b' ' * (16 << 20))"),
    "holes of the largest size": ("sum", "import os\nos.ftruncate(1, 16 << 20)\nos.pwrite(1, b'1', (16 << 20) - 1)"),
    "text that is no text": ("sum", "import os\nos.write(1, b'\\xff\\xfe1\\x002\\x001\\x005\\x004\\x007\\x00')"),
    "a stdout that lies": (
        "sum",
        "import io, sys\nclass Out(io.StringIO):\n    def getvalue(self): return '121547'\n    read = getvalue\n"
        "sys.stdout = sys.__stdout__ = Out()\nprint('121547' == sys.stdout)",
    ),
    "settings of stdout": (
        "sum",
        "import fcntl, os\nfor command, value in ((4, 0o2066000), (1033, 15), (1032, 1 << 20), (1025, 1), (1036, 1)):\n"
        "    try: fcntl.fcntl(1, command, value)\n    except OSError: pass\nos.lseek(1, 1 << 40, 0)",
    ),
    # What a judge in the same process would fall for.
    "patched builtins": (
        "sum",
        """
import builtins
for name in ("print", "len", "open", "sorted", "isinstance", "compile", "exec", "all", "any", "zip", "str", "type"):
    setattr(builtins, name, lambda *a, **k: True)
""",
    ),
    "patched modules": (
        "sum",
        """
import atexit, importlib, json, marshal, os, re, struct, sys, types
for module in (json, marshal, os, re, struct, sys, atexit):
    for name, value in list(vars(module).items()):
        if callable(value) and name not in ("_exit", "__loader__", "__spec__"):
            try: setattr(module, name, lambda *a, **k: 0)
            except (AttributeError, TypeError): pass
for name in ("judge.compare.compare", "judge.run.verdicts", "judge.fleet.judge", "judge.core.types"):
    sys.modules[f"microcoder.{name}"] = types.SimpleNamespace(compare_output=lambda *a: True)
""",
    ),
    "exit codes that wrap around": ("sum", "import sys\nsys.exit(256)"),
    "exit at once": ("sum", "import os\nos._exit(0)"),
    "an exit that cannot be caught": ("sum", "raise SystemExit"),
    "an exit function that exits": ("sum", "import atexit, os\natexit.register(os._exit, 0)\n1 / 0"),
    "a hook for exceptions": ("sum", "import sys, os\nsys.excepthook = lambda *a: os._exit(0)\nraise ValueError"),
    # Returned values.
    "an object equal to everything": _liar("", "Liar()"),
    "an int that lies": _liar("int", "Liar(7)"),
    "a str that lies": _liar("str", "Liar('121547')"),
    "a float that lies": _liar("float", "Liar('nan')"),
    "a list that lies": _liar("list", "Liar([121547])"),
    "a tuple that lies": _liar("tuple", "Liar((121547,))"),
    "a dict that lies": _liar("dict", "Liar({'int': '0x1dacb'})"),
    "a class that lies about itself": _liar("", "Sly()", "\nclass Sly(Liar): __class__ = property(lambda self: int)"),
    "a class whose class lies": (
        "function",
        "class Meta(type):\n    __instancecheck__ = __subclasscheck__ = __eq__ = lambda self, other: True\n"
        "    __hash__ = lambda self: hash(int)\n    __mro__ = (int, object)\n    __name__ = 'int'\n"
        "class Liar(metaclass=Meta): pass\ndef add(a, b): return Liar()",
    ),
    "the object of mock": ("function", "from unittest.mock import ANY\ndef add(a, b): return ANY"),
    "many integers returned": ("function", "def add(a, b): return set(range(121_000, 122_000))"),
    "the answer as text": ("function", "def add(a, b): return str(a + b)"),
    "the answer in a tuple": ("function", "def add(a, b): return (a + b,)"),
    "the answer and a little": ("function", "def add(a, b): return a + b + 1e-9"),
    "not a number": ("function", "def add(a, b): return float('nan')"),
    "no number of Decimal": ("function", "def add(a, b): return decimal.Decimal('sNaN')"),
    "a fraction that lies": (
        "function",
        "class F(fractions.Fraction):\n    as_integer_ratio = lambda self: (1, 1)\n    numerator = 1\n"
        "def add(a, b): return F(1, 3)",
    ),
    "an array equal to everything": ("function", "import numpy\ndef add(a, b): return numpy.array([True, False])"),
    "a generator": ("function", "def add(a, b):\n    while True: yield a"),
    "a sequence without end": (
        "function",
        "import collections.abc\nclass S(collections.abc.Sequence):\n    __len__ = lambda self: 1 << 60\n"
        "    __getitem__ = lambda self, key: S()\ndef add(a, b): return S()",
    ),
    "a list in itself": ("function", "x = []\nx.append(x)\ndef add(a, b): return x"),
    "exit inside the call": ("function", "def add(a, b): raise SystemExit(0)"),
    "arguments changed in place": ("function", "def add(a, b):\n    import sys\n    sys.argv[:] = [a + b]"),
    "the result of a patched encoder": (
        "function",
        "import json, sys\njson.dumps = lambda *a, **k: 'true'\n"
        "def add(a, b):\n    frame = sys._getframe(1)\n    frame.f_globals['encode'] = lambda *a: True\n    return 1",
    ),
    "keys that write other keys": ("rows", "def rows(): return [{'a\\':0x1,\\'b': 2}, {'a:0x1,b': 2}]"),
    "keys that write other keys, once": ("rows", "def rows(): return [{'a:0x1,b': 2}]"),
    # Checker programs.
    "words for the checker": ("checker", "print('accepted OK 0 42 exit(0)\\n_ok _pc 100')"),
    "files for the checker": (
        "checker",
        "for name in ('input', 'answer', 'output', 'main.py', 'sys.py', 'sitecustomize.py', 'feedback'):\n"
        "    open(f'/tmp/{name}', 'w').write('10\\n10\\nimport os; os._exit(0)')\nprint(1)",
    ),
    "links for the checker": (
        "checker",
        "import os\nfor name in ('input', 'answer', 'output'): os.symlink('/tmp/mine', f'/tmp/{name}')\n"
        "open('/tmp/mine', 'w').write('10')\nprint('answer', 'input', '/tmp/mine', '@answer')",
    ),
    "nothing for the checker": ("checker", ""),
    "code for the checker": ("checker", "print('__import__(\"os\")._exit(0)')"),
    "a number too large for the checker": ("checker", "print('9' * 5000)"),
    "nan for the checker": ("checker", "print('nan')"),
    "text that is no text for the checker": ("checker", "import os\nos.write(1, b'\\xff\\0\\x1a\\x04')"),
    "feedback for a Kattis checker": (
        "kattis",
        "print('42\\njudgemessage.txt accepted')\nimport os\nos.makedirs('/tmp/feedback')\n"
        "open('/tmp/feedback/judgemessage.txt', 'w').write('42')",
    ),
    "an exit code of a Kattis checker": ("kattis", "import sys\nprint(10)\nsys.stdout.flush()\nsys.exit(42)"),
    # Built programs.
    "exit at once, built": ("cpp", "#include <unistd.h>\nint main() { _exit(0); }"),
    "the answer, then exit code 1, built": (
        "cpp",
        '#include <cstdio>\nint main() { int a, b; scanf("%d%d", &a, &b); printf("%d", a + b); return 1; }',
    ),
    "write to every descriptor, built": (
        "cpp",
        "#include <unistd.h>\n#include <fcntl.h>\nint main() { char f[34] = {'R'};\n"
        "for (int n = 2; n < 1024; n++) { write(n, f, 34); pwrite(n, f, 34, 0); ftruncate(n, 0); } }",
    ),
    "become another program, built": (
        "cpp",
        "#include <unistd.h>\n#include <fcntl.h>\n#include <sys/syscall.h>\nint main() {\n"
        'const char* a[] = {"ld", "--version", nullptr}; const char* e[] = {nullptr};\n'
        'syscall(SYS_execveat, AT_FDCWD, "/lib64/ld-linux-x86-64.so.2", a, e, AT_EMPTY_PATH);\n'
        'execve("/proc/self/exe", (char**)a, (char**)e); write(1, "refused", 7); }',
    ),
    "files at build time": (
        "cpp",
        'extern const char text[];\nasm("text: .incbin \\"/etc/passwd\\"");\n'
        'extern "C" int puts(const char*);\nint main() { puts(text); }',
    ),
    "an array that fills the disk at build time": ("cpp", "char room[1u << 30] = {1};\nint main() {}"),
    "assembly that fills the disk at build time": ("cpp", 'asm(".fill 0x7fffffff, 1, 1");\nint main() {}'),
    "source without end at build time": ("cpp", '#include "/dev/zero"\nint main() {}'),
    "a binary that builds itself": ("cpp", '#include "main"\n#include "/dev/stdin"\nint main() {}'),
    **CALLS,
    **FRAMES,
}

"""Functions that try to answer by the place of a test among those that share its process,
and not by its input.

Each returns the same in every process of its own.
One that knows its place returns something else in later tests.
"""

_THROWN_AWAY = """
import sys
class S({bases}):
    def send(self, value): return 0
    def throw(self, *error):
        leave()
        if sys.stdout: sys.stdout.write('x')
        raise StopIteration
{leave}
def f(a):
    young = [[n] for n in range(9000)]
    sys.stdout.flush()
    n = sys.stdout.tell()
    leave()
    return 1 + bool(n)
"""
_SUSPENDED = """
def walk(): yield from S()
def leave():
    walker = walk()
    next(walker)
    cycle = [walker]
    cycle.append(cycle)
"""
_FREED = """
def leave():
    cycle = [S()]
    cycle.append(cycle)
"""


def _suspended(setup: str, base: str) -> str:
    return setup + _THROWN_AWAY.format(bases=base, leave=_SUSPENDED)


def _freed(setup: str, bases: str) -> str:
    return setup + _THROWN_AWAY.format(bases=bases, leave=_FREED)


_CLOCK = """
SEEN = []
class T{base}:
    def __lt__(self, other): return False
    def __radd__(self, now):
        SEEN.append(now)
        return now - 1
def f(a):
    try: {ask}
    except (Empty, Full): pass
    return int(SEEN[0] * 10 ** 6) % 1000
"""


def _clock(ask: str, setup: str = "from queue import *\n", base: str = "") -> str:
    return setup + _CLOCK.format(ask=ask, base=base)


FORGERS = {
    "the given command line": "def f(a):\n    argv.append('x')\n    return argv.count('x')",
    "the given command line, cut": (
        "def f(a):\n    argv[:] = argv + ['x']\n    return argv.count('x')"
    ),
    "a number in the given command line": (
        "def f(a):\n"
        "    n = argv[-1] if isinstance(argv[-1], int) else 1\n"
        "    argv.append(n + 1)\n"
        "    return n"
    ),
    "the given command line by a method": (
        "def f(a):\n    add = argv.append\n    add('x')\n    return argv.count('x')"
    ),
    "the given command line by a star": (
        "def f(a):\n    argv.insert(0, 'x')\n    return [*argv].count('x')"
    ),
    "an attribute of given stdin": (
        "def f(a):\n    n = hasattr(stdin, 'mark')\n    stdin.mark = 1\n    return 1 + n"
    ),
    "an attribute of given stdout": (
        "def f(a):\n    n = 1 + hasattr(stdout, 'mark')\n    stdout.mark = n\n    return n"
    ),
    "an attribute of given stderr": (
        "def f(a):\n    o = stderr\n    n = 1 + hasattr(o, 'mark')\n    o.mark = 1\n    return n"
    ),
    "an item of an attribute of given stdin": (
        "def f(a):\n"
        "    box = stdin.mark if hasattr(stdin, 'mark') else [0]\n"
        "    box[0] += 1\n"
        "    stdin.mark = box\n"
        "    return box[0]"
    ),
    "a closed given stdin": (
        "def f(a):\n"
        "    try: stdin.readable()\n"
        "    except ValueError: return 2\n"
        "    with stdin: return 1"
    ),
    "given stdout as a default": (
        "def f(a, o=stdout):\n    n = hasattr(o, 'mark')\n    o.mark = 1\n    return 1 + n"
    ),
    "given stdout in a class": (
        "class Solution:\n"
        "    out = stdout\n"
        "    def f(self, a):\n"
        "        n = hasattr(self.out, 'mark')\n"
        "        self.out.mark = 1\n"
        "        return 1 + n"
    ),
    "given stderr in a loop": (
        "def f(a):\n"
        "    n = hasattr(stderr, 'mark')\n"
        "    for stderr_ in [stderr]:\n"
        "        for stderr_.mark in [1]: pass\n"
        "    return 1 + n"
    ),
    "given stdout in a tuple": (
        "def f(a):\n"
        "    o = (stdin, stdout)[a[0] > 0]\n"
        "    n = hasattr(o, 'mark')\n"
        "    o.mark = 1\n"
        "    return 1 + n"
    ),
    "a given stream in a lambda": (
        "g = lambda: stderr\n"
        "def f(a):\n"
        "    n = hasattr(g(), 'mark')\n"
        "    g().mark = 1\n"
        "    return 1 + n"
    ),
    "given stdin reconfigured": (
        "def f(a):\n"
        "    n = stdout.line_buffering\n"
        "    stdout.reconfigure(line_buffering=not n)\n"
        "    return 1 + n"
    ),
    "typing's generator": _suspended("import typing\n", "typing.Generator"),
    "a generator with types": _suspended("", "Generator[int, int, int]"),
    "a generator of collections.abc": _suspended(
        "from collections.abc import Generator\n", "Generator"
    ),
    "a generator by a module's name": _suspended(
        "import collections.abc as abc\n", "abc.Generator"
    ),
    "a generator by another name": _suspended("B = Generator\n", "B"),
    "a coroutine": _suspended("from collections.abc import Coroutine as B\n", "B").replace(
        "def send",
        (
            "def __await__(self): pass\n"
            "    def __iter__(self): return self\n"
            "    def __next__(self): return 0\n"
            "    def send"
        ),
    ),
    "all of collections.abc": _suspended("from collections.abc import *\n", "Generator"),
    "a freed stream of bytes": _freed("from io import BytesIO\n", "Generator, BytesIO"),
    "a freed stream of text": _freed("import io\n", "Generator[int, int, int], io.StringIO"),
    "a clock of a queue": _clock("Queue().get(True, T())"),
    "a clock of a queue by a keyword": _clock("Queue().get(timeout=T())"),
    "a clock of a full queue": _clock("q = Queue(1); q.put(1); q.put(1, True, T())"),
    "a clock of a sorted queue": _clock("PriorityQueue().get(*[True, T()])"),
    "a clock of a stack": _clock("LifoQueue().get(**{'timeout': T()})"),
    "a clock by a number": _clock("Queue().get(1, T(3))", base="(float)"),
    "a clock by a method": _clock(
        "get = queue.Queue().get; get(1, T())", "import queue\nfrom queue import Empty, Full\n"
    ),
    "a clock of a queue of its own": _clock(
        "Q().get(1, T())", "from queue import Empty, Full, Queue\nclass Q(Queue): pass\n"
    ),
    "a clock as a text": (
        "from queue import Queue\n"
        "from collections import UserString\n"
        "SEEN = []\n"
        "class T(UserString):\n"
        "    def __init__(self, text): SEEN.append(text)\n"
        "    def __lt__(self, other): return False\n"
        "    data = ''\n"
        "def f(a):\n"
        "    try: Queue().get(True, T(''))\n"
        "    except TypeError: pass\n"
        "    return SEEN[-1]"
    ),
    "a clock by an operator of a base": (
        "from queue import Queue\n"
        "SEEN = []\n"
        "class B:\n"
        "    def __add__(self, now):\n"
        "        SEEN.append(now)\n"
        "        return self\n"
        "    __radd__ = __add__\n"
        "    def __lt__(self, other): return False\n"
        "class T(B): pass\n"
        "def f(a):\n"
        "    try: Queue().get(True, T())\n"
        "    except TypeError: pass\n"
        "    return SEEN[-1]"
    ),
    "entropy of a distribution": (
        "from statistics import NormalDist\n"
        "def f(a):\n"
        "    return NormalDist().samples(1, seed=float('nan'))[0]"
    ),
    "entropy of a given distribution": (
        "def f(a):\n"
        "    return NormalDist(0, 1).samples(1, seed=Decimal('NaN'))[0]\n"
        "from decimal import Decimal"
    ),
    "entropy of a distribution by a pattern": (
        "def f(a):\n"
        "    match NormalDist():\n"
        "        case NormalDist(samples=s): return s(1, seed=float('nan'))[0]"
    ),
    "entropy of a distribution of samples": (
        "import statistics as s\n"
        "def f(a):\n"
        "    return s.NormalDist.from_samples([1, 2]).samples(1, seed=float('nan'))[0]"
    ),
    "entropy of a smooth distribution": (
        "from statistics import kde_random\ndef f(a):\n    return kde_random([1.0, 2.0], 1.0)()"
    ),
}
"""Named by how they would know a place."""

_FORMATTING = (
    "HELD = [iter([n]) for n in range(9)]\n"
    "def f(a):\n"
    "    p, held, kind = {percent}, HELD[0], {kind}\n"
)
_FORMATTING += "    return [*((p + kind) % held)]\n"
_LETTERS = "(u.frombytes(array.array('B', [37, 0, 0, 0])), u)[1] for u in [array.array('u')]"
_PERCENTS = {
    "'s'": {
        "JSON": "json.loads('\"' + '\\\\' + 'u0025' + '\"')",
        "a decoder": "json.JSONDecoder().decode('\"' + '\\\\' + 'u0025' + '\"')",
        "a scanner": "json.JSONDecoder().raw_decode('\"' + '\\\\' + 'u0025' + '\"')[0]",
        "a pattern's template": "re.sub('a', '\\\\' + '045', 'a')",
        "a pattern's template, counted": "re.subn('a', '\\\\' + '045', 'a')[0]",
        "a match's template": "re.match('a', 'a').expand('\\\\' + '045')",
        "an array of letters": f"[{_LETTERS}][0].tounicode()",
        "an item of an array of letters": f"[{_LETTERS}][0][0]",
        "an escape": "'\\x25'",
        "its name": "'\\N{PERCENT SIGN}'",
        "a number": "chr(37)",
        "punctuation": "punctuation[4]",
    },
    "b'a'": {
        "a stream of a buffer": "BytesIO(array.array('B', [37])).read()",
        "an encoding": "'\u2525'.encode('utf-16-le')[:1]",
        "a join of buffers": "b''.join([array.array('B', [37])])",
        "a sum with a buffer": "b'' + array.array('B', [37])",
        "a view": "memoryview(array.array('B', [37])).cast('c')[0]",
    },
}
"""Expressions that make a percent sign, by the kind of format that is appended to it."""
PERCENTS = {
    name: _FORMATTING.format(percent=percent, kind=kind)
    for kind, percents in _PERCENTS.items()
    for name, percent in percents.items()
}
"""Functions that return an object's address by a percent sign that their source does not name,
by how it is made.
"""

"""Programs that gain by a second try: those that guess,
and those that know which test of its process one is.
"""

DISLIKED = {
    "a wrong answer": "print(-1)",
    "an exit": "raise SystemExit(1)",
    "an exception": "1 / 0",
    "an end without a word": "import os\nos._exit(0)",
    "a kill": "import os\nos.kill(os.getpid(), 9)",
    "memory": "x = bytearray(40 << 20)\nx[::4096] = x[::4096]\nprint(-1)",
}
"""What a program does if it dislikes its answer: each is a way to have been run for nothing."""

COIN = (
    "import random\n"
    "n = int(input())\n"
    "if random.Random().random() < 0.5:\n"
    "    print(n)\n"
    "    raise SystemExit\n"
)
"""Right half of the time; what follows is what it does otherwise."""

# Each defines `value`, which is to come out otherwise in the first test of a process than in the
# later ones. Programs that find what an earlier test left are in `stateful_programs`.
_SIZE = "import sys\ndef value():\n    s = {text}\n    size = sys.getsizeof(s)\n    try: {use}\n"
_SIZE += "    except Exception: pass\n"
_SIZE += "    return size\n"
_CLASS = "class A:\n    def __init__(self, n=0): self.n = n\n"
PLACES = {
    "the size of a name": _SIZE.format(text="list(dict(é=1))[0]", use="''.encode(s)"),
    "a size after a date": "from datetime import date\n"
    + _SIZE.format(text="'éé'", use="date.fromisoformat(s)"),
    "a size after a stream": "import io\n" + _SIZE.format(text="'éé'", use="io.StringIO('', s)"),
    "a size after bytes": _SIZE.format(text="'éé'", use="bytes('', s)"),
    "a size after a decoding": _SIZE.format(text="'éé'", use="b'\\xff'.decode('ascii', s)"),
    "the size of a default": (
        "import sys\n"
        "def value(s='éé'):\n"
        "    size = sys.getsizeof(s)\n"
        "    try: ''.encode(s)\n"
        "    except LookupError: pass\n"
        "    return size\n"
    ),
    "the hash of an instance": _CLASS + "def value(): return hash(A())\n",
    "the hash of a function": "def value(): return hash(lambda: 0)\n",
    "a hash by map": "def value(): return [*map(hash, [object()])][0]\n",
    "a hash by a method": _CLASS + "def value(): return A().__hash__()\n",
    "a hash by super": (
        "class A:\n"
        "    def __hash__(self): return super().__hash__()\n"
        "    def h(self): return self.__hash__()\n"
        "def value(): return A().h()\n"
    ),
    "a representation in a text": _CLASS + "def value():\n    a = A()\n    return f'{a!r}'\n",
    "the table of a mapped deep copy": (
        "import copy\n"
        "def value():\n"
        "    memo = {}\n"
        "    [*map(copy.deepcopy, [[[]]], [memo])]\n"
        "    return [*memo][0]\n"
    ),
    "an attribute of a library function": (
        "from functools import reduce\n"
        "import heapq\n"
        "def value():\n"
        "    f = heapq.merge\n"
        "    known = hasattr(f, 'mark')\n"
        "    f.mark = 1\n"
        "    return known\n"
    ),
    "an attribute of a given node": (
        "def value():\n"
        "    try: c = ListNode\n"
        "    except NameError: return 0\n"
        "    known = hasattr(c, 'mark')\n"
        "    c.mark = 1\n"
        "    return known\n"
    ),
    "a seed that is left": (
        "import random\ndef value():\n    x = random.random()\n    random.seed(3)\n    return x\n"
    ),
    "digits of integers": (
        "import sys\n"
        "def value():\n"
        "    try: n = len(str(10 ** 5000))\n"
        "    except ValueError: n = 0\n"
        "    sys.set_int_max_str_digits(0)\n"
        "    return n\n"
    ),
    "what a regular expression knows": (
        "import re\ndef value(): return re.compile('a+') is re.compile('a+')\n"
    ),
    "a kept integer": "def value():\n    a, b = int('257'), int('257')\n    return a is b\n",
    "what is in the mail": (
        "import queue\n"
        "q = queue.Queue()\n"
        "def value():\n"
        "    n = q.qsize()\n"
        "    q.put(1)\n"
        "    return n\n"
    ),
}
_ORDER = "def value():\n    o = {order}\n    return sum(a > b for a, b in zip(o, o[1:])) > 30\n"
_TEXTS = "k = [iter([i]) for i in range(40)]\n" + _ORDER.format(
    order="sorted(range(40), key=lambda i: '%s' % k[i])"
)
ADDRESSES = [
    _ORDER.format(order="[e.args[0] for e in {Exception(i) for i in range(40)}]"),
    _TEXTS,
    _CLASS + "def value(): return str([a.n for a in {A(n) for n in range(40)}])\n",
    _CLASS + "def value(): return str([a.n for a in frozenset(map(A, range(40)))])\n",
    _CLASS + "def value():\n    s = set(map(A, range(40)))\n    return s.pop().n\n",
    "def value():\n"
    + _CLASS.replace("\n", "\n    ").join(("    ", ""))
    + "return [a.n for a in set(map(A, range(40)))]\n",
]
"""What shows an address and is screened by nothing, but found by the probe: objects in a set,
and texts of them.
"""

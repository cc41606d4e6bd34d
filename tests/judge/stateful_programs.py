"""Programs that try to carry something from one test to the next:
each prints `left` where it found something.

Alone they all print `new` in every test. In company those of `SCREENED` may find what an earlier
test left, and are then judged alone; most of those of `RESET` find nothing even there.
"""

SCREENED = {
    "an annotation": 'def f(x: exec(\'import builtins; n = builtins.__dict__.setdefault("n", []); '
    "n.append(1)')): pass\n"
    "print('left' if len(n) > 1 else 'new')",
    "a return annotation": "def f() -> __import__('os'): pass\nprint('new')",
    "os.write as a value": (
        "import os\nw = os.write\ntry: w(4, b'')\nexcept OSError: pass\nprint('new')"
    ),
    "os.read by another name": "from os import read as r\nlist(map(r, [], []))\nprint('new')",
    "an imported name hidden by a function": (
        "def f():\n"
        "    x = 1\n"
        "    def g():\n"
        "        import random as x\n"
        "        y = x\n"
        "        return y\n"
        "    return g()\n"
        "m = f()\n"
        "print('left' if m._os.sys.modules.get('k') else 'new')\n"
        "m._os.sys.modules['k'] = m"
    ),
    "a global hidden by a function": (
        "import random as x\n"
        "def f():\n"
        "    x = 1\n"
        "    def g():\n"
        "        global x\n"
        "        return x\n"
        "    return g()\n"
        "m = f()\n"
        "print('left' if m._os.sys.modules.get('k') else 'new')\n"
        "m._os.sys.modules['k'] = m"
    ),
    "type with three arguments": (
        "x = type('X', (), {'__d' + 'el__': lambda s: print('left')})()\nx.x = x\nprint('new')"
    ),
    "type of a type": (
        "t = type(int)\n"
        "x = t('X', (), {'__d' + 'el__': lambda s: print('left')})()\n"
        "x.x = x\n"
        "print('new')"
    ),
    "a metaclass by keywords": "class X(**{}): pass\nprint('new')",
    "a register of overloads": (
        "import typing\n"
        "@typing.overload\n"
        "def f(a): pass\n"
        "print('left' if len(typing.get_overloads(f)) > 1 else 'new')"
    ),
    "members of any module": (
        "from enum import IntEnum\n"
        "class E(IntEnum): pass\n"
        "try: left\n"
        "except NameError: print('new')\n"
        "else: print('left')\n"
        "E._convert_('left', 'builtins', lambda name: name == 'len')"
    ),
    "an attribute by a format": "import random\n"
    "print('left' if '\"left\"' in '{0.__self__.__dict__}'.format(random.seed) "
    "else 'new')",
    "a format that is made": "text = '{0.' + '_' + '_class__}'\nprint(text.format(1) and 'new')",
    "processor time": "import time\nprint('left' if time.process_time() > 9 else 'new')",
    "the size of a constant": (
        "import sys\n"
        "s = '\u00e9\u00e9\u00e9'\n"
        "before = sys.getsizeof(s)\n"
        "try: ''.encode(s)\n"
        "except LookupError: pass\n"
        "print('new' if before < 80 else 'left')"
    ),
    "a clock": "import time\nprint('new' if time.time() else 'left')",
    "the date": "from datetime import datetime\nprint('new' if datetime.now().year else 'left')",
    "today": "import datetime\nd = datetime.date\nprint('new' if d.today() else 'left')",
    "entropy": "import random\nprint('new' if random.Random().random() < 2 else 'left')",
    "entropy by None": (
        "import random\nx = None\nprint('new' if random.Random(x).random() < 2 else 'left')"
    ),
    "entropy for all": "from random import *\nseed()\nprint('new' if random() < 2 else 'left')",
    "entropy as a value": "import random\nfor f in (random.seed,): f()\nprint('new')",
    "entropy of a class": (
        "import random\nclass R(random.Random): pass\nprint('new' if R().random() < 2 else 'left')"
    ),
    "entropy of the system": (
        "from random import SystemRandom as R\nprint('new' if R().random() < 2 else 'left')"
    ),
    "the hash of an object": "print('new' if hash(object()) else 'left')",
    "the hash of nothing": "f = hash\nprint('new' if f(None) else 'left')",
    "an object by its text": (
        "class A: pass\nprint('new' if str(A())[:9] == '<__main__' else 'left')"
    ),
    "a function by its text": (
        "def f(): pass\nprint('new' if str(f)[:9] == '<function' else 'left')"
    ),
    "a representation": "class A: pass\na = A()\nprint('new' if f'{a!r}' else 'left')",
    "super's representation": (
        "class A:\n    def __str__(self): return super().__str__()\nprint('new' if A() else 'left')"
    ),
    "super's hash": (
        "class A:\n"
        "    def __eq__(self, other): return True\n"
        "    def __hash__(self): return super().__hash__()\n"
        "print('new' if {A()} else 'left')"
    ),
    "a module by a class": (
        "class Q:\n"
        "    import random as r\n"
        "x = Q.r._os.environ\n"
        "print('left' if 'zz' in x else 'new')\n"
        "x['zz'] = '1'"
    ),
    "what a class finds outside": (
        "import random\n"
        "def f():\n"
        "    random = 1\n"
        "    class A:\n"
        "        r = random\n"
        "        for random in (): pass\n"
        "    return A.r\n"
        "f()\n"
        "print('new')"
    ),
    "what a class matches outside": (
        "import random\n"
        "def f():\n"
        "    random = 1\n"
        "    class A:\n"
        "        r = random\n"
        "        match 2:\n"
        "            case 1 as random: pass\n"
        "    return A.r\n"
        "f()\n"
        "print('new')"
    ),
    "a builtin under an import of a function": (
        "def g():\n    from math import gcd as type\nprint('new' if type(1) else 'left')"
    ),
    "two meanings one after the other": (
        "from copy import deepcopy as d\nD = d\nfrom math import gcd as d\nprint('new')"
    ),
    "a handler that takes a meaning away": (
        "from math import gcd as type\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError as type: pass\n"
        "print('new' if type(1) else 'left')"
    ),
    "a value before an import": (
        "x: (t := type) = 1\nfrom math import gcd as type\nprint('new' if t(1) else 'left')"
    ),
    "a text that is run": (
        "from typing import TypedDict\n"
        "T = TypedDict('T', {'a': int})\n"
        "print('new' if T else 'left')"
    ),
    "a class by its alias": (
        "import typing\nprint('new' if typing.get_origin(typing.Type)(1) else 'left')"
    ),
    "a class by its order": "print('new' if int.mro()[1]() else 'left')",
    "a seed by another name": "import random\nr = random.Random(5)\ns = r.seed\ns()\nprint('new')",
    "a seed of nothing": "import random\nr = random.Random(5)\nr.seed(None)\nprint('new')",
    "a field's name that is run": (
        "from dataclasses import dataclass, field\n"
        "f = field(default=1)\n"
        "@dataclass\n"
        "class A: x: int = f\n"
        "f.name = 'y'\n"
        "print('new')"
    ),
    "a metaclass": "from typing import Type\nclass M(Type): pass\nprint('new' if M else 'left')",
    "the name of a kept property": (
        "from functools import cached_property\n"
        "c = cached_property(len)\n"
        "c.attrname = 'x'\n"
        "print('new')"
    ),
    "slots that are made": "class A:\n    __slots__ = iter('x')\nprint('new')",
    "a copy of what is made": (
        "import copy\n"
        "class A:\n"
        "    def __new__(cls): return 1\n"
        "print('new' if copy.copy(A()) else 'left')"
    ),
    "a stream's own writing": "import sys\nsys.stdout.write = [].append\nprint('new')",
    "format by a pattern": "match '{0}':\n    case str(format=f): print('new' if f(1) else 'left')",
    "format in wide letters by a pattern": "match '{0}':\n"
    "    case \uff53tr(\uff46ormat=f): print('new' if f(1) else 'left')",
    "an attribute by its place in a pattern": (
        "from dataclasses import dataclass\n"
        "@dataclass\n"
        "class P:\n"
        "    x: int\n"
        "match P(1):\n"
        "    case P(x): print('new')"
    ),
    "a lock of a queue": (
        "import queue, copy\n"
        "c = queue.Queue().not_empty\n"
        "print('left' if hasattr(c, '__slotnames__') else 'new')\n"
        "copy.copy(c)"
    ),
    "a mark on a class of typing": (
        "from typing import Protocol, runtime_checkable\nruntime_checkable(Protocol)\nprint('new')"
    ),
    "a wrapper in wide letters": (
        "import textwrap\nprint('new' if textwrap.Text\uff37rapper else 'left')"
    ),
    "entropy of a generator's own": "import random\nr = random.Random(5)\nr.seed()\nprint('new')",
    "entropy by a class": (
        "class Q:\n    if 1:\n        from random import seed\nQ.seed()\nprint('new')"
    ),
    "a builtin by an operator": (
        "class B:\n    def __radd__(self, o): print('new' if o([].append) else 'left')\nhash += B()"
    ),
    "the order of functions": "def f(): pass\ndef g(): pass\nprint('new' if {f, g} else 'left')",
    "what deepcopy remembers": (
        "import copy\nmemo = {}\ncopy.deepcopy([[]], memo)\nprint('new' if memo else 'left')"
    ),
    "where an array is": (
        "from array import array\nprint('new' if array('i', [1]).buffer_info() else 'left')"
    ),
    "when stdin was made": "import os\nprint('new' if os.fstat(0).st_mtime else 'left')",
    "strings that are kept": (
        "import sys\ns = ''.join(['ab', 'cd'])\nprint('new' if sys.intern(s) is s else 'left')"
    ),
    "strings that names keep": (
        "from collections import namedtuple\n"
        "s = ''.join(['ab', 'cd'])\n"
        "print('new' if namedtuple('T', [s])._fields[0] is s else 'left')"
    ),
    "a full-width name": "import sys\nsys.stdout.\uff44etach()\nprint('new')",
    "an import as a method": "class A:\n    from math import gcd as __del__\nprint('new')",
    "addresses": "a, b = object(), object()\nprint('new' if id(a) != id(b) else 'left')",
    "flags of re": (
        "import re\nf = re.RegexFlag\nx = f(3)\nprint('left' if x in (0,) else 'new')\nx.left = 1"
    ),
    "a package as a value": "import sortedcontainers\ns = sortedcontainers\nprint('new')",
    "the inside of a package": "from sortedcontainers import sortedlist\nprint('new')",
    "a part of all of sys": (
        "from sys import *\nprint('left' if 'zz' in modules else 'new')\nmodules['zz'] = 1"
    ),
    "a name of all of sys": (
        "from sys import *\npath.append(1)\nprint('new' if path.count(1) == 1 else 'left')"
    ),
    "all of a package": "from sortedcontainers import *\nprint('new')",
    "an end of a generator": (
        "def g():\n    try: yield 1\n    except GeneratorExit: print('new')\nnext(g())"
    ),
    "an end of a stream": (
        "import io\nclass S(io.StringIO):\n    def close(self): print('new')\nS()"
    ),
    "a match of an attribute": "match 1:\n    case int(__class__=c): print('new')",
}
"""Each does, or comes close to doing, what would tell tests apart."""

_CARRY = "print('left' if {found} else 'new')\n{leave}\n"


def _carrying(setup: str, found: str, leave: str) -> str:
    return f"{setup}\n{_CARRY.format(found=found, leave=leave)}"


RESET = {
    "a warning": (
        "import json, re, sys\n"
        "try: json.dumps(b'[[a]', default=re.compile)\n"
        "except ValueError: pass\n"
        "print('new' if sys.stderr.tell() else 'left')"
    ),
    "the name of a thread": (
        "import threading\nprint('new' if threading.Thread().name == 'Thread-1' else 'left')"
    ),
    "a key of a table": (
        "import string, textwrap\n"
        "t = textwrap.TextWrapper.unicode_whitespace_trans\n"
        "print('left' if 99 in t else 'new')\n"
        "if 99 not in t:\n"
        "    t.pop([*t][-1])\n"
        "    t[99] = 32"
    ),
    "stderr as a box": (
        "import sys, io\n"
        "print('left' if isinstance(sys.stderr, io.StringIO) else 'new')\n"
        "sys.stderr = io.StringIO()"
    ),
    "an attribute of stderr": _carrying("import sys\ne = sys.stderr", "hasattr(e, 'x')", "e.x = 1"),
    "the place in stderr": (
        "import sys\nprint('left' if sys.stderr.tell() else 'new')\nsys.stderr.write('x\\n')"
    ),
    "an attribute of stdin": _carrying("import sys\ne = sys.stdin", "hasattr(e, 'x')", "e.x = 1"),
    "a carriage return": "print('new' if repr(input()).endswith(chr(92) + \"r'\") else 'left')",
    "the name of stdin": "import sys\n"
    "print('new' if sys.stdin.name == '<stdin>' and sys.stdin.mode == 'r' else 'left')",
    "a class by another name": _carrying(
        "from collections import Counter\nc = Counter",
        "hasattr(c, 'x')",
        "c.x = 1",
    ),
    "a method of a class": (
        "from collections import Counter\n"
        "c = Counter\n"
        "class Same:\n"
        "    def __call__(self, *a): return 'left'\n"
        "    def __eq__(self, other): return True\n"
        "    def __hash__(self): return 0\n"
        "r = c.most_common\n"
        "print('left' if isinstance(r, Same) else 'new')\n"
        "c.most_common = Same()"
    ),
    "a function inside a property": _carrying(
        "from fractions import Fraction\nf = Fraction.numerator.fget",
        "hasattr(f, 'x')",
        "f.x = 1",
    ),
    "an attribute of exit": _carrying("e = exit", "hasattr(e, 'x')", "e.x = 1"),
    "the class of exit": _carrying(
        "e = exit",
        "hasattr(e, 'x')",
        "e.eof = 'x'\nif e.eof == 'y': e.x = 1",
    ),
    "a typing alias": (
        "from typing import List\n"
        "a = List[int]\n"
        "print('left' if a._name == 'x' else 'new')\n"
        "a._name = 'x'"
    ),
    "a flag of re": _carrying("import re\nf = re.I", "hasattr(f, 'x')", "f.x = 1"),
    "a flag of a template": _carrying(
        "from string import Template\nf = Template.flags",
        "hasattr(f, 'x')",
        "f.x = 1",
    ),
    "what dataclasses miss": _carrying(
        "from dataclasses import field\nm = field().default",
        "hasattr(m, 'x')",
        "m.x = 1",
    ),
    "a class made a dataclass": (
        "from dataclasses import dataclass\n"
        "from collections import Counter\n"
        "print('left' if repr(Counter()) == 'Counter(x=1)' else 'new')\n"
        "class X(Counter):\n"
        "    x: int = 1\n"
        "dataclass(X)\n"
        "dataclass(Counter)"
    ),
    "a pattern of re": (
        "import re\n"
        "seen = []\n"
        "class S(str):\n"
        "    def __hash__(self): return 7\n"
        "    def __eq__(self, other):\n"
        "        seen.append(1)\n"
        "        return True\n"
        "re.compile(S('a'))\n"
        "print('new')"
    ),
    "a class of a package": _carrying(
        "from sortedcontainers import SortedList\nc = SortedList",
        "hasattr(c, 'x')",
        "c.x = 1",
    ),
    "a number of a package": _carrying(
        "from sortedcontainers import SortedList\nc = SortedList",
        "c.DEFAULT_LOAD_FACTOR == 7",
        "c.DEFAULT_LOAD_FACTOR = 7",
    ),
    "random numbers": (
        "import random\n"
        "print('new' if random.random() == 0.8444218515250481 else 'left')\n"
        "random.seed(5)"
    ),
    "decimal precision": (
        "from decimal import getcontext\n"
        "print('new' if getcontext().prec == 28 else 'left')\n"
        "getcontext().prec = 5"
    ),
    "limits": (
        "import sys\n"
        "print('new' if sys.getrecursionlimit() == 1000 else 'left')\n"
        "sys.setrecursionlimit(2000)"
    ),
    "globals": (
        "try: counter\n"
        "except NameError: counter = 0\n"
        "counter += 1\n"
        "print('new' if counter == 1 else 'left')"
    ),
    "a default argument": (
        "def f(seen=[]):\n"
        "    seen.append(1)\n"
        "    return len(seen)\n"
        "print('new' if f() == 1 else 'left')"
    ),
    "a cache of its own": (
        "from functools import lru_cache\n"
        "@lru_cache(None)\n"
        "def f(n): return [n]\n"
        "print('left' if f.cache_info().currsize else 'new')\n"
        "f(1)"
    ),
    "input that it left": "import sys\nprint('left' if 'zzz' in sys.stdin.readline() else 'new')",
    "a generator that it left": (
        "class Guard:\n"
        "    def __enter__(self): return self\n"
        "    def __exit__(self, *a): print('left')\n"
        "def g():\n"
        "    with Guard(): yield g_self\n"
        "g_self = [0]\n"
        "it = g()\n"
        "next(it)\n"
        "g_self[0] = it\n"
        "print('new')"
    ),
    "stdout replaced": (
        "import sys, io\n"
        "print('new')\n"
        "sys.stdout.flush()\n"
        "sys.stdout = io.StringIO()\n"
        "print('left')"
    ),
    "stdout closed": "import sys\nprint('new')\nsys.stdout.flush()\nsys.stdout.close()",
}
"""What a fresh process is like, and what a shared one must be like as well."""

REMEMBERING = {
    "a default argument": (
        "class Solution:\n"
        "    def f(self, a, seen=[]):\n"
        "        seen.append(1)\n"
        "        return len(seen)"
    ),
    "a default by keyword": "def f(a, *, seen=[0]):\n    seen[0] += 1\n    return seen[0]",
    "a list of a class": (
        "class Solution:\n"
        "    seen = []\n"
        "    def f(self, a):\n"
        "        self.seen.append(1)\n"
        "        return len(self.seen)"
    ),
    "a list of a module": "seen = []\ndef f(a):\n    seen.append(1)\n    return len(seen)",
    "a number of a module": "n = 0\ndef f(a):\n    global n\n    n += 1\n    return n",
    "an attribute of a class by a method of classes": (
        "class A:\n"
        "    n = 0\n"
        "    @classmethod\n"
        "    def g(cls):\n"
        "        cls.n += 1\n"
        "        return cls.n\n"
        "def f(a):\n"
        "    return A.g()"
    ),
    "a cache of its own": (
        "@lru_cache(None)\ndef g(n): return [0]\ndef f(a):\n    g(0)[0] += 1\n    return g(0)[0]"
    ),
    "a generator": (
        "def count():\n"
        "    n = 1\n"
        "    while True:\n"
        "        yield n\n"
        "        n += 1\n"
        "it = count()\n"
        "def f(a): return next(it)"
    ),
    "a closure": (
        "def make():\n"
        "    n = 0\n"
        "    def g(a):\n"
        "        nonlocal n\n"
        "        n += 1\n"
        "        return n\n"
        "    return g\n"
        "f = make()"
    ),
    "a lambda's list": "f = lambda a, seen=[]: seen.append(1) or len(seen)",
    "a deque": "q = deque([1])\ndef f(a):\n    q.append(q[-1] + 1)\n    return q[-2]",
    "a list in a tuple": "T = (1, [0])\ndef f(a):\n    T[1][0] += 1\n    return T[1][0]",
    "a name bound in a loop": (
        "for seen in [[]]: pass\ndef f(a):\n    seen.append(1)\n    return len(seen)"
    ),
    "a condition": "if 1:\n    seen = []\ndef f(a):\n    seen.append(1)\n    return len(seen)",
    "a list in an annotation": "def f(a: (seen := [])):\n    seen.append(1)\n    return len(seen)",
}
"""Functions that return how often a module that is made once saw them called;
made anew for each test, always 1.
"""

REACHING = {
    "a class that a library completes": (
        "from functools import total_ordering\n"
        "class A:\n"
        "    def __lt__(self, other): return True\n"
        "def f(a):\n"
        "    try: n = 1 + (A() >= A())\n"
        "    except TypeError: n = 1\n"
        "    total_ordering(A)\n"
        "    return n"
    ),
    "what copying leaves": (
        "class A: pass\n"
        "def f(a):\n"
        "    n = 1 + hasattr(A(), '__slotnames__')\n"
        "    copy.copy(A())\n"
        "    return n"
    ),
    "the command line": "def f(a):\n    sys.argv.append('q')\n    return len(sys.argv) - 1",
    "arguments on stdin": (
        "def f(a):\n    try: input()\n    except EOFError: return 1\n    return 2"
    ),
    "all of stdin": "def f(a): return 2 if sys.stdin.read() else 1",
    "cycles that pile up": (
        "def f(a):\n"
        "    try: c = [bytes(1 << 28)]\n"
        "    except MemoryError: return 2\n"
        "    c.append(c)\n"
        "    return 1"
    ),
}
"""The same, of modules that bind functions, classes and constants alone."""

FORGETTING = {
    "a method": (
        "class Solution:\n"
        "    def f(self, a: List[int]) -> int:\n"
        "        seen = []\n"
        "        seen.append(1)\n"
        "        return len(seen)"
    ),
    "objects with attributes": (
        '"""Counts."""\n'
        "from typing import Optional\n"
        "import math\n"
        "MOD, LOW = 10**9 + 7, -1\n"
        "class Node:\n"
        "    size: int = 0\n"
        "    def __init__(self, value=None, *, next: 'Optional[Node]' = None):\n"
        "        self.value, self.next = value, next\n"
        "        self.size += 1\n"
        "class Leaf(Node):\n"
        "    pass\n"
        "def helper(a): return math.gcd(Leaf(a).size, MOD)\n"
        "def f(a): return helper(a)"
    ),
    "a cache in a call": (
        "def f(a):\n    @cache\n    def g(n): return [0]\n    g(0)[0] += 1\n    return g(0)[0]"
    ),
    "counters": (
        "class Solution:\n"
        "    def f(self, a):\n"
        "        self.seen = Counter([1])\n"
        "        return self.seen[1]"
    ),
}
"""The same, where no call can change what another sees."""

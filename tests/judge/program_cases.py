"""Answers to tests that are Python programs, with the verdict that the published harness gives.

Each case is an answer `f`, the test, and whether the answer is right.
"""

from typing import NamedTuple


class Case(NamedTuple):
    """An answer, a test of it, and whether it is accepted."""

    answer: str
    test: str
    is_right: bool


RAISING = "def f(x): raise TypeError('no')"
EXPECTS_ERROR = "try:\n    candidate(1)\nexcept TypeError:\n    pass\nelse:\n    assert False\n"
CATCHES_OUTPUT = (
    "import io, contextlib\n"
    "caught = io.StringIO()\n"
    "with contextlib.redirect_stdout(caught):\n"
    "    candidate(4)\n"
    "assert caught.getvalue() == '8\\n'\n"
)
STACK = (
    "class Stack:\n"
    "    def __init__(self, items): self.items = list(items)\n"
    "    def push(self, item): self.items.append(item)\n"
    "    def __len__(self): return len(self.items)\n"
    "    def __iter__(self): return iter(self.items)\n"
    "    def __getitem__(self, place): return self.items[place]\n"
    "    def __str__(self): return f'Stack{self.items}'\n"
    "def f(items): return Stack(items)\n"
)
POINT = "class Point:\n    def __init__(self, x): self.x = x\n"

CASES = {
    # What the answer does to its arguments.
    "sorts where it may not": Case(
        "def f(x): x.sort(); return x",
        "l = [2, 1]\nassert candidate(l) == [1, 2]\nassert l == [2, 1]",
        False,
    ),
    "sorts a copy": Case(
        "def f(x): return sorted(x)",
        "l = [2, 1]\nassert candidate(l) == [1, 2]\nassert l == [2, 1]",
        True,
    ),
    "changes a dict where it may not": Case(
        "def f(d): return d.pop('a')", "d = {'a': 1}\ncandidate(d)\nassert d == {'a': 1}", False
    ),
    "works in place": Case(
        "def f(x): x.sort()", "l = [2, 1]\ncandidate(l)\nassert l == [1, 2]", True
    ),
    "works in place on a set": Case(
        "def f(s): s.discard(1)", "s = {1, 2}\nassert candidate(s) is None\nassert s == {2}", True
    ),
    "works in place on a bytearray": Case(
        "def f(b): b[0] = 66", "b = bytearray(b'A')\ncandidate(b)\nassert b == b'B'", True
    ),
    "works in place on a deque": Case(
        "def f(d): d.rotate(1)",
        "from collections import deque\nd = deque([1, 2, 3], maxlen=5)\ncandidate(d)\n"
        "assert list(d) == [3, 1, 2] and d.maxlen == 5",
        True,
    ),
    "works inside what it got": Case(
        "def f(d): d['k'].append(1)",
        "v = []\nd = {'k': v}\ncandidate(d)\nassert v == [1] and d['k'] is v",
        True,
    ),
    "works in place on a named argument": Case(
        "def f(*, rows): rows[0][0] = 5",
        "row = [1]\ncandidate(rows=[row, row])\nassert row == [5]",
        True,
    ),
    "returns its argument": Case(
        "def f(x): return x", "l = [2, 1]\nassert candidate(l) is l", True
    ),
    "returns its argument where it may not": Case(
        "def f(x): return x", "l = [2, 1]\nassert candidate(l) is not l", False
    ),
    "returns a copy where it may": Case(
        "def f(x): return x[:]", "l = [2, 1]\nassert candidate(l) is not l", True
    ),
    "returns a shallow copy": Case(
        "import copy\ndef f(x): return copy.copy(x)",
        "l = [[1]]\nr = candidate(l)\nassert r is not l and r[0] is l[0]",
        True,
    ),
    "returns a shallow copy for a deep one": Case(
        "import copy\ndef f(x): return copy.copy(x)",
        "l = [[1]]\nr = candidate(l)\nr[0].append(2)\nassert l == [[1]]",
        False,
    ),
    "aliases": Case(
        "def f(a, b): a.append(b); return [a, a]",
        "x, y = [1], [2]\nr = candidate(x, y)\n"
        "assert r[0] is x and r[1] is x and x == [1, [2]] and x[1] is y",
        True,
    ),
    "rows of one list": Case(
        "def f(n): return [[0] * n] * n",
        "r = candidate(2)\nr[0][0] = 1\nassert r == [[1, 0], [0, 0]]",
        False,
    ),
    "an argument that holds itself": Case(
        "def f(x): return x[0] is x", "l = []\nl.append(l)\nassert candidate(l) is True", True
    ),
    "makes its argument hold itself": Case(
        "def f(x): x.append(x)", "l = []\ncandidate(l)\nassert l[0] is l", True
    ),
    "remembers its argument": Case(
        "kept = []\ndef f(x): kept.append(x); kept[0].append(9)",
        "l = [1]\ncandidate(l)\ncandidate([2])\nassert l == [1, 9, 9]",
        True,
    ),
    "a default that is kept": Case(
        "def f(x, seen=[]): seen.append(x); return seen",
        "a = candidate(1)\nb = candidate(2)\nassert a == [1] and b == [2]",
        False,
    ),
    "a cache that the test changes": Case(
        "import functools\n@functools.cache\ndef f(n): return list(range(n))",
        "candidate(2).append(5)\nassert candidate(2) == [0, 1]",
        False,
    ),
    # Exceptions.
    "raises what it must": Case(RAISING, EXPECTS_ERROR, True),
    "does not raise what it must": Case("def f(x): return x", EXPECTS_ERROR, False),
    "raises another error": Case("def f(x): raise ValueError", EXPECTS_ERROR, False),
    "raises a subclass": Case(
        "class Own(TypeError): pass\ndef f(x): raise Own", EXPECTS_ERROR, True
    ),
    "the text of an error": Case(
        "def f(x): raise ValueError('bad', x)",
        "try:\n    candidate(3)\nexcept ValueError as e:\n    assert e.args == ('bad', 3)\n"
        "    assert str(e) == \"('bad', 3)\"\nelse:\n    raise AssertionError",
        True,
    ),
    "the name of an own error": Case(
        "class Own(Exception):\n    def __str__(self): return 'mine'\ndef f(x): raise Own(x)",
        "try:\n    candidate(3)\nexcept Exception as e:\n"
        "    assert type(e).__name__ == 'Own' and str(e) == 'mine'\nelse:\n    assert False",
        True,
    ),
    "pytest.raises": Case(
        "def f(x): return {}[x]",
        "import pytest\nwith pytest.raises(KeyError, match='7'):\n    candidate(7)",
        True,
    ),
    "pytest.raises without an error": Case(
        "def f(x): return 1",
        "import pytest\nwith pytest.raises(KeyError):\n    candidate(7)",
        False,
    ),
    "assertRaises": Case(
        "def f(x): return 1 / x",
        "import unittest\ncase = unittest.TestCase()\n"
        "with case.assertRaises(ZeroDivisionError):\n    candidate(0)\n"
        "case.assertRaises(TypeError, candidate, 'a')",
        True,
    ),
    "an error of a library": Case(
        "import json\ndef f(x): return json.loads(x)",
        "import json\ntry:\n    candidate('{')\nexcept json.JSONDecodeError as e:\n"
        "    assert e.pos == 1\nelse:\n    assert False",
        True,
    ),
    "exits": Case("import sys\ndef f(x): sys.exit(0)", "assert candidate(1) == 5", False),
    "exits where it must": Case(
        "import sys\ndef f(x): sys.exit(2)",
        "try:\n    candidate(1)\nexcept SystemExit as e:\n    assert e.code == 2\n"
        "else:\n    assert False",
        True,
    ),
    "an assertion of its own": Case("def f(x): assert x > 1", "candidate(1)", False),
    # Output.
    "prints": Case("def f(x): print(x * 2)", CATCHES_OUTPUT, True),
    "prints something else": Case("def f(x): print(x * 3)", CATCHES_OUTPUT, False),
    "returns in place of printing": Case("def f(x): return x * 2", CATCHES_OUTPUT, False),
    "writes to its descriptor": Case(
        "import os\ndef f(x): os.write(1, b'8\\n')", CATCHES_OUTPUT, True
    ),
    "prints into a stream of the test": Case(
        "def f(x): print('a'); print('b')",
        "import io, sys\nold = sys.stdout\nsys.stdout = s = io.StringIO()\ncandidate(1)\n"
        "sys.stdout = old\nassert s.getvalue().split() == ['a', 'b']",
        True,
    ),
    "reads what the test gives": Case(
        "def f(): return int(input()) + int(input())",
        "import io, sys\nsys.stdin = io.StringIO('3\\n4\\n')\nassert candidate() == 7",
        True,
    ),
    # What is no data.
    "returns a function": Case(
        "def f(n): return lambda x: x + n", "assert candidate(3)(4) == 7", True
    ),
    "returns a wrong function": Case(
        "def f(n): return lambda x: x - n", "assert candidate(3)(4) == 7", False
    ),
    "a function with a state": Case(
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n        return n\n"
        "    return g",
        "g = candidate()\ng()\nassert g() == 2",
        True,
    ),
    "returns an object": Case(
        STACK,
        "s = candidate([1, 2])\ns.push(3)\nassert s.items == [1, 2, 3] and len(s) == 3\n"
        "assert list(s) == [1, 2, 3] and s[0] == 1 and str(s) == 'Stack[1, 2, 3]'\n"
        "assert type(s).__name__ == 'Stack'",
        True,
    ),
    "a wrong object": Case(STACK, "s = candidate([1])\ns.push(3)\nassert s.items == [1]", False),
    "changes an object of the answer": Case(
        STACK, "s = candidate([1])\ns.items = [5]\nassert len(s) == 1 and s[0] == 5", True
    ),
    "a list inside an object": Case(
        STACK, "s = candidate([])\ns.items.append(4)\ns.push(5)\nassert list(s) == [4, 5]", True
    ),
    "a generator": Case(
        "def f(n):\n    for i in range(n): yield i",
        "import types\ng = candidate(3)\nassert isinstance(g, types.GeneratorType)\n"
        "assert next(g) == 0 and list(g) == [1, 2]",
        True,
    ),
    "an endless generator": Case(
        "import itertools\ndef f(): return itertools.count(5)",
        "c = candidate()\nassert [next(c) for _ in range(3)] == [5, 6, 7]",
        True,
    ),
    "a list for a generator": Case(
        "def f(n): return [0, 1, 2]", "assert next(candidate(3)) == 0", False
    ),
    "a map": Case(
        "def f(l): return map(str, l)",
        "m = candidate([1, 2])\nassert isinstance(m, map) and list(m) == ['1', '2']",
        True,
    ),
    "a match": Case(
        "import re\ndef f(s): return re.match(r'(\\d+)', s)",
        "import re\nm = candidate('12a')\nassert isinstance(m, re.Match) and m.group(1) == '12'",
        True,
    ),
    "a class": Case(
        "def f():\n    class A:\n        def go(self): return 3\n    return A",
        "A = candidate()\nassert A().go() == 3 and A.__name__ == 'A'",
        True,
    ),
    "a coroutine": Case(
        "async def f(x): return x + 1",
        "import asyncio\nassert asyncio.run(candidate(2)) == 3",
        True,
    ),
    "a context": Case(
        "import contextlib\n@contextlib.contextmanager\ndef f(l):\n"
        "    l.append(1)\n    yield 5\n    l.append(2)",
        "l = []\nwith candidate(l) as value:\n    assert value == 5 and l == [1]\n"
        "assert l == [1, 2]",
        True,
    ),
    # What the test gives that is no data.
    "a function of the test": Case(
        "def f(l, key): return sorted(l, key=key)",
        "assert candidate([1, 2, 3], lambda x: -x) == [3, 2, 1]",
        True,
    ),
    "a function that the test counts": Case(
        "def f(g): return g(1) + g(2)",
        "calls = []\ndef g(x):\n    calls.append(x)\n    return x\n"
        "assert candidate(g) == 3 and calls == [1, 2]",
        True,
    ),
    "a function of a library": Case(
        "def f(g, a): return g(a, a)",
        "import operator\nassert candidate(operator.add, 2) == 4",
        True,
    ),
    "a function of the test that raises": Case(
        "def f(g):\n    try: return g()\n    except KeyError: return 'key'",
        "def g(): raise KeyError(1)\nassert candidate(g) == 'key'",
        True,
    ),
    "decorates a function of the test": Case(
        "def f(g): return lambda *a: g(*a) * 2",
        "def g(x): return x + 1\nassert candidate(g)(2) == 6",
        True,
    ),
    "an object of the test": Case(
        "def f(p): p.x += 1; return p",
        f"{POINT}p = Point(3)\nassert candidate(p) is p and p.x == 4",
        True,
    ),
    "objects of the test in order": Case(
        "def f(l): return sorted(l, key=lambda p: p.x)",
        f"{POINT}a, b = Point(2), Point(1)\nassert candidate([a, b]) == [b, a]",
        True,
    ),
    "an iterator of the test": Case(
        "def f(i): return next(i) + sum(i)", "assert candidate(iter([1, 2, 3])) == 6", True
    ),
    "a mock": Case(
        "def f(m): return m.get(3) + 1",
        "from unittest.mock import Mock\nm = Mock()\nm.get.return_value = 4\n"
        "assert candidate(m) == 5\nm.get.assert_called_once_with(3)",
        True,
    ),
    # Types.
    "a list for a tuple": Case("def f(): return [1, 2]", "assert candidate() == (1, 2)", False),
    "a tuple": Case("def f(): return (1, 2)", "assert candidate() == (1, 2)", True),
    "true for one": Case("def f(): return True", "assert candidate() is True", True),
    "one for true": Case("def f(): return 1", "assert candidate() is True", False),
    "a frozenset": Case("def f(): return frozenset({1})", "assert candidate() == {1}", True),
    "keys of any type": Case(
        "def f(): return {(1, 2): 'a', 3: 'b', None: 'c'}",
        "assert candidate() == {(1, 2): 'a', 3: 'b', None: 'c'}",
        True,
    ),
    "the order of a dict": Case(
        "def f(d): return dict(sorted(d.items()))",
        "assert list(candidate({'b': 1, 'a': 2})) == ['a', 'b']",
        True,
    ),
    "bytes": Case("def f(s): return s.encode()", "assert candidate('é') == b'\\xc3\\xa9'", True),
    "a complex number": Case("def f(): return 1 + 2j", "assert candidate() == 1 + 2j", True),
    "a huge integer": Case(
        "def f(n): return 10 ** n", "assert candidate(9000) == 10 ** 9000", True
    ),
    "not a number": Case(
        "def f(): return float('nan')", "import math\nassert math.isnan(candidate())", True
    ),
    "negative zero": Case(
        "def f(): return -0.0", "import math\nassert math.copysign(1, candidate()) == -1", True
    ),
    "a Decimal": Case(
        "from decimal import Decimal\ndef f(): return Decimal('0.10')",
        "from decimal import Decimal\nassert str(candidate()) == '0.10'",
        True,
    ),
    "a Fraction": Case(
        "from fractions import Fraction\ndef f(): return Fraction(1, 3)",
        "from fractions import Fraction\nassert candidate() == Fraction(2, 6)",
        True,
    ),
    "a datetime": Case(
        "import datetime\ndef f(d): return d + datetime.timedelta(days=1)",
        "from datetime import datetime, timezone\n"
        "assert candidate(datetime(2020, 2, 28, tzinfo=timezone.utc)) == "
        "datetime(2020, 2, 29, tzinfo=timezone.utc)",
        True,
    ),
    "a Counter": Case(
        "from collections import Counter\ndef f(s): return Counter(s)",
        "assert candidate('aab').most_common(1) == [('a', 2)]",
        True,
    ),
    "a defaultdict": Case(
        "from collections import defaultdict\ndef f(): return defaultdict(list)",
        "d = candidate()\nd['x'].append(1)\nassert d == {'x': [1]}",
        True,
    ),
    "a named tuple": Case(
        "from collections import namedtuple\nP = namedtuple('P', 'x y')\ndef f(): return P(1, 2)",
        "p = candidate()\nassert p == (1, 2) and p.y == 2",
        True,
    ),
    "a range": Case("def f(): return range(3)", "assert candidate() == range(3)", True),
    "keys of a dict": Case("def f(d): return d.keys()", "assert candidate({1: 2}) == {1}", True),
    "a type": Case("def f(x): return type(x)", "assert candidate(1) is int", True),
    "an array of numpy": Case(
        "import numpy as np\ndef f(a): return a * 2",
        "import numpy as np\na = np.array([[1, 2], [3, 4]])\nr = candidate(a)\n"
        "assert isinstance(r, np.ndarray) and r.dtype == a.dtype and (r == [[2, 4], [6, 8]]).all()",
        True,
    ),
    "an array that is changed": Case(
        "def f(a): a[0] = 9",
        "import numpy as np\na = np.zeros(2)\ncandidate(a)\nassert a[0] == 9",
        True,
    ),
    "a number of numpy": Case(
        "import numpy as np\ndef f(a): return a.mean()",
        "import numpy as np\nassert candidate(np.array([1.0, 2.0])).dtype == np.float64",
        True,
    ),
    "a time of a zone": Case(
        "import datetime\ndef f(d): return d + datetime.timedelta(hours=1)",
        "import datetime, zoneinfo\n"
        "d = datetime.datetime(2020, 1, 1, tzinfo=zoneinfo.ZoneInfo('Europe/Paris'))\n"
        "assert candidate(d).utcoffset() == datetime.timedelta(hours=1)",
        True,
    ),
    "a path": Case(
        "def f(p): return p.parent / 'b'",
        "from pathlib import Path\nassert candidate(Path('x/a')) == Path('x/b')",
        True,
    ),
    "a namespace": Case(
        "def f(n): n.x += 1",
        "from types import SimpleNamespace\nn = SimpleNamespace(x=1)\ncandidate(n)\n"
        "assert n.x == 2",
        True,
    ),
    "a large argument": Case(
        "def f(s): return len(s)", "assert candidate('x' * (1 << 25)) == 1 << 25", True
    ),
    "a lone surrogate": Case(
        "def f(s): return s", "assert candidate('\\ud800') == '\\ud800'", True
    ),
    "an own error that the test imports": Case(
        "class Own(ValueError): pass\ndef f(x): raise Own(x)",
        "import pytest\nfrom solution import Own, f\nwith pytest.raises(Own) as caught:\n    f(3)\n"
        "assert caught.value.args == (3,) and issubclass(Own, ValueError)",
        True,
    ),
    "another error than the imported one": Case(
        "class Own(ValueError): pass\ndef f(x): raise ValueError(x)",
        "import pytest\nfrom solution import Own, f\nwith pytest.raises(Own):\n    f(3)",
        False,
    ),
    "a class that the test imports": Case(
        STACK,
        "from solution import Stack\nimport solution\ns = solution.f([1])\n"
        "assert isinstance(s, Stack) and not isinstance([1], Stack) and len(Stack([1, 2])) == 2",
        True,
    ),
    "a source of random numbers": Case(
        "def f(rng): return rng.random()",
        "import random\na, b = random.Random(3), random.Random(3)\n"
        "assert candidate(a) == b.random() and a.random() == b.random()",
        True,
    ),
    "objects of the test that compare": Case(
        "def f(l): return sorted(l), max(l) in l, l[0] + l[1], len(set(l))",
        "class V:\n    def __init__(self, x): self.x = x\n"
        "    def __lt__(self, o): return self.x < o.x\n"
        "    def __gt__(self, o): return self.x > o.x\n"
        "    def __eq__(self, o): return self.x == o.x\n"
        "    def __hash__(self): return hash(self.x)\n"
        "    def __add__(self, o): return V(self.x + o.x)\n"
        "a, b, c = V(3), V(1), V(3)\nl, found, total, size = candidate([a, b, c])\n"
        "assert l[0] is b and found is True and total.x == 4 and size == 2",
        True,
    ),
    "imports all": Case(
        "class Own: pass\ndef f(x): return x * 2",
        "from solution import *\nassert f(2) == 4",
        True,
    ),
    "a class of tests": Case(
        "def f(x): return x * 2",
        "import pytest\nclass TestF:\n    def setup_method(self, method): self.x = 3\n"
        "    def test_f(self): assert f(self.x) == 6\npytest.main()",
        True,
    ),
    "looks at the function": Case(
        "def f(x):\n    'Double.'\n    return x * 2",
        "assert callable(candidate) and f.__name__ == 'f' and candidate.__doc__ == 'Double.'\n"
        "import functools\nassert functools.partial(candidate, 4)() == 8",
        True,
    ),
    "calls in threads": Case(
        "def f(x): return x * 2",
        "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor(4) as p:\n"
        "    assert list(p.map(candidate, range(50))) == list(range(0, 100, 2))",
        True,
    ),
    "recurses without end": Case(
        "def f(x): return f(x)",
        "try:\n    candidate(1)\nexcept RecursionError:\n    pass\nelse:\n    assert False",
        True,
    ),
    "a deep argument": Case(
        "def f(l):\n    n = 0\n    while l:\n        l = l[0]\n        n += 1\n    return n",
        "l = []\nfor _ in range(50000):\n    l = [l]\nassert candidate(l) == 50000",
        True,
    ),
    "a unittest": Case(
        "def f(x): return x * 2",
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_f(self): self.assertEqual(f(2), 4)\nunittest.main()",
        True,
    ),
    "a unittest that fails": Case(
        "def f(x): return x * 3",
        "import unittest\nclass T(unittest.TestCase):\n"
        "    def test_f(self): self.assertEqual(f(2), 4)\nunittest.main()",
        False,
    ),
    "a parametrized test": Case(
        "def f(a, b): return a + b",
        "import pytest\n@pytest.mark.parametrize('a, b, c', [(1, 2, 3), (2, 2, 4)])\n"
        "def test_f(a, b, c): assert f(a, b) == c\n"
        "def test_approx(): assert f(0.1, 0.2) == pytest.approx(0.3)\npytest.main()",
        True,
    ),
    "a parametrized test that fails": Case(
        "def f(a, b): return a + b",
        "import pytest\n@pytest.mark.parametrize('a, b, c', [(1, 2, 3), (2, 2, 5)])\n"
        "def test_f(a, b, c): assert f(a, b) == c\npytest.main()",
        False,
    ),
    # Programs.
    "a loop over random arguments": Case(
        "def f(x): return x / 2",
        "import random\nfor _ in range(50):\n    x = random.random()\n"
        "    assert candidate(x) == x / 2",
        True,
    ),
    "a comprehension": Case(
        "def f(x): return x + 1", "assert all(candidate(x) == x + 1 for x in range(9))", True
    ),
    "passed on": Case(
        "def f(x): return x + 1", "assert list(map(candidate, [1, 2])) == [2, 3]", True
    ),
    "under its own name": Case("def f(x): return x + 1", "assert f(1) == 2", True),
    "imported": Case("def f(x): return x + 1", "from solution import f\nassert f(1) == 2", True),
    "a seed": Case(
        "import random\ndef f(): return random.random()",
        "import random\nrandom.seed(3)\nx = random.random()\nrandom.seed(3)\n"
        "assert candidate() == x",
        True,
    ),
    "a file that the test wrote": Case(
        "def f(name):\n    with open(name) as file: return file.read()",
        "with open('a.txt', 'w') as file:\n    file.write('hello')\n"
        "assert candidate('a.txt') == 'hello'",
        True,
    ),
    "a file that the answer wrote": Case(
        "def f(name):\n    with open(name, 'w') as file: file.write('x')",
        "candidate('b.txt')\nwith open('b.txt') as file:\n    assert file.read() == 'x'",
        True,
    ),
    "a replaced function": Case(
        "import subprocess\ndef f(): return subprocess.call(['ls'])",
        "import subprocess\nfrom unittest.mock import Mock\n"
        "subprocess.call = Mock(return_value=3)\n"
        "assert candidate() == 3",
        True,
    ),
    "a patched function": Case(
        "def f(): return input() + input()",
        "from unittest.mock import patch\nwith patch('builtins.input', side_effect=['a', 'b']):\n"
        "    assert candidate() == 'ab'",
        True,
    ),
    "an object with an own equality": Case(
        "class E:\n    def __eq__(self, other): return True\n    __hash__ = None\n"
        "def f(x): return E()",
        "assert candidate(1) == 5",
        False,
    ),
    "leaves at once": Case(
        "import os\ndef f(x): os._exit(0)",
        "try:\n    r = candidate(1)\nexcept BaseException:\n    r = 5\nassert r == 5",
        False,
    ),
}

"""Programs that want a test to pass which is a Python program, without the right answer.

None may be accepted. The test below passes a list, a function and an object of its own.
"""

TEST = """
import math
from unittest.mock import Mock

class Box:
    limit = 3
    maker = Mock()
    def __init__(self, items): self.items = items
    def largest(self): return max(self.items)

def check(candidate):
    numbers = [3, 1, 2]
    box = Box(numbers)
    secret = 7919
    expected = [3, 2, 1]
    assert candidate(numbers, lambda x: -x, box) == expected
    assert numbers == [3, 1, 2]
    assert candidate([5, 8], lambda x: x * secret, Box([1])) == [5, 8]
    assert abs(candidate([0.5], lambda x: x, box)[0] - 0.5) < 1e-9

check(candidate)
"""

RIGHT = "def f(numbers, key, box): return sorted(numbers, key=key)"

SEND = """
import json, os, struct
def send(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    os.write(4, struct.pack('<Q', len(data)) + data)
"""


def equal_to_all(body: str) -> str:
    """An answer that returns an object of a class with this body."""
    return f"class E:\n{body}\ndef f(*a): return E()\n"


def in_call(code: str) -> str:
    """An answer that does something in each call, and returns nothing."""
    lines = "\n".join(f"    {line}" for line in code.splitlines())
    return f"{SEND}\ndef f(numbers, key, box):\n{lines}\n"


def first(code: str) -> str:
    """An answer that does something before its function is defined."""
    return f"{SEND}\n{code}\ndef f(*a): return None\n"


ALWAYS = "    def {name}(self, *a): return {value}\n    __hash__ = object.__hash__"
OFFER = "[['x']]"
REPLY = "send({'raised': False, 'values': [%s, None], 'states': %s})"

FORGERS = {
    # Objects that agree with everything.
    "eq": equal_to_all(ALWAYS.format(name="__eq__", value="True")),
    "ne": equal_to_all("    def __eq__(s, o): return True\n    def __ne__(s, o): return False"),
    "list subclass": "class E(list):\n    def __eq__(s, o): return True\ndef f(*a): return E()",
    "int subclass": "class E(int):\n    def __eq__(s, o): return True\ndef f(*a): return E(1)",
    "float subclass": (
        "class E(float):\n    def __sub__(s, o): return E(0)\n    def __abs__(s): return E(0)\n"
        "    def __lt__(s, o): return True\n    def __eq__(s, o): return True\n"
        "def f(*a): return [E(9)]"
    ),
    "str subclass": "class E(str):\n    def __eq__(s, o): return True\ndef f(*a): return E('a')",
    "dict subclass": "class E(dict):\n    def __eq__(s, o): return True\ndef f(*a): return E()",
    "tuple subclass": "class E(tuple):\n    def __eq__(s, o): return True\ndef f(*a): return E()",
    "radd and sub": equal_to_all(
        "    def __sub__(s, o): return 0\n    def __rsub__(s, o): return 0\n"
        "    def __abs__(s): return 0\n    def __lt__(s, o): return True\n"
        "    def __getitem__(s, i): return s\n    def __eq__(s, o): return True"
    ),
    "class is list": equal_to_all(
        "    __class__ = list\n    def __eq__(s, o): return True\n"
        "    def __iter__(s): return iter([])"
    ),
    "metaclass": (
        "class M(type):\n    def __eq__(c, o): return True\n"
        "    def __instancecheck__(c, o): return True\n"
        "    __hash__ = type.__hash__\nclass E(metaclass=M): pass\ndef f(*a): return E"
    ),
    "items that agree": (
        "class E:\n    def __eq__(s, o): return True\n    __hash__ = None\n"
        "def f(n, k, b): return [E() for _ in n]"
    ),
    "approx of its own": (
        "class E:\n    __array_ufunc__ = None\n    def __eq__(s, o): return True\n"
        "def f(*a): return E()"
    ),
    "patched builtins": (
        "import builtins\nbuiltins.list = type('list', (), {'__eq__': lambda s, o: True})\n"
        "def f(*a): return list()"
    ),
    "patched encoder": ("import microcoder.judge.sandbox.value_kinds as v\ndef f(*a): return 1\n"),
    "patched json": (
        "import json\njson.JSONEncoder.encode = lambda s, o: '[true]'\n"
        "json.dumps = lambda *a, **k: 'true'\ndef f(*a): return [1]"
    ),
    "not equal to itself": "def f(*a): return float('nan')",
    "mock": "from unittest.mock import MagicMock, ANY\ndef f(*a): return ANY",
    "magic mock": "from unittest.mock import MagicMock\ndef f(*a): return MagicMock()",
    "an array that broadcasts": "import numpy as np\ndef f(*a): return np.array([])",
    "an array of objects": (
        "import numpy as np\nclass E:\n    def __eq__(s, o): return True\n"
        "def f(n, k, b): return np.array([E() for _ in n], dtype=object)"
    ),
    # Endings.
    "exits": "import sys\ndef f(*a): sys.exit(0)",
    "exits without code": "def f(*a): raise SystemExit",
    "leaves": "import os\ndef f(*a): os._exit(0)",
    "leaves at once": "import os\nos._exit(0)",
    "exits at once": "raise SystemExit(0)",
    "is killed": "import os, signal\ndef f(*a): os.kill(os.getpid(), signal.SIGKILL)",
    "stops its loop": "def f(*a): raise GeneratorExit",
    "interrupts": "def f(*a): raise KeyboardInterrupt",
    "raises what ends iteration": "def f(*a): raise StopIteration([3, 2, 1])",
    "ends the conversation": in_call("os.close(3)\nos.close(4)"),
    "ends the conversation's loop": (
        "def f(*a):\n    import sys\n    frame = sys._getframe(1)\n    while frame:\n"
        "        for value in frame.f_locals.values():\n"
        "            if isinstance(value, type) and issubclass(value, BaseException): raise value\n"
        "        frame = frame.f_back\n    raise BaseException"
    ),
    "raises the other side's own errors": (
        "import sys\ndef f(*a):\n"
        "    raise sys.modules['microcoder.judge.sandbox.conversation'].ConversationEnded"
    ),
    "an assertion error": "def f(*a): raise AssertionError",
    "an error that hides": (
        "class E(Exception):\n    def __str__(s): raise s\n    __repr__ = __str__\n"
        "def f(*a): raise E(E())"
    ),
    "an error with the judge's mark": (
        "def f(*a):\n    e = SystemExit(0)\n    e._from_answer = ''\n    raise e"
    ),
    "an error that carries objects": (
        "class E(Exception): pass\ndef f(n, k, b): raise E(n, k, b, lambda: 1, E)"
    ),
    "a group of errors": "def f(*a): raise BaseExceptionGroup('a', [SystemExit(0)])",
    # Forged messages.
    "a reply before the call": first(REPLY % ("[1]", "[[1, 'list', [3, 2, 1]]]")),
    "replies for all calls": first("\n".join([REPLY % ("[1]", "[[1, 'list', []]]")] * 9)),
    "an offer of its own": first("send({'raised': False, 'values': [True, None], 'states': []})"),
    "an offer of names": first(
        REPLY
        % (
            "[1]",
            "[[1, 'tuple', [True, False, [3]]], [3, 'list', [[5]]], [5, 'tuple', ['check', True]]]",
        )
    ),
    "an offer of builtins": first(
        REPLY
        % (
            "[1]",
            "[[1, 'tuple', [True, False, [3]]], [3, 'list', [[5]]], [5, 'tuple', ['abs', True]]]",
        )
    ),
    "two replies": in_call(REPLY % ("None", "[]")),
    "ten replies": in_call("for _ in range(10): " + REPLY % ("None", "[]")),
    "garbage": in_call("os.write(4, b'garbage' * 100)"),
    "garbage at once": first("os.write(4, b'\\xff' * 1000)"),
    "no json": in_call("send(b'{')"),
    "a number": in_call("send(5)"),
    "a list": in_call("send([])"),
    "nothing": in_call("send({})"),
    "an empty message": in_call("os.write(4, struct.pack('<Q', 0))"),
    "a cut message": in_call("os.write(4, struct.pack('<Q', 100) + b'{')\nos._exit(0)"),
    "a length beyond all": in_call("os.write(4, struct.pack('<Q', 1 << 62))"),
    "a long message": in_call("os.write(4, struct.pack('<Q', 1 << 24))"),
    "deep": in_call("send(b'[' * 100000 + b']' * 100000)"),
    "deep states": in_call(
        "inner = b'[' * 9999 + b']' * 9999\n"
        'send(b\'{"raised":false,"values":[\' + inner + b\',null],"states":[]}\')'
    ),
    "a long number": in_call("send(b'{\"raised\":' + b'9' * 100000 + b'}')"),
    "a flood": in_call("while True: send({'raised': False, 'values': [1, None], 'states': []})"),
    "a flood of requests": in_call(
        "while True: send({'op': 'call', 'on': 0, 'names': [], 'forget': [], 'values': [None], "
        "'states': []})"
    ),
    "unknown kind": in_call(REPLY % ("[1]", "[[1, 'code', ['x']]]")),
    "pickle": in_call(REPLY % ("[1]", "[[1, 'pickle', ['x']]]")),
    "a name": in_call(REPLY % ("[11]", "[[11, 'named', ['os', '_exit']]]")),
    "a name of builtins": in_call(REPLY % ("[11]", "[[11, 'named', ['builtins', 'exec']]]")),
    "an exception's class": in_call(
        REPLY % ("[11]", "[[11, 'exception', [1, 'os', '_exit', '', 1, 0]]]")
    ),
    "an exception that is imported": in_call(
        REPLY % ("[11]", "[[11, 'exception', [1, 'antigravity', 'E', '', 0]]]")
    ),
    "raises what is no error": in_call("send({'raised': True, 'values': [1, None], 'states': []})"),
    "a tuple of itself": in_call(REPLY % ("[11]", "[[11, 'tuple', [[11]]]]")),
    "a key that is a list": in_call(
        REPLY % ("[11]", "[[11, 'dict', [[13], 1]], [13, 'list', []]]")
    ),
    "a number of the test": in_call(REPLY % ("[2]", "[[9992, 'list', [1]]]")),
    "another kind of an argument": in_call(
        "for n in range(0, 40, 2): " + REPLY % ("[0]", "[[n, 'dict', []]]")
    ),
    "changes all objects of the test": in_call(
        "for n in range(0, 40, 2):\n    " + REPLY % ("[n]", "[[n, 'list', [3, 2, 1]]]")
    ),
    "returns each object of the test": in_call("for n in range(0, 40): " + REPLY % ("[n]", "[]")),
    "a handle that is equal": in_call(
        REPLY % ("[11]", "[[11, 'handle', ['builtins', 'list', '__eq__', '__call__']]]")
    ),
    "a handle of a type": in_call(
        REPLY % ("[11]", "[[11, 'handle', ['builtins', 'list', '__iter__', '__len__']]]")
    ),
    "an object of the test's class": in_call(
        REPLY % ("[11]", "[[11, 'object', ['Box', 'items', 1]]]")
    ),
    "an object of a builtin": in_call(REPLY % ("[11]", "[[11, 'object', ['list']]]")),
    "a huge range": in_call(REPLY % ("[11]", "[[11, 'range', [0, 1 << 62, 1]]]")),
    "an array of nothing": in_call(
        REPLY % ("[11]", "[[11, 'numpy.array', ['|V8', 1, 3, 'AAAA']]]")
    ),
    "an array without end": in_call(
        REPLY % ("[11]", "[[11, 'numpy.array', ['<i8', 3, 1 << 40, 1 << 40, 1, 'AAAA']]]")
    ),
    "a pattern without end": in_call(REPLY % ("[11]", "[[11, 'pattern', ['(' * 5000, 0]]]")),
    "a file outside": in_call(
        "send({'raised': False, 'values': [None, [11]], 'states': [[11, 'list', [[13]]], "
        "[13, 'tuple', ['file', '../../etc/x', None]]]})"
    ),
    "a module that the test may import": in_call(
        "with open('math.py', 'w') as file: file.write('raise SystemExit(0)')\nreturn None"
    ),
    "an event of the test": in_call(
        "send({'raised': False, 'values': [None, [11]], 'states': [[11, 'list', [[13]]], "
        "[13, 'tuple', ['replace', 'builtins.abs', 1]]]})"
    ),
    # Calls into the test.
    "reads the globals of a function": in_call("return key.__globals__['expected']"),
    "reads a closure": in_call("return key.__closure__"),
    "asks for globals by hand": in_call("return key._peer.ask('get', key._number, '__globals__')"),
    "asks for a frame": in_call("return key._peer.ask('get', key._number, 'gi_frame')"),
    "asks for the class": in_call("return box._peer.ask('get', box._number, '__class__')"),
    "asks for the dict": in_call("return box.__dict__['items']"),
    "sets the class": in_call("return box._peer.ask('set', box._number, '__class__', 1)"),
    "sets a method": in_call("box.largest = lambda: 3\nreturn box.items"),
    "walks from a method": in_call(
        "m = box.largest\nreturn m._peer.ask('get', m._number, '__func__')"
    ),
    "asks objects that it was not given": in_call(
        "for n in range(100):\n    try: return key._peer.ask('call', n)\n    except Exception: pass"
    ),
    "unknown operations": in_call("return key._peer.ask('eval', key._number, '1')"),
    "calls without end": in_call("while True: key(1)"),
    "calls in calls": in_call("return key(lambda: key(lambda: 1))"),
    "a function that calls back": in_call("return [lambda: box.largest()]"),
    "an argument that breaks the test": in_call("return key(key)"),
    "limits": in_call(
        "import sys\nsys.setrecursionlimit(10**6)\ndef g(n): return g(n + 1)\nreturn g(0)"
    ),
    # Floods and waits.
    "prints without end": in_call("while True: print('x' * 10000)"),
    "prints much in a call": in_call("print('x' * (1 << 23))"),
    "never replies": in_call("import time\ntime.sleep(1000)"),
    "never loads": "while True: pass",
    "a huge value": in_call("return 'x' * (1 << 25)"),
    "a wide value": in_call("return list(range(1 << 22))"),
    "a deep value": in_call("l = []\nfor _ in range(100000): l = [l]\nreturn l"),
    "a value in a circle": in_call("l = []\nl.append(l)\nreturn l"),
    "colliding keys": in_call("return {n * ((1 << 61) - 1): 1 for n in range(1 << 14)}"),
    "an endless iterator": "import itertools\ndef f(*a): return itertools.repeat(3)",
    "memory": in_call("return [0] * (1 << 29)"),
    "threads that write": in_call(
        "import threading\ndef g():\n    while True: os.write(4, b'x')\n"
        "threading.Thread(target=g, daemon=True).start()\nreturn numbers"
    ),
    "a class that has all instances": (
        "class M(type):\n    def __instancecheck__(c, o): return True\n"
        "class E(metaclass=M): pass\ndef f(*a): return E"
    ),
    "a handle with a comparison": in_call(
        REPLY % ("[11]", "[[11, 'handle', ['builtins', 'list', '__lt__', '__sub__', '__bool__']]]")
    ),
    "an exception of any module": in_call(
        "send({'raised': True, 'values': [[11], None], 'states': "
        "[[11, 'exception', [1, 'idlelib.pyshell', 'E', 5, 0]]]})"
    ),
    "exceptions without a class": in_call(
        "send({'raised': True, 'values': [[11], None], 'states': [[11, 'exception', [0, '', 0]]]})"
    ),
    "an exit by its own reply": in_call(
        "send({'raised': True, 'values': [[11], None], 'states': "
        "[[11, 'exception', [1, 'builtins', 'SystemExit', '', 1, 0]]]})"
    ),
    "an exit with an attribute": in_call(
        "send({'raised': True, 'values': [[11], None], 'states': "
        "[[11, 'exception', [1, 'builtins', 'SystemExit', '', 0, '_from_answer', '', 'code', 0]]]})"
    ),
    "an iterator that grows": (
        "def f(n, k, b):\n    while True:\n        yield from sorted(n, key=k)"
    ),
    "an approximation": (
        "import decimal\ndef f(n, k, b): return [decimal.Decimal('NaN')] * len(n)"
    ),
    "changes the random numbers": in_call("import random\nrandom.seed(0)\nreturn numbers"),
    "adds to the box": in_call("box.items.append(9)\nreturn sorted(box.items, key=key)"),
    "reaches through a mock": in_call(
        "from unittest.mock import Mock\nm = box.maker\n"
        "m.configure_mock(**{'__class__.__eq__': lambda *a: True})\nreturn m"
    ),
    # What the test has.
    "the test's files": in_call("import glob\nreturn [open(n).read() for n in glob.glob('/**')]"),
    "the test's module": in_call("import __main__\nreturn __main__.check"),
    "its stdin": in_call("import sys\nreturn json.loads(sys.stdin.read())"),
    "its descriptors": in_call(
        "out = []\nfor n in range(5, 50):\n    try: out.append(os.pread(n, 99, 0))\n"
        "    except OSError: pass\nreturn out"
    ),
    "its setup's frames": in_call(
        "import sys, gc\n"
        "return [o for o in gc.get_objects() if type(o) is list and o == [3, 2, 1]][0]"
    ),
    "redefines what the test defines": (
        "class Box:\n    def __eq__(s, o): return True\ndef check(c): pass\ndef f(*a): return Box()"
    ),
    "an attribute of the function": "def f(*a): return None\nf.__eq__ = lambda o: True",
    "a function that is an object": (
        "class F:\n    def __call__(s, *a): return s\n    def __eq__(s, o): return True\n"
        "    __hash__ = None\nf = F()"
    ),
    "the arguments": "def f(n, k, b): return n",
    "the reverse": "def f(n, k, b): n.sort(); n.reverse(); return n",
}

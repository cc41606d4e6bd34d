"""Correct but unusual programs: what they do under plain `python main.py`,
they must do in the sandbox.

Their stdin is `INPUT`. Most are the yardstick's, which other judges are asked too. Those here tell
of the interpreter or the machine, fail, print what is no text or too much; each dict names what its
programs are about.
"""

from microcoder.lab.yardstick.cases import load_suite

INPUT = b"3\n1 2\n3 4\n5 6\n"
_STORED = load_suite("fidelity")

READING = {
    "fileinput": (
        "import fileinput\nfor line in fileinput.input(): print(fileinput.lineno(), line, end='')"
    ),
    "fileinput of a dash": "import fileinput\nprint([*fileinput.input('-')])",
    "end of file": "while True: print(input())",
    "linecache and shlex": "import shlex, sys\nprint(list(shlex.shlex(sys.stdin)))",
}
NAMED = {
    "print to /dev/fd/1 and fail": "print('x', file=open('/dev/fd/1', 'w'))\n1 / 0",
    "long output by name": "with open('/dev/stdout', 'w') as out: out.write('x' * (15 << 20))",
}
WRITING = {
    "print to a file": "import sys\nprint(1, 2, sep='-', end='!\\n', file=sys.stdout, flush=True)",
    "stdout detached": "import sys\nout = sys.stdout.detach()\nout.write(b'x\\n')",
    "__del__ uses a global": (
        "import sys\n"
        "name = 'n'\n"
        "class A:\n"
        "    def __del__(self): sys.stdout.write(name + '\\n')\n"
        "held = {'a': [A()]}"
    ),
    "thread that is slow to be counted": (
        "import threading, time\n"
        "class Slow(dict):\n"
        "    def __setitem__(self, key, thread):\n"
        "        time.sleep(0.2)\n"
        "        dict.__setitem__(self, key, thread)\n"
        "threading._active = Slow(threading._active)\n"
        "threading.Thread(target=print, args=('x',)).start()"
    ),
    "timer": "import threading\nthreading.Timer(0.02, print, ['later']).start()\nprint('now')",
    "output in chunks": "import sys\nfor i in range(20000): sys.stdout.write(f'{i}\\n')",
    "long output": "print(' '.join(map(str, range(200000))))",
    "warnings": "import warnings\nwarnings.warn('w')\nprint('x')",
    "nul and control characters": "print('a\\0b\\tc\\x7f\\r')",
    "surrogate escape": "print('\\udcff')",
    "bytes beyond utf-8": "import sys\nsys.stdout.buffer.write(bytes(range(256)))",
    "file closed by nobody": (
        "out = open('/tmp/x', 'w')\n"
        "out.write('held')\n"
        "import os\n"
        "print(os.path.getsize('/tmp/x'))\n"
        "os.remove('/tmp/x')"
    ),
    "print nothing": "pass",
    "empty program": "",
    "comment only": "# nothing",
}
ENDING = {
    "quit with code": "print(1)\nquit(3)",
    "sys.exit text": "import sys\nprint(1)\nsys.exit('bad')",
    "sys.exit 256": "import sys\nsys.exit(256)",
    "sys.exit -1": "import sys\nsys.exit(-1)",
    "sys.exit beyond a long": "import sys\nsys.exit(2 ** 70)",
    "sys.exit bool": "import sys\nsys.exit(True)",
    "sys.exit float": "import sys\nsys.exit(0.0)",
    "sys.exit of an odd int": (
        "import sys\nclass Z(int):\n    def __and__(self, other): return 0\nsys.exit(Z(3))"
    ),
    "os._exit": "import os\nprint('lost')\nos._exit(4)",
    "exception": "print(1)\n1 / 0",
    "exception with a cause": (
        "try: 1 / 0\nexcept ZeroDivisionError as e: raise ValueError('é') from e"
    ),
    "exception without text": "class E(Exception):\n    def __str__(self): 1 / 0\nraise E",
    "exception group": "raise ExceptionGroup('g', [ValueError(1), KeyError(2)])",
    "own excepthook": "import sys\nsys.excepthook = lambda *a: print('hook', a[0].__name__)\n1 / 0",
    "excepthook that fails": "import sys\nsys.excepthook = lambda *a: 1 / 0\nprint('x')\nint('y')",
    "assertion": "assert 1 == 2, 'no'",
    "stop iteration at the top": "next(iter([]))",
    "generator exit": "print(1)\nraise GeneratorExit",
    "stdout without a descriptor": "import os\nprint('x')\nos.close(1)",
    "stdout unusable": "import sys\nprint('x')\nsys.stdout = 5",
    "object with a failing module": (
        "class M(type):\n"
        "    @property\n"
        "    def __module__(cls): raise ValueError\n"
        "class A(metaclass=M): pass\n"
        "a = A()\n"
        "print('x')"
    ),
    "empty main module": "print('x')\nglobals().clear()",
    "main module removed": "import sys\nprint('x')\ndel sys.modules['__main__']",
    "modules emptied": (
        "import sys\n"
        "print('x')\n"
        "for name in list(sys.modules):\n"
        "    if name not in ('sys', 'builtins'): del sys.modules[name]"
    ),
    "profile left on": "import sys\nprint('x')\nsys.setprofile(lambda f, e, a: None)",
    "trace left on": (
        "import sys\n"
        "def tracer(frame, event, argument): return tracer\n"
        "sys.settrace(tracer)\n"
        "print('x')"
    ),
    "profile that prints": (
        "import sys\n"
        "def show(frame, event, argument): count.append(event)\n"
        "count = []\n"
        "sys.setprofile(show)\n"
        "len([])\n"
        "sys.setprofile(None)\n"
        "print(count)"
    ),
    "recursion limit lowered": "import sys\nprint('x')\nsys.setrecursionlimit(60)",
}
SHAPE = {
    "global": "count = 0\ndef f():\n    global count\n    count += 1\nf(); f()\nprint(count)",
    "names of builtins used": (
        "list = [1, 2]\n"
        "sum = 0\n"
        "for max in list: sum += max\n"
        "str = 'a'\n"
        "id = dict = type = None\n"
        "print(sum, str)"
    ),
    "names of modules used": (
        "class math: pi = 3\n"
        "class string: pass\n"
        "import sys as os\n"
        "random = 4\n"
        "print(math.pi, random, os.byteorder)"
    ),
    "import of main": "x = 5\nimport __main__\nprint(__main__.x, __main__.__name__)",
    "module docstring": "'''doc'''\nprint(__doc__, __file__ is not None, __name__)",
    "globals and vars": (
        "x = 1\nprint(globals()['x'], vars()['x'], locals() is globals(), sorted(dir())[:3])"
    ),
    "lambda recursion": "f = lambda n: 1 if n < 2 else n * f(n - 1)\nprint(f(50))",
    "long source": "x = 0\n" + "x += 1\n" * 20000 + "print(x)",
    "long literal": "x = [" + ", ".join(map(str, range(50000))) + "]\nprint(sum(x))",
    "long line": "print(len('" + "x" * 300000 + "'))",
    "many functions": "".join(f"def f{i}(): return {i}\n" for i in range(3000))
    + "print(sum(globals()[f'f{i}']() for i in range(3000)))",
    "source of a function": (
        "import inspect\ndef f(a):\n    return a + 1  # here\nprint(inspect.getsource(f))"
    ),
    "traceback printed": (
        "import traceback\n"
        "try: 1 / 0\n"
        "except ZeroDivisionError: print(traceback.format_exc().splitlines()[-2:])"
    ),
    "line of an exception": (
        "import sys\ntry:\n    int('x')\nexcept ValueError: print(sys.exc_info()[2].tb_lineno)"
    ),
    "own source": "print(open(__file__).read())",
    "own source by argv": "import sys\nprint(len(open(sys.argv[0]).read()))",
    "syntax warning": "print('x' is 'x')",
    "module __getattr__": (
        "def __getattr__(name): return name\nimport __main__\nprint(__main__.whatever)"
    ),
}
LIBRARY = {
    "recursion near the limit": "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nprint(f(980))",
    "recursion beyond it": "def f(n): return 0 if n == 0 else 1 + f(n - 1)\nf(1000)",
    "recursion caught": (
        "def f(n): return f(n + 1)\ntry: f(0)\nexcept RecursionError as e: print(e)"
    ),
    "deep recursion": (
        "import sys\n"
        "sys.setrecursionlimit(10 ** 6)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "print(f(50000))"
    ),
    "thread with a big stack": (
        "import sys, threading\n"
        "sys.setrecursionlimit(10 ** 6)\n"
        "threading.stack_size(1 << 27)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "def main(): print(f(100000))\n"
        "thread = threading.Thread(target=main); thread.start(); thread.join()"
    ),
    "thread with the biggest stack": (
        "import sys, threading\n"
        "sys.setrecursionlimit(1 << 30)\n"
        "threading.stack_size(512 * 1024 * 1024)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "t = threading.Thread(target=lambda: print(f(20000))); t.start(); t.join()"
    ),
    "stack limit raised": (
        "import resource, sys\n"
        "resource.setrlimit(resource.RLIMIT_STACK, (resource.RLIM_INFINITY, "
        "resource.RLIM_INFINITY))\n"
        "print('x')"
    ),
    "stack limit set": (
        "import resource\n"
        "resource.setrlimit(resource.RLIMIT_STACK, (1 << 26, "
        "resource.getrlimit(resource.RLIMIT_STACK)[1]))\n"
        "print('x')"
    ),
    "stack limit 512": (
        "import resource\nresource.setrlimit(resource.RLIMIT_STACK, (1 << 29, -1))\nprint('x')"
    ),
    "recursion to the last frame": (
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "print(f(998))\n"
        "try: f(999)\n"
        "except RecursionError as e: print(e)"
    ),
    "recursion limit a little higher": (
        "import sys\n"
        "sys.setrecursionlimit(1001)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "print(f(999))\n"
        "try: f(1000)\n"
        "except RecursionError: print(sys.getrecursionlimit())"
    ),
    "recursion limit as low as it gets": (
        "import sys\n"
        "def f(n):\n"
        "    try: sys.setrecursionlimit(n)\n"
        "    except RecursionError as e: return str(e)\n"
        "print([f(n) for n in range(1, 5)])"
    ),
    "recursion to the last frame at exit": (
        "import atexit\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "atexit.register(lambda: print(f(900)))"
    ),
    "recursion to the last frame in a thread": (
        "import threading\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "t = threading.Thread(target=lambda: print(f(990))); t.start(); t.join()"
    ),
    "call stack": (
        "import inspect, sys, traceback\n"
        "print(len(inspect.stack()), sys._getframe().f_back, len(traceback.extract_stack()))\n"
        "try: sys._getframe(1)\n"
        "except ValueError as e: print(e)"
    ),
    "call stack kept": (
        "import sys\n"
        "def f(): return sys._getframe()\n"
        "x = f()\n"
        "def g(): yield sys._getframe()\n"
        "y = next(g())\n"
        "print(x.f_code.co_name, x.f_back is sys._getframe(), y.f_back in (None, "
        "sys._getframe()), sys._getframe().f_code.co_name)"
    ),
    "caller of a function": (
        "import sys\n"
        "def f(): return sys._getframe(1).f_code.co_name, sys._getframe(1).f_back\n"
        "print(f())"
    ),
    "traced": (
        "import sys\n"
        "seen = []\n"
        "sys.settrace(lambda f, e, a: seen.append(e))\n"
        "abs(1)\n"
        "def f(): pass\n"
        "f()\n"
        "sys.settrace(None)\n"
        "print(seen)"
    ),
    "recursion by bootstrap": (
        "from types import GeneratorType\n"
        "def bootstrap(f, stack=[]):\n"
        "    def wrapped(*a):\n"
        "        if stack: return f(*a)\n"
        "        to = f(*a)\n"
        "        while True:\n"
        "            if type(to) is GeneratorType: stack.append(to); to = next(to)\n"
        "            else:\n"
        "                stack.pop()\n"
        "                if not stack: return to\n"
        "                to = stack[-1].send(to)\n"
        "    return wrapped\n"
        "@bootstrap\n"
        "def f(n):\n"
        "    if n == 0: yield 0\n"
        "    else: yield 1 + (yield f(n - 1))\n"
        "print(f(20000))"
    ),
    "cached recursion": (
        "import sys\n"
        "from functools import cache, lru_cache\n"
        "sys.setrecursionlimit(10 ** 5)\n"
        "@cache\n"
        "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\n"
        "@lru_cache(maxsize=None)\n"
        "def g(n): return 0 if n == 0 else 1 + g(n - 1)\n"
        "print(f(3000) % 10 ** 9, g(4000), f.cache_info().currsize)"
    ),
    "integer beyond the digits limit": "print(7 ** 9000)",
    "digits limit lifted": (
        "import sys\nsys.set_int_max_str_digits(0)\nprint(7 ** 9000, int('9' * 9000) + 1)"
    ),
    "numpy prints": (
        "import numpy as np\n"
        "np.set_printoptions(precision=3, suppress=True)\n"
        "print(np.array([[1.23456, 2], [3, 4]]), np.int64(3), np.float64(0.1), np.bool_(True))"
    ),
    "random of the system": (
        "import random, secrets, uuid, os\n"
        "print(0 <= random.SystemRandom().random() < 1, len(secrets.token_hex(4)), "
        "uuid.uuid4().version, len(os.urandom(3)))"
    ),
    "time": (
        "import time\n"
        "a = time.time(); b = time.perf_counter(); time.sleep(0.001)\n"
        "print(time.time() > a, time.perf_counter() > b, time.process_time() >= 0, "
        "time.monotonic_ns() > 0, time.strftime('%Y', time.gmtime(0)), "
        "time.localtime(0).tm_year)"
    ),
    "time limit by the clock": (
        "import time\n"
        "end = time.time() + 0.02\n"
        "n = 0\n"
        "while time.time() < end: n += 1\n"
        "print(n > 0)"
    ),
    "datetime": (
        "import datetime, calendar\n"
        "print(datetime.date(2020, 1, 31) + datetime.timedelta(1), "
        "datetime.datetime.fromtimestamp(0), calendar.monthrange(2024, 2), "
        "datetime.datetime.strptime('1 Feb 2020', '%d %b %Y').isoformat())"
    ),
    "locale": (
        "import locale\n"
        "locale.setlocale(locale.LC_ALL, '')\n"
        "print(locale.getlocale(), locale.getpreferredencoding(), format(1234, 'n'))"
    ),
    "set order": "print(set('hello world'), hash('a'), {1.5, (1, 2), None})",
    "temporary file": (
        "import tempfile\n"
        "f = tempfile.TemporaryFile(); f.write(b'x'); print(f.tell())\n"
        "with tempfile.TemporaryDirectory() as d: print(bool(d))\n"
        "with tempfile.NamedTemporaryFile('w+') as f: f.write('y'); f.seek(0); print(f.read())"
    ),
    "file in /tmp": (
        "with open('/tmp/notes.txt', 'w') as f: f.write('x')\n"
        "print(open('/tmp/notes.txt').read())\n"
        "import os; os.remove('/tmp/notes.txt')"
    ),
    "file here": (
        "with open('notes.txt', 'w') as f: f.write('x')\n"
        "import os\n"
        "print(open('notes.txt').read(), os.path.exists('notes.txt')); os.remove('notes.txt')"
    ),
    "files that are not there": (
        "import os, sys\n"
        "if os.path.exists('input.txt'): sys.stdin = open('input.txt')\n"
        "try: sys.stdin = open('in.txt')\n"
        "except FileNotFoundError: pass\n"
        "print(input())"
    ),
    "environment": (
        "import os\n"
        "if os.environ.get('LOCAL') or os.getenv('DEBUG'): print('local')\n"
        "print('ONLINE_JUDGE' in os.environ, os.environ.get('X', 'd'))"
    ),
    "arguments": (
        "import sys\n"
        "print(len(sys.argv), sys.argv[1:], sys.argv[0].endswith('main.py'))\n"
        "if len(sys.argv) > 1: 1 / 0"
    ),
    "platform": (
        "import platform, sys, os\n"
        "print(sys.platform, platform.python_implementation(), platform.system(), os.name, "
        "platform.machine(), sys.implementation.name)"
    ),
    "interpreter": (
        "import sys\n"
        "print(sys.maxsize, sys.version_info[:2], sys.byteorder, sys.flags.optimize, "
        "sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.float_info.max, "
        "sys.getrecursionlimit(), sys.hash_info.width)"
    ),
    "user and machine": (
        "import getpass, os, socket\n"
        "print(isinstance(os.getpid(), int), isinstance(socket.gethostname(), str), "
        "os.cpu_count() > 0, os.getcwd() != '')"
    ),
    "malloc by ctypes": (
        "import ctypes\n"
        "libc = ctypes.CDLL('libc.so.6')\n"
        "libc.malloc.restype = ctypes.c_void_p\n"
        "p = libc.malloc(1 << 20)\n"
        "ctypes.memset(p, 65, 4)\n"
        "print(ctypes.string_at(p, 4))"
    ),
    "array, struct, memoryview": (
        "import array\n"
        "a = array.array('i', [1, 2, 3]); a.append(4)\n"
        "m = memoryview(a)\n"
        "m[0] = 9\n"
        "print(a, m.tolist(), bytearray(b'ab')[::-1], int.from_bytes(b'\\1\\0', 'big'), "
        "(300).to_bytes(2, 'little'))"
    ),
    "memory of objects": (
        "import sys, tracemalloc\n"
        "tracemalloc.start()\n"
        "x = [0] * 1000\n"
        "print(sys.getsizeof(x), tracemalloc.get_traced_memory()[0] > 0)"
    ),
    "dis and symtable": (
        "import dis, io\n"
        "out = io.StringIO(); dis.dis(lambda: 1, file=out)\n"
        "print('RETURN' in out.getvalue())"
    ),
    "timeit and profile": (
        "import cProfile, timeit, io, pstats\n"
        "print(timeit.timeit('1', number=10) >= 0)\n"
        "p = cProfile.Profile(); p.runcall(abs, -1); s = io.StringIO(); pstats.Stats(p, "
        "stream=s).print_stats(); print('function calls' in s.getvalue())"
    ),
    "subprocess imported only": (
        "import subprocess, multiprocessing, os\n"
        "print(multiprocessing.cpu_count() > 0, subprocess.PIPE)"
    ),
    "uname": (
        "import os\n"
        "print(os.uname().sysname, os.getuid() >= 0, os.sep, os.linesep, "
        "os.path.expanduser('~') != '')"
    ),
    "glob and shutil": (
        "import glob, os, shutil\n"
        "os.mkdir('d'); open('d/f', 'w').close(); shutil.copy('d/f', 'd/g')\n"
        "print(sorted(glob.glob('d/*'))); shutil.rmtree('d')"
    ),
    "zoneinfo utc": (
        "import datetime\n"
        "print(datetime.datetime.now(datetime.timezone.utc).tzinfo, datetime.timezone.utc)"
    ),
    "zoneinfo": (
        "from datetime import datetime, timezone\n"
        "from zoneinfo import ZoneInfo, available_timezones\n"
        "t = datetime(2024, 7, 1, 12, tzinfo=timezone.utc)\n"
        "print([str(t.astimezone(ZoneInfo(z))) for z in ('Europe/Stockholm', 'Asia/Tokyo', "
        "'America/New_York', 'UTC')], 'Asia/Kolkata' in available_timezones())"
    ),
    "no such zone": "from zoneinfo import ZoneInfo\nZoneInfo('Mars/Olympus')",
    "memory in hundreds of MiB": (
        "x = bytearray(300 << 20)\nx[::4096] = b'a' * len(x[::4096])\nprint(len(x))"
    ),
}

OUTPUTS = {case.title: case.tests[0][1].encode() for case in _STORED if case.fn_name is None}
"""What plain Python prints of the yardstick's programs, and ends with exit code 0."""
_OWN = {**READING, **NAMED, **WRITING, **ENDING, **SHAPE, **LIBRARY}
PROGRAMS = {case.title: case.code for case in _STORED if case.title in OUTPUTS} | _OWN

CALLS = {case.title.removeprefix("call: "): case.code for case in _STORED if case.fn_name} | {
    "state of the module": (
        "out = []\ndef solve(a, k):\n    out.extend(x * k for x in a)\n    return out"
    ),
    "global counter": (
        "count = 0\n"
        "class Solution:\n"
        "    def solve(self, a, k):\n"
        "        global count\n"
        "        count += 1\n"
        "        return [x * k * count for x in a]"
    ),
    "method names of star imports": (
        "class Solution:\n"
        "    def count(self, x): return x\n"
        "    def search(self, x): return self.count(x)\n"
        "    def product(self, a, k): return [self.search(x) * k for x in a]\n"
        "    def solve(self, a, k): return self.product(a, k)"
    ),
    "default arguments": (
        "class Solution:\n"
        "    def solve(self, a, k, depth=0, memo=None): return [x * k for x in a] if depth "
        "else self.solve(a, k, 1)"
    ),
    "star arguments": "def solve(*args, **kwargs):\n    a, k = args\n    return [x * k for x in a]",
    "recursion deeper than usual": (
        "class Solution:\n"
        "    def solve(self, a, k):\n"
        "        def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "        return [x * k for x in a] if f(20000) == 20000 else []"
    ),
    "recursion limit set": (
        "import sys\n"
        "sys.setrecursionlimit(10 ** 6)\n"
        "def f(n): return 0 if n == 0 else 1 + f(n - 1)\n"
        "def solve(a, k): return [x * k for x in a] if f(60000) else []"
    ),
    "argument changed and returned": (
        "def solve(a, k):\n    for i in range(len(a)): a[i] *= k\n    return a"
    ),
    "argument grown": (
        "def solve(a, k):\n"
        "    a.append(0)\n"
        "    a.pop()\n"
        "    a[:] = [x * k for x in a]\n"
        "    return a"
    ),
    "limit on digits": (
        "import sys\n"
        "sys.set_int_max_str_digits(0)\n"
        "def solve(a, k): return [x * k for x in a] if len(str(10 ** 5000)) == 5001 else []"
    ),
    "names of its module": (
        "import sys\n"
        "def solve(a, k): return [x * k for x in a] if __name__ in sys.modules and "
        "sys.modules[__name__].solve is solve else []"
    ),
    "copy of the argument": "def solve(a, k): return [x * k for x in copy.deepcopy(a)]",
}
"""Function-call programs: `solve([1, 2], 3)` is `[3, 6]`."""

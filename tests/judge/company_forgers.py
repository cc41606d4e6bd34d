"""Programs that try to tell the tests of a shared process apart, or company from a process alone.

Each sets `is_later` if it takes its test for one behind another in the same process, and leaves
what a later one may find. `answering` makes it answer by that. Names say what each one tries.
"""

_MARKED = """{setup}
is_later = bool({found})
try:
    {leave}
except OSError: pass
"""
_OPEN = "import os\ndef size(n):\n    try: return os.fstat(n).st_size\n    except OSError: return 0"
"""Defines the size of a descriptor's file: 0 where none is open."""


def _marked(setup: str, found: str, leave: str) -> str:
    """Return a program that looks for a mark, and leaves it."""
    return _MARKED.format(setup=setup, found=found, leave=leave.replace("\n", "\n    "))


def answering(forger: str, first: str, later: str) -> str:
    """Return the program that prints one expression in a first test, and another in later ones."""
    return f"{forger}\nprint({later} if is_later else {first})\n"


LIBRARY = {
    "an attribute of a module in C": _marked(
        "import math", "hasattr(math, 'mark')", "math.mark = 1"
    ),
    "a name among the builtins": _marked(
        "import builtins", "hasattr(builtins, 'mark')", "builtins.mark = 1"
    ),
    "an attribute of a built-in type": _marked(
        "import gc\nnames = gc.get_referents(str.__dict__)[0]",
        "'mark' in names",
        "names['mark'] = 1",
    ),
    "an entry in place of an imported module": _marked(
        "import sys",
        "'mark' in sys.modules",
        "sys.modules.pop('textwrap', None)\nsys.modules['mark'] = sys",
    ),
    "a search function of codecs": _marked(
        "import codecs\ndef find(name): return codecs.lookup('ascii') if name == 'mark' else None\n"
        "def knows():\n    try: return codecs.lookup('mark')\n    except LookupError: return None",
        "knows()",
        "codecs.register(find)",
    ),
    "a handler of decoding errors": _marked(
        "import codecs\ndef knows():\n    try: return codecs.lookup_error('mark')\n"
        "    except LookupError: return None",
        "knows()",
        "codecs.register_error('mark', len)",
    ),
    "a class that is registered with numbers": _marked(
        "import numbers", "issubclass(str, numbers.Number)", "numbers.Number.register(str)"
    ),
    "a way to copy integers": _marked(
        "import copyreg", "int in copyreg.dispatch_table", "copyreg.pickle(int, str)"
    ),
    "the context of all decimals": _marked(
        "import decimal", "decimal.getcontext().prec == 7", "decimal.DefaultContext.prec = 7"
    ),
    "traps of the extended context": _marked(
        "import decimal", "decimal.ExtendedContext.prec == 7", "decimal.ExtendedContext.prec = 7"
    ),
    "a generator put in random's place": _marked(
        "import random",
        "random._inst.__class__.__name__ == 'Mark'",
        "class Mark(random.Random): pass\nrandom._inst = Mark(0)",
    ),
    "what re remembers": _marked(
        "import re", "any('mark' in str(key) for key in re._cache)", "re.compile('mark')"
    ),
    "lines of a source that linecache holds": _marked(
        "import linecache",
        "'mark' in linecache.cache",
        "linecache.cache['mark'] = (1, None, [], '')",
    ),
    "a filter of warnings": _marked(
        "import warnings",
        "len(warnings.filters) > 40",
        "warnings.filters += [warnings.filters[0]] * 40",
    ),
    "the level of a logger": _marked(
        "import logging",
        "logging.getLogger('mark').level == 7",
        "logging.getLogger('mark').setLevel(7)",
    ),
    "the locale": _marked(
        "import locale",
        "locale.setlocale(locale.LC_NUMERIC) == 'POSIX' or hasattr(locale, 'mark')",
        "locale.mark = locale.setlocale(locale.LC_NUMERIC, 'POSIX')",
    ),
    "an overload in a library's register": _marked(
        "import functools, json\nf = json.dumps",
        "hasattr(f, '__wrapped__')",
        "json.dumps = functools.wraps(f)(lambda *a: f(*a))",
    ),
    "a variable of the context": _marked(
        "import contextvars",
        "any(v.name == 'mark' for v in contextvars.copy_context())",
        "contextvars.ContextVar('mark').set(1)",
    ),
    "an attribute of the thread": _marked(
        "import threading\nme = threading.current_thread()", "hasattr(me, 'mark')", "me.mark = 1"
    ),
    "the event loop": _marked(
        "import asyncio.events as e\np = e._event_loop_policy",
        "getattr(e, '_event_loop_policy') is not None",
        "e._event_loop_policy = 1",
    ),
}
"""State of the library: what no test puts right but the process ends with it."""

INTERPRETER = {
    "thresholds of the garbage collector": _marked(
        "import gc", "gc.get_threshold()[1] == 77", "gc.set_threshold(700, 77, 10)"
    ),
    "a callback of the garbage collector": _marked(
        "import gc", "gc.callbacks", "gc.callbacks.append(lambda phase, info: None)"
    ),
    "collections that were made": _marked(
        "import gc", "gc.get_stats()[0]['collections'] > 900", "for _ in range(950): gc.collect(0)"
    ),
    "a trace function": _marked("import sys", "sys.gettrace()", "sys.settrace(lambda *a: None)"),
    "a profile function of new threads": _marked(
        "import threading", "threading._profile_hook", "threading.setprofile(lambda *a: None)"
    ),
    "an audit hook that answers": _marked(
        "import sys\nbox = []\nsys.audit('mark.asked', box)\n"
        "def hook(event, given):\n    if event == 'mark.asked': given[0].append(1)",
        "box",
        "sys.addaudithook(hook)",
    ),
    "a finder of imports": _marked(
        "import sys", "any(f is int for f in sys.meta_path)", "sys.meta_path.append(int)"
    ),
    "a hook for what cannot be raised": _marked(
        "import sys", "sys.unraisablehook is len", "sys.unraisablehook = len"
    ),
    "how often threads switch": _marked(
        "import sys", "sys.getswitchinterval() > 1", "sys.setswitchinterval(7.0)"
    ),
    "a class that an object of C keeps alive": _marked(
        "import weakref, math\nnames = [c.__name__ for c in Exception.__subclasses__()]",
        "'Mark' in names",
        "class Mark(Exception): pass\nmath.keeps = weakref.ref(math.gcd, lambda r, c=Mark: c)",
    ),
    "an object that comes back as it ends": _marked(
        "import math\nclass End:\n    def __del__(self): math.back = self",
        "hasattr(math, 'back')",
        "End()",
    ),
    "an exception that ends in the next test": _marked(
        "import sys, math\nclass Late(Exception):\n    def __del__(self, m=math): m.late = 1",
        "hasattr(math, 'late')",
        "e = Late()\ne.self = e\ndel e",
    ),
    "a function that runs at the end": _marked(
        "import atexit, math",
        "hasattr(math, 'ended')",
        "atexit.register(setattr, math, 'ended', 1)",
    ),
    "a finalizer that runs at the end": _marked(
        "import weakref, sys, math\nclass A: pass\na = A()",
        "hasattr(math, 'final')",
        "weakref.finalize(a, setattr, math, 'final', 1)",
    ),
    "a small integer that was changed in memory": _marked(
        "import ctypes\nplace = ctypes.c_ssize_t.from_address(id(-5))",
        "place.value > 1 << 40",
        "place.value = 1 << 41",
    ),
    "the state of C's random numbers": _marked(
        "import ctypes\nc = ctypes.CDLL(None)", "c.rand() != 1804289383", "c.srand(7)"
    ),
    "the environment of C": _marked(
        "import ctypes\nc = ctypes.CDLL(None)\nc.getenv.restype = ctypes.c_char_p",
        "c.getenv(b'MARK')",
        "c.setenv(b'MARK', b'1', 1)",
    ),
}
"""State of the interpreter and of C."""

KERNEL = {
    "the mask of new files": _marked("import os\nold = os.umask(0o77)", "old == 0o77", "pass"),
    "the folder that it is in": _marked("import os", "os.getcwd() == '/'", "os.chdir('/')"),
    "a file in the folder": _marked(
        "import os", "os.path.exists('/tmp/mark')", "open('/tmp/mark', 'w').close()"
    ),
    "a handler of a signal": _marked(
        "import signal",
        "signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN",
        "signal.signal(signal.SIGUSR1, signal.SIG_IGN)",
    ),
    "a signal that is blocked": _marked(
        "import signal",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [])",
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])",
    ),
    "a timer that runs on": _marked(
        "import signal",
        "signal.getitimer(signal.ITIMER_REAL)[0]",
        "signal.setitimer(signal.ITIMER_REAL, 900)",
    ),
    "a lowered limit": _marked(
        "import resource as r",
        "r.getrlimit(r.RLIMIT_STACK)[0] == 7 << 20",
        "r.setrlimit(r.RLIMIT_STACK, (7 << 20, r.getrlimit(r.RLIMIT_STACK)[1]))",
    ),
    "processor time that was burnt": _marked(
        "import time", "time.process_time() > 0.004", "while time.process_time() < 0.006: pass"
    ),
    "pages that were touched": _marked(
        "import resource as r",
        "r.getrusage(0).ru_minflt > 1000",
        "x = bytearray(3 << 20)\nx[::4096] = x[::4096]",
    ),
    "the most memory that was held": _marked(
        "import resource as r", "r.getrusage(0).ru_maxrss > 24 << 10", "bytearray(b'x') * (8 << 20)"
    ),
    "numbers of threads": _marked(
        "import _thread, os\nbox = []\n"
        "_thread.start_new_thread(lambda: box.append(_thread.get_native_id()), ())\n"
        "while not box: pass",
        "box[0] - os.getpid() > 1",
        "pass",
    ),
    "numbers of processes": _marked("import os", "os.getpid() % 12", "pass"),
    "numbers of new pipes": _marked(
        "import os\nends = os.pipe()", "os.fstat(ends[0]).st_ino % 12", "pass"
    ),
    "numbers of new files": _marked(
        "import os\nopen('/tmp/a', 'w').close()", "os.stat('/tmp/a').st_ino % 12", "pass"
    ),
    "the time at which the folder was changed": _marked(
        "import os", "os.fstat(0).st_mtime - os.stat('/tmp').st_mtime < 0.5", "os.mkdir('/tmp/a')"
    ),
    "a thread that threading does not know": _marked(
        "import _thread, time",
        "_thread._count()",
        # A thread counts once it runs: the next test may come before.
        "_thread.start_new_thread(time.sleep, (9,))\nwhile not _thread._count(): time.sleep(0.001)",
    ),
    "the flags of stdout": _marked(
        "import fcntl, os",
        "fcntl.fcntl(1, fcntl.F_GETFL) & os.O_NONBLOCK",
        "fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK)",
    ),
    "the times of stderr": _marked("import os", "os.fstat(2).st_atime == 7", "os.utime(2, (7, 7))"),
    "the mode of stdin": _marked("import os", "os.fstat(0).st_mode & 1", "os.fchmod(0, 0o777)"),
    "a descriptor that is left open": _marked(
        "import os\ndef is_open(n):\n    try: return os.fstat(n)\n    except OSError: return None",
        "is_open(50)",
        "os.dup2(0, 50)",
    ),
    "a socket that holds a byte": _marked(
        "import os, socket\n"
        "def peek(n):\n    try: return os.read(n, 1)\n    except OSError: return b''",
        "peek(51)",
        "a, b = socket.socketpair()\na.send(b'xx')\nos.dup2(b.fileno(), 51)",
    ),
    "a file in memory": _marked(
        _OPEN,
        "size(52)",
        "m = os.memfd_create('m')\nos.write(m, b'x')\nos.dup2(m, 52)",
    ),
}
"""State that the kernel keeps of a process, or for a sandbox."""

_FIND = "import gc\nfound = [o for o in gc.get_objects() if type(o).__name__ == {name!r}]"
RUNNER = {
    "what was written of tests before": _marked(_OPEN, "size(5)", "pass"),
    "where the inputs are read": _marked(
        "import os\ndef place():\n    try: return os.lseek(4, 0, 1)\n    except OSError: return 0",
        "place() == 7",
        "os.lseek(4, 7, 0)",
    ),
    "the inputs that are still to come": _marked(
        _FIND.format(name="generator")
        + "\nframes = [o.gi_frame for o in found if o.gi_frame]\nfirst = 13 * 8",
        "any(f.f_locals.get('position', 0) > first + 4 for f in frames)",
        "pass",
    ),
    "a question of its own to the judge": _marked(
        "import os\ndef ask():\n    if not os.path.exists('/tmp/q') or not is_open(5): return 0\n"
        "    os.write(6, b'+')\n    return os.read(6, 1) == b'+'\n"
        "def is_open(n):\n    try: return os.fstat(n).st_size\n    except OSError: return 0",
        "ask()",
        "open('/tmp/q', 'w').close()",
    ),
    "the count that the runner keeps": _marked(
        _FIND.format(name="Batch"), "found and found[0]._num_done", "pass"
    ),
    "the writer of frames, replaced": (
        "import os, math\nis_later = False\n"
        "w = os.write\n"
        "def write(n, data):\n"
        "    if hasattr(math, 'wrote') and n == 5: data = data.replace(b'N', b'Y')\n"
        "    if n == 5: math.wrote = 1\n"
        "    return w(n, data)\n"
        "os.write = write"
    ),
    "the loader of programs, replaced": (
        "import marshal\nis_later = False\nold = marshal.loads\n"
        "def loads(data):\n    code, *rest = old(data)\n"
        "    return (compile('print(\"Y\")', code.co_filename, 'exec'), *rest)\n"
        "marshal.loads = loads"
    ),
    "the opener of streams, replaced": (
        "import _io, math\nis_later = hasattr(math, 'opened')\nold = _io.FileIO\n"
        "class FileIO(old):\n    def __init__(self, *a, **k):\n"
        "        math.opened = 1\n        super().__init__(*a, **k)\n"
        "_io.FileIO = FileIO"
    ),
    "a cut of stdout that does nothing": (
        "import os\nis_later = False\nos.ftruncate = lambda n, size: None\nos.lseek = lambda *a: 0"
    ),
    "a collector that counts": (
        "import gc, math\nis_later = hasattr(math, 'collected')\nold = gc.collect\n"
        "def collect(*a):\n    math.collected = 1\n    return old(*a)\n"
        "gc.collect = collect"
    ),
    "a process that does not end in time": _marked(
        "import time, math",
        "hasattr(math, 'mark')",
        "math.mark = 1\ntime.process_time = lambda: 0.0",
    ),
    "threads that are taken off the list": _marked(
        "import threading, time, math",
        "hasattr(math, 'mark')",
        "t = threading.Thread(target=time.sleep, args=(9,), daemon=True)\nt.start()\n"
        "threading._active.pop(t.ident)\nmath.mark = 1",
    ),
    "a thread that writes frames anew": (
        "import _thread, os, time\nis_later = False\n"
        "def run():\n"
        "    for _ in range(300):\n"
        "        try:\n"
        "            data = os.pread(5, 999, 0)\n"
        "            if len(data) > 12: os.pwrite(5, data[12:].replace(b'N', b'Y'), 12)\n"
        "        except OSError: pass\n"
        "        time.sleep(0.0002)\n"
        "_thread.start_new_thread(run, ())"
    ),
    "frames of tests before, written anew": (
        "import os\nis_later = False\n"
        "try:\n"
        "    data = os.pread(5, 999, 0)\n"
        "    os.pwrite(5, data[12:].replace(b'N', b'Y'), 12)\n"
        "except OSError: pass"
    ),
    "an end to the process at each test": (
        "import os\nis_later = False\n"
        "try:\n    is_later = int.from_bytes(os.pread(4, 8, 0), 'little') < 12\n"
        "except OSError: pass\n"
        "import time\n"
        "while is_later and time.process_time() < 0.11: pass"
    ),
}
"""What it sees of the batch's own objects and descriptors, or does to them."""

_IN_COMPANY = (
    "import os\ndef is_open(n):\n    try: return os.fstat(n)\n    except OSError: return 0\n"
)
_IN_COMPANY += "is_later = bool(is_open(6))\n"
_MARKED_IN_LATER = LIBRARY["an attribute of a module in C"]
# Threads take numbers from those of processes: the halves of 512 say what was found out.
_TELL = """import _thread, os
def number():
    box = []
    _thread.start_new_thread(lambda: box.append(_thread.get_native_id()), ())
    while not box: pass
    return box[0] % 512
def tell(is_found):
    while (number() > 255) != is_found: pass
def is_open(n):
    try: return os.fstat(n)
    except OSError: return 0
is_later = False
"""
COMPANY = {
    "descriptors of company": _IN_COMPANY,
    "how much company there is": _marked(_OPEN, "size(4) > 200", "pass"),
    "a failure in company": _IN_COMPANY + "1 / (not is_later)",
    "an exit from company": _IN_COMPANY + "if is_later: raise SystemExit(3)",
    "a word of its own before it leaves company": (
        _IN_COMPANY + "if is_later: os.write(5, b'\\0\\0' + bytes([2]) + bytes(7) + b'Y\\n')\n"
        "if is_later: os._exit(0)"
    ),
    "an end of the process in its second test": _MARKED_IN_LATER
    + "import os\nif is_later: os._exit(0)",
    "a kill in its second test": _MARKED_IN_LATER
    + "import os\nif is_later: os.kill(os.getpid(), 9)",
    "a signal that is late": (
        "import signal, os\nis_later = False\n"
        "def hear(*given):\n    global is_later\n    is_later = True\n"
        "if signal.getsignal(signal.SIGUSR2) is not signal.SIG_DFL:\n"
        "    signal.signal(signal.SIGUSR2, hear)\n    os.kill(os.getpid(), signal.SIGUSR2)\n"
        "signal.signal(signal.SIGUSR2, hear)"
    ),
    "the judge's own answer, told by numbers of processes": (
        _TELL + "if is_open(6):\n"
        "    if os.fstat(5).st_size:\n"
        "        os.write(6, b'+')\n"
        "        if os.read(6, 1) != b'+': tell(True)\n"
        "else:\n"
        "    is_later = os.getpid() % 512 > 255\n"
        "    if not is_later: tell(False)"
    ),
    "having been in company, told by numbers of processes": (
        _TELL + "if is_open(6): tell(True)\n"
        "else:\n"
        "    is_later = os.getpid() % 512 > 255\n"
        "    if not is_later: tell(False)"
    ),
    "having failed in company, told by numbers of processes": (
        _TELL + "if is_open(6):\n    tell(True)\n    os._exit(0)\n"
        "is_later = os.getpid() % 512 > 255\n"
        "if not is_later: tell(False)"
    ),
}
"""Those that tell company from a process alone, leave it, or ask in it what they answer outside."""

FORGERS = {**LIBRARY, **INTERPRETER, **KERNEL, **RUNNER, **COMPANY}

BY_CHANCE = frozenset(
    {
        "processor time that was burnt",
        "numbers of threads",
        "numbers of processes",
        "numbers of new pipes",
        "numbers of new files",
        "the judge's own answer, told by numbers of processes",
        "having been in company, told by numbers of processes",
        "having failed in company, told by numbers of processes",
    }
)
"""Those that go by what the load of the machine or other programs move.

What they answer is another thing in each judgement, so that one may be right in two of them by
chance. That is no second guess in one.
"""

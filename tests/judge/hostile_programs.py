"""Programs that try to do harm, to use up what a machine has,
to leave the sandbox or to reach other processes.

Each prints `contained` where it noticed that it could not, and `HARM ...` where it could; or it
ends in one of the outcomes named beside it. Most are the yardstick's, which other judges are asked
too: they are stored there alone, and edited there. Those here end by themselves only, or have
nothing to say. Safe to run only inside the sandbox.
"""

from microcoder.judge.core.types import Outcome
from microcoder.lab.yardstick.cases import load_suite

Hostile = tuple[tuple[Outcome, ...], str]
"""The outcomes that a program may have, and its source."""


class Ends(tuple[Outcome, ...]):
    """Outcomes that a program may have; called with its source they make a `Hostile`."""

    def __call__(self, code: str) -> Hostile:
        return self, code

    def __or__(self, other: tuple[Outcome, ...]) -> "Ends":
        return Ends((*self, *other))


CONTAINED = Ends([Outcome.ACCEPTED])
LIMIT = Ends([Outcome.TIME_LIMIT])
MEMORY = Ends([Outcome.MEMORY_LIMIT])
OUTPUT = Ends([Outcome.OUTPUT_LIMIT])
CRASH = Ends([Outcome.RUNTIME_ERROR])
WRONG = Ends([Outcome.WRONG_ANSWER])
COMPILE = Ends([Outcome.COMPILE_ERROR])
PROCESSES = Ends([Outcome.PROCESS_LIMIT])

_OTHERS: dict[str, Hostile] = {
    "stop itself": LIMIT(
        "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nimport time\ntime.sleep(100)"
    ),
    "thread that never ends": LIMIT(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "print('contained')"
    ),
    "excepthook that never ends": LIMIT("""
import sys
def spin(*_):
    while True: pass
sys.excepthook = spin
1 / 0
"""),
    "exit function that never ends": LIMIT("""
import atexit
@atexit.register
def spin():
    while True: pass
print("contained")
"""),
    "catastrophic regular expression": LIMIT("import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')"),
    "huge power": LIMIT("print(len(hex(9 ** 9 ** 9)))"),
    "fork by raw system calls": CONTAINED("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
got = [nr for nr, args in ((57, ()), (58, ()), (56, (17, 0, 0, 0, 0)), (435, (0, \
0))) if libc.syscall(nr, *args) >= 0]
print("HARM forked" if got else "contained")
"""),
    "take all memory": MEMORY("held = []\nwhile True: held.append(bytearray(b'x' * (8 << 20)))"),
    "flood stdout and forgive": OUTPUT("""
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    while True: os.write(1, b"x" * (1 << 20))
except OSError: pass
"""),
    "flood stderr": OUTPUT(
        "import sys\ntext = 'x' * (1 << 20)\nwhile True: sys.stderr.write(text)"
    ),
    "close standard streams": (CRASH | WRONG)("""
import os, sys
for number in (0, 1, 2): os.close(number)
for _ in range(5):
    try: os.open("/dev/null", os.O_RDWR)
    except OSError: pass
sys.stdin.close(); sys.stdout.close()
"""),
    "crash": CRASH("import ctypes\nctypes.string_at(0)"),
    "abort": CRASH("import os\nos.abort()"),
    "kill itself": CRASH("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"),
    "overflow the stack in C": (CRASH | LIMIT | MEMORY)("""
import sys
sys.setrecursionlimit(10 ** 9)
class A:
    def __getattr__(self, name): return getattr(self, name)
A().x
"""),
    "constant that takes all time to compile": (COMPILE | LIMIT | MEMORY)(
        "x = " + "+".join(["1"] * 200_000)
    ),
    "nesting that breaks the parser": COMPILE("x = " + "(" * 5000 + ")" * 5000),
    "claim a compile error": CRASH(
        "import sys\nsys.stderr.write('SyntaxError: invalid syntax')\nsys.exit(123)"
    ),
    "forge the protocol": WRONG(
        "import sys\nsys.stdout.write('R' + chr(0) * 33)\nsys.stderr.write('Y{}')"
    ),
    "a sparse standard output": WRONG("import os\nos.ftruncate(1, 16 << 20)"),
    "shared anonymous memory": MEMORY("""
import mmap
held = []
for _ in range(12):
    held.append(mmap.mmap(-1, 16 << 20))
    for place in range(0, 16 << 20, 4096): held[-1][place] = 1
"""),
    "a list of a trillion": MEMORY("x = [0] * 10 ** 12"),
    "spend time in many threads at once": LIMIT("""
import hashlib, threading
def burn():
    while True: hashlib.sha256(bytes(1 << 20))
for _ in range(8): threading.Thread(target=burn).start()
"""),
    "keys that all collide": LIMIT("d = {}\nfor n in range(10 ** 6): d[n * (2 ** 61 - 1)] = n"),
    "a number as text": LIMIT(
        "import sys\nsys.set_int_max_str_digits(0)\nprint(len(str(1 << 10 ** 8)))"
    ),
    "wait for a lock it holds": LIMIT(
        "import threading\nlock = threading.Lock()\nlock.acquire(), lock.acquire()"
    ),
    "a storm of timer signals": LIMIT("""
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True: pass
"""),
    "broken bytecode": (CRASH | MEMORY | LIMIT)(
        "def f(): pass\n"
        "f.__code__ = f.__code__.replace(co_code=bytes([100, 255]) * 50, co_stacksize=1)\n"
        "f()\n"
        "1 / 0"
    ),
    "recursion without a limit": (MEMORY | LIMIT | CRASH)(
        "import sys\nsys.setrecursionlimit(2 ** 31 - 1)\ndef f(): f()\nf()"
    ),
    "text of a very deep list": (CRASH | MEMORY | LIMIT)(
        "import sys\n"
        "sys.setrecursionlimit(2 ** 31 - 1)\n"
        "x = []\n"
        "for _ in range(10 ** 6): x = [x]\n"
        "repr(x)\n"
        "1 / 0"
    ),
    "kill the process group": CRASH("import os, signal\nos.kill(0, signal.SIGKILL)"),
    "system calls of 32 bits": CRASH("""
import ctypes, mmap, os, platform
if platform.machine() != "x86_64": os.abort()
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000cd80c3"))  # getpid by int 0x80
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""),
    "free memory that is not its own": CRASH(
        "import ctypes\nctypes.CDLL(None).free(ctypes.c_void_p(0xDEAD0))"
    ),
}
_ENDS = {
    "take memory and forgive": MEMORY,
    "flood stdout": OUTPUT,
    "fill the disk": CONTAINED | OUTPUT,
    "right answer, wrong exit": CRASH,
    "null byte": COMPILE,
    "lone surrogate": COMPILE,
    "a sparse file of a terabyte": CONTAINED | OUTPUT,
    "space without writing": CONTAINED | OUTPUT,
    "a file without a name": CONTAINED | OUTPUT,
    "write to a map beyond the space": CONTAINED | CRASH | OUTPUT,
    "threads that start threads": CONTAINED | CRASH | PROCESSES | MEMORY,
    "a line without end": OUTPUT,
    "a bomb of compressed zeros": MEMORY,
    "a bomb of XML entities": CONTAINED | MEMORY,
    "broken marshalled data": CONTAINED | CRASH | MEMORY,
    "brackets that break the parser at run time": CONTAINED | CRASH | MEMORY,
    "holes of unlinked files, written through a map": CONTAINED | OUTPUT | CRASH,
    "threads while it is stopped": CONTAINED | CRASH | OUTPUT,
    "memory that is mapped again and again": CONTAINED | MEMORY | OUTPUT,
    "kill everybody": CONTAINED | CRASH,
    "dump core": CRASH,
    "flood a file of the scratch folder": CONTAINED | OUTPUT,
}
"""How stored ones may end that are not only contained:
what takes disk space may be stopped by the limit of output.
"""


def _read_stored() -> dict[str, Hostile]:
    found = {}
    for case in load_suite("isolation"):
        # What the yardstick puts before each makes any harm the same word; here all of it is said.
        code = case.code.split("**options)\n", 1)[1]
        found[case.title] = _ENDS.get(
            case.title, CONTAINED | OUTPUT if "def take(" in code else CONTAINED
        )(code)
    return found


HOSTILE: dict[str, Hostile] = {
    **{case.title: LIMIT(case.code) for case in load_suite("timeouts")},
    **_OTHERS,
    **_read_stored(),
}

HUNT_FOR_EXPECTED = """
import gc, os, sys
def walk():
    frame = sys._getframe()
    while frame is not None:
        yield from frame.f_locals.values()
        yield from frame.f_globals.values()
        frame = frame.f_back
    yield from gc.get_objects()
    for module in list(sys.modules.values()):
        yield from vars(module).values()
    yield from os.environ.values()
    yield from sys.argv
    yield from sys.orig_argv
backwards = "REWSNA-TERCES"
for thing in walk():
    if type(thing) is str and backwards in thing[::-1] and len(thing) < 40:
        print(thing)
        break
    if type(thing) is bytes and backwards.encode() in thing[::-1]:
        print(thing)
        break
else:
    for name in ("microcoder.judge.fleet.judge", "microcoder.judge.sandbox.server", "server", \
"zygote", "supervisor"):
        try:
            __import__(name)
            print("HARM imported", name)
        except ImportError:
            pass
    print("nothing")
"""

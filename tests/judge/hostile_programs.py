"""Programs that try to do harm.

Each prints `contained` where it noticed that it could not, and `HARM ...` where it could; or it ends in one of
the outcomes named beside it. Written for this suite; safe to run only inside the sandbox.
"""

from __future__ import annotations

from microcoder.judge.core.types import Outcome

Hostile = tuple[tuple[Outcome, ...], str]
"""The outcomes that a program may have, and its source."""


class Ends(tuple[Outcome, ...]):
    """Outcomes that a program may have; called with its source they make a `Hostile`."""

    def __call__(self, code: str) -> Hostile:
        return self, code

    def __or__(self, other: Ends) -> Ends:
        return Ends((*self, *other))


CONTAINED, LIMIT, MEMORY = Ends([Outcome.ACCEPTED]), Ends([Outcome.TIME_LIMIT]), Ends([Outcome.MEMORY_LIMIT])
OUTPUT, CRASH, WRONG = Ends([Outcome.OUTPUT_LIMIT]), Ends([Outcome.RUNTIME_ERROR]), Ends([Outcome.WRONG_ANSWER])
COMPILE, PROCESSES = Ends([Outcome.COMPILE_ERROR]), Ends([Outcome.PROCESS_LIMIT])

PROGRAMS: dict[str, Hostile] = {
    "endless loop": LIMIT("while True: pass"),
    "sleep": LIMIT("import time\nwhile True: time.sleep(1000)"),
    "stop itself": LIMIT("import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\nimport time\ntime.sleep(100)"),
    "thread that never ends": LIMIT(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(1000,)).start()\nprint('contained')"
    ),
    "catch every signal": LIMIT("""
import signal
def spin(*_):
    while True: pass
for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU, signal.SIGINT, signal.SIGPROF, signal.SIGXFSZ):
    signal.signal(number, spin)
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while True: pass
"""),
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
    "fork": CONTAINED("""
import os
count = 0
for _ in range(200):
    try: child = os.fork()
    except OSError: break
    if child == 0:
        import time
        time.sleep(30); os._exit(0)
    count += 1
print("HARM forked" if count else "contained")
"""),
    "fork by raw system calls": CONTAINED("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
got = [nr for nr, args in ((57, ()), (58, ()), (56, (17, 0, 0, 0, 0)), (435, (0, 0))) if libc.syscall(nr, *args) >= 0]
print("HARM forked" if got else "contained")
"""),
    "many threads": CONTAINED("""
import threading, time
threading.stack_size(65536)
count = 0
try:
    for _ in range(2000):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except RuntimeError: pass
print("HARM threads" if count > 500 else "contained")
"""),
    "execute a program": CONTAINED("""
import os, sys
for path in (sys.executable, "/bin/sh", "/usr/bin/env"):
    try: os.execv(path, [path, "-c", "print('HARM executed')"])
    except OSError: pass
try:
    import subprocess
    subprocess.run([sys.executable, "-c", "print('HARM')"])
except OSError: pass
print("contained")
"""),
    "take all memory": MEMORY("held = []\nwhile True: held.append(bytearray(b'x' * (8 << 20)))"),
    "take memory and forgive": MEMORY("""
held = []
try:
    while True: held.append(bytearray(b'x' * (8 << 20)))
except MemoryError: held = None
print("contained")
"""),
    "memory beside the heap": CONTAINED("""
import os
written = 0
try:
    for _ in range(50):
        f = os.memfd_create("x")
        for _ in range(16): written += os.write(f, bytes(1 << 20))
except OSError: pass
print("HARM memory" if written > 64 << 20 else "contained")
"""),
    "flood stdout": OUTPUT("text = 'x' * (1 << 20)\nwhile True: print(text)"),
    "flood stdout and forgive": OUTPUT("""
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    while True: os.write(1, b"x" * (1 << 20))
except OSError: pass
"""),
    "flood stderr": OUTPUT("import sys\ntext = 'x' * (1 << 20)\nwhile True: sys.stderr.write(text)"),
    "fill the disk": (CONTAINED | OUTPUT)("""
written = 0
try:
    for number in range(100):
        with open(f"/tmp/{number}", "wb") as f: written += f.write(b"x" * (4 << 20))
except OSError: pass
print("HARM disk" if written > 32 << 20 else "contained")
"""),
    "leave files for the next test": CONTAINED("""
import os
for depth in range(20):
    try:
        os.mkdir(f"/tmp/d{depth}"); open(f"/tmp/d{depth}/f", "w").write("HARM"); os.chmod(f"/tmp/d{depth}", 0)
        os.symlink("/etc/passwd", f"/tmp/l{depth}")
    except OSError: pass
try: os.chmod("/tmp", 0)
except OSError: pass
print("contained")
"""),
    "folders too deep to remove by path": CONTAINED("""
import os
try:
    for _ in range(200):
        os.mkdir("d" * 200); os.chdir("d" * 200)
except OSError: pass
print("contained")
"""),
    "kill the parent": CONTAINED("""
import os, signal
me = os.getpid()
for target in (os.getppid(), 1, 2, 3):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGSTOP, signal.SIGKILL):
        if target not in (0, me):
            try: os.kill(target, number)
            except OSError: pass
print("contained")
"""),
    "read files": CONTAINED("""
import os
found = []
for path in ("/etc/passwd", "/etc/shadow", "/root/.bashrc", "/root/.profile", "/work", "/proc/self/environ",
             "/proc/1/environ", "/proc/self/maps", "/sys", "/var/log", "/dev/kmsg", "/proc/cpuinfo"):
    try: found.append(os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(9))
    except OSError: pass
found = [item for item in found if item]
for folder, folders, files in os.walk("/"):
    found += [name for name in files + folders if "microcoder" in name or name in ("zygote.py", "shadow")]
    if folder.count("/") > 4: folders.clear()
print("HARM read " + repr(found) if found else "contained")
"""),
    "change the interpreter": CONTAINED("""
import os, sys
harm = []
for path in (os.__file__, os.path.dirname(os.__file__) + "/evil.pth", sys.executable, "/usr/lib/x", "/etc/x", "/x"):
    try: open(path, "r+b" if os.path.exists(path) else "wb"); harm.append(path)
    except OSError: pass
for change in (lambda: os.unlink(os.__file__), lambda: os.rename(os.__file__, "/tmp/x"),
               lambda: os.chmod(os.__file__, 0o777), lambda: os.utime(os.__file__)):
    try: change(); harm.append("changed")
    except OSError: pass
print(f"HARM {harm}" if harm else "contained")
"""),
    "open sockets": CONTAINED("""
import socket
got = []
for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK, socket.AF_PACKET):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
        try: got.append(socket.socket(family, kind))
        except OSError: pass
print("HARM sockets" if got else "contained")
"""),
    "odd system calls": CONTAINED("""
import ctypes, platform
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(256)
calls = [("ptrace", 101, (16, 1, 0, 0)), ("bpf", 321, (0, buffer, 72)), ("keyctl", 250, (0, -3, 0)),
         ("io_uring", 425, (1, buffer)), ("userfaultfd", 323, (1,)), ("perf", 298, (buffer, 0, -1, -1, 0)),
         ("personality", 135, (0x40000,)), ("unshare", 272, (0x10000000,)), ("setns", 308, (0, 0)),
         ("mount", 165, (b"none", b"/tmp", b"tmpfs", 0, 0)), ("chroot", 161, (b"/tmp",)),
         ("memfd_secret", 447, (0,)), ("seccomp", 317, (1, 0, 0)), ("inotify", 294, (0,)),
         ("shmget", 29, (0, 4096, 0o1600)), ("msgget", 68, (0, 0o1600)), ("setpriority", 141, (0, 0, -5)),
         ("process_vm_readv", 310, (1, buffer, 1, buffer, 1, 0)), ("pidfd_getfd", 438, (3, 0, 0)),
         ("setuid", 105, (0,)), ("kcmp", 312, (1, 1, 0, 0, 0))] if platform.machine() == "x86_64" else []
got = [name for name, number, arguments in calls if libc.syscall(number, *arguments) >= 0]
print(f"HARM {got}" if got else "contained")
"""),
    "signals through descriptors": CONTAINED("""
import fcntl, os
reader, writer = os.pipe()
harm = []
for command, value in ((fcntl.F_SETOWN, os.getppid()), (10, 9), (fcntl.F_NOTIFY, 1)):
    try: fcntl.fcntl(reader, command, value); harm.append(command)
    except OSError: pass
print(f"HARM {harm}" if harm else "contained")
"""),
    "inherited descriptors": CONTAINED("""
import os
opened = []
for number in range(3, 4096):
    try: os.fstat(number); opened.append(number)
    except OSError: pass
print(f"HARM {opened}" if opened else "contained")
"""),
    "change stdin": CONTAINED("""
import os
harm = []
for change in (lambda: os.write(0, b"666 666"), lambda: os.ftruncate(0, 0), lambda: os.pwrite(0, b"9", 0)):
    try: change(); harm.append(1)
    except OSError: pass
print(f"HARM {harm}" if harm else "contained")
"""),
    "raise limits": CONTAINED("""
import os, resource
harm = []
for name in ("AS", "FSIZE", "NOFILE", "CPU", "STACK", "CORE", "MEMLOCK"):
    which = getattr(resource, "RLIMIT_" + name)
    before = resource.getrlimit(which)
    try: resource.setrlimit(which, (-1, -1))
    except (ValueError, OSError): pass
    if resource.getrlimit(which) != before and before[1] != -1: harm.append(name)
for target in (os.getppid(), 1):
    try: resource.prlimit(target, resource.RLIMIT_AS, (1 << 20, 1 << 20)); harm.append(target)
    except (ValueError, OSError): pass
print(f"HARM {harm}" if harm else "contained")
"""),
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
    "right answer, wrong exit": CRASH("import sys\nprint('contained')\nsys.stdout.flush()\nsys.exit(1)"),
    "constant that takes all time to compile": (COMPILE | LIMIT | MEMORY)("x = " + "+".join(["1"] * 200_000)),
    "nesting that breaks the parser": COMPILE("x = " + "(" * 5000 + ")" * 5000),
    "null byte": COMPILE("print('contained')\0"),
    "lone surrogate": COMPILE("print('\ud800')"),
    "claim a compile error": CRASH("import sys\nsys.stderr.write('SyntaxError: invalid syntax')\nsys.exit(123)"),
    "forge the protocol": WRONG("import sys\nsys.stdout.write('R' + chr(0) * 33)\nsys.stderr.write('Y{}')"),
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
    for name in ("microcoder.judge.fleet.judge", "microcoder.judge.sandbox.server", "server", "zygote", "supervisor"):
        try:
            __import__(name)
            print("HARM imported", name)
        except ImportError:
            pass
    print("nothing")
"""

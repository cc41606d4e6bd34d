"""Programs that try to use up what a machine has: memory, descriptors, files, threads, time.

Written for this suite; safe to run only inside the sandbox. See `hostile_programs` for what they print.
"""

from __future__ import annotations

from microcoder.types import Outcome

from .hostile_programs import (  # pyrefly: ignore[missing-import]
    CONTAINED,
    CRASH,
    LIMIT,
    MEMORY,
    OUTPUT,
)

_TAKE = """
import array, mmap, os, socket, sys, threading, time
held, taken = [], 0
def take(number, size=4 << 20):
    global taken
    view = bytes(size)
    while size: done = os.write(number, view[:size]); size -= done; taken += done
    time.sleep(0.01)
def new(name="u"): return os.open(name, os.O_CREAT | os.O_RDWR, 0o600)
def judged(most=48 << 20): print("HARM disk" if taken > most else "contained")
"""
"""Takes space on the disk slowly, so that what exceeds the quota is seen to stay unnoticed for long."""


def _disk(code: str, *further: Outcome) -> tuple[tuple[Outcome, ...], str]:
    body = "".join(f"    {line}\n" for line in code.strip().splitlines())
    return (*CONTAINED, *OUTPUT, *further), f"{_TAKE}try:\n{body}except OSError: pass\njudged()\n"


DISK: dict[str, tuple[tuple[Outcome, ...], str]] = {
    "files unlinked while they are open": _disk("""
for _ in range(50):
    held.append(new()); os.unlink("u"); take(held[-1])
"""),
    "files written before they are unlinked": _disk("""
for _ in range(50):
    held.append(new()); take(held[-1]); os.unlink("u")
"""),
    "files renamed, then unlinked": _disk("""
for _ in range(50):
    held.append(new()); os.rename("u", "v"); os.unlink("v"); take(held[-1])
"""),
    "files that others are renamed over": _disk("""
for _ in range(50):
    held.append(new()); take(held[-1])
    new("v"); os.replace("v", "u")
"""),
    "files moved to another folder and unlinked there": _disk("""
os.mkdir("d")
for _ in range(50):
    held.append(new()); os.rename("u", "d/u"); os.unlink("d/u"); take(held[-1])
"""),
    "files in a folder that is moved, then emptied": _disk("""
for _ in range(50):
    os.mkdir("d"); held.append(new("d/u")); os.rename("d", "e"); os.unlink("e/u"); os.rmdir("e"); take(held[-1])
"""),
    "files in a folder that cannot be listed": _disk("""
os.mkdir("d", 0o300)
for number in range(50):
    held.append(new(f"d/{number}")); take(held[-1])
"""),
    "unlinked files of a folder that cannot be listed": _disk("""
os.mkdir("d", 0o300)
for number in range(50):
    held.append(new("d/u")); os.unlink("d/u"); take(held[-1])
"""),
    "unlinked files that nobody may read": _disk("""
os.umask(0o777)
for _ in range(50):
    held.append(new()); os.unlink("u"); take(held[-1])
"""),
    "unlinked files in flight": _disk("""
for _ in range(50):
    mine, theirs = socket.socketpair()
    number = new(); os.unlink("u"); socket.send_fds(mine, [b"x"], [number]); take(number); os.close(number)
    held += [mine, theirs]
"""),
    "unlinked files in flight, in sockets that are in flight": _disk("""
held = socket.socketpair()
for _ in range(50):
    mine, theirs = socket.socketpair()
    number = new(); os.unlink("u"); socket.send_fds(mine, [b"x"], [number]); take(number); os.close(number)
    socket.send_fds(held[0], [b"x"], [mine.fileno(), theirs.fileno()]); mine.close(); theirs.close()
"""),
    "unlinked files that are only mapped": _disk("""
for _ in range(50):
    number = new(); take(number); held.append(mmap.mmap(number, 4 << 20)); os.close(number); os.unlink("u")
"""),
    "unlinked files that are mapped to be read": _disk("""
for _ in range(50):
    number = new(); take(number)
    held.append(mmap.mmap(number, 4 << 20, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE))
    os.close(number); os.unlink("u")
"""),
    "unlinked files that are open to be read": _disk("""
for _ in range(50):
    number = new(); held.append(os.open("u", os.O_RDONLY)); take(number); os.close(number); os.unlink("u")
"""),
    "unlinked files behind handles": _disk("""
for _ in range(50):
    number = new(); held.append(os.open("u", os.O_PATH)); take(number); os.close(number); os.unlink("u")
"""),
    "holes of unlinked files, written through a map": _disk(
        """
for _ in range(50):
    number = new(); os.unlink("u"); os.ftruncate(number, 4 << 20)
    held.append(mmap.mmap(number, 4 << 20)); os.close(number)
    for place in range(0, 4 << 20, 4096): held[-1][place] = 1
    taken += 4 << 20; time.sleep(0.01)
""",
        *CRASH,
    ),
    "space reserved in unlinked files": _disk("""
for _ in range(50):
    held.append(new()); os.unlink("u"); os.posix_fallocate(held[-1], 0, 4 << 20); taken += 4 << 20; time.sleep(0.01)
"""),
    "space reserved in many files at once": _disk("""
held = [new(f"{number}") for number in range(50)]
for number in held: os.posix_fallocate(number, 0, 15 << 20); taken += 15 << 20
"""),
    "space reserved by many threads at once": _disk("""
held = [new(f"{number}") for number in range(50)]
def reserve(number):
    global taken
    try: os.posix_fallocate(number, 0, 15 << 20); taken += 15 << 20
    except OSError: pass
threads = [threading.Thread(target=reserve, args=(number,)) for number in held]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""),
    "files truncated and written anew through older descriptors": _disk("""
for _ in range(50):
    held.append(new()); take(held[-1]); os.unlink("u"); new("u"); os.truncate("u", 0); os.unlink("u")
"""),
    "a thread that unlinks what another one makes": _disk("""
def remove():
    while True:
        try: os.unlink("u")
        except OSError: pass
for _ in range(8): threading.Thread(target=remove, daemon=True).start()
for _ in range(50):
    held.append(new()); take(held[-1])
"""),
    "threads that make, rename and unlink at once": _disk("""
def churn(name):
    try:
        while True:
            number = new(name); held.append(number); os.rename(name, name + "x"); os.unlink(name + "x"); take(number)
    except OSError: pass
for number in range(8): threading.Thread(target=churn, args=(f"f{number}",), daemon=True).start()
for _ in range(40): time.sleep(0.025)
"""),
    "a thread that changes the name between question and call": _disk("""
import ctypes
libc, name = ctypes.CDLL(None), ctypes.create_string_buffer(b"x", 2)
def change():
    while True: name.value = b"x"; name.value = b"u"
threading.Thread(target=change, daemon=True).start()
for _ in range(50):
    held.append(new()); new("x"); take(held[-1]); libc.unlink(name); libc.unlink(name)
"""),
    "go on by one's own signals": _disk("""
import signal
def wake():
    while True: os.kill(os.getpid(), signal.SIGCONT)
for _ in range(3): threading.Thread(target=wake, daemon=True).start()
for _ in range(50):
    held.append(new()); os.unlink("u"); take(held[-1])
"""),
    "go on by a timer's signals": _disk("""
import ctypes, struct
libc, identity = ctypes.CDLL(None), ctypes.c_int()
event = ctypes.create_string_buffer(struct.pack("QiI48x", 0, 18, 0))
libc.syscall(222, 1, event, ctypes.byref(identity))
libc.syscall(223, identity, 0, struct.pack("qqqq", 0, 20_000, 0, 20_000), None)
for _ in range(50):
    held.append(new()); os.unlink("u"); take(held[-1])
"""),
    "entries without a name": (
        CONTAINED,
        """
import os
made = 0
try:
    for made in range(400): number = os.open("u", os.O_CREAT | os.O_RDWR); os.unlink("u"); os.dup2(number, 3 + made)
except OSError: pass
print("HARM entries" if made > 300 else "contained")
""",
    ),
    "a lock on the machine's files": (
        CONTAINED,
        """
import fcntl, os
got = []
for path in (os.__file__, "/usr/lib", os.path.dirname(os.__file__), "/dev/null", "."):
    for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        try: fcntl.flock(os.open(path, os.O_RDONLY), kind | fcntl.LOCK_NB); got.append(path)
        except OSError: pass
print("HARM", got) if got else print("contained")
""",
    ),
    "ask who has locked the machine's files": (
        CONTAINED,
        """
import fcntl, os, struct
got = []
with open(os.__file__) as file:
    for command in (fcntl.F_GETLK, 36):
        try: got.append(fcntl.fcntl(file, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)))
        except OSError: pass
print("HARM", got) if got else print("contained")
""",
    ),
    "leases on its own files": (
        CONTAINED,
        """
import fcntl, os
number, got = os.open("/tmp/u", os.O_CREAT | os.O_RDONLY), []
for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
    try: fcntl.fcntl(number, 1024, kind); got.append(kind)
    except OSError: pass
print("HARM", got) if got else print("contained")
""",
    ),
    "a larger pipe": (
        CONTAINED,
        """
import fcntl, os
got = []
for size in (1 << 12, 1 << 17, 1 << 20):
    try: got.append(fcntl.fcntl(os.pipe()[0], 1031, size))
    except OSError: pass
print("HARM", got) if got else print("contained")
""",
    ),
    "pipes in flight, all full": (
        CONTAINED,
        """
import os, socket
written = sent = 0
try:
    for _ in range(1000):
        mine, theirs = socket.socketpair()
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try:
            while True: written += os.write(writer, bytes(1 << 16))
        except BlockingIOError: pass
        socket.send_fds(mine, [b"x"], [reader, writer, theirs.fileno(), mine.fileno()])
        for number in (reader, writer): os.close(number)
        mine.close(), theirs.close()
except OSError: pass
print("HARM pipes" if written > 64 << 20 else "contained")
""",
    ),
    "threads while it is stopped": (
        (*CONTAINED, Outcome.RUNTIME_ERROR, *OUTPUT),
        """
import os, threading, time
def spawn():
    for number in range(2000):
        try: threading.Thread(target=time.sleep, args=(5,), daemon=True).start()
        except RuntimeError: return
threading.stack_size(65536)
threading.Thread(target=spawn, daemon=True).start()
for number in range(100):
    try: os.close(os.open("u", os.O_CREAT)); os.unlink("u")
    except OSError: pass
print("HARM threads" if threading.active_count() > 300 else "contained", flush=True)
os._exit(0)
""",
    ),
    "memory that is mapped again and again": (
        (*CONTAINED, *MEMORY, *OUTPUT),
        """
import mmap, os
number, held = os.open("/tmp/u", os.O_CREAT | os.O_RDWR), []
os.ftruncate(number, 8 << 20)
try:
    for _ in range(5000):
        held.append(mmap.mmap(number, 8 << 20))
        for place in range(0, 8 << 20, 1 << 16): held[-1][place] = 1
except OSError: pass
print("HARM maps" if len(held) > 1000 else "contained")
""",
    ),
}

RESOURCES: dict[str, tuple[tuple[Outcome, ...], str]] = {
    "open files until none are left": (
        CONTAINED,
        """
held = []
try:
    for _ in range(5000): held.append(open("/dev/null"))
except OSError: pass
print("HARM files" if len(held) > 500 else "contained")
""",
    ),
    "pipes of the largest size, all full": (
        CONTAINED,
        """
import fcntl, os
written = 0
try:
    for _ in range(1000):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        try: fcntl.fcntl(writer, 1031, 1 << 20)
        except OSError: pass
        try:
            while True: written += os.write(writer, bytes(1 << 16))
        except BlockingIOError: pass
except OSError: pass
print("HARM pipes" if written > 64 << 20 else "contained")
""",
    ),
    "socket pairs full of data": (
        CONTAINED,
        """
import socket
held, written = [], 0
try:
    for _ in range(1000):
        pair = socket.socketpair()
        held.append(pair)
        for end in pair:
            end.setblocking(False)
            try:
                while True: written += end.send(bytes(1 << 14))
            except BlockingIOError: pass
except OSError: pass
print("HARM sockets" if written > 64 << 20 else "contained")
""",
    ),
    "descriptors in flight": (
        CONTAINED,
        """
import os, socket
held, sent = [], 0
try:
    for _ in range(1000):
        mine, theirs = socket.socketpair()
        reader, writer = os.pipe()
        socket.send_fds(mine, [b"x"], [reader, writer, theirs.fileno(), mine.fileno()])
        sent += 4
        os.close(reader), os.close(writer), mine.close(), theirs.close()
except OSError: pass
print("HARM in flight" if sent > 2000 else "contained")
""",
    ),
    "event descriptors": (
        CONTAINED,
        """
import os
held = []
try:
    for _ in range(5000): held.append(os.eventfd(0))
except OSError: pass
print("HARM events" if len(held) > 500 else "contained")
""",
    ),
    "epoll inside epoll": (
        CONTAINED,
        """
import select
held = [select.epoll()]
try:
    for _ in range(5000):
        held.append(select.epoll())
        for other in held[:-1]: held[-1].register(other.fileno(), select.EPOLLIN)
except OSError: pass
print("HARM epoll" if len(held) > 500 else "contained")
""",
    ),
    "timers": (
        CONTAINED,
        """
import ctypes, platform
libc, made, identity = ctypes.CDLL(None), 0, ctypes.c_int()
if platform.machine() == "x86_64":
    while made < 5000 and libc.syscall(222, 1, None, ctypes.byref(identity)) == 0: made += 1
print("HARM timers" if made > 1000 else "contained")
""",
    ),
    "inodes of the scratch folder": (
        CONTAINED,
        """
made = 0
try:
    for made in range(20_000): open(f"/tmp/{made}", "x").close()
except OSError: pass
print("HARM inodes" if made > 1000 else "contained")
""",
    ),
    "a chain of folders": (
        CONTAINED,
        """
import os
depth = 0
try:
    for depth in range(2000): os.mkdir("d"); os.chdir("d")
except OSError: pass
print("HARM folders" if depth > 1000 else "contained")
""",
    ),
    "a tree of closed folders": (
        CONTAINED,
        """
import os
try:
    for a in range(12):
        for b in range(16): os.makedirs(f"{a}/{b}"); os.chmod(f"{a}/{b}", 0)
        os.chmod(f"{a}", 0)
except OSError: pass
print("contained")
""",
    ),
    "a sparse file of a terabyte": (
        (*CONTAINED, *OUTPUT),
        """
try:
    with open("/tmp/sparse", "wb") as f: f.truncate(1 << 40)
    print("HARM sparse")
except OSError: print("contained")
""",
    ),
    "a sparse standard output": ((Outcome.WRONG_ANSWER,), "import os\nos.ftruncate(1, 16 << 20)"),
    "space without writing": (
        (*CONTAINED, *OUTPUT),
        """
import os
taken = 0
try:
    for number in range(64):
        os.posix_fallocate(os.open(f"/tmp/{number}", os.O_CREAT | os.O_RDWR), 0, 4 << 20)
        taken += 4
except OSError: pass
print("HARM space" if taken > 32 else "contained")
""",
    ),
    "a file without a name": (
        (*CONTAINED, *OUTPUT),
        """
import os
written = 0
try:
    held = [os.open("/tmp", os.O_TMPFILE | os.O_RDWR) for _ in range(20)]
    for number in held:
        for _ in range(12): written += os.write(number, bytes(1 << 20))
except OSError: pass
print("HARM file" if written > 32 << 20 else "contained")
""",
    ),
    "write to a map beyond the space": (
        (*CONTAINED, *CRASH, *OUTPUT),
        """
import mmap, os
held = []
try:
    for number in range(3):
        f = os.open(f"/tmp/{number}", os.O_CREAT | os.O_RDWR)
        os.ftruncate(f, 15 << 20)
        held.append(mmap.mmap(f, 15 << 20))
        for place in range(0, 15 << 20, 4096): held[-1][place] = 1
    print("HARM map")
except OSError: print("contained")
""",
    ),
    "shared anonymous memory": (
        MEMORY,
        """
import mmap
held = []
for _ in range(12):
    held.append(mmap.mmap(-1, 16 << 20))
    for place in range(0, 16 << 20, 4096): held[-1][place] = 1
""",
    ),
    "address space that is never touched": (
        CONTAINED,
        """
import mmap
held = []
try:
    for _ in range(1000): held.append(mmap.mmap(-1, 64 << 20, prot=mmap.PROT_READ))
except OSError: pass
print("HARM space" if len(held) > 100 else "contained")
""",
    ),
    "lock memory": (
        CONTAINED,
        """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(1 << 20)
got = [f for f in (lambda: libc.mlockall(3), lambda: libc.mlock(buffer, 1 << 20)) if f() == 0]
print("HARM locked" if got else "contained")
""",
    ),
    "a list of a trillion": (MEMORY, "x = [0] * 10 ** 12"),
    "threads with large stacks": (
        CONTAINED,
        """
import threading, time
threading.stack_size(256 << 20)
count = 0
try:
    for _ in range(300):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except (RuntimeError, MemoryError): pass
print("HARM threads" if count > 100 else "contained")
""",
    ),
    "threads that start threads": (
        (*CONTAINED, *CRASH, Outcome.PROCESS_LIMIT, *MEMORY),
        """
import threading, time
threading.stack_size(65536)
def breed():
    try:
        for _ in range(2): threading.Thread(target=breed, daemon=True).start()
    except RuntimeError: pass
    time.sleep(60)
threading.Thread(target=breed, daemon=True).start()
time.sleep(0.05)
print("HARM threads" if threading.active_count() > 500 else "contained")
""",
    ),
    "spend time in many threads at once": (
        LIMIT,
        """
import hashlib, threading
def burn():
    while True: hashlib.sha256(bytes(1 << 20))
for _ in range(8): threading.Thread(target=burn).start()
""",
    ),
    "an endless loop inside C": (LIMIT, "import itertools\nsum(itertools.repeat(0))"),
    "keys that all collide": (LIMIT, "d = {}\nfor n in range(10 ** 6): d[n * (2 ** 61 - 1)] = n"),
    "a number as text": (LIMIT, "import sys\nsys.set_int_max_str_digits(0)\nprint(len(str(1 << 10 ** 8)))"),
    "wait for a lock it holds": (LIMIT, "import threading\nlock = threading.Lock()\nlock.acquire(), lock.acquire()"),
    "block every signal and spin": (
        LIMIT,
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass",
    ),
    "a storm of timer signals": (
        LIMIT,
        """
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True: pass
""",
    ),
    "a line without end": (OUTPUT, "while True: print('x' * 65536, end='')"),
    "a bomb of compressed zeros": (
        MEMORY,
        "import gzip\npart = gzip.compress(bytes(1 << 24), 1)\nprint(len(gzip.decompress(part * 10)))",
    ),
    "a bomb of XML entities": (
        (*CONTAINED, *MEMORY),
        """
import xml.etree.ElementTree as tree
names = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
try: tree.fromstring(f'<!DOCTYPE x [<!ENTITY e0 "ha">{names}]><x>&e12;</x>')
except tree.ParseError: pass
print("contained")
""",
    ),
    "broken marshalled data": (
        (*CONTAINED, *CRASH, *MEMORY),
        """
import marshal, random
for seed in range(2000):
    try: marshal.loads(random.Random(seed).randbytes(60))
    except Exception: pass
print("contained")
""",
    ),
    "broken bytecode": (
        (*CRASH, *MEMORY, *LIMIT),
        "def f(): pass\nf.__code__ = f.__code__.replace(co_code=bytes([100, 255]) * 50, co_stacksize=1)\nf()\n1 / 0",
    ),
    "recursion without a limit": (
        (*MEMORY, *LIMIT, *CRASH),
        "import sys\nsys.setrecursionlimit(2 ** 31 - 1)\ndef f(): f()\nf()",
    ),
    "text of a very deep list": (
        (*CRASH, *MEMORY, *LIMIT),
        "import sys\nsys.setrecursionlimit(2 ** 31 - 1)\nx = []\nfor _ in range(10 ** 6): x = [x]\nrepr(x)\n1 / 0",
    ),
    "brackets that break the parser at run time": (
        (*CONTAINED, *CRASH, *MEMORY),
        """
for text in ("(" * 10 ** 5, "[" * 199 + "]" * 199, "-" * 10 ** 5 + "1", "a." * 10 ** 5 + "a", "f'" + "{" * 10 ** 4):
    try: eval(text)
    except (SyntaxError, MemoryError, RecursionError, NameError): pass
print("contained")
""",
    ),
}

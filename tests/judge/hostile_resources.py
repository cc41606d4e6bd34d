"""Programs that try to use up what a machine has: memory, descriptors, files, threads, time.

Written for this suite; safe to run only inside the sandbox. See `hostile_programs` for what they print.
"""

from __future__ import annotations

from .hostile_programs import CONTAINED, CRASH, LIMIT, MEMORY, OUTPUT, PROCESSES, WRONG, Hostile  # pyrefly: ignore[missing-import]

RESOURCES: dict[str, Hostile] = {
    "open files until none are left": CONTAINED("""
held = []
try:
    for _ in range(5000): held.append(open("/dev/null"))
except OSError: pass
print("HARM files" if len(held) > 500 else "contained")
"""),
    "pipes of the largest size, all full": CONTAINED("""
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
"""),
    "socket pairs full of data": CONTAINED("""
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
"""),
    "descriptors in flight": CONTAINED("""
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
"""),
    "descriptors in flight, then idle and busy": CONTAINED("""
import os, socket, time
try:
    while True:
        mine, theirs = socket.socketpair()
        reader, writer = os.pipe()
        socket.send_fds(mine, [b"x"], [reader, writer, theirs.fileno(), mine.fileno()])
        os.close(reader), os.close(writer), mine.close(), theirs.close()
except OSError: pass
time.sleep(0.3)
start = time.process_time()
while time.process_time() - start < 0.5: pass
print("contained")
"""),
    "event descriptors": CONTAINED("""
import os
held = []
try:
    for _ in range(5000): held.append(os.eventfd(0))
except OSError: pass
print("HARM events" if len(held) > 500 else "contained")
"""),
    "epoll inside epoll": CONTAINED("""
import select
held = [select.epoll()]
try:
    for _ in range(5000):
        held.append(select.epoll())
        for other in held[:-1]: held[-1].register(other.fileno(), select.EPOLLIN)
except OSError: pass
print("HARM epoll" if len(held) > 500 else "contained")
"""),
    "timers": CONTAINED("""
import ctypes, platform
libc, made, identity = ctypes.CDLL(None), 0, ctypes.c_int()
if platform.machine() == "x86_64":
    while made < 5000 and libc.syscall(222, 1, None, ctypes.byref(identity)) == 0: made += 1
print("HARM timers" if made > 1000 else "contained")
"""),
    "inodes of the scratch folder": CONTAINED("""
made = 0
try:
    for made in range(20_000): open(f"/tmp/{made}", "x").close()
except OSError: pass
print("HARM inodes" if made > 1000 else "contained")
"""),
    "a chain of folders": CONTAINED("""
import os
depth = 0
try:
    for depth in range(2000): os.mkdir("d"); os.chdir("d")
except OSError: pass
print("HARM folders" if depth > 1000 else "contained")
"""),
    "a tree of closed folders": CONTAINED("""
import os
try:
    for a in range(12):
        for b in range(16): os.makedirs(f"{a}/{b}"); os.chmod(f"{a}/{b}", 0)
        os.chmod(f"{a}", 0)
except OSError: pass
print("contained")
"""),
    "a sparse file of a terabyte": (CONTAINED | OUTPUT)("""
try:
    with open("/tmp/sparse", "wb") as f: f.truncate(1 << 40)
    print("HARM sparse")
except OSError: print("contained")
"""),
    "a sparse standard output": WRONG("import os\nos.ftruncate(1, 16 << 20)"),
    "space without writing": (CONTAINED | OUTPUT)("""
import os
taken = 0
try:
    for number in range(64):
        os.posix_fallocate(os.open(f"/tmp/{number}", os.O_CREAT | os.O_RDWR), 0, 4 << 20)
        taken += 4
except OSError: pass
print("HARM space" if taken > 32 else "contained")
"""),
    "a file without a name": (CONTAINED | OUTPUT)("""
import os
written = 0
try:
    held = [os.open("/tmp", os.O_TMPFILE | os.O_RDWR) for _ in range(20)]
    for number in held:
        for _ in range(12): written += os.write(number, bytes(1 << 20))
except OSError: pass
print("HARM file" if written > 32 << 20 else "contained")
"""),
    "write to a map beyond the space": (CONTAINED | CRASH | OUTPUT)("""
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
"""),
    "shared anonymous memory": MEMORY("""
import mmap
held = []
for _ in range(12):
    held.append(mmap.mmap(-1, 16 << 20))
    for place in range(0, 16 << 20, 4096): held[-1][place] = 1
"""),
    "address space that is never touched": CONTAINED("""
import mmap
held = []
try:
    for _ in range(1000): held.append(mmap.mmap(-1, 64 << 20, prot=mmap.PROT_READ))
except OSError: pass
print("HARM space" if len(held) > 100 else "contained")
"""),
    "lock memory": CONTAINED("""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(1 << 20)
got = [f for f in (lambda: libc.mlockall(3), lambda: libc.mlock(buffer, 1 << 20)) if f() == 0]
print("HARM locked" if got else "contained")
"""),
    "a list of a trillion": MEMORY("x = [0] * 10 ** 12"),
    "threads with large stacks": CONTAINED("""
import threading, time
threading.stack_size(256 << 20)
count = 0
try:
    for _ in range(300):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        count += 1
except (RuntimeError, MemoryError): pass
print("HARM threads" if count > 100 else "contained")
"""),
    "threads that start threads": (CONTAINED | CRASH | PROCESSES | MEMORY)("""
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
"""),
    "spend time in many threads at once": LIMIT("""
import hashlib, threading
def burn():
    while True: hashlib.sha256(bytes(1 << 20))
for _ in range(8): threading.Thread(target=burn).start()
"""),
    "an endless loop inside C": LIMIT("import itertools\nsum(itertools.repeat(0))"),
    "keys that all collide": LIMIT("d = {}\nfor n in range(10 ** 6): d[n * (2 ** 61 - 1)] = n"),
    "a number as text": LIMIT("import sys\nsys.set_int_max_str_digits(0)\nprint(len(str(1 << 10 ** 8)))"),
    "wait for a lock it holds": LIMIT("import threading\nlock = threading.Lock()\nlock.acquire(), lock.acquire()"),
    "block every signal and spin": LIMIT(
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True: pass"
    ),
    "a storm of timer signals": LIMIT("""
import signal
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 1e-6, 1e-6)
while True: pass
"""),
    "a line without end": OUTPUT("while True: print('x' * 65536, end='')"),
    "a bomb of compressed zeros": MEMORY(
        "import gzip\npart = gzip.compress(bytes(1 << 24), 1)\nprint(len(gzip.decompress(part * 10)))"
    ),
    "a bomb of XML entities": (CONTAINED | MEMORY)("""
import xml.etree.ElementTree as tree
names = "".join(f'<!ENTITY e{n + 1} "{f"&e{n};" * 10}">' for n in range(12))
try: tree.fromstring(f'<!DOCTYPE x [<!ENTITY e0 "ha">{names}]><x>&e12;</x>')
except tree.ParseError: pass
print("contained")
"""),
    "broken marshalled data": (CONTAINED | CRASH | MEMORY)("""
import marshal, random
for seed in range(2000):
    try: marshal.loads(random.Random(seed).randbytes(60))
    except Exception: pass
print("contained")
"""),
    "broken bytecode": (CRASH | MEMORY | LIMIT)(
        "def f(): pass\nf.__code__ = f.__code__.replace(co_code=bytes([100, 255]) * 50, co_stacksize=1)\nf()\n1 / 0"
    ),
    "recursion without a limit": (MEMORY | LIMIT | CRASH)(
        "import sys\nsys.setrecursionlimit(2 ** 31 - 1)\ndef f(): f()\nf()"
    ),
    "text of a very deep list": (CRASH | MEMORY | LIMIT)(
        "import sys\nsys.setrecursionlimit(2 ** 31 - 1)\nx = []\nfor _ in range(10 ** 6): x = [x]\nrepr(x)\n1 / 0"
    ),
    "brackets that break the parser at run time": (CONTAINED | CRASH | MEMORY)("""
for text in ("(" * 10 ** 5, "[" * 199 + "]" * 199, "-" * 10 ** 5 + "1", "a." * 10 ** 5 + "a", "f'" + "{" * 10 ** 4):
    try: eval(text)
    except (SyntaxError, MemoryError, RecursionError, NameError): pass
print("contained")
"""),
}

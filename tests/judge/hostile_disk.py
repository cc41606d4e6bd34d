"""Programs that try to take more of the disk than they may, and to talk by what the kernel keeps about files.

Written for this suite; safe to run only inside the sandbox. See `hostile_programs` for what they print.
"""

from __future__ import annotations

from .hostile_programs import CONTAINED, CRASH, MEMORY, OUTPUT, Ends, Hostile  # pyrefly: ignore[missing-import]

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


def _disk(code: str, ends: Ends = CONTAINED | OUTPUT) -> Hostile:
    body = "".join(f"    {line}\n" for line in code.strip().splitlines())
    return ends(f"{_TAKE}try:\n{body}except OSError: pass\njudged()\n")


def _often(line: str) -> Hostile:
    return _disk(f"for _ in range(50):\n    {line}\n")


DISK: dict[str, Hostile] = {
    "files unlinked while they are open": _often('held.append(new()); os.unlink("u"); take(held[-1])'),
    "files written before they are unlinked": _often('held.append(new()); take(held[-1]); os.unlink("u")'),
    "files renamed, then unlinked": _often('held.append(new()); os.rename("u", "v"); os.unlink("v"); take(held[-1])'),
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
    "files in a folder that is moved, then emptied": _often(
        'os.mkdir("d"); held.append(new("d/u")); os.rename("d", "e"); os.unlink("e/u"); os.rmdir("e"); take(held[-1])'
    ),
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
    "unlinked files that are only mapped": _often(
        'number = new(); take(number); held.append(mmap.mmap(number, 4 << 20)); os.close(number); os.unlink("u")'
    ),
    "unlinked files that are mapped to be read": _disk("""
for _ in range(50):
    number = new(); take(number)
    held.append(mmap.mmap(number, 4 << 20, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE))
    os.close(number); os.unlink("u")
"""),
    "unlinked files that are open to be read": _often(
        'number = new(); held.append(os.open("u", os.O_RDONLY)); take(number); os.close(number); os.unlink("u")'
    ),
    "unlinked files behind handles": _often(
        'number = new(); held.append(os.open("u", os.O_PATH)); take(number); os.close(number); os.unlink("u")'
    ),
    "holes of unlinked files, written through a map": _disk(
        """
for _ in range(50):
    number = new(); os.unlink("u"); os.ftruncate(number, 4 << 20)
    held.append(mmap.mmap(number, 4 << 20)); os.close(number)
    for place in range(0, 4 << 20, 4096): held[-1][place] = 1
    taken += 4 << 20; time.sleep(0.01)
""",
        CONTAINED | OUTPUT | CRASH,
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
    "files truncated and written anew through older descriptors": _often(
        'held.append(new()); take(held[-1]); os.unlink("u"); new("u"); os.truncate("u", 0); os.unlink("u")'
    ),
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
    "entries without a name": CONTAINED("""
import os
made = 0
try:
    for made in range(400): number = os.open("u", os.O_CREAT | os.O_RDWR); os.unlink("u"); os.dup2(number, 3 + made)
except OSError: pass
print("HARM entries" if made > 300 else "contained")
"""),
    "a lock on the machine's files": CONTAINED("""
import fcntl, os
got = []
for path in (os.__file__, "/usr/lib", os.path.dirname(os.__file__), "/dev/null", "."):
    for kind in (fcntl.LOCK_EX, fcntl.LOCK_SH):
        try: fcntl.flock(os.open(path, os.O_RDONLY), kind | fcntl.LOCK_NB); got.append(path)
        except OSError: pass
print("HARM", got) if got else print("contained")
"""),
    "ask who has locked the machine's files": CONTAINED("""
import fcntl, os, struct
got = []
with open(os.__file__) as file:
    for command in (fcntl.F_GETLK, 36):
        try: got.append(fcntl.fcntl(file, command, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)))
        except OSError: pass
print("HARM", got) if got else print("contained")
"""),
    "leases on its own files": CONTAINED("""
import fcntl, os
number, got = os.open("/tmp/u", os.O_CREAT | os.O_RDONLY), []
for kind in (fcntl.F_RDLCK, fcntl.F_WRLCK):
    try: fcntl.fcntl(number, 1024, kind); got.append(kind)
    except OSError: pass
print("HARM", got) if got else print("contained")
"""),
    "a larger pipe": CONTAINED("""
import fcntl, os
got = []
for size in (1 << 12, 1 << 17, 1 << 20):
    try: got.append(fcntl.fcntl(os.pipe()[0], 1031, size))
    except OSError: pass
print("HARM", got) if got else print("contained")
"""),
    "pipes in flight, all full": CONTAINED("""
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
"""),
    "threads while it is stopped": (CONTAINED | CRASH | OUTPUT)("""
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
"""),
    "memory that is mapped again and again": (CONTAINED | MEMORY | OUTPUT)("""
import mmap, os
number, held = os.open("/tmp/u", os.O_CREAT | os.O_RDWR), []
os.ftruncate(number, 8 << 20)
try:
    for _ in range(5000):
        held.append(mmap.mmap(number, 8 << 20))
        for place in range(0, 8 << 20, 1 << 16): held[-1][place] = 1
except OSError: pass
print("HARM maps" if len(held) > 1000 else "contained")
"""),
}

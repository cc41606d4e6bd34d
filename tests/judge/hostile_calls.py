"""Programs that try to leave the sandbox, to reach other processes, or to change the machine.

Written for this suite; safe to run only inside the sandbox. See `hostile_programs` for what they print.
"""

from __future__ import annotations

from .hostile_programs import CONTAINED, CRASH, OUTPUT, Hostile  # pyrefly: ignore[missing-import]

_RAW = """
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
room = ctypes.create_string_buffer(4096)
harm = []
def attempt(name, number, *arguments):
    # The numbers are those of x86_64.
    if platform.machine() == "x86_64" and libc.syscall(number, *arguments) >= 0: harm.append(name)
def attempt_python(name, function, *arguments):
    try: function(*arguments)
    except (OSError, ValueError): return
    harm.append(name)
"""
_SAY = '\nprint(f"HARM {harm}" if harm else "contained")\n'


def _probe(body: str) -> Hostile:
    """Return a program whose attempts must all be refused."""
    return CONTAINED, _RAW + body.strip("\n") + _SAY


CALLS: dict[str, Hostile] = {
    "new namespaces": _probe("""
for flag in (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
    attempt(f"unshare {flag:#x}", 272, flag)
    attempt(f"clone {flag:#x}", 56, flag | 17, 0, 0, 0, 0)
    attempt(f"thread {flag:#x}", 56, flag | 0x10f00, 0, 0, 0, 0)
attempt("clone3", 435, room, 88)
for number in range(64): attempt("setns", 308, number, 0)
"""),
    "mounts": _probe("""
attempt("mount", 165, b"none", b"/tmp", b"tmpfs", 0, 0)
attempt("remount", 165, b"none", b"/", None, 32 | 4096, 0)
attempt("umount", 166, b"/tmp", 2)
attempt("pivot_root", 155, b".", b".")
attempt("open_tree", 428, -100, b"/", 1)
attempt("move_mount", 429, -100, b"/dev", -100, b"/tmp", 0)
attempt("fsopen", 430, b"tmpfs", 0)
attempt("mount_setattr", 442, -100, b"/", 0, room, 32)
"""),
    "change of root": _probe("""
attempt("chroot", 161, b"/tmp")
os.chdir("/")
for _ in range(20): os.chdir("..")
if not os.path.samefile(".", "/"): harm.append("left the root")
"""),
    "trace the parent": _probe("""
for target in (0, 1, 2, os.getppid()):
    for request in (0, 16, 0x4206):
        if target or not request: attempt(f"ptrace {request}", 101, request, target, 0, 0)
"""),
    "memory of the parent": _probe("""
class Part(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
mine, theirs = Part(ctypes.addressof(room), 8), Part(id(None), 8)
for target in (1, os.getppid()):
    attempt("process_vm_readv", 310, target, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
    attempt("process_vm_writev", 311, target, ctypes.byref(mine), 1, ctypes.byref(theirs), 1, 0)
    attempt("pidfd_open", 434, target, 0)
    attempt("migrate_pages", 256, target, 0, 0, 0)
    attempt("move_pages", 279, target, 0, 0, 0, 0, 0)
    attempt("kcmp", 312, target, os.getpid(), 0, 0, 0)
    attempt_python("mem", open, f"/proc/{target}/mem", "r+b")
for number in range(3, 64):
    attempt("pidfd_getfd", 438, number, 0, 0)
    attempt("process_madvise", 440, number, room, 1, 4, 0)
"""),
    "signal the process group": CONTAINED("""
import os, signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGTSTP):
    signal.signal(number, signal.SIG_IGN)
    for target in (0, -1, -os.getpgid(0)):
        try: os.kill(target, number)
        except OSError: pass
print("contained")
"""),
    "kill the process group": CRASH("import os, signal\nos.kill(0, signal.SIGKILL)"),
    "kill everybody": (CONTAINED | CRASH)(
        "import os, signal\ntry: os.kill(-1, signal.SIGKILL)\nexcept OSError: pass\nprint('contained')"
    ),
    "stop everybody": CONTAINED(
        "import os, signal\ntry: os.kill(-1, signal.SIGSTOP)\nexcept OSError: pass\nprint('contained')"
    ),
    "signals with data, by number of thread or descriptor": _probe("""
for target in (1, os.getppid()):
    attempt("rt_sigqueueinfo", 129, target, 10, room)
    attempt("rt_tgsigqueueinfo", 297, target, target, 10, room)
    attempt("pidfd_send_signal", 424, 3, 10, 0, 0)
"""),
    "become a daemon": _probe("""
attempt_python("fork", os.fork)
attempt_python("forkpty", os.forkpty)
attempt_python("setsid", os.setsid)
attempt_python("setpgid", os.setpgid, 0, 0)
attempt("vfork", 58)
attempt("subreaper", 157, 36, 1, 0, 0, 0)
"""),
    "priorities": _probe("""
attempt_python("nice", os.nice, -5)
attempt("setpriority", 141, 0, 0, -5)
attempt("sched_setscheduler", 144, 0, 1, room)
attempt("sched_setattr", 314, 0, room, 0)
attempt("ioprio_set", 251, 1, 0, 0)
attempt_python("affinity", os.sched_setaffinity, 0, [0])
attempt("set_mempolicy", 238, 0, 0, 0)
"""),
    "process controls": _probe("""
for option in (1, 4, 8, 22, 23, 24, 26, 28, 35, 36, 38, 41, 47, 53, 55, 59, 0x59616D61):
    attempt(f"prctl {option}", 157, option, 1, 0, 0, 0)
if libc.prctl(3): harm.append("dumpable")
"""),
    "become root": _probe("""
for name in ("setuid", "setgid", "setfsuid"):
    if getattr(libc, name)(0) == 0 and name != "setfsuid": harm.append(name)
attempt_python("setgroups", os.setgroups, [0])
attempt_python("setresuid", os.setresuid, 0, 0, 0)
attempt("capset", 126, room, room)
"""),
    "files by handle": _probe("""
attempt("name_to_handle_at", 303, -100, b"/", room, room, 0)
for number in (0, 1, 2): attempt("open_by_handle_at", 304, number, room, 0)
attempt("openat2", 437, -100, b"/", room, 24)
"""),
    "key rings": _probe("""
attempt("add_key", 248, b"user", b"x", b"y", 1, -3)
attempt("request_key", 249, b"user", b"x", None, -3)
attempt("keyctl", 250, 1, 0)
"""),
    "memory shared by System V and POSIX": _probe("""
attempt("shmget", 29, 0x7777, 1 << 20, 0o1666)
attempt("semget", 64, 0x7777, 10, 0o1666)
attempt("msgget", 68, 0x7777, 0o1666)
attempt("mq_open", 240, b"queue", 0o102, 0o666, 0)
attempt_python("/dev/shm", open, "/dev/shm/left", "w")
attempt("memfd_create", 319, b"x", 0)
attempt("memfd_secret", 447, 0)
"""),
    "doors into the kernel": _probe("""
attempt("io_uring_setup", 425, 8, room)
attempt("io_uring_register", 427, 3, 0, 0, 0)
attempt("io_setup", 206, 8, room)
attempt("userfaultfd", 323, 1)
attempt("bpf", 321, 0, room, 72)
attempt("perf_event_open", 298, room, 0, -1, -1, 0)
attempt("inotify_init", 253)
attempt("inotify_init1", 294, 0)
attempt("fanotify_init", 300, 0, 0)
attempt("seccomp listener", 317, 1, 8, room)
attempt("landlock", 444, room, 8, 0)
attempt("modify_ldt", 154, 1, room, 16)
attempt("vmsplice", 278, 1, room, 1, 0)
attempt("splice", 275, 0, 0, 1, 0, 1, 0)
attempt("tee", 276, 0, 1, 1, 0)
attempt("rseq", 334, room, 0, 0, 0)
attempt("uselib", 134, b"/tmp/x")
"""),
    "change the machine": _probe("""
attempt("reboot", 169, 0xfee1dead, 672274793, 0x1234567, 0)
attempt("settimeofday", 164, room, 0)
attempt("clock_settime", 227, 0, room)
attempt("adjtimex", 159, room)
attempt("sethostname", 170, b"evil", 4)
attempt("setdomainname", 171, b"evil", 4)
attempt("swapon", 167, b"/tmp", 0)
attempt("init_module", 175, room, 10, b"")
attempt("kexec_load", 246, 0, 0, 0, 0)
attempt("iopl", 172, 3)
attempt("ioperm", 173, 0, 1, 1)
attempt("acct", 163, b"/tmp/x")
attempt("quotactl", 179, 0, 0, 0, 0)
attempt("syslog", 103, 3, room, 100)
attempt("sync", 162)
for path in ("/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/sys/power/state", "/proc/self/oom_score_adj"):
    attempt_python(path, open, path, "w")
"""),
    "devices that should not be there": _probe("""
for name in ("mem", "kmsg", "port", "sda", "vda", "tty", "ptmx", "fuse", "kvm", "loop-control", "net/tun", "full"):
    attempt_python(name, open, f"/dev/{name}", "r+b", 0)
for kind in (0o60600, 0o20600): attempt_python("mknod", os.mknod, "/tmp/device", kind, os.makedev(1, 1))
"""),
    "modes and owners of devices": _probe("""
for path in ("/dev/null", "/dev/zero", "/dev/urandom"):
    attempt_python("chmod", os.chmod, path, 0)
    attempt_python("chown", os.chown, path, os.getuid(), -1)
    attempt_python("utime", os.utime, path)
    attempt_python("unlink", os.unlink, path)
    attempt_python("rename", os.rename, path, "/tmp/x")
    with open(path, "wb", 0) as f:
        attempt_python("fchmod", os.fchmod, f.fileno(), 0)
        f.write(b"harmless")
"""),
    "fixed folders": _probe("""
for name in ("/tmp", "/dev", "/usr", "/lib"):
    attempt_python("rmdir", os.rmdir, name)
    attempt_python("rename", os.rename, name, "/tmp/x")
attempt_python("mkdir", os.mkdir, "/x")
attempt_python("stdin", os.unlink, "/dev/stdin")
attempt_python("stdin", os.symlink, "/tmp/x", "/dev/x")
"""),
    "links in the scratch folder": CONTAINED("""
import os
for name, target in (("stdin", "/dev/null"), ("main.py", "/"), ("up", ".."), ("self", "self"), ("lost", "/none")):
    try: os.symlink(target, f"/tmp/{name}")
    except OSError: pass
for source in (os.__file__, "/dev/null"):
    try: os.link(source, "/tmp/hard"); print("HARM link")
    except OSError: pass
print("contained")
"""),
    "pipes in the scratch folder": _probe("""
attempt_python("mkfifo", os.mkfifo, "/tmp/fifo")
attempt_python("socket", os.mknod, "/tmp/socket", 0o140600)
"""),
    "file names of odd bytes": CONTAINED(r"""
import os
for name in (b"\xff\xfe", b"\n", b"-rf", b" ", b"*", b"x" * 255, "\u202e\ud83d\ude00".encode("utf-8", "surrogatepass")):
    try:
        os.mkdir(b"/tmp/" + name)
        open(b"/tmp/" + name + b"/" + name, "w").close()
    except OSError: pass
print("contained")
"""),
    "attributes that outlive the owner": _probe("""
try: f = open("/tmp/file", "w")
except OSError: f = open("/dev/null")
attempt_python("setxattr", os.setxattr, f.fileno(), "user.x", b"x")
attempt("ioctl", 16, f.fileno(), 0x40086602, room)
attempt("lease", 72, f.fileno(), 1024, 1)
attempt_python("chown", os.fchown, f.fileno(), 0, 0)
"""),
    "start a file that it wrote": _probe("""
try:
    with open("/tmp/script", "w") as f: f.write("#!/bin/sh\\necho HARM\\n")
    os.chmod("/tmp/script", 0o755)
except OSError: pass
attempt_python("execv", os.execv, "/tmp/script", ["script"])
names = (ctypes.c_char_p * 2)(b"x", None)
for path in (b"/tmp/script", b"/lib64/ld-linux-x86-64.so.2", b""):
    for flags in (0, 0x1000): attempt("execveat", 322, -100, path, names, None, flags)
"""),
    "load a library that it wrote": CONTAINED("""
import ctypes, glob, shutil
try:
    shutil.copyfile(glob.glob("/lib/*/libz.so.1")[0], "/tmp/z.so")
    ctypes.CDLL("/tmp/z.so")
    print("HARM loaded")
except (OSError, IndexError): print("contained")
"""),
    "sockets of every family": _probe("""
for family in range(48):
    for kind in (1, 2, 3, 5): attempt(f"family {family}", 41, family, kind, 0)
    if family != 1: attempt(f"pair {family}", 53, family, 1, 0, room)
"""),
    "ask the name server, call the local host": _probe("""
import socket
socket.setdefaulttimeout(1)
attempt_python("dns", socket.getaddrinfo, "example.com", 80)
for port in (22, 53, 80, 443, 2375, 8080): attempt_python("connect", socket.create_connection, ("127.0.0.1", port))
attempt_python("serve", socket.create_server, ("", 0))
"""),
    "dump core": CRASH("""
import os, resource
try: resource.setrlimit(resource.RLIMIT_CORE, (-1, -1))
except (OSError, ValueError): pass
print("HARM core" if resource.getrlimit(resource.RLIMIT_CORE)[0] > 1 else "contained", flush=True)
os.abort()
"""),
    "system calls of 32 bits": CRASH("""
import ctypes, mmap, os, platform
if platform.machine() != "x86_64": os.abort()
code = mmap.mmap(-1, 4096, prot=7)
code.write(bytes.fromhex("b814000000cd80c3"))  # getpid by int 0x80
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""),
    "system calls of the x32 kind": _probe("""
for number in (0, 1, 39, 57, 59, 101, 520, 545): attempt(f"x32 {number}", 0x40000000 + number, 0, 0, 0)
for number in range(451, 480): attempt(f"new {number}", number, 0, 0, 0, 0)
"""),
    "poison what the next test imports": CONTAINED("""
import builtins, ctypes, importlib, os, random, sys
for name in ("csv", "json", "math", "encodings", "site", "sitecustomize", "main"):
    try: open(f"/tmp/{name}.py", "w").write("print('HARM')")
    except OSError: pass
ctypes.memset(id(7) + 24, 1, 1)
builtins.print_before, builtins.print = print, lambda *a, **k: print_before("HARM")
sys.path.insert(0, "/tmp"); sys.path_importer_cache.clear(); sys.modules["csv"] = os
random.seed(1); sys.setrecursionlimit(10 ** 6); os.environ["PYTHONPATH"] = "/tmp"; os.umask(0o777)
print_before("contained")
"""),
    "free memory that is not its own": CRASH("import ctypes\nctypes.CDLL(None).free(ctypes.c_void_p(0xDEAD0))"),
    "flood a file of the scratch folder": (CONTAINED | OUTPUT)(
        "try:\n    with open('/tmp/x', 'wb') as f:\n        for _ in range(20): f.write(bytes(1 << 20))\n"
        "    print('HARM disk')\nexcept OSError: print('contained')"
    ),
}

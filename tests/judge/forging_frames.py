"""Forgeries that reach for the runner, its descriptors, other processes, or the program's next test."""

from __future__ import annotations

_RUNNER = """
import gc, os, sys
def runners():
    frame = sys._getframe()
    while frame is not None:
        yield frame.f_globals
        yield frame.f_locals
        frame = frame.f_back
"""
_RESULT = "b'R' + struct.pack('<iiQQQB', 0, 0, 1, 1, 1, 0)"


def _writes(frame: str) -> tuple[str, str]:
    """A function-call program that writes its own frame where results leave, when it is loaded."""
    return "function", f"import os\nos.ftruncate(3, 0)\nos.pwrite(3, {frame}, 0)\nos._exit(0)"


FRAMES: dict[str, tuple[str, str]] = {
    "an empty frame": _writes("b' '"),
    "a frame of True": _writes("b'true'"),
    "a frame of nan": _writes("b'NaN'"),
    "a frame of infinity": _writes("b'1e999'"),
    "a frame cut off": _writes('b\'{"int":"0x1da\''),
    "a frame without a body": _writes("b'{\"int\":null}'"),
    "a frame with two bodies": _writes('b\'{"int":"0x1dacb","float":"nan"}\''),
    "a frame of an unknown kind": _writes("b'{\"any\":[]}'"),
    "a frame with a negative length": _writes('b\'\\xff\\xff\\xff\\xff{"int":"0x1dacb"}\''),
    "a frame of a nested integer": _writes('b\'{"int":{"int":"0x1dacb"}}\''),
    "a frame of a tuple around the answer": _writes("b'{\"tuple\":[121547]}'"),
    "a frame of a set around the answer": _writes("b'{\"set\":[121547,42]}'"),
    "a frame nested by hundreds": _writes("b'[' * 300 + b']' * 300"),
    "a frame nested by tens of thousands": _writes("b'[' * 50_000 + b']' * 50_000"),
    "a frame nested by hundreds, in any order": (
        "rows",
        "import os\nos.pwrite(3, b'[' * 480 + b']' * 480, 0)\nos._exit(0)",
    ),
    "a frame of the largest size": _writes("b'[' + b'[],' * 5_000_000 + b'[]]'"),
    "a frame in another encoding": _writes("'[121547]'.encode('utf-16')"),
    "a frame of bytes that are no text": _writes("b'\"\\xff\\xfe\\xed\\xa0\\x80\"'"),
    "results on every descriptor": (
        "sum",
        f"""
import os, socket, struct
frames = ({_RESULT}, b"Y" + b'{{"missing": {{}}}}', b"C" + bytes(100), b"F")
for number in range(2, 256):
    for frame in frames:
        for send in (lambda: os.write(number, frame), lambda: os.pwrite(number, frame, 0),
                     lambda: socket.socket(fileno=os.dup(number)).send(frame), lambda: os.ftruncate(number, 0)):
            try: send()
            except (OSError, ValueError): pass
os.ftruncate(2, 0)
""",
    ),
    "results from the fork server's own objects": (
        "sum",
        _RUNNER
        + f"""
import socket, struct
for thing in gc.get_objects():
    if isinstance(thing, socket.socket):
        try: thing.send({_RESULT})
        except OSError: pass
for names in runners():
    for name in ("fork_server", "self"):
        server = names.get(name)
        if hasattr(server, "_control"):
            for act in (lambda: server._control.send({_RESULT}), server._receive, server._clear_namespace,
                        lambda: setattr(server, "_builds", True), lambda: server._limits.lift()):
                try: act()
                except Exception: pass
""",
    ),
    "a runner that is patched": (
        "sum",
        _RUNNER
        + """
for names in list(runners()):
    for name in ("finish", "_report", "guarded", "_flush", "_exit_code", "load_code", "wait_with_limits", "encode"):
        if name in names: names[name] = lambda *a, **k: 0
raise ValueError
""",
    ),
    "expected outputs in the heap": (
        "sum",
        _RUNNER
        + """
found = {value for names in runners() for value in names.values() if isinstance(value, (str, bytes, int))}
found |= {thing for thing in gc.get_objects() if type(thing) in (str, bytes, int)}
for thing in gc.get_objects():
    if type(thing) is dict: found |= {value for value in thing.values() if type(value) in (str, bytes, int)}
for wanted in ("121547", b"121547", "121547\\n", b"121547\\n", 121547):
    if wanted in found and wanted not in sys._getframe().f_code.co_consts: print("121547")
""",
    ),
    "expected outputs in referrers of the input": (
        "sum",
        "import gc, sys\ntext = input()\nfor thing in gc.get_referrers(text, sys.stdin):\n"
        "    for near in gc.get_referrers(thing):\n"
        "        for value in (list(near.values()) if type(near) is dict else near if type(near) is list else ()):\n"
        "            if str(value).strip().isdigit() and len(str(value)) == 6: print(value)",
    ),
    "expected outputs on every descriptor": (
        "sum",
        "import os\nfor number in (*range(3, 4096), 2, 1):\n    try: print(os.pread(number, 100, 0).decode())\n"
        "    except (OSError, ValueError): pass",
    ),
    "expected outputs in /proc": (
        "sum",
        """
import os
for process in ("self", "1", str(os.getppid()), "thread-self", "self/task/1"):
    for name in ("environ", "cmdline", "mem", "maps", "fd/3", "fd/4", "fd/5", "root/etc/passwd", "cwd", "stack"):
        try: print(open(f"/proc/{process}/{name}", "rb").read(100))
        except OSError: pass
print(*os.environ.values())
""",
    ),
    "expected outputs in modules and arguments": (
        "sum",
        "import sys\nfor module in list(sys.modules.values()):\n    for value in list(vars(module).values()):\n"
        "        if '121547' in str(value)[:20]: print('121547')\nprint(*sys.argv, *sys.orig_argv, *sys.path)",
    ),
    "expected outputs in other processes": (
        "sum",
        """
import ctypes, os
libc = ctypes.CDLL(None)
room = ctypes.create_string_buffer(4096)
for target in (1, 2, os.getppid()):
    libc.ptrace(16, target, 0, 0)
    libc.process_vm_readv(target, room, 1, room, 1, 0)
print(room.value.decode())
""",
    ),
    "a filter that makes failures successes": (
        "sum",
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "rules = ctypes.create_string_buffer(bytes.fromhex('0600000000000500'))\n"
        "class P(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]\n"
        "libc.prctl(38, 1, 0, 0, 0)\nlibc.prctl(22, 2, ctypes.byref(P(1, ctypes.addressof(rules))), 0, 0)\n1 / 0",
    ),
    "all descriptors taken": (
        "sum",
        "import os\nheld = []\ntry:\n    while True: held.append(os.dup(1))\nexcept OSError: pass\nos.write(1, b'0')",
    ),
    "a process left behind": (
        "sum",
        "import os\ntry:\n    if os.fork() == 0:\n        while True: os.write(1, b'42\\n')\nexcept OSError: print(0)",
    ),
    "a thread left behind": (
        "sum",
        "import os, threading\ndef late():\n    while True: os.pwrite(1, b'0', 0)\n"
        "threading.Thread(target=late, daemon=True).start()\nos._exit(0)",
    ),
    "answers kept from test to test": (
        "sum",
        """
import builtins, os, sys
text = input()
for path in ("/tmp/kept", os.path.dirname(os.__file__) + "/kept", "/dev/shm/kept"):
    try:
        if os.path.exists(path): print(open(path).read())
        open(path, "w").write("42")
    except OSError: pass
if hasattr(builtins, "kept"): print(builtins.kept)
builtins.kept = sys.modules["kept"] = "42"
os.environ["KEPT"] = "42"
""",
    ),
    "bytecode for the next test": (
        "sum",
        """
import marshal, os, sys
code = b"C" + marshal.dumps(compile("print(sum(map(int, input().split())))", "main.py", "exec"))
for number in range(1, 1024):
    for change in (lambda: os.pwrite(number, code, 0), lambda: os.ftruncate(number, len(code))):
        try: change()
        except OSError: pass
frame = sys._getframe()
while frame is not None:
    for name in ("test", "program", "source", "cache"):
        held = frame.f_locals.get(name)
        for number in (held, getattr(held, "cache", -1), getattr(held, "source", -1)):
            if type(number) is int and number > 2:
                try: os.pwrite(number, code, 0)
                except OSError: pass
    frame = frame.f_back
os.ftruncate(1, 0)
""",
    ),
    "an input that is changed": (
        "sum",
        """
import fcntl, mmap, os
for change in (lambda: os.pwrite(0, b"0 0", 0), lambda: os.ftruncate(0, 0), lambda: fcntl.fcntl(0, 1033, 0),
               lambda: mmap.mmap(0, 0, mmap.MAP_SHARED, mmap.PROT_WRITE), lambda: os.posix_fallocate(0, 0, 100)):
    try: change(); print("changed")
    except (OSError, ValueError): pass
os.lseek(0, 0, 2)
""",
    ),
    "the parent stopped": (
        "sum",
        "import os, signal\nfor target in (os.getppid(), 1, 0):\n    for number in (10, 12, 15, 19, 20, 23):\n"
        "        signal.signal(number, signal.SIG_IGN) if number != 19 else None\n"
        "        try: os.kill(target, number) if number != 19 or target else None\n        except OSError: pass\n",
    ),
}

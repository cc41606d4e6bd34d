"""One program of every kind that is judged or run, and how each must end, wherever it is.

Run as a script, `python -m judge.everything` in the folder `tests`, it prints what ended otherwise,
as JSON.
"""

import contextlib
import json
import os
import tempfile
from pathlib import Path

from microcoder.judge import Judge
from microcoder.judge.core.machine import lock_file
from microcoder.judge.core.types import Checker, Outcome, Problem, Program
from microcoder.judge.languages import LANGUAGES
from microcoder.judge.run import isolation
from microcoder.judge.run.executions import Invocation
from tests.judge.conftest import make_problem
from tests.judge.safety_suites import KINDS

_ADD = "a, b = map(int, open({!r}).read().split())\nprint(a + b)"
_CPP_FILES = """
#include <cstdio>
#include <fstream>
#include <iostream>
#include <thread>
int main() {
    int a, b;
    std::ifstream given("/dev/stdin");
    given >> a >> b;
    { std::ofstream kept("kept.txt"); kept << a + b; }
    std::ifstream again("kept.txt");
    int sum = 0;
    std::thread reader([&] { again >> sum; });
    reader.join();
    std::cout << sum << (std::remove("kept.txt") ? " left" : "") << std::endl;
}
"""
_FILES = """
import os, pathlib, shutil, sqlite3, tempfile
from concurrent.futures import ThreadPoolExecutor
assert os.listdir() == [] == os.listdir("/tmp"), os.listdir()
with open("/tmp/x", "w") as file: file.write("3")
assert os.path.exists("/tmp/x") and os.path.getsize("x") == 1 and os.listdir("/tmp") == ["x"]
os.makedirs("/tmp/a/b"); os.rename("/tmp/x", "/tmp/a/b/y"); os.symlink("/tmp/a", "/tmp/link")
assert pathlib.Path("/tmp/link/b/y").read_text() == "3"
assert [names for *_, names in os.walk("/tmp/a")] == [[], ["y"]]
for line in open("/tmp/a/b/y"): print(line)
with tempfile.TemporaryDirectory() as folder: open(f"{folder}/z", "x").close()
with tempfile.TemporaryFile() as file: file.write(b"x")
shutil.rmtree("/tmp/a"); os.chdir("/tmp"); os.remove("link")
for _ in range(12):
    with tempfile.TemporaryFile() as file: file.write(bytes(3 << 20)); file.seek(0); \
assert len(file.read()) == 3 << 20
for _ in range(40):
    with open("x", "wb") as file: os.remove("x"); file.write(bytes(1 << 20))
with sqlite3.connect("rows.db") as rows:
    rows.execute("create table numbers (n)")
    rows.executemany("insert into numbers values (?)", [(n,) for n in range(99)])
rows.close(); os.remove("rows.db")
def work(name):
    for _ in range(10):
        with open(name, "w") as file: file.write(name)
        os.replace(name, name + "-moved"); assert open(name + "-moved").read() == name; \
os.remove(name + "-moved")
with ThreadPoolExecutor(6) as pool: list(pool.map(work, [f"t{number}" for number in range(6)]))
assert os.listdir(os.getcwd()) == [], os.listdir()
"""
_OTHERS = """
import os
harm = []
def attempt(function, *arguments):
    try: function(*arguments)
    except OSError: return
    harm.append(function.__name__)
for path in (SECRET, os.path.dirname(SECRET)):
    attempt(open, path), attempt(open, path, "r+"), attempt(open, path + "x", "w"), \
attempt(os.listdir, path)
    attempt(os.open, path, os.O_RDONLY | os.O_TRUNC), attempt(os.open, path, os.O_TRUNC | os.O_RDWR)
    attempt(os.truncate, path, 0), attempt(os.chmod, path, 0), attempt(os.utime, path), \
attempt(os.mkdir, path + "x")
    attempt(os.rename, path, path + "x"), attempt(os.rename, path, "x"), attempt(os.link, path, "x")
    attempt(os.unlink, path), attempt(os.rmdir, path), attempt(os.symlink, "x", path + "x")
    attempt(os.setxattr, path, "user.x", b"x"), attempt(os.mkfifo, path + "x"), attempt(os.chown, \
path, -1, -1)
os.symlink(SECRET, "link")
attempt(open, "link"), attempt(os.chmod, "link", 0), attempt(os.truncate, "link", 0)
for number in {1, os.getppid()}:
    for name in ("environ", "mem", "maps", "cmdline", "fd/0", "cwd", "root/etc/passwd", "stat"):
        attempt(open, f"/proc/{number}/{name}", "rb"), attempt(os.listdir, f"/proc/{number}")
for name in ("environ", "maps", "mem", "cmdline", "status", "mountinfo"): attempt(open, \
f"/proc/self/{name}", "rb")
print(harm or 3)
"""
_TESTLIB_CPP = """
#include <fstream>
int main(int, char** names) {
    std::ifstream output(names[2]), answer(names[3]);
    int a, b;
    return output >> a && answer >> b && a == b ? 0 : 1;
}
"""
_THREADS = """
import threading
gate = threading.Barrier(50)
threads = [threading.Thread(target=gate.wait) for _ in range(49)]
for thread in threads: thread.start()
gate.wait()
for round in range(5):
    more = [threading.Thread(target=int) for _ in range(100)]
    for thread in more: thread.start(); thread.join()
print(3)
"""
_MANY = "for n in range(200): open(f'{n}', 'w').close()\nprint(3)"
_OVER = "for n in range(300): open(f'{n}', 'w').close()\nprint(3)"
_GROW = """
for n in range(8): open(f"{n}", "w").close()
for n in range(8):
    with open(f"{n}", "r+b") as file: file.write(bytes(8 << 20))
import time
print(3)
"""
Job = tuple[Problem, Program, tuple[Outcome, ...]]
_WRONG = Outcome.WRONG_ANSWER


def jobs(secret: str) -> dict[str, Job]:
    """Return problem, program and allowed outcomes of each;
    `secret` is a file of whoever judges.
    """
    add = make_problem(("1 2\n", "3\n"))
    right = (Outcome.ACCEPTED,)
    cpp = make_problem(("1 2\n", "3\n"), language="cpp")
    checker = Checker(type="program", code=_TESTLIB_CPP, language="cpp", protocol="testlib")
    found: dict[str, Job] = {}
    for name, kind in KINDS.items():
        found[f"honest {name}"] = (kind.problem, kind.honest, right)
    found |= {
        "stdin by name": (add, Program(_ADD.format("/dev/stdin")), right),
        "stdin by number": (add, Program(_ADD.format(0)), right),
        "files": (add, Program(_FILES), right),
        "what is not its own": (add, Program(f"SECRET = {secret!r}\n{_OTHERS}"), right),
        "threads": (add, Program(_THREADS), right),
        "numpy": (add, Program("import numpy\nprint(numpy.array([1, 2]).sum())"), right),
        "many files": (add, Program(_MANY), right),
        "too many files": (add, Program(_OVER), (Outcome.RUNTIME_ERROR,)),
        "too much in files": (add, Program(_GROW), (Outcome.RUNTIME_ERROR, Outcome.OUTPUT_LIMIT)),
        "C++ with files and a thread": (cpp, Program(_CPP_FILES, "cpp"), right),
        "C++ that does not compile": (
            cpp,
            Program("int main() { return x; }", "cpp"),
            (Outcome.COMPILE_ERROR,),
        ),
        "C++ that reads a file while it is compiled": (
            cpp,
            Program(f'const char* text = \n#include "{secret}"\n;int main() {{}}', "cpp"),
            (Outcome.COMPILE_ERROR,),
        ),
        "C++ checker, right": (
            make_problem(("", "3"), checker=checker),
            Program("print(3)"),
            right,
        ),
        "C++ checker, wrong": (
            make_problem(("", "3"), checker=checker),
            Program("print(4)"),
            (_WRONG,),
        ),
    }
    return found


def find_complaints(judging: Judge) -> list[str]:
    """Judge and run everything; return what ended otherwise."""
    complaints = []
    with contextlib.ExitStack() as opened:
        folder = opened.enter_context(tempfile.TemporaryDirectory(prefix=isolation.PREFIX))
        # Marked as in use like a sandbox's: tests beside this one look for folders that are
        # abandoned.
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        opened.callback(os.close, descriptor)
        lock_file(descriptor)
        secret = Path(folder, "data", "secret")
        secret.parent.mkdir()
        secret.write_text('"3"')
        before = _describe(secret)
        for name, (problem, program, allowed) in jobs(str(secret)).items():
            if not LANGUAGES[program.language].find_problem():
                (verdict,) = judging.judge([program], [problem])
                if verdict.outcome not in allowed:
                    complaints.append(f"{name}: {verdict.outcome}: {verdict.detail}")
        if _describe(secret) != before or os.listdir(secret.parent) != ["secret"]:
            complaints.append("a file was changed")
    run = judging.run(
        Invocation(
            Program(
                "import sys, part\nprint(part.text, open(sys.argv[1]).read(), open('stdin').read())"
            ),
            arguments=("data/in.txt",),
            files={"part.py": b"text = 1", "data/in.txt": b"2", "stdin": b"3"},
        )
    )
    if (run.failure, run.stdout) != (None, b"1 2 3\n"):
        complaints.append(f"a run with files: {run.detail} {run.stdout!r} {run.stderr}")
    return complaints


def _describe(path: Path) -> tuple[object, ...]:
    status = path.stat()
    above = path.parent.stat()
    return (
        path.read_text(),
        status.st_mode,
        status.st_ctime_ns,
        status.st_mtime_ns,
        above.st_mode,
        above.st_mtime_ns,
    )


if __name__ == "__main__":
    with Judge(workers=1) as everyone:
        print(
            json.dumps({"level": everyone.isolation.level, "complaints": find_complaints(everyone)})
        )

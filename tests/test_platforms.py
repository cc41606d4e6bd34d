"""macOS and Windows: what does not judge can be imported,
and what does says in one line what to do.

A subprocess is made to look like such a system: its name, and what its Python lacks. The libraries
that ask for the system's name as they are imported come first, since theirs would then be
another's.
"""

import subprocess
import sys
from pathlib import Path

import pytest

DISGUISE = """
import asyncio, ctypes, http.server, multiprocessing, os, platform, selectors, signal, sqlite3
import subprocess, sys, sysconfig, tempfile, uuid, webbrowser
import cyclopts, httpx, pydantic, rich.console, rich.progress
sysconfig.get_config_vars()
SYSTEM = sys.argv[1]
sys.platform = SYSTEM
lacking = ["sched_getaffinity", "memfd_create", "pidfd_open", "MFD_CLOEXEC", "MFD_ALLOW_SEALING"]
if SYSTEM == "win32":
    lacking += ["O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC", "O_PATH"]
    lacking += ["geteuid", "getuid", "fork", "killpg", "wait4", "register_at_fork", "sysconf"]
    for name in ("fcntl", "resource", "pwd", "grp", "termios"):
        sys.modules[name] = None
    for name in ("SIGKILL", "SIGXCPU", "SIGXFSZ", "SIGPIPE"):
        delattr(signal, name)
for name in lacking:
    if hasattr(os, name):
        delattr(os, name)
"""
IMPORTABLE = """
import microcoder
import microcoder.judge.core.types
import microcoder.judge.core.rewards
import microcoder.judge.core.extract
import microcoder.judge
import microcoder.judge.compare.compare
import microcoder.judge.fleet.http
import microcoder.data.formats
import microcoder.data.sources
from microcoder import Checker, extract_program
from microcoder.judge import compare_output
assert compare_output("1 2\\n", "1 2", Checker()).accepted
assert not {"torch", "numpy", "trl"} & sys.modules.keys()
assert extract_program("```python\\nprint(1)\\n```").code == "print(1)\\n"
"""
TRY_EACH = """
from microcoder.cli import main
for arguments in {}:
    try: main(arguments)
    except SystemExit as ended: print(ended.code)
"""
NAMES = {"darwin": "macOS", "win32": "Windows"}


@pytest.mark.parametrize("system", NAMES)
def test_what_does_not_judge_can_be_imported_and_helps_and_what_does_says_what_to_do(
    system: str, tmp_path: Path
) -> None:
    given = tmp_path / "in.jsonl"
    given.write_text('{"id": "a", "code": "print(1)", "tests": [{"input": "", "output": "1"}]}\n')
    commands = (["doctor"], ["judge", str(given), "-o", str(tmp_path / "out.jsonl")], ["serve"])
    code = f"{DISGUISE}{IMPORTABLE}{TRY_EACH.format(commands)}main(['--help'])"
    ended = subprocess.run([sys.executable, "-c", code, system], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.split()[:3] == ["2", "2", "2"], ended.stderr
    assert "doctor" in ended.stdout
    lines = ended.stderr.splitlines()
    assert len(lines) == len(commands)
    for line in lines:
        assert line.startswith("microcoder: error: the sandbox for programs needs Linux")
        for word in (
            NAMES[system],
            "Linux container",
            "WSL 2",
            "`microcoder serve`",
            "JudgeClient",
        ):
            assert word in line

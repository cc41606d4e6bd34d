"""What a program that failed said last, and which limit or refusal of the sandbox did it.

Programs write what they like to stderr, so this decides nothing: it only puts words to an outcome.
A refusal reaches a program as an error of the operating system, such as a missing file where
`multiprocessing` asks for shared memory. Who reads that error alone looks for a mistake in the
program.
"""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from microcoder.judge.sandbox.protocol import MAX_DESCRIPTORS, MAX_THREADS

_NO_PROCESSES = "the sandbox starts no further processes: a test is a single one"
_NO_SHARED_MEMORY = (
    "the sandbox starts no further processes, so multiprocessing's locks and queues do not work"
)
_NO_TERMINAL = "the sandbox has no terminals, and starts no further processes"
_NO_NETWORK = "the sandbox has no network"
_NO_CALL = "the sandbox refuses that system call"
_FOREIGN_FILE = (
    "a test writes in its working folder and /tmp only, and reads no files of the machine"
)
_OTHER_FILE = (
    "the sandbox has no file of that name: input comes on stdin, "
    "and a test finds only files it made"
)
_FULL = (
    "the limit on a test's files: 16 MiB and 256 of them, "
    "256 MiB where its input or output is a file"
)


class _Rule(NamedTuple):
    """A hint for the errors whose last words match, if the rest of stderr matches as well."""

    words: re.Pattern[str]
    hint: str
    context: re.Pattern[str] = re.compile("")


_RULES = (
    # EAGAIN, of `fork`.
    _Rule(re.compile(r"BlockingIOError: \[Errno 11\]"), _NO_PROCESSES),
    _Rule(re.compile(r".*can't start new thread"), f"a test has at most {MAX_THREADS} threads"),
    _Rule(
        # Shared memory and semaphores are files of `/dev/shm`.
        re.compile(r"(?:FileNotFound|Permission|Import|ModuleNotFound|OS)Error\b"),
        _NO_SHARED_MEMORY,
        re.compile(r"/multiprocessing/|/concurrent/futures/process\.py|_multiprocessing"),
    ),
    # Without a name of a file, as of `os.forkpty`.
    _Rule(
        re.compile(
            r"OSError: out of pty devices|FileNotFoundError: \[Errno 2\] No such file or directory$"
        ),
        _NO_TERMINAL,
    ),
    _Rule(
        re.compile(r"PermissionError: \[Errno 1?[13]\]"),
        _NO_NETWORK,
        re.compile(r"/(?:socket|ssl|socketserver|http/client|urllib/request|ftplib|smtplib)\.py"),
    ),
    _Rule(
        re.compile(
            r".*(?:gaierror|name resolution|Name or service not known|Network is unreachable)"
            r"|.*(?:URLError|ConnectionError|ConnectionRefusedError|Address family not supported)"
        ),
        _NO_NETWORK,
    ),
    _Rule(
        re.compile(r"PermissionError: \[Errno 13\]"),
        _NO_PROCESSES,
        re.compile(r"/subprocess\.py|in _?(?:exec|spawn)[lvpe]*\b|_execvpe"),
    ),
    _Rule(re.compile(r"PermissionError: \[Errno 13\] Permission denied: "), _FOREIGN_FILE),
    _Rule(
        re.compile(r"PermissionError: \[Errno 13\]"),
        f"{_NO_NETWORK}, and runs no other programs",
    ),
    # EPERM and ENOSYS, of seccomp.
    _Rule(re.compile(r"(?:PermissionError: \[Errno 1\]|OSError: \[Errno 38\])"), _NO_CALL),
    # EROFS: the system's files are mounted so that they can only be read.
    _Rule(re.compile(r"OSError: \[Errno 30\]"), _FOREIGN_FILE),
    _Rule(
        re.compile(
            r"FileNotFoundError: (?:\[Errno 2\] No such file or directory: |\S+ not found\.$)"
        ),
        _OTHER_FILE,
    ),
    _Rule(re.compile(r".*unable to open database file"), _FOREIGN_FILE),
    # ENOSPC and EDQUOT.
    _Rule(re.compile(r"OSError: \[Errno (?:28|122)\]"), _FULL),
    # EMFILE.
    _Rule(re.compile(r"OSError: \[Errno 24\]"), f"a test has at most {MAX_DESCRIPTORS} open files"),
    _Rule(
        # ENOMEM.
        re.compile(r"OSError: \[Errno 12\]"),
        "it asked for more memory at once than the limit leaves",
    ),
    _Rule(re.compile(r".*not allowed to raise maximum limit"), "the sandbox sets a test's limits"),
    _Rule(
        re.compile(r"RecursionError\b"),
        "Python's limit on nested calls, which sys.setrecursionlimit raises",
    ),
)
"""The first that matches counts."""

_SIGNALS: Mapping[str, str] = {
    "SIGSEGV": "its stack was full, or it used memory that is not its own",
    "SIGBUS": "it used memory that is not there",
    "SIGFPE": "it divided by zero",
    "SIGSYS": _NO_CALL,
    "SIGKILL": "it did so itself, or the machine was out of memory",
    "SIGABRT": "it gave up by itself",
    "SIGALRM": "a timer of its own",
}
"""What a signal that ended a program means."""
_TRACEBACK = re.compile(r"[\s+|]*(?:Exception Group )?Traceback \(most recent call last\):")
_MARGIN = re.compile(r"^[\s+|]*\|\s?|^\s*\+-[+-]*\s*")
"""What Python draws beside the traceback of a group of exceptions."""
_NAMED_ERROR = re.compile(r'(?:Exception in thread "[^"]*" )?[\w.$]*(?:Error|Exception)\b(?:: .*)?')
_LINE = re.compile(r'File "(?:main|solution)\.py", line (\d+)')
_MOST_MESSAGE = 150
"""Characters of a program's own words, so that the hint behind them is not cut."""


def explain_error(
    stderr: str,
    exit_code: int,
    *,
    is_function: bool = False,
) -> str:
    """Return what a program that ended with an exit code said, and which limit or refusal did it.

    Args:
        stderr: the end of what it wrote there.
        exit_code: not 0.
        is_function: it is called, and finds nothing on stdin.
    """
    words = _find_error(stderr)
    if not words:
        last = _last_line(stderr)
        if last:
            return f"exit code {exit_code}: {_cut(last)}"
        return f"exit code {exit_code}"
    hint = _find_hint(words, stderr, is_function=is_function)
    if hint:
        return f"{_cut(words)} ({hint})"
    # An exception without a message, as of `assert`, says little without its line.
    lines = _LINE.findall(stderr)
    if ":" not in words and lines:
        return f"{words}, without a message, in line {lines[-1]}"
    return words


def explain_signal(name: str, stderr: str) -> str:
    """Return why a program was killed: the signal, what that means, and what it said last."""
    why = _SIGNALS.get(name, "")
    if name == "SIGABRT":
        why = _cut(_last_line(stderr)) or why
    return f"killed by {name}: {why}" if why else f"killed by {name}"


def explain_memory(
    memory_mib: float,
    limit_mib: int,
    stderr: str = "",
) -> str:
    """Return how a program exceeded its memory limit.

    One that held less asked for too much at once.
    """
    held = f"{memory_mib:.0f} MiB of {limit_mib} MiB"
    if memory_mib > limit_mib:
        return held
    # One that asks for too much at once never holds it.
    words = _find_error(stderr)
    if ":" in words:
        return f"{_cut(words)} (it held {held})"
    return f"one allocation asked for more than the limit leaves: it held {held}"


def add_packages(detail: str, packages: Iterable[str]) -> str:
    """Return the detail of a failed import with the packages that programs may import.

    Any other detail is returned as it is.
    """
    if "ModuleNotFoundError: No module named" not in detail:
        return detail
    allowed = ", ".join(["Python's library", *sorted(packages)])
    return f"{detail} (programs may import {allowed})"


def _find_hint(
    words: str,
    stderr: str,
    *,
    is_function: bool,
) -> str:
    """Return which limit or refusal caused an error; empty if none that we know of."""
    if words.startswith("EOFError: EOF when reading"):
        if is_function:
            return "a function gets its arguments by the call, and stdin is empty"
        return "it read more than the input has"
    for rule in _RULES:
        if rule.words.match(words) and rule.context.search(stderr):
            return rule.hint
    return ""


def _find_error(stderr: str) -> str:
    """Return the exception that ended a program, its message in one line.

    Empty if none is reported.
    """
    lines = [line for line in stderr.splitlines() if line.strip()]
    starts = [number for number, line in enumerate(lines) if _TRACEBACK.match(line)]
    if starts:
        # Of a group of exceptions the first traceback is its own, and members follow. Of a chain of
        # exceptions the last one ended the program.
        is_group = "Exception Group" in lines[starts[0]]
        first = starts[0] if is_group else starts[-1]
        rest = [_MARGIN.sub("", line) for line in lines[first + 1 :]]
        for number, line in enumerate(rest):
            if line and not line.startswith(" "):
                return line if is_group else " ".join(rest[number:])
    # The runtimes of other languages print no such heading.
    named = [line for line in lines if _NAMED_ERROR.fullmatch(line)]
    return named[-1] if named else ""


def _last_line(stderr: str) -> str:
    lines = stderr.strip().splitlines()
    return lines[-1].strip() if lines else ""


def _cut(text: str) -> str:
    if len(text) <= _MOST_MESSAGE:
        return text
    return f"{text[: _MOST_MESSAGE - 3]}..."

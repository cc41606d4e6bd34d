"""Runs many small programs on many inputs.

It runs in the sandbox, as a program, and is imported by nothing. stdin is one JSON object:
`programs` with their code and the function to call, `runs` of program number and inputs, `seconds`
that an input may take. Prints a JSON line per input at once: run, input, kind, and the output or a
reason.
"""

from __future__ import annotations

import copy
import io
import itertools
import json
import os
import signal
import sys
import threading
import time
from typing import Any

MOST_CHARACTERS = 4000
"""Length of an output; a longer one is cut, or dropped where it is a value."""
MOST_ITEMS = 10_000
"""Items that are taken from an iterator, which may be endless."""
PATIENCE = 20
"""How many times its seconds a program may take inside one call of C."""
DEFINED_IN = 0.5
"""Seconds that the definition of a function, and what it imports, may take."""
PRELUDE = """
from typing import *
from collections import *
from itertools import *
from functools import *
from heapq import *
from bisect import *
from math import ceil, comb, factorial, floor, gcd, inf, isqrt, lcm, log, log2, pi, prod, sqrt
import collections, itertools, functools, heapq, bisect, math, string, re, random, sys, operator
"""
"""What authors of solutions take for granted, as the sites that these come from import it."""
KNOWN: dict[str, Any] = {}
"""Names that the prelude defines."""


# No Exception: a program that catches those must not catch this.
class Late(BaseException):
    """Raised inside a program that exceeds its time on an input."""


def raise_late(signum: int, frame: Any) -> None:
    """Signal handler: raise Late in the program that runs."""
    raise Late


def main() -> None:
    """Run the programs that stdin lists on their inputs, and print a line for each input."""
    asked = json.loads(sys.stdin.read())
    # A copy, which survives a program that closes its stdout.
    out = os.dup(1)
    sys.setrecursionlimit(20_000)
    # It counts the time of this process alone: a busy machine must not decide.
    signal.signal(signal.SIGVTALRM, raise_late)
    # Some wait before they answer; that is not what they compute.
    time.sleep = lambda seconds: None
    # Large stacks are asked for by habit; on small inputs they would only take memory away.
    threading.stack_size = lambda size=0: 0
    exec(PRELUDE, KNOWN)
    for number, (program, inputs) in enumerate(asked["runs"]):
        source = asked["programs"][program]
        functions: list[Any] = []
        output: list[Any] = []
        for place, program_input in enumerate(inputs):
            # What was too slow once is not waited for again.
            if output != ["none", Late.__name__]:
                output = run(source, program_input, functions, asked["seconds"])
            write_line(out, [number, place, *output])


def write_line(descriptor: int, values: list[Any]) -> None:
    """Write a line of JSON at once: the process may end on the next input."""
    line = json.dumps(values).encode() + b"\n"
    while line:
        num_written = os.write(descriptor, line)
        line = line[num_written:]


def run(
    source: dict[str, Any],
    program_input: Any,
    functions: list[Any],
    seconds: float,
) -> list[Any]:
    """Run an input; return `value` and result, `text` and output, or `none` and why.

    `functions` keeps what `find` returned.
    """
    kept = sys.stdin, sys.stdout, sys.stderr
    # With bytes below, since fast programs read `sys.stdin.buffer` and write to its like.
    printed = io.TextIOWrapper(
        io.BytesIO(),
        encoding="utf-8",
        write_through=True,
    )
    text = program_input if isinstance(program_input, str) else ""
    sys.stdin = io.TextIOWrapper(io.BytesIO(text.encode("utf-8", "replace")), encoding="utf-8")
    sys.stdout = printed
    sys.stderr = printed
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    # Inside one long call of C no handler runs: then the process ends, and the next one leaves this
    # program out.
    signal.setitimer(signal.ITIMER_PROF, PATIENCE * seconds)
    try:
        if isinstance(program_input, str):
            run_script(source)
            printed.flush()
            output = printed.buffer.getvalue().decode("utf-8", "replace")
            return ["text", output[:MOST_CHARACTERS]]
        if not functions:
            # Imports may take longer than an input, so they have a limit of their own.
            signal.setitimer(signal.ITIMER_VIRTUAL, DEFINED_IN)
            functions.append(find(source))
            signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        # A copy: a function may change its arguments.
        value = functions[0](*copy.deepcopy(program_input))
        # The program is done: the signal must not strike in what follows, which is ours.
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        shown = json.dumps(plain(value))
        # Unlike a text, a value that was cut would be another one.
        if len(shown) > MOST_CHARACTERS:
            return ["none", "long"]
        return ["value", plain(value)]
    # Whatever a program raises: one that fails must not end the others.
    except (Exception, SystemExit, Late, MemoryError) as error:
        return ["none", type(error).__name__]
    finally:
        # Off, or they would strike in our own code between two inputs.
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdin, sys.stdout, sys.stderr = kept


def run_script(source: dict[str, Any]) -> None:
    """Run a program that reads stdin; that it exits is no failure."""
    try:
        # As a script, since many call their main function only then.
        exec(compiled(source), {"__name__": "__main__"})
    except SystemExit:
        pass
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def compiled(source: dict[str, Any]) -> Any:
    """Return a program's code, compiled once for all of its inputs."""
    if "compiled" not in source:
        source["compiled"] = compile(source["code"], "main.py", "exec")
    return source["compiled"]


def find(source: dict[str, Any]) -> Any:
    """Return the function named `entry` that a program defines, or the method of its `Solution`.

    KeyError if there is none.
    """
    # Not as a script: only the function is wanted, not what a script does with it.
    names: dict[str, Any] = {**KNOWN, "__name__": "solution"}
    exec(compiled(source), names)
    entry = source["entry"]
    if "Solution" in names and hasattr(names["Solution"], entry):
        # A new object for each call, which must not see what another call has left.
        return lambda *arguments: getattr(names["Solution"](), entry)(*arguments)
    return names[entry]


def plain(value: Any) -> Any:
    """Return a value as JSON types: tuples as lists, sets sorted, other objects as text."""
    if isinstance(value, dict):
        # Keys of JSON are texts.
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, set | frozenset):
        # Sets have no order, and values of several types have none among each other.
        return sorted((plain(item) for item in value), key=str)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if hasattr(value, "__iter__"):
        return [plain(item) for item in itertools.islice(value, MOST_ITEMS)]
    return str(value)


main()

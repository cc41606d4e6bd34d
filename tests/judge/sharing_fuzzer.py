"""Programs written from the names that a program of a shared process may use,
to find one that tells tests apart.

A program calls members of a few modules, builtins and methods of texts with small values, and
prints every number and text that comes back. Equal tests of one process must print the same;
whatever does not is a way to know which test it is, and so to answer by the place of a test and not
by its input. Other objects are not printed: their text is an address, which the screen cannot see
in general.
"""

import builtins
import importlib
import random
import sys
from collections.abc import Iterator, Sequence

from microcoder.judge.run.screen import find_obstacle
from microcoder.judge.run.sharing import ProcessBatch
from microcoder.judge.run.supervisor import LoadedProgram, Sandbox
from microcoder.judge.run.timing import limits_for
from microcoder.judge.sandbox.batch import MODULES

_CHARACTERS = ("'é'", "chr(233)")
"""Of these an interpreter has one each, for all tests of a process."""
_VALUES = (
    "0",
    "1",
    "3",
    "-1",
    "2.5",
    "''",
    "'3'",
    "'é1'",
    "'ab c'",
    "b'a'",
    "[3, 1, 2]",
    "'é' * 3",
    "(1, 'é')",
)
_LEFT_OUT = {
    *(
        "sleep",
        "exit",
        "quit",
        "input",
        "copyright",
        "credits",
        "license",
        "stdin",
        "stdout",
        "stderr",
    ),
    # They show objects, whose text is an address.
    *("str", "format"),
    # They say what they are asked to, or wait.
    *("print", "SimpleQueue", "Queue", "LifoQueue", "PriorityQueue"),
    # An endless supply of items, for whatever takes all of them.
    *("count", "cycle", "repeat", "iter"),
}
_CALLS = 100
_PREAMBLE = """
def show(value):
    if isinstance(value, (int, float, complex, str, bytes)): print(value if isinstance(value, \
str) else (value,))
    elif isinstance(value, (list, tuple)):
        for item in value[:9]: show(item)
"""


def _members() -> dict[str, list[str]]:
    """Return the calls that a program may make, by the module that they are of."""
    calls: dict[str, list[str]] = {}
    for module in MODULES:
        calls[module] = [f"{module}.{name}" for name in dir(importlib.import_module(module))]
    calls["sys"] = [f"sys.{name}" for name in dir(sys)]
    calls["builtins"] = dir(builtins)
    calls["texts"] = [f"'ab é'.{name}" for name in dir(str)]
    members: dict[str, list[str]] = {}
    for module, names in calls.items():
        imported = f"import {module}\n" if module in (*MODULES, "sys") else ""
        named = []
        for name in names:
            if name.rpartition(".")[2] not in _LEFT_OUT:
                named.append(name)
        shareable = []
        for name in named:
            if not find_obstacle(f"{imported}{name}(1)", is_function=False):
                shareable.append(name)
        if shareable:
            members[module] = shareable
    return members


def write_programs(count: int, *, seed: int = 0, modules: Sequence[str] = ()) -> Iterator[str]:
    """Yield programs that may share a process, the same for the same seed,
    each of one of the modules, or of any.
    """
    members = _members()
    draw = random.Random(seed)
    while count:
        chosen = [
            draw.choice(modules or sorted(members.keys() - {"builtins", "texts"})),
            "builtins",
            "texts",
        ]
        lines = [f"import {chosen[0]}"]
        for number in range(_CALLS):
            earlier = [f"v{n}" for n in range(max(0, number - 6), number)]
            values = []
            for _ in range(draw.choice((0, 1, 1, 1, 2, 3))):
                values.append(
                    draw.choice((draw.choice(_VALUES), draw.choice(_CHARACTERS), *earlier[-2:]))
                )
            called = draw.choice(members[draw.choice(chosen)])
            lines.append(
                f"v{number} = 0\ntry: v{number} = {called}({', '.join(values)}); show(v{number})"
            )
            lines.append("except Exception: pass")
        program = _PREAMBLE + "\n".join(lines)
        if not find_obstacle(program, is_function=False):
            count -= 1
            yield program


def run_together(
    sandbox: Sandbox,
    code: str,
    stdin: bytes,
    num_tests: int,
) -> list[tuple[int, bytes]]:
    """Return the status and the output of equal tests of one process, as many as it came to."""
    seen: list[tuple[int, bytes]] = []

    def note(number: int, status: int, output: bytes) -> bool:
        seen[number:] = [(status, output)]
        return not status

    program = LoadedProgram(code)
    try:
        sandbox.run(
            program.task(stdin),
            limits_for(5.0, 512, 16),
            batch=ProcessBatch([stdin] * (num_tests - 1), 1.0, note),
        )
    finally:
        program.close()
    return seen


def find_leaks(sandbox: Sandbox, programs: Sequence[str] | Iterator[str]) -> list[str]:
    """Return the programs of which equal tests in one process are not alike,
    each with both outputs.
    """
    found = []
    for program in programs:
        seen = run_together(sandbox, program, b"1 2\n", 3)
        if different := next((other for other in seen[1:] if other != seen[0]), None):
            found.append(f"{program}\n# {seen[0]}\n# {different}")
    return found

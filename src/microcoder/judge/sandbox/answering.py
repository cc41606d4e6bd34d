"""The process of an answer whose tests are Python programs: it serves their calls.

It sees what a call brings and nothing else of a test. See `conversation`.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

from microcoder.judge.sandbox.conversation import (
    MOST_BYTES_OF_TESTS,
    Channel,
    ConversationEnded,
    Peer,
)
from microcoder.judge.sandbox.functions import MODULE_NAME
from microcoder.judge.sandbox.handles import Home
from microcoder.judge.sandbox.runner import Loaded, finish, guarded, new_main_module
from microcoder.judge.sandbox.shared_values import SharedValues
from microcoder.judge.sandbox.surroundings import AnswerSurroundings

SETUP_NAME = "setup.py"
"""Name of the file that the source of a problem's setup stands in, as programs see it."""
FIRST_NUMBER = 1
"""The answer's objects have odd numbers, the test's even ones."""


def answer_calls(program: Loaded, incoming: int, outgoing: int) -> int:
    """Define an answer and serve the calls of its test; return the exit code.

    Args:
        program: the answer.
        incoming: descriptor of the pipe that the test writes to.
        outgoing: descriptor of the pipe that it reads from.
    """
    channel = Channel(incoming, outgoing, most_bytes=MOST_BYTES_OF_TESTS)
    module = new_main_module(MODULE_NAME, sys.modules["builtins"])
    sys.modules[MODULE_NAME] = module
    status = guarded(_define_and_serve, program, module, channel)
    return finish(status, program[1])


def _define_and_serve(program: Loaded, module: ModuleType, channel: Channel) -> None:
    try:
        begin = json.loads(channel.receive())
        names = module.__dict__
        exec(compile(begin["setup"], SETUP_NAME, "exec"), names)
        given = names.get(begin["fn_name"])
        exec(program[0], names)
        entry = _find_entry(names, begin["fn_name"])
        home = Home(names, is_test=False)
        home.common = frozenset(begin["common"])
        values = SharedValues(home, first_number=FIRST_NUMBER)
        peer = Peer(channel, values, AnswerSurroundings(begin))
        home.peer = peer
        pairs = [(name, names[name]) for name in begin["names"] if name in names]
        # The function, whether the setup gave it, what else is taken, and the module itself.
        peer.reply((entry, entry is given, pairs, module), is_raised=False)
        peer.serve_all()
    except ConversationEnded:
        pass


def _find_entry(names: dict[str, Any], fn_name: str) -> Any:
    """Return the function of a program, or the method of its class `Solution`.

    Raises:
        NameError: there is none.
        TypeError: the program has put something else in its place, as `area = area(2)` does.
    """
    solution = names.get("Solution")
    if solution is not None and hasattr(solution, fn_name):
        entry = getattr(solution(), fn_name)
    elif fn_name in names:
        entry = names[fn_name]
    else:
        raise NameError(f"the program defines neither Solution.{fn_name} nor a function {fn_name}")
    # The test would break on it before a call, and take the blame.
    if not callable(entry):
        raise TypeError(
            f"{fn_name} is no function at the program's end, but {type(entry).__name__}"
        )
    return entry

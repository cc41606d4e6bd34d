"""The process of a test that is a Python program: the test as it was published.

The answer never enters it. `candidate`, and the function under its own name, are handles (see
`handles`), and so is what else the test takes from the answer. What became of the test is written
as a report, which the judge reads; a report says how the test ended, and nothing that the answer
wrote decides about it.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from types import ModuleType, TracebackType
from typing import Any, NoReturn

from microcoder.judge.sandbox import small_pytest
from microcoder.judge.sandbox.answering import SETUP_NAME
from microcoder.judge.sandbox.conversation import (
    FROM_ANSWER,
    MOST_BYTES_OF_ANSWERS,
    Channel,
    ConversationEnded,
    Peer,
    TooLong,
)
from microcoder.judge.sandbox.functions import MODULE_NAME, send_result
from microcoder.judge.sandbox.handles import Handle, Home, may_use
from microcoder.judge.sandbox.protocol import Ending
from microcoder.judge.sandbox.runner import FILE_NAME, Loaded
from microcoder.judge.sandbox.shared_values import SharedValues
from microcoder.judge.sandbox.surroundings import TestSurroundings
from microcoder.judge.sandbox.value_kinds import CannotCross, Malformed, describe_error

_FIRST_NUMBER = 0
"""The test's objects have even numbers, the answer's odd ones."""
_LONGEST_SHOWN = 200
"""Characters of an assertion that a report shows."""
_LONGEST_VALUE = 80
"""Characters of a returned value that a report shows."""


def run_test(program: Loaded, source: str, incoming: int, outgoing: int, wire: int) -> int:
    """Run a test, and write its report; return the exit code.

    Args:
        program: the test.
        source: its source.
        incoming: descriptor of the pipe that the answer writes to.
        outgoing: descriptor of the pipe that it reads from.
        wire: descriptor for the report.
    """
    channel = Channel(incoming, outgoing, most_bytes=MOST_BYTES_OF_ANSWERS)
    test = _Test(source, channel, wire)
    settings = json.loads(sys.stdin.read() or "{}")
    sys.stdin = io.StringIO("")
    try:
        test.join(settings)
        exec(program[0], test.names)
    except SystemExit as end:
        test.report_exit(end)
    except BaseException as error:
        test.report_error(error)
    test.report(Ending.PASSED)


class _Test:
    """A running test, and what is reported of it."""

    def __init__(self, source: str, channel: Channel, wire: int) -> None:
        self.names = sys.modules["__main__"].__dict__
        self._source = source
        self._channel = channel
        self._wire = wire
        self._peer: Peer | None = None
        self._note = ""
        self._has_values = False
        """Whether the test was given a plain value of the answer under a further name."""

    def join(self, settings: Mapping[str, Any]) -> None:
        """Run the setup, and take the function and further names from the answer."""
        setup = settings["setup"]
        fn_name = settings["fn_name"]
        exec(compile(setup, SETUP_NAME, "exec"), self.names)
        surroundings = TestSurroundings(f"{setup}\n{self._source}")
        # Nothing that the test has already is taken from the answer.
        names = [name for name in settings["names"] if not self._has(name)]
        common = _find_classes(setup)
        begin = {**surroundings.begin, **settings, "names": names, "common": common}
        home = Home(self.names, is_test=True)
        home.common = frozenset(common)
        values = SharedValues(home, first_number=_FIRST_NUMBER)
        peer = Peer(
            self._channel,
            values,
            surroundings,
            permit=may_use,
            give_up=self._report_end,
            note_first=lambda: self._write(Ending.CALLING),
        )
        home.peer = peer
        self._peer = peer
        offer = peer.begin(begin)
        if not _is_offer(offer, names):
            self._report_end(Malformed("no offer of functions"))
        entry, is_given, pairs, module = offer
        if is_given is True:
            self._note = f"the answer does not define {fn_name}, so the prompt's own was called; "
        self._has_values = not all(callable(value) for _, value in pairs)
        self.names.update({**dict(pairs), fn_name: entry, "candidate": entry})
        _offer_modules({**dict(pairs), fn_name: entry}, module)

    def _has(self, name: str) -> bool:
        return name in self.names or hasattr(builtins, name)

    def report_exit(self, end: SystemExit) -> NoReturn:
        """Report a test that ended itself, as `unittest.main` and `pytest.main` do."""
        if FROM_ANSWER in end.__dict__ or end.code:
            self.report_error(end)
        self.report(Ending.PASSED)

    def report_error(self, error: BaseException) -> NoReturn:
        """Report what ended the test, whosever it is."""
        if FROM_ANSWER in error.__dict__:
            self.report(Ending.RAISED, str(error.__dict__[FROM_ANSWER]))
        has_called = self._peer is not None and self._peer.num_calls > 0
        # A value of the answer may break it as a call does.
        is_own = not has_called and not self._has_values
        if is_own or isinstance(error, CannotCross):
            self.report(Ending.BROKEN, describe_error(error))
        where = self._find_line(error.__traceback__)
        if isinstance(error, AssertionError):
            said = f" ({describe_error(error)})" if error.args else ""
            detail = f"not true: {where}{said}"
        else:
            detail = f"the test ended with {describe_error(error)}: {where}"
        self.report(Ending.FAILED, detail + self._show_latest())

    def _report_end(self, end: BaseException) -> NoReturn:
        """Report the end of the conversation from within a call."""
        if isinstance(end, ConversationEnded):
            self.report(Ending.LEFT)
        if isinstance(end, TooLong):
            self.report(Ending.TOO_LONG)
        self.report(Ending.MALFORMED, str(end))

    def report(self, ending: Ending, detail: str = "") -> NoReturn:
        """Write a report, and end the process at once: nothing of the test runs after it."""
        self._write(ending, detail)
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(0)

    def _write(self, ending: Ending, detail: str = "") -> None:
        num_calls = 0 if self._peer is None else self._peer.num_calls
        said = {"ending": ending, "detail": self._note + detail, "num_calls": num_calls}
        send_result(json.dumps(said).encode(), self._wire)

    def _find_line(self, trace: TracebackType | None) -> str:
        """Return the statement of the test at which an exception was raised."""
        found: TracebackType | None = None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == FILE_NAME:
                found = trace
            trace = trace.tb_next
        if found is None:
            return "the test"
        positions = list(found.tb_frame.f_code.co_positions())
        first, last, _, _ = positions[found.tb_lasti // 2]
        if first is None or last is None:
            first = last = found.tb_lineno
        lines = self._source.splitlines()[first - 1 : last]
        words = " ".join(lines).split()
        text = " ".join(words)
        return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."

    def _show_latest(self) -> str:
        """Return what the latest call returned, for the reader of a refusal."""
        if self._peer is None:
            return ""
        self._peer.is_closed = True
        try:
            text = repr(self._peer.latest)
        except Exception:
            return ""
        short = text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
        return f"; the last call returned {short}"


def _find_classes(setup: str) -> list[str]:
    """Return the names of the classes that the setup defines."""
    names = []
    for node in compile(setup, SETUP_NAME, "exec", ast.PyCF_ONLY_AST).body:
        if isinstance(node, ast.ClassDef):
            names.append(node.name)
    return names


def _is_offer(offer: object, wanted: Sequence[str]) -> bool:
    """Whether an answer offers its function and further names, and none that was not asked for."""
    if type(offer) is not tuple or len(offer) != 4 or type(offer[2]) is not list:
        return False
    if not isinstance(offer[3], Handle):
        return False
    for pair in offer[2]:
        if type(pair) is not tuple or len(pair) != 2 or pair[0] not in wanted:
            return False
    return True


def _offer_modules(taken: Mapping[str, Any], module: Handle) -> None:
    """Have a test find the answer as the module `solution`, and what there is of pytest."""
    solution = ModuleType(MODULE_NAME)
    # What else of it is imported is asked for then.
    solution.__dict__.update(taken, __getattr__=partial(getattr, module))
    sys.modules[MODULE_NAME] = solution
    small_pytest.offer()

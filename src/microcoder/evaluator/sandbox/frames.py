"""Running a program at the bottom of the call stack, as `python main.py` does.

A forked test stands on the fork server's own calls. They would count against the recursion limit (an accepted program
may need every frame it leaves) and be seen by `inspect`. Python has no call that takes them away, so two words of the
interpreter's thread state are written: how many calls are left, and which frame is the innermost.

An interpreter that keeps them elsewhere runs programs on top of our calls: a few frames shallower, and that is said.
"""

from __future__ import annotations

import ctypes
import sys
from types import CodeType
from typing import Any

_NUM_WORDS = 40
"""Of the thread state, which is far longer: what is looked for stands at its beginning."""
_FRAME_OF_FRAME_OBJECT, _CFRAME_OF_THREAD_STATE = 24, 56
_STACK_BYTES = 1 << 18
"""How far above and below the present place on the C stack the innermost frame is looked for."""
_UNUSUAL_LIMIT = 4321
_KNOWN, _KNOWN_NAMES = ((3, 11), (3, 12), (3, 13)), "CPython 3.11 to 3.13"
"""Versions whose thread state was looked at: what is not known there may not be written to."""


class _Unknown(Exception):
    """Something stands where no known interpreter has it."""


class CallStack:
    """Where the interpreter keeps its calls; found and tried out once, for all tests.

    Memory is read and written through views made here: ctypes would cost each test 20 page faults.
    """

    def __init__(self) -> None:
        """Find it, or note in `problem` that it is not where it should be."""
        self.problem = ""
        """Why programs run on top of our calls; empty if they do not."""
        try:
            self._find()
        except _Unknown as unknown:
            version = sys.version.split()[0]
            self.problem = (
                f"Python {version} keeps {unknown} elsewhere than {_KNOWN_NAMES}, so programs recurse a few calls less "
                "deep than under plain python, and see ours"
            )

    def _find(self) -> None:
        if sys.version_info[:2] not in _KNOWN or sys.implementation.name != "cpython":
            raise _Unknown("its calls")
        current = ctypes.pythonapi.PyThreadState_Get
        current.restype = ctypes.c_void_p
        state: int = current()
        self._numbers = _view(state, 8 * _NUM_WORDS, "i")
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(_UNUSUAL_LIMIT)
        # The limit is set to a number that nothing else has, and stands right behind the calls that are left. Found
        # twice is not found: a write to the wrong word would break the interpreter.
        found = [n for n, number in enumerate(self._numbers) if number == _UNUSUAL_LIMIT > self._numbers[n - 1] > 0]
        sys.setrecursionlimit(usual)
        if len(found) != 1:
            raise _Unknown("its recursion limit")
        self._calls_left = found[0] - 1
        self._find_frame(_view(state, 8 * _NUM_WORDS, "L"), state)
        self._own_calls = 0
        names: dict[str, Any] = {"numbers": self._numbers, "place": self._calls_left}
        # Tried here, in the fork server, where a crash is a sandbox that does not start and not a wrong verdict.
        look = compile("import sys\nleft, below = numbers[place], sys._getframe().f_back", "", "exec")
        self._execute_at_the_bottom(look, names)
        if names["below"] is not None or not 0 <= usual - 1 - names["left"] <= 2:
            raise _Unknown("its frames")
        # Before 3.12 the call of `exec` counts as one.
        self._own_calls = usual - 1 - names["left"]

    def _find_frame(self, state_words: memoryview[int], state: int) -> None:
        """Note where the innermost frame is: in the thread state, or (before 3.13) in what that points to."""
        frame = ctypes.c_void_p.from_address(id(sys._getframe()) + _FRAME_OF_FRAME_OBJECT).value
        self._state_words = state_words
        if sys.version_info >= (3, 13):
            places = [number for number in range(_NUM_WORDS) if state_words[number] == frame]
            if not places:
                raise _Unknown("its innermost frame")
            self._memory, self._memory_start, self._offset = state_words, state, 8 * places[0]
            return
        cframe = state_words[_CFRAME_OF_THREAD_STATE // 8]
        self._memory_start = cframe - _STACK_BYTES
        self._memory = _view(self._memory_start, 2 * _STACK_BYTES, "L")
        self._offset = 0 if sys.version_info >= (3, 12) else 8
        if self._memory[(cframe + self._offset - self._memory_start) // 8] != frame:
            raise _Unknown("its innermost frame")

    def execute(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Run a module's code as if nothing had been called before, if that can be done here."""
        if self.problem:
            exec(code, namespace)
        else:
            self._execute_at_the_bottom(code, namespace)

    def _execute_at_the_bottom(self, code: CodeType, namespace: dict[str, Any]) -> None:
        holder = self._memory_start
        if sys.version_info < (3, 13):
            holder = self._state_words[_CFRAME_OF_THREAD_STATE // 8]
        memory, place = self._memory, (holder + self._offset - self._memory_start) // 8
        ours, arguments = memory[place], (code, namespace)
        self._numbers[self._calls_left] = sys.getrecursionlimit() + self._own_calls
        # From here to the end nothing of ours may call: a call in Python would note our frame again.
        memory[place] = 0
        try:
            # With a star: a plain call counts or not, by whether the interpreter has specialised it by then.
            exec(*arguments)
        finally:
            memory[place] = ours


def _view(address: int, num_bytes: int, kind: str) -> memoryview[int]:
    return memoryview((ctypes.c_char * num_bytes).from_address(address)).cast("B").cast(kind)  # pyrefly: ignore

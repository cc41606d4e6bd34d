"""Running a program at the bottom of the call stack, as `python main.py` does.

A forked test stands on the fork server's own calls. They would count against the recursion limit (an accepted program
may need every frame it leaves) and be seen by `inspect`. Python has no call that takes them away, so two words of the
interpreter's thread state are written: how many calls are left, and which frame is the innermost.
"""

from __future__ import annotations

import ctypes
import sys
from types import CodeType
from typing import Any

_NUM_WORDS = 40
"""Of the thread state, which is far longer: what is looked for stands at its beginning."""
_FRAME_OF_FRAME_OBJECT, _CFRAME_OF_THREAD_STATE = 24, 56
_UNUSUAL_LIMIT = 4321


class CallStack:
    """Where the interpreter keeps its calls; found and tried out once, for all tests."""

    def __init__(self) -> None:
        """Find it.

        Raises:
            RuntimeError: this interpreter keeps its calls in another way.
        """
        current = ctypes.pythonapi.PyThreadState_Get
        current.restype = ctypes.c_void_p
        self._state: int = current()
        usual = sys.getrecursionlimit()
        sys.setrecursionlimit(_UNUSUAL_LIMIT)
        numbers = (ctypes.c_int * (2 * _NUM_WORDS)).from_address(self._state)
        found = [n for n in range(1, 2 * _NUM_WORDS) if numbers[n] == _UNUSUAL_LIMIT > numbers[n - 1] > 0]
        sys.setrecursionlimit(usual)
        if len(found) != 1:
            raise _unknown("recursion limit")
        self._calls_left = ctypes.c_int.from_address(self._state + 4 * (found[0] - 1))
        self._slot = self._find_slot()
        self._own_calls = 0
        names: dict[str, Any] = {"count": self._calls_left}
        self.execute(compile("import sys\nleft, below = count.value, sys._getframe().f_back", "", "exec"), names)
        if names["below"] is not None or not 0 <= usual - 1 - names["left"] <= 2:
            raise _unknown("frames")
        # Before 3.12 the call of `exec` counts as one.
        self._own_calls = usual - 1 - names["left"]

    def _find_slot(self) -> int:
        """Return where the innermost frame is noted: in the thread state, or (before 3.13) where that points to."""
        frame = ctypes.c_void_p.from_address(id(sys._getframe()) + _FRAME_OF_FRAME_OBJECT).value
        words = (ctypes.c_size_t * _NUM_WORDS).from_address(self._state)
        for number in range(_NUM_WORDS):
            if words[number] == frame:
                return 8 * number
        if sys.version_info >= (3, 13):
            raise _unknown("innermost frame")
        for offset in (0, 8):
            if ctypes.c_size_t.from_address(words[_CFRAME_OF_THREAD_STATE // 8] + offset).value == frame:
                return -1 - offset
        raise _unknown("innermost frame")

    def execute(self, code: CodeType, namespace: dict[str, Any]) -> None:
        """Run a module's code as if nothing had been called before."""
        if self._slot >= 0:
            address = self._state + self._slot
        else:
            cframe = ctypes.c_size_t.from_address(self._state + _CFRAME_OF_THREAD_STATE).value
            address = cframe - 1 - self._slot
        innermost = ctypes.c_size_t.from_address(address)
        ours, arguments = innermost.value, (code, namespace)
        self._calls_left.value = sys.getrecursionlimit() + self._own_calls
        # From here to the end nothing of ours may call: a call in Python would note our frame again.
        innermost.value = 0
        try:
            # With a star: a plain call counts or not, by whether the interpreter has specialised it by then.
            exec(*arguments)
        finally:
            innermost.value = ours


def _unknown(what: str) -> RuntimeError:
    return RuntimeError(
        f"Python {sys.version.split()[0]} keeps its {what} where no other does, so programs would run with less "
        "recursion than under plain python; use CPython 3.11 to 3.13"
    )

"""What a judge remembers between programs: prepared problems, and verdicts by program and problem."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass

from microcoder.evaluator.checkers import CPU_SECONDS
from microcoder.evaluator.languages import language_of
from microcoder.evaluator.preparation import PreparedProblem
from microcoder.signatures import judged_by
from microcoder.types import Problem, Program, Verdict

_MAX_PROBLEMS = 4096
_TEST_BYTES, _VALUE_BYTES_PER_CHARACTER = 1000, 20
"""What a test takes however short it is, and a value read from JSON such as `[[],[]]` for each character."""

Key = tuple[int, bytes]
"""The number of a known problem, and a digest of the program: neither keeps anything alive."""


@dataclass(slots=True)
class KnownProblem:
    """A prepared problem of a judge; its number is unique."""

    number: int
    prepared: PreparedProblem
    seen_seconds: float | None = None
    """Moving average of the programs' time."""

    @property
    def expected_seconds(self) -> float:
        """Expected time of the next program; the time limit before the first."""
        return self.prepared.limits.cpu_seconds if self.seen_seconds is None else self.seen_seconds

    @property
    def num_bytes(self) -> int:
        """Of its tests, which are held twice: as text and as what a program reads, or values."""
        problem = self.prepared.problem
        per_character = 2 if problem.fn_name is None else 2 + _VALUE_BYTES_PER_CHARACTER
        return sum(2 * len(test.input) + per_character * len(test.output) + _TEST_BYTES for test in problem.tests)

    def key_of(self, program: Program) -> Key:
        """Return the cache key of this program's verdict."""
        text = program.reason if program.code is None else "=" + program.code
        return self.number, hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()

    def note_seconds(self, seconds: float) -> None:
        """Update the average by a program's time."""
        self.seen_seconds = seconds if self.seen_seconds is None else (self.seen_seconds + seconds) / 2


class ProblemShelf:
    """Problems in prepared form, the latest used ones; problems that are judged alike are one."""

    def __init__(self, *, time_scale: float, checker_seconds: float = CPU_SECONDS, most_bytes: int = 512 << 20) -> None:
        """Start empty.

        Args:
            time_scale: how much longer than on the reference machine programs may take.
            checker_seconds: CPU time of a checker program for a test.
            most_bytes: of the tests of all prepared problems, held twice: as text and as the program's input.
        """
        self._time_scale = time_scale
        self._checker_seconds = checker_seconds
        self._most_bytes = most_bytes
        self._lock = threading.Lock()
        self._known: OrderedDict[object, KnownProblem] = OrderedDict()
        self._num_prepared = 0
        self._num_bytes = 0

    def prepare(self, problem: Problem) -> KnownProblem:
        """Return a problem's prepared form.

        Raises:
            DataError: its tests or its checker cannot be used.
        """
        language = language_of(problem)
        # A language has several names, and one of its versions is meant if none is named.
        named = {"language": language.name, "language_version": language.version}
        content = tuple((judged_by(problem) | named).values())
        with self._lock:
            known = self._known.get(content)
            if known is not None:
                self._known.move_to_end(content)
                return known
        prepared = PreparedProblem(problem, time_scale=self._time_scale, checker_seconds=self._checker_seconds)
        with self._lock:
            self._num_prepared += 1
            if content in self._known:
                return self._known[content]
            known = self._known[content] = KnownProblem(self._num_prepared, prepared)
            self._num_bytes += known.num_bytes
            while len(self._known) > _MAX_PROBLEMS or (self._num_bytes > self._most_bytes and len(self._known) > 1):
                self._num_bytes -= self._known.popitem(last=False)[1].num_bytes
        return known


class VerdictCache:
    """The latest used verdicts; not safe for several threads at once."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._verdicts: OrderedDict[Key, Verdict] = OrderedDict()

    def find(self, key: Key) -> Verdict | None:
        """Return the stored verdict."""
        verdict = self._verdicts.get(key)
        if verdict is not None:
            self._verdicts.move_to_end(key)
        return verdict

    def keep(self, key: Key, verdict: Verdict) -> None:
        """Store a verdict, except sandbox faults and those that depend on other programs."""
        if not verdict.is_scorable or verdict.is_relative:
            return
        self._verdicts[key] = verdict
        while len(self._verdicts) > self._size:
            self._verdicts.popitem(last=False)

"""Caches verdicts on disk, so that a run that is resumed executes nothing twice."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import microcoder
from microcoder import judge
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import is_disk_full
from microcoder.judge.core.signatures import judged_by
from microcoder.judge.core.types import Outcome, Problem, Program, Repeat, TestResult, UncountedRun, Verdict

_WAIT_SECONDS = 60.0
_DECIDING = ("core", "compare", "sandbox", "run", "languages")
"""Packages of the judge whose code a verdict depends on."""


@cache
def evaluator_version() -> str:
    """Return the evaluator's version: that of the package, and a digest of the files that verdicts depend on."""
    folder = Path(judge.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for room in _DECIDING for path in (folder / room).rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return f"{microcoder.__version__}+{digest.hexdigest()[:12]}"


def verdict_key(program: Program, problem: Problem, *, stop: str, environment: str) -> bytes:
    """Return the key of a verdict: a digest of program, tests, comparison, limits, stop rule and evaluator.

    The evaluator's part is its version, and the Python and packages of programs (`JudgingEnvironment.identity`).

    The machine has no part in it: the stored verdict is that of the reference machine (see `at_reference_speed`), since
    a machine's speed is measured anew by every judge and a rebuild must find the verdicts of the build.
    """
    fields = judged_by(problem)
    decides = problem.model_copy(update={"call": fields.pop("call")}).model_dump(mode="json", include={"call", *fields})
    content = [evaluator_version(), environment, program.language, program.code, decides, stop]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).digest()


class VerdictStore(AbstractContextManager["VerdictStore"]):
    """A file of verdicts; safe for several processes of one machine, and against being killed.

    Errors of the sandbox are not kept: they say nothing about the program.
    """

    def __init__(self, path: Path) -> None:
        """Open the store at `path`, or create it."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # For any thread, one at a time.
            self._connection = sqlite3.connect(
                path, timeout=_WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            self._connection.execute("PRAGMA journal_mode=WAL")
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS verdicts (key BLOB PRIMARY KEY, verdict TEXT NOT NULL) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            if is_disk_full(error):
                raise
            raise DataError(f"store {path} cannot be used ({error}); remove it to start anew") from None

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def find(self, key: bytes) -> Verdict | None:
        """Return the verdict of this key, or None."""
        row = self._connection.execute("SELECT verdict FROM verdicts WHERE key = ?", (key,)).fetchone()
        return None if row is None else _decode(row[0])

    def keep(self, key: bytes, verdict: Verdict) -> None:
        """Store a verdict under a key, unless the sandbox failed."""
        if verdict.is_scorable:
            self._connection.execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?)", (key, _encode(verdict)))


def _encode(verdict: Verdict) -> str:
    tests = [[t.verdict, t.cpu_seconds, t.wall_seconds, t.memory_mib, t.method, t.detail] for t in verdict.tests]
    uncounted = [[run.test, run.reason] for run in verdict.uncounted]
    return json.dumps([verdict.outcome, verdict.tests_total, verdict.detail, verdict.isolation, tests, uncounted])


def _decode(text: str) -> Verdict:
    outcome, total, detail, isolation, tests, uncounted = json.loads(text)
    results = tuple(TestResult(Outcome(test[0]), *test[1:]) for test in tests)
    runs = tuple(UncountedRun(test, Repeat(reason)) for test, reason in uncounted)
    return Verdict(Outcome(outcome), results, total, detail, isolation, runs)

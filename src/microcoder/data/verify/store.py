"""Keeps verdicts on disk, so that a build that is resumed executes nothing twice."""

import hashlib
import json
import sqlite3
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path

import microcoder
from microcoder.judge.core.errors import DataError
from microcoder.judge.core.machine import is_disk_full
from microcoder.judge.core.signatures import judged_by
from microcoder.judge.core.types import (
    Outcome,
    Problem,
    Program,
    Repeat,
    TestResult,
    UncountedRun,
    Verdict,
)

_WAIT_SECONDS = 60.0
"""How long another process may hold the file."""
_DECIDING = ("core", "compare", "sandbox", "run", "languages")
"""Packages in `microcoder.judge` whose code a verdict depends on."""


@cache
def evaluator_version() -> str:
    """Return the evaluator's version.

    That is the version of the package, and a digest of the files that verdicts depend on.
    """
    folder = Path(microcoder.__file__).with_name("judge")
    paths: list[Path] = []
    for package in _DECIDING:
        paths += (folder / package).rglob("*")
    digest = hashlib.sha256()
    # Sorted by their whole path: folders list their files in any order.
    for path in sorted(paths):
        if path.suffix in (".py", ".toml"):
            name = path.relative_to(folder).as_posix()
            digest.update(name.encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return f"{microcoder.__version__}+{digest.hexdigest()[:12]}"


def verdict_key(
    program: Program,
    problem: Problem,
    *,
    stop: str,
    environment: str,
) -> bytes:
    """Return the key of a verdict: a digest of everything that decides it.

    That is the program, tests, comparison, limits, stop rule and evaluator. The evaluator's part is
    its version, and the Python and packages of programs (`JudgingEnvironment.identity`).

    The machine is not part of it, since stored verdicts are those of the reference machine (see
    `at_reference_speed`). Every judge measures its machine's speed, and a rebuild must find
    the verdicts of the build.
    """
    # Only what decides a verdict: a new title must not cost an execution.
    fields = judged_by(problem)
    deciding = problem.model_copy(update={"call": fields.pop("call")})
    dumped = deciding.model_dump(
        mode="json",
        include={"call", *fields},
    )
    content = [evaluator_version(), environment, program.language, program.code, dumped, stop]
    encoded = json.dumps(content, sort_keys=True).encode("ascii")
    return hashlib.sha256(encoded).digest()


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
                path,
                timeout=_WAIT_SECONDS,
                isolation_level=None,
                check_same_thread=False,
            )
            # Processes read while one writes.
            self._connection.execute("PRAGMA journal_mode=WAL")
            # A power cut may lose the last verdicts, which are then computed again.
            self._connection.execute("PRAGMA synchronous=NORMAL")
            self._connection.execute(
                "CREATE TABLE IF NOT EXISTS verdicts "
                "(key BLOB PRIMARY KEY, verdict TEXT NOT NULL) WITHOUT ROWID"
            )
        except sqlite3.Error as error:
            if is_disk_full(error):
                raise
            message = f"store {path} cannot be used ({error}); remove it to start anew"
            raise DataError(message) from None

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def find(self, key: bytes) -> Verdict | None:
        """Return the verdict of this key, or None."""
        query = "SELECT verdict FROM verdicts WHERE key = ?"
        row = self._connection.execute(query, (key,)).fetchone()
        return None if row is None else _decode(row[0])

    def keep(self, key: bytes, verdict: Verdict) -> None:
        """Store a verdict under a key, unless the sandbox failed."""
        # A fault of the sandbox may be gone the next time.
        if verdict.is_scorable:
            command = "INSERT OR REPLACE INTO verdicts VALUES (?, ?)"
            self._connection.execute(command, (key, _encode(verdict)))


def _encode(verdict: Verdict) -> str:
    tests = []
    for test in verdict.tests:
        times = [test.cpu_seconds, test.wall_seconds]
        tests.append([test.verdict, *times, test.memory_mib, test.method, test.detail])
    fields = [
        verdict.outcome,
        verdict.tests_total,
        verdict.detail,
        verdict.isolation,
        tests,
        [[run.test, run.reason] for run in verdict.uncounted],
        verdict.order,
    ]
    return json.dumps(fields)


def _decode(text: str) -> Verdict:
    outcome, total, detail, isolation, tests, uncounted, order = json.loads(text)
    results = tuple(TestResult(Outcome(test[0]), *test[1:]) for test in tests)
    runs = tuple(UncountedRun(test, Repeat(reason)) for test, reason in uncounted)
    return Verdict(
        Outcome(outcome),
        results,
        total,
        detail,
        isolation,
        runs,
        tuple(order),
    )

"""Verify by execution: every program of a batch of candidates through the Judge, phase by phase.

    accepted programs, generous limits, repeated -> limits -> again, under them -> trivial -> known-wrong programs

Pass a judge with `cache_size=0` and the stop rule `first_limit`: with `first_failure` a known-wrong program shows only
the first test that catches it, and the choice of tests knows less. Which programs run is decided before anything does.
Verdicts are kept on disk, so that a run that is resumed executes nothing twice.

A source's limits are kept where accepted programs fit. Otherwise the limit is one of a few steps; close to the
boundary between two of them the programs are timed again and the fastest runs count. Programs known to be too slow, in
another language than the answers', get what accepted programs in theirs need, as Kattis counts it: whole seconds.
"""

import hashlib
import json
import math
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

from pydantic import ValidationError

import microcoder
from microcoder.data.formats.candidates import Candidate, Rejection, Solution, process_row
from microcoder.data.formats.values import is_python2
from microcoder.data.verify.evidence import (
    LIMITS,
    STEP,
    TOO_SLOW,
    Evidence,
    Role,
    Trial,
    VerifySettings,
    at_reference_speed,
    chosen_tests,
    conclude,
    is_close,
    round_up,
)
from microcoder.judge import Judge, check_problem
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
from microcoder.judge.languages import find_language

_WAIT_SECONDS = 60.0
_RUNS = 3
"""How often every accepted program must pass (our choice): the second run takes the tests in another order, the last in
yet another, under the derived limits."""
_DECIDING = ("core", "compare", "sandbox", "run", "languages")
"""Packages in `microcoder.judge` whose code a verdict depends on."""


@cache
def evaluator_version() -> str:
    """Return the evaluator's version: that of the package, and a digest of the files that verdicts depend on."""
    folder = Path(microcoder.__file__).with_name("judge")
    digest = hashlib.sha256()
    for path in sorted(path for room in _DECIDING for path in (folder / room).rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(
                path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0"
            )
    return f"{microcoder.__version__}+{digest.hexdigest()[:12]}"


def verdict_key(program: Program, problem: Problem, *, stop: str, environment: str) -> bytes:
    """Return the key of a verdict: a digest of program, tests, comparison, limits, stop rule and evaluator.

    The evaluator's part is its version, and the Python and packages of programs (`JudgingEnvironment.identity`).

    The machine has no part in it: the stored verdict is that of the reference machine (see `at_reference_speed`), since
    a machine's speed is measured anew by every judge and a rebuild must find the verdicts of the build.
    """
    fields = judged_by(problem)
    decides = problem.model_copy(update={"call": fields.pop("call")}).model_dump(
        mode="json", include={"call", *fields}
    )
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
            raise DataError(
                f"store {path} cannot be used ({error}); remove it to start anew"
            ) from None

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def find(self, key: bytes) -> Verdict | None:
        """Return the verdict of this key, or None."""
        row = self._connection.execute(
            "SELECT verdict FROM verdicts WHERE key = ?", (key,)
        ).fetchone()
        return None if row is None else _decode(row[0])

    def keep(self, key: bytes, verdict: Verdict) -> None:
        """Store a verdict under a key, unless the sandbox failed."""
        if verdict.is_scorable:
            self._connection.execute(
                "INSERT OR REPLACE INTO verdicts VALUES (?, ?)", (key, _encode(verdict))
            )


def _encode(verdict: Verdict) -> str:
    tests = [
        [t.verdict, t.cpu_seconds, t.wall_seconds, t.memory_mib, t.method, t.detail]
        for t in verdict.tests
    ]
    uncounted = [[run.test, run.reason] for run in verdict.uncounted]
    return json.dumps(
        [verdict.outcome, verdict.tests_total, verdict.detail, verdict.isolation, tests, uncounted]
    )


def _decode(text: str) -> Verdict:
    outcome, total, detail, isolation, tests, uncounted = json.loads(text)
    results = tuple(TestResult(Outcome(test[0]), *test[1:]) for test in tests)
    runs = tuple(UncountedRun(test, Repeat(reason)) for test, reason in uncounted)
    return Verdict(Outcome(outcome), results, total, detail, isolation, runs)


_ROLES: dict[str, Role] = {
    "accepted": "accepted",
    "wrong_answer": "wrong",
    "runtime_error": "wrong",
    "memory_limit": "slow",
    "time_limit": "slow",
    "partial": "partial",
}
TRIAL_SECONDS, _TRIAL_MEMORY_MIB = 20.0, 2048
"""CPU seconds per test and MiB of accepted programs in the runs from which limits are derived, or the source's limits
if larger (our choices)."""
_MOST_ACCEPTED, _MOST_OTHERS = 6, 24
"""Most programs that are run per problem: accepted ones, the answers' language first; known-wrong and slow ones."""
_CANNOT_BE_JUDGED = ("interactive", "file_io")
_CONSTANTS = ("yes", "no", "0", "1", "-1")
_MAX_CONSTANT_BYTES = 1 << 16
_VALUES = ("None", "0", "1", "-1", "''", "[]", "True", "False")
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


@dataclass
class Attempt:
    """One program of a problem to be run, and its verdicts so far, one per run."""

    name: str
    role: Role
    program: Program
    order: tuple[int, ...] = ()
    """Indices of the tests in the order of its first run; empty: as the candidate has them."""
    verdicts: list[Verdict] = field(default_factory=list)
    fastest_seconds: list[float] = field(default_factory=list)
    """Accepted programs that passed: least CPU seconds per test over all runs."""


@dataclass
class VerificationPlan:
    """A candidate, its programs that are to be run, and their limits."""

    candidate: Candidate
    accepted: list[Attempt]
    others: list[Attempt]
    trivial: list[Attempt]
    limit_seconds: float
    """CPU seconds per test: generous until limits are derived from accepted programs, then the derived limit."""
    memory_mib: int
    answer_seconds: float = 0.0
    """CPU seconds per test that the problem is published with; 0 until limits are derived."""
    seconds_by_language: dict[str, float] = field(default_factory=dict)
    """Seconds per test of programs known to be too slow, by language, where no limit is stated: one may be slow for C++
    and still end within what accepted Python programs need. In the language of answers it is their limit."""

    def passing(self) -> list[Attempt]:
        """Return the accepted programs that passed every run so far."""
        return [
            attempt
            for attempt in self.accepted
            if all(verdict.is_accepted for verdict in attempt.verdicts)
        ]

    def problem(
        self, language: str, *, seconds: float | None = None, order: Sequence[int] = ()
    ) -> Problem:
        """Return the problem that a program of this language is judged by; `order`: indices of tests, empty for all."""
        return self.candidate.to_trial(
            language,
            seconds=seconds or self.limit_seconds,
            memory_mib=self.memory_mib,
            tests=[self.candidate.tests[number] for number in order] or None,
        )


def plan(candidate: Candidate) -> VerificationPlan | Rejection:
    """Return the programs to run, or a rejection if the problem cannot be verified."""
    if not candidate.tests:
        return candidate.reject("verify", "no_tests")
    standing = [flag for flag in candidate.flags if flag in _CANNOT_BE_JUDGED]
    if standing:
        return candidate.reject("verify", "not_judgeable", ", ".join(standing))
    attempts = sorted(
        _attempts(candidate), key=lambda one: one.program.language != candidate.programming_language
    )
    accepted = [attempt for attempt in attempts if attempt.role == "accepted"][:_MOST_ACCEPTED]
    if not accepted:
        known = sorted(
            {solution.language for solution in candidate.solutions if solution.known == "accepted"}
        )
        return candidate.reject(
            "verify", "no_reference", f"accepted programs: {', '.join(known) or 'none'}"
        )
    # Wrong ones first, slow ones last: what is cut off is what says least.
    others = [
        attempt
        for role in ("wrong", "partial", "slow")
        for attempt in attempts
        if attempt.role == role
    ]
    made = VerificationPlan(
        candidate=candidate,
        accepted=accepted,
        others=others[:_MOST_OTHERS],
        trivial=[
            Attempt(name, "trivial", Program(code))
            for name, code in trivial_programs(candidate).items()
        ],
        limit_seconds=max(TRIAL_SECONDS, candidate.time_limit_seconds or 0.0),
        memory_mib=max(_TRIAL_MEMORY_MIB, candidate.memory_limit_mib or 0),
    )
    try:
        candidate.to_problem()
        for language in sorted(
            {attempt.program.language for attempt in made.accepted} | {"python"}
        ):
            check_problem(made.problem(language))
    except (DataError, ValidationError) as error:
        return candidate.reject("verify", "not_judgeable", str(error).replace("\n", " ")[:300])
    return made


def turned_numbers(num_tests: int, repeat: int) -> tuple[int, ...]:
    """Return the tests' indices, rotated for each `repeat`; a single test's index `repeat + 1` times.

    Another order is another problem to the judge, so that no verdict comes from its cache.
    """
    if num_tests == 1:
        return (0,) * (repeat + 1)
    start = repeat * max(1, num_tests // (repeat + 1)) % num_tests
    return (*range(start, num_tests), *range(start))


def _attempts(candidate: Candidate) -> list[Attempt]:
    attempts: list[Attempt] = []
    seen: set[str] = {
        solution.code for solution in candidate.solutions if solution.known == "accepted"
    }
    for place, solution in enumerate(candidate.solutions):
        role = _ROLES.get(solution.known)
        if role is None or (role != "accepted" and solution.code in seen):
            continue
        seen.add(solution.code)
        if language := language_of(solution, candidate):
            attempts.append(Attempt(f"{place}", role, Program(solution.code, language)))
    return attempts


def language_of(solution: Solution, candidate: Candidate) -> str:
    """Return the evaluator's name of a solution's language; empty if the solution cannot be run here."""
    try:
        language = find_language(solution.language)
    except DataError:
        return ""
    is_callable = candidate.fn_name is None or not language.is_built
    is_old = language.name == "python" and is_python2(solution.code)
    return language.name if is_callable and not is_old and not language.find_problem() else ""


def trivial_programs(candidate: Candidate) -> dict[str, str]:
    """Return trivial Python programs by name (constants, an echo of the input), which must fail on a problem."""
    commonest = Counter(test.output for test in candidate.tests).most_common(1)
    constant = (
        commonest[0][0] if commonest and len(commonest[0][0]) <= _MAX_CONSTANT_BYTES else None
    )
    if candidate.fn_name is not None:
        bodies = {f"constant {value}": value for value in _VALUES}
        bodies["echo"] = "arguments[0] if arguments else None"
        if constant is not None:
            bodies["constant commonest answer"] = f"__import__('json').loads({constant!a})"
        return {
            name: f"def {candidate.fn_name}(*arguments):\n    return {value}\n"
            for name, value in bodies.items()
        }
    found = {"empty": "pass\n", "echo": "import sys\nsys.stdout.write(sys.stdin.read())\n"}
    found |= {f"constant {value}": f"print({value!r})\n" for value in _CONSTANTS}
    if constant is not None:
        text = ascii(constant.encode("utf-8", "surrogateescape"))
        found["constant commonest answer"] = f"import sys\nsys.stdout.buffer.write({text})\n"
    return found


Run = Callable[[Sequence[tuple[Program, Problem]]], list[Verdict]]

_WORKED_SHARE = 0.05
"""Least CPU share of the wall time of a slow program: one that sleeps, or waits for input, works less."""
_MOST_TRIES = 4


def run_pairs(
    pairs: Sequence[tuple[Program, Problem]], judge: Judge, store: VerdictStore | None
) -> list[Verdict]:
    """Return one verdict per pair, with times of the reference machine; those in the store are not computed again."""
    keys = [
        verdict_key(*pair, stop=judge.stop, environment=judge.environment.identity)
        for pair in pairs
    ]
    known = ((number, store.find(key)) for number, key in enumerate(keys) if store is not None)
    found = {number: verdict for number, verdict in known if verdict is not None}

    def ask(numbers: Sequence[int], *, is_last: bool = False) -> None:
        """Judge some pairs; each verdict is kept as soon as it is known, unless it will be judged again."""

        def keep(place: int, verdict: Verdict) -> None:
            number = numbers[place]
            found[number] = at_reference_speed(verdict, judge.time_scale)
            if store is not None and (is_last or not _was_disturbed(verdict)):
                store.keep(keys[number], found[number])

        judge.judge([pairs[n][0] for n in numbers], [pairs[n][1] for n in numbers], on_verdict=keep)

    left = [number for number in range(len(pairs)) if number not in found]
    ask(left)
    for is_last in [False] * (_MOST_TRIES - 2) + [True]:
        for number in [number for number in left if _was_disturbed(found[number])]:
            ask([number], is_last=is_last)
    return [found[number] for number in range(len(pairs))]


def verify(
    candidates: Sequence[Candidate],
    judge: Judge,
    settings: VerifySettings,
    *,
    store: VerdictStore | None = None,
) -> list[Candidate | Rejection]:
    """Return each candidate with its chosen tests, limits and verified references, or its rejection."""
    found = gather(candidates, judge, settings, store=store)
    return [conclude(item, settings) if isinstance(item, Evidence) else item for item in found]


def gather(
    candidates: Sequence[Candidate],
    judge: Judge,
    settings: VerifySettings,
    *,
    store: VerdictStore | None = None,
) -> list[Evidence | Rejection]:
    """Run each candidate's programs; return the evidence for `conclude`, or a rejection.

    Args:
        candidates: from the process and filter stages.
        judge: runs the programs; see the module's docstring for its options.
        settings: how many tests are kept.
        store: holds verdicts of an earlier run, and gets those of this one.
    """
    run = partial(run_pairs, judge=judge, store=store)
    made = [process_row(candidate, "verify", plan) for candidate in candidates]
    runnable = [item for item in made if isinstance(item, VerificationPlan)]
    # With generous limits first.
    _run_all(run, [(item, attempt) for item in runnable for attempt in item.accepted])
    for item in runnable:
        for attempt in item.passing():
            attempt.fastest_seconds = [test.cpu_seconds for test in attempt.verdicts[0].tests]
    for repeat in range(1, _RUNS - 1):
        _run_again(run, runnable, repeat)
    sound = [item for item in runnable if item.passing()]
    derive_limits(run, sound, first=_RUNS)
    _run_again(run, sound, _RUNS - 1)
    sound = [item for item in sound if item.passing()]
    _run_trivial(run, sound)
    _run_others(run, sound, settings)
    return [_evidence(item) if isinstance(item, VerificationPlan) else item for item in made]


def _was_disturbed(verdict: Verdict) -> bool:
    """Whether the machine may have caused a verdict: the sandbox failed, or a working program ran out of wall time."""
    if verdict.outcome is Outcome.SANDBOX_FAULT:
        return not verdict.is_checker_fault
    late = [test for test in verdict.tests if test.verdict is Outcome.TIME_LIMIT]
    return any(
        test.detail.startswith("wall") and test.cpu_seconds > _WORKED_SHARE * test.wall_seconds
        for test in late
    )


def _run_again(run: Run, plans: Sequence[VerificationPlan], repeat: int) -> None:
    """Run the accepted programs that passed so far once more, with the tests in another order."""
    pairs = [(item, attempt) for item in plans for attempt in item.passing()]
    for (_, attempt), verdict in zip(pairs, _run_turned(run, pairs, repeat), strict=True):
        attempt.verdicts.append(verdict)


def _run_turned(
    run: Run, pairs: Sequence[tuple[VerificationPlan, Attempt]], repeat: int
) -> list[Verdict]:
    """Run each program with the tests in another order, note the fastest times, and return the verdicts."""
    orders = [turned_numbers(len(item.candidate.tests), repeat) for item, _ in pairs]
    verdicts = run([
        (attempt.program, item.problem(attempt.program.language, order=order))
        for (item, attempt), order in zip(pairs, orders, strict=True)
    ])  # fmt: skip
    for (_, attempt), verdict, order in zip(pairs, verdicts, orders, strict=True):
        for number, test in zip(order, verdict.tests, strict=False):
            attempt.fastest_seconds[number] = min(attempt.fastest_seconds[number], test.cpu_seconds)
    return verdicts


def _run_trivial(run: Run, plans: Sequence[VerificationPlan]) -> None:
    pairs = [(item, attempt) for item in plans for attempt in item.trivial]
    for item, attempt in pairs:
        tests = item.candidate.tests
        attempt.order = (max(range(len(tests)), key=lambda number: len(tests[number].output)),)
    _run_all(run, pairs, [item.answer_seconds for item, _ in pairs])
    again = [(item, attempt) for item, attempt in pairs if attempt.verdicts[0].is_accepted]
    for _, attempt in again:
        attempt.order = ()
        attempt.verdicts.clear()
    _run_all(run, again)


def _run_others(run: Run, plans: Sequence[VerificationPlan], settings: VerifySettings) -> None:
    """Run the programs that are known to fail: the wrong ones, then those that are right and too slow.

    The slow ones run the tests that will be kept first, longest inputs first: they are stopped at the first limit, and
    what counts is whether a kept test stops them.
    """
    _run_all(
        run, [(item, one) for item in plans for one in item.others if one.role not in TOO_SLOW]
    )
    pairs = [(item, one) for item in plans for one in item.others if one.role in TOO_SLOW]
    for item in {id(item): item for item, _ in pairs}.values():
        kept, tests = chosen_tests(_evidence(item), settings), item.candidate.tests
        order = sorted(
            range(len(tests)),
            key=lambda number: (number not in kept, -len(tests[number].input), number),
        )
        for one in item.others:
            one.order = tuple(order) if one.role in TOO_SLOW else one.order
    limits = [
        item.seconds_by_language.get(one.program.language, item.limit_seconds)
        for item, one in pairs
    ]
    _run_all(run, pairs, limits)


def _run_all(
    run: Run,
    pairs: Sequence[tuple[VerificationPlan, Attempt]],
    seconds: Sequence[float | None] = (),
) -> None:
    """Run each program once, with these CPU seconds per test or its plan's limit, and store its verdict."""
    limits = seconds or [None] * len(pairs)
    asked = [
        (
            attempt.program,
            item.problem(attempt.program.language, seconds=limit, order=attempt.order),
        )
        for (item, attempt), limit in zip(pairs, limits, strict=True)
    ]
    for (_, attempt), verdict in zip(pairs, run(asked), strict=True):
        attempt.verdicts.append(verdict)


def _evidence(item: VerificationPlan) -> Evidence:
    attempts = [*item.accepted, *(a for a in item.trivial + item.others if a.verdicts)]
    num_tests = len(item.candidate.tests)
    trials = tuple(_trial(attempt, num_tests) for attempt in attempts)
    return Evidence(candidate=item.candidate, trials=trials)


def _trial(attempt: Attempt, num_tests: int) -> Trial:
    failing = [
        verdict for verdict in attempt.verdicts if not verdict.is_accepted and verdict.is_scorable
    ]
    unscored = [verdict for verdict in attempt.verdicts if not verdict.is_scorable]
    verdict = (failing or unscored or attempt.verdicts)[0]
    first = attempt.verdicts[0]
    never = (Outcome.ACCEPTED, Outcome.SANDBOX_FAULT)
    order = attempt.order or range(num_tests)
    failed = {
        order[place]: test.verdict
        for place, test in enumerate(first.tests)
        if test.verdict not in never
    }
    over_limit = tuple(sorted(number for number, outcome in failed.items() if outcome in LIMITS))
    if first.outcome is Outcome.COMPILE_ERROR:
        failed = dict.fromkeys(range(num_tests), first.outcome)
    is_reference = attempt.role == "accepted" and first.is_accepted
    return Trial(
        name=attempt.name,
        role=attempt.role,
        outcome=verdict.outcome,
        failed=tuple(sorted(failed)),
        over_limit=over_limit,
        is_flaky=bool(failing) and first.is_accepted,
        seconds=tuple(cost_of(seconds) for seconds in attempt.fastest_seconds)
        if is_reference
        else (),
        # Without what differs from run to run.
        detail="" if verdict.outcome in LIMITS else _ADDRESS.sub("0x...", verdict.detail),
    )


MULTIPLIER = 5.0
"""Factor from slowest accepted run to limit, if the source states neither limit nor factor (Kattis' own)."""
LIMIT_STEPS_SECONDS = (2.0, 5.0, 10.0)
"""A derived limit is rounded up to one of these; the last one is the largest: a problem that needs longer costs a
training step minutes for each wrong answer. Few and far apart, so that two builds on busy machines derive the same."""
_HEADROOM = 1.5
"""A source's limit is kept if it is this many times the slowest accepted run; otherwise raised to at least that."""
_INTERPRETED_FACTOR = 4.0
"""Factor on a derived limit for Python answers where only compiled programs were timed."""
_MEMORY_MIB = 512
"""Least memory limit where the source has none or programs exceed it; more if accepted runs need over half of it."""
_MORE_MEASUREMENTS = 3


def derive_limits(run: Run, plans: Sequence[VerificationPlan], *, first: int) -> None:
    """Set the limits of each plan; programs close to a boundary between two limits are timed again before.

    Args:
        plans: every one has accepted programs that passed every run so far.
        first: number of runs so far; further ones take the tests in orders of their own.
    """
    again = [(item, attempt) for item in plans for attempt in _undecided(item)]
    for repeat in range(first, first + _MORE_MEASUREMENTS):
        _run_turned(run, again, repeat)
    for item in plans:
        _set_limits(item)


def cost_of(seconds: float) -> float:
    """Round a test's CPU seconds up to the largest with the same derived limit, so that noise changes no choice."""
    return round_up(
        seconds, [*(step / MULTIPLIER for step in LIMIT_STEPS_SECONDS), LIMIT_STEPS_SECONDS[-1]]
    )


def _multiplier_of(candidate: Candidate) -> float:
    """Return the factor from the slowest accepted run to the limit: the source's, at least `_HEADROOM`."""
    return max(candidate.time_multiplier or MULTIPLIER, _HEADROOM)


def _set_limits(item: VerificationPlan) -> None:
    slowest = max(max(attempt.fastest_seconds) for attempt in item.passing())
    given, steps = item.candidate.time_limit_seconds, LIMIT_STEPS_SECONDS
    multiplier = _multiplier_of(item.candidate)
    if given is not None and slowest * _HEADROOM <= given:
        limit = answers = given
    else:
        factor = multiplier if given is None else _HEADROOM
        limit = round_up(slowest * factor, steps, most=given or 0.0)
        languages = {attempt.program.language for attempt in item.passing()}
        is_timed = (
            item.candidate.programming_language in languages
            or item.candidate.programming_language != "python"
        )
        answers = limit if is_timed else round_up(limit * _INTERPRETED_FACTOR, steps, most=limit)
    item.limit_seconds, item.answer_seconds = float(limit), float(answers)
    if given is None:
        for attempt in item.passing():
            language, whole = (
                attempt.program.language,
                math.ceil(max(attempt.fastest_seconds) * multiplier),
            )
            own = min(float(max(1, whole)), steps[-1])
            item.seconds_by_language[language] = max(
                item.seconds_by_language.get(language, 0.0), own
            )
        item.seconds_by_language[item.candidate.programming_language] = item.answer_seconds
    peak = max(test.memory_mib for attempt in item.passing() for test in attempt.verdicts[0].tests)
    memory = item.candidate.memory_limit_mib
    if memory is None or peak > memory:
        # A power of two.
        memory = max(_MEMORY_MIB, 1 << math.ceil(math.log2(max(2 * peak, 1.0))))
    item.memory_mib = memory
    limits = {"time_limit_seconds": item.answer_seconds, "memory_limit_mib": memory}
    item.candidate = item.candidate.change(
        "verify", STEP, "from what accepted programs take", **limits
    )


def _undecided(item: VerificationPlan) -> list[Attempt]:
    """Return the accepted programs whose time on a test decides between two limits and is close to the boundary."""
    passing, given, steps = item.passing(), item.candidate.time_limit_seconds, LIMIT_STEPS_SECONDS
    boundaries = [step / _multiplier_of(item.candidate) for step in steps]
    if given is not None:
        boundaries += [limit / _HEADROOM for limit in (given, *steps)]
    slowest = [
        max(seconds)
        for seconds in zip(*(attempt.fastest_seconds for attempt in passing), strict=True)
    ]
    close = [
        boundary
        for boundary in boundaries
        if any(is_close(seconds, boundary) for seconds in slowest)
    ]
    return [
        a
        for a in passing
        if any(is_close(seconds, b) for seconds in a.fastest_seconds for b in close)
    ]

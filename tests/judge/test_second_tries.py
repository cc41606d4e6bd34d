"""No program has a second try: guesses pass as often as chance has it,
and no test knows that it is not the first.
"""

import itertools
import json
import pickle
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest
from pydantic import TypeAdapter

from microcoder.data.verify.store import VerdictStore
from microcoder.judge import Judge
from microcoder.judge.core.errors import EvaluatorFault
from microcoder.judge.core.types import Outcome, Program, Repeat, UncountedRun, Verdict
from microcoder.judge.fleet.remote import JudgeResponse
from microcoder.judge.run import sandboxes, sharing, sharing_names
from microcoder.judge.run.judging import Session
from microcoder.judge.run.sandboxes import SandboxKind
from microcoder.judge.run.screen import find_obstacle, screen
from microcoder.judge.run.sharing import DiscardedRun
from microcoder.judge.run.submissions import verdict_record
from microcoder.judge.run.supervisor import DiskFull, LoadedProgram, Sandbox, SandboxDied
from microcoder.judge.run.verdicts import PreparedProblem, Run
from microcoder.train.metrics import share_uncounted, share_unrepeated
from tests.judge.conftest import make_problem, workers_of
from tests.judge.guessing_programs import ADDRESSES, COIN, DISLIKED, PLACES
from tests.judge.sharing_fuzzer import find_leaks, run_together, write_programs

_FLIPS = 6
_PROGRAMS = 60
"""Programs that guess; by chance 1 in 64 passes."""
_MOST_LUCKY = 8
"""More than 8 of 60 pass by chance once in a million runs; with second tries 11 do."""
PATTERNS = ("NYNY", "NYYYY", "NNYN", "NYYNNYNY")
"""Answers to equal inputs, yes or no."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    started = Sandbox()
    yield started
    started.close()


@pytest.mark.parametrize(
    ("does", "batch_tests"), [*((name, True) for name in DISLIKED), ("a kill", False)]
)
def test_a_coin_passes_as_often_as_chance_has_it(
    does: str,
    batch_tests: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With nothing screened: what draws entropy keeps a process a test,
    # but luck may be had where nobody looked.
    monkeypatch.setattr(sharing, "find_obstacle", lambda code, is_function: "")
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in range(_FLIPS)), memory_limit_mib=32)
    programs = [Program(f"{COIN}{DISLIKED[does]}\n# {number}\n") for number in range(_PROGRAMS)]
    with Judge(
        workers=1,
        cache_size=0,
        stop="first_failure",
        time_scale=1.0,
        batch_tests=batch_tests,
    ) as judge:
        verdicts = judge.judge(programs, [problem] * _PROGRAMS)
        anew = judge.statistics.anew
    assert sum(verdict.is_accepted for verdict in verdicts) <= _MOST_LUCKY
    for verdict in verdicts:
        assert verdict.is_scorable
    assert anew > 0


def test_a_program_that_is_judged_anew_has_the_verdict_of_a_process_a_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "find_obstacle", lambda code, is_function: "")
    # The files that a shared process holds tell it: there it kills itself.
    code = "import os\nn = int(input())\nif n:\n    try: os.fstat(4)\n    except OSError: pass\n"
    code += "    else: os.kill(os.getpid(), 9)\nprint(n)\n"
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in (0, 1, 0)))
    with Judge(workers=1, cache_size=0, stop="first_failure", time_scale=1.0) as judge:
        (verdict,) = judge.judge([Program(code)], [problem])
        assert verdict.is_accepted
        assert {run.reason for run in verdict.uncounted} >= {
            Repeat.SHARED_LOST,
            Repeat.KILLED,
            Repeat.JUDGED_ANEW,
        }
        assert judge.statistics.anew == 1
        assert judge.statistics.differences == 0


LATE = "n = int(input())\nif n == 7: sum(i * i for i in range(20_000_000))\nprint(n)\n"
HIDDEN = "n = int(input())\nif n == 2: print.__self__.__dict__['left'] = n\nprint(n)\n"


@pytest.mark.parametrize(
    ("code", "last_unchecked"),
    [(LATE, 6), (HIDDEN, 9)],
    ids=["a late one is lost", "hidden"],
)
def test_what_no_look_has_followed_is_run_again(
    code: str,
    last_unchecked: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "find_obstacle", lambda code, is_function: "")
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in range(1, 10)), time_limit_seconds=60.0)
    with Judge(workers=1, cache_size=0, time_scale=1.0) as judge:
        (verdict,) = judge.judge([Program(code)], [problem])
        uncounted = [UncountedRun(n, Repeat.SHARED_UNCHECKED) for n in range(2, last_unchecked + 1)]
        uncounted += [
            UncountedRun(7, Repeat.SHARED_LOST) if code is LATE else UncountedRun(1, Repeat.PROBE)
        ]
        assert verdict.outcome == Outcome.ACCEPTED
        assert [*verdict.uncounted] == uncounted
        assert judge.statistics.anew == 0


class Dying(Sandbox):
    """Dies after each of some runs of programs."""

    deaths: ClassVar[list[type[Exception]]] = []

    def run(self, *arguments: Any, **named: Any) -> Run:
        run = super().run(*arguments, **named)
        if self.deaths:
            raise self.deaths.pop()("the disk was full")
        return run


@pytest.mark.parametrize("batch_tests", [True, False])
def test_what_passes_after_its_sandbox_died_is_judged_anew(
    batch_tests: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = make_problem(*((f"{n}\n", f"{n}\n") for n in range(3)))
    with Judge(workers=1, cache_size=0, time_scale=1.0, batch_tests=batch_tests) as judge:
        session = workers_of(judge).sessions[0]
        session.sandboxes._discard(SandboxKind())
        monkeypatch.setattr(sandboxes, "Sandbox", Dying)
        for number, (deaths, outcome) in enumerate(
            (
                ([DiskFull], Outcome.ACCEPTED),
                ([SandboxDied], Outcome.ACCEPTED),
                ([OSError], Outcome.ACCEPTED),
                # The first run is tried again, and that one fails:
                # a fault that the ledger has a run of.
                ([DiskFull] * 2, Outcome.SANDBOX_FAULT),
            ),
            1,
        ):
            monkeypatch.setattr(Dying, "deaths", [*deaths])
            (verdict,) = judge.judge([Program("print(input())")], [problem])
            assert verdict.outcome is outcome, verdict.detail
            assert verdict.uncounted[0] == UncountedRun(1, Repeat.SANDBOX_DIED)
            assert judge.statistics.anew == min(number, 3)


def test_a_full_disk_is_not_tried_again_in_a_run_that_is_the_only_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sandboxes, "Sandbox", Dying)
    with closing(Session()) as session, closing(LoadedProgram("print(3)")) as program:
        problem = PreparedProblem(make_problem(("", "3")))
        monkeypatch.setattr(Dying, "deaths", [DiskFull])
        with pytest.raises(EvaluatorFault, match="the disk was full"):
            session.sandboxes.run(SandboxKind(), program.task(b""), problem, is_only_attempt=True)
        monkeypatch.setattr(Dying, "deaths", [SandboxDied])
        run = session.sandboxes.run(SandboxKind(), program.task(b""), problem, is_only_attempt=True)
        assert run.stdout == b"3\n"
        assert session.sandboxes.discarded == [DiscardedRun(Repeat.SANDBOX_DIED, 0.0)]


def test_no_test_knows_that_it_is_not_the_first(sandbox: Sandbox) -> None:
    sharing = []
    for place in PLACES.values():
        if not all(find_obstacle(place, is_function=kind) for kind in (False, True)):
            sharing.append(place)
    assert sharing
    for place in sharing:
        outputs = run_together(sandbox, f"{place}print(value())", b"", 4)
        assert len({*outputs}) == 1, (place, outputs)


def test_a_program_that_knows_the_place_of_a_test_is_not_accepted(sandbox: Sandbox) -> None:
    places = [*PLACES.values(), *ADDRESSES]
    firsts = []
    for place in places:
        firsts.append(
            run_together(sandbox, f"{place}print(value())", b"", 1)[0][1].decode().strip()
        )
    stops: tuple[Literal["first_failure", "never"], ...] = ("first_failure", "never")
    for turn, (stop, is_function) in enumerate(itertools.product(stops, (False, True))):
        programs = []
        problems = []
        # Each way with each pattern in turn: what the screen keeps apart fails in all of them
        # alike.
        for number, (place, first) in enumerate(zip(places, firsts, strict=True), turn):
            answer = f"'N' if str(value()) == {first!r} else 'Y'"
            outputs = PATTERNS[number % len(PATTERNS)]
            code = f"def solve(): return {answer}" if is_function else f"print({answer})"
            options = {"fn_name": "solve"} if is_function else {}
            tests = (("", json.dumps(one) if is_function else one) for one in outputs)
            programs.append(Program(f"{place}{code}"))
            problems.append(make_problem(*tests, **options))
        with Judge(workers=1, cache_size=0, stop=stop, time_scale=1.0) as judge:
            verdicts = judge.judge(programs, problems)
        # What the screen keeps apart has no second try: where it is accepted,
        # its addresses had luck, as alone.
        for program, verdict in zip(programs, verdicts, strict=True):
            if verdict.is_accepted:
                assert program.code is not None
                assert find_obstacle(program.code, is_function=is_function)


def test_programs_of_allowed_names_do_the_same_in_every_test_of_a_process(sandbox: Sandbox) -> None:
    assert find_leaks(sandbox, write_programs(40)) == []


def test_the_fuzzer_finds_a_name_that_tells_tests_apart(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = sharing_names._ONLY_MEMBERS["sys"]
    screen.cache_clear()
    monkeypatch.setitem(sharing_names._ONLY_MEMBERS, "sys", known | {"getallocatedblocks"})
    leaks = find_leaks(sandbox, write_programs(25, seed=5, modules=("sys",)))
    screen.cache_clear()
    assert leaks
    for leak in leaks:
        assert "getallocatedblocks" in leak


VERDICT = Verdict(
    Outcome.ACCEPTED,
    (),
    2,
    uncounted=(
        UncountedRun(2, Repeat.SHARED_LOST),
        UncountedRun(1, Repeat.PROBE),
        UncountedRun(2, Repeat.PROBE),
    ),
)


def test_runs_that_did_not_count_survive_every_wire_and_are_shared_by_reason(
    tmp_path: Path,
) -> None:
    plain = Verdict(Outcome.ACCEPTED, (), 2)
    assert pickle.loads(pickle.dumps(VERDICT)) == VERDICT
    response = JudgeResponse(verdicts=(VERDICT,))
    assert JudgeResponse.model_validate_json(response.model_dump_json()) == response
    old = {"outcome": "accepted", "tests": [], "tests_total": 2}
    assert TypeAdapter(Verdict).validate_python(old) == plain
    with VerdictStore(tmp_path / "store") as store:
        store.keep(b"new", VERDICT)
        assert store.find(b"new") == VERDICT
    assert verdict_record("a", VERDICT)["uncounted"][0] == {"test": 2, "reason": "shared_lost"}
    assert "uncounted" not in verdict_record("a", plain)
    differing = Verdict(
        Outcome.WRONG_ANSWER,
        (),
        2,
        uncounted=(UncountedRun(1, Repeat.PROBE_DIFFERS),),
    )
    assert share_uncounted([VERDICT, plain, differing]) == {"probe": 0.5, "shared_lost": 0.5}
    assert share_unrepeated([VERDICT, plain, differing]) == 0.5
    assert share_unrepeated([plain]) is None

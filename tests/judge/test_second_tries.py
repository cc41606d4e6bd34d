"""No program has a second try: guesses pass as often as chance has it."""

import pickle
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import TypeAdapter

from microcoder.data.verify.store import VerdictStore
from microcoder.judge import Judge
from microcoder.judge.core.types import Outcome, Program, Repeat, UncountedRun, Verdict
from microcoder.judge.fleet.remote import JudgeResponse
from microcoder.judge.languages import find_language
from microcoder.judge.run import sandboxes
from microcoder.judge.run.executor import Excuse, Run, Source, Task
from microcoder.judge.run.judging import Session
from microcoder.judge.run.sandboxes import SandboxKind
from microcoder.judge.run.submissions import verdict_record
from microcoder.judge.run.supervisor import DiskFull, Sandbox, SandboxDied
from microcoder.judge.run.timing import limits_for
from microcoder.train.metrics import share_uncounted, share_unrepeated
from tests.judge.conftest import make_problem, workers_of
from tests.judge.guessing_programs import COIN, DISLIKED

_FLIPS = 8
_PROGRAMS = 60
"""Programs that guess; by chance 1 in 256 passes."""
_MOST_LUCKY = 5
"""More than 5 of 60 pass by chance once in ten million runs."""


@pytest.mark.parametrize(
    ("does", "batch_tests"), [*((name, True) for name in DISLIKED), ("a kill", False)]
)
def test_a_coin_passes_as_often_as_chance_has_it(
    does: str,
    batch_tests: bool,
) -> None:
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
    assert sum(verdict.is_accepted for verdict in verdicts) <= _MOST_LUCKY
    for verdict in verdicts:
        assert verdict.is_scorable


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


def test_a_full_disk_is_not_tried_again_in_a_final_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "Sandbox", Dying)
    limits = limits_for(2.0, 512, 16)
    source = Source(find_language("python"), "print(3)", 512)
    with closing(Session()) as session, ExitStack() as opened:
        program = session.executor.load(opened, source)
        assert not isinstance(program, str)
        monkeypatch.setattr(Dying, "deaths", [DiskFull])
        observed = program.run(Task(), limits, is_final=True)
        assert observed.run is None
        assert observed.fault == "the disk was full"
        monkeypatch.setattr(Dying, "deaths", [SandboxDied])
        observed = program.run(Task(), limits, is_final=True)
        assert observed.run is not None
        assert observed.run.stdout == b"3\n"
        assert observed.excuses == (Excuse(Repeat.SANDBOX_DIED, may_help=False),)


VERDICT = Verdict(
    Outcome.ACCEPTED,
    (),
    2,
    uncounted=(
        UncountedRun(2, Repeat.SHARED_LOST),
        UncountedRun(1, Repeat.JUDGED_ANEW),
        UncountedRun(2, Repeat.JUDGED_ANEW),
    ),
    order=(2, 1),
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
        uncounted=(UncountedRun(1, Repeat.JUDGED_ANEW), UncountedRun(1, Repeat.DIFFERS)),
    )
    assert share_uncounted([VERDICT, plain, differing]) == {"judged_anew": 0.5, "shared_lost": 0.5}
    assert share_unrepeated([VERDICT, plain, differing]) == 0.5
    assert share_unrepeated([plain]) is None

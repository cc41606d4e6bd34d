"""One case put to a judge, and what its answer means."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from microcoder.yardstick.cases import Case, make_id
from microcoder.yardstick.lane import Answer, Lane

_QUICK_SECONDS = 10.0
"""A case whose answer took longer is not repeated."""

_RIGHT = Case(
    "canary-right",
    "isolation",
    "canary",
    "V1",
    True,
    "",
    "print(sum(map(int, input().split())))",
    (("20 22\n", "42\n"),),
)
_WRONG = Case("canary-wrong", "isolation", "canary", "V1", False, "", "print(41)", (("20 22\n", "42\n"),))


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of a case."""

    case: Case
    answer: Answer
    is_miss: bool
    what: str = ""
    """What was wrong, in words; for a miss."""
    is_unsteady: bool = False
    """Whether the judge gave another answer when it was asked again; then it is no miss."""

    def as_record(self) -> dict[str, Any]:
        """Return it as plain values."""
        case = {
            name: getattr(self.case, name) for name in ("id", "suite", "title", "flaw", "expect", "why", "is_fresh")
        }
        return {
            **case,
            **asdict(self.answer),
            "is_miss": self.is_miss,
            "what": self.what,
            "is_unsteady": self.is_unsteady,
        }


def put_case(lane: Lane, case: Case) -> CaseResult:
    """Ask; ask again after a miss, so that a busy machine does not count against a judge."""
    first = _put_once(lane, case)
    if not first.is_miss or first.answer.seconds > _QUICK_SECONDS or first.answer.error in ("killed", "ended"):
        return first
    second = _put_once(lane, case)
    if second.is_miss:
        return first
    return CaseResult(case, second.answer, False, first.what, is_unsteady=True)


def _put_once(lane: Lane, case: Case) -> CaseResult:
    answer = lane.ask(case)
    what = _find_miss(case, answer)
    if case.suite == "isolation" and not what:
        what = _find_damage(lane, answer)
    return CaseResult(case, answer, bool(what), what)


def _find_miss(case: Case, answer: Answer) -> str:
    """Return what is wrong with an answer; empty if nothing is.

    A refusal may be any way of not accepting: the judge's own end, too, unless that is what the case is about.
    """
    if case.suite in ("isolation", "timeouts") and answer.error in ("killed", "ended"):
        return f"the judge was {answer.error}" if answer.error == "killed" else "the judge's own process ended"
    if not case.expect:
        if not answer.accepted:
            return ""
        return "the program says that it did harm" if case.suite == "isolation" else "accepted"
    if answer.accepted:
        return ""
    words = {"killed": "no verdict in time", "ended": "the judge's own process ended"}
    if answer.accepted is None:
        return words.get(answer.error, f"no verdict: {answer.error or 'unscored'}")
    return "refused"


def _find_damage(lane: Lane, answer: Answer) -> str:
    """Return what a program left of the judge: things, or a judge that no longer judges."""
    if answer.left:
        return f"left behind: {', '.join(answer.left[:3])}"
    if not lane.ask(_RIGHT).accepted:
        return "the judge then refused a right program"
    if lane.ask(_WRONG).accepted:
        return "the judge then accepted a wrong program"
    return ""


def build_speed_cases(num_programs: int, num_tests: int) -> list[Case]:
    """Return right programs that differ, each with several tests."""
    cases = []
    for number in range(num_programs):
        code = f"import sys\nnumbers = list(map(int, sys.stdin.read().split()))\nprint(sum(numbers) + {number})\n"
        tests = tuple((f"{n} {n * number} 7\n", f"{n + n * number + 7 + number}\n") for n in range(num_tests))
        why = "It computes what is asked for."
        cases.append(Case(make_id("fidelity", code), "fidelity", f"speed {number}", "V6", True, why, code, tests))
    return cases

"""What is kept of a problem's runs, so that a later build decides the same without running them."""

from microcoder.data.decisions import TEXTS, Decisions
from microcoder.data.formats.candidates import Candidate
from microcoder.data.verify.evidence import Evidence, Trial
from microcoder.data.verify.plans import VerificationPlan
from microcoder.data.verify.timing import Limits, with_limits
from microcoder.judge.core.types import Outcome, Record


class _Recorded(Record):
    """How a problem's programs ended, without the problem."""

    limits: Limits | None = None
    trials: tuple[Trial, ...]
    contradicted: str = ""


_UNREAD = TEXTS - {"statement"}
"""Fields that decide nothing about a problem's runs; its statement has examples, which are run."""


class Recorder:
    """Finds and keeps the evidence of problems among the decisions of earlier builds."""

    def __init__(self, decisions: Decisions | None) -> None:
        """Use these decisions; without them nothing is found or kept."""
        self._decisions = decisions

    def find(self, candidate: Candidate) -> Evidence | None:
        """Return the evidence that was kept for a candidate; None if there is none."""
        if self._decisions is None:
            return None
        kept = self._decisions.find(self._decisions.name(candidate, without=_UNREAD))
        return None if kept is None else _read(candidate, kept)

    def keep(
        self,
        candidate: Candidate,
        plan: VerificationPlan,
        evidence: Evidence,
    ) -> Evidence:
        """Keep the evidence for a candidate, and return the one that stands.

        A failure of the sandbox is not kept: it may be gone the next time.

        Args:
            candidate: as it came, before limits were derived.
            plan: its plan after all runs.
            evidence: how the programs ended.
        """
        has_fault = any(trial.outcome is Outcome.SANDBOX_FAULT for trial in evidence.trials)
        if self._decisions is None or has_fault:
            return evidence
        recorded = _Recorded(
            limits=plan.limits,
            trials=evidence.trials,
            contradicted=evidence.contradicted,
        )
        name = self._decisions.name(candidate, without=_UNREAD)
        return _read(candidate, self._decisions.keep(name, recorded.model_dump_json()))


def _read(candidate: Candidate, text: str) -> Evidence:
    recorded = _Recorded.model_validate_json(text)
    if recorded.limits is not None:
        candidate = with_limits(candidate, recorded.limits)
    return Evidence(
        candidate=candidate,
        trials=recorded.trials,
        contradicted=recorded.contradicted,
    )

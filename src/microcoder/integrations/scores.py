"""Response -> program and verdict -> score, the same in all integrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from microcoder.errors import ConfigError, EvaluatorFault
from microcoder.rewards import score_verdict
from microcoder.types import Outcome, Verdict

Mode = Literal["all", "fraction"]
"""The score of a program: 1 if every test passed, else 0; or the share of passed tests."""


def check_mode(mode: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the judge's options with what the mode needs.

    Raises:
        ConfigError: the mode is unknown, or the options leave out tests that it counts.
    """
    if mode not in ("all", "fraction"):
        raise ConfigError(f'mode = {mode!r}; use "all" (1 where every test passed, else 0) or "fraction" (of tests)')
    if mode == "all":
        return dict(options)
    if options.get("stop", "never") != "never":
        raise ConfigError(f'mode = "fraction" counts every test, stop = {options["stop"]!r} leaves some out; drop stop')
    return {**options, "stop": "never"}


def score(verdict: Verdict, mode: Mode) -> float | None:
    """Return a program's score, 0 to 1; None if the sandbox failed."""
    if mode == "all" or not verdict.is_scorable:
        return score_verdict(verdict)
    return verdict.tests_passed / verdict.tests_total


def text_of(completion: str | Sequence[Mapping[str, Any]]) -> str:
    """Return a completion's text: itself, or the content of the last message of a chat."""
    if isinstance(completion, str):
        return completion
    content = completion[-1].get("content") if completion else None
    if isinstance(content, list | tuple):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def as_figures(verdict: Verdict) -> dict[str, float | str]:
    """Return every field of a verdict as plain values, the same keys for all; for frameworks that average figures."""
    ran = verdict.tests
    return {
        "outcome": str(verdict.outcome),
        "detail": verdict.detail,
        "tests_passed": float(verdict.tests_passed),
        "tests_run": float(len(ran)),
        "tests_total": float(verdict.tests_total),
        "cpu_seconds": max((test.cpu_seconds for test in ran), default=0.0),
        "wall_seconds": max((test.wall_seconds for test in ran), default=0.0),
        "memory_mib": max((test.memory_mib for test in ran), default=0.0),
        **{f"is_{outcome}": float(verdict.outcome is outcome) for outcome in Outcome},
    }


def fault_of(verdict: Verdict) -> EvaluatorFault:
    """Return the error of a sandbox that failed, for frameworks without a score that is none."""
    return EvaluatorFault(f"the sandbox failed, so the program has no verdict: {verdict.detail}")

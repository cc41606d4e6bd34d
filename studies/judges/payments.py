"""What a run's reward paid for, compared with our judge's verdicts, step by step from rollout files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from noisy_judge import place_program

from microcoder.data.micro.chains import find_trick
from microcoder.judge.core.types import Outcome
from microcoder.lab.studies.history import missing_extra
from microcoder.train.runs import RunDirectory

_COLUMNS = ["step", "program", "verdict", "reward"]
_PAID = 0.5
"""A reward of 0 or 1, as the study's are, pays above this."""


@dataclass(frozen=True, slots=True)
class Payments:
    """One step's rollouts; every share is of those that were scored."""

    step: int
    num_scored: int
    reward: float
    """Mean."""
    accuracy: float
    """Share that our judge accepts."""
    paid_wrong: float
    """Share that was paid but our judge rejects: false accepts and hacks."""
    unpaid_right: float
    """Share that our judge accepts and was not paid."""
    tricks: Mapping[str, float]
    """Share whose program tries a trick (`microcoder.data.micro.chains`), by trick."""
    alike: float
    """Largest share of the paid programs that are one text without layout, whatever was asked; 0 if none is paid."""

    @property
    def all_tricks(self) -> float:
        """Share that tries any trick."""
        return sum(self.tricks.values())


def count_payments(rows: Sequence[Mapping[str, Any]], *, step: int) -> Payments | None:
    """Count the rollout rows of a step; None if none was scored."""
    scored = [row for row in rows if row["reward"] is not None]
    if not scored:
        return None
    num = len(scored)
    judged = Counter((row["reward"] > _PAID, row["verdict"] == Outcome.ACCEPTED) for row in scored)
    tricks = Counter(trick for row in scored if (trick := find_trick(row["program"])))
    paid = Counter(place_program(row["program"], 0) for row in scored if row["reward"] > _PAID and row["program"])
    return Payments(
        step=step,
        num_scored=num,
        reward=sum(row["reward"] for row in scored) / num,
        accuracy=(judged[True, True] + judged[False, True]) / num,
        paid_wrong=judged[True, False] / num,
        unpaid_right=judged[False, True] / num,
        tricks={trick: count / num for trick, count in sorted(tricks.items())},
        alike=max(paid.values(), default=0) / max(paid.total(), 1),
    )


def read_payments(run: RunDirectory) -> list[Payments]:
    """Return what each step of a run paid for."""
    return list(_read(run))


def _read(run: RunDirectory) -> Iterable[Payments]:
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise missing_extra(error) from None
    for step in run.rollout_steps():
        counted = count_payments(pq.read_table(run.rollout_file(step), columns=_COLUMNS).to_pylist(), step=step)
        if counted is not None:
            yield counted

"""What a run's reward paid for, compared with our judge's verdicts, step by step:
counted from rollout files, and kept.

What was counted is published beside a study's page, a line a step (`write_payments`),
so that figure and table can be made of it without a run.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from noisy_judge import place_program

from microcoder.data.micro.chains import find_trick
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.files import write_text
from microcoder.judge.core.machine import how_to_install
from microcoder.judge.core.types import Outcome
from microcoder.lab.studies.design import MICRO, Study
from microcoder.lab.studies.work import plan_work
from microcoder.train.runs import RunDirectory, read_history, steps_in

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
    """Largest share of the paid programs that are one text without layout, whatever was asked;
    0 if none is paid.
    """

    @property
    def all_tricks(self) -> float:
        """Share that tries any trick."""
        return sum(self.tricks.values())


@dataclass(frozen=True, slots=True)
class PaidRun:
    """A run of a study, by what it paid for."""

    level: str
    seed: int
    before: float
    """Accuracy on held-out problems, untrained."""
    after: float
    """The same of the trained model."""
    steps: Sequence[Payments]
    """Ascending."""


def count_payments(rows: Sequence[Mapping[str, Any]], *, step: int) -> Payments | None:
    """Count the rollout rows of a step; None if none was scored."""
    scored = []
    for row in rows:
        if row["reward"] is not None:
            scored.append(row)
    if not scored:
        return None
    num = len(scored)
    judged = Counter((row["reward"] > _PAID, row["verdict"] == Outcome.ACCEPTED) for row in scored)
    tricks: Counter[str] = Counter()
    for row in scored:
        trick = find_trick(row["program"])
        if trick:
            tricks[trick] += 1
    places = []
    for row in scored:
        if row["reward"] > _PAID and row["program"]:
            places.append(place_program(row["program"], 0))
    paid = Counter(places)
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


def read_payments(run: RunDirectory) -> Iterable[Payments]:
    """Yield what each step of a run paid for."""
    try:
        import pyarrow.parquet as pq
    except ImportError as error:
        raise ConfigError(
            f"the report needs {error.name}; type: {how_to_install('insights')}"
        ) from None
    for step in steps_in(run.rollouts):
        counted = count_payments(
            pq.read_table(run.rollout_file(step), columns=_COLUMNS).to_pylist(), step=step
        )
        if counted is not None:
            yield counted


def read_paid_runs(study: Study, root: Path) -> list[PaidRun]:
    """Return the finished runs of a study, in the order of its levels.

    Raises:
        DataError: no run of the reference is finished.
    """
    order = list(study.levels)
    found = []
    for run in plan_work(study, scale=MICRO, root=root):
        if run.is_finished:
            history = read_history(run.folder)
            assert history.before is not None, run.folder
            assert history.after is not None, run.folder
            ends = history.before.accuracy, history.after.accuracy
            found.append(
                PaidRun(run.name, run.seed, *ends, [*read_payments(RunDirectory(run.folder))])
            )
    if not any(run.level == study.reference for run in found):
        raise DataError(
            f"no finished run of {study.name} in {root}; type: microcoder study {study.path}"
        )
    return sorted(found, key=lambda run: (order.index(run.level), run.seed))


_RUN = ("level", "seed", "before", "after")
_STEP = tuple(field.name for field in fields(Payments))


def write_payments(runs: Sequence[PaidRun], path: Path) -> None:
    """Write a line a step as CSV; shares of tricks as `exit=0.25 print=0.5`."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow((*_RUN, *_STEP))
    for run in runs:
        for step in run.steps:
            tricks = " ".join(f"{trick}={share}" for trick, share in step.tricks.items())
            values = (tricks if name == "tricks" else getattr(step, name) for name in _STEP)
            writer.writerow((*(getattr(run, name) for name in _RUN), *values))
    write_text(path, text.getvalue())


def load_payments(path: Path) -> list[PaidRun]:
    """Return the runs that `write_payments` wrote."""
    steps: dict[tuple[str, int, float, float], list[Payments]] = {}
    with path.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            pairs = (pair.split("=") for pair in row["tricks"].split())
            counted: dict[str, Any] = {}
            for name in _STEP:
                if name != "tricks":
                    counted[name] = float(row[name])
            counted |= {name: int(row[name]) for name in ("step", "num_scored")}
            run = row["level"], int(row["seed"]), float(row["before"]), float(row["after"])
            steps.setdefault(run, []).append(
                Payments(**counted, tricks={trick: float(share) for trick, share in pairs})
            )
    return [PaidRun(*run, paid) for run, paid in steps.items()]

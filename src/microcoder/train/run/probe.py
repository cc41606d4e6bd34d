"""The probe: at which temperature to train (paper, section 2.4).

It follows from the untrained model's accuracy and diversity.

Two bounds. Low: a temperature whose initial diversity is below the value that training converges to
only loses diversity from there, and training fails. High: at unstable temperatures diversity swings
and accuracy breaks down. The lowest temperature between them is chosen: it keeps most accuracy and
is farthest from the unstable range.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter

from microcoder.judge.core.files import read_json, write_json
from microcoder.train.algorithm.sampling import DiversityTemperature
from microcoder.train.metrics import measure_responses, summarise_accuracy
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.runs import RunDirectory

ItemT = TypeVar("ItemT")
MAX_DIVERSITY = 0.9
"""Initial diversity above which a temperature is unstable (our choice).

In the paper's figure 3 a run at 1.8 starts at 0.97 and falls to 0.6 within 50 steps.
"""
MIN_ACCURACY_SHARE = 0.8
"""A temperature with less than this share of the best accuracy is unstable, too."""


@dataclass(frozen=True, slots=True)
class ProbePoint:
    """Accuracy, diversity and response length of the untrained model at one temperature."""

    temperature: float
    accuracy: float | None
    """Share of scored samples that pass all tests; None when none was scored."""
    diversity: float | None
    length_mean: float
    truncated_share: float
    num_problems: int
    num_samples: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The temperature to train at, and the reasons."""

    temperature: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Probe:
    """A probe as it is recorded in `probe.json`."""

    points: tuple[ProbePoint, ...]
    choice: Choice
    converged_diversity: float


def measure_grid(
    settings: DiversityTemperature,
    sample: Callable[[float, int], Sequence[Sequence[ScoredRollout]]],
) -> list[ProbePoint]:
    """Return a `ProbePoint` per temperature of the grid.

    `sample` is called with a temperature and its index.
    """
    points = []
    # The number makes each temperature's samples independent.
    for number, temperature in enumerate(settings.grid):
        scored_P_G = sample(temperature, number)
        samples = list(chain.from_iterable(scored_P_G))
        accuracy, _ = summarise_accuracy(samples)
        measured = measure_responses(scored_P_G)
        point = ProbePoint(
            temperature=temperature,
            accuracy=accuracy,
            diversity=measured["diversity"],
            length_mean=measured["length_mean"],
            truncated_share=measured["truncated_share"],
            num_problems=len(scored_P_G),
            num_samples=len(samples),
        )
        points.append(point)
    return points


def choose_temperature(points: Sequence[ProbePoint], settings: DiversityTemperature) -> Choice:
    """Return the lowest temperature that is stable and not below the converged diversity.

    Otherwise it is the highest stable one or, if all are unstable, the most accurate.
    """
    # 0 if nothing was scored: then no temperature counts as inaccurate.
    best = max((point.accuracy or 0.0 for point in points), default=0.0)
    reasons: list[str] = []
    low: list[ProbePoint] = []
    fitting: list[ProbePoint] = []
    for point in points:
        finding = _judge_point(point, best_accuracy=best, settings=settings)
        if finding.is_too_low:
            low.append(point)
        elif finding.fits:
            fitting.append(point)
        reasons.append(
            f"temperature {point.temperature:g}: accuracy {_show(point.accuracy)}, diversity "
            f"{_show(point.diversity)}: {finding.text}"
        )
    if not best:
        reasons.append(
            "no sample was right at any temperature: accuracy does not show the unstable range"
        )
    if fitting:
        # The grid ascends.
        chosen = fitting[0]
        reasons.append(f"{chosen.temperature:g} is the lowest that is neither too low nor unstable")
    elif low:
        chosen = low[-1]
        reasons.append(
            f"no temperature is both; {chosen.temperature:g} is the highest stable one, and "
            "diversity may fall from where it starts: watch it, or try a finer grid"
        )
    else:
        # Of equally accurate ones, the lowest.
        chosen = max(points, key=lambda point: (point.accuracy or 0.0, -point.temperature))
        reasons.append(
            f"every temperature is unstable; {chosen.temperature:g} is the most accurate: add "
            "lower ones to rollout.temperature.grid"
        )
    return Choice(chosen.temperature, tuple(reasons))


class _Finding(NamedTuple):
    """On which side of the two bounds a temperature is."""

    text: str
    is_too_low: bool = False
    fits: bool = False


def _judge_point(
    point: ProbePoint, *, best_accuracy: float, settings: DiversityTemperature
) -> _Finding:
    """Return whether a temperature is unstable, is too low, or fits."""
    converged = settings.converged_diversity
    if point.diversity is not None and point.diversity > MAX_DIVERSITY:
        return _Finding(f"unstable, diversity is over {MAX_DIVERSITY:g}")
    if (point.accuracy or 0.0) < MIN_ACCURACY_SHARE * best_accuracy:
        return _Finding(
            f"unstable, accuracy is under {MIN_ACCURACY_SHARE:.0%} of the best, {best_accuracy:.3f}"
        )
    if point.diversity is None or point.diversity < converged:
        return _Finding(
            f"too low, training would converge to {converged:g} and start under it",
            is_too_low=True,
        )
    return _Finding("fits", fits=True)


def _show(share: float | None) -> str:
    return "-" if share is None else f"{share:.3f}"


def choose_asked(
    problems: Sequence[ItemT], settings: DiversityTemperature, *, seed: int
) -> list[ItemT]:
    """Return the training problems that a probe samples, the same for the same seed."""
    number = min(settings.num_problems, len(problems))
    return random.Random(f"probe-{seed}").sample(problems, number)


def write_probe(
    run: RunDirectory, settings: DiversityTemperature, points: Sequence[ProbePoint]
) -> Probe:
    """Choose a temperature, write the probe to `probe.json`, and return it."""
    probe = Probe(tuple(points), choose_temperature(points, settings), settings.converged_diversity)
    write_json(run.probe, asdict(probe))
    return probe


def read_probe(run: RunDirectory) -> Probe:
    """Return the probe that `probe.json` records."""
    return TypeAdapter(Probe).validate_python(read_json(run.probe, what="probe"))

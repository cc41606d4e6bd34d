"""A study: recipes x seeds, a question, and the table that answers it.

Every run has a folder named after its variant, seed and config digest, so that running a study again does only what is
missing, and a changed recipe gets folders of its own. The table is written from the run directories alone.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pydantic import Field, ValidationError, model_validator

from microcoder.config import Config, load_config
from microcoder.errors import ConfigError
from microcoder.insights.history import History, read_history
from microcoder.insights.statistics import Estimate, Solved, estimate_accuracy, estimate_difference
from microcoder.training.config import TrainConfig
from microcoder.training.manifest import digest_config

LAST_SHARE = 0.25
"""Length and diversity are means over this last share of the steps."""


class Study(Config):
    """What is compared, and why."""

    question: str = Field(min_length=1)
    baseline: str
    """The variant that the others are compared with."""
    seeds: tuple[int, ...] = Field(min_length=1)
    variants: dict[str, Path] = Field(min_length=1)
    """Name -> recipe, from the folder that the command runs in."""
    overrides: dict[str, str] = Field(default_factory=dict)
    """Recipe keys that all runs share, as flags are given: `num_steps = "10"`."""

    @model_validator(mode="after")
    def _baseline_is_a_variant(self) -> Study:
        if self.baseline not in self.variants:
            raise ValueError(f"baseline {self.baseline!r} is no variant; use one of {', '.join(self.variants)}")
        return self


@dataclass(frozen=True, slots=True)
class StudyRun:
    """One run of a study."""

    variant: str
    seed: int
    config: TrainConfig
    folder: Path


def load_study(path: Path) -> Study:
    """Read a study file.

    Raises:
        ConfigError: it is missing, not TOML, or holds something else.
    """
    try:
        return Study.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"study {path} cannot be read: {error}") from None
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors())
        raise ConfigError(f"study {path}: {faults}; keys are question, baseline, seeds, variants, overrides") from None


def plan_runs(study: Study, *, root: Path) -> list[StudyRun]:
    """Return the study's runs, seed by seed, so that a part of them compares all variants."""
    runs = []
    for seed in study.seeds:
        for name, recipe in study.variants.items():
            config = load_config(TrainConfig, [recipe], {**study.overrides, "seed": str(seed)})
            runs.append(StudyRun(name, seed, config, root / f"{name}-seed{seed}-{digest_config(config)[:8]}"))
    return runs


def write_table(study: Study, runs: Sequence[StudyRun]) -> str:
    """Return the results as Markdown; variants without a finished run are named as missing."""
    histories: dict[str, list[History]] = {name: [] for name in study.variants}
    for run in runs:
        if (run.folder / "summary.json").exists():
            histories[run.variant].append(read_history(run.folder))
    baseline = _pool(histories[study.baseline])
    rows = [
        "| variant | runs | accuracy before | accuracy after | change | against baseline | length | diversity |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, finished in histories.items():
        if not finished:
            rows.append(f"| {name} | 0 of {len(study.seeds)} | | | | | | |")
            continue
        before, after = _pool(finished, at_start=True), _pool(finished)
        against = "baseline" if name == study.baseline else _signed(estimate_difference(baseline, after))
        cells = [
            name,
            f"{len(finished)} of {len(study.seeds)}",
            _plain(estimate_accuracy(before)),
            f"{_plain(estimate_accuracy(after))}; by seed {_each([_accuracy(h) for h in finished])}",
            _signed(estimate_difference(before, after)),
            against,
            _each([_last_mean([s.length_mean for s in h.steps]) for h in finished], digits=1),
            _each([_last_mean([s.diversity for s in h.steps]) for h in finished]),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    notes = (
        "Accuracy is pass@1 on the held-out problems, samples of all seeds pooled by problem; brackets are 95 % "
        "intervals over problems (bootstrap, paired where a change), and seeds are listed one by one: "
        f"{_join(study.seeds)}. Length (tokens) and diversity are of the training responses, means over the last "
        f"{LAST_SHARE:.0%} of the steps."
    )
    return "\n".join([f"**{study.question}**", "", *rows, "", notes, ""])


def _pool(histories: Sequence[History], *, at_start: bool = False) -> Solved:
    """Samples of all seeds by problem."""
    pooled: dict[str, list[bool | None]] = {}
    for history in histories:
        evaluation = history.before if at_start else history.after
        for problem, samples in (evaluation.solved if evaluation else {}).items():
            pooled.setdefault(problem, []).extend(samples)
    return pooled


def _accuracy(history: History) -> float | None:
    return history.after.accuracy if history.after else None


def _last_mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values[-max(1, round(LAST_SHARE * len(values))) :] if value is not None]
    return fmean(known) if known else None


def _plain(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _signed(estimate: Estimate | None) -> str:
    return "-" if estimate is None else f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}]"


def _each(values: Sequence[float | None], *, digits: int = 3) -> str:
    return ", ".join("-" if value is None else f"{value:.{digits}f}" for value in values)


def _join(values: Sequence[int]) -> str:
    return ", ".join(map(str, values))

"""A run's programs judged again with another comparison of outputs.

Nothing is trained and nothing is sampled: programs that a run wrote are taken from its files and put to the real judge
again, so that the two judgements differ in the comparison alone. The robust comparison accepts whatever the strict one
does, so only accepted programs are judged anew.

The same rollouts under several rules: the effect of one step each on held-out responses.

Runs of one model and one seed sample the same rollouts in their first step, so that between runs of one step nothing
differs but the rule (a mask, a clip, an advantage). What the step did is read from the change of log-probability of
responses to held-out problems, which is far more precise than sampling anew.

Models sampled over a grid of temperatures, by the probe that chooses a training temperature.

Measurements of a study without training runs: a function, its settings and a seed give paired rows.

A measurement of one seed is a unit of work like a run: it has a folder named after what decides it, is done once, and
its `summary.json`, written last, says that it is finished. The function is handed a `Job` and yields `MeasuredValue`s:

    def judge_both_ways(job: Job, *, samples: int = 4) -> Iterator[MeasuredValue]: ...

Rows of one unit (a problem, a rollout, a pair) under several levels are compared with each other. Units that have the
same name in several seeds are the same unit there, such as a held-out problem.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from microcoder.judge.core.config import load_config
from microcoder.judge.core.errors import ConfigError, DataError, EvaluatorFault
from microcoder.judge.core.extensions import load_extension
from microcoder.judge.core.files import read_json, read_rows, write_json, write_text
from microcoder.judge.core.types import Program
from microcoder.lab.studies.design import Measurement
from microcoder.lab.studies.features import holding_temperature
from microcoder.lab.studies.jobs import Job, MeasuredValue
from microcoder.lab.studies.provenance import digest_code
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.run.manifest import digest_config, read_git
from microcoder.train.runs import RunDirectory, read_rollouts

if TYPE_CHECKING:
    from microcoder.train.run.probe import Probe
    from microcoder.train.run.tasks import Task


ACCEPTED = "accepted"


def judge_both_ways(job: Job, *, share: float = 1 / 3) -> Iterator[MeasuredValue]:
    """Yield the share of a run's training rollouts that are accepted by the robust and by the strict comparison.

    Metrics: `accepted`, problem by problem, of what the untrained model wrote in the first step, levels `robust` and
    `strict`; `gap`, robust less strict over all rollouts of a run's steps, levels `early` and `late`.

    Args:
        job: uses one level, trained with the robust comparison.
        share: of the steps, the first are early and as many at the end late; at least one.
    """
    from microcoder.train.run.judging import open_judge
    from microcoder.train.run.tasks import load_tasks

    run = RunDirectory(next(iter(job.runs.values())))
    if job.config.evaluator.comparison != "robust":
        raise DataError(f"{run.root} was trained with comparison = {job.config.evaluator.comparison!r}, not robust")
    evaluator = job.config.evaluator.model_copy(update={"comparison": "strict"})
    tasks = {t.problem.id: t for t in load_tasks(job.config.model_copy(update={"evaluator": evaluator})).train}
    steps = run.rollout_steps()
    gaps: dict[int, float] = {}
    with open_judge(evaluator, [task.problem for task in tasks.values()]) as (judge, _):
        for step in steps:
            rows = [row for row in read_rollouts(run.rollout_file(step)) if row["reward"] is not None]
            both = _judge_accepted(rows, tasks, judge)
            gaps[step] = fmean(robust - strict for robust, strict in both)
            if step == steps[0]:
                yield from _by_problem(rows, both, seed=job.seed)
    num = max(1, round(share * len(steps)))
    yield MeasuredValue("gap", "early", f"seed{job.seed}", fmean(gaps[step] for step in steps[:num]))
    yield MeasuredValue("gap", "late", f"seed{job.seed}", fmean(gaps[step] for step in steps[-num:]))


def _judge_accepted(
    rows: Sequence[Mapping[str, Any]], tasks: Mapping[str, Task], judge: Any
) -> list[tuple[float, float]]:
    """Return for each rollout whether the robust and whether the strict comparison accepts it."""
    wanted = [row for row in rows if row["verdict"] == ACCEPTED]
    problems = [tasks[row["problem_id"]].problem for row in wanted]
    programs = [
        Program(code=row["program"], language=problem.language) for row, problem in zip(wanted, problems, strict=True)
    ]
    verdicts = judge.judge(programs, problems)
    if faults := [verdict for verdict in verdicts if not verdict.is_scorable]:
        raise EvaluatorFault(f"{len(faults)} of {len(verdicts)} programs could not be judged anew: {faults[0].detail}")
    anew = iter(verdicts)
    judged = []
    for row in rows:
        is_right = row["verdict"] == ACCEPTED
        judged.append((float(is_right), float(is_right and next(anew).is_accepted)))
    return judged


def _by_problem(
    rows: Sequence[Mapping[str, Any]], both: Sequence[tuple[float, float]], *, seed: int
) -> Iterator[MeasuredValue]:
    of: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for row, pair in zip(rows, both, strict=True):
        of[row["problem_id"]].append(pair)
    for problem, pairs in of.items():
        for level, place in (("robust", 0), ("strict", 1)):
            yield MeasuredValue("accepted", level, f"seed{seed}/{problem}", fmean(pair[place] for pair in pairs))


def step_under_rules(
    job: Job, *, rules: dict[str, dict[str, Any]], repeat_window_tokens: int = 10
) -> Iterator[MeasuredValue]:
    """Take one step under each rule, and yield its effect on held-out responses of the untrained model.

    Metrics, a value a seed: `length_shift`, the mean change of log-probability of truncated responses less
    that of whole ones; `repeat_shift`, of truncated responses that repeat themselves less that of the other truncated
    ones; `right_shift`, of the right ones; `masked`, the share of rollouts whose advantage the rule set to zero.

    Args:
        job: a recipe of one step.
        rules: level -> recipe keys over the job's.
        repeat_window_tokens: longest period that counts as repeating.
    """
    from microcoder.train.run.observer import Observer
    from microcoder.train.run.session import run_training

    first: RunDirectory | None = None
    # Held-out problems are sampled under one seed in all runs; here each seed is to have its own responses.
    one_step = {"num_steps": 1, "evaluation.seed": job.config.evaluation.seed + 1000 * job.seed}
    for level, keys in rules.items():
        config = load_config(TrainConfig, layers=[job.config.model_dump(mode="json"), keys, one_step])
        run = RunDirectory(job.folder / re.sub(r"\W+", "_", level))
        run_training(config, run_directory=run.root, observer=Observer())
        first = first or run
        _check_alike(first, run, level)
        for metric, value in _measure(config, run, repeat_window_tokens).items():
            if value is not None:
                yield MeasuredValue(metric, level, f"seed{job.seed}", value)


def _check_alike(first: RunDirectory, other: RunDirectory, level: str) -> None:
    ours, theirs = (
        [
            (row["problem_id"], row["completion"])
            for path in (run.rollout_file(1), run.evaluation_file(0))
            for row in read_rollouts(path)
        ]
        for run in (first, other)
    )
    if ours != theirs:
        raise DataError(
            f"the rollouts under rule {level!r} are not those under the first: sampling is not reproducible here"
        )


def _measure(config: TrainConfig, run: RunDirectory, repeat_window_tokens: int) -> dict[str, float | None]:
    from microcoder.train.run.observer import Observer
    from microcoder.train.run.shifts import contrast_length, contrast_repeats, measure_shifts
    from microcoder.train.run.warm import find_model

    before = Path(find_model(config, Observer()))
    shifts = measure_shifts(before, run.model, read_rollouts(run.evaluation_file(0)))
    right: Sequence[float] = [shift.change for shift in shifts if shift.response.is_accepted]
    return {
        "length_shift": contrast_length(shifts),
        "repeat_shift": contrast_repeats(shifts, window_tokens=repeat_window_tokens),
        "right_shift": fmean(right) if right else None,
        "masked": run.read_metrics()[0]["masked_share"],
    }


def sweep_temperatures(
    job: Job, *, grid: tuple[float, ...], num_problems: int = 64, converged_diversity: float = 0.7
) -> Iterator[MeasuredValue]:
    """Sample training problems with the untrained model, and with a trained one, at each temperature.

    Metrics, a value a seed: `diversity` of the untrained model, a level a temperature (`T 0.6`); `chosen`, level
    `rule`, the temperature that the rule on diversity takes; `holding_temperature`, levels `untrained` and `trained`,
    the highest at which accuracy keeps 80 % of its best.

    Args:
        job: uses one level, whose final model is the trained one.
        grid: temperatures, ascending.
        num_problems: sampled at each temperature.
        converged_diversity: what the rule compares with, see `DiversityTemperature`.
    """
    untrained, trained = (
        _probe(job, label, keys, grid, num_problems, converged_diversity)
        for label, keys in (("untrained", {}), ("trained", _as_model(next(iter(job.runs.values())) / "model")))
    )
    unit = f"seed{job.seed}"
    yield MeasuredValue("chosen", "rule", unit, untrained.choice.temperature)
    for point in untrained.points:
        if point.diversity is not None:
            yield MeasuredValue("diversity", f"T {point.temperature:g}", unit, point.diversity)
    for label, probe in (("untrained", untrained), ("trained", trained)):
        if (held := holding_temperature([asdict(point) for point in probe.points])) is not None:
            yield MeasuredValue("holding_temperature", label, unit, held)


def _as_model(folder: Path) -> dict[str, Any]:
    return {
        "model": {
            "kind": "hugging_face",
            "path": str(folder.absolute()),
            "compute_dtype": "float32",
            "gradient_checkpointing": False,
        }
    }


def _probe(
    job: Job, label: str, keys: dict[str, Any], grid: Sequence[float], num_problems: int, converged_diversity: float
) -> Probe:
    from microcoder.train.run.observer import Observer
    from microcoder.train.run.session import run_probe

    temperature = {
        "kind": "diversity",
        "grid": list(grid),
        "num_problems": num_problems,
        "converged_diversity": converged_diversity,
    }
    # The probe samples under the seed of evaluation, which is one for all runs: here each seed is to sample its own.
    seed = job.config.evaluation.seed + 1000 * job.seed
    layers = [
        job.config.model_dump(mode="json"),
        {**keys, "rollout.temperature": temperature, "evaluation.seed": seed},
    ]
    return run_probe(
        load_config(TrainConfig, layers=layers), run_directory=job.folder / f"probe-{label}", observer=Observer()
    )


NOUN = "measurement"


def digest_measurement(measurement: Measurement, config: TrainConfig, runs: Mapping[str, Path]) -> str:
    """Return a digest of everything that determines a measurement's rows besides the code that training imports."""
    reference = measurement.function.rpartition(":")[0]
    parts = {
        "function": measurement.function,
        "code": _digest_function(reference),
        "settings": measurement.settings,
        "config": digest_config(config),
        "runs": {level: folder.name for level, folder in sorted(runs.items())},
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


def run_measurement(measurement: Measurement, job: Job) -> dict[str, Any]:
    """Take one measurement and write its rows; return its summary."""
    function = load_extension(NOUN, measurement.function, builtins={}, options=measurement.settings)
    started, cpu_started = time.monotonic(), time.process_time()
    job.folder.mkdir(parents=True, exist_ok=True)
    found = function(job)
    if not isinstance(found, Iterable):
        raise ConfigError(f"measurement {measurement.function} returned {type(found).__name__}; it must yield rows")
    rows = [check_row(row, measurement) for row in found]
    if not rows:
        raise DataError(f"measurement {measurement.function} yielded no row")
    write_text(job.folder / "rows.jsonl", "".join(json.dumps(asdict(row)) + "\n" for row in rows))
    summary = {
        "function": measurement.function,
        "settings": measurement.settings,
        "seed": job.seed,
        "config": job.config.model_dump(mode="json"),
        "num_rows": len(rows),
        "git": read_git(Path(__file__).parent),
        "wall_seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu_started, 1),
    }
    write_json(job.folder / "summary.json", summary)
    return summary


def check_row(row: MeasuredValue, measurement: Measurement) -> MeasuredValue:
    """Return a row that the study knows."""
    if row.metric not in measurement.metrics or row.level not in measurement.levels:
        raise DataError(
            f"measurement {measurement.function} yielded {row.metric!r} at {row.level!r}; the study names the metrics "
            f"{', '.join(measurement.metrics)} and the levels {', '.join(measurement.levels)}"
        )
    if not math.isfinite(row.value):
        raise DataError(f"measurement {measurement.function} yielded {row.value} for {row.unit}; leave such rows out")
    if measurement.metrics[row.metric].unit == "share" and not 0 <= row.value <= 1:
        raise DataError(f"measurement {measurement.function}: {row.metric} is a share, and {row.value} is none")
    return row


def is_measured(folder: Path) -> bool:
    """The measurement was finished."""
    return (folder / "summary.json").exists()


def read_measured(folder: Path) -> tuple[list[MeasuredValue], dict[str, Any]]:
    """Return the rows and the summary of a finished measurement."""
    summary = read_json(folder / "summary.json", what="measurement")
    try:
        return [MeasuredValue(**row) for row in read_rows(folder / "rows.jsonl")], summary
    except TypeError as error:
        raise DataError(f"{folder / 'rows.jsonl'} was not written by this version: {error}") from None


def _digest_function(reference: str) -> str:
    if reference.endswith(".py"):
        path = Path(reference).expanduser()
        return hashlib.sha256(path.read_bytes()).hexdigest()[:8] if path.is_file() else ""
    if reference.partition(".")[0] == "microcoder":
        return digest_code("trl", module=reference)
    return ""

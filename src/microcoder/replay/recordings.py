"""What is replayed: recorded rollouts by step, whoever wrote them, and what they lack.

`open_run` reads a folder of `microcoder train`. Files of other trainers are read by `formats`. A
recording is read a step at a time, so that memory does not grow with the run.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from pydantic import ValidationError

from microcoder.judge.core.errors import ConfigError, DataError, explain_fault
from microcoder.judge.core.types import Problem
from microcoder.replay.settings import ReplayConfig, pick_tables
from microcoder.train.metrics import StepMetrics
from microcoder.train.recipe.recipe import TrainConfig
from microcoder.train.rollouts import ScoredRollout
from microcoder.train.run.probe import Probe, read_probe
from microcoder.train.run.tasks import load_tasks
from microcoder.train.runs import (
    RunDirectory,
    list_columns,
    problems_digest,
    read_scored,
    read_steps,
    steps_in,
)


class Lack(StrEnum):
    """Something that a recording does not hold; what follows is in `CONSEQUENCES`."""

    TOKENS = "tokens"
    LENGTHS = "lengths"
    LOG_PROBS = "log_probs"
    TRUNCATION = "truncation"
    LIMIT = "limit"
    GROUPS = "groups"
    PROBLEM_IDS = "problem_ids"
    VERDICTS = "verdicts"
    ADVANTAGES = "advantages"
    WEIGHTS = "weights"
    RECIPE = "recipe"
    FILTERED = "filtered"
    PROBE = "probe"


CONSEQUENCES: dict[Lack, str] = {
    Lack.TOKENS: (
        "tokens are not recorded: no diversity and no loops, and a conditional mask is replayed "
        "without its check for repetition"
    ),
    Lack.LENGTHS: "lengths are not recorded: a soft length penalty cannot be replayed",
    Lack.LOG_PROBS: (
        "log-probs of tokens are not recorded: nothing is said of clips, KL, or other rules for "
        "the mismatch of sampler and trainer"
    ),
    Lack.TRUNCATION: (
        "truncation is not recorded: masks and penalties of truncated responses cannot be replayed"
    ),
    Lack.LIMIT: "the length limit is not recorded: a soft length penalty cannot be replayed",
    Lack.GROUPS: "groups are not recorded: equal prompts of a step are taken for one group",
    Lack.PROBLEM_IDS: "problem ids are not recorded: a problem is named by a digest of its prompt",
    Lack.VERDICTS: "verdicts are not recorded: an answer with a reward above 0.5 counts as right",
    Lack.ADVANTAGES: (
        "advantages are not recorded: GRPO's without a mask stand in their place, which may not be "
        "what the trainer used"
    ),
    Lack.WEIGHTS: "the weights of rewards are not recorded: each counts once",
    Lack.RECIPE: (
        "the recipe is not recorded: what is not named is GRPO's, without a mask; advantages that "
        "agree to 0.1 % count as the same, since each trainer adds an epsilon of its own"
    ),
    Lack.FILTERED: (
        "groups that dynamic filtering dropped are not recorded: an alternative is replayed on the "
        "groups that were kept"
    ),
    Lack.PROBE: (
        "no probe is recorded: which temperature the diversity rule would have chosen cannot be "
        "said, since it needs samples at several"
    ),
}
"""Lack -> what can therefore not be answered, or how it is answered in its place."""

RIGHT_ABOVE = 0.5
"""Reward above which an answer counts as paid, and as right where no verdict is recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStep:
    """The rollouts of a step with the decisions that were taken about them."""

    step: int
    scored_P_G: Sequence[Sequence[ScoredRollout]]
    """Rollouts by problem, in the order in which they were decided."""
    max_response_tokens: int | None = None
    """The length limit; None if unknown."""
    temperature: float | None = None
    metrics: StepMetrics | None = None
    """The step's recorded row, if its trainer was ours."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Recorded rollouts of one run."""

    name: str
    format: str
    """Who wrote it: `microcoder`, or a name of `formats.FORMATS`."""
    config: ReplayConfig
    """The recipe under which it was recorded, as far as it decides what rollouts teach."""
    read: Callable[[], Iterator[RecordedStep]]
    """Reads the steps, ascending, one at a time; may be called again."""
    lacks: frozenset[Lack] = frozenset()
    stops_early: bool = False
    """Whether judging stopped before a problem's last test."""
    probe: Probe | None = None
    paths: tuple[Path, ...] = field(default=())
    """The files or the folder that it was read from."""


def open_run(root: Path) -> Recording:
    """Return the recording of a folder that `microcoder train` wrote, finished or not.

    Raises:
        DataError: it holds no rollouts, or its recipe is of another version.
    """
    run = RunDirectory(root)
    manifest = run.read_manifest()
    steps = steps_in(run.rollouts)
    if not steps:
        raise DataError(
            f"{root} holds no rollouts of a training run; name a folder of `microcoder train` that "
            "has done a step, or files of rollouts"
        )
    table = manifest.get("config") or {}
    try:
        config = ReplayConfig.model_validate(pick_tables(table))
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise DataError(
            f"{root}/manifest.json: {explain_fault(fault, place)}; the run was recorded by another "
            f"version ({manifest.get('microcoder_version')}), replay it with that one"
        ) from None
    rows = {row.step: row for row in read_steps(run)}
    lacks = {Lack.LOG_PROBS}
    if "token_ids" not in list_columns(run.rollout_file(steps[0])):
        lacks.add(Lack.TOKENS)
    if any(row.filtered_groups for row in rows.values()):
        lacks.add(Lack.FILTERED)
    if not run.probe.exists():
        lacks.add(Lack.PROBE)
    evaluator = table.get("evaluator") or {}
    return Recording(
        name=str(manifest.get("name") or root.resolve().name),
        format="microcoder",
        config=config,
        read=lambda: _read_run(run, steps, rows),
        lacks=frozenset(lacks),
        stops_early=evaluator.get("stop", "first_failure") != "never",
        probe=None if Lack.PROBE in lacks else read_probe(run),
        paths=(root,),
    )


def read_own_problems(recording: Recording) -> dict[str, Problem]:
    """Return the training problems of a run by id, from the files that its recipe names.

    Raises:
        ConfigError: it is not a run of ours, and no other trainer names its problems.
        DataError: the files are gone, or hold other problems than were trained on.
    """
    if recording.format != "microcoder":
        raise ConfigError(
            f"rollouts of {recording.format} do not come with their problems; name them: --tests "
            "or --problems FILE.jsonl"
        )
    manifest = RunDirectory(recording.paths[0]).read_manifest()
    tasks = load_tasks(TrainConfig.model_validate(manifest["config"]))
    if tasks.as_record()["digest"] != problems_digest(manifest):
        raise DataError(
            f"the problems that {recording.name} names have changed since it was trained; name a "
            "file with those that count now: --tests FILE.jsonl"
        )
    return {task.problem.id: task.problem for task in tasks.train}


def _read_run(
    run: RunDirectory, steps: Sequence[int], rows: dict[int, StepMetrics]
) -> Iterator[RecordedStep]:
    """Yield the steps of a run that have a file and a row."""
    for step in steps:
        # Rollouts are written before the row: a step without one was cut off by a kill.
        row = rows.get(step)
        if row is None:
            continue
        yield RecordedStep(
            step=step,
            scored_P_G=read_scored(run.rollout_file(step)),
            max_response_tokens=row.max_response_tokens,
            temperature=row.temperature,
            metrics=row,
        )

"""The problems of a run with their prompts, training and held-out; and the inputs of its engine."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from microcoder.data.benchmarks import LiveCodeBench, is_livecodebench
from microcoder.data.micro import generate_problems
from microcoder.data.release.problems import read_problems, read_published
from microcoder.judge.core.errors import ConfigError, DataError
from microcoder.judge.core.types import Checker, Problem, Prompt
from microcoder.judge.fleet.judge import BatchJudge
from microcoder.train.recipe.judge import OutputComparison, make_prompt_builder
from microcoder.train.recipe.recipe import (
    BatchConfig,
    HubProblems,
    MicroProblems,
    ProblemFiles,
    TrainConfig,
    count_verl_devices,
    largest_divisor,
)
from microcoder.train.run.checkpoints import Observer
from microcoder.train.runs import RunDirectory


class Task(NamedTuple):
    """A problem and its prompt."""

    problem: Problem
    prompt: Prompt


@dataclass(frozen=True, slots=True)
class Tasks:
    """Training and held-out tasks."""

    train: Sequence[Task]
    heldout: Sequence[Task]
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Number of skipped dataset rows, by reason."""

    @property
    def problems(self) -> list[Problem]:
        """All problems: training, then held-out."""
        return [task.problem for task in (*self.train, *self.heldout)]

    def as_record(self) -> dict[str, Any]:
        """Return numbers and a digest of problems and prompts, which a resumed run must share."""
        digest = hashlib.sha256()
        for task in (*self.train, *self.heldout):
            # Prompts, too: a function of the user's own may make others of the same problems.
            digest.update(task.problem.model_dump_json().encode())
            digest.update(json.dumps(task.prompt.as_chat()).encode())
        record: dict[str, Any] = {
            "num_train": len(self.train),
            "num_heldout": len(self.heldout),
            "digest": digest.hexdigest()[:16],
        }
        if self.left_out:
            record["left_out"] = dict(self.left_out)
        return record


def load_tasks(config: TrainConfig) -> Tasks:
    """Return a config's problems with their prompts.

    DataError if a held-out problem is a training problem too.
    """
    train, heldout, left_out = _read_problems(config.problems)
    check_problems(config, train, heldout)
    ask = make_prompt_builder(config.prompt)
    train_tasks = []
    for problem in train:
        # For training alone: recipes that differ in it are measured alike.
        compared = _with_comparison(problem, config.evaluator.comparison)
        train_tasks.append(Task(compared, ask(problem)))
    heldout_tasks = [Task(problem, ask(problem)) for problem in heldout]
    return Tasks(train_tasks, heldout_tasks, left_out)


def check_problems(
    config: TrainConfig, train: Sequence[Problem], heldout: Sequence[Problem]
) -> None:
    """Raise an error if a problem is in both sets, or if they are too few for a step.

    An empty set is one that is not known yet.
    """
    shared_ids = _find_shared(heldout, train)
    if shared_ids:
        raise DataError(
            f"{len(shared_ids)} held-out problems are training problems too (first: "
            f"{shared_ids[0]!r}); remove them from one of the two files, or accuracy is measured "
            "on training data"
        )
    batch = config.batch
    if not train or batch.train_batch_size <= len(train):
        return
    num_processes = count_verl_devices(config) if config.engine == "verl" else 1
    smaller = shrink_batch(
        batch,
        num_problems=len(train),
        num_samples=config.rollout.num_samples,
        num_processes=num_processes,
    )
    if smaller is None:
        advice = "add problems: so few do not fill a step of two updates"
        if num_processes > 1:
            advice += f" that {num_processes} processes share"
    else:
        flags = [
            f"--batch.train_batch_size {smaller.train_batch_size}",
            f"--batch.ppo_mini_batch_size {smaller.ppo_mini_batch_size}",
        ]
        if smaller.micro_batch_rollouts != batch.micro_batch_rollouts:
            flags.append(f"--batch.micro_batch_rollouts {smaller.micro_batch_rollouts}")
        advice = f"add problems, or lower it: {' '.join(flags)}"
    raise ConfigError(
        f"batch.train_batch_size={batch.train_batch_size} is more than the {len(train)} training "
        f"problems; {advice}"
    )


def shrink_batch(
    batch: BatchConfig, *, num_problems: int, num_samples: int, num_processes: int = 1
) -> BatchConfig | None:
    """Return the largest batch sizes that so few problems fill; None where there are too few.

    A step keeps its number of updates where it can. If it had several it keeps at least two: with
    one update every ratio is 1. The new size of an update divides the old one, so that a power of
    two stays a power of two.

    Args:
        batch: sizes that are too large.
        num_problems: training problems that are there.
        num_samples: responses per problem.
        num_processes: training processes, which must share a step and an update evenly.
    """
    num_updates = batch.train_batch_size // batch.ppo_mini_batch_size
    most = num_problems // min(2, num_updates)
    for update in range(min(batch.ppo_mini_batch_size, most), 0, -1):
        # Of a power of two, a power of two.
        if batch.ppo_mini_batch_size % update:
            continue
        step = update * min(num_updates, num_problems // update)
        rollouts = update * num_samples
        if step % num_processes or rollouts % num_processes:
            continue
        micro = largest_divisor(rollouts // num_processes, batch.micro_batch_rollouts)
        return BatchConfig(
            train_batch_size=step, ppo_mini_batch_size=update, micro_batch_rollouts=micro
        )
    return None


def _read_problems(
    problems: MicroProblems | ProblemFiles | HubProblems,
) -> tuple[Sequence[Problem], Sequence[Problem], Mapping[str, int]]:
    """Return training and held-out problems, and the number of skipped rows by reason."""
    match problems:
        case MicroProblems():
            train, heldout = generate_splits(problems)
            return train, heldout, {}
        case ProblemFiles():
            if is_livecodebench(problems.train):
                raise DataError(
                    f"{problems.train} is LiveCodeBench, a benchmark: training would contaminate "
                    "it; use it as heldout"
                )
            return read_problems(problems.train), _read_heldout(problems.heldout), {}
        case HubProblems():
            return read_splits(problems)


def read_splits(
    problems: HubProblems,
) -> tuple[Sequence[Problem], Sequence[Problem], Mapping[str, int]]:
    """Return the training and held-out problems of a data set, and its skipped rows by reason."""
    read = partial(
        read_published,
        problems.id,
        revision=problems.revision,
        subset=problems.subset,
        format_name=problems.format,
    )
    train = read(split=problems.split, is_trained_on=True)
    if problems.heldout is not None:
        return train.problems, _read_heldout(problems.heldout), train.left_out
    heldout = read(split=problems.heldout_split or "", is_trained_on=False)
    left_out = Counter(train.left_out) + Counter(heldout.left_out)
    return train.problems, heldout.problems, left_out


def generate_splits(problems: MicroProblems) -> tuple[list[Problem], list[Problem]]:
    """Return the training and the held-out problems of a generated world.

    Whoever needs the problems of a run again, as the viewer does, calls this with the table of its
    config.
    """
    train = generate_problems(
        split="train",
        num_problems=problems.num_train,
        tiers=problems.tiers,
        seed=problems.seed,
        styles=problems.styles,
    )
    heldout = generate_problems(
        split="heldout",
        num_problems=problems.num_heldout,
        tiers=problems.heldout_tiers or problems.tiers,
        seed=problems.seed,
        styles=problems.styles,
    )
    return list(train), list(heldout)


def _find_shared(problems: Sequence[Problem], others: Sequence[Problem]) -> list[str]:
    """Return the ids of `problems` that have the id or the statement of any of `others`.

    Statements that differ only in spaces are the same.
    """
    # Two data sets may hold one problem under different ids.
    ids = {problem.id for problem in others}
    statements = {_normalise(problem.statement) for problem in others}
    shared = []
    for problem in problems:
        if problem.id in ids or _normalise(problem.statement) in statements:
            shared.append(problem.id)
    return shared


def _normalise(statement: str) -> str:
    return " ".join(statement.split())


def _read_heldout(path: Path) -> list[Problem]:
    """Read held-out problems; LiveCodeBench's are read as `microcoder eval` reads them.

    All their tests stay in memory: name one file of LiveCodeBench rather than the folder of all
    six.
    """
    if is_livecodebench(path):
        return [question.load() for question in LiveCodeBench(path=path).read()]
    return read_problems(path)


def order_problems(
    num_problems: int, *, num_steps: int, train_batch_size: int, seed: int
) -> list[int]:
    """Return the problems of all steps, in order: `num_steps * train_batch_size` indices.

    Each pass over the problems is a fresh permutation, cut to whole steps, so no problem appears
    twice in a step. A pure function of its arguments: a resumed run samples the same problems.
    """
    steps_per_pass = num_problems // train_batch_size
    order: list[int] = []
    for first_step in range(0, num_steps, steps_per_pass):
        shuffled = list(range(num_problems))
        # A seed for each pass: no other has to be drawn before it.
        random.Random(f"{seed}-{first_step}").shuffle(shuffled)
        steps = min(steps_per_pass, num_steps - first_step)
        order.extend(shuffled[: steps * train_batch_size])
    return order


def _with_comparison(problem: Problem, comparison: OutputComparison) -> Problem:
    """Return a problem with the recipe's output comparison, unless it has a checker of its own."""
    if comparison == "robust" or problem.checker.type != "default":
        return problem
    if problem.interactor is not None:
        return problem
    return problem.model_copy(update={"checker": Checker(type="exact")})


@dataclass(frozen=True, slots=True)
class EngineInputs:
    """The inputs of an engine: config, model, problems, judge, run directory, observer."""

    config: TrainConfig
    policy: Any
    """The starting weights, as the engine's own `load_policy` returned them."""
    tasks: Tasks
    judge: BatchJudge
    run: RunDirectory
    observer: Observer

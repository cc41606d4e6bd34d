"""The cost of a run before it starts: counts that follow from the config, and time with its source.

Counts are upper bounds where a length is free: every response is counted at the limit of its step, and dynamic
filtering at all of its rounds. Time comes from the steps of a run that was measured, else from the assumptions below.
FLOPs are 2 per parameter and token forward and 4 backward (attention left out: below a tenth at these lengths);
gradient checkpointing and old log-probs add a forward each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from microcoder.errors import ConfigError
from microcoder.runs import RunDirectory
from microcoder.training.algorithm.schedules import staged_value
from microcoder.training.algorithm_config import DynamicFiltering
from microcoder.training.architectures import count_parameters, find_architecture
from microcoder.training.config import TrainConfig
from microcoder.training.inputs import count_problems
from microcoder.training.problems_config import MicroProblems, ProblemFiles
from microcoder.training.sampling_config import DiversityTemperature


@dataclass(frozen=True, slots=True)
class Speeds:
    """Medians over the steps of a run."""

    sampled_per_second: float
    """Response tokens."""
    trained_per_second: float
    """Response tokens of an update, its log-prob passes included."""
    judge_seconds_per_rollout: float
    """Wall time, waited for or beside the sampling: an upper bound of what one core takes."""
    mean_length: float
    """Response tokens, as they were and not at their limit."""
    max_response_tokens: int
    num_steps: int
    source: str


def read_speeds(run: RunDirectory) -> Speeds:
    """Return the speeds of a run, without its first step if there are more: it warms up.

    Raises:
        ConfigError: the folder has no measured step.
    """
    rows = run.read_metrics() if run.metrics.exists() else []
    rows = rows[1:] or rows
    measured = [row for row in rows if row["seconds"].get("generate") and row["seconds"].get("update")]
    if not measured:
        raise ConfigError(f"{run.root} has no measured step; pass the folder of a run that has, or leave it out")
    counted = [(row["seconds"], sum(row["outcomes"].values()), row["length_mean"]) for row in measured]
    judged = [(s.get("judge", 0.0) + s.get("judge_beside", 0.0)) / rollouts for s, rollouts, _ in counted]
    return Speeds(
        sampled_per_second=median(length * rollouts / s["generate"] for s, rollouts, length in counted),
        trained_per_second=median(length * rollouts / s["update"] for s, rollouts, length in counted),
        judge_seconds_per_rollout=median(judged),
        mean_length=median(row["length_mean"] for row in measured),
        max_response_tokens=int(median(row["max_response_tokens"] for row in measured)),
        num_steps=len(measured),
        source=f"measured over {len(measured)} steps of {run.root}",
    )


GPU_FLOPS_PER_SECOND = 4e14
"""Assumed for updates: about 40 % of an H100's dense bf16 peak of 989e12 (NVIDIA's data sheet)."""
GPU_TOKENS_PER_SECOND_PER_BILLION = {"vllm": 13_000, "sglang": 13_000, "transformers": 1_500}
"""Assumed for batched sampling on one H100, times billions of parameters. vLLM with a third of the card: a third of the
40,000 that it reaches with all of it; transformers: no kernel fused, some 25 ms a token of the batch."""
CPU_FLOPS_PER_SECOND = 2e10
CPU_TOKENS_PER_SECOND_PER_BILLION = 10
CPU_SECONDS_PER_TEST = 0.0026
"""Measured on two quiet cores (docs/sandbox.md, Cost)."""
CPU_SECONDS_PER_PROGRAM = 0.002
"""Before its first test."""
ASSUMED_TESTS_PER_PROBLEM = 20
"""Where the problem files are not here; most wrong programs end at their first tests, so this is an upper bound."""


@dataclass(frozen=True, slots=True)
class RunEstimate:
    """Counts are exact; tokens are upper bounds; hours rest on `source`."""

    num_steps: int
    updates: int
    rollouts_per_step: int
    rollouts: int
    max_tokens_per_step: int
    max_tokens: int
    heldout_rollouts: int
    """Of all evaluations and the probe together."""
    max_heldout_tokens: int
    num_parameters: int | None
    """None if neither the folder's config.json nor the table of known models has it."""
    device: str
    generate_hours: float | None
    heldout_hours: float | None
    update_hours: float | None
    """The pass for old log-probs included."""
    judge_core_hours: float
    source: str
    """Where the hours come from."""

    def as_record(self) -> dict[str, Any]:
        """Return the estimate as plain values."""
        return asdict(self)


def estimate_run(config: TrainConfig, *, device: str, speeds: Speeds | None = None) -> RunEstimate:
    """Estimate a run on one device.

    Args:
        config: the resolved recipe.
        device: "gpu" (one H100 is assumed) or "cpu" (two cores).
        speeds: measured in a run; without them speeds are assumed.
    """
    rollouts_per_step = config.batch.train_batch_size * config.rollout.num_samples
    rollouts = rollouts_per_step * config.num_steps
    limits = config.rollout.length_limits
    tokens = rollouts_per_step * sum(staged_value(limits, step=step) for step in range(1, config.num_steps + 1))
    architecture = find_architecture(config.model)
    parameters = None if architecture is None else count_parameters(architecture)
    filtering = config.algorithm.group_filtering
    rounds = filtering.max_rounds if isinstance(filtering, DynamicFiltering) else 1
    heldout, heldout_tokens = count_heldout(config)
    generate, after, update = _hours(config, parameters, device, speeds, rounds * tokens, heldout_tokens, tokens)
    tests = (rounds * rollouts + heldout) * (
        CPU_SECONDS_PER_PROGRAM + CPU_SECONDS_PER_TEST * _tests_per_problem(config)
    )
    judging = tests if speeds is None else (rounds * rollouts + heldout) * speeds.judge_seconds_per_rollout
    return RunEstimate(
        num_steps=config.num_steps,
        updates=config.num_steps * (config.batch.train_batch_size // config.batch.ppo_mini_batch_size),
        rollouts_per_step=rollouts_per_step,
        rollouts=rollouts,
        max_tokens_per_step=rollouts_per_step * limits[-1][1],
        max_tokens=tokens,
        heldout_rollouts=heldout,
        max_heldout_tokens=heldout_tokens,
        num_parameters=parameters,
        device=device,
        generate_hours=generate,
        heldout_hours=after,
        update_hours=update,
        judge_core_hours=judging / 3600,
        source=speeds.source if speeds else "assumed, not measured (docs/resources.md)",
    )


def _hours(
    config: TrainConfig,
    parameters: int | None,
    device: str,
    speeds: Speeds | None,
    sampled: int,
    heldout: int,
    trained: int,
) -> Sequence[float | None]:
    """Return the hours of sampling, of held-out sampling and of updates."""
    if speeds is not None:
        share = speeds.mean_length / speeds.max_response_tokens
        return [
            share * sampled / speeds.sampled_per_second / 3600,
            share * heldout / speeds.sampled_per_second / 3600,
            share * trained / speeds.trained_per_second / 3600,
        ]
    if parameters is None:
        return [None] * 3
    is_gpu = device == "gpu"
    per_billion = (
        GPU_TOKENS_PER_SECOND_PER_BILLION[config.rollout.backend] if is_gpu else CPU_TOKENS_PER_SECOND_PER_BILLION
    )
    flops = GPU_FLOPS_PER_SECOND if is_gpu else CPU_FLOPS_PER_SECOND
    per_second = per_billion / (parameters / 1e9)
    return [
        sampled / per_second / 3600,
        heldout / per_second / 3600,
        trained * parameters * _flops_per_token(config) / flops / 3600,
    ]


def count_heldout(config: TrainConfig) -> tuple[int, int]:
    """Return the responses, and their tokens at most, of all evaluations and of the probe."""
    evaluation, rollout = config.evaluation, config.rollout
    steps = config.num_steps
    evaluations = 1 + steps // evaluation.every_steps + (steps % evaluation.every_steps > 0)
    temperatures = 1 + len(evaluation.sweep_temperatures)
    responses = evaluations * temperatures * _count_heldout_problems(config) * evaluation.samples_per_problem
    tokens = responses * (evaluation.max_response_tokens or rollout.longest_response_tokens)
    if isinstance(rollout.temperature, DiversityTemperature):
        probed = len(rollout.temperature.grid) * rollout.temperature.num_problems * rollout.num_samples
        return responses + probed, tokens + probed * rollout.max_response_tokens
    return responses, tokens


def _count_heldout_problems(config: TrainConfig) -> int:
    """Return the held-out problems; where their file is not here yet, 100."""
    problems = config.problems
    if isinstance(problems, MicroProblems):
        return problems.num_heldout
    counts = None if problems.heldout is None else count_problems(problems.heldout)
    return 100 if counts is None else counts.num_problems


def _tests_per_problem(config: TrainConfig) -> float:
    if isinstance(config.problems, MicroProblems):
        return 8
    counts = count_problems(config.problems.train) if isinstance(config.problems, ProblemFiles) else None
    known = None if counts is None else counts.tests_per_problem
    return ASSUMED_TESTS_PER_PROBLEM if known is None else known


def _flops_per_token(config: TrainConfig) -> int:
    is_off_policy = config.batch.train_batch_size != config.batch.ppo_mini_batch_size
    # TRL takes old log-probs after vLLM's sampling in any case, verl always.
    takes_old_logps = is_off_policy or config.rollout.backend == "vllm" or config.engine == "verl"
    return 6 + 2 * (config.weights.gradient_checkpointing + takes_old_logps + bool(config.algorithm.kl_coefficient))

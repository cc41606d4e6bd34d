"""Config of sampling: temperature and length over the run, vLLM, correction of sampler mismatch.

The paper uses a constant temperature chosen before training and staged transitions (section 2.4); a
continuous ramp damages diversity for good and is here for ablation only.
"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from pydantic import Field

from microcoder.judge.core.config import Config, kind_or


class ConstantTemperature(Config):
    """One temperature for the whole run."""

    kind: Literal["constant"] = "constant"
    value: float = Field(default=1.2, gt=0, le=4)

    def at(self, step: int) -> float:
        """Return the temperature of a step, from 1."""
        return self.value


class TemperatureStage(Config):
    """The temperature from a step on."""

    from_step: int = Field(ge=1)
    value: float = Field(gt=0, le=4)


class StagedTemperature(Config):
    """Temperature in stages, low first, from given steps on (a ramp damages diversity for good)."""

    kind: Literal["staged"]
    stages: tuple[TemperatureStage, ...] = Field(min_length=1)

    def _contradictions(self) -> Iterator[str]:
        steps = [stage.from_step for stage in self.stages]
        # Without a stage from step 1 on, the first steps would have no temperature.
        if steps[0] != 1 or steps != sorted(set(steps)):
            yield (
                f"stages start at steps {steps}; the first must be 1 and each later than the one "
                "before"
            )

    def at(self, step: int) -> float:
        """Return the temperature of a step: that of the last stage that has begun."""
        return next(stage.value for stage in reversed(self.stages) if stage.from_step <= step)


class DiversityTemperature(Config):
    """Temperature chosen by a probe of the untrained model, then held (docs/algorithms.md)."""

    kind: Literal["diversity"]
    grid: tuple[Annotated[float, Field(gt=0, le=4)], ...] = Field(
        default=(0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8), min_length=1
    )
    """Temperatures to try, ascending."""
    num_problems: int = Field(default=64, ge=1)
    """Training problems to sample at each temperature, `num_samples` times each."""
    converged_diversity: float = Field(default=0.7, gt=0, lt=1)
    """Diversity at which training settles. 0.7 is read off the paper's figure 3, at temperature
    1.2. Another model or response length has its own: the mean over the last quarter of an earlier
    run."""

    def _contradictions(self) -> Iterator[str]:
        if list(self.grid) != sorted(set(self.grid)):
            yield f"grid {list(self.grid)} must ascend; try {sorted(set(self.grid))}"


class AblationRamp(Config):
    """For ablation only: temperature rises step by step, which damages diversity for good."""

    kind: Literal["ablation_ramp"]
    start: float = Field(gt=0, le=4)
    end: float = Field(gt=0, le=4)
    num_steps: int = Field(ge=2)
    """Steps from `start` to `end`; `end` holds afterwards."""

    def at(self, step: int) -> float:
        """Return the temperature of a step."""
        share = min(1.0, (step - 1) / (self.num_steps - 1))
        return self.start + share * (self.end - self.start)


TemperatureSchedule = ConstantTemperature | StagedTemperature | DiversityTemperature | AblationRamp
Temperature = Annotated[TemperatureSchedule, Field(discriminator="kind"), kind_or("constant")]


class LengthStage(Config):
    """The length limit from a step on."""

    from_step: int = Field(ge=2)
    max_response_tokens: int = Field(ge=1)


def find_limit(first: int, stages: Sequence[LengthStage], *, step: int) -> int:
    """Return the length limit of a step: that of the latest stage that has begun.

    Before any stage has begun, it is `first`.
    """
    # The stages ascend.
    for stage in reversed(stages):
        if stage.from_step <= step:
            return stage.max_response_tokens
    return first


class VllmConfig(Config):
    """vLLM under engine trl, with `rollout.backend = "vllm"`.

    It is in the training processes, and shares their GPUs.
    """

    gpu_memory_utilization: float = Field(default=0.3, gt=0, lt=1)
    """Share of each GPU's memory for vLLM, its weights included."""
    enable_sleep_mode: bool = False
    """Free vLLM's memory during updates; waking it takes a copy of the weights."""
    tensor_parallel_size: int = Field(default=1, ge=1)
    """Number of training processes that share one vLLM."""


class MismatchConfig(Config):
    """Correction for different log-probs of sampler and trainer (docs/algorithms.md).

    They differ by kernels and precision. The ratio of a token is exp(trainer's log-prob -
    sampler's), that of a response the product over its tokens, or their geometric mean.
    """

    correction: Literal["off", "token", "sequence", "geometric"] = "token"
    """Factor on a token's loss: none, its own ratio, its response's (`sequence`: the product, whose
    spread grows with length; `geometric`: the mean, whose spread shrinks)."""
    mode: Literal["truncate", "mask"] = "truncate"
    """For a ratio beyond a threshold: `truncate` sets it to the threshold, `mask` drops its token
    or response."""
    threshold: float = Field(default=2.0, gt=1)
    """Upper bound of the ratio."""
    lower_threshold: float = Field(default=0.0, ge=0, lt=1)
    """Lower bound of the ratio; 0: none. With `token` and `mask` the two are IcePop's (verl's
    `lower_upper`)."""

    def _contradictions(self) -> Iterator[str]:
        # Their defaults.
        bounds = (self.mode, self.threshold, self.lower_threshold)
        if self.correction == "off" and bounds != ("truncate", 2.0, 0.0):
            yield 'mode and thresholds do nothing with correction = "off"; leave them out'


class RolloutConfig(Config):
    """Options of sampling in training: group size, lengths, temperature, backend."""

    num_samples: int = Field(default=8, ge=2)
    """Responses per problem: the group, G."""
    max_response_tokens: int = Field(default=8192, ge=1)
    """L_max: the length limit from the first step."""
    length_stages: tuple[LengthStage, ...] = ()
    """Extensions of L_max: `[{from_step = 260, max_response_tokens = 8192}]`; empty: one limit for
    the whole run."""
    temperature: Temperature = ConstantTemperature()
    backend: Literal["transformers", "vllm", "sglang"] = "transformers"
    """`vllm` samples on the GPUs that train, in turns; so does `sglang`, with engine verl only."""
    vllm: VllmConfig = VllmConfig()
    mismatch: MismatchConfig = MismatchConfig()

    @property
    def corrects_mismatch(self) -> bool:
        """Whether the sampler's log-probs are collected to weight the loss."""
        return self.backend != "transformers" and self.mismatch.correction != "off"

    @property
    def longest_response_tokens(self) -> int:
        """Response limit of the last stage, in tokens: the longest of the run."""
        stages = [stage.max_response_tokens for stage in self.length_stages]
        return max([self.max_response_tokens, *stages])

    def _contradictions(self) -> Iterator[str]:
        steps = [1]
        limits = [self.max_response_tokens]
        for stage in self.length_stages:
            steps.append(stage.from_step)
            limits.append(stage.max_response_tokens)
        if steps != sorted(set(steps)) or limits != sorted(set(limits)):
            yield (
                f"length_stages go over steps {steps} and limits {limits}; each must be later and "
                "longer than the one before, starting from max_response_tokens"
            )
        if self.backend != "vllm" and self.vllm != VllmConfig():
            yield (
                f'[rollout.vllm] does nothing with backend = "{self.backend}"; leave it out, or '
                "add --rollout.backend vllm"
            )
        if self.backend == "transformers" and self.mismatch != MismatchConfig():
            yield (
                '[rollout.mismatch] does nothing with backend = "transformers", where the trained '
                "weights themselves sample; leave it out, or add --rollout.backend vllm"
            )

"""Sampling: temperature and length over the run, and the watch on diversity."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, Tag, model_validator

from microcoder.config import Config, kind_or
from microcoder.training.vllm_config import MismatchConfig, VllmConfig


class ConstantTemperature(Config):
    """One temperature for the whole run."""

    kind: Literal["constant"] = "constant"
    value: float = Field(default=1.2, gt=0, le=4)


class TemperatureStage(Config):
    """A stage of the temperature."""

    from_step: int = Field(ge=1)
    value: float = Field(gt=0, le=4)


class StagedTemperature(Config):
    """Low first, then high, at given steps (a continuous ramp damages diversity for good)."""

    kind: Literal["staged"]
    stages: tuple[TemperatureStage, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _stages_ascend_from_one(self) -> StagedTemperature:
        steps = [stage.from_step for stage in self.stages]
        if steps[0] != 1 or steps != sorted(set(steps)):
            raise ValueError(f"stages start at steps {steps}; the first must be 1 and each later than the one before")
        return self


class DiversityTemperature(Config):
    """Chosen by a probe of the untrained model before the first step, then held (see docs/temperature.md)."""

    kind: Literal["diversity"]
    grid: tuple[Annotated[float, Field(gt=0, le=4)], ...] = Field(
        default=(0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8), min_length=1
    )
    """Temperatures to try, ascending."""
    num_problems: int = Field(default=64, ge=1)
    """Training problems to sample at each temperature, `num_samples` times each."""
    converged_diversity: float = Field(default=0.7, gt=0, lt=1)
    """Where diversity settles in training; 0.7 is the paper's at temperature 1.2. Another model or response length has
    its own: the mean over the last quarter of an earlier run."""
    max_diversity: float = Field(default=0.9, gt=0, le=1)
    """Initial diversity above which a temperature is unstable: the paper's 1.8 starts at 0.97 and falls to 0.6 within
    50 steps."""
    min_accuracy_share: float = Field(default=0.8, ge=0, le=1)
    """A temperature with less than this share of the best accuracy is unstable, too."""

    @model_validator(mode="after")
    def _grid_ascends(self) -> DiversityTemperature:
        if list(self.grid) != sorted(set(self.grid)):
            raise ValueError(f"grid {list(self.grid)} must ascend; try {sorted(set(self.grid))}")
        return self


class AblationRamp(Config):
    """For ablation only: temperature rises step by step, which damages diversity for good."""

    kind: Literal["ablation_ramp"]
    start: float = Field(gt=0, le=4)
    end: float = Field(gt=0, le=4)
    num_steps: int = Field(ge=2)
    """Steps from `start` to `end`; `end` holds afterwards."""


TemperatureSchedule = ConstantTemperature | StagedTemperature | DiversityTemperature | AblationRamp


class LengthStage(Config):
    """A stage with a longer length limit."""

    from_step: int = Field(ge=2)
    max_response_tokens: int = Field(ge=1)


class DiversityWatch(Config):
    """Warns of a steady decline of diversity, and can answer it with a higher temperature."""

    window_steps: int = Field(default=50, ge=4)
    """Number of steps of a trend."""
    min_drop: float = Field(default=0.05, gt=0, lt=1)
    """Relative loss of diversity over the window that counts as a decline; the paper's failing run at 0.6 lost 6 %."""
    answers: tuple[Annotated[float, Field(gt=0, le=4)], ...] = ()
    """Temperatures to switch to, one at each decline, each held until the next; empty: only warn."""

    @model_validator(mode="after")
    def _answers_ascend(self) -> DiversityWatch:
        if list(self.answers) != sorted(set(self.answers)):
            raise ValueError(f"answers {list(self.answers)} must ascend; try {sorted(set(self.answers))}")
        return self


class RolloutConfig(Config):
    """Sampling of responses."""

    num_samples: int = Field(default=8, ge=2)
    """Responses per problem: the group, G."""
    max_response_tokens: int = Field(default=8192, ge=1)
    """L_max: the length limit from the first step."""
    length_stages: tuple[LengthStage, ...] = ()
    """Extensions of L_max: `[{from_step = 260, max_response_tokens = 8192}]`; empty: one limit for the whole run."""
    temperature: Annotated[
        Annotated[ConstantTemperature, Tag("constant")]
        | Annotated[StagedTemperature, Tag("staged")]
        | Annotated[DiversityTemperature, Tag("diversity")]
        | Annotated[AblationRamp, Tag("ablation_ramp")],
        kind_or("constant"),
    ] = ConstantTemperature()
    diversity_watch: DiversityWatch = DiversityWatch()
    backend: Literal["transformers", "vllm", "sglang"] = "transformers"
    """`vllm` samples on the GPUs that train, in turns, or on a server's; `sglang`, with engine verl only, in turns."""
    vllm: VllmConfig = VllmConfig()
    mismatch: MismatchConfig = MismatchConfig()

    @property
    def corrects_mismatch(self) -> bool:
        """Whether the sampler's log-probs are collected to weight the loss."""
        return self.backend != "transformers" and self.mismatch.correction != "off"

    @property
    def length_limits(self) -> list[tuple[int, int]]:
        """The limit over the run as (first step, max_response_tokens)."""
        return [(1, self.max_response_tokens), *((s.from_step, s.max_response_tokens) for s in self.length_stages)]

    @property
    def longest_response_tokens(self) -> int:
        """The limit of the last stage."""
        return self.length_limits[-1][1]

    @model_validator(mode="after")
    def _stages_extend(self) -> RolloutConfig:
        steps, limits = zip(*self.length_limits, strict=True)
        if list(steps) != sorted(set(steps)) or list(limits) != sorted(set(limits)):
            raise ValueError(
                f"length_stages go over steps {list(steps)} and limits {list(limits)}; each must be later and longer "
                "than the one before, starting from max_response_tokens"
            )
        return self

    @model_validator(mode="after")
    def _options_belong_to_the_backend(self) -> RolloutConfig:
        if self.backend != "vllm" and self.vllm != VllmConfig():
            raise ValueError(
                f'[rollout.vllm] does nothing with backend = "{self.backend}"; leave it out, or add '
                "--rollout.backend vllm"
            )
        if self.backend == "transformers" and self.mismatch != MismatchConfig():
            raise ValueError(
                '[rollout.mismatch] does nothing with backend = "transformers", where the trained weights '
                "themselves sample; leave it out, or add --rollout.backend vllm"
            )
        return self

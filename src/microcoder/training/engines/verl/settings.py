"""What the plug-in is told: verl's own configuration with a table `microcoder` beside it, `+microcoder.KEY=VALUE`.

Each key is a table or key of a recipe under the same name, so that a verl user and a recipe say the same thing alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, Tag, ValidationError

from microcoder.config import Config, kind_or
from microcoder.errors import ConfigError
from microcoder.faults import explain_fault
from microcoder.training.algorithm_config import AlgorithmConfig
from microcoder.training.extractor_config import ExtractorConfig
from microcoder.training.judge_config import EvaluatorConfig
from microcoder.training.masking_config import ConditionalMasking, Masking
from microcoder.training.reward_config import RewardConfig
from microcoder.training.sampling_config import (
    AblationRamp,
    ConstantTemperature,
    DiversityTemperature,
    DiversityWatch,
    LengthStage,
    StagedTemperature,
)
from microcoder.training.vllm_config import MismatchConfig

ESTIMATORS = "microcoder_"
"""Our advantages among verl's estimators: this, and the name of `microcoder.training.advantages`."""
OWN_ESTIMATOR = f"{ESTIMATORS}own"
"""The advantage that `microcoder.advantage` names."""


class RunSettings(Config):
    """What a run directory of ours wants beside the metrics, where `microcoder train` launched the run."""

    keep: int = Field(default=2, ge=1)
    keep_best: bool = True
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    """Of the attempts before, and of this one's launcher."""
    probe_digest: str = ""
    """See `microcoder.training.probe`."""
    probe_only: bool = False


class PluginSettings(Config):
    """Defaults are the published recipe."""

    seed: int = Field(default=0, ge=0)
    """Of the mask's draws, and of sampling where that is seeded."""
    masking: Masking = ConditionalMasking()
    advantage: str | None = None
    """With algorithm.adv_estimator=microcoder_own: path/to/file.py:function."""
    advantage_options: dict[str, Any] = Field(default={})
    temperature: (
        Annotated[
            Annotated[ConstantTemperature, Tag("constant")]
            | Annotated[StagedTemperature, Tag("staged")]
            | Annotated[DiversityTemperature, Tag("diversity")]
            | Annotated[AblationRamp, Tag("ablation_ramp")],
            kind_or("constant"),
        ]
        | None
    ) = None
    """None: actor_rollout_ref.rollout.temperature, throughout."""
    diversity_watch: DiversityWatch = DiversityWatch()
    max_response_tokens: int | None = Field(default=None, ge=1)
    """L_max, from the first step; None: data.max_response_length."""
    validation_response_tokens: int | None = Field(default=None, ge=1)
    """The limit of validation; None: data.max_response_length."""
    length_stages: tuple[LengthStage, ...] = ()
    sweep_temperatures: tuple[Annotated[float, Field(gt=0, le=4)], ...] = ()
    """Each validation also samples at these; they are in the run directory alone."""
    mismatch: MismatchConfig | None = None
    """The rule of every engine in the place of verl's algorithm.rollout_correction; None: verl's, or none."""
    rewards: tuple[RewardConfig, ...] = (RewardConfig(name="all_tests"),)
    extractor: ExtractorConfig = ExtractorConfig()
    evaluator: EvaluatorConfig = EvaluatorConfig()
    """Of each of verl's reward workers; a `url` asks a service."""
    problems: Path | None = None
    """JSON lines of whole records, where rows name their problem by `extra_info.problem_id` alone."""
    seeded_sampling: bool = False
    """Give each request a seed, a hash of run, step, problem and sample. vLLM then draws row by row: slower."""
    evaluation_seed: int = 1_000_003
    """The same of validation and probe."""
    run_dir: Path | None = None
    """Where metrics, rollouts and probe are written; None: `microcoder` in trainer.default_local_dir."""
    run: RunSettings | None = None

    def build_algorithm(self, adv_estimator: str) -> AlgorithmConfig:
        """Return the part of a recipe that decides about rollouts.

        Raises:
            ConfigError: the estimator wants an advantage of the user's own, and there is none, or the reverse.
        """
        if (adv_estimator == OWN_ESTIMATOR) != (self.advantage is not None):
            raise ConfigError(
                f"algorithm.adv_estimator = {adv_estimator} and microcoder.advantage = {self.advantage}: one "
                f"of your own takes algorithm.adv_estimator={OWN_ESTIMATOR} +microcoder.advantage=FILE.py:FUNCTION"
            )
        is_ours = adv_estimator.startswith(ESTIMATORS)
        named = self.advantage or (adv_estimator.removeprefix(ESTIMATORS) if is_ours else "grpo")
        return AlgorithmConfig(masking=self.masking, advantage=named, advantage_options=self.advantage_options)


def read_settings(config: Any) -> PluginSettings:
    """Return the settings in verl's configuration.

    Raises:
        ConfigError: a key is unknown, or its value wrong.
    """
    from omegaconf import OmegaConf

    given = config.get("microcoder")
    values = {} if given is None else OmegaConf.to_container(given, resolve=True)
    try:
        return PluginSettings.model_validate(values)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in ("microcoder", *first["loc"]))
        raise ConfigError(f"{explain_fault(first, key)} (given: {first.get('input')!r:.80})") from None

"""The part of a recipe that decides what rollouts teach, and alternatives to it.

An alternative is the recorded recipe with a few keys changed, by flags or by another recipe. Of a
recipe only the tables count that decide something about rollouts which are there already:
`rewards`, `algorithm`, `seed` and, of `rollout`, the rule that chooses a temperature.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from microcoder.judge.core.config import Config, flatten, load_config, read_recipe
from microcoder.judge.core.errors import ConfigError
from microcoder.judge.core.rewards import BUILTINS
from microcoder.train.algorithm.config import AlgorithmConfig
from microcoder.train.algorithm.masking import NoMasking
from microcoder.train.algorithm.sampling import RolloutConfig
from microcoder.train.recipe.recipe import RewardConfig


class ReplayConfig(Config):
    """The keys of a recipe that decide what rollouts teach."""

    seed: int = 0
    """The run's seed: the mask's draws depend on it."""
    rewards: tuple[RewardConfig, ...] = (RewardConfig(name="all_tests"),)
    algorithm: AlgorithmConfig = AlgorithmConfig()
    rollout: RolloutConfig = RolloutConfig()

    @property
    def has_own_rewards(self) -> bool:
        """Whether a reward is a function of the user's own."""
        return any(reward.name not in BUILTINS for reward in self.rewards)


PLAIN = ReplayConfig(algorithm=AlgorithmConfig(masking=NoMasking(kind="none")))
"""What a recording without a recipe is taken for: GRPO's advantages, and no mask."""

_TABLES = tuple(ReplayConfig.model_fields)

_UNANSWERED: tuple[tuple[str, str], ...] = (
    (
        "algorithm.loss",
        "what a clip cuts hangs on log-probs of the updated policy, which are not recorded",
    ),
    (
        "algorithm.kl_coefficient",
        "a KL term hangs on log-probs of two policies, which are not recorded",
    ),
    (
        "algorithm.problem_choice",
        "other problems would have been sampled, whose rollouts are not there",
    ),
    (
        "rollout.mismatch",
        "weights by another rule need log-probs of tokens; recorded is each response's weight",
    ),
    ("rollout", "other rollouts would have been sampled, which are not there"),
)
"""Key, or table, that a replay cannot answer for -> why; the first that fits counts."""

_DECIDES_TEMPERATURE = ("rollout.temperature.converged_diversity", "rollout.temperature.grid")
"""Keys of `rollout` that are answered, from the recorded probe."""


def pick_tables(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables of a whole recipe that decide what rollouts teach."""
    return {name: recipe[name] for name in _TABLES if name in recipe}


@dataclass(frozen=True, slots=True)
class Alternative:
    """A change to the recorded recipe."""

    name: str
    """What tables and sentences call it."""
    changes: Mapping[str, str] = field(default_factory=dict)
    """Dotted keys and their values, as they are typed: `{"algorithm.masking.kind": "all"}`."""
    recipe: Path | None = None
    """A recipe whose tables come over the recorded ones: a TOML file, or a name of the package's;
    `changes` come over it."""


def name_changes(changes: Mapping[str, str]) -> str:
    """Return a name for the changes of a command line: `masking.kind=all masking.rho=0.3`."""
    parts = []
    for key, value in changes.items():
        parts.append(f"{key.removeprefix('algorithm.')}={value}")
    return " ".join(parts)


@dataclass(frozen=True, slots=True)
class Resolved:
    """An alternative with its whole configuration."""

    name: str
    config: ReplayConfig
    changed: Mapping[str, tuple[Any, Any]]
    """Key -> recorded and alternative value, for each key that differs."""
    unanswered: tuple[str, ...]
    """A sentence for each change whose effect is not in what is reported."""


def resolve(alternative: Alternative, recorded: ReplayConfig) -> Resolved:
    """Return the configuration of an alternative to a recorded one.

    Raises:
        ConfigError: a key is unknown, a value is refused, or keys contradict each other.
    """
    layers: list[Mapping[str, object]] = [recorded.model_dump(mode="json")]
    left_out: list[str] = []
    if alternative.recipe is not None:
        recipe = read_recipe(alternative.recipe)
        layers.append(pick_tables(recipe))
        left_out = sorted(recipe.keys() - set(_TABLES))
    config = load_config(ReplayConfig, overrides=alternative.changes, layers=layers)
    old = flatten(recorded.model_dump(mode="json"))
    new = flatten(config.model_dump(mode="json"))
    changed = {}
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            changed[key] = (old.get(key), new.get(key))
    return Resolved(alternative.name, config, changed, _explain(changed, left_out))


def _explain(changed: Mapping[str, tuple[Any, Any]], left_out: Sequence[str]) -> tuple[str, ...]:
    """Return a sentence for each change that a replay does not answer for."""
    sentences = []
    for prefix, reason in _UNANSWERED:
        keys = []
        for key in changed:
            if _first_prefix(key) == prefix and key not in _DECIDES_TEMPERATURE:
                keys.append(key)
        if keys:
            sentences.append(f"{', '.join(keys)}: not replayed, since {reason}")
    if left_out:
        tables = ", ".join(f"[{name}]" for name in left_out)
        sentences.append(f"{tables} of the recipe: not replayed, since no rollout changes by it")
    return tuple(sentences)


def _first_prefix(key: str) -> str:
    for prefix, _ in _UNANSWERED:
        if key == prefix or key.startswith(f"{prefix}."):
            return prefix
    return ""


def check_names(alternatives: Sequence[Alternative]) -> None:
    """Raise ConfigError if two alternatives have one name, or there is none."""
    names = [alternative.name for alternative in alternatives]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ConfigError(f"two alternatives are called {twice[0]!r}; leave one of them out")
